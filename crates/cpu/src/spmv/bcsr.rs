//! `y ← A x` for compressed rows of blocks: for 3x3 blocks 8.4 bytes an entry in `f64`.
use crate::simd::known::Known;
use crate::simd::numbers::{F32, F64, Real, load, store};
use crate::simd::prefetch::prefetch;
use lacuna_engine::{Format, MAX_LANES, Scalar};
use lacuna_formats::Bcsr;
use pulp::Simd;

/// Prefetch distance in bytes.
const AHEAD: usize = 4096;
/// Maximum number of lanes of a register.
const MOST_LANES: usize = 16;

/// `y[i] ← (A x)[i]` for the rows `start..end`.
///
/// # Safety
/// `x` must be valid for the columns of `a` and `y` for its rows; the rows must exist.
#[inline(always)]
pub(crate) unsafe fn rows<T: Scalar, S: Simd>(
    simd: S,
    a: &Bcsr<T>,
    x: *const T,
    y: *mut T,
    start: usize,
    end: usize,
) {
    let rows = RowRange {
        row_ptr: a.row_ptr(),
        col_idx: a.col_idx().as_ptr(),
        values: a.values().as_ptr(),
        places: a.values().len(),
        lanes: a.lanes(),
        x,
        y,
        start,
        end,
    };
    // SAFETY: as the caller promises; the number type matches the kind.
    unsafe {
        // Blocks of 2 and 3 would leave too much of a register unused.
        let fits = a.block() > 3 && a.block() * size_of::<T>() <= size_of::<S::f64s>();
        if Known::<T, S>::F64 && fits {
            rows.cast().registers::<F64, S>(simd, a.block());
        } else if Known::<T, S>::F32 && fits {
            rows.cast().registers::<F32, S>(simd, a.block());
        } else {
            rows.one_by_one(a.block());
        }
    }
}

/// The rows to multiply.
struct RowRange<'a, T> {
    row_ptr: &'a [u32],
    col_idx: *const u32,
    values: *const T,
    places: usize,
    lanes: usize,
    x: *const T,
    y: *mut T,
    start: usize,
    end: usize,
}

impl<'a, T: Scalar> RowRange<'a, T> {
    /// The same with the number type named differently.
    #[inline(always)]
    fn cast<U>(self) -> RowRange<'a, U> {
        let RowRange { row_ptr, col_idx, values, places, lanes, x, y, start, end } = self;
        RowRange {
            row_ptr,
            col_idx,
            values: values.cast(),
            places,
            lanes,
            x: x.cast(),
            y: y.cast(),
            start,
            end,
        }
    }

    /// All rows, with each column of a block, of at least 4 rows, in a register.
    #[inline(always)]
    unsafe fn registers<R: Real<S, Number = T>, S: Simd>(self, simd: S, block: usize) {
        // SAFETY: as the caller promises.
        unsafe {
            match (block, self.lanes) {
                (4, 4) => self.block_rows::<R, S, 4, 4>(simd),
                (4, _) => self.block_rows::<R, S, 4, MAX_LANES>(simd),
                (5, _) => self.block_rows::<R, S, 5, MAX_LANES>(simd),
                (6, _) => self.block_rows::<R, S, 6, MAX_LANES>(simd),
                (7, _) => self.block_rows::<R, S, 7, MAX_LANES>(simd),
                _ => self.block_rows::<R, S, 8, MAX_LANES>(simd),
            }
        }
    }

    /// With `W` lanes if that is below the maximum, else with as many as the matrix has.
    #[inline(always)]
    unsafe fn block_rows<R: Real<S, Number = T>, S: Simd, const B: usize, const W: usize>(mut self, simd: S) {
        // A register load extends past a column: the last block rows, which have too little memory after
        // them, go number by number.
        let reads_on = |last: &&u32| **last as usize * B * B + R::LANES > self.places + B;
        let (first, end) = (self.start / B, self.end.div_ceil(B));
        let end = end - self.row_ptr[first + 1..=end].iter().rev().take_while(reads_on).count();
        let lanes = if W < MAX_LANES { W } else { self.lanes };
        let mut sums = [R::splat(simd, T::zero()); W];
        let sums = &mut sums[..lanes];
        for block_row in first..end {
            let (mut k, last) = (self.row_ptr[block_row] as usize, self.row_ptr[block_row + 1] as usize);
            sums.fill(R::splat(simd, T::zero()));
            // SAFETY: a valid matrix, as the caller promises: blocks and their columns are in range.
            unsafe {
                while k + lanes <= last {
                    for (w, sum) in sums.iter_mut().enumerate() {
                        *sum = self.plus_block::<R, S, B>(simd, k + w, *sum);
                    }
                    k += lanes;
                }
                for (sum, k) in sums.iter_mut().zip(k..last) {
                    *sum = self.plus_block::<R, S, B>(simd, k, *sum);
                }
            }
            let mut half = lanes / 2;
            while half > 0 {
                for w in 0..half {
                    sums[w] = R::add(simd, sums[w], sums[w + half]);
                }
                half /= 2;
            }
            let mut all = [T::zero(); MOST_LANES];
            // SAFETY: room for a register, and rows that exist.
            unsafe {
                store::<R, S>(all.as_mut_ptr(), &sums[..1]);
                self.keep(block_row, &all[..B]);
            }
        }
        self.start = self.start.max(end * B);
        // SAFETY: as the caller promises.
        unsafe { self.rest::<B>() };
    }

    /// Adds a block's product.
    #[inline(always)]
    unsafe fn plus_block<R: Real<S, Number = T>, S: Simd, const B: usize>(
        &self,
        simd: S,
        k: usize,
        mut sum: R::Vector,
    ) -> R::Vector {
        // SAFETY: as the caller promises, and enough numbers follow the last column.
        unsafe {
            let values = self.values.add(k * B * B);
            for line in (0..B * B * size_of::<T>()).step_by(64) {
                prefetch(values.wrapping_byte_add(AHEAD + line));
            }
            prefetch(self.col_idx.wrapping_add(k).wrapping_byte_add(AHEAD));
            let x = self.x.add(*self.col_idx.add(k) as usize * B);
            for c in 0..B {
                sum = R::fma(simd, load::<R, S>(values.add(c * B), 0), R::splat(simd, *x.add(c)), sum);
            }
        }
        sum
    }

    /// Stores the sums of a block row; a share may begin or end within one.
    #[inline(always)]
    unsafe fn keep(&self, block_row: usize, sums: &[T]) {
        let row = block_row * sums.len();
        for r in self.start.max(row)..self.end.min(row + sums.len()) {
            // SAFETY: as the caller promises.
            unsafe { *self.y.add(r) = sums[r - row] };
        }
    }

    /// The few remaining rows, outlined to keep them out of the fast path.
    #[inline(never)]
    unsafe fn rest<const B: usize>(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.many_lanes::<B>() }
    }

    /// All rows, number by number.
    #[inline(always)]
    unsafe fn one_by_one(&self, block: usize) {
        // SAFETY: as the caller promises.
        unsafe {
            match (block, self.lanes) {
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
    }

    /// With `W` lanes, all in registers.
    #[inline(always)]
    unsafe fn lanes<const B: usize, const W: usize>(&self) {
        for block_row in self.start / B..self.end.div_ceil(B) {
            let (mut k, last) = (self.row_ptr[block_row] as usize, self.row_ptr[block_row + 1] as usize);
            let mut sums = [[T::zero(); B]; W];
            // SAFETY: a valid matrix: blocks and their columns are in range.
            unsafe {
                while k < last {
                    for (w, sums) in sums.iter_mut().enumerate() {
                        if k + w < last {
                            self.block(k + w, sums);
                            prefetch(self.col_idx.wrapping_add(k + w).wrapping_byte_add(AHEAD));
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
    }

    /// With as many lanes as the matrix has.
    #[inline(always)]
    unsafe fn many_lanes<const B: usize>(&self) {
        let mut sums = [[T::zero(); B]; MAX_LANES];
        let sums = &mut sums[..self.lanes];
        for block_row in self.start / B..self.end.div_ceil(B) {
            let (first, last) = (self.row_ptr[block_row] as usize, self.row_ptr[block_row + 1] as usize);
            sums.fill([T::zero(); B]);
            // SAFETY: a valid matrix: blocks and their columns are in range.
            unsafe {
                for k in first..last {
                    self.block(k, &mut sums[(k - first) & (self.lanes - 1)]);
                }
                let mut half = self.lanes / 2;
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

    /// `sums ← sums + A x` for block `k`.
    #[inline(always)]
    unsafe fn block<const B: usize>(&self, k: usize, sums: &mut [T; B]) {
        // SAFETY: as the caller promises.
        unsafe {
            let values = self.values.add(k * B * B);
            for line in (0..B * B * size_of::<T>()).step_by(64) {
                prefetch(values.wrapping_byte_add(AHEAD + line));
            }
            let x = self.x.add(*self.col_idx.add(k) as usize * B);
            for c in 0..B {
                for (r, sum) in sums.iter_mut().enumerate() {
                    *sum = (*values.add(c * B + r)).fma(*x.add(c), *sum);
                }
            }
        }
    }
}
