//! `y ← A x` for compressed rows with packed columns: 10 bytes an entry in `f64`, 6 where values are narrow; 8 a row.
use crate::lanes::halved;
use crate::prefetch::prefetch;
use lacuna_core::{Format, Scalar};
use lacuna_formats::{Packed, Values, widened};

/// Entries between what is computed and what is asked for from memory.
const AHEAD: usize = 1024;

/// `y[i] ← (A x)[i]` for the rows `start..end`.
///
/// # Safety
/// `x` must be valid for the columns of `a` and `y` for its rows; the rows must exist.
#[inline(always)]
pub(crate) unsafe fn rows<T: Scalar>(a: &Packed<T>, x: *const T, y: *mut T, start: usize, end: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        match a.values() {
            Values::Full(values) => of_lanes(a, values, |v| v, x, y, start, end),
            Values::Narrow(values) => of_lanes(a, values, widened::<T>, x, y, start, end),
        }
    }
}

#[inline(always)]
unsafe fn of_lanes<T: Scalar, V: Copy>(
    a: &Packed<T>,
    values: &[V],
    widen: impl Fn(V) -> T + Copy,
    x: *const T,
    y: *mut T,
    start: usize,
    end: usize,
) {
    // SAFETY: as the caller promises.
    unsafe {
        match a.lanes() {
            1 => lanes::<T, V, 1>(a, values, widen, x, y, start, end),
            2 => lanes::<T, V, 2>(a, values, widen, x, y, start, end),
            4 => lanes::<T, V, 4>(a, values, widen, x, y, start, end),
            8 => lanes::<T, V, 8>(a, values, widen, x, y, start, end),
            16 => lanes::<T, V, 16>(a, values, widen, x, y, start, end),
            _ => lanes::<T, V, 32>(a, values, widen, x, y, start, end),
        }
    }
}

/// Short rows whose entries are asked for at once.
const ROWS: usize = 8;

#[inline(always)]
unsafe fn lanes<T: Scalar, V: Copy, const W: usize>(
    a: &Packed<T>,
    values: &[V],
    widen: impl Fn(V) -> T,
    x: *const T,
    y: *mut T,
    start: usize,
    end: usize,
) {
    let (row_ptr, firsts) = (a.row_ptr().as_ptr(), a.first_columns().as_ptr());
    let (distances, values) = (a.distances().as_ptr(), values.as_ptr());
    // SAFETY: a valid matrix: rows, entries and columns are in range.
    unsafe {
        let term = |x: *const T, k: usize, sum: T| {
            widen(*values.add(k)).fma(*x.add(*distances.add(k) as usize), sum)
        };
        let mut i = start;
        while i < end {
            let rows = (end - i).min(if W == 1 { ROWS } else { 1 });
            let (first, last) = (*row_ptr.add(i) as usize, *row_ptr.add(i + rows) as usize);
            for k in (first..last).step_by(64 / size_of::<V>()) {
                prefetch(values.wrapping_add(k + AHEAD));
            }
            for k in (first..last).step_by(32) {
                prefetch(distances.wrapping_add(k + AHEAD));
            }
            let mut k = first;
            for i in i..i + rows {
                let last = *row_ptr.add(i + 1) as usize;
                let x = x.add(*firsts.add(i) as usize);
                let mut sums = [T::zero(); W];
                while k + W <= last {
                    for (j, sum) in sums.iter_mut().enumerate() {
                        *sum = term(x, k + j, *sum);
                    }
                    k += W;
                }
                for (sum, k) in sums.iter_mut().zip(k..last) {
                    *sum = term(x, k, *sum);
                }
                k = last;
                *y.add(i) = halved(sums);
            }
            i += rows;
        }
    }
}
