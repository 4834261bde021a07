//! `y ← A x` for a dense matrix: 8 bytes an entry in `f64`, with x from cache.
use crate::pass::dot::halved as halved_vectors;
use crate::simd::known::Known;
use crate::simd::lanes::{halve, halved};
use crate::simd::numbers::{F32, F64, Real, load, store};
use crate::simd::prefetch::prefetch;
use lacuna_engine::{Format, MAX_LANES, Scalar};
use lacuna_formats::Dense;
use pulp::Simd;

/// Prefetch distance in bytes.
const AHEAD: usize = 4096;

/// `y[i] ← (A x)[i]` for the rows `start..end`.
///
/// # Safety
/// `x` must be valid for the columns of `a` and `y` for its rows; the rows must exist.
#[inline(always)]
pub(crate) unsafe fn rows<T: Scalar, S: Simd>(
    simd: S,
    a: &Dense<T>,
    x: *const T,
    y: *mut T,
    start: usize,
    end: usize,
) {
    // SAFETY: as the caller promises; the number type matches the kind.
    unsafe {
        let rows = RowRange { values: a.values().as_ptr(), cols: a.shape().1, x, y, start, end };
        let vectors = a.lanes() * size_of::<T>() / size_of::<S::f64s>();
        if Known::<T, S>::F64 && vectors > 0 {
            rows.cast().vectors::<F64, S>(simd, vectors);
        } else if Known::<T, S>::F32 && vectors > 0 {
            rows.cast().vectors::<F32, S>(simd, vectors);
        } else {
            match a.lanes() {
                1 => rows.lanes::<1>(),
                2 => rows.lanes::<2>(),
                4 => rows.lanes::<4>(),
                8 => rows.lanes::<8>(),
                16 => rows.lanes::<16>(),
                _ => rows.lanes::<32>(),
            }
        }
    }
}

/// The rows to multiply.
struct RowRange<T> {
    values: *const T,
    cols: usize,
    x: *const T,
    y: *mut T,
    start: usize,
    end: usize,
}

impl<T: Scalar> RowRange<T> {
    /// The same with the number type named differently.
    #[inline(always)]
    fn cast<U>(self) -> RowRange<U> {
        let RowRange { values, cols, x, y, start, end } = self;
        RowRange { values: values.cast(), cols, x: x.cast(), y: y.cast(), start, end }
    }

    /// All rows, with the lanes of each in `vectors` registers.
    #[inline(always)]
    unsafe fn vectors<R: Real<S, Number = T>, S: Simd>(self, simd: S, vectors: usize) {
        // SAFETY: as the caller promises.
        unsafe {
            match vectors {
                1 => self.registers::<R, S, 1>(simd),
                2 => self.registers::<R, S, 2>(simd),
                4 => self.registers::<R, S, 4>(simd),
                8 => self.registers::<R, S, 8>(simd),
                _ => self.registers::<R, S, 16>(simd),
            }
        }
    }

    #[inline(always)]
    unsafe fn registers<R: Real<S, Number = T>, S: Simd, const V: usize>(self, simd: S) {
        let RowRange { cols, x, y, .. } = self;
        let width = V * R::LANES;
        for i in self.start..self.end {
            // SAFETY: places of a row, and columns; there are no more lanes than there is room for.
            unsafe {
                let row = self.values.add(i * cols);
                let (mut k, mut sums) = (0, [R::splat(simd, T::zero()); V]);
                while k + width <= cols {
                    for (v, sum) in sums.iter_mut().enumerate() {
                        prefetch(row.wrapping_add(k + v * R::LANES).wrapping_byte_add(AHEAD));
                        *sum = R::fma(simd, load::<R, S>(row.add(k), v), load::<R, S>(x.add(k), v), *sum);
                    }
                    k += width;
                }
                for (v, sum) in sums.iter_mut().enumerate() {
                    let count = cols.saturating_sub(k + v * R::LANES).min(R::LANES);
                    let k = (k + v * R::LANES).min(cols);
                    *sum = R::fma_first(simd, count, row.add(k), x.add(k), *sum);
                }
                let mut lanes = [T::zero(); MAX_LANES];
                store::<R, S>(lanes.as_mut_ptr(), &[halved_vectors::<R, S, V>(simd, sums)]);
                *y.add(i) = halve(&mut lanes[..R::LANES]);
            }
        }
    }

    #[inline(always)]
    unsafe fn lanes<const W: usize>(self) {
        let RowRange { cols, x, y, .. } = self;
        for i in self.start..self.end {
            let (mut k, mut sums) = (0, [T::zero(); W]);
            // SAFETY: places of a row and columns.
            unsafe {
                let row = self.values.add(i * cols);
                while k + W <= cols {
                    for line in (0..W * size_of::<T>()).step_by(64) {
                        prefetch(row.wrapping_add(k).wrapping_byte_add(AHEAD + line));
                    }
                    for (j, sum) in sums.iter_mut().enumerate() {
                        *sum = (*row.add(k + j)).fma(*x.add(k + j), *sum);
                    }
                    k += W;
                }
                for (sum, k) in sums.iter_mut().zip(k..cols) {
                    *sum = (*row.add(k)).fma(*x.add(k), *sum);
                }
                *y.add(i) = halved(sums);
            }
        }
    }
}
