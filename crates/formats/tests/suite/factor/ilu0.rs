//! Incomplete LU factors on the pattern of the matrix.
use lacuna_engine::Error;
use lacuna_formats::factor::{Pivots, ilu0};
use lacuna_formats::{Csr, Triplets};
use lacuna_io::Spec;

/// `(L U)_ij`
fn product(f: &Csr<f64>, i: usize, j: usize) -> f64 {
    let l = |k: usize| if k == i { 1.0 } else { f.get(i, k).unwrap_or(0.0) };
    (0..=i.min(j)).map(|k| l(k) * f.get(k, j).unwrap_or(0.0)).sum()
}

#[test]
fn independent_blocks_have_the_factors_of_each_alone() {
    let (block, count) = (Spec::parse("gen:convection:90x40:30").unwrap().build::<f64>().unwrap(), 40);
    let n = block.rows();
    let mut triplets = Triplets::new(count * n, count * n);
    for first in (0..count).map(|k| k * n) {
        block.entries().for_each(|(i, j, v)| triplets.push(first + i, first + j, v));
    }
    let whole = triplets.to_csr().unwrap();
    assert!(whole.row_shares().len() > 1);
    let alone = ilu0(&block, Pivots::Refuse).unwrap().factor;
    let factor = ilu0(&whole, Pivots::Refuse).unwrap().factor;
    assert!(factor.values().chunks(alone.nnz()).all(|values| values == alone.values()));
}

#[test]
fn the_product_is_the_matrix_on_its_pattern() {
    for name in ["gen:convection:9x8:30", "gen:poisson2d:9x8"] {
        let a = Spec::parse(name).unwrap().build::<f64>().unwrap();
        let f = ilu0(&a, Pivots::Refuse).unwrap();
        assert_eq!((f.shift, f.factor.nnz()), (0.0, a.nnz()));
        for (i, j, v) in a.entries() {
            let got = product(&f.factor, i, j);
            assert!((got - v).abs() <= 1e-12 * a.get(i, i).unwrap(), "{name} {i} {j}: {got} {v}");
        }
    }
}

#[test]
fn a_pivot_of_nothing_is_named_or_shifted() {
    let mut triplets = Triplets::new(3, 3);
    for (i, j, v) in [(0, 0, 2.0), (0, 1, 2.0), (1, 0, 3.0), (1, 1, 3.0), (2, 2, 5.0), (2, 1, 1.0)] {
        triplets.push(i, j, v);
    }
    let a: Csr<f64> = triplets.to_csr().unwrap();
    let refused = ilu0(&a, Pivots::Refuse).unwrap_err();
    assert!(matches!(refused, Error::Entry { row: 1, column: 1, .. }), "{refused}");
    assert_eq!(ilu0(&a, Pivots::Shift).unwrap().shift, 1e-3);
    // A diagonal entry that is not stored counts as 0 and is shifted by the largest entry of its row.
    let mut triplets = Triplets::new(2, 2);
    [(0, 1, 4.0), (1, 0, 4.0)].into_iter().for_each(|(i, j, v)| triplets.push(i, j, v));
    let f = ilu0(&triplets.to_csr().unwrap(), Pivots::Shift).unwrap();
    assert_eq!(f.factor.get(0, 0), Some(4e-3));
}

/// A full first row is searched for the few entries of each row below it.
#[test]
fn an_arrow_is_factored_as_any_other() {
    let n = 100;
    let mut t = Triplets::new(n, n);
    (0..n).for_each(|i| t.push(i, i, 4.0 + i as f64));
    for i in 1..n {
        t.push(0, i, 0.5);
        t.push(i, 0, 0.25);
        t.push(i, i - 1, if i > 1 { 0.125 } else { 0.0 });
    }
    let a = t.to_csr().unwrap();
    let f = ilu0(&a, Pivots::Refuse).unwrap().factor;
    for (i, j, v) in a.entries() {
        assert!((product(&f, i, j) - v).abs() < 1e-14, "{i} {j}");
    }
}
