//! `Y ← A X` in slices of 32 rows: 12 bytes a place in `f64` for all columns together.
use crate::prefetch::prefetch;
use crate::spmm::Columns;
use lacuna_core::Scalar;
use lacuna_formats::{SLICE, Sell};

/// Places between what is computed and what is asked for from memory.
const AHEAD: usize = 512;
/// Rows of a slice whose sums, of all columns, stay in registers.
const ROWS: usize = 8;

impl<T: Scalar> Columns<T> for Sell<T> {
    #[inline(always)]
    unsafe fn rows<const K: usize>(&self, x: [*const T; K], y: [*mut T; K], start: usize, end: usize) {
        let (slice_ptr, row_of) = (self.slice_ptr(), self.row_of());
        let (col_idx, values) = (self.col_idx().as_ptr(), self.values().as_ptr());
        for s in start / SLICE..end.div_ceil(SLICE) {
            let (first, last) = (slice_ptr[s] as usize * SLICE, slice_ptr[s + 1] as usize * SLICE);
            for at in (s * SLICE..((s + 1) * SLICE).min(end)).step_by(ROWS) {
                let lane = at - s * SLICE;
                // SAFETY: columns of a valid matrix are in range, places that pad it too; rows that exist.
                unsafe {
                    let sums = part(col_idx, values, x, first + lane, last);
                    for l in 0..ROWS.min(end - at) {
                        let row = if row_of.is_empty() { at + l } else { row_of[at + l] as usize };
                        for (y, sums) in y.iter().zip(&sums) {
                            *y.add(row) = sums[l];
                        }
                    }
                }
            }
        }
    }
}

/// The sums of some lanes of a slice: from the place of the first of them to the end of the slice.
#[inline(always)]
unsafe fn part<T: Scalar, const K: usize>(
    col_idx: *const u32,
    values: *const T,
    x: [*const T; K],
    first: usize,
    last: usize,
) -> [[T; ROWS]; K] {
    let mut sums = [[T::zero(); ROWS]; K];
    for at in (first..last).step_by(SLICE) {
        // SAFETY: as the caller promises.
        unsafe {
            for line in (0..ROWS * size_of::<T>()).step_by(64) {
                prefetch(values.wrapping_add(at + AHEAD).wrapping_byte_add(line));
            }
            prefetch(col_idx.wrapping_add(at + AHEAD));
            for (x, sums) in x.into_iter().zip(&mut sums) {
                for (l, sum) in sums.iter_mut().enumerate() {
                    *sum = (*values.add(at + l)).fma(*x.add(*col_idx.add(at + l) as usize), *sum);
                }
            }
        }
    }
    sums
}
