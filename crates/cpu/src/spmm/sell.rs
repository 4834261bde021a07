//! `Y ← A X` in slices of 32 rows: 12 bytes a place in `f64` for all columns together.
use crate::simd::prefetch::prefetch;
use crate::spmm::SpmmRows;
use lacuna_engine::Scalar;
use lacuna_formats::{SLICE, Sell};
use std::ops::Range;

/// Rows of a slice whose sums, for all columns, stay in registers.
pub(crate) const ROWS: usize = 4;

impl<T: Scalar> SpmmRows<T> for Sell<T> {
    const TOGETHER: usize = 4;

    #[inline(always)]
    unsafe fn rows<const K: usize>(&self, x: [*const T; K], y: [*mut T; K], start: usize, end: usize) {
        let (slice_ptr, row_of) = (self.slice_ptr(), self.row_of());
        for s in start / SLICE..end.div_ceil(SLICE) {
            let places = slice_ptr[s] as usize * SLICE..slice_ptr[s + 1] as usize * SLICE;
            for at in (s * SLICE..((s + 1) * SLICE).min(end)).step_by(ROWS) {
                // SAFETY: columns of a valid matrix are in range, also those of padding; rows that exist.
                unsafe {
                    let sums = part(
                        self.col_idx().as_ptr(),
                        self.values().as_ptr(),
                        x,
                        places.clone(),
                        at - s * SLICE,
                    );
                    for (at, sums) in (at..end).zip(sums) {
                        let row = if row_of.is_empty() { at } else { row_of[at] as usize };
                        y.into_iter().zip(sums).for_each(|(y, sum)| *y.add(row) = sum);
                    }
                }
            }
        }
    }
}

/// The sums of the lanes starting at `lane` of the slice at these places; prefetches the next slice in
/// storage order.
///
/// # Safety
/// The places must exist and `x` must be valid for their columns.
#[inline(always)]
pub(crate) unsafe fn part<T: Scalar, C: Copy + Into<u32>, const K: usize>(
    col_idx: *const C,
    values: *const T,
    x: [*const T; K],
    places: Range<usize>,
    lane: usize,
) -> [[T; K]; ROWS] {
    let mut sums = [[T::zero(); K]; ROWS];
    let mut ahead = places.end + places.len() / SLICE * lane;
    for at in places.step_by(SLICE) {
        prefetch(values.wrapping_add(ahead));
        prefetch(col_idx.wrapping_add(ahead));
        ahead += ROWS;
        for (l, sums) in sums.iter_mut().enumerate() {
            // SAFETY: as the caller promises.
            unsafe {
                let (value, column) = (*values.add(at + lane + l), (*col_idx.add(at + lane + l)).into());
                for (sum, x) in sums.iter_mut().zip(x) {
                    *sum = value.fma(*x.add(column as usize), *sum);
                }
            }
        }
    }
    sums
}
