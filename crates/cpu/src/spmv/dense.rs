//! `y ← A x` for a dense matrix: 8 bytes an entry in `f64`, with x from cache.
use crate::pass::dot::halved as halved_vectors;
use crate::simd::lanes::halved;
use crate::simd::numbers::{F32, F64, Real, load_from};
use crate::simd::prefetch::prefetch;
use lacuna_engine::{Format, Kind, Scalar};
use lacuna_formats::Dense;
use pulp::Simd;

/// Prefetch distance in bytes.
const AHEAD: usize = 4096;

/// `y[i] ← (A x)[start + i]` for each `i`.
#[inline(always)]
pub(crate) fn rows<T: Scalar, S: Simd>(simd: S, a: &Dense<T>, x: &[T], y: &mut [T], start: usize) {
    let cols = a.shape().1;
    let rows = Rows { values: &a.values()[start * cols..], x: &x[..cols], y };
    match (T::KIND, a.lanes() * size_of::<T>() / size_of::<S::f64s>()) {
        (Kind::F64, vectors @ 1..) if !S::IS_SCALAR => rows.cast().vectors::<F64, S>(simd, vectors),
        (Kind::F32, vectors @ 1..) if !S::IS_SCALAR => rows.cast().vectors::<F32, S>(simd, vectors),
        _ => match a.lanes() {
            1 => rows.lanes::<1>(),
            2 => rows.lanes::<2>(),
            4 => rows.lanes::<4>(),
            8 => rows.lanes::<8>(),
            16 => rows.lanes::<16>(),
            _ => rows.lanes::<32>(),
        },
    }
}

/// The rows to multiply.
struct Rows<'a, T> {
    /// From the first row on.
    values: &'a [T],
    x: &'a [T],
    y: &'a mut [T],
}

impl<'a, T: Scalar> Rows<'a, T> {
    /// The same with the number type named differently.
    #[inline(always)]
    fn cast<U: Scalar>(self) -> Rows<'a, U> {
        let Rows { values, x, y } = self;
        Rows {
            values: bytemuck::cast_slice(values),
            x: bytemuck::cast_slice(x),
            y: bytemuck::cast_slice_mut(y),
        }
    }

    /// Each sum from the values of its row.
    #[inline(always)]
    fn each(self, sum: impl Fn(&[T], &[T]) -> T) {
        let Rows { mut values, x, y } = self;
        for y in y {
            let row;
            (row, values) = values.split_at(x.len());
            *y = sum(row, x);
        }
    }

    /// All rows, with the lanes of each in `vectors` registers.
    #[inline(always)]
    fn vectors<R: Real<S, Number = T>, S: Simd>(self, simd: S, vectors: usize) {
        match vectors {
            1 => self.registers::<R, S, 1>(simd),
            2 => self.registers::<R, S, 2>(simd),
            4 => self.registers::<R, S, 4>(simd),
            8 => self.registers::<R, S, 8>(simd),
            _ => self.registers::<R, S, 16>(simd),
        }
    }

    #[inline(always)]
    fn registers<R: Real<S, Number = T>, S: Simd, const V: usize>(self, simd: S) {
        self.each(
            #[inline(always)]
            |row, x| {
                let (rounds, x_rounds) = (row.chunks_exact(V * R::LANES), x.chunks_exact(V * R::LANES));
                let (rest, x_rest) = (rounds.remainder(), x_rounds.remainder());
                let mut sums = [R::splat(simd, T::zero()); V];
                for (row, x) in rounds.zip(x_rounds) {
                    for (v, sum) in sums.iter_mut().enumerate() {
                        let k = v * R::LANES;
                        prefetch(row.as_ptr().wrapping_add(k).wrapping_byte_add(AHEAD));
                        *sum = R::fma(simd, load_from::<R, S, T>(row, k), load_from::<R, S, T>(x, k), *sum);
                    }
                }
                for (v, sum) in sums.iter_mut().enumerate() {
                    let k = (v * R::LANES).min(rest.len());
                    let end = (k + R::LANES).min(rest.len());
                    *sum = R::fma_first(simd, &rest[k..end], &x_rest[k..end], *sum);
                }
                let sum = halved_vectors::<R, S, V>(simd, sums);
                R::sum(simd, sum)
            },
        );
    }

    #[inline(always)]
    fn lanes<const W: usize>(self) {
        self.each(
            #[inline(always)]
            |row, x| {
                let ((rounds, rest), (x_rounds, x_rest)) = (row.as_chunks::<W>(), x.as_chunks::<W>());
                let mut sums = [T::zero(); W];
                for (row, x) in rounds.iter().zip(x_rounds) {
                    for line in (0..W * size_of::<T>()).step_by(64) {
                        prefetch(row.as_ptr().wrapping_byte_add(AHEAD + line));
                    }
                    for ((sum, value), x) in sums.iter_mut().zip(row).zip(x) {
                        *sum = value.fma(*x, *sum);
                    }
                }
                for ((sum, value), x) in sums.iter_mut().zip(rest).zip(x_rest) {
                    *sum = value.fma(*x, *sum);
                }
                halved(sums)
            },
        );
    }
}
