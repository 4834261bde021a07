//! Incomplete LU factors with thresholds.
use lacuna_engine::Scalar;
use lacuna_formats::factor::{Ilut, IlutOptions, ilut};
use lacuna_formats::{Csr, Triplets};
use lacuna_io::Spec;

/// The largest entry of `2^r A 2^c − Pᵀ L U Qᵀ`, by modulus. The entries of `2^r A 2^c` are of size 1.
fn error(a: &Csr<f64>, f: &Ilut<f64>) -> f64 {
    let n = a.rows();
    let mut most = 0.0f64;
    for p in 0..n {
        let mut row = vec![0.0; n];
        let of_row = f.lower.row_entries(p).chain([(p, 1.0)]);
        of_row.for_each(|(k, l)| f.upper.row_entries(k).for_each(|(q, u)| row[q] += l * u));
        for (q, product) in row.into_iter().enumerate() {
            let (i, j) = (f.rows[p] as usize, f.columns[q] as usize);
            let by = f.row_exponents[i] + f.column_exponents[j];
            let entry = a.get(i, j).unwrap_or(0.0).scale_by_power_of_two(by);
            most = most.max((entry - product).abs());
        }
    }
    most
}

fn is_permutation(order: &[u32]) -> bool {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    sorted.iter().enumerate().all(|(i, &row)| i as u32 == row)
}

#[test]
fn nothing_dropped_is_an_exact_factorisation() {
    let exact = IlutOptions::default().drop(0.0).fill(1e9);
    for name in ["gen:convection:9x8:100", "gen:random:80:5:3"] {
        for ordered in [true, false] {
            let a = Spec::parse(name).unwrap().build::<f64>().unwrap();
            let f = ilut(&a, &exact.ordered(ordered), None).unwrap();
            assert!(is_permutation(&f.rows) && is_permutation(&f.columns));
            assert!(error(&a, &f) < 1e-12, "{name}: {}", error(&a, &f));
        }
    }
}

#[test]
fn zeros_on_the_diagonal_are_no_hindrance_and_missing_pivots_are_told() {
    let mut triplets = Triplets::new(4, 4);
    for (i, j, v) in [(0, 1, 2.0), (1, 0, 1e-9), (2, 3, -3.0), (3, 2, 1e12), (3, 3, 1.0)] {
        triplets.push(i, j, v);
    }
    let a: Csr<f64> = triplets.to_csr().unwrap();
    let f = ilut(&a, &IlutOptions::default().drop(0.0), None).unwrap();
    assert!(f.replaced.is_empty() && error(&a, &f) < 1e-12, "{f:?}");
    let singular: Csr<f64> = {
        let mut triplets = Triplets::new(3, 3);
        [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().for_each(|(i, j)| triplets.push(i, j, 1.0));
        triplets.to_csr().unwrap()
    };
    let f = ilut(&singular, &IlutOptions::default(), None).unwrap();
    assert!(is_permutation(&f.rows));
    assert_eq!(f.replaced.len(), 2, "{f:?}");
}

#[test]
fn other_values_are_factored_by_the_same_steps() {
    let exact = IlutOptions::default().drop(0.0).fill(1e9);
    let a = Spec::parse("gen:convection:9x8:100").unwrap().build::<f64>().unwrap();
    let grown = a.entries().map(|(i, j, v)| v * (1.0 + 0.01 * ((i + 2 * j) % 5) as f64)).collect();
    let other = a.with_values(grown).unwrap();
    let f = ilut(&a, &exact, None).unwrap().refactored(&other).unwrap();
    assert!(error(&other, &f) < 1e-12, "{}", error(&other, &f));
    let zeros = a.with_values(vec![0.0; a.nnz()]).unwrap();
    assert!(matches!(f.refactored(&zeros), Err(lacuna_engine::Error::Entry { .. })));
}

#[test]
fn the_fill_is_limited() {
    let a = Spec::parse("gen:poisson2d:40x40").unwrap().build::<f64>().unwrap();
    for fill in [1.0, 2.0, 4.0] {
        let f = ilut(&a, &IlutOptions::default().drop(0.0).fill(fill), None).unwrap();
        let entries = f.lower.nnz() + f.upper.nnz();
        assert!(entries as f64 <= fill * a.nnz() as f64, "{fill}: {entries}");
        assert!(entries as f64 > 0.8 * fill.min(3.0) * a.nnz() as f64, "{fill}: {entries}");
    }
}
