//! Sparse products for a set-up, on the device of the matrix.
use lacuna_engine::{Backend, Format, Result, Scalar};
use lacuna_formats::Csr;

/// Minimum number of entries in the factors: the host multiplies smaller ones in a few milliseconds.
const WORTH: usize = 200_000;

/// Sparse products for the set-up of a preconditioner, computed by a device.
pub trait SparseProducts<T: Scalar> {
    /// The product of matrices, from the last to the first. `None` if the host is to compute it, with equal bits, by
    /// [`lacuna_formats::algebra`]: always for a device without kernels for it, and for small matrices.
    ///
    /// # Errors
    /// [`lacuna_engine::Error::Shape`] if shapes do not match; device failures.
    fn product(&mut self, factors: &[&Csr<T>]) -> Result<Option<Csr<T>>>;
}

/// All products are computed by the host.
pub struct OnHost;

impl<T: Scalar> SparseProducts<T> for OnHost {
    fn product(&mut self, _: &[&Csr<T>]) -> Result<Option<Csr<T>>> {
        Ok(None)
    }
}

/// Products of large matrices are computed by a backend.
pub(super) struct OnDevice<'d, B>(pub(super) &'d mut B);

impl<T: Scalar, B: Backend> SparseProducts<T> for OnDevice<'_, B> {
    fn product(&mut self, factors: &[&Csr<T>]) -> Result<Option<Csr<T>>> {
        let entries: usize = factors.iter().map(|factor| factor.nnz()).sum();
        if entries < WORTH || !self.0.has_fast_sparse_products() {
            return Ok(None);
        }
        let factors: Vec<&dyn Format<T>> = factors.iter().map(|factor| *factor as &dyn Format<T>).collect();
        let Some(product) = self.0.sparse_product(&factors)? else { return Ok(None) };
        let (rows, cols) = product.shape;
        Csr::new(rows, cols, product.row_ptr, product.col_idx, product.values).map(Some)
    }
}
