//! `y ← A x` for compressed sparse rows: 12 bytes an entry in `f64`, 4 a row. Long rows are summed in pieces:
//! see `lacuna_engine::is_long`.
use crate::simd::lanes::row_sum;
use crate::simd::outlined::outlined_rows;
use crate::simd::prefetch::prefetch;
use lacuna_engine::{Format, MAX_LANES, Scalar, is_long, piece_of};
use lacuna_formats::Csr;
use pulp::Simd;

/// `y[i] ← (A x)[i]` for the rows `start..end`.
///
/// # Safety
/// `x` must be valid for the columns of `a` and `y` for its rows; the rows must exist.
#[inline(always)]
pub(crate) unsafe fn rows<T: Scalar, S: Simd>(
    simd: S,
    a: &Csr<T>,
    x: *const T,
    y: *mut T,
    start: usize,
    end: usize,
) {
    match a.lanes() {
        1 => outlined_rows!(simd, single(simd, a, x, y, start, end)),
        2 => outlined_rows!(simd, pairs(simd, a, x, y, start, end)),
        4 => outlined_rows!(simd, lanes::<T, S, 4>(simd, a, x, y, start, end)),
        8 => outlined_rows!(simd, lanes::<T, S, 8>(simd, a, x, y, start, end)),
        16 => outlined_rows!(simd, lanes::<T, S, 16>(simd, a, x, y, start, end)),
        _ => outlined_rows!(simd, lanes::<T, S, 32>(simd, a, x, y, start, end)),
    }
}

/// Prefetch distance in entries: 4 KiB of `f64`.
const AHEAD: usize = 512;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Prefetches the entries `AHEAD` entries further on: `LINES` lines of values, and their columns. The number
/// of lines does not depend on the row length, since a loop that ends after one or two rounds is
/// mispredicted.
#[inline(always)]
fn ahead<T, const LINES: usize>(values: *const T, col_idx: *const u32, k: usize) {
    for line in 0..LINES {
        let k = k + AHEAD + line * LINE / size_of::<T>();
        prefetch(values.wrapping_add(k));
        if line.is_multiple_of(size_of::<T>() / size_of::<u32>()) {
            prefetch(col_idx.wrapping_add(k));
        }
    }
}

#[inline(always)]
unsafe fn single<T: Scalar, S: Simd>(simd: S, a: &Csr<T>, x: *const T, y: *mut T, start: usize, end: usize) {
    let (row_ptr, col_idx, values) = (a.row_ptr().as_ptr(), a.col_idx().as_ptr(), a.values().as_ptr());
    // SAFETY: a validated matrix: row pointers are in range and every column is below the number of columns.
    unsafe {
        let mut k = *row_ptr.add(start) as usize;
        for i in start..end {
            let last = *row_ptr.add(i + 1) as usize;
            ahead::<T, 1>(values, col_idx, k);
            if is_long(1, last - k) {
                *y.add(i) = in_pieces(simd, values, col_idx, x, k, last);
                k = last;
                continue;
            }
            let mut sum = T::zero();
            while k < last {
                sum = (*values.add(k)).fma(*x.add(*col_idx.add(k) as usize), sum);
                k += 1;
            }
            *y.add(i) = sum;
        }
    }
}

/// Two lanes, two rounds at once; a remaining entry is selected without a branch, since every other row has
/// one.
#[inline(always)]
unsafe fn pairs<T: Scalar, S: Simd>(simd: S, a: &Csr<T>, x: *const T, y: *mut T, start: usize, end: usize) {
    let (row_ptr, col_idx, values) = (a.row_ptr().as_ptr(), a.col_idx().as_ptr(), a.values().as_ptr());
    let behind = a.nnz().saturating_sub(1);
    // SAFETY: as in `single`; `behind` is an entry, since a matrix with two lanes is not empty.
    unsafe {
        let term = |k: usize, sum: T| (*values.add(k)).fma(*x.add(*col_idx.add(k) as usize), sum);
        let mut k = *row_ptr.add(start) as usize;
        for i in start..end {
            let last = *row_ptr.add(i + 1) as usize;
            ahead::<T, 3>(values, col_idx, k);
            if is_long(2, last - k) {
                *y.add(i) = in_pieces(simd, values, col_idx, x, k, last);
                k = last;
                continue;
            }
            let mut sums = [T::zero(); 2];
            while k + 3 < last {
                sums = [term(k, sums[0]), term(k + 1, sums[1])];
                sums = [term(k + 2, sums[0]), term(k + 3, sums[1])];
                k += 4;
            }
            if k + 1 < last {
                sums = [term(k, sums[0]), term(k + 1, sums[1])];
                k += 2;
            }
            let more = term(k.min(behind), sums[0]);
            let first = if k < last { more } else { sums[0] };
            *y.add(i) = first + sums[1];
            k = last;
        }
    }
}

#[inline(always)]
unsafe fn lanes<T: Scalar, S: Simd, const W: usize>(
    simd: S,
    a: &Csr<T>,
    x: *const T,
    y: *mut T,
    start: usize,
    end: usize,
) {
    let (row_ptr, col_idx, values) = (a.row_ptr().as_ptr(), a.col_idx().as_ptr(), a.values().as_ptr());
    // SAFETY: as in `single`.
    unsafe {
        let mut k = *row_ptr.add(start) as usize;
        for i in start..end {
            let last = *row_ptr.add(i + 1) as usize;
            *y.add(i) = if is_long(W, last - k) {
                in_pieces(simd, values, col_idx, x, k, last)
            } else {
                sum::<T, S, W>(simd, values, col_idx, x, k, last)
            };
            k = last;
        }
    }
}

/// The sum of a long row's entries `first..last`. A function of its own, once for all numbers of lanes.
///
/// # Safety
/// As [`sum`].
#[inline(always)]
unsafe fn in_pieces<T: Scalar, S: Simd>(
    simd: S,
    values: *const T,
    col_idx: *const u32,
    x: *const T,
    first: usize,
    last: usize,
) -> T {
    let mut all = T::zero();
    let to = &raw mut all;
    outlined_rows!(simd, *to = pieces(simd, values, col_idx, x, first, last));
    all
}

#[inline(always)]
unsafe fn pieces<T: Scalar, S: Simd>(
    simd: S,
    values: *const T,
    col_idx: *const u32,
    x: *const T,
    first: usize,
    last: usize,
) -> T {
    let piece = piece_of(last - first);
    let (mut k, mut all) = (first, None);
    while k < last {
        let end = last.min(k + piece);
        // SAFETY: as the caller promises.
        let next = unsafe { sum::<T, S, MAX_LANES>(simd, values, col_idx, x, k, end) };
        all = Some(all.map_or(next, |all: T| all + next));
        k = end;
    }
    all.unwrap_or(T::zero())
}

/// The sum of the entries `first..last` with `W` lanes.
///
/// # Safety
/// The entries must exist and `x` must be valid for their columns.
#[inline(always)]
pub(crate) unsafe fn sum<T: Scalar, S: Simd, const W: usize>(
    simd: S,
    values: *const T,
    col_idx: *const u32,
    x: *const T,
    first: usize,
    last: usize,
) -> T {
    // SAFETY: as the caller promises.
    let term = |k: usize| unsafe { (*values.add(k), *x.add(*col_idx.add(k) as usize)) };
    row_sum::<T, S, W>(simd, (first, last), term, |k| {
        for j in (0..2 * W).step_by(LINE / size_of::<T>()) {
            ahead::<T, 1>(values, col_idx, k + j);
        }
    })
}
