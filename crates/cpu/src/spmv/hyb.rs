//! `y ← A x` for slices and coordinates: 12 bytes a place in slices, 16 a coordinate, 12 an entry of a piece
//! in `f64`.
use crate::simd::prefetch::prefetch;
use crate::spmv::{csr, sell};
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::{Format, MAX_LANES, Scalar};
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

/// `sums[q] ←` the sum of piece `first + q` for each `q`.
#[inline(always)]
pub(crate) fn pieces<T: Scalar, S: Simd>(simd: S, a: &Hyb<T>, x: &[T], sums: &mut [T], first: usize) {
    assert!(x.len() >= a.shape().1, "a vector as long as a row");
    let (col_idx, values, x) = (a.col_idx().as_ptr(), a.values().as_ptr(), x.as_ptr());
    let piece_ptr = &a.layout().piece_ptr()[first..];
    for (sum, ends) in sums.iter_mut().zip(piece_ptr.array_windows()) {
        let [first, last] = ends.map(|end| end as usize);
        // SAFETY: places and columns of a valid matrix are in range.
        *sum = unsafe { csr::sum::<T, S, MAX_LANES>(simd, values, col_idx, x, first, last) };
    }
}

/// `y[i] ← (A x)[start + i]` for each `i`, where `sums` are those of all pieces; `start` must begin a segment.
#[inline(always)]
pub(crate) fn rows<T: Scalar, S: Simd>(simd: S, a: &Hyb<T>, x: &[T], y: &mut [T], sums: &[T], start: usize) {
    assert!(x.len() >= a.shape().1, "a vector as long as a row");
    let (layout, end) = (a.layout(), start + y.len());
    let (slice_ptr, col_idx, values) = (layout.slice_ptr(), a.col_idx().as_ptr(), a.values().as_ptr());
    for s in start / SLICE..end.div_ceil(SLICE) {
        let (first, last) = (slice_ptr[s] as usize * SLICE, slice_ptr[s + 1] as usize * SLICE);
        // SAFETY: places and columns of a valid matrix are in range.
        let in_slice = unsafe { sell::slice(simd, col_idx, values, x.as_ptr(), first, last) };
        let lanes = s * SLICE..((s + 1) * SLICE).min(end);
        y[lanes.start - start..lanes.end - start].copy_from_slice(&in_slice[..lanes.len()]);
    }
    for segment in start / SEGMENT..end.div_ceil(SEGMENT) {
        let ends = &layout.segment_ptr()[segment..segment + 2];
        coordinates(a, x, y, start, ends[0] as usize..ends[1] as usize);
        for long in layout.segment_long()[segment]..layout.segment_long()[segment + 1] {
            let row = layout.long_rows()[long as usize] as usize;
            let ends = &layout.long_ptr()[long as usize..long as usize + 2];
            let mut rest = sums[ends[0] as usize];
            (ends[0] + 1..ends[1]).for_each(|q| rest += sums[q as usize]);
            y[row - start] += rest;
        }
    }
}

/// Continues the sums of the rows of the coordinates at these places, where `y` begins with row `start`.
#[inline(always)]
fn coordinates<T: Scalar>(a: &Hyb<T>, x: &[T], y: &mut [T], start: usize, places: Range<usize>) {
    let row_of = &a.row_idx()[places.start - a.layout().in_slices()..][..places.len()];
    let (col_idx, values) = (a.col_idx()[places.clone()].as_ptr(), a.values()[places].as_ptr());
    let (x, mut k) = (x.as_ptr(), 0);
    while k < row_of.len() {
        let row = row_of[k];
        let y = &mut y[row as usize - start];
        let mut sum = *y;
        prefetch(row_of.as_ptr().wrapping_add(k + AHEAD));
        prefetch(col_idx.wrapping_add(k + AHEAD));
        while k < row_of.len() && row_of[k] == row {
            // SAFETY: there are as many places as rows, and `x` is as long as a row, as `rows` checked.
            sum = unsafe { (*values.add(k)).fma(*x.add(*col_idx.add(k) as usize), sum) };
            prefetch(values.wrapping_add(k + AHEAD));
            k += 1;
        }
        *y = sum;
    }
}
