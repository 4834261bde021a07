//! Canonical sums: of the products of one segment, and of segment sums.
//!
//! All functions are inlined into code compiled for the current instruction set: see [`crate::run::share`].
use crate::simd::known::Known;
use crate::simd::numbers::{C32, C64, F32, F64, Numbers, load};
use lacuna_engine::Scalar;
use lacuna_engine::sum::{SEGMENT, maximum, pair_sum};
use pulp::Simd;
use std::marker::PhantomData;

/// The canonical sum of `conj(a[i]) b[i]` over one segment.
///
/// # Safety
/// `a` and `b` must be valid for a segment.
#[inline(always)]
pub(crate) unsafe fn dot_segment<T: Scalar, S: Simd>(simd: S, a: *const T, b: *const T) -> T {
    // SAFETY: the types match the kind, and the pointers are valid as the caller promises.
    unsafe {
        if Known::<T, S>::F64 {
            bytemuck::cast(real_segment::<F64, S>(simd, a.cast(), from::<F64, S>(b.cast())))
        } else if Known::<T, S>::F32 {
            bytemuck::cast(real_segment::<F32, S>(simd, a.cast(), from::<F32, S>(b.cast())))
        } else if Known::<T, S>::COMPLEX {
            dot_segments(simd, [a], b)[0]
        } else {
            full_segment(|i| (*a.add(i)).dot_term(*b.add(i)))
        }
    }
}

/// The canonical sum of `conj(a[i]) (f[i] b[i])` over one segment.
///
/// # Safety
/// As for [`dot_segment`].
#[inline(always)]
pub(crate) unsafe fn weighted_segment<T: Scalar, S: Simd>(
    simd: S,
    a: *const T,
    f: *const T,
    b: *const T,
) -> T {
    // SAFETY: as in `dot_segment`.
    unsafe {
        if Known::<T, S>::F64 {
            bytemuck::cast(real_segment::<F64, S>(
                simd,
                a.cast(),
                product::<F64, S>(simd, f.cast(), b.cast()),
            ))
        } else if Known::<T, S>::F32 {
            bytemuck::cast(real_segment::<F32, S>(
                simd,
                a.cast(),
                product::<F32, S>(simd, f.cast(), b.cast()),
            ))
        } else if Known::<T, S>::C64 {
            let product = product::<C64, S>(simd, f.cast(), b.cast());
            bytemuck::cast(segments::<C64, S, 1>(simd, [a.cast()], product))
        } else if Known::<T, S>::C32 {
            let product = product::<C32, S>(simd, f.cast(), b.cast());
            bytemuck::cast(segments::<C32, S, 1>(simd, [a.cast()], product))
        } else {
            full_segment(|i| (*a.add(i)).dot_term(*f.add(i) * *b.add(i)))
        }
    }
}

/// [`dot_segment`] of several vectors with the same one, which is loaded only once.
///
/// # Safety
/// As for [`dot_segment`].
#[inline(always)]
pub(crate) unsafe fn dot_segments<T: Scalar, S: Simd, const K: usize>(
    simd: S,
    a: [*const T; K],
    b: *const T,
) -> [T; K] {
    // SAFETY: as in `dot_segment`.
    unsafe {
        if Several::<T, S, K>::F64 {
            segments::<F64, S, K>(simd, a.map(|a| a.cast()), from::<F64, S>(b.cast())).map(bytemuck::cast)
        } else if Several::<T, S, K>::F32 {
            segments::<F32, S, K>(simd, a.map(|a| a.cast()), from::<F32, S>(b.cast())).map(bytemuck::cast)
        } else if Known::<T, S>::C64 {
            segments::<C64, S, K>(simd, a.map(|a| a.cast()), from::<C64, S>(b.cast())).map(bytemuck::cast)
        } else if Known::<T, S>::C32 {
            segments::<C32, S, K>(simd, a.map(|a| a.cast()), from::<C32, S>(b.cast())).map(bytemuck::cast)
        } else {
            let mut sums = [T::zero(); K];
            for (sum, a) in sums.iter_mut().zip(a) {
                *sum = dot_segment(simd, a, b);
            }
            sums
        }
    }
}

/// The largest `|v[i]|²` over one segment; NaN if one is.
///
/// # Safety
/// `v` must be valid for a segment.
#[inline(always)]
pub(crate) unsafe fn largest_segment<T: Scalar>(v: *const T) -> T {
    // SAFETY: as the caller promises.
    let segment = unsafe { std::slice::from_raw_parts(v, SEGMENT) };
    // Comparisons of single numbers in a row become those of vector registers.
    let (mut lanes, mut nan) = ([T::zero(); LANES], [false; LANES]);
    for line in segment.as_chunks::<LANES>().0 {
        for ((v, largest), nan) in line.iter().zip(&mut lanes).zip(&mut nan) {
            let square = v.square();
            *largest = if square.re() > largest.re() { square } else { *largest };
            *nan |= square.re().is_nan();
        }
    }
    if nan.contains(&true) { T::from_real(f64::NAN) } else { maximum(lanes.into_iter()) }
}

/// [`Known`] of several vectors of real numbers.
struct Several<T, S, const K: usize>(PhantomData<(T, S)>);

impl<T: Scalar, S: Simd, const K: usize> Several<T, S, K> {
    const F32: bool = Known::<T, S>::F32 && K > 1;
    const F64: bool = Known::<T, S>::F64 && K > 1;
}

/// [`dot_segment`] for real numbers: the terms in memory order, the sums in registers.
#[inline(always)]
unsafe fn real_segment<N: Numbers<S>, S: Simd>(
    simd: S,
    a: *const N::Number,
    b: impl Fn(usize) -> N::Vector,
) -> N::Number {
    // SAFETY: as the caller promises; a segment has twice as many vectors as the second number.
    unsafe {
        match N::LANES {
            16 => in_order::<N, S, 8>(simd, a, b),
            8 => in_order::<N, S, 16>(simd, a, b),
            4 => in_order::<N, S, 32>(simd, a, b),
            _ => in_order::<N, S, 64>(simd, a, b),
        }
    }
}

#[inline(always)]
unsafe fn in_order<N: Numbers<S>, S: Simd, const HALF: usize>(
    simd: S,
    a: *const N::Number,
    b: impl Fn(usize) -> N::Vector,
) -> N::Number {
    // SAFETY: vectors of a segment, as the caller promises.
    let product = |k| unsafe { N::dot(simd, load::<N, S>(a, k), b(k)) };
    let mut sums = [product(0); HALF];
    for (k, s) in sums.iter_mut().enumerate() {
        *s = product(k);
    }
    for (k, s) in sums.iter_mut().enumerate() {
        *s = N::add(simd, *s, product(HALF + k));
    }
    N::sum(simd, halved::<N, S, HALF>(simd, sums))
}

/// [`dot_segments`] in registers.
#[inline(always)]
unsafe fn segments<N: Numbers<S>, S: Simd, const K: usize>(
    simd: S,
    a: [*const N::Number; K],
    b: impl Fn(usize) -> N::Vector,
) -> [N::Number; K] {
    // SAFETY: as the caller promises; a segment has four times as many vectors as the last number.
    unsafe {
        match N::LANES {
            16 => side_by_side::<N, S, K, 4>(simd, a, b),
            8 => side_by_side::<N, S, K, 8>(simd, a, b),
            4 => side_by_side::<N, S, K, 16>(simd, a, b),
            2 => side_by_side::<N, S, K, 32>(simd, a, b),
            _ => side_by_side::<N, S, K, 64>(simd, a, b),
        }
    }
}

/// The registers of the element-wise product of two segments in memory.
///
/// # Safety
/// As for [`from`].
#[inline(always)]
unsafe fn product<N: Numbers<S>, S: Simd>(
    simd: S,
    f: *const N::Number,
    b: *const N::Number,
) -> impl Fn(usize) -> N::Vector {
    #[inline(always)]
    // SAFETY: registers of the segments.
    move |k| unsafe { N::mul(simd, load::<N, S>(f, k), load::<N, S>(b, k)) }
}

/// The registers of a segment in memory.
///
/// # Safety
/// The segment must be valid while the function is used.
#[inline(always)]
unsafe fn from<N: Numbers<S>, S: Simd>(b: *const N::Number) -> impl Fn(usize) -> N::Vector {
    #[inline(always)]
    // SAFETY: registers of the segment.
    move |k| unsafe { load::<N, S>(b, k) }
}

/// A quarter of the vectors of each segment at a time: those at a distance of four, which the longer strides
/// add.
#[inline(always)]
unsafe fn side_by_side<N: Numbers<S>, S: Simd, const K: usize, const QUARTER: usize>(
    simd: S,
    a: [*const N::Number; K],
    b: impl Fn(usize) -> N::Vector,
) -> [N::Number; K] {
    // SAFETY: vectors of a segment, as the caller promises.
    unsafe {
        let mut sums = [[b(0); 4]; K];
        for k in 0..4 {
            let mut others = [b(k); QUARTER];
            for (i, other) in others.iter_mut().enumerate() {
                *other = b(k + 4 * i);
            }
            for (sums, a) in sums.iter_mut().zip(a) {
                let mut products = others;
                for (i, product) in products.iter_mut().enumerate() {
                    *product = N::dot(simd, load::<N, S>(a, k + 4 * i), *product);
                }
                sums[k] = halved::<N, S, QUARTER>(simd, products);
            }
        }
        let mut totals = [N::sum(simd, sums[0][0]); K];
        for (total, sums) in totals.iter_mut().zip(sums) {
            *total = N::sum(simd, halved::<N, S, 4>(simd, sums));
        }
        totals
    }
}

/// The sum of vectors by halving.
#[inline(always)]
pub(crate) fn halved<N: Numbers<S>, S: Simd, const M: usize>(simd: S, mut sums: [N::Vector; M]) -> N::Vector {
    let mut half = M / 2;
    while half > 0 {
        for k in 0..half {
            sums[k] = N::add(simd, sums[k], sums[k + half]);
        }
        half /= 2;
    }
    sums[0]
}

/// Numbers of which the largest is sought side by side.
const LANES: usize = 16;

/// Numbers summed side by side: one cache line of `f64`.
const LINE: usize = 8;

/// The canonical sum of a full segment, one line at a time and in registers: lines 0, 16, 8 and 24 first,
/// which the strides 128 and 64 add, and so on down to one line.
#[inline(never)]
fn full_segment<T: Scalar>(term: impl Fn(usize) -> T) -> T {
    let line = |k: usize| -> [T; LINE] { std::array::from_fn(|j| term(k * LINE + j)) };
    let four = |k: usize| sum_lines(sum_lines(line(k), line(k + 16)), sum_lines(line(k + 8), line(k + 24)));
    let eight = |k: usize| sum_lines(four(k), four(k + 4));
    let sixteen = |k: usize| sum_lines(eight(k), eight(k + 2));
    let [a, b, c, d, e, f, g, h] = sum_lines(sixteen(0), sixteen(1));
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

#[inline(always)]
fn sum_lines<T: Scalar>(a: [T; LINE], b: [T; LINE]) -> [T; LINE] {
    std::array::from_fn(|j| a[j] + b[j])
}

/// Segment sums, `count` for each sum over all rows.
pub(crate) struct SegmentSums<'a, T> {
    pub(crate) all: &'a [T],
    pub(crate) count: usize,
}

impl<T: Scalar> SegmentSums<'_, T> {
    /// The next of the sums.
    #[inline]
    pub(crate) fn next(&mut self, sums: &mut [T]) {
        sums.iter_mut().for_each(|sum| *sum = pair_sum(self.take()));
    }
    /// The next of the sums, which is a maximum.
    pub(crate) fn next_maximum(&mut self) -> T {
        maximum(self.take().iter().copied())
    }
    #[inline]
    fn take(&mut self) -> &[T] {
        let (these, rest) = self.all.split_at(self.count);
        self.all = rest;
        these
    }
}
