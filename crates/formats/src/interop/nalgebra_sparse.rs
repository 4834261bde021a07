//! `nalgebra-sparse` 0.12: copied and checked, since its indices are `usize`.
use crate::{Csr, Triplets};
use lacuna_engine::{Error, Result, Scalar};
use nalgebra_sparse012::{CooMatrix, CscMatrix, CsrMatrix};

/// A copy.
///
/// # Errors
/// As [`Csr::from_indices`].
impl<T: Scalar> TryFrom<&CsrMatrix<T>> for Csr<T> {
    type Error = Error;
    fn try_from(a: &CsrMatrix<T>) -> Result<Self> {
        let (row_ptr, col_idx, values) = a.csr_data();
        Csr::from_indices(a.nrows(), a.ncols(), row_ptr, col_idx, values.to_vec())
    }
}

/// A copy, transposed.
///
/// # Errors
/// As [`Csr::from_indices`], with rows and columns exchanged.
impl<T: Scalar> TryFrom<&CscMatrix<T>> for Csr<T> {
    type Error = Error;
    fn try_from(a: &CscMatrix<T>) -> Result<Self> {
        let (starts, rows, values) = a.csc_data();
        Ok(Csr::from_indices(a.ncols(), a.nrows(), starts, rows, values.to_vec())?.transpose())
    }
}

/// A copy.
impl<T: Scalar> From<&Csr<T>> for CsrMatrix<T> {
    fn from(a: &Csr<T>) -> Self {
        let [row_ptr, col_idx] =
            [a.row_ptr(), a.col_idx()].map(|all| all.iter().map(|&k| k as usize).collect());
        CsrMatrix::try_from_csr_data(a.rows(), a.cols(), row_ptr, col_idx, a.values().to_vec())
            .unwrap_or_else(|e| unreachable!("{e}"))
    }
}

/// A copy, in the same order.
impl<T: Scalar> From<&CooMatrix<T>> for Triplets<T> {
    fn from(a: &CooMatrix<T>) -> Self {
        let mut t = Triplets::with_capacity(a.nrows(), a.ncols(), a.nnz());
        t.extend(a.triplet_iter().map(|(i, j, v)| (i, j, *v)));
        t
    }
}

/// A copy, in the same order.
///
/// # Errors
/// [`Error::Entry`] for an entry outside the matrix.
impl<T: Scalar> TryFrom<&Triplets<T>> for CooMatrix<T> {
    type Error = Error;
    fn try_from(t: &Triplets<T>) -> Result<Self> {
        t.check("triplets for nalgebra-sparse")?;
        let (mut rows, mut cols) = (Vec::with_capacity(t.len()), Vec::with_capacity(t.len()));
        let mut values = Vec::with_capacity(t.len());
        for (i, j, v) in t.entries() {
            rows.push(i);
            cols.push(j);
            values.push(v);
        }
        Ok(CooMatrix::try_from_triplets(t.rows(), t.cols(), rows, cols, values)
            .unwrap_or_else(|e| unreachable!("{e}")))
    }
}
