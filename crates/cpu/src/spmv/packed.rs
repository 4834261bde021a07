//! `y ← A x` for compressed rows with packed columns: 10 bytes an entry in `f64`, 6 if values are narrow; 8 a
//! row.
use crate::simd::lanes::row_sum;
use crate::simd::outlined::outlined_rows;
use crate::simd::prefetch::prefetch;
use lacuna_engine::{Format, Scalar};
use lacuna_formats::{Packed, Values, widened};
use pulp::Simd;

/// Prefetch distance in entries.
const AHEAD: usize = 1024;

/// `y[i] ← (A x)[start + i]` for each `i`.
#[inline(always)]
pub(crate) fn rows<T: Scalar, S: Simd>(simd: S, a: &Packed<T>, x: &[T], y: &mut [T], start: usize) {
    match a.values() {
        Values::Full(values) => of_lanes(simd, a, values, |v| v, x, y, start),
        Values::Narrow(values) => of_lanes(simd, a, values, widened::<T>, x, y, start),
    }
}

#[inline(always)]
fn of_lanes<T: Scalar, V: Copy, S: Simd>(
    simd: S,
    a: &Packed<T>,
    values: &[V],
    widen: impl Fn(V) -> T + Copy,
    x: &[T],
    y: &mut [T],
    start: usize,
) {
    match a.lanes() {
        1 => outlined_rows!(simd, lanes::<T, V, S, 1>(simd, a, values, widen, x, y, start)),
        2 => outlined_rows!(simd, lanes::<T, V, S, 2>(simd, a, values, widen, x, y, start)),
        4 => outlined_rows!(simd, lanes::<T, V, S, 4>(simd, a, values, widen, x, y, start)),
        8 => outlined_rows!(simd, lanes::<T, V, S, 8>(simd, a, values, widen, x, y, start)),
        16 => outlined_rows!(simd, lanes::<T, V, S, 16>(simd, a, values, widen, x, y, start)),
        _ => outlined_rows!(simd, lanes::<T, V, S, 32>(simd, a, values, widen, x, y, start)),
    }
}

/// Number of short rows whose entries are prefetched together.
const ROWS: usize = 8;

#[inline(always)]
fn lanes<T: Scalar, V: Copy, S: Simd, const W: usize>(
    simd: S,
    a: &Packed<T>,
    values: &[V],
    widen: impl Fn(V) -> T,
    x: &[T],
    y: &mut [T],
    start: usize,
) {
    let rows = start..start + y.len();
    assert!(x.len() >= a.shape().1 && rows.end <= a.shape().0, "a vector as long as a row, and rows");
    assert!(values.len() == a.distances().len(), "the values of the matrix");
    let (x, y) = (x.as_ptr(), y.as_mut_ptr().wrapping_sub(start));
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
                *y.wrapping_add(i) = row_sum::<T, S, W>(simd, (k, last), term, |_| {});
                k = last;
            }
            i += count;
        }
    }
}
