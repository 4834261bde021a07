//! A matrix written row by row, several runs of rows concurrently.
use super::cells::Cell;
use crate::Csr;
use crate::parallel::{self, Check, map_checked};
use crate::storage::checks::{check_sizes, not_finite};
use lacuna_engine::{Error, Result, Scalar, pages};
use std::ops::Range;

/// Receives the rows of a run, in order.
pub struct RowWriter<T> {
    operation: &'static str,
    first_row: usize,
    cols: usize,
    ends: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<T>,
    order: Vec<u64>,
    /// Of [`RowWriter::cells`]: the order of cells, and the entries of a row.
    memory: (Vec<u64>, Vec<u32>, Vec<T>),
    error: Option<Error>,
}

impl<T: Scalar> RowWriter<T> {
    fn new(operation: &'static str, rows: &Range<usize>, cols: usize) -> Self {
        RowWriter {
            operation,
            first_row: rows.start,
            cols,
            ends: Vec::with_capacity(rows.len()),
            columns: Vec::new(),
            values: Vec::new(),
            order: Vec::new(),
            memory: Default::default(),
            error: None,
        }
    }

    /// Reserves space for more entries.
    pub fn reserve(&mut self, entries: usize) {
        self.has_room(entries);
    }

    /// Reserves space for more entries; memory that runs out is an error of [`build_rows`].
    fn has_room(&mut self, entries: usize) -> bool {
        let reserved = self.columns.try_reserve(entries).is_ok() && self.values.try_reserve(entries).is_ok();
        if !reserved && self.error.is_none() {
            let all = self.columns.len().saturating_add(entries);
            self.error = Some(Error::OutOfMemory {
                operation: self.operation.into(),
                device: "the host".into(),
                requested: all.saturating_mul(size_of::<u32>() + size_of::<T>()) as u64,
                available: None,
            });
        }
        reserved
    }

    /// Appends a row with these entries, in any order of columns, without repetition. A column that is out of
    /// range or repeated, or a value that is not finite, is an error of [`build_rows`].
    pub fn row(&mut self, columns: &[u32], values: &[T]) {
        let start = self.columns.len();
        if !self.has_room(columns.len()) {
            return;
        }
        if columns.windows(2).all(|w| w[0] < w[1]) {
            self.columns.extend_from_slice(columns);
            self.values.extend_from_slice(values);
        } else {
            sort_order(columns, &mut self.order);
            self.columns.extend(self.order.iter().map(|key| (key >> 32) as u32));
            self.values.extend(self.order.iter().map(|key| values[*key as u32 as usize]));
        }
        let finite = self.values[start..].iter().all(|v| v.finite());
        let own = &self.columns[start..];
        let fits = own.last().is_none_or(|&c| (c as usize) < self.cols);
        if self.error.is_none() && !(finite && fits && own.windows(2).all(|w| w[0] < w[1])) {
            self.error = Some(self.wrong(start));
        }
        self.ends.push(self.columns.len() as u32);
    }

    /// Appends the rows of a row of cells, with these columns of cells in any order, without repetition.
    pub(super) fn cells<const R: usize, const C: usize>(&mut self, columns: &[u32], cells: &[Cell<T, R, C>]) {
        if R * C == 1 {
            return self.row(columns, cells.as_flattened().as_flattened());
        }
        let (mut order, mut own_columns, mut values) = std::mem::take(&mut self.memory);
        sort_order(columns, &mut order);
        own_columns.clear();
        own_columns.extend(order.iter().flat_map(|key| {
            let first = (key >> 32) as u32 * C as u32;
            first..first + C as u32
        }));
        (0..R).for_each(|r| {
            values.clear();
            order.iter().for_each(|key| values.extend_from_slice(&cells[*key as u32 as usize][r]));
            self.row(&own_columns, &values);
        });
        self.memory = (order, own_columns, values);
    }

    /// This, if it has so many rows without an error.
    fn finished(mut self, count: usize) -> Result<Self> {
        match self.error.take() {
            Some(error) => Err(error),
            None if self.ends.len() != count => {
                let message =
                    format!("expected {count} rows from {}, got {}", self.first_row, self.ends.len());
                Err(Error::Structure { operation: self.operation.into(), message })
            }
            None => Ok(self),
        }
    }

    /// Describes the error of the row that begins at an entry.
    #[cold]
    fn wrong(&self, start: usize) -> Error {
        let (row, operation) = (self.first_row + self.ends.len(), self.operation);
        let (columns, values) = (&self.columns[start..], &self.values[start..]);
        if let Some(k) = values.iter().position(|v| !v.finite()) {
            return not_finite(operation, row, columns[k] as usize, values[k]);
        }
        let repeated = columns.windows(2).find(|w| w[0] >= w[1]).map(|w| w[1]);
        let message = match repeated {
            Some(_) => "the column is repeated".into(),
            None => format!("the matrix has {} columns", self.cols),
        };
        let column = repeated.or(columns.last().copied()).unwrap_or(0) as usize;
        Error::Entry { operation: operation.into(), row, column, message }
    }
}

/// `columns` by increasing column, each with its original position: `column << 32 | place`.
pub(crate) fn sort_order(columns: &[u32], order: &mut Vec<u64>) {
    order.clear();
    order.extend(columns.iter().zip(0u64..).map(|(&c, k)| u64::from(c) << 32 | k));
    order.sort_unstable();
}

/// The matrix whose rows `fill` writes, each of the given runs of rows on some thread. The runs are
/// consecutive and cover all rows; `fill` ends each row of its run with [`RowWriter::row`].
///
/// ```
/// use lacuna_formats::algebra::build_rows;
///
/// let halves = vec![0..2, 2..3];
/// let a = build_rows("upper", 3, 3, halves, |rows, out| {
///     rows.for_each(|i| out.row(&[i as u32, 2][..2 - i / 2], &[1.0, 0.5][..2 - i / 2]));
/// })?;
/// assert_eq!(a.entries().map(|e| e.2).sum::<f64>(), 4.0);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
///
/// # Errors
/// [`Error::Entry`] for the first row with a column out of range or repeated or a value that is not finite;
/// [`Error::Structure`] if runs and rows do not match, or there are too many entries for 32-bit indices;
/// [`Error::OutOfMemory`].
pub fn build_rows<T: Scalar>(
    operation: &'static str,
    rows: usize,
    cols: usize,
    runs: Vec<Range<usize>>,
    fill: impl Fn(Range<usize>, &mut RowWriter<T>) + Sync,
) -> Result<Csr<T>> {
    build_rows_with(operation, rows, cols, runs, None, || (), |(), run, out| fill(run, out))
}

/// [`build_rows`] with working memory for each thread, created by `init`, and with checks whether to go on.
///
/// # Errors
/// As [`build_rows`]; those of the check.
pub fn build_rows_with<T: Scalar, M: Send>(
    operation: &'static str,
    rows: usize,
    cols: usize,
    runs: Vec<Range<usize>>,
    check: Check<'_>,
    init: impl Fn() -> M + Sync,
    fill: impl Fn(&mut M, Range<usize>, &mut RowWriter<T>) + Sync,
) -> Result<Csr<T>> {
    check_runs(operation, rows, &runs)?;
    joined(operation, rows, cols, written(operation, cols, runs, check, init, fill)?)
}

/// Fails unless the runs are consecutive and cover all rows.
fn check_runs(operation: &'static str, rows: usize, runs: &[Range<usize>]) -> Result<()> {
    let mut end = 0;
    for run in runs {
        if run.start != end || run.end < end {
            end = usize::MAX;
            break;
        }
        end = run.end;
    }
    if end == rows {
        return Ok(());
    }
    let message = format!("expected runs that cover {rows} rows, got {runs:?}");
    Err(Error::Structure { operation: operation.into(), message })
}

/// The rows of some runs, each written by `fill` on some thread.
pub(super) fn written<T: Scalar, M: Send>(
    operation: &'static str,
    cols: usize,
    runs: Vec<Range<usize>>,
    check: Check<'_>,
    init: impl Fn() -> M + Sync,
    fill: impl Fn(&mut M, Range<usize>, &mut RowWriter<T>) + Sync,
) -> Result<Vec<RowWriter<T>>> {
    all(map_checked(runs, check, init, |memory: &mut M, run| {
        let (mut out, count) = (RowWriter::new(operation, &run, cols), run.len());
        fill(memory, run, &mut out);
        out.finished(count)
    })?)
}

fn all<T: Scalar>(written: Vec<Result<RowWriter<T>>>) -> Result<Vec<RowWriter<T>>> {
    written.into_iter().collect()
}

/// Joins consecutive runs of rows into a matrix.
pub(super) fn joined<T: Scalar>(
    operation: &'static str,
    rows: usize,
    cols: usize,
    written: Vec<RowWriter<T>>,
) -> Result<Csr<T>> {
    let total = written.iter().map(|run| run.columns.len()).sum();
    check_sizes(operation, rows, cols, total)?;
    let mut row_ptr = pages::zeroed::<u32>(operation, rows + 1)?;
    let mut col_idx = pages::zeroed::<u32>(operation, total)?;
    let mut values = pages::zeroed::<T>(operation, total)?;
    let (mut ends, mut columns, mut numbers) = (&mut row_ptr[1..], &mut col_idx[..], &mut values[..]);
    let mut tasks = Vec::with_capacity(written.len());
    let mut offset = 0;
    for run in written {
        let (own_ends, rest) = ends.split_at_mut(run.ends.len());
        let (own_columns, rest_columns) = columns.split_at_mut(run.columns.len());
        let (own_numbers, rest_numbers) = numbers.split_at_mut(run.columns.len());
        (ends, columns, numbers) = (rest, rest_columns, rest_numbers);
        let before = offset;
        offset += run.columns.len() as u32;
        tasks.push((run, before, own_ends, own_columns, own_numbers));
    }
    parallel::for_each(tasks, |(run, before, ends, columns, numbers)| {
        ends.iter_mut().zip(&run.ends).for_each(|(to, from)| *to = before + from);
        columns.copy_from_slice(&run.columns);
        numbers.copy_from_slice(&run.values);
    });
    Ok(Csr::assembled(rows, cols, row_ptr, col_idx, values))
}
