//! `y ← A x` for compressed rows with packed columns: 10 bytes an entry in `f64`, 6 if values are narrow; 8 a
//! row.
use crate::simd::lanes::row_sum;
use crate::simd::outlined::outlined_rows;
use crate::simd::prefetch::prefetch;
use lacuna_engine::{Format, Scalar};
use lacuna_formats::{Packed, Values, widened};
use pulp::Simd;
use std::ops::Range;

/// Prefetch distance in entries.
const AHEAD: usize = 1024;

/// `y[i] ← (A x)[i]` for the rows `start..end`.
///
/// # Safety
/// `x` must be valid for the columns of `a` and `y` for its rows; the rows must exist.
#[inline(always)]
pub(crate) unsafe fn rows<T: Scalar, S: Simd>(
    simd: S,
    a: &Packed<T>,
    x: *const T,
    y: *mut T,
    start: usize,
    end: usize,
) {
    // SAFETY: as the caller promises.
    unsafe {
        match a.values() {
            Values::Full(values) => of_lanes(simd, a, values, |v| v, x, y, start..end),
            Values::Narrow(values) => of_lanes(simd, a, values, widened::<T>, x, y, start..end),
        }
    }
}

#[inline(always)]
unsafe fn of_lanes<T: Scalar, V: Copy, S: Simd>(
    simd: S,
    a: &Packed<T>,
    values: &[V],
    widen: impl Fn(V) -> T + Copy,
    x: *const T,
    y: *mut T,
    rows: Range<usize>,
) {
    match a.lanes() {
        1 => outlined_rows!(simd, lanes::<T, V, S, 1>(simd, a, values, widen, x, y, rows)),
        2 => outlined_rows!(simd, lanes::<T, V, S, 2>(simd, a, values, widen, x, y, rows)),
        4 => outlined_rows!(simd, lanes::<T, V, S, 4>(simd, a, values, widen, x, y, rows)),
        8 => outlined_rows!(simd, lanes::<T, V, S, 8>(simd, a, values, widen, x, y, rows)),
        16 => outlined_rows!(simd, lanes::<T, V, S, 16>(simd, a, values, widen, x, y, rows)),
        _ => outlined_rows!(simd, lanes::<T, V, S, 32>(simd, a, values, widen, x, y, rows)),
    }
}

/// Number of short rows whose entries are prefetched together.
const ROWS: usize = 8;

#[inline(always)]
unsafe fn lanes<T: Scalar, V: Copy, S: Simd, const W: usize>(
    simd: S,
    a: &Packed<T>,
    values: &[V],
    widen: impl Fn(V) -> T,
    x: *const T,
    y: *mut T,
    rows: Range<usize>,
) {
    let (row_ptr, firsts) = (a.row_ptr().as_ptr(), a.first_columns().as_ptr());
    let (distances, values) = (a.distances().as_ptr(), values.as_ptr());
    // SAFETY: a valid matrix: rows, entries and columns are in range.
    unsafe {
        let mut i = rows.start;
        while i < rows.end {
            let count = (rows.end - i).min(if W == 1 { ROWS } else { 1 });
            let (first, last) = (*row_ptr.add(i) as usize, *row_ptr.add(i + count) as usize);
            for k in (first..last).step_by(64 / size_of::<V>()) {
                prefetch(values.wrapping_add(k + AHEAD));
            }
            for k in (first..last).step_by(32) {
                prefetch(distances.wrapping_add(k + AHEAD));
            }
            let mut k = first;
            for i in i..i + count {
                let last = *row_ptr.add(i + 1) as usize;
                let x = x.add(*firsts.add(i) as usize);
                let term = |k: usize| (widen(*values.add(k)), *x.add(*distances.add(k) as usize));
                *y.add(i) = row_sum::<T, S, W>(simd, (k, last), term, |_| {});
                k = last;
            }
            i += count;
        }
    }
}
