//! `sprs` 0.11: 32-bit indices are moved, others copied; also triplets.
use crate::{Csr, Triplets};
use lacuna_engine::{Error, Result, Scalar};
use sprs011::{CsMatI, CsMatViewI, SpIndex, TriMatI};
use std::fmt::Display;

/// The arrays, moved; a column-major matrix is transposed.
///
/// # Errors
/// As [`Csr::new`]: `sprs` allows values that are not finite.
impl<T: Scalar> TryFrom<CsMatI<T, u32, u32>> for Csr<T> {
    type Error = Error;
    fn try_from(a: CsMatI<T, u32, u32>) -> Result<Self> {
        let (by_rows, (rows, cols)) = (a.is_csr(), a.shape());
        let (starts, indices, values) = a.into_raw_storage();
        match by_rows {
            true => Csr::new(rows, cols, starts, indices, values),
            false => Ok(Csr::new(cols, rows, starts, indices, values)?.transpose()),
        }
    }
}

/// A copy, with indices of any type; a column-major matrix is transposed.
///
/// # Errors
/// As [`Csr::from_indices`].
impl<I, P, T> TryFrom<CsMatViewI<'_, T, I, P>> for Csr<T>
where
    I: SpIndex + Display + TryInto<u32>,
    P: SpIndex + Display + TryInto<u32>,
    T: Scalar,
{
    type Error = Error;
    fn try_from(a: CsMatViewI<'_, T, I, P>) -> Result<Self> {
        let ((rows, cols), starts) = (a.shape(), a.proper_indptr());
        match a.is_csr() {
            true => Csr::from_indices(rows, cols, &starts, a.indices(), a.data().to_vec()),
            false => Ok(Csr::from_indices(cols, rows, &starts, a.indices(), a.data().to_vec())?.transpose()),
        }
    }
}

/// The arrays, moved.
impl<T: Scalar> From<Csr<T>> for CsMatI<T, u32, u32> {
    fn from(a: Csr<T>) -> Self {
        let (rows, cols, row_ptr, col_idx, values) = a.into_parts();
        CsMatI::try_new((rows, cols), row_ptr, col_idx, values).unwrap_or_else(|(.., e)| unreachable!("{e}"))
    }
}

/// The arrays, borrowed.
impl<'a, T: Scalar> From<&'a Csr<T>> for CsMatViewI<'a, T, u32, u32> {
    fn from(a: &'a Csr<T>) -> Self {
        CsMatViewI::try_new((a.rows(), a.cols()), a.row_ptr(), a.col_idx(), a.values())
            .unwrap_or_else(|(.., e)| unreachable!("{e}"))
    }
}

/// A copy, in the same order.
impl<I: SpIndex, T: Scalar> From<&TriMatI<T, I>> for Triplets<T> {
    fn from(a: &TriMatI<T, I>) -> Self {
        let mut t = Triplets::with_capacity(a.rows(), a.cols(), a.nnz());
        let places = a.row_inds().iter().zip(a.col_inds());
        t.extend(places.zip(a.data()).map(|((i, j), v)| (i.index(), j.index(), *v)));
        t
    }
}

/// A copy, in the same order.
///
/// # Errors
/// [`Error::Entry`] for an entry outside the matrix.
impl<T: Scalar> TryFrom<&Triplets<T>> for TriMatI<T, u32> {
    type Error = Error;
    fn try_from(t: &Triplets<T>) -> Result<Self> {
        t.check("triplets for sprs")?;
        let mut all = TriMatI::with_capacity((t.rows(), t.cols()), t.len());
        t.entries().for_each(|(i, j, v)| all.add_triplet(i, j, v));
        Ok(all)
    }
}
