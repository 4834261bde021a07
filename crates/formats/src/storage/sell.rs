//! Sliced ELLPACK: SELL-C-σ, and ELLPACK itself as the special case of a single width.
use crate::Csr;
use crate::build::cut::{cut, lengths};
use crate::parallel;
use crate::storage::checks::{check_sizes, in_words};
use crate::storage::padding::is_too_much;
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::{AlignedVec, Argument, Error, Format, Result, Scalar};
use std::ops::Range;

/// Rows of a slice, `C`: a warp of a GPU, four vectors of a CPU.
pub const SLICE: usize = 32;
/// A sparse matrix in slices of 32 rows, each as wide as its longest row: SELL-C-σ with `C = 32`.
///
/// With `σ = 256`, every 256 rows are sorted by length, longest first, so that slices have less padding;
/// results are written to the original rows. The `j`-th place of lane `l` of a slice that starts at column
/// `p` is at `(p + j) 32 + l`. A place without an entry holds zero and the column of the row's last entry; it
/// takes part in the row sum, which runs along the row with one fused multiply-add per place.
///
/// Reference: Kreutzer et al. 2014, doi:10.1137/130930352; ELLPACK: Bell and Garland 2008, section 2.2.
#[derive(Clone, Debug, PartialEq)]
pub struct Sell<T> {
    rows: usize,
    cols: usize,
    nnz: usize,
    /// The start of each slice, in columns of 32 places.
    slice_ptr: Vec<u32>,
    /// The row of each lane; `u32::MAX` for none. Empty if rows are in order.
    row_of: Vec<u32>,
    col_idx: Vec<u32>,
    values: AlignedVec<T>,
    kernel: &'static str,
}

impl<T: Scalar> Sell<T> {
    /// The same matrix in slices, with rows sorted by length within every 256 if that saves more than the 4
    /// bytes per row that the order costs.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for more than four places per entry, with the memory that would take;
    /// [`Error::OutOfMemory`].
    pub fn from_csr(a: &Csr<T>) -> Result<Self> {
        let [plain, sorted] = [false, true].map(|sorted| widths(a, sorted));
        let sorts = Self::bytes_of(&sorted, a.rows(), true) < Self::bytes_of(&plain, a.rows(), false);
        let widths = if sorts { sorted } else { plain };
        Self::filled(a, "Sell::from_csr", "sell", widths, sorts)
    }

    /// ELLPACK: all slices as wide as the longest row.
    ///
    /// # Errors
    /// As [`Sell::from_csr`].
    pub fn ellpack(a: &Csr<T>) -> Result<Self> {
        let widest = widths(a, false).into_iter().max().unwrap_or(0);
        let widths = vec![widest; a.rows().div_ceil(SLICE)];
        Self::filled(a, "Sell::ellpack", "ell", widths, false)
    }

    fn filled(
        a: &Csr<T>,
        operation: &str,
        kernel: &'static str,
        widths: Vec<u32>,
        sorts: bool,
    ) -> Result<Self> {
        let (rows, cols, nnz) = (a.rows(), a.cols(), a.nnz());
        check_lanes(operation, rows, cols, nnz)?;
        let columns: usize = widths.iter().map(|&w| w as usize).sum();
        let places = columns.saturating_mul(SLICE);
        if is_too_much(places, nnz) || columns > u32::MAX as usize {
            return Err(Error::Unsupported {
                operation: operation.into(),
                message: format!(
                    "rows of very different lengths would take {} for {nnz} entries ({} in csr); keep csr",
                    in_words(places.saturating_mul(4 + size_of::<T>())),
                    in_words(a.bytes()),
                ),
            });
        }
        let mut slice_ptr = Vec::with_capacity(widths.len() + 1);
        slice_ptr.push(0);
        slice_ptr.extend(widths.iter().scan(0, |end, &w| {
            *end += w;
            Some(*end)
        }));
        let mut row_of = Vec::new();
        if sorts {
            row_of = (0..rows.next_multiple_of(SLICE) as u32).collect();
            parallel::for_each_large(rows, row_of.chunks_mut(SEGMENT), |order| sort_rows(a, order));
        }
        let mut col_idx = lacuna_engine::pages::zeroed::<u32>(operation, places)?;
        let mut values = AlignedVec::<T>::zeroed(operation, places)?;
        let tasks = slices_of(&slice_ptr, &mut col_idx, &mut values);
        parallel::for_each_large(nnz, tasks.into_iter().enumerate(), |(s, (columns, entries))| {
            for l in 0..SLICE {
                let row = if sorts { row_of[s * SLICE + l] as usize } else { s * SLICE + l };
                fill_lane(columns, entries, l, a.row_slices(row));
            }
        });
        Ok(Sell { rows, cols, nnz, slice_ptr, row_of, col_idx, values, kernel })
    }

    fn bytes_of(widths: &[u32], rows: usize, sorts: bool) -> usize {
        let columns: usize = widths.iter().map(|&w| w as usize).sum();
        let order = if sorts { rows.next_multiple_of(SLICE) } else { 0 };
        columns.saturating_mul(SLICE * (4 + size_of::<T>())).saturating_add(4 * (widths.len() + 1 + order))
    }

    /// Bytes of the matrix in slices and in ELLPACK, and the places of each.
    pub(crate) fn footprints(a: &Csr<T>) -> [(usize, usize); 2] {
        let [plain, sorted] = [false, true].map(|sorted| widths(a, sorted));
        let places = |widths: &[u32]| widths.iter().map(|&w| w as usize).sum::<usize>() * SLICE;
        let ell = vec![plain.iter().copied().max().unwrap_or(0); plain.len()];
        let in_slices = [
            (Self::bytes_of(&plain, 0, false), places(&plain)),
            (Self::bytes_of(&sorted, a.rows(), true), places(&sorted)),
        ];
        let in_slices = if in_slices[1].0 < in_slices[0].0 { in_slices[1] } else { in_slices[0] };
        [in_slices, (Self::bytes_of(&ell, 0, false), places(&ell))]
    }

    /// The start of each slice, in columns of 32 places, and the end of the last.
    pub fn slice_ptr(&self) -> &[u32] {
        &self.slice_ptr
    }
    /// The row of each lane; `u32::MAX` for none. Empty if the lanes are the rows in order.
    pub fn row_of(&self) -> &[u32] {
        &self.row_of
    }
    /// The column of each place.
    pub fn col_idx(&self) -> &[u32] {
        &self.col_idx
    }
    /// The value of each place.
    pub fn values(&self) -> &[T] {
        &self.values
    }
}

impl<T: Scalar> Format<T> for Sell<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn nnz(&self) -> usize {
        self.nnz
    }

    fn kernel(&self) -> &'static str {
        self.kernel
    }

    fn arguments(&self) -> Vec<Argument<'_, T>> {
        vec![
            Argument::Size(u32::from(!self.row_of.is_empty())),
            Argument::Indices(&self.slice_ptr),
            Argument::Indices(&self.row_of),
            Argument::Indices(&self.col_idx),
            Argument::Values(&self.values),
        ]
    }

    fn row(&self, i: usize, x: &[T]) -> T {
        let segment = i / SEGMENT * SEGMENT;
        let lane = match self.row_of.get(segment..) {
            Some(order) if !order.is_empty() => {
                segment + order.iter().position(|&row| row as usize == i).unwrap_or(i % SEGMENT)
            }
            _ => i,
        };
        let (s, l) = (lane / SLICE, lane % SLICE);
        let columns: Range<usize> = self.slice_ptr[s] as usize..self.slice_ptr[s + 1] as usize;
        columns
            .map(|c| c * SLICE + l)
            .fold(T::zero(), |sum, at| self.values[at].fma(x[self.col_idx[at] as usize], sum))
    }
}

/// Number of entries of a row; 0 if there is no such row.
fn length<T: Scalar>(a: &Csr<T>, row: u32) -> u32 {
    match a.row_ptr().get(row as usize..row as usize + 2) {
        Some(ends) => ends[1] - ends[0],
        None => 0,
    }
}

/// Sorts the rows of a segment by decreasing length, stably; nonexistent rows come last.
fn sort_rows<T: Scalar>(a: &Csr<T>, order: &mut [u32]) {
    // Rows are in their order: what is sorted is their lengths from the longest on, each with its row.
    let key = |row: u32| u64::from(u32::MAX - length(a, row)) << 32 | u64::from(row);
    let there = order.iter().filter(|row| (**row as usize) < a.rows());
    let mut keys: Vec<u64> = there.map(|row| key(*row)).collect();
    keys.sort_unstable();
    let sorted = keys.iter().map(|key| *key as u32).chain(std::iter::repeat(u32::MAX));
    order.iter_mut().zip(sorted).for_each(|(row, sorted)| *row = sorted);
}

/// The width of each slice.
fn widths<T: Scalar>(a: &Csr<T>, sorted: bool) -> Vec<u32> {
    let segments = a.rows().div_ceil(SEGMENT);
    let of_segment = |s: usize| {
        let rows = (s * SEGMENT)..((s + 1) * SEGMENT).min(a.rows());
        let mut lengths = [0; SEGMENT];
        rows.clone().zip(&mut lengths).for_each(|(row, l)| *l = length(a, row as u32));
        let count = rows.len();
        if sorted {
            lengths[..count].sort_unstable_by(|a, b| b.cmp(a));
        }
        let widths: Vec<u32> =
            lengths[..count].chunks(SLICE).map(|c| c.iter().copied().max().unwrap_or(0)).collect();
        widths
    };
    parallel::map_large(a.rows(), 0..segments, of_segment).concat()
}

/// Fails unless 32-bit indices count the lanes of all slices.
fn check_lanes(operation: &str, rows: usize, cols: usize, nnz: usize) -> Result<()> {
    check_sizes(operation, rows.next_multiple_of(SLICE), cols, nnz)
}

/// Writes a row to lane `l` of a slice and pads it with its last column.
pub(crate) fn fill_lane<T: Scalar>(columns: &mut [u32], entries: &mut [T], l: usize, (c, v): (&[u32], &[T])) {
    for (j, (&c, &v)) in c.iter().zip(v).enumerate() {
        columns[j * SLICE + l] = c;
        entries[j * SLICE + l] = v;
    }
    let last = c.last().copied().unwrap_or(0);
    columns.iter_mut().skip(l).step_by(SLICE).skip(c.len()).for_each(|column| *column = last);
}

/// Splits both arrays into slices.
pub(crate) fn slices_of<'a, T>(
    slice_ptr: &[u32],
    col_idx: &'a mut [u32],
    values: &'a mut [T],
) -> Vec<(&'a mut [u32], &'a mut [T])> {
    let places = || lengths(slice_ptr).map(|columns| columns * SLICE);
    cut(col_idx, places()).into_iter().zip(cut(values, places())).collect()
}

#[cfg(test)]
mod tests {
    use super::{SLICE, check_lanes};

    #[test]
    fn the_lanes_of_the_last_slice_count() {
        let most = u32::MAX as usize / SLICE * SLICE;
        assert!(check_lanes("test", most, 1, 1).is_ok());
        for rows in [most + 1, u32::MAX as usize, u32::MAX as usize + 1] {
            let error = check_lanes("test", rows, 1, 1).unwrap_err().to_string();
            assert!(error.contains("rows are more than 32-bit indices count"), "{error}");
        }
    }
}
