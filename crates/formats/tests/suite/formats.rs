//! Every format holds the same matrix, refuses unsuitable ones, and reports its footprint.
use lacuna_engine::{Complex64, Cost, Error, Format, Scalar};
use lacuna_formats::{
    Bcsr, Csr, Dense, Dia, FORMATS, Hyb, Sell, Structure, Triplets, candidates, choose_format, convert,
};
use lacuna_io::Spec;
use proptest::prelude::*;
use std::sync::Arc;

/// The costs of a device with all kernels, where all bytes cost the same.
const ALIKE: [Cost; 11] = [
    Cost::of_bytes("csr", 1.0).and_rows(0.0, 32.0),
    Cost::of_bytes("dia", 1.0),
    Cost::of_bytes("ell", 1.0),
    Cost::of_bytes("sell", 1.0),
    Cost::of_bytes("hyb", 1.0),
    Cost::of_bytes("coo", 1.0).and_rows(0.0, 32.0),
    Cost::of_bytes("bcsr", 1.0),
    Cost::of_bytes("stencil", 1.0),
    Cost::of_bytes("packed", 1.0).and_rows(0.0, 32.0),
    Cost::of_bytes("pkt", 1.0),
    Cost::of_bytes("dense", 1.0),
];

fn generated(name: &str) -> Arc<Csr<f64>> {
    Arc::new(Spec::parse(name).unwrap().build().unwrap())
}

fn close<T: Scalar>(a: &Arc<Csr<T>>, x: &[T]) {
    let mut want = vec![T::zero(); a.rows()];
    a.product(x, &mut want).unwrap();
    for format in FORMATS {
        let Ok(stored) = convert(a, format.name) else { continue };
        assert_eq!(stored.shape(), (a.rows(), a.cols()), "{}", format.name);
        assert_eq!(stored.nnz(), a.nnz(), "{}", format.name);
        assert_eq!(stored.kernel(), format.kernel);
        // Rounded values are off by at most the rounding of the values.
        let eps = if format.rounds { T::Narrow::EPSILON } else { T::EPSILON };
        for (i, want) in want.iter().enumerate() {
            let scale: f64 = a.row_entries(i).map(|(j, v)| v.modulus() * x[j].modulus()).sum();
            let difference = (stored.row(i, x) - *want).modulus();
            let most = 4.0 * eps * (a.cols() as f64 + 4.0) * scale;
            assert!(difference <= most, "{} row {i}: off by {difference:e}", format.name);
        }
    }
}

#[test]
fn the_generated_ones_agree() {
    for name in ["gen:poisson2d:37x29", "gen:poisson3d:7x8x9:27", "gen:elasticity3d:4", "gen:power-law:900"] {
        let a = generated(name);
        let x: Vec<f64> = (0..a.cols()).map(|j| ((j * 7919) % 1013) as f64 - 500.0).collect();
        close(&a, &x);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_ones_agree(
        rows in 0usize..300,
        cols in 0usize..300,
        entries in prop::collection::vec((0usize..300, 0usize..300, -8i32..8, -8i32..8), 0..600),
    ) {
        let mut triplets = Triplets::<Complex64>::new(rows, cols);
        for (i, j, re, im) in entries {
            if i < rows && j < cols {
                triplets.push(i, j, Complex64::new(f64::from(re), f64::from(im)));
            }
        }
        let a = Arc::new(triplets.to_csr().unwrap());
        let x: Vec<_> = (0..cols).map(|j| Complex64::new(1.0 + j as f64, 0.5 - j as f64)).collect();
        close(&a, &x);
    }
}

#[test]
fn bytes_are_foretold_to_the_byte() {
    for name in [
        "gen:poisson2d:100x101",
        "gen:convection:60x70",
        "gen:poisson3d:12x12x12:27",
        "gen:elasticity3d:6",
        "gen:power-law:20000",
    ] {
        let a = generated(name);
        for candidate in candidates(&*a, &Structure::of(&*a), &ALIKE) {
            match convert(&a, candidate.name) {
                Ok(_) if candidate.refused == Some("too few entries in its blocks") => {
                    assert!(candidate.name.starts_with("bcsr") && candidate.cost.is_infinite());
                }
                Ok(stored) if candidate.refused == Some("it rounds values: by name alone") => {
                    assert_eq!((candidate.name, candidate.bytes), ("packed-f32", stored.bytes()));
                }
                Ok(stored) => {
                    // A format excluded only because of its bytes is still available by name.
                    let larger = candidate.refused.is_some_and(|why| why.starts_with("more bytes than csr"));
                    assert!(larger || candidate.refused.is_none(), "{name} in {}", candidate.name);
                    assert!(!larger || stored.bytes() > a.bytes(), "{name} in {}", candidate.name);
                    assert_eq!(candidate.bytes, stored.bytes(), "{name} in {}", candidate.name);
                }
                Err(error) => assert!(candidate.refused.is_some(), "{name} in {}: {error}", candidate.name),
            }
        }
    }
}

#[test]
fn the_choice_follows_the_structure() {
    let choice = |name: &str, costs: &[Cost]| {
        let a = generated(name);
        choose_format(&*a, &Structure::of(&*a), costs)
    };
    assert_eq!(choice("gen:poisson2d:300x300", &ALIKE).0, "stencil");
    assert_eq!(choice("gen:poisson2d:300x300", &ALIKE).1, "0.0 bytes a row, 63.8 in csr");
    assert_eq!(choice("gen:poisson2d:300x300", &ALIKE[..7]).0, "dia-sym");
    assert_eq!(choice("gen:poisson2d:300x300", &ALIKE[..7]).1, "24.0 bytes a row, 63.8 in csr");
    assert_eq!(choice("gen:convection:300x300", &ALIKE).0, "dia", "other coefficients at every point");
    assert_eq!(choice("gen:elasticity3d:8", &ALIKE).0, "dia-sym");
    let rows: Vec<_> = ALIKE.into_iter().filter(|cost| cost.format != "dia").collect();
    assert_eq!(choice("gen:elasticity3d:8", &rows).0, "bcsr3");
    assert_eq!(choice("gen:power-law:20000", &ALIKE).0, "hyb", "rows of different lengths");
    assert_eq!(choice("gen:dense:300", &ALIKE).1, "2400.0 bytes a row, 3604.0 in csr", "dense");
    assert_eq!(choice("gen:power-law:20000", &ALIKE[..1]).0, "csr");
    assert_eq!(choice("gen:poisson2d:300x300", &ALIKE[..1]).0, "csr", "a device with csr alone");
}

#[test]
fn a_dense_row_or_column_takes_no_more_than_csr() {
    let n = 400;
    let row = |i: usize| (0..n).map(move |j| (i, j));
    let column = |j: usize| (0..n).map(move |i| (i, j));
    let below = || (1..n).map(|i| (i, i - 1));
    let rest: [Vec<(usize, usize)>; 8] = [
        row(0).chain(column(0)).collect(),
        row(n - 1).collect(),
        row(n / 2).chain(below()).collect(),
        column(n - 1).chain(below()).collect(),
        row(n - 1).chain(row(n - 2)).collect(),
        row(7).step_by(3).collect(),
        column(7).chain((0..n).map(|i| (i, i * i % n))).collect(),
        row(7).chain((0..n).flat_map(|i| [(i, i * i % n), (i, (i * i + i) % n)])).collect(),
    ];
    for (k, rest) in rest.iter().enumerate() {
        let mut triplets = Triplets::new(n, n);
        triplets.extend((0..n).map(|i| (i, i, 4.0 + i as f64)));
        triplets.extend(rest.iter().filter(|(i, j)| i != j).map(|&(i, j)| (i, j, -0.5)));
        let a = triplets.to_csr().unwrap();
        let structure = Structure::of(&a);
        // Devices with expensive bytes, places or rows.
        for [byte, place, row] in [[1.0, 0.0, 0.0], [1.0, 8.0, 64.0], [0.01, 0.0, 99.0], [1.0, 0.0, 9.0]] {
            let costs = ALIKE.map(|cost| Cost {
                byte,
                place,
                row: if cost.format == "csr" { row } else { 0.0 },
                ..cost
            });
            let chosen = choose_format(&a, &structure, &costs).0;
            let all = candidates(&a, &structure, &costs);
            let bytes = all.iter().find(|c| c.name == chosen).unwrap().bytes;
            assert!(bytes <= a.bytes(), "{k}: {chosen} takes {bytes}, csr {}", a.bytes());
        }
    }
    for (rows, cols) in [(0, 0), (3, 3), (2, 5)] {
        let nothing = Csr::<f64>::new(rows, cols, vec![0; rows + 1], vec![], vec![]).unwrap();
        assert_eq!(choose_format(&nothing, &Structure::of(&nothing), &ALIKE).0, "csr", "{rows}x{cols}");
    }
}

#[test]
fn what_does_not_suit_is_refused_with_its_size() {
    let message = |result: Result<(), Error>| result.expect_err("should be refused").to_string();
    let scattered = generated("gen:power-law:20000");
    let refused = message(Dia::from_csr(&*scattered).map(drop));
    assert!(refused.starts_with("Dia::from_csr: ") && refused.contains(" diagonals are in use"), "{refused}");
    assert!(refused.contains(" KB in csr); keep csr"), "{refused}");
    let refused = message(Sell::ellpack(&*scattered).map(drop));
    assert!(refused.starts_with("Sell::ellpack: rows of very different lengths would take "), "{refused}");
    assert_eq!(
        message(Dense::from_csr(&*scattered).map(drop)),
        "Dense::from_csr: 20000x20000 places would take 3200 MB for 63825 entries (846 KB in csr); keep csr"
    );
    let odd = generated("gen:poisson2d:5x5");
    assert_eq!(
        message(Bcsr::from_csr(&*odd, 2).map(drop)),
        "Bcsr::from_csr: 25 rows and 25 columns are not multiples of 2; keep csr"
    );
    assert_eq!(message(Bcsr::from_csr(&*odd, 9).map(drop)), "block size: expected 2 to 8, got 9");
    assert_eq!(
        message(convert(&odd, "diag").map(drop)),
        "format: expected one of csr, stencil, dia, dia-sym, ell, sell, packed, packed-f32, pkt, hyb, coo, bcsr2, bcsr3, bcsr4, bcsr5, bcsr6, bcsr7, bcsr8, dense, got `diag`; did you mean `dia`?"
    );
}

/// Rows of the given lengths, with columns spread over the whole row.
fn of_lengths(lengths: &[usize], cols: usize) -> Arc<Csr<f64>> {
    let mut triplets = Triplets::new(lengths.len(), cols);
    for (i, &length) in lengths.iter().enumerate() {
        (0..length).for_each(|k| triplets.push(i, (k * cols / length + i) % cols, (i + k) as f64 + 0.5));
    }
    Arc::new(triplets.to_csr().unwrap())
}

#[test]
fn a_third_of_the_rows_decides_what_is_in_slices() {
    let width = |lengths: &[usize]| Hyb::from_csr(&*of_lengths(lengths, 100)).unwrap().width();
    let mut lengths = vec![2; 30_000];
    assert_eq!(width(&lengths), 2);
    lengths[..10_000].fill(5);
    assert_eq!(width(&lengths), 5);
    lengths[0] = 2;
    assert_eq!(width(&lengths), 2, "one row short of a third");
    assert_eq!(width(&[3, 4, 5]), 3, "all rows, where they are few");
    assert_eq!(width(&[3, 0, 5]), 0);
    assert_eq!(width(&[]), 0);
}

#[test]
fn long_rows_are_cut_into_pieces() {
    let lengths = [0, 64, 65, 512, 513, 3, 100_000];
    let a = of_lengths(&lengths, 100_000);
    let coo = Hyb::coo(&*a).unwrap();
    let layout = coo.layout();
    assert_eq!(layout.long_rows(), [2, 3, 4, 6]);
    assert_eq!(coo.row_idx().len(), 67);
    let pieces: Vec<u32> = layout.long_ptr().windows(2).map(|ends| ends[1] - ends[0]).collect();
    assert_eq!(pieces, [1, 1, 2, 128]);
    assert_eq!(layout.piece_ptr().first(), Some(&67));
    assert_eq!(*layout.piece_ptr().last().unwrap() as usize, a.nnz());
    let x: Vec<f64> = (0..a.cols()).map(|j| 1.0 / (j + 1) as f64).collect();
    close(&a, &x);
}

#[test]
fn dense_places_are_checked() {
    let refusal = |values: Vec<f64>| Dense::new(2, 3, values).expect_err("should be refused").to_string();
    assert_eq!(refusal(vec![1.0; 5]), "Dense::new: values should have length 6, got 5");
    let refused = refusal(vec![1.0, 2.0, 3.0, 4.0, f64::NAN, 6.0]);
    assert!(refused.contains("row 1") && refused.contains("column 1"), "{refused}");
    assert_eq!(Dense::new(2, 3, vec![0.5; 6]).unwrap().values(), [0.5; 6]);
}
