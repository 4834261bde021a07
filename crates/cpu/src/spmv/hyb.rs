//! `y ← A x` for slices and coordinates: 12 bytes a place in slices, 16 a coordinate, 12 an entry of a piece
//! in `f64`.
use crate::simd::prefetch::prefetch;
use crate::spmv::{csr, sell};
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::{MAX_LANES, Scalar};
use lacuna_formats::{Hyb, SLICE};
use pulp::Simd;
use std::ops::Range;

/// Prefetch distance in coordinates.
const AHEAD: usize = 512;

/// The pieces of thread `me` of `threads`, balanced by entries.
pub(crate) fn share<T: Scalar>(a: &Hyb<T>, me: usize, threads: usize) -> Range<usize> {
    let ptr = a.layout().piece_ptr();
    let (first, last) = (ptr[0] as usize, ptr[ptr.len() - 1] as usize);
    let border = |t: usize| match t == threads {
        true => ptr.len() - 1,
        false => ptr.partition_point(|&p| (p as usize - first) < (last - first) / threads * t),
    };
    border(me).min(ptr.len() - 1)..border(me + 1).min(ptr.len() - 1)
}

/// The pieces of the long rows in some segments.
pub(crate) fn pieces_of<T: Scalar>(a: &Hyb<T>, segments: Range<usize>) -> Range<usize> {
    let layout = a.layout();
    let [first, end] = [segments.start, segments.end].map(|s| layout.segment_long()[s] as usize);
    layout.long_ptr()[first] as usize..layout.long_ptr()[end] as usize
}

/// `sums[q] ←` the sum of piece `q`, for the given pieces.
///
/// # Safety
/// `x` must be valid for the columns of `a` and `sums` for its pieces.
#[inline(always)]
pub(crate) unsafe fn pieces<T: Scalar, S: Simd>(
    simd: S,
    a: &Hyb<T>,
    x: *const T,
    sums: *mut T,
    pieces: Range<usize>,
) {
    let (col_idx, values) = (a.col_idx().as_ptr(), a.values().as_ptr());
    for q in pieces {
        let (first, last) = (a.layout().piece_ptr()[q] as usize, a.layout().piece_ptr()[q + 1] as usize);
        // SAFETY: places and columns of a valid matrix are in range.
        unsafe { *sums.add(q) = csr::sum::<T, S, MAX_LANES>(simd, values, col_idx, x, first, last) };
    }
}

/// `y[i] ← (A x)[i]` for the rows `start..end`.
///
/// # Safety
/// `x` must be valid for the columns of `a`, `y` for its rows and `sums` for its pieces, which must already
/// be summed; the rows must exist and `start` must begin a segment.
#[inline(always)]
pub(crate) unsafe fn rows<T: Scalar, S: Simd>(
    simd: S,
    a: &Hyb<T>,
    x: *const T,
    y: *mut T,
    sums: *const T,
    start: usize,
    end: usize,
) {
    let layout = a.layout();
    let (slice_ptr, col_idx, values) = (layout.slice_ptr(), a.col_idx().as_ptr(), a.values().as_ptr());
    // SAFETY: rows that exist; places and columns of a valid matrix are in range.
    unsafe {
        for s in start / SLICE..end.div_ceil(SLICE) {
            let (first, last) = (slice_ptr[s] as usize * SLICE, slice_ptr[s + 1] as usize * SLICE);
            let in_slice = sell::slice(simd, col_idx, values, x, first, last);
            let lanes = s * SLICE..((s + 1) * SLICE).min(end);
            y.add(lanes.start).copy_from_nonoverlapping(in_slice.as_ptr(), lanes.len());
        }
        for segment in start / SEGMENT..end.div_ceil(SEGMENT) {
            let ends = &layout.segment_ptr()[segment..segment + 2];
            coordinates(a, x, y, ends[0] as usize, ends[1] as usize);
            for long in layout.segment_long()[segment]..layout.segment_long()[segment + 1] {
                let row = layout.long_rows()[long as usize] as usize;
                let ends = &layout.long_ptr()[long as usize..long as usize + 2];
                let mut rest = *sums.add(ends[0] as usize);
                (ends[0] + 1..ends[1]).for_each(|q| rest += *sums.add(q as usize));
                *y.add(row) += rest;
            }
        }
    }
}

/// Continues the sums of the rows of the coordinates `first..last`.
#[inline(always)]
unsafe fn coordinates<T: Scalar>(a: &Hyb<T>, x: *const T, y: *mut T, first: usize, last: usize) {
    let (row_idx, col_idx, values) = (a.row_idx().as_ptr(), a.col_idx().as_ptr(), a.values().as_ptr());
    let row_of = row_idx.wrapping_sub(a.layout().in_slices());
    let mut k = first;
    // SAFETY: as in `rows`; place `k` is a coordinate, after the places of the slices, so that its row
    // exists.
    unsafe {
        while k < last {
            let row = *row_of.add(k);
            let mut sum = *y.add(row as usize);
            prefetch(row_of.wrapping_add(k + AHEAD));
            prefetch(col_idx.wrapping_add(k + AHEAD));
            while k < last && *row_of.add(k) == row {
                sum = (*values.add(k)).fma(*x.add(*col_idx.add(k) as usize), sum);
                prefetch(values.wrapping_add(k + AHEAD));
                k += 1;
            }
            *y.add(row as usize) = sum;
        }
    }
}
