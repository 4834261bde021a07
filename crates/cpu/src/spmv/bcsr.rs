//! `y ← A x` for compressed rows of blocks: for 3x3 blocks 8.4 bytes an entry in `f64`.
use crate::simd::numbers::{F32, F64, Real, lanes_of, load_from};
use crate::simd::prefetch::prefetch;
use crate::spmv::blocks::{Blocks, rows_of_bcsr};
use lacuna_engine::{Format, Kind, MAX_LANES, Scalar};
use lacuna_formats::Bcsr;
use pulp::Simd;

/// Prefetch distance in bytes.
const AHEAD: usize = 4096;

/// `y[i] ← (A x)[start + i]` for each `i`.
#[inline(always)]
pub(crate) fn rows<T: Scalar, S: Simd>(simd: S, a: &Bcsr<T>, x: &[T], y: &mut [T], start: usize) {
    let end = start + y.len();
    let rows = Rows { a, x, y, start, end };
    let fits = a.block() * size_of::<T>() <= size_of::<S::f64s>();
    match T::KIND {
        Kind::F64 if fits && !S::IS_SCALAR => rows.registers::<F64, S>(simd),
        Kind::F32 if fits && !S::IS_SCALAR => rows.registers::<F32, S>(simd),
        _ => rows.one_by_one(),
    }
}

/// The rows to multiply.
struct Rows<'a, T: Scalar> {
    a: &'a Bcsr<T>,
    x: &'a [T],
    y: &'a mut [T],
    start: usize,
    end: usize,
}

impl<T: Scalar> Rows<'_, T> {
    /// All rows, with each column of a block in a register of a number type equal to `T`.
    #[inline(always)]
    fn registers<R: Real<S>, S: Simd>(self, simd: S) {
        match (self.a.block(), self.a.lanes()) {
            // Would leave too much of a register unused.
            (2 | 3, _) => self.one_by_one(),
            (4, 4) => self.block_rows::<R, S, 4, 4>(simd),
            (4, _) => self.block_rows::<R, S, 4, MAX_LANES>(simd),
            (5, _) => self.block_rows::<R, S, 5, MAX_LANES>(simd),
            (6, _) => self.block_rows::<R, S, 6, MAX_LANES>(simd),
            (7, _) => self.block_rows::<R, S, 7, MAX_LANES>(simd),
            _ => self.block_rows::<R, S, 8, MAX_LANES>(simd),
        }
    }

    /// With `W` lanes if that is below the maximum, else with as many as the matrix has.
    #[inline(always)]
    fn block_rows<R: Real<S>, S: Simd, const B: usize, const W: usize>(mut self, simd: S) {
        let (row_ptr, places) = (self.a.row_ptr(), self.a.values().len());
        // A register load extends past a column: the last block rows, which have too few values after them,
        // go number by number.
        let reads_on = |last: &&u32| **last as usize * B * B + R::LANES > places + B;
        let (first, end) = (self.start / B, self.end.div_ceil(B));
        let end = end - row_ptr[first + 1..=end].iter().rev().take_while(reads_on).count();
        let lanes = if W < MAX_LANES { W } else { self.a.lanes() };
        let zero = R::splat(simd, bytemuck::cast(T::zero()));
        let mut sums = [zero; W];
        let sums = &mut sums[..lanes];
        for (block_row, blocks) in (first..end).zip(rows_of_bcsr::<T, B, 1>(self.a, [self.x], first..end)) {
            sums.fill(zero);
            let mut k = 0;
            while k + lanes <= blocks.len() {
                for (w, sum) in sums.iter_mut().enumerate() {
                    *sum = plus_block::<R, T, S, B>(simd, blocks, k + w, *sum);
                }
                k += lanes;
            }
            for (sum, k) in sums.iter_mut().zip(k..blocks.len()) {
                *sum = plus_block::<R, T, S, B>(simd, blocks, k, *sum);
            }
            let mut half = lanes / 2;
            while half > 0 {
                for w in 0..half {
                    sums[w] = R::add(simd, sums[w], sums[w + half]);
                }
                half /= 2;
            }
            self.keep(block_row, &lanes_of::<R, S, T>(&sums[0])[..B]);
        }
        let left = self.start.max(end * B);
        self.y = &mut std::mem::take(&mut self.y)[left - self.start..];
        self.start = left;
        self.rest::<B>();
    }

    /// Stores the sums of a block row; a share may begin or end within one.
    #[inline(always)]
    fn keep(&mut self, block_row: usize, sums: &[T]) {
        let row = block_row * sums.len();
        for r in self.start.max(row)..self.end.min(row + sums.len()) {
            self.y[r - self.start] = sums[r - row];
        }
    }

    /// The few remaining rows, outlined to keep them out of the fast path.
    #[inline(never)]
    fn rest<const B: usize>(self) {
        self.many_lanes::<B>();
    }

    /// All rows, number by number.
    #[inline(always)]
    fn one_by_one(self) {
        match (self.a.block(), self.a.lanes()) {
            (2, 1) => self.lanes::<2, 1>(),
            (2, 2) => self.lanes::<2, 2>(),
            (2, 4) => self.lanes::<2, 4>(),
            (2, _) => self.many_lanes::<2>(),
            (3, 1) => self.lanes::<3, 1>(),
            (3, 2) => self.lanes::<3, 2>(),
            (3, 4) => self.lanes::<3, 4>(),
            (3, _) => self.many_lanes::<3>(),
            (4, _) => self.many_lanes::<4>(),
            (5, _) => self.many_lanes::<5>(),
            (6, _) => self.many_lanes::<6>(),
            (7, _) => self.many_lanes::<7>(),
            _ => self.many_lanes::<8>(),
        }
    }

    /// With `W` lanes, all in registers.
    #[inline(always)]
    fn lanes<const B: usize, const W: usize>(mut self) {
        let all = self.start / B..self.end.div_ceil(B);
        for (block_row, blocks) in all.clone().zip(rows_of_bcsr::<T, B, 1>(self.a, [self.x], all)) {
            let (mut k, mut sums) = (0, [[T::zero(); B]; W]);
            while k < blocks.len() {
                for (w, sums) in sums.iter_mut().enumerate() {
                    if k + w < blocks.len() {
                        add_block(blocks, k + w, sums);
                        prefetch(blocks.column_at(k + w).wrapping_byte_add(AHEAD));
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
            self.keep(block_row, &sums[0]);
        }
    }

    /// With as many lanes as the matrix has.
    #[inline(always)]
    fn many_lanes<const B: usize>(mut self) {
        let lanes = self.a.lanes();
        let mut sums = [[T::zero(); B]; MAX_LANES];
        let sums = &mut sums[..lanes];
        let all = self.start / B..self.end.div_ceil(B);
        for (block_row, blocks) in all.clone().zip(rows_of_bcsr::<T, B, 1>(self.a, [self.x], all)) {
            sums.fill([T::zero(); B]);
            for k in 0..blocks.len() {
                add_block(blocks, k, &mut sums[k & (lanes - 1)]);
            }
            let mut half = lanes / 2;
            while half > 0 {
                for w in 0..half {
                    let upper = sums[w + half];
                    sums[w].iter_mut().zip(upper).for_each(|(s, u)| *s += u);
                }
                half /= 2;
            }
            self.keep(block_row, &sums[0]);
        }
    }
}

/// Adds the product of block `k`, where enough values follow its last column.
#[inline(always)]
fn plus_block<R: Real<S>, T: Scalar, S: Simd, const B: usize>(
    simd: S,
    blocks: Blocks<'_, T, B>,
    k: usize,
    mut sum: R::Vector,
) -> R::Vector {
    let (_, [x]) = blocks.at(k);
    for line in (0..B * B * size_of::<T>()).step_by(64) {
        prefetch(blocks.value_at(k).wrapping_byte_add(AHEAD + line));
    }
    prefetch(blocks.column_at(k).wrapping_byte_add(AHEAD));
    let values = &blocks.values(k)[..(B - 1) * B + R::LANES];
    for (c, x) in x.iter().enumerate() {
        let x = R::splat(simd, bytemuck::cast(*x));
        sum = R::fma(simd, load_from::<R, S, T>(values, c * B), x, sum);
    }
    sum
}

/// `sums ← sums + A x` for block `k`.
#[inline(always)]
fn add_block<T: Scalar, const B: usize>(blocks: Blocks<'_, T, B>, k: usize, sums: &mut [T; B]) {
    let (values, [x]) = blocks.at(k);
    for line in (0..B * B * size_of::<T>()).step_by(64) {
        prefetch(blocks.value_at(k).wrapping_byte_add(AHEAD + line));
    }
    for (values, x) in values.iter().zip(x) {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = value.fma(*x, *sum);
        }
    }
}
