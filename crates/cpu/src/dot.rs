//! Canonical sums: of the products of one segment, and of segment sums.
//!
//! Every function is inlined into code compiled for the instruction set at hand, see [`crate::share`].
use crate::numbers::{Numbers, by_numbers, load, registers};
use lacuna_core::Scalar;
use lacuna_core::sum::SEGMENT;
use pulp::Simd;

/// The canonical sums of `conj(a[i]) b[i]` over one segment, of several `a` with the same `b`.
///
/// # Safety
/// The pointers must be valid for a segment.
#[inline(always)]
pub(crate) unsafe fn dot_segments<T: Scalar, S: Simd, const K: usize>(
    simd: S,
    a: [*const T; K],
    b: *const T,
) -> [T; K] {
    // SAFETY: the types are those that the kind names, and the pointers as the caller promises.
    unsafe { by_numbers!(T, S, cast_sums::<T, K>(simd, a, b)) }
}

#[inline(always)]
unsafe fn cast_sums<N: Numbers<S>, S: Simd, T: Scalar, const K: usize>(
    simd: S,
    a: [*const T; K],
    b: *const T,
) -> [T; K] {
    // SAFETY: as the caller promises.
    let sums = unsafe { segment_sums::<N, S, K>(simd, a.map(|a| a.cast()), b.cast()) };
    sums.map(bytemuck::cast)
}

/// [`dot_segments`] by registers: one in the order of memory, several by stripes.
///
/// # Safety
/// As of [`dot_segments`].
#[inline(always)]
pub(crate) unsafe fn segment_sums<N: Numbers<S>, S: Simd, const K: usize>(
    simd: S,
    a: [*const N::Number; K],
    b: *const N::Number,
) -> [N::Number; K] {
    // SAFETY: as the caller promises; there are twice as many registers in a segment as the last number says.
    unsafe {
        // Of a vector with itself, what is read once is enough: the compiler sees that of two names for one pointer.
        macro_rules! one {
            ($half:literal) => {
                match std::ptr::eq(a[0], b) {
                    true => [in_order::<N, S, $half>(simd, b, b); K],
                    false => [in_order::<N, S, $half>(simd, a[0], b); K],
                }
            };
        }
        match (K, N::LANES) {
            (1, 16) => one!(8),
            (1, 8) => one!(16),
            (1, 4) => one!(32),
            (_, 16) => by_stripes::<N, S, K, 2>(simd, a, b),
            (_, 8) => by_stripes::<N, S, K, 4>(simd, a, b),
            (_, 4) => by_stripes::<N, S, K, 8>(simd, a, b),
            (_, 2) => by_stripes::<N, S, K, 16>(simd, a, b),
            _ => by_stripes::<N, S, K, 32>(simd, a, b),
        }
    }
}

#[inline(always)]
unsafe fn in_order<N: Numbers<S>, S: Simd, const HALF: usize>(
    simd: S,
    a: *const N::Number,
    b: *const N::Number,
) -> N::Number {
    macro_rules! product {
        ($k:expr) => {
            N::dot(simd, load::<N, S>(a, $k), load::<N, S>(b, $k))
        };
    }
    // SAFETY: registers of a segment, as the caller promises.
    unsafe {
        let mut sums = [product!(0); HALF];
        for (k, s) in sums.iter_mut().enumerate() {
            *s = product!(k);
        }
        for (k, s) in sums.iter_mut().enumerate() {
            *s = N::add(simd, *s, product!(HALF + k));
        }
        N::sum(simd, halved::<N, S, HALF>(simd, sums))
    }
}

/// Registers of a stripe: those at equal distances, which the longest strides of the sum add.
const STRIPE: usize = 8;

/// By so many stripes as a segment has.
#[inline(always)]
unsafe fn by_stripes<N: Numbers<S>, S: Simd, const K: usize, const STRIPES: usize>(
    simd: S,
    a: [*const N::Number; K],
    b: *const N::Number,
) -> [N::Number; K] {
    // SAFETY: registers of a segment, as the caller promises.
    unsafe {
        let mut sums = [[N::zero(simd); STRIPES]; K];
        for k in 0..STRIPES {
            let others = registers!(simd, N, STRIPE, |i| load::<N, S>(b, k + i * STRIPES));
            for (sums, a) in sums.iter_mut().zip(a) {
                let products = match std::ptr::eq(a, b) {
                    true => registers!(simd, N, STRIPE, |i| N::dot(simd, others[i], others[i])),
                    false => registers!(simd, N, STRIPE, |i| {
                        N::dot(simd, load::<N, S>(a, k + i * STRIPES), others[i])
                    }),
                };
                sums[k] = halved::<N, S, STRIPE>(simd, products);
            }
        }
        let mut totals = [*b; K];
        for (total, sums) in totals.iter_mut().zip(sums) {
            *total = N::sum(simd, halved::<N, S, STRIPES>(simd, sums));
        }
        totals
    }
}

/// The sum of registers by halving.
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

/// Numbers that are summed side by side: a cache line of `f64`.
const LINE: usize = 8;

/// The canonical sum of a full segment, a line at a time and in registers: lines 0, 16, 8 and 24 first, which is what
/// the strides 128 and 64 add, and so on down to one line.
#[inline(always)]
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

/// Terms up to which a sum is done one by one.
const FEW: usize = 16;

/// The canonical sum of at most one segment of numbers.
#[inline(always)]
fn sum_segment<T: Scalar>(terms: &[T]) -> T {
    if let Ok(full) = <&[T; SEGMENT]>::try_from(terms) {
        return full_segment(|i| full[i]);
    }
    if terms.len() <= FEW {
        // The longer strides would only add zeros; adding one is enough to turn −0 into 0.
        let mut sums = [T::zero(); FEW];
        for (s, term) in sums.iter_mut().zip(terms) {
            *s += *term;
        }
        for stride in [8, 4, 2, 1] {
            for i in 0..stride {
                let upper = sums[i + stride];
                sums[i] += upper;
            }
        }
        return sums[0];
    }
    let mut padded = [T::zero(); SEGMENT];
    padded[..terms.len()].copy_from_slice(terms);
    full_segment(|i| padded[i])
}

/// The canonical sum of segment sums; `scratch` holds a 256th of them.
#[inline(always)]
fn total<T: Scalar>(sums: &[T], scratch: &mut [T]) -> T {
    match sums.len() {
        0 => return T::zero(),
        1 => return sums[0],
        n if n <= SEGMENT => return sum_segment(sums),
        _ => {}
    }
    let mut count = sums.len().div_ceil(SEGMENT);
    for (s, segment) in scratch.iter_mut().zip(sums.chunks(SEGMENT)) {
        *s = sum_segment(segment);
    }
    while count > 1 {
        let next = count.div_ceil(SEGMENT);
        for i in 0..next {
            scratch[i] = sum_segment(&scratch[i * SEGMENT..count.min((i + 1) * SEGMENT)]);
        }
        count = next;
    }
    scratch[0]
}

/// Sums of segments, `count` to a sum over all rows.
pub(crate) struct SegmentSums<'a, T> {
    pub(crate) all: &'a [T],
    pub(crate) count: usize,
    pub(crate) scratch: &'a mut [T],
}

impl<T: Scalar> SegmentSums<'_, T> {
    /// The next of the sums.
    #[inline]
    pub(crate) fn next(&mut self, sums: &mut [T]) {
        let (these, rest) = self.all.split_at(sums.len() * self.count);
        self.all = rest;
        if self.count == 1 {
            return sums.copy_from_slice(these);
        }
        for (d, sum) in sums.iter_mut().enumerate() {
            *sum = total(&these[d * self.count..(d + 1) * self.count], self.scratch);
        }
    }
}
