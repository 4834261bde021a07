//! A matrix whose rows have known lengths and are written in place.
use crate::Csr;
use crate::build::cut::{cut, lengths, to_ends};
use crate::parallel::{self, map_with};
use crate::storage::checks::{check_sizes, not_finite};
use lacuna_engine::{Error, Result, Scalar, pages};
use std::ops::Range;

/// Rows per task.
const RUN: usize = 1 << 11;

/// The matrix whose row `i` has `length(i)` entries, which `fill(i, columns, values)` writes by increasing
/// column. Several threads write the rows in place.
///
/// ```
/// use lacuna_formats::algebra::fill_rows;
///
/// let sums = fill_rows("sums of neighbours", 3, 4, |_| 2, |i, columns, values| {
///     columns.copy_from_slice(&[i as u32, i as u32 + 1]);
///     values.fill(1.0);
/// })?;
/// assert_eq!(sums.get(2, 3), Some(1.0));
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
///
/// # Errors
/// [`Error::Entry`] for the first row with a column out of range or not above the one before, or a value that
/// is not finite; [`Error::Structure`] for too many entries for 32-bit indices; [`Error::OutOfMemory`].
pub fn fill_rows<T: Scalar>(
    operation: &'static str,
    rows: usize,
    cols: usize,
    length: impl Fn(usize) -> usize + Sync,
    fill: impl Fn(usize, &mut [u32], &mut [T]) + Sync,
) -> Result<Csr<T>> {
    let fill = |(): &mut (), i: usize, columns: &mut [u32], values: &mut [T]| fill(i, columns, values);
    fill_rows_with(operation, rows, cols, || (), |(), i| length(i), fill)
}

/// [`fill_rows`] with working memory for each thread, created by `init`.
///
/// # Errors
/// As [`fill_rows`].
pub fn fill_rows_with<T: Scalar, M: Send>(
    operation: &'static str,
    rows: usize,
    cols: usize,
    init: impl Fn() -> M + Sync,
    length: impl Fn(&mut M, usize) -> usize + Sync,
    fill: impl Fn(&mut M, usize, &mut [u32], &mut [T]) + Sync,
) -> Result<Csr<T>> {
    let mut row_ptr = pages::zeroed::<u32>(operation, rows + 1)?;
    let count = |memory: &mut M, (run, ends): (usize, &mut [u32])| {
        ends.iter_mut().zip(run * RUN..).fold(0, |sum, (end, i)| {
            let entries = length(memory, i);
            *end = entries as u32;
            sum + entries
        })
    };
    let counted = map_with(row_ptr[1..].chunks_mut(RUN).enumerate(), &init, count);
    check_sizes(operation, rows, cols, counted.into_iter().sum())?;
    let end = to_ends(&mut row_ptr);
    let mut col_idx = pages::zeroed::<u32>(operation, end as usize)?;
    let mut values = pages::zeroed::<T>(operation, end as usize)?;
    let runs: Vec<_> = parallel::ranges(rows, RUN).collect();
    let entries = || runs.iter().map(|run| (row_ptr[run.end] - row_ptr[run.start]) as usize);
    let parts = cut(&mut col_idx, entries()).into_iter().zip(cut(&mut values, entries()));
    let write = |memory: &mut M, (run, (mut columns, mut values)): (Range<usize>, (&mut [u32], &mut [T]))| {
        let mut wrong = None;
        for (i, n) in run.clone().zip(lengths(&row_ptr[run.start..=run.end])) {
            let (own_columns, own_values);
            (own_columns, columns) = columns.split_at_mut(n);
            (own_values, values) = values.split_at_mut(n);
            fill(memory, i, own_columns, own_values);
            let fits = own_columns.last().is_none_or(|&j| (j as usize) < cols);
            let increase = own_columns.windows(2).fold(true, |all, w| all & (w[0] < w[1]));
            if !(fits && increase && own_values.iter().all(|v| v.finite())) && wrong.is_none() {
                wrong = Some((i, error(operation, i, cols, own_columns, own_values)));
            }
        }
        wrong
    };
    let wrong = map_with(runs.iter().cloned().zip(parts), &init, write);
    match wrong.into_iter().flatten().min_by_key(|(row, _)| *row) {
        Some((_, error)) => Err(error),
        None => Ok(Csr::assembled(rows, cols, row_ptr, col_idx, values)),
    }
}

/// A matrix with the pattern of another, whose row `i` has the values that `fill(i, columns, values)` writes over zeros, with
/// working memory for each thread, created by `init`.
///
/// # Errors
/// [`Error::Entry`] for the first value that is not finite; [`Error::OutOfMemory`].
pub fn refill_rows_with<T: Scalar, M: Send>(
    operation: &'static str,
    pattern: &Csr<T>,
    init: impl Fn() -> M + Sync,
    fill: impl Fn(&mut M, usize, &[u32], &mut [T]) + Sync,
) -> Result<Csr<T>> {
    let mut made = pattern.zeroed()?;
    let (row_ptr, columns, values) = made.parts_mut();
    let runs: Vec<_> = parallel::ranges(row_ptr.len() - 1, RUN).collect();
    let entries = runs.iter().map(|run| (row_ptr[run.end] - row_ptr[run.start]) as usize);
    let parts = cut(values, entries);
    let write = |memory: &mut M, (run, mut values): (&Range<usize>, &mut [T])| {
        let mut wrong = None;
        for i in run.clone() {
            let own = &columns[row_ptr[i] as usize..row_ptr[i + 1] as usize];
            let own_values;
            (own_values, values) = values.split_at_mut(own.len());
            fill(memory, i, own, own_values);
            if wrong.is_none() && !own_values.iter().all(|v| v.finite()) {
                wrong = Some(error(operation, i, usize::MAX, own, own_values));
            }
        }
        wrong
    };
    let wrong = map_with(runs.iter().zip(parts), &init, write);
    wrong.into_iter().flatten().next().map_or(Ok(made), Err)
}

/// Describes the error of a row.
#[cold]
fn error<T: Scalar>(operation: &str, row: usize, cols: usize, columns: &[u32], values: &[T]) -> Error {
    if let Some(k) = values.iter().position(|v| !v.finite()) {
        return not_finite(operation, row, columns[k] as usize, values[k]);
    }
    let at = columns.windows(2).find(|w| w[0] >= w[1]).map(|w| w[1]);
    let message = match at {
        Some(_) => "the column is not above the one before".into(),
        None => format!("the matrix has {cols} columns"),
    };
    let column = at.or(columns.last().copied()).unwrap_or(0) as usize;
    Error::Entry { operation: operation.into(), row, column, message }
}
