//! `y ← A x` in slices of 32 rows: 12 bytes a place in `f64`, a row in each lane.
use crate::prefetch::prefetch;
use lacuna_core::Scalar;
use lacuna_formats::{SLICE, Sell};

/// Places between what is computed and what is asked for from memory.
const AHEAD: usize = 512;

/// `y[i] ← (A x)[i]` for the rows `start..end`.
///
/// # Safety
/// `x` must be valid for the columns of `a` and `y` for its rows; the rows must exist and `start` begin a segment.
#[inline(always)]
pub(crate) unsafe fn rows<T: Scalar>(a: &Sell<T>, x: *const T, y: *mut T, start: usize, end: usize) {
    let (slice_ptr, row_of) = (a.slice_ptr(), a.row_of());
    for s in start / SLICE..end.div_ceil(SLICE) {
        let (first, last) = (slice_ptr[s] as usize * SLICE, slice_ptr[s + 1] as usize * SLICE);
        // SAFETY: columns of a valid matrix are in range, places that pad it too.
        let sums = unsafe { slice(a.col_idx().as_ptr(), a.values().as_ptr(), x, first, last) };
        let lanes = s * SLICE..((s + 1) * SLICE).min(end);
        // SAFETY: rows that exist.
        unsafe {
            if row_of.is_empty() {
                y.add(lanes.start).copy_from_nonoverlapping(sums.as_ptr(), lanes.len());
            } else {
                for (&row, &sum) in row_of[lanes].iter().zip(&sums) {
                    *y.add(row as usize) = sum;
                }
            }
        }
    }
}

/// The sums of the 32 lanes of the slice at the places `first..last`.
///
/// # Safety
/// The places must exist and `x` be valid for their columns.
#[inline(always)]
pub(crate) unsafe fn slice<T: Scalar, C: Copy + Into<u32>>(
    col_idx: *const C,
    values: *const T,
    x: *const T,
    first: usize,
    last: usize,
) -> [T; SLICE] {
    let mut sums = [T::zero(); SLICE];
    let mut at = first;
    while at < last {
        // SAFETY: as the caller promises.
        unsafe {
            for line in (0..SLICE * size_of::<T>()).step_by(64) {
                prefetch(values.wrapping_add(at + AHEAD).wrapping_byte_add(line));
            }
            for line in (0..SLICE * size_of::<C>()).step_by(64) {
                prefetch(col_idx.wrapping_add(at + AHEAD).wrapping_byte_add(line));
            }
            for (l, sum) in sums.iter_mut().enumerate() {
                let column: u32 = (*col_idx.add(at + l)).into();
                *sum = (*values.add(at + l)).fma(*x.add(column as usize), *sum);
            }
        }
        at += SLICE;
    }
    sums
}
