//! `faer` 0.24: rows borrowed without a copy; rows and columns converted.
use crate::Csr;
use faer024::Index;
use faer024::sparse::{SparseColMatRef, SparseRowMat, SparseRowMatRef, SymbolicSparseRowMatRef};
use lacuna_engine::{Error, Result, Scalar};
use std::fmt::Display;

/// The arrays of the matrix, borrowed.
///
/// # Errors
/// [`Error::Structure`] for more rows, columns or entries than 31 bits can count, the limit of `faer` for
/// 32-bit indices.
impl<'a, T: Scalar> TryFrom<&'a Csr<T>> for SparseRowMatRef<'a, u32, T> {
    type Error = Error;
    fn try_from(a: &'a Csr<T>) -> Result<Self> {
        for (what, size) in [("rows", a.rows()), ("columns", a.cols()), ("entries", a.nnz())] {
            if size > i32::MAX as usize {
                let message =
                    format!("faer counts up to {} {what} with 32-bit indices, got {size}", i32::MAX);
                return Err(Error::Structure { operation: "a matrix for faer".into(), message });
            }
        }
        let symbolic =
            SymbolicSparseRowMatRef::new_checked(a.rows(), a.cols(), a.row_ptr(), None, a.col_idx());
        Ok(SparseRowMatRef::new(symbolic, a.values()))
    }
}

/// A copy; unused space between rows is removed.
///
/// # Errors
/// As [`Csr::from_indices`].
impl<I, T> TryFrom<SparseRowMatRef<'_, I, T>> for Csr<T>
where
    I: Index + Copy + Display + Sync + TryInto<u32>,
    T: Scalar,
{
    type Error = Error;
    fn try_from(a: SparseRowMatRef<'_, I, T>) -> Result<Self> {
        let (rows, cols, starts, lengths, columns) = a.symbolic().parts();
        match lengths {
            None => Csr::from_indices(rows, cols, starts, columns, a.val().to_vec()),
            Some(lengths) => {
                let (starts, columns, values) = closed_up(starts, lengths, columns, a.val());
                Csr::from_indices(rows, cols, &starts, &columns, values)
            }
        }
    }
}

/// The same for compressed columns, which are transposed into rows.
///
/// # Errors
/// As [`Csr::from_indices`], with rows and columns exchanged.
impl<I, T> TryFrom<SparseColMatRef<'_, I, T>> for Csr<T>
where
    I: Index + Copy + Display + Sync + TryInto<u32>,
    T: Scalar,
{
    type Error = Error;
    fn try_from(a: SparseColMatRef<'_, I, T>) -> Result<Self> {
        Ok(Csr::try_from(a.transpose())?.transpose())
    }
}

/// The arrays, moved if there is no unused space between rows.
///
/// # Errors
/// As [`Csr::new`].
impl<T: Scalar> TryFrom<SparseRowMat<u32, T>> for Csr<T> {
    type Error = Error;
    fn try_from(a: SparseRowMat<u32, T>) -> Result<Self> {
        if a.symbolic().row_nnz().is_some() {
            return a.as_ref().try_into();
        }
        let (symbolic, values) = a.into_parts();
        let (rows, cols, row_ptr, _, col_idx) = symbolic.into_parts();
        Csr::new(rows, cols, row_ptr, col_idx, values)
    }
}

/// The rows without the unused space after each.
fn closed_up<I: Index, T: Copy>(
    starts: &[I],
    lengths: &[I],
    columns: &[I],
    values: &[T],
) -> (Vec<usize>, Vec<I>, Vec<T>) {
    let (mut own_starts, mut own_columns, mut own_values) = (vec![0], Vec::new(), Vec::new());
    for (start, length) in starts.iter().zip(lengths) {
        let range = start.zx()..start.zx() + length.zx();
        own_columns.extend_from_slice(&columns[range.clone()]);
        own_values.extend_from_slice(&values[range]);
        own_starts.push(own_columns.len());
    }
    (own_starts, own_columns, own_values)
}
