//! Compressed rows in borrowed arrays, and the checks of such arrays.
use crate::Csr;
use crate::parallel;
use crate::storage::checks::{check_finite, check_sizes};
use lacuna_engine::{Error, Result, Scalar};
use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Minimum number of elements per thread.
const GRAIN: usize = 8192;

/// A sparse matrix in compressed rows with borrowed arrays: three slices, valid as those of a [`Csr`] are.
///
/// [`CsrRef::to_csr`], and a system created from it, copy the arrays once.
///
/// ```
/// use lacuna_formats::CsrRef;
///
/// let (row_ptr, col_idx, values) = ([0, 2, 3], [0, 1, 1], [4.0, -1.0, 4.0]);
/// let a = CsrRef::new(2, 2, &row_ptr, &col_idx, &values)?;
/// assert_eq!(a.to_csr().get(1, 1), Some(4.0));
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CsrRef<'a, T> {
    rows: usize,
    cols: usize,
    row_ptr: &'a [u32],
    col_idx: &'a [u32],
    values: &'a [T],
}

impl<'a, T: Scalar> CsrRef<'a, T> {
    /// The matrix whose row `i` has its columns and values at `row_ptr[i]..row_ptr[i + 1]` of `col_idx` and
    /// `values`.
    ///
    /// # Errors
    /// As [`Csr::new`].
    pub fn new(
        rows: usize,
        cols: usize,
        row_ptr: &'a [u32],
        col_idx: &'a [u32],
        values: &'a [T],
    ) -> Result<Self> {
        check("CsrRef::new", rows, cols, row_ptr, col_idx, values)?;
        Ok(CsrRef { rows, cols, row_ptr, col_idx, values })
    }

    /// The same without checking the arrays.
    ///
    /// # Safety
    /// [`CsrRef::new`] must accept these arguments: kernels read vectors at the columns without a check.
    pub unsafe fn new_unchecked(
        rows: usize,
        cols: usize,
        row_ptr: &'a [u32],
        col_idx: &'a [u32],
        values: &'a [T],
    ) -> Self {
        CsrRef { rows, cols, row_ptr, col_idx, values }
    }

    /// Rows.
    pub fn rows(self) -> usize {
        self.rows
    }
    /// Columns.
    pub fn cols(self) -> usize {
        self.cols
    }
    /// Stored entries.
    pub fn nnz(self) -> usize {
        self.values.len()
    }
    /// The start of each row, and the end of the last.
    pub fn row_ptr(self) -> &'a [u32] {
        self.row_ptr
    }
    /// The column of each entry.
    pub fn col_idx(self) -> &'a [u32] {
        self.col_idx
    }
    /// The value of each entry.
    pub fn values(self) -> &'a [T] {
        self.values
    }
    /// A matrix with its own arrays.
    pub fn to_csr(self) -> Csr<T> {
        let (row_ptr, col_idx) = (self.row_ptr.to_vec(), self.col_idx.to_vec());
        Csr::assembled(self.rows, self.cols, row_ptr, col_idx, self.values.to_vec())
    }
}

/// [`Csr::new`] for the operation of a caller.
///
/// # Errors
/// As [`Csr::new`].
pub fn compressed<T: Scalar>(
    operation: &str,
    rows: usize,
    cols: usize,
    row_ptr: Vec<u32>,
    col_idx: Vec<u32>,
    values: Vec<T>,
) -> Result<Csr<T>> {
    check(operation, rows, cols, &row_ptr, &col_idx, &values)?;
    Ok(Csr::assembled(rows, cols, row_ptr, col_idx, values))
}

impl<'a, T: Scalar> From<&'a Csr<T>> for CsrRef<'a, T> {
    fn from(a: &'a Csr<T>) -> Self {
        a.view()
    }
}
impl<T: Scalar> From<CsrRef<'_, T>> for Csr<T> {
    fn from(a: CsrRef<'_, T>) -> Self {
        a.to_csr()
    }
}
impl<T: Scalar> From<CsrRef<'_, T>> for Arc<Csr<T>> {
    fn from(a: CsrRef<'_, T>) -> Self {
        Arc::new(a.to_csr())
    }
}

impl<T: Scalar> Csr<T> {
    /// The arrays, borrowed.
    pub fn view(&self) -> CsrRef<'_, T> {
        CsrRef {
            rows: self.rows(),
            cols: self.cols(),
            row_ptr: self.row_ptr(),
            col_idx: self.col_idx(),
            values: self.values(),
        }
    }

    /// [`Csr::new`] for indices of any integer type, such as `usize` or `i32`, which are copied.
    ///
    /// ```
    /// use lacuna_formats::Csr;
    ///
    /// let (row_ptr, col_idx) = ([0usize, 2, 3], [0i64, 1, 1]);
    /// let a = Csr::from_indices(2, 2, &row_ptr, &col_idx, vec![4.0, -1.0, 4.0])?;
    /// assert_eq!(a.col_idx(), [0, 1, 1]);
    /// assert!(Csr::from_indices(2, 2, &row_ptr, &[0, 1, -1], vec![4.0, -1.0, 4.0]).is_err());
    /// # Ok::<(), lacuna_engine::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Csr::new`]; [`Error::Structure`] for an index that is negative or does not fit in 32 bits.
    pub fn from_indices<P, J>(
        rows: usize,
        cols: usize,
        row_ptr: &[P],
        col_idx: &[J],
        values: Vec<T>,
    ) -> Result<Self>
    where
        P: Copy + Display + Sync + TryInto<u32>,
        J: Copy + Display + Sync + TryInto<u32>,
    {
        const OPERATION: &str = "Csr::from_indices";
        let row_ptr = narrowed(OPERATION, "row_ptr", row_ptr)?;
        let col_idx = narrowed(OPERATION, "col_idx", col_idx)?;
        check(OPERATION, rows, cols, &row_ptr, &col_idx, &values)?;
        Ok(Self::assembled(rows, cols, row_ptr, col_idx, values))
    }
}

/// Indices in 32 bits.
fn narrowed<I>(operation: &str, what: &str, indices: &[I]) -> Result<Vec<u32>>
where
    I: Copy + Display + Sync + TryInto<u32>,
{
    let wrong = AtomicUsize::new(usize::MAX);
    let all = parallel::collect(indices.len(), GRAIN, |k| -> u32 {
        indices[k].try_into().unwrap_or_else(|_| {
            wrong.fetch_min(k, Relaxed);
            0
        })
    });
    let k = wrong.into_inner();
    match indices.get(k) {
        None => Ok(all),
        Some(index) => {
            let message = format!("{what}[{k}] should be from 0 to {}, got {index}", u32::MAX);
            Err(Error::Structure { operation: operation.into(), message })
        }
    }
}

/// Entries that are looked at together, and the parts of so many that a thread takes at least.
const BLOCK: usize = 4096;
const BLOCKS: usize = 8;

/// Fails unless the arrays form a valid matrix.
pub(crate) fn check<T: Scalar>(
    operation: &str,
    rows: usize,
    cols: usize,
    row_ptr: &[u32],
    col_idx: &[u32],
    values: &[T],
) -> Result<()> {
    check_pattern(operation, [rows, cols, values.len()], row_ptr, col_idx)?;
    check_finite(operation, row_ptr, col_idx, values)
}

fn check_pattern(
    operation: &str,
    [rows, cols, nnz]: [usize; 3],
    row_ptr: &[u32],
    col_idx: &[u32],
) -> Result<()> {
    check_sizes(operation, rows, cols, nnz)?;
    Error::check_length(operation, "row_ptr", rows + 1, row_ptr.len())?;
    Error::check_length(operation, "col_idx", nnz, col_idx.len())?;
    let structure = |message| Err(Error::Structure { operation: operation.into(), message });
    if row_ptr[0] != 0 {
        return structure(format!("row_ptr[0] should be 0, got {}", row_ptr[0]));
    }
    if let Some(i) = parallel::find_first(rows, GRAIN, |i| row_ptr[i + 1] < row_ptr[i]) {
        let (next, this) = (row_ptr[i + 1], row_ptr[i]);
        return structure(format!("row_ptr should not decrease, got {next} after {this} at row {i}"));
    }
    if row_ptr[rows] as usize != nnz {
        let end = row_ptr[rows];
        return structure(format!("row_ptr should end at the number of entries {nnz}, got {end}"));
    }
    if increases(cols, row_ptr, col_idx) {
        return Ok(());
    }
    let range = |i: usize| row_ptr[i] as usize..row_ptr[i + 1] as usize;
    let bad_row = parallel::find_first(rows, GRAIN / 8, |i| {
        let row = &col_idx[range(i)];
        row.last().is_some_and(|&c| c as usize >= cols) || row.windows(2).any(|w| w[1] <= w[0])
    });
    bad_row.map_or(Ok(()), |row| Err(wrong_row(operation, row, cols, col_idx, range(row))))
}

/// Whether all columns are below their number and increase within the rows: then there are no steps down but from row to row. Rows are
/// not looked at one by one, so that vector instructions serve.
fn increases(cols: usize, row_ptr: &[u32], col_idx: &[u32]) -> bool {
    let blocks = col_idx.len().div_ceil(BLOCK);
    let block = |k: usize| k * BLOCK..col_idx.len().min((k + 1) * BLOCK);
    // All counts fit in 32 bits.
    let cols = cols as u32;
    let within = |k: usize| col_idx[block(k)].iter().fold(true, |all, &c| all & (c < cols));
    let steps_down = |k: usize| {
        let own = block(k);
        let first = usize::from(own.start > 0 && col_idx[own.start] <= col_idx[own.start - 1]);
        let own = &col_idx[own];
        first + own.iter().zip(&own[1..]).fold(0u32, |count, (a, b)| count + u32::from(b <= a)) as usize
    };
    let down_to_row = |i: usize| {
        let at = row_ptr[i] as usize;
        usize::from(at > 0 && row_ptr[i + 1] as usize > at && col_idx[at] <= col_idx[at - 1])
    };
    parallel::find_first(blocks, BLOCKS, |k| !within(k)).is_none()
        && parallel::sum(blocks, BLOCKS, steps_down) == parallel::sum(row_ptr.len() - 1, GRAIN, down_to_row)
}

/// Describes the error of a row.
fn wrong_row(operation: &str, row: usize, cols: usize, col_idx: &[u32], range: Range<usize>) -> Error {
    let columns = &col_idx[range];
    let (column, message) = match columns.iter().find(|&&c| c as usize >= cols) {
        Some(&c) => (c, format!("the matrix has {cols} columns")),
        None => {
            let k = columns.windows(2).position(|w| w[1] <= w[0]).unwrap_or(0);
            let message = if columns[k + 1] == columns[k] {
                "the column is repeated; Triplets sums repeated entries".into()
            } else {
                format!("comes after column {}; Triplets sorts entries", columns[k])
            };
            (columns[k + 1], message)
        }
    };
    Error::Entry { operation: operation.into(), row, column: column as usize, message }
}
