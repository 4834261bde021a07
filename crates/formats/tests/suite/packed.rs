//! Packed columns and narrow values: bitwise equal to compressed rows, and their limits.
use lacuna_engine::{Complex64, Format, Scalar};
use lacuna_formats::{Csr, Packed, Triplets};
use lacuna_io::Spec;
use proptest::prelude::*;

fn generated(name: &str) -> Csr<f64> {
    Spec::parse(name).unwrap().build().unwrap()
}

fn same_rows<T: Scalar>(a: &Csr<T>, packed: &Packed<T>, x: &[T]) {
    for i in 0..a.rows() {
        let [got, want] = [packed.row(i, x), a.row(i, x)];
        assert_eq!(bytemuck::bytes_of(&got), bytemuck::bytes_of(&want), "row {i}");
    }
}

#[test]
fn bits_are_those_of_compressed_rows() {
    for (name, narrow) in
        [("gen:poisson3d:9x8x7:27", true), ("gen:elasticity3d:5", false), ("gen:dense:200", false)]
    {
        let a = generated(name);
        let packed = Packed::from_csr(&a).unwrap();
        assert_eq!(packed.is_narrow(), narrow, "{name}");
        let x: Vec<f64> = (0..a.cols()).map(|j| 1.0 / (j + 3) as f64).collect();
        same_rows(&a, &packed, &x);
    }
}

#[test]
fn rounded_values_are_the_nearest() {
    let a = generated("gen:elasticity3d:4");
    let packed = Packed::rounded(&a).unwrap();
    assert!(packed.is_narrow() && packed.bytes() < 7 * a.nnz() + 8 * a.rows());
    let x: Vec<f64> = (0..a.cols()).map(|j| 1.0 / (j + 3) as f64).collect();
    same_rows(&a.map(|v| f64::from(v as f32)).unwrap(), &packed, &x);
}

#[test]
fn what_does_not_fit_is_refused() {
    let refusal =
        |packed: lacuna_engine::Result<Packed<f64>>| packed.expect_err("should be refused").to_string();
    let mut t = Triplets::new(3, 70_000);
    (0..3).for_each(|i| t.push(i, i, 1.0));
    t.push(1, 65_536, 0.1);
    let reaches = t.to_csr().unwrap();
    assert!(!Packed::from_csr(&reaches).unwrap().is_narrow());
    t.push(1, 65_537, 1.0);
    assert_eq!(
        refusal(Packed::from_csr(&t.to_csr().unwrap())),
        "Packed::from_csr: row 1 (counted from 0) reaches from column 1 to 65537, and 16 bits distinguish 65536 columns; keep csr (1 KB)"
    );
    let mut t = Triplets::new(100, 100);
    (0..100).for_each(|i| t.push(i, i, 1.0));
    (0..65).filter(|j| *j != 7).for_each(|j| t.push(7, j, 0.1));
    assert_eq!(
        refusal(Packed::from_csr(&t.to_csr().unwrap())),
        "Packed::from_csr: row 7 (counted from 0) has 65 entries, far more than others, and packed rows are not cut into pieces; keep csr"
    );
    for (value, fits) in
        [(3.4e38, true), (3.5e38, false), (-1e300, false), (1.2e-38, true), (1e-39, false), (0.0, true)]
    {
        let a = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, value]).unwrap();
        match Packed::rounded(&a) {
            Ok(packed) => assert!(fits && packed.is_narrow(), "{value}"),
            Err(error) => {
                let beyond = format!("{value} is beyond the range of f32");
                assert!(
                    !fits && error.to_string().contains(&beyond) && error.to_string().contains("row 1"),
                    "{error}"
                );
            }
        }
    }
    let single = Csr::new(1, 1, vec![0, 1], vec![0], vec![1.5f32]).unwrap();
    let refused = Packed::rounded(&single).expect_err("should be refused").to_string();
    assert!(refused.contains("values are f32 already; use packed"), "{refused}");
    assert!(!Packed::from_csr(&single).unwrap().is_narrow());
}

proptest! {
    #[test]
    fn any_matrix_keeps_its_bits(
        rows in 1usize..80,
        entries in prop::collection::vec((0usize..80, 0usize..60_000, -9i32..9, any::<bool>()), 0..400),
    ) {
        let mut t = Triplets::<Complex64>::new(rows, 60_000);
        for (i, j, v, odd) in entries.into_iter().filter(|e| e.0 < rows) {
            t.push(i, j, Complex64::new(f64::from(v), if odd { 0.1 } else { 0.5 }));
        }
        let a = t.to_csr().unwrap();
        let packed = Packed::from_csr(&a).unwrap();
        prop_assert_eq!((packed.shape(), packed.nnz(), packed.lanes()), (a.shape(), a.nnz(), a.lanes()));
        let exact = a.values().iter().all(|v| f64::from(v.im as f32) == v.im);
        prop_assert_eq!(packed.is_narrow(), exact);
        let x: Vec<_> = (0..60_000).map(|j| Complex64::new(1.0 / (j + 1) as f64, j as f64)).collect();
        same_rows(&a, &packed, &x);
    }
}
