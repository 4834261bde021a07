//! Sparse algebra compared with dense products and across numbers of threads, and plans compared with new
//! results.
use lacuna_engine::{Complex64, Error, Scalar};
use lacuna_formats::algebra::{
    GalerkinPlan, ProductPlan, TransposePlan, build_rows, galerkin, galerkin_by_cells, product,
};
use lacuna_formats::{Csr, Triplets};
use proptest::prelude::*;

/// A matrix whose entries are small integers, so that sums are exact.
fn matrix(rows: usize, cols: usize) -> impl Strategy<Value = Csr<Complex64>> {
    let entry = (0..rows.max(1), 0..cols.max(1), -4i32..5, -4i32..5);
    prop::collection::vec(entry, 0..3 * (rows + cols) + 1).prop_map(move |entries| {
        let mut triplets = Triplets::new(rows, cols);
        for (i, j, re, im) in entries.into_iter().filter(|_| rows > 0 && cols > 0) {
            triplets.push(i, j, Complex64::new(re.into(), im.into()));
        }
        triplets.to_csr().unwrap()
    })
}

fn dense<T: Scalar>(a: &Csr<T>) -> Vec<Vec<T>> {
    let mut dense = vec![vec![T::zero(); a.cols()]; a.rows()];
    a.entries().for_each(|(i, j, v)| dense[i][j] = v);
    dense
}

fn dense_product<T: Scalar>(a: &[Vec<T>], b: &[Vec<T>], cols: usize) -> Vec<Vec<T>> {
    let entry = |row: &[T], j: usize| row.iter().zip(b).fold(T::zero(), |sum, (&v, b)| sum + v * b[j]);
    a.iter().map(|row| (0..cols).map(|j| entry(row, j)).collect()).collect()
}

/// Chains of matrices that can be multiplied, some of them empty.
fn chain() -> impl Strategy<Value = (Csr<Complex64>, Csr<Complex64>, Csr<Complex64>)> {
    (0usize..9, 0usize..30, 0usize..30, 0usize..9)
        .prop_flat_map(|(m, n, k, l)| (matrix(m, n), matrix(n, k), matrix(k, l)))
}

/// Chains of matrices of cells, and the rows and columns of a cell of the last.
fn chain_of_cells() -> impl Strategy<Value = ([usize; 2], Csr<Complex64>, Csr<Complex64>, Csr<Complex64>)> {
    let cells = prop::sample::select(vec![[1, 1], [2, 2], [3, 3], [6, 6], [2, 3], [3, 6], [4, 5]]);
    (cells, 0usize..4, 0usize..9, 0usize..9, 0usize..4).prop_flat_map(|([f, c], m, n, k, l)| {
        (Just([f, c]), matrix(m * c, n * f), matrix(n * f, k * f), matrix(k * f, l * c))
    })
}

proptest! {
    #[test]
    fn galerkin_products_by_cells_are_those_by_entries(
        (cells, r, a, p) in chain_of_cells(),
        factor in -3i32..4,
    ) {
        let want = galerkin(&r, &a, &p).unwrap();
        let got = galerkin_by_cells(&r, &a, &p, cells).unwrap();
        prop_assert_eq!(dense(&got), dense(&want));
        let (plan, mut c) = GalerkinPlan::by_cells(&r, &a, &p, cells).unwrap();
        prop_assert_eq!(&c, &got);
        let other = a.map(|v| v * Complex64::new(factor.into(), 1.0)).unwrap();
        plan.multiply(&r, &other, &p, &mut c).unwrap();
        prop_assert_eq!(&c, &galerkin_by_cells(&r, &other, &p, cells).unwrap());
        // Matrices that are not made of whole cells are taken by entries.
        prop_assert_eq!(&galerkin_by_cells(&r, &a, &p, [7, 11]).unwrap(), &want);
    }

    #[test]
    fn products_are_those_of_dense_matrices((r, a, p) in chain()) {
        let ap = product(&a, &p).unwrap();
        let want = dense_product(&dense(&a), &dense(&p), p.cols());
        prop_assert_eq!(dense(&ap), want.clone());
        let c = galerkin(&r, &a, &p).unwrap();
        prop_assert_eq!(dense(&c), dense_product(&dense(&r), &want, p.cols()));
        prop_assert_eq!(&c, &product(&r, &ap).unwrap());
    }

    #[test]
    fn plans_serve_new_values((r, a, p) in chain(), factor in -3i32..4) {
        let (plan, mut ap) = ProductPlan::new(&a, &p).unwrap();
        prop_assert_eq!(&ap, &product(&a, &p).unwrap());
        let (all, mut c) = GalerkinPlan::new(&r, &a, &p).unwrap();
        prop_assert_eq!(&c, &galerkin(&r, &a, &p).unwrap());
        let other = a.map(|v| v * Complex64::new(factor.into(), 1.0)).unwrap();
        plan.multiply(&other, &p, &mut ap).unwrap();
        prop_assert_eq!(&ap, &product(&other, &p).unwrap());
        all.multiply(&r, &other, &p, &mut c).unwrap();
        prop_assert_eq!(&c, &galerkin(&r, &other, &p).unwrap());
    }

    #[test]
    fn transposes_are_those_of_assembly((_, a, _) in chain()) {
        let plan = TransposePlan::new(&a).unwrap();
        prop_assert_eq!(plan.transpose(&a).unwrap(), a.transpose());
        prop_assert_eq!(plan.adjoint(&a).unwrap(), a.adjoint());
        let turned = plan.transpose(&a).unwrap();
        for (k, from) in plan.from().iter().enumerate() {
            prop_assert_eq!(turned.values()[k], a.values()[*from as usize]);
        }
        let alone = TransposePlan::of_pattern(a.row_ptr(), a.col_idx(), a.cols()).unwrap();
        prop_assert_eq!(alone.pattern(), (turned.row_ptr(), turned.col_idx()));
        prop_assert_eq!(alone.from(), plan.from());
    }
}

#[test]
fn plans_refuse_other_patterns_of_the_same_size() {
    let new = |row_ptr: &[u32], col_idx: &[u32]| {
        let values = vec![1.0; col_idx.len()];
        Csr::<f64>::new(2, 2, row_ptr.to_vec(), col_idx.to_vec(), values).unwrap()
    };
    // The rows of the right factor have different lengths.
    let b = new(&[0, 2, 3], &[0, 1, 1]);
    let (a, other) = (new(&[0, 1, 2], &[0, 1]), new(&[0, 1, 2], &[0, 0]));
    let refused = |result: lacuna_engine::Result<()>, name: &str| {
        let message = result.unwrap_err().to_string();
        assert!(message.contains(name) && message.contains("row 1"), "{message}");
    };
    let (plan, mut c) = ProductPlan::new(&a, &b).unwrap();
    refused(plan.multiply(&other, &b, &mut c), "expected A");
    plan.multiply(&a.clone(), &b, &mut c).unwrap();
    let (plan, mut c) = GalerkinPlan::new(&a, &a, &b).unwrap();
    refused(plan.multiply(&a, &other, &b, &mut c), "expected A");
    let plan = TransposePlan::new(&a).unwrap();
    refused(plan.transpose(&other).map(drop), "expected a matrix");
    let alone = TransposePlan::of_pattern(a.row_ptr(), a.col_idx(), 2).unwrap();
    assert_eq!(alone.transpose(&a).unwrap(), a);
    assert!(matches!(alone.transpose(&other), Err(Error::Structure { .. })));
}

#[test]
fn runs_that_do_not_cover_the_rows_are_refused() {
    let all: [&[(usize, usize)]; 4] = [&[(0, 5), (5, 3), (3, 4)], &[(0, 3)], &[(1, 4)], &[(0, 2), (3, 4)]];
    for runs in all {
        let ranges = runs.iter().map(|&(start, end)| start..end).collect();
        let made = build_rows::<f64>("test", 4, 4, ranges, |rows, out| {
            rows.for_each(|_| out.row(&[0], &[1.0]));
        });
        assert!(matches!(made, Err(Error::Structure { .. })), "{runs:?}");
    }
}

#[test]
fn a_pattern_that_is_none_is_refused() {
    let patterns: [(&[u32], &[u32]); 6] = [
        (&[], &[]),
        (&[1, 2], &[0, 1]),
        (&[0, 2, 1], &[0, 1]),
        (&[0, 1], &[0, 1]),
        (&[0, 3], &[0, 1]),
        (&[0, 2], &[0, 2]),
    ];
    for (row_ptr, col_idx) in patterns {
        let plan = TransposePlan::of_pattern(row_ptr, col_idx, 2);
        assert!(matches!(plan, Err(Error::Structure { .. })), "{row_ptr:?} {col_idx:?}");
    }
}

/// A matrix with rows of many lengths, including a full one, whose sums are rounded.
fn uneven(n: usize, cols: usize, seed: u64) -> Csr<f64> {
    let hash = |k: u64| {
        let h = k.wrapping_add(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (h ^ (h >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
    };
    let mut triplets = Triplets::new(n, cols);
    for i in 0..n as u64 {
        let entries = if i == 7 && n == cols { cols as u64 } else { hash(i) % 9 };
        for k in 0..entries {
            let h = hash(i * 100 + k);
            let j = if i == 7 && n == cols { k } else { (i * cols as u64 / n as u64 + h % 40) % cols as u64 };
            triplets.push(i as usize, j as usize, (h % 1000) as f64 / 7.0 - 60.0);
        }
    }
    triplets.to_csr().unwrap()
}

#[test]
fn bits_do_not_depend_on_threads() {
    let (a, p) = (uneven(70_000, 70_000, 1), uneven(70_000, 9_000, 2));
    let results = [1, 2, 3, 8].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let turned = TransposePlan::new(&p).unwrap();
            let r = turned.adjoint(&p).unwrap();
            assert_eq!(r, p.adjoint());
            let (plan, mut c) = GalerkinPlan::new(&r, &a, &p).unwrap();
            let fresh = c.clone();
            plan.multiply(&r, &a, &p, &mut c).unwrap();
            assert_eq!(c, fresh);
            let (plan, mut ap) = ProductPlan::new(&a, &p).unwrap();
            let fresh = ap.clone();
            plan.multiply(&a, &p, &mut ap).unwrap();
            assert_eq!(ap, fresh);
            assert!(plan.bytes() > 0);
            [c, ap]
        })
    });
    assert!(results.windows(2).all(|w| w[0] == w[1]));
    assert!(results[0][1].nnz() > 100_000);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (a, b) = (uneven(50, 40, 1), uneven(40, 30, 2));
    assert!(matches!(product(&b, &b), Err(Error::Shape { got: (40, 30), .. })));
    assert!(matches!(galerkin(&b, &a, &b), Err(Error::Shape { got: (50, 40), .. })));
    let (plan, mut c) = ProductPlan::new(&a, &b).unwrap();
    assert!(matches!(plan.multiply(&b, &b, &mut c), Err(Error::Structure { .. })));
    let huge = a.map(|_| f64::MAX).unwrap();
    let error = product(&huge, &b.map(|_| 2.0).unwrap()).unwrap_err().to_string();
    assert!(error.contains("inf is not a finite number"), "{error}");
    assert!(plan.multiply(&huge, &b.map(|_| 2.0).unwrap(), &mut c).is_err());
    let rows = |columns: &'static [u32]| {
        build_rows("a test", 1, 3, std::iter::once(0..1).collect(), |_, out| out.row(columns, &[1.0, 2.0]))
            .unwrap_err()
            .to_string()
    };
    assert!(rows(&[1, 1]).contains("repeated"), "{}", rows(&[1, 1]));
    assert!(rows(&[3, 1]).contains("the matrix has 3 columns"), "{}", rows(&[3, 1]));
}
