//! Incomplete Cholesky factors.
use lacuna_engine::Error;
use lacuna_formats::Csr;
use lacuna_formats::factor::{Pivots, ic0};
use lacuna_io::Spec;

#[test]
fn the_product_is_the_matrix_on_its_pattern() {
    let a = Spec::parse("gen:poisson3d:5x4x3").unwrap().build::<f64>().unwrap();
    let l = ic0(&a, Pivots::Refuse).unwrap().factor;
    for (i, j, v) in a.entries().filter(|(i, j, _)| j <= i) {
        let at = |i, k| l.get(i, k).unwrap_or(0.0);
        let got: f64 = (0..=j).map(|k| at(i, k) * at(j, k)).sum();
        assert!((got - v).abs() < 1e-13, "{i} {j}: {got} {v}");
    }
}

#[test]
fn a_matrix_that_is_not_positive_definite_is_named_or_shifted() {
    let a = Spec::parse("gen:poisson2d:6x6").unwrap().build::<f64>().unwrap();
    let low = |(i, j, v): (usize, usize, f64)| if i == j && i == 20 { 0.4 } else { v };
    let a: Csr<f64> = a.with_values(a.entries().map(low).collect()).unwrap();
    let refused = ic0(&a, Pivots::Refuse).unwrap_err();
    assert!(matches!(refused, Error::Entry { row: 20, column: 20, .. }), "{refused}");
    let shifted = ic0(&a, Pivots::Shift).unwrap();
    assert!(shifted.shift > 0.0 && (shifted.shift / 1e-3).log2().fract() == 0.0, "{}", shifted.shift);
}
