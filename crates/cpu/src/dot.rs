//! Canonical sums: of the products of one segment, and of segment sums.
//!
//! Every function is inlined into code compiled for the instruction set at hand, see [`crate::share`].
use lacuna_core::sum::SEGMENT;
use lacuna_core::{Kind, Scalar};
use pulp::Simd;
use std::mem::MaybeUninit;

/// The canonical sum of `conj(a[i]) b[i]` over one segment, `n ≤ 256` terms.
///
/// # Safety
/// `a` and `b` must be valid for `n` elements.
#[inline(always)]
pub(crate) unsafe fn dot_segment<T: Scalar, S: Simd>(simd: S, a: *const T, b: *const T, n: usize) -> T {
    // SAFETY: the types are those that the kind names.
    unsafe {
        match T::KIND {
            Kind::F64 if !S::IS_SCALAR => {
                return bytemuck::cast(real_segment::<F64, S>(simd, a.cast(), b.cast(), n));
            }
            Kind::F32 if !S::IS_SCALAR => {
                return bytemuck::cast(real_segment::<F32, S>(simd, a.cast(), b.cast(), n));
            }
            _ => {}
        }
    }
    // SAFETY: as the caller promises.
    let products = unsafe { products(a, b, n) };
    full_segment(|i| products[i])
}

/// The products, in the order of memory, which the prefetcher follows, and zeros up to a full segment.
#[inline(always)]
unsafe fn products<T: Scalar>(a: *const T, b: *const T, n: usize) -> [T; SEGMENT] {
    let mut products = [MaybeUninit::<T>::uninit(); SEGMENT];
    for (i, p) in products[..n].iter_mut().enumerate() {
        // SAFETY: below n.
        p.write(unsafe { (*a.add(i)).dot_term(*b.add(i)) });
    }
    products[n..].fill(MaybeUninit::new(T::zero()));
    // SAFETY: all of the buffer has been written.
    unsafe { products.as_ptr().cast::<[T; SEGMENT]>().read() }
}

/// A real number type as vectors of it.
trait Real<S: Simd> {
    type Number: Scalar;
    type Vector: Copy;
    /// Numbers of a vector.
    const LANES: usize = size_of::<Self::Vector>() / size_of::<Self::Number>();
    fn mul(simd: S, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn add(simd: S, a: Self::Vector, b: Self::Vector) -> Self::Vector;
}

struct F64;
struct F32;

macro_rules! real {
    ($name:ident, $number:ident, $vector:ident) => {
        paste::paste! {
            impl<S: Simd> Real<S> for $name {
                type Number = $number;
                type Vector = S::$vector;
                #[inline(always)]
                fn mul(simd: S, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                    simd.[<mul_ $vector>](a, b)
                }
                #[inline(always)]
                fn add(simd: S, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                    simd.[<add_ $vector>](a, b)
                }
            }
        }
    };
}
real!(F64, f64, f64s);
real!(F32, f32, f32s);

/// [`dot_segment`] of real numbers: of a full segment the terms in the order of memory, the sums in registers.
#[inline(always)]
unsafe fn real_segment<R: Real<S>, S: Simd>(
    simd: S,
    a: *const R::Number,
    b: *const R::Number,
    n: usize,
) -> R::Number {
    // SAFETY: as the caller promises; a vector is as many numbers as it has lanes, and the buffer a full segment.
    unsafe {
        let load = |v: *const R::Number, k: usize| v.add(k * R::LANES).cast::<R::Vector>().read_unaligned();
        if n == SEGMENT {
            return folded::<R, S>(simd, |k| R::mul(simd, load(a, k), load(b, k)));
        }
        let products = products(a, b, n);
        folded::<R, S>(simd, |k| load(products.as_ptr(), k))
    }
}

/// The canonical sum of the vectors of a segment.
#[inline(always)]
fn folded<R: Real<S>, S: Simd>(simd: S, term: impl Fn(usize) -> R::Vector) -> R::Number {
    match R::LANES {
        16 => folded_halves::<R, S, 16, 8>(simd, term),
        8 => folded_halves::<R, S, 8, 16>(simd, term),
        4 => folded_halves::<R, S, 4, 32>(simd, term),
        _ => folded_halves::<R, S, 2, 64>(simd, term),
    }
}

/// Vectors of `LANES` numbers, of which there are twice `HALF` in a segment.
#[inline(always)]
fn folded_halves<R: Real<S>, S: Simd, const LANES: usize, const HALF: usize>(
    simd: S,
    product: impl Fn(usize) -> R::Vector,
) -> R::Number {
    let mut sums = [product(0); HALF];
    for (k, s) in sums.iter_mut().enumerate() {
        *s = product(k);
    }
    for (k, s) in sums.iter_mut().enumerate() {
        *s = R::add(simd, *s, product(HALF + k));
    }
    let mut half = HALF / 2;
    while half > 0 {
        for k in 0..half {
            sums[k] = R::add(simd, sums[k], sums[k + half]);
        }
        half /= 2;
    }
    // SAFETY: a vector is as many numbers as it has lanes.
    let mut sums: [R::Number; LANES] =
        unsafe { std::ptr::from_ref(&sums[0]).cast::<[R::Number; LANES]>().read() };
    let mut half = LANES / 2;
    while half > 0 {
        for k in 0..half {
            let upper = sums[k + half];
            sums[k] += upper;
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
pub(crate) fn total<T: Scalar>(sums: &[T], scratch: &mut [T]) -> T {
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
