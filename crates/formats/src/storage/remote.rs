//! Compressed rows whose columns and values are on a device alone.
use super::csr::{has_long_rows, lanes};
use crate::parallel;
use lacuna_engine::{Argument, Error, Format, Result, Scalar};
use std::marker::PhantomData;

/// Minimum number of rows per thread.
const GRAIN: usize = 8192;

/// A matrix in `csr` that a device has made: where its rows begin is known here, its columns and values are in the memory of the device.
///
/// Only the backend that made it can multiply with it.
pub struct RemoteCsr<T> {
    shape: (usize, usize),
    row_ptr: Vec<u32>,
    lanes: usize,
    of: PhantomData<fn() -> T>,
}

impl<T: Scalar> RemoteCsr<T> {
    /// From where each row begins, and the last one ends.
    ///
    /// # Errors
    /// [`Error::Structure`] unless there is one more of them than rows, from 0 on and not decreasing.
    pub fn new(shape: (usize, usize), row_ptr: Vec<u32>) -> Result<Self> {
        let wrong = |message: &str| {
            Err(Error::Structure { operation: "a matrix on a device".into(), message: message.into() })
        };
        let rows = shape.0;
        if row_ptr.len() != rows + 1 || row_ptr[0] != 0 {
            return wrong("expected one more pointer than rows, the first of them 0");
        }
        if parallel::find_first(rows, GRAIN, |i| row_ptr[i] > row_ptr[i + 1]).is_some() {
            return wrong("expected pointers that do not decrease");
        }
        let filled = parallel::count(rows, GRAIN, |i| row_ptr[i + 1] > row_ptr[i]);
        let lanes = lanes(row_ptr[rows] as usize, filled);
        Ok(RemoteCsr { shape, row_ptr, lanes, of: PhantomData })
    }
}

impl<T: Scalar> Format<T> for RemoteCsr<T> {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }
    fn nnz(&self) -> usize {
        self.row_ptr[self.shape.0] as usize
    }
    fn kernel(&self) -> &'static str {
        "csr"
    }
    /// Those of `csr`; the columns and the values are empty here.
    fn arguments(&self) -> Vec<Argument<'_, T>> {
        vec![Argument::Indices(&self.row_ptr), Argument::Indices(&[]), Argument::Values(&[])]
    }
    fn lanes(&self) -> usize {
        self.lanes
    }
    fn has_long_rows(&self) -> bool {
        has_long_rows(&self.row_ptr, self.lanes)
    }
    /// Not a number: the values are elsewhere.
    fn row(&self, _: usize, _: &[T]) -> T {
        T::from_real(f64::NAN)
    }
    fn bytes(&self) -> usize {
        self.nnz() * (size_of::<T>() + size_of::<u32>()) + self.row_ptr.len() * size_of::<u32>()
    }
}
