//! Dense matrices, row by row.
use crate::Csr;
use crate::parallel;
use crate::storage::checks::{check_sizes, in_words, not_finite};
use crate::storage::csr::lanes;
use crate::storage::padding::is_too_much;
use lacuna_engine::{Argument, Error, Format, Result, Scalar, pages, row_sum};

/// Rows filled per task.
const RUN: usize = 64;

/// A matrix with all its places, including zeros, row by row: no indices.
///
/// Place `j` of a row belongs to lane `j mod W`, which accumulates its places with fused multiply-add, and
/// lanes are summed by halving: for a matrix without zeros, the order of [`Csr`].
///
/// ```
/// use lacuna_formats::Dense;
/// use lacuna_io::Spec;
///
/// let a = Spec::parse("gen:dense:300")?.build::<f64>()?;
/// assert_eq!(Dense::from_csr(&a)?.values().len(), 90_000);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dense<T> {
    rows: usize,
    cols: usize,
    nnz: usize,
    lanes: usize,
    values: Vec<T>,
}

impl<T: Scalar> Dense<T> {
    /// A matrix from its places, row by row.
    ///
    /// # Errors
    /// [`Error::Length`] if there are not `rows · cols` of them, [`Error::Entry`] for one that is not finite,
    /// [`Error::Structure`] for too many rows, columns or places for 32-bit indices.
    pub fn new(rows: usize, cols: usize, values: Vec<T>) -> Result<Self> {
        const OPERATION: &str = "Dense::new";
        let places = rows.saturating_mul(cols);
        check_sizes(OPERATION, rows, cols, places)?;
        Error::check_length(OPERATION, "values", places, values.len())?;
        if let Some(k) = parallel::find_first(values.len(), 1 << 13, |k| !values[k].finite()) {
            return Err(not_finite(OPERATION, k / cols, k % cols, values[k]));
        }
        Ok(Dense { rows, cols, nnz: places, lanes: lanes(places, rows), values })
    }

    /// The same matrix with all its places.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for more than four places per entry, with the memory they would take;
    /// [`Error::Structure`] for too many places for 32-bit indices, [`Error::OutOfMemory`].
    pub fn from_csr(a: &Csr<T>) -> Result<Self> {
        const OPERATION: &str = "Dense::from_csr";
        let (rows, cols, nnz) = (a.rows(), a.cols(), a.nnz());
        let places = rows.saturating_mul(cols);
        if is_too_much(places, nnz) {
            return Err(Error::Unsupported {
                operation: OPERATION.into(),
                message: format!(
                    "{rows}x{cols} places would take {} for {nnz} entries ({} in csr); keep csr",
                    in_words(places.saturating_mul(size_of::<T>())),
                    in_words(a.bytes()),
                ),
            });
        }
        check_sizes(OPERATION, rows, cols, places)?;
        let mut values = pages::zeroed::<T>(OPERATION, places)?;
        parallel::for_each(values.chunks_mut((RUN * cols).max(1)).enumerate(), |(run, values)| {
            for (row, values) in (run * RUN..).zip(values.chunks_mut(cols)) {
                a.row_entries(row).for_each(|(j, v)| values[j] = v);
            }
        });
        Ok(Dense { rows, cols, nnz, lanes: lanes(places, rows), values })
    }

    /// All places, row by row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Bytes of all places.
    pub(crate) fn footprint(rows: usize, cols: usize) -> usize {
        rows.saturating_mul(cols).saturating_mul(size_of::<T>())
    }

    /// Whether there are too many places per entry.
    pub(crate) fn refuses(rows: usize, cols: usize, nnz: usize) -> bool {
        let places = rows.saturating_mul(cols);
        is_too_much(places, nnz) || places > u32::MAX as usize
    }
}

impl<T: Scalar> Format<T> for Dense<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn nnz(&self) -> usize {
        self.nnz
    }

    fn kernel(&self) -> &'static str {
        "dense"
    }

    fn arguments(&self) -> Vec<Argument<'_, T>> {
        vec![Argument::Size(self.cols as u32), Argument::Values(&self.values)]
    }

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn row(&self, i: usize, x: &[T]) -> T {
        let values = &self.values[i * self.cols..(i + 1) * self.cols];
        row_sum(self.lanes, values.iter().copied().zip(x.iter().copied()))
    }
}
