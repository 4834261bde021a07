//! Numbers of any type, one register at a time.
use crate::simd::lanes::halved;
use lacuna_engine::{Complex32, Complex64, Scalar};
use pulp::Simd;
use std::mem::transmute_copy;

/// A number type in registers; every operation is rounded as [`lacuna_engine::Scalar`] specifies.
pub(crate) trait Numbers<S: Simd> {
    type Number: Scalar;
    type Vector: Copy;
    /// A scalar in the form that multiplies registers.
    type Coefficient: Copy;
    /// Numbers per register.
    const LANES: usize = size_of::<Self::Vector>() / size_of::<Self::Number>();
    fn coefficient(simd: S, number: Self::Number) -> Self::Coefficient;
    fn zero(simd: S) -> Self::Vector;
    fn scale(simd: S, c: Self::Coefficient, v: Self::Vector) -> Self::Vector;
    /// `c v + sum`, fused.
    fn scale_add(simd: S, c: Self::Coefficient, v: Self::Vector, sum: Self::Vector) -> Self::Vector;
    fn add(simd: S, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn neg(simd: S, a: Self::Vector) -> Self::Vector;
    fn mul(simd: S, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a b + sum`, fused.
    fn fma(simd: S, a: Self::Vector, b: Self::Vector, sum: Self::Vector) -> Self::Vector;
    /// `conj(a) b`
    fn dot(simd: S, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The sum of a register's numbers by halving.
    fn sum(simd: S, register: Self::Vector) -> Self::Number;
    /// Writes the first `count` numbers to an address.
    ///
    /// # Safety
    /// There must be room for them.
    unsafe fn store_first(simd: S, count: usize, to: *mut Self::Number, vector: Self::Vector);
}

/// Register `k` of consecutive numbers.
///
/// # Safety
/// The numbers must be valid.
#[inline(always)]
pub(crate) unsafe fn load<N: Numbers<S>, S: Simd>(from: *const N::Number, k: usize) -> N::Vector {
    // SAFETY: a register holds as many numbers as it has lanes.
    unsafe { from.add(k * N::LANES).cast::<N::Vector>().read_unaligned() }
}

/// Writes registers consecutively.
///
/// # Safety
/// There must be room for all their lanes.
#[inline(always)]
pub(crate) unsafe fn store<N: Numbers<S>, S: Simd>(to: *mut N::Number, vectors: &[N::Vector]) {
    for (k, vector) in vectors.iter().enumerate() {
        // SAFETY: as the caller promises.
        unsafe { to.add(k * N::LANES).cast::<N::Vector>().write_unaligned(*vector) };
    }
}

/// Real numbers: their coefficients are registers.
pub(crate) trait Real<S: Simd>: Numbers<S> {
    fn splat(simd: S, number: Self::Number) -> Self::Vector;
    /// `a b + c` in the first `count` lanes, with `a` and `b` consecutive in memory; `c` in the others.
    ///
    /// # Safety
    /// There must be that many numbers.
    unsafe fn fma_first(
        simd: S,
        count: usize,
        a: *const Self::Number,
        b: *const Self::Number,
        c: Self::Vector,
    ) -> Self::Vector;
}

macro_rules! real {
    ($name:ident, $number:ident, $bits:literal) => {
        pub(crate) struct $name;

        paste::paste! {
            impl<S: Simd> Numbers<S> for $name {
                type Number = $number;
                type Vector = S::[<$number s>];
                type Coefficient = Self::Vector;
                #[inline(always)]
                fn coefficient(simd: S, number: $number) -> Self::Vector {
                    Self::splat(simd, number)
                }
                #[inline(always)]
                fn zero(simd: S) -> Self::Vector {
                    Self::splat(simd, 0.0)
                }
                #[inline(always)]
                fn scale(simd: S, c: Self::Vector, v: Self::Vector) -> Self::Vector {
                    Self::mul(simd, c, v)
                }
                #[inline(always)]
                fn scale_add(simd: S, c: Self::Vector, v: Self::Vector, sum: Self::Vector) -> Self::Vector {
                    Self::fma(simd, c, v, sum)
                }
                #[inline(always)]
                fn add(simd: S, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                    simd.[<add_ $number s>](a, b)
                }
                #[inline(always)]
                fn neg(simd: S, a: Self::Vector) -> Self::Vector {
                    simd.[<neg_ $number s>](a)
                }
                #[inline(always)]
                fn mul(simd: S, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                    simd.[<mul_ $number s>](a, b)
                }
                #[inline(always)]
                fn fma(simd: S, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
                    simd.[<mul_add_ $number s>](a, b, c)
                }
                #[inline(always)]
                fn dot(simd: S, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                    Self::mul(simd, a, b)
                }
                #[inline(always)]
                fn sum(simd: S, vector: Self::Vector) -> $number {
                    if cfg!(target_arch = "x86_64") && size_of::<Self::Vector>() > 16 {
                        return simd.[<reduce_sum_ $number s>](vector); // also sums by halving
                    }
                    sum_of::<$number, Self::Vector>(vector)
                }
                #[inline(always)]
                unsafe fn store_first(simd: S, count: usize, to: *mut $number, vector: Self::Vector) {
                    let mask = simd.[<mask_between_m $bits s>](0, count as _);
                    // SAFETY: as the caller promises.
                    unsafe { simd.[<mask_store_ptr_ $number s>](mask, to, vector) };
                }
            }
            impl<S: Simd> Real<S> for $name {
                #[inline(always)]
                fn splat(simd: S, number: $number) -> Self::Vector {
                    simd.[<splat_ $number s>](number)
                }
                #[inline(always)]
                unsafe fn fma_first(
                    simd: S,
                    count: usize,
                    a: *const $number,
                    b: *const $number,
                    c: Self::Vector,
                ) -> Self::Vector {
                    let mask = simd.[<mask_between_m $bits s>](0, count as _);
                    // SAFETY: as the caller promises.
                    let (a, b) = unsafe {
                        (simd.[<mask_load_ptr_ $number s>](mask, a), simd.[<mask_load_ptr_ $number s>](mask, b))
                    };
                    simd.[<select_ $number s>](mask.mask(), Self::fma(simd, a, b, c), c)
                }
            }
        }
    };
}
real!(F64, f64, 64);
real!(F32, f32, 32);

/// The sum of a register's numbers by halving.
#[inline(always)]
fn sum_of<T: Scalar, V: Copy>(register: V) -> T {
    macro_rules! lanes {
        ($($lanes:literal)*) => {
            match size_of::<V>() / size_of::<T>() {
                // SAFETY: a register holds as many numbers as it has lanes.
                $($lanes => halved(unsafe { transmute_copy::<V, [T; $lanes]>(&register) }),)*
                lanes => unreachable!("{lanes} lanes"),
            }
        };
    }
    lanes!(1 2 4 8 16)
}

/// Complex numbers: registers of alternating real and imaginary parts.
macro_rules! complex {
    ($name:ident, $number:ident, $real:ident, $parts:ident, $part:ident, $pairs:ident, $bits:ident) => {
        pub(crate) struct $name;

        paste::paste! {
            impl $name {
                #[inline(always)]
                fn parts<S: Simd>(pairs: S::$pairs) -> S::$parts {
                    // SAFETY: both are registers of the same parts if there are vector instructions.
                    unsafe { transmute_copy(&pairs) }
                }
                #[inline(always)]
                fn swapped<S: Simd>(simd: S, parts: S::$parts) -> S::$parts {
                    // SAFETY: as in `parts`.
                    Self::parts::<S>(simd.[<swap_re_im_ $pairs>](unsafe { transmute_copy(&parts) }))
                }
                #[inline(always)]
                fn pairs<S: Simd>(simd: S, re: $part, im: $part) -> S::$parts {
                    Self::parts::<S>(simd.[<splat_ $pairs>]($number::new(re, im)))
                }
                /// The real parts, or the imaginary parts, duplicated in both positions.
                #[inline(always)]
                fn doubled<S: Simd>(simd: S, parts: S::$parts, real: bool) -> S::$parts {
                    let (re, im) = if real { (!0, 0) } else { (0, !0) };
                    let mask = Self::pairs(simd, $part::from_bits(re), $part::from_bits(im));
                    let bits = |v| simd.[<transmute_ $bits s_ $part s>](v);
                    let one = simd.[<and_ $bits s>](bits(parts), bits(mask));
                    let other = bits(Self::swapped(simd, simd.[<transmute_ $part s_ $bits s>](one)));
                    simd.[<transmute_ $part s_ $bits s>](simd.[<or_ $bits s>](one, other))
                }
                /// Negates the real parts.
                #[inline(always)]
                fn turned<S: Simd>(simd: S, parts: S::$parts) -> S::$parts {
                    let signs = Self::pairs(simd, -0.0, 0.0);
                    let bits = |v| simd.[<transmute_ $bits s_ $part s>](v);
                    simd.[<transmute_ $part s_ $bits s>](simd.[<xor_ $bits s>](bits(parts), bits(signs)))
                }
            }

            impl<S: Simd> Numbers<S> for $name {
                type Number = $number;
                type Vector = S::$parts;
                /// The real part in all lanes, and the imaginary part with its sign changed in the lanes of
                /// real parts.
                type Coefficient = [S::$parts; 2];
                #[inline(always)]
                fn coefficient(simd: S, c: $number) -> [S::$parts; 2] {
                    // In registers: storing a pair part by part and loading it as one would stall.
                    [$real::splat(simd, c.re), Self::turned(simd, $real::splat(simd, c.im))]
                }
                #[inline(always)]
                fn zero(simd: S) -> S::$parts {
                    Self::pairs(simd, 0.0, 0.0)
                }
                #[inline(always)]
                fn scale(simd: S, [re, im]: [S::$parts; 2], v: S::$parts) -> S::$parts {
                    let other = <$real as Numbers<S>>::mul(simd, im, Self::swapped(simd, v));
                    <$real as Numbers<S>>::add(simd, <$real as Numbers<S>>::mul(simd, re, v), other)
                }
                #[inline(always)]
                fn scale_add(simd: S, [re, im]: [S::$parts; 2], v: S::$parts, sum: S::$parts) -> S::$parts {
                    <$real as Numbers<S>>::fma(simd, im, Self::swapped(simd, v), <$real as Numbers<S>>::fma(simd, re, v, sum))
                }
                #[inline(always)]
                fn add(simd: S, a: S::$parts, b: S::$parts) -> S::$parts {
                    <$real as Numbers<S>>::add(simd, a, b)
                }
                #[inline(always)]
                fn neg(simd: S, a: S::$parts) -> S::$parts {
                    <$real as Numbers<S>>::neg(simd, a)
                }
                #[inline(always)]
                fn mul(simd: S, a: S::$parts, b: S::$parts) -> S::$parts {
                    let im = Self::turned(simd, Self::doubled(simd, a, false));
                    <Self as Numbers<S>>::scale(simd, [Self::doubled(simd, a, true), im], b)
                }
                #[inline(always)]
                fn fma(simd: S, a: S::$parts, b: S::$parts, sum: S::$parts) -> S::$parts {
                    let im = Self::turned(simd, Self::doubled(simd, a, false));
                    <Self as Numbers<S>>::scale_add(simd, [Self::doubled(simd, a, true), im], b, sum)
                }
                #[inline(always)]
                fn dot(simd: S, a: S::$parts, b: S::$parts) -> S::$parts {
                    let im = <$real as Numbers<S>>::neg(simd, Self::turned(simd, Self::doubled(simd, a, false)));
                    <Self as Numbers<S>>::scale(simd, [Self::doubled(simd, a, true), im], b)
                }
                #[inline(always)]
                fn sum(_: S, register: S::$parts) -> $number {
                    sum_of::<$number, S::$parts>(register)
                }
                #[inline(always)]
                unsafe fn store_first(simd: S, count: usize, to: *mut $number, vector: S::$parts) {
                    // SAFETY: as the caller promises.
                    unsafe { $real::store_first(simd, 2 * count, to.cast(), vector) };
                }
            }
        }
    };
}
complex!(C32, Complex32, F32, f32s, f32, c32s, u32);
complex!(C64, Complex64, F64, f64s, f64, c64s, u64);

/// An array of `$B` registers by index, at most eight, unrolled so that they can stay in registers.
macro_rules! registers {
    ($simd:ident, $N:ident, $B:expr, |$k:ident| $value:expr) => {{
        let mut all = [$N::zero($simd); $B];
        $crate::simd::numbers::registers!(@ all $B, $k $value; 0 1 2 3 4 5 6 7);
        all
    }};
    (@ $all:ident $B:expr, $k:ident $value:expr; $($at:literal)*) => {
        $(if $at < $B {
            let $k: usize = $at;
            $all[$k] = $value;
        })*
    };
}
pub(crate) use registers;
