//! `y ← A x` in slices of 32 rows: 12 bytes a place in `f64`, one row per lane.
use crate::simd::gather::gather;
use crate::simd::known::Known;
use crate::simd::numbers::{F32, F64, Real, load, store};
use crate::simd::prefetch::prefetch;
use crate::spmm::sell::{ROWS, part};
use bytemuck::Zeroable;
use lacuna_engine::Scalar;
use lacuna_formats::{SLICE, Sell};
use pulp::Simd;

/// Prefetch distance in places.
const AHEAD: usize = 512;

/// `y[i] ← (A x)[i]` for the rows `start..end`.
///
/// # Safety
/// `x` must be valid for the columns of `a` and `y` for its rows; the rows must exist and `start` must begin
/// a segment.
#[inline(always)]
pub(crate) unsafe fn rows<T: Scalar, S: Simd>(
    simd: S,
    a: &Sell<T>,
    x: *const T,
    y: *mut T,
    start: usize,
    end: usize,
) {
    let (slice_ptr, row_of) = (a.slice_ptr(), a.row_of());
    for s in start / SLICE..end.div_ceil(SLICE) {
        let (first, last) = (slice_ptr[s] as usize * SLICE, slice_ptr[s + 1] as usize * SLICE);
        // SAFETY: columns of a valid matrix are in range, also those of padding.
        let sums = unsafe { slice(simd, a.col_idx().as_ptr(), a.values().as_ptr(), x, first, last) };
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
/// The places must exist and `x` must be valid for their columns.
#[inline(always)]
pub(crate) unsafe fn slice<T: Scalar, C: Copy + Into<u32>, S: Simd>(
    simd: S,
    col_idx: *const C,
    values: *const T,
    x: *const T,
    first: usize,
    last: usize,
) -> [T; SLICE] {
    // SAFETY: as the caller promises.
    unsafe {
        let (f64s, f32s) = ((values.cast(), x.cast()), (values.cast(), x.cast()));
        if Known::<T, S>::F64_IN_64 {
            bytemuck::cast(registers::<F64, S, C, 4, 8>(simd, col_idx, f64s, first, last))
        } else if Known::<T, S>::F32_IN_64 {
            bytemuck::cast(registers::<F32, S, C, 2, 16>(simd, col_idx, f32s, first, last))
        } else if Known::<T, S>::F64_IN_32 {
            bytemuck::cast(registers::<F64, S, C, 8, 4>(simd, col_idx, f64s, first, last))
        } else if Known::<T, S>::F32_IN_32 {
            bytemuck::cast(registers::<F32, S, C, 4, 8>(simd, col_idx, f32s, first, last))
        } else {
            numbers(col_idx, values, x, first, last)
        }
    }
}

/// Prefetches the 32 places `AHEAD` places further on.
#[inline(always)]
fn ahead<T, C>(col_idx: *const C, values: *const T, at: usize) {
    for line in (0..SLICE * size_of::<T>()).step_by(64) {
        prefetch(values.wrapping_add(at + AHEAD).wrapping_byte_add(line));
    }
    for line in (0..SLICE * size_of::<C>()).step_by(64) {
        prefetch(col_idx.wrapping_add(at + AHEAD).wrapping_byte_add(line));
    }
}

/// [`slice`] in `N` registers of `L` lanes.
#[inline(always)]
unsafe fn registers<R: Real<S>, S: Simd, C: Copy + Into<u32>, const N: usize, const L: usize>(
    simd: S,
    col_idx: *const C,
    (values, x): (*const R::Number, *const R::Number),
    first: usize,
    last: usize,
) -> [R::Number; SLICE] {
    debug_assert_eq!(N * L, SLICE, "registers of a slice");
    let mut sums = [R::splat(simd, R::Number::zeroed()); N];
    for at in (first..last).step_by(SLICE) {
        ahead(col_idx, values, at);
        for (k, sum) in sums.iter_mut().enumerate() {
            // SAFETY: as the caller promises.
            unsafe {
                let x = gather::<R, S, C, L>(x, col_idx.add(at + k * L));
                *sum = R::fma(simd, load::<R, S>(values.add(at), k), x, *sum);
            }
        }
    }
    let mut lanes = [R::Number::zeroed(); SLICE];
    // SAFETY: the registers have as many lanes in total.
    unsafe { store::<R, S>(lanes.as_mut_ptr(), &sums) };
    lanes
}

/// [`slice`] without vector registers, a few rows at a time.
#[inline(always)]
unsafe fn numbers<T: Scalar, C: Copy + Into<u32>>(
    col_idx: *const C,
    values: *const T,
    x: *const T,
    first: usize,
    last: usize,
) -> [T; SLICE] {
    let mut sums = [T::zero(); SLICE];
    for (k, sums) in sums.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
        // SAFETY: as the caller promises.
        *sums = unsafe { part(col_idx, values, [x], first..last, k * ROWS) }.map(|[sum]| sum);
    }
    sums
}
