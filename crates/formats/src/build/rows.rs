//! A matrix from a function that lists each row.
use crate::Csr;
use crate::algebra::sort_order;
use crate::build::assemble::{SHORT, outside};
use crate::parallel;
use crate::storage::checks::{check_sizes, not_finite};
use lacuna_engine::pages::zeroed;
use lacuna_engine::{Error, Result, Scalar, compiled_here};

/// Maximum number of rows per task.
const SHARE: usize = 4096;
/// Minimum number of tasks, if there are enough rows.
const TASKS: usize = 64;

/// The matrix of `rows` rows and columns whose row `i` has the entries pushed by `row(i, …)`, in any order,
/// with repeated columns summed in the order pushed. Each row is listed twice: to count and to fill.
///
/// # Errors
/// When a column is out of range, a sum is not finite, a row is not listed the same twice, or the rows or entries are more than
/// 32-bit indices count.
///
/// ```
/// use lacuna_formats::build::from_rows;
///
/// let a = from_rows("a bidiagonal matrix", 3, |i, row| {
///     row.push((i as u32, 2.0));
///     if i > 0 {
///         row.push((i as u32 - 1, -1.0));
///     }
/// })?;
/// assert_eq!((a.nnz(), a.get(2, 1)), (5, Some(-1.0)));
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
pub fn from_rows<T: Scalar>(
    operation: &str,
    rows: usize,
    row: impl Fn(usize, &mut Vec<(u32, T)>) + Sync,
) -> Result<Csr<T>> {
    rectangular(operation, [rows, rows], &row)
}

/// Lists the entries of a row. A trait object, so that the code that builds the matrix is compiled once per
/// number type.
pub type Row<'a, T> = dyn Fn(usize, &mut Vec<(u32, T)>) + Sync + 'a;

/// As [`from_rows`], with the numbers of rows and columns.
///
/// # Errors
/// As [`from_rows`].
pub fn rectangular<T: Scalar>(operation: &str, size: [usize; 2], row: &Row<'_, T>) -> Result<Csr<T>> {
    compiled_here!(T, |operation: &str, size: [usize; 2], row: &Row<'_, T>| -> Result<Csr<T>> {
        listed(operation, size, row)
    })(operation, size, row)
}

/// Sorts entries by column; those of a column keep their order.
fn sort_by_column<T: Copy>(entries: &mut [(u32, T)]) {
    if entries.len() <= SHORT {
        for k in 1..entries.len() {
            let mut at = k;
            while at > 0 && entries[at - 1].0 > entries[at].0 {
                entries.swap(at - 1, at);
                at -= 1;
            }
        }
        return;
    }
    let (columns, unsorted): (Vec<u32>, _) = (entries.iter().map(|e| e.0).collect(), entries.to_vec());
    let mut order = Vec::new();
    sort_order(&columns, &mut order);
    entries.iter_mut().zip(order).for_each(|(e, place)| *e = unsorted[place as u32 as usize]);
}

fn listed<T: Scalar>(operation: &str, [rows, cols]: [usize; 2], row: &Row<'_, T>) -> Result<Csr<T>> {
    check_sizes(operation, rows, cols, 0)?;
    let share_rows = (rows / TASKS).clamp(1, SHARE);
    let list = |i: usize, entries: &mut Vec<(u32, T)>| {
        entries.clear();
        row(i, entries);
        if !entries.windows(2).all(|w| w[0].0 < w[1].0) {
            sort_by_column(entries);
            entries.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                if same {
                    kept.1 += later.1;
                }
                same
            });
        }
    };
    let mut row_ptr: Vec<u32> = zeroed(operation, rows + 1)?;
    parallel::for_each(row_ptr[1..].chunks_mut(share_rows).enumerate(), |(share, lengths)| {
        let mut entries = Vec::new();
        for (k, length) in lengths.iter_mut().enumerate() {
            list(share * share_rows + k, &mut entries);
            *length = entries.len() as u32;
        }
    });
    check_sizes(operation, rows, cols, row_ptr.iter().map(|&length| length as usize).sum())?;
    let mut end = 0;
    for p in &mut row_ptr {
        end += *p;
        *p = end;
    }

    let (mut col_idx, mut values): (Vec<u32>, Vec<T>) =
        (zeroed(operation, end as usize)?, zeroed(operation, end as usize)?);
    let (mut columns, mut numbers) = (&mut col_idx[..], &mut values[..]);
    let mut tasks = Vec::with_capacity(rows.div_ceil(share_rows));
    for share in parallel::ranges(rows, share_rows) {
        let size = (row_ptr[share.end] - row_ptr[share.start]) as usize;
        let (own_columns, rest_columns) = columns.split_at_mut(size);
        let (own_numbers, rest_numbers) = numbers.split_at_mut(size);
        tasks.push((share, own_columns, own_numbers));
        (columns, numbers) = (rest_columns, rest_numbers);
    }
    let filled = parallel::map(tasks, |(share, columns, numbers)| {
        let (mut places, mut entries) = (columns.iter_mut().zip(numbers), Vec::new());
        for i in share {
            list(i, &mut entries);
            let counted = (row_ptr[i + 1] - row_ptr[i]) as usize;
            if entries.len() != counted {
                let message =
                    format!("row {i} was listed with {counted} entries, then with {}", entries.len());
                return Err(Error::Structure { operation: operation.into(), message });
            }
            for (&(j, v), (column, number)) in entries.iter().zip(&mut places) {
                if j as usize >= cols {
                    return Err(outside(operation, rows, cols, (i as u32, j)));
                }
                if !v.finite() {
                    return Err(not_finite(operation, i, j as usize, v));
                }
                (*column, *number) = (j, v);
            }
        }
        Ok(())
    });
    filled.into_iter().collect::<Result<()>>()?;
    Ok(Csr::assembled(rows, cols, row_ptr, col_idx, values))
}
