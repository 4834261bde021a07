//! Checks of sizes and values that every format needs, and their errors.
use crate::parallel;
use lacuna_engine::{Error, Result, Scalar, compiled_here};

/// Minimum number of values per thread.
const GRAIN: usize = 8192;
/// Values that are looked at together.
const BLOCK: usize = 1024;

/// Checks that rows, columns and entries fit in 32-bit indices.
///
/// # Errors
/// When one does not.
pub fn check_sizes(operation: &str, rows: usize, cols: usize, entries: usize) -> Result<()> {
    for (what, size) in [("rows", rows), ("columns", cols), ("entries", entries)] {
        if size > u32::MAX as usize {
            return Err(Error::Structure {
                operation: operation.into(),
                message: format!("{size} {what} are more than 32-bit indices count ({})", u32::MAX),
            });
        }
    }
    Ok(())
}

/// A size of memory in words, in the unit that leaves it two digits or more.
pub(crate) fn in_words(bytes: usize) -> String {
    match bytes {
        0..10_000_000 => format!("{} KB", bytes.div_ceil(1000)),
        _ => format!("{} MB", bytes.div_ceil(1_000_000)),
    }
}

/// Row and column of entry `k`.
pub(crate) fn position(row_ptr: &[u32], col_idx: &[u32], k: usize) -> (usize, usize) {
    (row_ptr.partition_point(|&p| p as usize <= k).saturating_sub(1), col_idx[k] as usize)
}

/// An error for the first value that is not finite.
pub(crate) fn check_finite<T: Scalar>(
    operation: &str,
    row_ptr: &[u32],
    col_idx: &[u32],
    values: &[T],
) -> Result<()> {
    let k = compiled_here!(T, |values: &[T]| -> Option<usize> {
        // In blocks, so that vector instructions serve.
        let blocks: Vec<&[T]> = values.chunks(BLOCK).collect();
        let finite = |block: &[T]| block.iter().fold(true, |all, v| all & v.finite());
        let block = parallel::find_first(blocks.len(), GRAIN / BLOCK, |k| !finite(blocks[k]))?;
        blocks[block].iter().position(|v| !v.finite()).map(|k| block * BLOCK + k)
    })(values);
    match k {
        None => Ok(()),
        Some(k) => {
            let (row, column) = position(row_ptr, col_idx, k);
            Err(not_finite(operation, row, column, values[k]))
        }
    }
}

/// The error for an entry that is not finite.
pub(crate) fn not_finite<T: Scalar>(operation: &str, row: usize, column: usize, value: T) -> Error {
    let message = format!("{value} is not a finite number of type {}", T::KIND.name());
    Error::Entry { operation: operation.into(), row, column, message }
}
