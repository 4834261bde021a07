//! Operators on matrices, each beside a method that returns an error where the operator panics.
use super::{build_rows_with, product};
use crate::{Csr, parallel};
use lacuna_engine::{Error, Format, Result, Scalar, compiled_here};
#[cfg(feature = "ndarray016")]
use ndarray::{Array1, ArrayView1};
use std::ops::{Add, Mul, Neg, Sub};

/// Minimum number of rows per thread.
const GRAIN: usize = 1024;

/// # Arithmetic
/// `&a * &x` for a slice, a `Vec`, an array or (with the feature `ndarray016`) a one-dimensional `ndarray`; `a.t() * &x` and
/// `a.h() * &x` by the transpose and the conjugate transpose, which are not formed; `&a * s` and `s * &a` for a number;
/// `&a * &b`, `&a + &b`, `&a - &b` and `-&a`.
///
/// As those of `ndarray`, operators panic where shapes do not fit; also if an entry of a resulting matrix is not
/// finite or memory is exhausted. [`Csr::times`], [`Csr::scaled`], [`Csr::plus`], [`Csr::minus`] and [`product`] return these as
/// errors.
///
/// ```
/// use lacuna_formats::{Csr, Triplets};
///
/// let a: Triplets<f64> = [(0, 0, 4.0), (0, 1, -1.0), (1, 1, 4.0)].into_iter().collect();
/// let a = a.to_csr()?;
/// let shifted = &a - &(&Csr::identity(2)? * 3.0);
/// assert_eq!(&shifted * &[1.0, 2.0], [-1.0, 2.0]);
/// assert_eq!(shifted.t() * &[1.0, 2.0], [1.0, 1.0]);
/// assert!(shifted.times(&[1.0]).is_err());
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
impl<T: Scalar> Csr<T> {
    /// `A x`, with the bits of [`Csr::product`], on the current rayon pool.
    ///
    /// # Errors
    /// [`Error::Length`] if `x` does not have an element for each column.
    pub fn times(&self, x: &[T]) -> Result<Vec<T>> {
        compiled_here!(T, |a: &Csr<T>, x: &[T]| -> Result<Vec<T>> {
            Error::check_fits("Csr::times", a.shape(), "x", a.cols(), x.len())?;
            Ok(parallel::collect(a.rows(), GRAIN, |i| a.row(i, x)))
        })(self, x)
    }

    /// The sum of two matrices, with an entry where either has one.
    ///
    /// # Errors
    /// [`Error::Shape`] for matrices of different shapes, [`Error::Entry`] for a sum that is not finite, and as
    /// [`build_rows`](crate::algebra::build_rows).
    pub fn plus(&self, other: &Self) -> Result<Self> {
        merged("Csr::plus", self, other, |v| v)
    }

    /// The Hermitian part of a square matrix, `(A + Aᴴ) / 2`.
    ///
    /// # Errors
    /// As [`Csr::plus`].
    pub fn hermitian_part(&self) -> Result<Self> {
        self.plus(&self.adjoint())?.scaled(T::from_parts(0.5, 0.0))
    }

    /// The difference of two matrices, with an entry where either has one.
    ///
    /// # Errors
    /// As [`Csr::plus`].
    pub fn minus(&self, other: &Self) -> Result<Self> {
        merged("Csr::minus", self, other, |v| -v)
    }

    /// The transpose as a view.
    pub fn t(&self) -> CsrTransposed<'_, T> {
        CsrTransposed { a: self, conjugates: false }
    }

    /// The conjugate transpose as a view.
    pub fn h(&self) -> CsrTransposed<'_, T> {
        CsrTransposed { a: self, conjugates: true }
    }
}

/// `a` plus `b` with its values mapped.
fn merged<T: Scalar>(operation: &'static str, a: &Csr<T>, b: &Csr<T>, map: fn(T) -> T) -> Result<Csr<T>> {
    compiled_here!(T, |operation: &'static str, a: &Csr<T>, b: &Csr<T>, map: fn(T) -> T| -> Result<Csr<T>> {
        let (rows, cols) = a.shape();
        if b.shape() != (rows, cols) {
            let expected = format!("a {rows}x{cols} matrix");
            return Err(Error::Shape { operation: operation.into(), expected, got: b.shape() });
        }
        let init = || (Vec::new(), Vec::new());
        build_rows_with(operation, rows, cols, a.row_shares(), None, init, |(columns, values), run, out| {
            for i in run {
                let (mut own, mut other) = (a.row_entries(i).peekable(), b.row_entries(i).peekable());
                columns.clear();
                values.clear();
                loop {
                    let next = own.peek().into_iter().chain(other.peek()).map(|entry| entry.0).min();
                    let Some(j) = next else { break };
                    let left = own.next_if(|entry| entry.0 == j).map(|entry| entry.1);
                    let right = other.next_if(|entry| entry.0 == j).map(|entry| map(entry.1));
                    columns.push(j as u32);
                    values.extend(left.into_iter().chain(right).reduce(|left, right| left + right));
                }
                out.row(columns, values);
            }
        })
    })(operation, a, b, map)
}

/// The transpose or conjugate transpose of a matrix, as a view: see [`Csr::t`] and [`Csr::h`].
#[derive(Clone, Copy, Debug)]
pub struct CsrTransposed<'a, T> {
    a: &'a Csr<T>,
    conjugates: bool,
}

impl<T: Scalar> CsrTransposed<'_, T> {
    fn entry(&self, v: T) -> T {
        if self.conjugates { v.conj() } else { v }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.a.cols()
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.a.rows()
    }

    /// Stored entries.
    pub fn nnz(&self) -> usize {
        self.a.nnz()
    }

    /// The entry at row `i` and column `j`, if one is stored.
    pub fn get(&self, i: usize, j: usize) -> Option<T> {
        self.a.get(j, i).map(|v| self.entry(v))
    }

    /// The product with a vector. Each sum runs over the rows of the matrix in order, on the calling thread.
    ///
    /// # Errors
    /// [`Error::Length`] if `x` does not have an element for each column of the view.
    pub fn times(&self, x: &[T]) -> Result<Vec<T>> {
        Error::check_fits("CsrTransposed::times", (self.rows(), self.cols()), "x", self.cols(), x.len())?;
        let mut y = vec![T::zero(); self.rows()];
        for (i, x) in x.iter().enumerate() {
            self.a.row_entries(i).for_each(|(j, v)| y[j] = self.entry(v).fma(*x, y[j]));
        }
        Ok(y)
    }

    /// A matrix of its own: [`Csr::transpose`] or [`Csr::adjoint`].
    pub fn to_csr(&self) -> Csr<T> {
        if self.conjugates { self.a.adjoint() } else { self.a.transpose() }
    }
}

/// The result of an operator, which cannot return an error.
#[track_caller]
fn known<R>(result: Result<R>) -> R {
    result.unwrap_or_else(|error| panic!("{error}"))
}

macro_rules! products_with_vectors {
    ($($matrix:ty)*) => {$(
        impl<T: Scalar> Mul<&[T]> for $matrix {
            type Output = Vec<T>;
            #[track_caller]
            fn mul(self, x: &[T]) -> Vec<T> {
                known(self.times(x))
            }
        }
        impl<T: Scalar> Mul<&Vec<T>> for $matrix {
            type Output = Vec<T>;
            #[track_caller]
            fn mul(self, x: &Vec<T>) -> Vec<T> {
                known(self.times(x))
            }
        }
        impl<T: Scalar, const N: usize> Mul<&[T; N]> for $matrix {
            type Output = Vec<T>;
            #[track_caller]
            fn mul(self, x: &[T; N]) -> Vec<T> {
                known(self.times(x))
            }
        }
        #[cfg(feature = "ndarray016")]
        impl<T: Scalar> Mul<&Array1<T>> for $matrix {
            type Output = Array1<T>;
            #[track_caller]
            fn mul(self, x: &Array1<T>) -> Array1<T> {
                self * &x.view()
            }
        }
        #[cfg(feature = "ndarray016")]
        impl<T: Scalar> Mul<&ArrayView1<'_, T>> for $matrix {
            type Output = Array1<T>;
            #[track_caller]
            fn mul(self, x: &ArrayView1<'_, T>) -> Array1<T> {
                let y = x.as_slice().map_or_else(|| self.times(&x.to_vec()), |x| self.times(x));
                Array1::from_vec(known(y))
            }
        }
    )*};
}
products_with_vectors!(&Csr<T> CsrTransposed<'_, T>);

impl<T: Scalar> Mul<T> for &Csr<T> {
    type Output = Csr<T>;
    #[track_caller]
    fn mul(self, factor: T) -> Csr<T> {
        known(self.scaled(factor))
    }
}

macro_rules! products_with_numbers {
    ($($number:ty)*) => {$(
        impl Mul<&Csr<$number>> for $number {
            type Output = Csr<$number>;
            #[track_caller]
            fn mul(self, a: &Csr<$number>) -> Csr<$number> {
                a * self
            }
        }
    )*};
}
products_with_numbers!(f32 f64 lacuna_engine::Complex32 lacuna_engine::Complex64);

macro_rules! between_matrices {
    ($($operator:ident $name:ident $checked:expr;)*) => {$(
        impl<T: Scalar> $operator for &Csr<T> {
            type Output = Csr<T>;
            #[track_caller]
            fn $name(self, other: Self) -> Csr<T> {
                known($checked(self, other))
            }
        }
    )*};
}
between_matrices! {
    Add add Csr::plus;
    Sub sub Csr::minus;
    Mul mul product;
}

impl<T: Scalar> Neg for &Csr<T> {
    type Output = Csr<T>;
    fn neg(self) -> Csr<T> {
        known(self.map(|v| -v))
    }
}
