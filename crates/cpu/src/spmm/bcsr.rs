//! `Y ← A X` for compressed rows of blocks: for 3x3 blocks 8.4 bytes an entry in `f64` for all columns
//! together.
use crate::simd::prefetch::prefetch;
use crate::spmm::SpmmRows;
use lacuna_engine::{Format, Scalar};
use lacuna_formats::Bcsr;

/// Prefetch distance, in values.
const AHEAD: usize = 512;

/// Whether the sums of a block row, for all lanes and columns, stay in registers.
pub(crate) fn pays<T: Scalar>(a: &Bcsr<T>) -> bool {
    a.lanes() <= 2 && matches!(a.block(), 2..=4)
}

impl<T: Scalar> SpmmRows<T> for Bcsr<T> {
    const TOGETHER: usize = 2;

    #[inline(always)]
    unsafe fn rows<const K: usize>(&self, x: [*const T; K], y: [*mut T; K], start: usize, end: usize) {
        // SAFETY: as the caller promises.
        unsafe {
            match (self.block(), self.lanes()) {
                (2, 1) => blocks::<T, 2, 1, K>(self, x, y, start, end),
                (3, 1) => blocks::<T, 3, 1, K>(self, x, y, start, end),
                (4, 1) => blocks::<T, 4, 1, K>(self, x, y, start, end),
                (2, _) => blocks::<T, 2, 2, K>(self, x, y, start, end),
                (3, _) => blocks::<T, 3, 2, K>(self, x, y, start, end),
                _ => blocks::<T, 4, 2, K>(self, x, y, start, end),
            }
        }
    }
}

#[inline(always)]
unsafe fn blocks<T: Scalar, const B: usize, const W: usize, const K: usize>(
    a: &Bcsr<T>,
    x: [*const T; K],
    y: [*mut T; K],
    start: usize,
    end: usize,
) {
    let (row_ptr, col_idx, values) = (a.row_ptr(), a.col_idx().as_ptr(), a.values().as_ptr());
    for block_row in start / B..end.div_ceil(B) {
        let (first, last) = (row_ptr[block_row] as usize, row_ptr[block_row + 1] as usize);
        let mut sums = [[[T::zero(); B]; K]; W];
        // SAFETY: a valid matrix: blocks and their columns are in range.
        unsafe {
            for k in (first..last).step_by(W) {
                for (w, sums) in sums.iter_mut().enumerate().take(last - k) {
                    let (values, column) = (values.add((k + w) * B * B), *col_idx.add(k + w) as usize * B);
                    for line in (0..B * B * size_of::<T>()).step_by(64) {
                        prefetch(values.wrapping_add(AHEAD).wrapping_byte_add(line));
                    }
                    block::<T, B, K>(values, x.map(|x| x.add(column)), sums);
                }
            }
            // A share may begin or end within a block row.
            let row = block_row * B;
            for r in start.max(row)..end.min(row + B) {
                for (j, y) in y.iter().enumerate() {
                    let first = sums[0][j][r - row];
                    *y.add(r) = if W == 2 { first + sums[1][j][r - row] } else { first };
                }
            }
        }
    }
}

/// `sums ← sums + A X` for one block.
#[inline(always)]
unsafe fn block<T: Scalar, const B: usize, const K: usize>(
    values: *const T,
    x: [*const T; K],
    sums: &mut [[T; B]; K],
) {
    for c in 0..B {
        for (x, sums) in x.into_iter().zip(&mut *sums) {
            for (r, sum) in sums.iter_mut().enumerate() {
                // SAFETY: as the caller promises.
                *sum = unsafe { (*values.add(c * B + r)).fma(*x.add(c), *sum) };
            }
        }
    }
}
