//! The places of the entries of a matrix: what needs no values is compiled once, not for each number type.
use crate::Csr;
use lacuna_engine::Scalar;

/// The places of the entries of a [`Csr`].
#[derive(Clone, Copy)]
pub(crate) struct PatternRef<'a> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) row_ptr: &'a [u32],
    pub(crate) col_idx: &'a [u32],
}

impl<'a> PatternRef<'a> {
    pub(crate) fn of<T: Scalar>(a: &'a Csr<T>) -> Self {
        PatternRef { rows: a.rows(), cols: a.cols(), row_ptr: a.row_ptr(), col_idx: a.col_idx() }
    }

    pub(crate) fn nnz(self) -> usize {
        self.col_idx.len()
    }

    /// The columns of row `i`; empty if there is no such row.
    #[inline]
    pub(crate) fn row(self, i: usize) -> &'a [u32] {
        if i >= self.rows {
            return &[];
        }
        &self.col_idx[self.row_ptr[i] as usize..self.row_ptr[i + 1] as usize]
    }

    /// The index of the entry at row `i` and column `j`, if there is one.
    pub(crate) fn find(self, i: usize, j: usize) -> Option<usize> {
        let k = self.row(i).binary_search(&u32::try_from(j).ok()?).ok()?;
        Some(self.row_ptr[i] as usize + k)
    }
}
