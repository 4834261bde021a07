//! Products and combinations of blocks of columns, in pieces of rows that stay in a cache for all pairs of columns.
use crate::pass::dot::dot_segments;
use crate::pass::update::{accumulate, round};
use crate::plan::step::StepKind;
use crate::run::share::Share;
use crate::simd::known::Known;
use crate::simd::numbers::{C32, C64, F32, F64, Numbers, load, store};
use crate::simd::outlined::outlined;
use lacuna_engine::Scalar;
use lacuna_engine::sum::SEGMENT;
use pulp::Simd;
use std::ops::Range;

/// Bytes of all columns of a piece: they stay in the second-level cache.
const PIECE: usize = 256 << 10;
/// Bytes of a column of a piece: enough for the prefetcher, and no more than what helps it.
const COLUMN: Range<usize> = 2048..65536;
/// Columns on the left that are summed together.
const TOGETHER: usize = 4;
/// Columns that are added at a time to one combination.
const ADDED: usize = 4;

/// Bytes of a column in a piece of so many columns.
pub(super) fn chunk_bytes(columns: u32) -> usize {
    (PIECE / (columns as usize).max(1)).clamp(COLUMN.start, COLUMN.end)
}

/// The segment sums of all pairs of columns, for the given segments.
///
/// # Safety
/// The segments must belong to the share, with its vectors valid for them.
#[inline(always)]
pub(super) unsafe fn gram<T: Scalar, S: Simd>(simd: S, share: &Share<'_, T>, segments: Range<usize>) {
    let StepKind::BasisGram { first, rows, w, columns, .. } = share.step.kind else { return };
    let (rows, columns) = (rows as usize, columns as usize);
    let v = &share.vectors[first as usize..first as usize + rows];
    let w = &share.vectors[w as usize..w as usize + columns];
    let whole = rows / TOGETHER * TOGETHER;
    for s in segments {
        for i in (0..whole).step_by(TOGETHER) {
            // SAFETY: as the caller promises.
            unsafe { sums::<T, S, TOGETHER>(simd, share, &v[i..], w, (i, rows), s) };
        }
        for i in whole..rows {
            // SAFETY: as the caller promises.
            unsafe { sums::<T, S, 1>(simd, share, &v[i..], w, (i, rows), s) };
        }
    }
}

/// The sums of a segment of `K` columns, from column `i` of `rows` on, with all columns on the right.
#[inline(always)]
unsafe fn sums<T: Scalar, S: Simd, const K: usize>(
    simd: S,
    share: &Share<'_, T>,
    v: &[*mut T],
    w: &[*mut T],
    (i, rows): (usize, usize),
    s: usize,
) {
    // SAFETY: rows of this share, as the caller promises.
    unsafe {
        let v: [*const T; K] = std::array::from_fn(|k| v[k].add(s * SEGMENT).cast_const());
        for (j, w) in w.iter().enumerate() {
            let sums = dot_segments(simd, v, w.add(s * SEGMENT));
            for (k, sum) in sums.into_iter().enumerate() {
                share.put(j * rows + i + k, s, sum);
            }
        }
    }
}

/// The rows from `start` to `end` of all combinations.
///
/// # Safety
/// The rows must belong to the share, with its vectors valid for them.
#[inline(always)]
pub(super) unsafe fn combine<T: Scalar, S: Simd>(simd: S, share: &Share<'_, T>, start: usize, end: usize) {
    let StepKind::BasisCombine { first, rows, x, columns, c, add } = share.step.kind else { return };
    let (rows, columns) = (rows as usize, columns as usize);
    let v = &share.vectors[first as usize..first as usize + rows];
    let x = &share.vectors[x as usize..x as usize + columns];
    let c = &share.cells[c as usize..c as usize + rows * columns];
    // SAFETY: as the caller promises; the types match the kind, and no column of `x` is one of `v`.
    unsafe {
        if Known::<T, S>::F64_IN_64 {
            groups::<F64, S, T, 8>(simd, (v, c), (x, add), start, end);
        } else if Known::<T, S>::F32_IN_64 {
            groups::<F32, S, T, 8>(simd, (v, c), (x, add), start, end);
        } else if Known::<T, S>::C64_IN_64 {
            groups::<C64, S, T, 4>(simd, (v, c), (x, add), start, end);
        } else if Known::<T, S>::C32_IN_64 {
            groups::<C32, S, T, 4>(simd, (v, c), (x, add), start, end);
        } else if Known::<T, S>::F64 {
            groups::<F64, S, T, 4>(simd, (v, c), (x, add), start, end);
        } else if Known::<T, S>::F32 {
            groups::<F32, S, T, 4>(simd, (v, c), (x, add), start, end);
        } else if Known::<T, S>::C64 {
            groups::<C64, S, T, 2>(simd, (v, c), (x, add), start, end);
        } else if Known::<T, S>::C32 {
            groups::<C32, S, T, 2>(simd, (v, c), (x, add), start, end);
        } else {
            one_by_one(simd, (v, c), (x, add), start, end);
        }
        if share.step.rounds {
            x.iter().for_each(|x| round(*x, start, end));
        }
    }
}

/// Combinations `J` at a time, with their sums in registers over all columns.
#[inline(always)]
unsafe fn groups<N: Numbers<S>, S: Simd, T: Scalar, const J: usize>(
    simd: S,
    (v, c): (&[*mut T], &[T]),
    (x, add): (&[*mut T], bool),
    start: usize,
    end: usize,
) {
    for (j, x) in x.chunks(J).enumerate() {
        let c = &c[j * J * v.len()..][..x.len() * v.len()];
        outlined(
            simd,
            #[inline(always)]
            move || {
                // SAFETY: as the caller promises.
                unsafe { group::<N, S, T, J>(simd, (v, c), (x, add), start, end) };
            },
        );
    }
}

/// Registers of each combination.
const BLOCK: usize = 2;

#[inline(always)]
unsafe fn group<N: Numbers<S>, S: Simd, T: Scalar, const J: usize>(
    simd: S,
    (v, c): (&[*mut T], &[T]),
    (x, add): (&[*mut T], bool),
    start: usize,
    end: usize,
) {
    let rows = v.len();
    let plain = c.iter().all(|c| *c != T::zero());
    // The last one stands in for those that are missing, and is stored once.
    let of: [usize; J] = std::array::from_fn(|j| j.min(x.len() - 1) * rows);
    let mut i = start;
    // SAFETY: as the caller promises; the last block is read whole and written only to the end of the range.
    unsafe {
        while i < end {
            let mut sums = [[N::zero(simd); BLOCK]; J];
            if add {
                for (sums, x) in sums.iter_mut().zip(x) {
                    for (b, sum) in sums.iter_mut().enumerate() {
                        *sum = load::<N, S>(x.add(i).cast_const().cast(), b);
                    }
                }
            }
            for (k, v) in v.iter().enumerate() {
                let v = v.add(i).cast_const().cast();
                let v: [N::Vector; BLOCK] = [load::<N, S>(v, 0), load::<N, S>(v, 1)];
                for (sums, of) in sums.iter_mut().zip(of) {
                    let c = *c.get_unchecked(of + k);
                    if plain || c != T::zero() {
                        let c = N::coefficient(simd, bytemuck::cast(c));
                        for (sum, v) in sums.iter_mut().zip(v) {
                            *sum = N::scale_add(simd, c, v, *sum);
                        }
                    }
                }
            }
            for (sums, x) in sums.iter().zip(x) {
                if i + BLOCK * N::LANES <= end {
                    store::<N, S>(x.add(i).cast(), sums);
                } else {
                    for (b, sum) in sums.iter().enumerate() {
                        let from = i + b * N::LANES;
                        if from < end {
                            N::store_first(simd, (end - from).min(N::LANES), x.add(from).cast(), *sum);
                        }
                    }
                }
            }
            i += BLOCK * N::LANES;
        }
    }
}

/// Combinations one by one.
#[inline(always)]
unsafe fn one_by_one<T: Scalar, S: Simd>(
    simd: S,
    (v, c): (&[*mut T], &[T]),
    (x, add): (&[*mut T], bool),
    start: usize,
    end: usize,
) {
    for (j, x) in x.iter().enumerate() {
        let c = &c[j * v.len()..(j + 1) * v.len()];
        // SAFETY: as the caller promises.
        unsafe {
            if !add {
                std::slice::from_raw_parts_mut(x.add(start), end - start).fill(T::zero());
            }
            for (v, c) in v.chunks(ADDED).zip(c.chunks(ADDED)) {
                let mut used = [(T::zero(), std::ptr::null::<T>()); ADDED];
                let mut count = 0;
                for (v, c) in v.iter().zip(c).filter(|(_, c)| **c != T::zero()) {
                    used[count] = (*c, v.cast_const());
                    count += 1;
                }
                accumulate(simd, *x, &used[..count], start, end);
            }
        }
    }
}
