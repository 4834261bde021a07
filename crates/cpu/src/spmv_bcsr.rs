//! `y ← A x` for compressed rows of blocks: for 3x3 blocks 8.4 bytes an entry in `f64`.
use crate::prefetch::prefetch;
use lacuna_core::{Format, MAX_LANES, Scalar};
use lacuna_formats::Bcsr;

/// Values between what is computed and what is asked for from memory: 4 KiB of `f64`.
const AHEAD: usize = 512;

/// `y[i] ← (A x)[i]` for the rows `start..end`.
///
/// # Safety
/// `x` must be valid for the columns of `a` and `y` for its rows; the rows must exist.
#[inline(always)]
pub(crate) unsafe fn rows<T: Scalar>(a: &Bcsr<T>, x: *const T, y: *mut T, start: usize, end: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        match (a.block(), a.lanes()) {
            (2, 1) => blocks::<T, 2, 1>(a, x, y, start, end),
            (3, 1) => blocks::<T, 3, 1>(a, x, y, start, end),
            (4, 1) => blocks::<T, 4, 1>(a, x, y, start, end),
            (2, 2) => blocks::<T, 2, 2>(a, x, y, start, end),
            (3, 2) => blocks::<T, 3, 2>(a, x, y, start, end),
            (4, 2) => blocks::<T, 4, 2>(a, x, y, start, end),
            (2, 4) => blocks::<T, 2, 4>(a, x, y, start, end),
            (3, 4) => blocks::<T, 3, 4>(a, x, y, start, end),
            (4, 4) => blocks::<T, 4, 4>(a, x, y, start, end),
            (2, _) => many_lanes::<T, 2>(a, x, y, start, end),
            (3, _) => many_lanes::<T, 3>(a, x, y, start, end),
            (4, _) => many_lanes::<T, 4>(a, x, y, start, end),
            (5, _) => many_lanes::<T, 5>(a, x, y, start, end),
            (6, _) => many_lanes::<T, 6>(a, x, y, start, end),
            (7, _) => many_lanes::<T, 7>(a, x, y, start, end),
            _ => many_lanes::<T, 8>(a, x, y, start, end),
        }
    }
}

#[inline(always)]
unsafe fn blocks<T: Scalar, const B: usize, const W: usize>(
    a: &Bcsr<T>,
    x: *const T,
    y: *mut T,
    start: usize,
    end: usize,
) {
    let (row_ptr, col_idx, values) = (a.row_ptr(), a.col_idx().as_ptr(), a.values().as_ptr());
    for block_row in start / B..end.div_ceil(B) {
        let (first, last) = (row_ptr[block_row] as usize, row_ptr[block_row + 1] as usize);
        let mut sums = [[T::zero(); B]; W];
        let mut k = first;
        // SAFETY: a valid matrix: blocks and their columns are in range.
        unsafe {
            while k < last {
                for (w, sums) in sums.iter_mut().enumerate() {
                    if k + w < last {
                        block::<T, B>(
                            values.add((k + w) * B * B),
                            x.add(*col_idx.add(k + w) as usize * B),
                            sums,
                        );
                        prefetch(col_idx.wrapping_add(k + w + AHEAD / B));
                    }
                }
                k += W;
            }
            let mut half = W / 2;
            while half > 0 {
                for w in 0..half {
                    let upper = sums[w + half];
                    sums[w].iter_mut().zip(upper).for_each(|(s, u)| *s += u);
                }
                half /= 2;
            }
            // A share may begin or end within a block row.
            let row = block_row * B;
            for r in start.max(row)..end.min(row + B) {
                *y.add(r) = sums[0][r - row];
            }
        }
    }
}

/// The same for a number of lanes that is known when it runs.
#[inline(always)]
unsafe fn many_lanes<T: Scalar, const B: usize>(
    a: &Bcsr<T>,
    x: *const T,
    y: *mut T,
    start: usize,
    end: usize,
) {
    let (row_ptr, col_idx, values, lanes) =
        (a.row_ptr(), a.col_idx().as_ptr(), a.values().as_ptr(), a.lanes());
    let mut sums = [[T::zero(); B]; MAX_LANES];
    for block_row in start / B..end.div_ceil(B) {
        let (first, last) = (row_ptr[block_row] as usize, row_ptr[block_row + 1] as usize);
        let sums = &mut sums[..lanes];
        sums.fill([T::zero(); B]);
        // SAFETY: a valid matrix: blocks and their columns are in range.
        unsafe {
            for k in first..last {
                let column = *col_idx.add(k) as usize * B;
                block::<T, B>(values.add(k * B * B), x.add(column), &mut sums[(k - first) & (lanes - 1)]);
            }
            let mut half = lanes / 2;
            while half > 0 {
                for w in 0..half {
                    let upper = sums[w + half];
                    sums[w].iter_mut().zip(upper).for_each(|(s, u)| *s += u);
                }
                half /= 2;
            }
            let row = block_row * B;
            for r in start.max(row)..end.min(row + B) {
                *y.add(r) = sums[0][r - row];
            }
        }
    }
}

/// `sums ← sums + A x` for one block.
#[inline(always)]
unsafe fn block<T: Scalar, const B: usize>(values: *const T, x: *const T, sums: &mut [T; B]) {
    // SAFETY: as the caller promises.
    unsafe {
        for line in (0..B * B * size_of::<T>()).step_by(64) {
            prefetch(values.wrapping_add(AHEAD).wrapping_byte_add(line));
        }
        for c in 0..B {
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = (*values.add(c * B + r)).fma(*x.add(c), *sum);
            }
        }
    }
}
