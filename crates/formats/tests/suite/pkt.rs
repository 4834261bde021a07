//! Packets: near entries in slices, far ones after them, and unsuitable matrices.
use lacuna_engine::{Complex64, Error, Format, Scalar, row_sum};
use lacuna_formats::{Csr, PACKET, Pkt, SLICE, Triplets, reorder};
use lacuna_io::Spec;
use proptest::prelude::*;

fn generated(name: &str) -> Csr<f64> {
    Spec::parse(name).unwrap().build().unwrap()
}

/// Whether a column is near the packet of a row.
fn is_near(row: usize, column: usize) -> bool {
    row / PACKET == column / PACKET
}

/// Every row is the sum of its near entries in order, then of its far ones; every place has a valid column.
fn check<T: Scalar>(a: &Csr<T>, pkt: &Pkt<T>, x: &[T]) {
    assert_eq!((pkt.shape(), Format::nnz(pkt)), (a.shape(), a.nnz()));
    let mut far = 0;
    for i in 0..a.rows() {
        let part =
            |near| a.row_entries(i).filter(move |(j, _)| is_near(i, *j) == near).map(|(j, v)| (v, x[j]));
        far += part(false).count();
        let want = row_sum(1, part(true).chain(part(false)));
        let got = pkt.row(i, x);
        assert_eq!(bytemuck::bytes_of(&got), bytemuck::bytes_of(&want), "row {i}");
    }
    assert_eq!(pkt.far().len(), far);
    for (s, ends) in pkt.slice_ptr().windows(2).enumerate() {
        let first = s * SLICE / PACKET * PACKET;
        let places = &pkt.near()[ends[0] as usize * SLICE..ends[1] as usize * SLICE];
        assert!(places.iter().all(|c| usize::from(*c) < PACKET.min(a.cols().saturating_sub(first))));
    }
}

#[test]
fn entries_are_near_or_far() {
    for name in ["gen:poisson2d:90x70", "gen:poisson3d:14x15x16:27", "gen:elasticity3d:9", "gen:dense:1100"] {
        let a = generated(name);
        let x: Vec<f64> = (0..a.cols()).map(|j| 1.0 / (j + 3) as f64).collect();
        check(&a, &Pkt::from_csr(&a).unwrap(), &x);
    }
}

#[test]
fn an_order_by_packets_makes_entries_near() {
    let a = generated("gen:poisson3d:64x64x64");
    let far = ["none", "parts", "packets"].map(|name| {
        let permuted = reorder(&a, name).unwrap().map(|order| a.permuted(&order).unwrap());
        Pkt::from_csr(permuted.as_ref().unwrap_or(&a)).unwrap().far().len() * 100 / a.nnz()
    });
    assert_eq!(far, [29, 37, 15], "per cent, as docs/guide/formats.md says");
}

#[test]
fn what_does_not_suit_is_refused() {
    let refusal =
        |t: &Triplets<f64>| Pkt::from_csr(&t.to_csr().unwrap()).expect_err("should be refused").to_string();
    let ends = "reorder the rows by packets or keep csr";
    // Two entries per row, one of them far: exactly the limit.
    let mut t = Triplets::new(3000, 9000);
    (0..3000).for_each(|i| (t.push(i, i, 1.0), t.push(i, 5000, 1.0)).0);
    assert!(Pkt::from_csr(&t.to_csr().unwrap()).is_ok());
    t.push(0, 6000, 1.0);
    let expected =
        "3001 of 6001 entries lie outside their packets of 1024 rows: they would take 79 KB, 85 KB in csr";
    assert_eq!(refusal(&t), format!("Pkt::from_csr: {expected}; {ends}"));

    let mut t = Triplets::new(3000, 3000);
    (0..3000).for_each(|i| t.push(i, i, 1.0));
    (0..64).for_each(|j| t.push(7, 1100 + j, 1.0));
    assert!(Pkt::from_csr(&t.to_csr().unwrap()).is_ok());
    t.push(7, 2999, 1.0);
    assert!(refusal(&t).contains(
        "row 7 (counted from 0) has 65 entries outside its packet, far more than others, and they are not cut into pieces: "
    ));

    let mut t = Triplets::new(100_000, 100_000);
    (0..100_000).for_each(|i| t.push(i, i, 1.0));
    (0..100_000).step_by(SLICE).for_each(|i| (i + 1..i + 10).for_each(|j| t.push(i, j % 100_000, 1.0)));
    let refused = refusal(&t);
    assert!(refused.contains(" places: they would take 11 MB, 1938 KB in csr"), "{refused}");
    let error = Pkt::from_csr(&t.to_csr().unwrap()).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }));
}

proptest! {
    #[test]
    fn any_matrix_keeps_its_entries(
        rows in 0usize..3000,
        cols in 1usize..3000,
        entries in prop::collection::vec((0usize..3000, -40isize..40, 1i32..9, any::<bool>()), 0..900),
    ) {
        let mut t = Triplets::<Complex64>::new(rows, cols);
        for (i, offset, v, scattered) in entries.into_iter().filter(|e| e.0 < rows) {
            let j = if scattered { i * 7919 + 13 } else { i.saturating_add_signed(offset) };
            t.push(i, j % cols, Complex64::new(f64::from(v), 0.1));
        }
        let a = t.to_csr().unwrap();
        let x: Vec<_> = (0..cols).map(|j| Complex64::new(1.0 / (j + 1) as f64, 0.5)).collect();
        let far = a.entries().filter(|(i, j, _)| !is_near(*i, *j)).count();
        match Pkt::from_csr(&a) {
            Ok(pkt) => check(&a, &pkt, &x),
            Err(error) => prop_assert!(2 * far > a.nnz(), "{error}"),
        }
    }
}
