//! `Y ← A X` for compressed rows of blocks: for 3x3 blocks 8.4 bytes an entry in `f64` for all columns
//! together.
use crate::simd::prefetch::prefetch;
use crate::spmm::Columns;
use crate::spmv::blocks::rows_of_bcsr;
use lacuna_engine::{Format, Scalar};
use lacuna_formats::Bcsr;

/// Prefetch distance, in values.
const AHEAD: usize = 512;

/// Whether the sums of a block row, for all lanes and columns, stay in registers.
pub(crate) fn pays<T: Scalar>(a: &Bcsr<T>) -> bool {
    a.lanes() <= 2 && matches!(a.block(), 2..=4)
}

impl<T: Scalar> Columns<T> for Bcsr<T> {
    const TOGETHER: usize = 2;

    #[inline(always)]
    fn rows<const K: usize>(&self, x: [&[T]; K], y: [&mut [T]; K], start: usize) {
        match (self.block(), self.lanes()) {
            (2, 1) => blocks::<T, 2, 1, K>(self, x, y, start),
            (3, 1) => blocks::<T, 3, 1, K>(self, x, y, start),
            (4, 1) => blocks::<T, 4, 1, K>(self, x, y, start),
            (2, _) => blocks::<T, 2, 2, K>(self, x, y, start),
            (3, _) => blocks::<T, 3, 2, K>(self, x, y, start),
            _ => blocks::<T, 4, 2, K>(self, x, y, start),
        }
    }
}

#[inline(always)]
fn blocks<T: Scalar, const B: usize, const W: usize, const K: usize>(
    a: &Bcsr<T>,
    x: [&[T]; K],
    mut y: [&mut [T]; K],
    start: usize,
) {
    let (n, end) = (y[0].len(), start + y[0].len());
    assert!(y.iter().all(|y| y.len() == n), "rows of each column");
    let block_rows = start / B..end.div_ceil(B);
    for (row, blocks) in block_rows.clone().zip(rows_of_bcsr::<T, B, K>(a, x, block_rows)) {
        let mut sums = [[[T::zero(); B]; K]; W];
        for k in (0..blocks.len()).step_by(W) {
            for (w, sums) in sums.iter_mut().enumerate().take(blocks.len() - k) {
                let (values, x) = blocks.at(k + w);
                for line in (0..B * B * size_of::<T>()).step_by(64) {
                    prefetch(blocks.value_at(k + w).wrapping_add(AHEAD).wrapping_byte_add(line));
                }
                block(values, x, sums);
            }
        }
        let of_row = |j: usize, r: usize| {
            let first = sums[0][j][r];
            if W == 2 { first + sums[1][j][r] } else { first }
        };
        let row = row * B;
        for (j, y) in y.iter_mut().enumerate() {
            // A share may begin or end within a block row.
            if row >= start && row + B <= end {
                let y: &mut [T; B] = y[row - start..].first_chunk_mut().expect("rows of a block");
                *y = std::array::from_fn(|r| of_row(j, r));
            } else {
                (start.max(row)..end.min(row + B)).for_each(|r| y[r - start] = of_row(j, r - row));
            }
        }
    }
}

/// `sums ← sums + A X` for one block.
#[inline(always)]
fn block<T: Scalar, const B: usize, const K: usize>(
    values: &[[T; B]; B],
    x: [&[T; B]; K],
    sums: &mut [[T; B]; K],
) {
    for (c, values) in values.iter().enumerate() {
        for (x, sums) in x.into_iter().zip(&mut *sums) {
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum = value.fma(x[c], *sum);
            }
        }
    }
}
