//! `y ← A x` in packets of 1024 rows: 10 bytes a place in `f64`, 12 a far entry, 4 a row.
use crate::simd::prefetch::prefetch;
use crate::spmv::sell::slice;
use lacuna_engine::Scalar;
use lacuna_formats::{PACKET, Pkt, SLICE};
use pulp::Simd;

/// Prefetch distance in far entries.
const AHEAD: usize = 64;

/// `y[i] ← (A x)[i]` for the rows `start..end`.
///
/// # Safety
/// `x` must be valid for the columns of `a` and `y` for its rows; the rows must exist and `start` must begin
/// a segment.
#[inline(always)]
pub(crate) unsafe fn rows<T: Scalar, S: Simd>(
    simd: S,
    a: &Pkt<T>,
    x: *const T,
    y: *mut T,
    start: usize,
    end: usize,
) {
    let (slice_ptr, far_ptr) = (a.slice_ptr(), a.far_ptr());
    let (near, near_values) = (a.near().as_ptr(), a.near_values().as_ptr());
    let (far, far_values) = (a.far().as_ptr(), a.far_values().as_ptr());
    for s in start / SLICE..end.div_ceil(SLICE) {
        let (first, last) = (slice_ptr[s] as usize * SLICE, slice_ptr[s + 1] as usize * SLICE);
        // Points past the columns if a packet has no places.
        let of_packet = x.wrapping_add(s * SLICE / PACKET * PACKET);
        let lanes = s * SLICE..((s + 1) * SLICE).min(end);
        // SAFETY: rows that exist; places, entries and columns of a valid matrix are in range, also those of
        // padding.
        unsafe {
            let mut sums = slice(simd, near, near_values, of_packet, first, last);
            if far_ptr[lanes.start] < far_ptr[lanes.end] {
                for (row, sum) in lanes.clone().zip(&mut sums) {
                    let entries = far_ptr[row] as usize..far_ptr[row + 1] as usize;
                    prefetch(far.wrapping_add(entries.end + AHEAD));
                    prefetch(far_values.wrapping_add(entries.end + AHEAD));
                    for k in entries {
                        *sum = (*far_values.add(k)).fma(*x.add(*far.add(k) as usize), *sum);
                    }
                }
            }
            y.add(lanes.start).copy_from_nonoverlapping(sums.as_ptr(), lanes.len());
        }
    }
}
