//! Operators on matrices against dense arithmetic, in numbers whose sums are exact.
use lacuna_engine::{Complex64, Error, Scalar};
use lacuna_formats::{Csr, Triplets};
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

const MOST: usize = 6;
type Entries = Vec<(usize, usize, i8, i8)>;

fn entries() -> impl Strategy<Value = Entries> {
    prop::collection::vec((0..MOST, 0..MOST, -9i8..10, -9i8..10), 0..25)
}

fn matrix(rows: usize, cols: usize, entries: &Entries) -> Csr<Complex64> {
    let mut triplets = Triplets::new(rows, cols);
    triplets.extend(entries.iter().map(|&(i, j, re, im)| (i % rows, j % cols, number((re, im)))));
    triplets.to_csr().unwrap()
}

fn number((re, im): (i8, i8)) -> Complex64 {
    Complex64::new(re.into(), im.into())
}

/// All places, zero where nothing is stored.
fn dense<T: Scalar>(rows: usize, cols: usize, get: impl Fn(usize, usize) -> Option<T>) -> Vec<Vec<T>> {
    (0..rows).map(|i| (0..cols).map(|j| get(i, j).unwrap_or(T::zero())).collect()).collect()
}

fn of(a: &Csr<Complex64>) -> Vec<Vec<Complex64>> {
    dense(a.rows(), a.cols(), |i, j| a.get(i, j))
}

fn times(a: &[Vec<Complex64>], x: &[Complex64]) -> Vec<Complex64> {
    a.iter().map(|row| row.iter().zip(x).map(|(v, x)| v * x).sum()).collect()
}

proptest! {
    #[test]
    fn operators_agree_with_dense_arithmetic(
        [rows, cols] in [1..MOST, 1..MOST], (left, right) in (entries(), entries()),
        x in prop::collection::vec((-9i8..10, -9i8..10), MOST), factor in (-9i8..10, -9i8..10),
    ) {
        let (a, b) = (matrix(rows, cols, &left), matrix(rows, cols, &right));
        let x: Vec<Complex64> = x.into_iter().map(number).collect();
        let factor = number(factor);
        let each = |f: &dyn Fn(Complex64, Complex64) -> Complex64| {
            let (a, b) = (of(&a), of(&b));
            let row = |(a, b): (&Vec<Complex64>, &Vec<Complex64>)| a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect();
            a.iter().zip(&b).map(row).collect::<Vec<Vec<Complex64>>>()
        };
        prop_assert_eq!(of(&(&a + &b)), each(&|a, b| a + b));
        prop_assert_eq!(of(&(&a - &b)), each(&|a, b| a - b));
        prop_assert_eq!(of(&(&a * factor)), each(&|a, _| a * factor));
        prop_assert_eq!(of(&(factor * &a)), each(&|a, _| a * factor));
        prop_assert_eq!(of(&-&a), each(&|a, _| -a));
        prop_assert!((&a + &b).nnz() <= a.nnz() + b.nnz());

        prop_assert_eq!(&a * &x[..cols], times(&of(&a), &x[..cols]));
        prop_assert_eq!(&a * &x[..cols].to_vec(), a.times(&x[..cols]).unwrap());
        let (t, h) = (a.t(), a.h());
        let transposed = dense(cols, rows, |i, j| a.get(j, i));
        prop_assert_eq!(dense(t.rows(), t.cols(), |i, j| t.get(i, j)), transposed);
        prop_assert_eq!(t * &x[..rows], times(&of(&t.to_csr()), &x[..rows]));
        prop_assert_eq!(h * &x[..rows], times(&of(&h.to_csr()), &x[..rows]));
        prop_assert_eq!(of(&h.to_csr()), of(&a.adjoint()));
        let square = of(&(&a * &b.transpose()));
        let column = |k: usize| times(&of(&a), &of(&b)[k]);
        prop_assert_eq!(square, dense(rows, rows, |i, k| Some(column(k)[i])));
    }

    #[test]
    fn collected_triplets_are_as_large_as_their_entries(entries in entries()) {
        let collected: Triplets<Complex64> = entries.iter().map(|&(i, j, re, im)| (i, j, number((re, im)))).collect();
        let most = |place: fn(&(usize, usize, i8, i8)) -> usize| entries.iter().map(|e| place(e) + 1).max().unwrap_or(0);
        prop_assert_eq!((collected.rows(), collected.cols()), (most(|e| e.0), most(|e| e.1)));
        if !entries.is_empty() {
            let (rows, cols) = (collected.rows(), collected.cols());
            prop_assert_eq!(collected.to_csr().unwrap(), matrix(rows, cols, &entries));
        }
    }
}

#[test]
fn what_does_not_fit_is_an_error_of_the_method_and_a_panic_of_the_operator() {
    let (a, b) = (Csr::<f64>::identity(3).unwrap(), Csr::identity(2).unwrap());
    assert!(matches!(a.times(&[1.0]), Err(Error::Length { .. })));
    assert!(matches!(a.t().times(&[1.0]), Err(Error::Length { .. })));
    assert!(matches!(a.plus(&b), Err(Error::Shape { .. })));
    assert!(matches!(a.minus(&b), Err(Error::Shape { .. })));
    let panics = catch_unwind(AssertUnwindSafe(|| &a * &[1.0])).unwrap_err();
    assert_eq!(*panics.downcast::<String>().unwrap(), a.times(&[1.0]).unwrap_err().to_string());
    let large = &a * f64::MAX;
    let error = large.plus(&large).unwrap_err().to_string();
    assert!(error.contains("Csr::plus") && error.contains("row 0"), "{error}");
    let far: Triplets<f64> = [(usize::MAX, 0, 1.0)].into_iter().collect();
    assert!(far.to_csr().is_err());
}
