//! The pattern of a matrix, kept by a plan that holds for it only.
use crate::Csr;
use lacuna_engine::{Error, Result, Scalar};
use std::sync::Arc;

/// The size of a matrix and the places of its entries, shared with it.
pub(super) struct SharedPattern {
    cols: usize,
    row_ptr: Arc<Vec<u32>>,
    col_idx: Arc<Vec<u32>>,
}

impl SharedPattern {
    pub(super) fn of<T: Scalar>(a: &Csr<T>) -> Self {
        let (row_ptr, col_idx) = a.shared_pattern();
        SharedPattern { cols: a.cols(), row_ptr, col_idx }
    }

    /// Fails unless a matrix, here called `name`, has this pattern. Costs nothing where both share it.
    pub(super) fn check<T: Scalar>(&self, operation: &str, name: &str, a: &Csr<T>) -> Result<()> {
        let refused = |message: String| Err(Error::Structure { operation: operation.into(), message });
        let (own, got) = ((self.row_ptr.len() - 1, self.cols), (a.rows(), a.cols()));
        if own != got {
            let message =
                format!("expected {name} of {}x{} as in the plan, got {}x{}", own.0, own.1, got.0, got.1);
            return refused(message);
        }
        let (row_ptr, col_idx) = a.shared_pattern();
        let shares = Arc::ptr_eq(&row_ptr, &self.row_ptr) && Arc::ptr_eq(&col_idx, &self.col_idx);
        if shares || row_ptr == self.row_ptr && col_idx == self.col_idx {
            return Ok(());
        }
        let of = |row_ptr: &[u32], col_idx: &[u32], i: usize| {
            col_idx[row_ptr[i] as usize..row_ptr[i + 1] as usize].to_vec()
        };
        let columns = |i: usize| [of(&self.row_ptr, &self.col_idx, i), of(&row_ptr, &col_idx, i)];
        let differs = |i: &usize| {
            let [own, got] = columns(*i);
            own != got
        };
        let row = (0..a.rows()).find(differs).unwrap_or(0);
        let [own, got] = columns(row).map(|columns| columns.len());
        refused(format!(
            "expected {name} with entries at the places of the plan; row {row} has {got} at others than the {own} there"
        ))
    }
}
