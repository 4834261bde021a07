//! The four number types and how each operation on them is rounded.
//!
//! Every backend computes exactly what is written here, operation by operation, so that results agree bit for
//! bit: a fused multiply-add only where [`Scalar::fma`] is called, and no contraction elsewhere.
use crate::{All, Each, Family, with_number};
use bytemuck::Pod;
use num_complex::Complex;
use std::fmt::{Debug, Display, LowerExp};

/// Which of the four number types a [`Scalar`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NumberType {
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// `Complex<f32>`
    C32,
    /// `Complex<f64>`
    C64,
}

impl NumberType {
    /// Whether numbers of this kind have an imaginary part.
    pub const fn is_complex(self) -> bool {
        matches!(self, NumberType::C32 | NumberType::C64)
    }

    /// The narrower type in which vectors and values of matrices may be stored: [`Scalar::Narrow`].
    pub const fn narrow(self) -> Self {
        match self {
            NumberType::F32 | NumberType::F64 => NumberType::F32,
            NumberType::C32 | NumberType::C64 => NumberType::C32,
        }
    }

    /// [`Scalar::EPSILON`] of the type.
    pub const fn epsilon(self) -> f64 {
        with_number!(self, T => <T as Scalar>::EPSILON)
    }

    /// [`Scalar::TINY`] of the type.
    pub const fn tiny(self) -> f64 {
        with_number!(self, T => <T as Scalar>::TINY)
    }

    /// Bytes of a number.
    pub const fn size(self) -> usize {
        match self {
            NumberType::F32 => 4,
            NumberType::F64 | NumberType::C32 => 8,
            NumberType::C64 => 16,
        }
    }

    /// Bytes of a stored element, of this type or of the narrower one.
    pub const fn element(self, narrow: bool) -> usize {
        if narrow { self.narrow().size() } else { self.size() }
    }

    /// The suffix of this kind's kernels, the same on every device: `f32`, `f64`, `c32`, `c64`.
    pub const fn name(self) -> &'static str {
        match self {
            NumberType::F32 => "f32",
            NumberType::F64 => "f64",
            NumberType::C32 => "c32",
            NumberType::C64 => "c64",
        }
    }
}

mod sealed {
    /// Seals [`Scalar`](super::Scalar): only the types of this file implement it.
    pub trait Sealed {}
}

/// A number type of the library: `f32`, `f64`, `Complex<f32>` or `Complex<f64>`.
///
/// `+`, `-` and `*` are the plain operators, each real operation rounded once (a complex product is
/// `(ac − bd) + (ad + bc)i`: four products and two sums). The methods below specify everything else.
///
/// The trait is sealed: backends rely on [`Scalar::KIND`] for the memory layout of a number.
pub trait Scalar:
    sealed::Sealed
    + Pod
    + Debug
    + Display
    + LowerExp
    + PartialEq
    + Default
    + Send
    + Sync
    + num_traits::NumAssign
    + std::ops::Neg<Output = Self>
{
    /// The type of this number's parts: `f32` or `f64`.
    type Real: Scalar<Real = Self::Real> + num_traits::Float;
    /// The type in which a matrix may store its values to save bytes: `f32` or `Complex<f32>`.
    type Narrow: Scalar;
    /// The type of double precision in which set-ups compute: `f64` or `Complex<f64>`.
    type Wide: Double;
    /// Which number type this is.
    const KIND: NumberType;
    /// Twice the unit roundoff (`f32::EPSILON` or `f64::EPSILON`).
    const EPSILON: f64;
    /// The largest finite value of a part.
    const MAX: f64;
    /// The smallest positive normal value of a part.
    const TINY: f64;

    /// The number with the given parts, each rounded to this type; a real type drops `im`.
    fn from_parts(re: f64, im: f64) -> Self;
    /// The real part.
    fn re(self) -> f64;
    /// The imaginary part, 0 for a real number.
    fn im(self) -> f64;
    /// The complex conjugate; the number itself for a real type.
    fn conj(self) -> Self;
    /// `self · b + c`. Real: one rounding. Complex: `re = fma(−b, d, fma(a, c, e))`,
    /// `im = fma(b, c, fma(a, d, f))` for `(a + bi)(c + di) + (e + fi)`.
    fn fma(self, b: Self, c: Self) -> Self;
    /// The correctly rounded quotient of real numbers; Smith's method for complex ones.
    fn quotient(self, by: Self) -> Self;
    /// The principal square root: correctly rounded for real numbers, NaN for negative real numbers.
    fn root(self) -> Self;
    /// The number with its parts multiplied by `2^exponent`, exact if the result is a normal number.
    fn scale_by_power_of_two(self, exponent: i32) -> Self;

    /// A member of a family as one of any number type.
    fn each<F: Family>(member: F::Of<Self>) -> Each<F>;
    /// The member of a family, if it is of this number type.
    fn member<F: Family>(each: &Each<F>) -> Option<&F::Of<Self>>;
    /// The member of a family, if it is of this number type.
    fn into_member<F: Family>(each: Each<F>) -> Option<F::Of<Self>>;
    /// The member of this number type.
    fn member_of_all<F: Family>(all: &All<F>) -> &F::Of<Self>;
    /// The member of this number type.
    fn member_of_all_mut<F: Family>(all: &mut All<F>) -> &mut F::Of<Self>;

    /// The number in another type, with its parts rounded; a real type drops the imaginary part.
    #[inline(always)]
    fn converted<U: Scalar>(self) -> U {
        U::from_parts(self.re(), self.im())
    }
    /// The number rounded to the narrower type.
    #[inline(always)]
    fn narrowed(self) -> Self::Narrow {
        Self::Narrow::from_parts(self.re(), self.im())
    }
    /// A number of the narrower type, converted exactly.
    #[inline(always)]
    fn widened(v: Self::Narrow) -> Self {
        Self::from_parts(v.re(), v.im())
    }
    /// The number in double precision, converted exactly.
    #[inline(always)]
    fn wide(self) -> Self::Wide {
        self.converted()
    }
    /// The nearest number that is representable in the narrower type.
    #[inline(always)]
    fn rounded(self) -> Self {
        Self::widened(self.narrowed())
    }
    /// Whether the narrower type is a different type.
    const HAS_NARROW: bool = Self::KIND as u32 != <Self::Narrow as Scalar>::KIND as u32;

    /// A term of a dot product, `conj(self) · b`.
    #[inline(always)]
    fn dot_term(self, b: Self) -> Self {
        self.conj() * b
    }
    /// `|self|²` as a term of a maximum: that of [`Scalar::dot_term`] with itself, without the imaginary part that rounding may leave.
    #[inline(always)]
    fn square(self) -> Self {
        Self::from_real(self.dot_term(self).re())
    }
    /// The one with the larger real part; NaN if one of them is.
    #[inline(always)]
    fn larger(self, b: Self) -> Self {
        if self.re() >= b.re() || self.re().is_nan() { self } else { b }
    }
    /// The real number `re`.
    #[inline(always)]
    fn from_real(re: f64) -> Self {
        Self::from_parts(re, 0.0)
    }
    /// Whether every part is finite.
    #[inline(always)]
    fn finite(self) -> bool {
        self.re().is_finite() && self.im().is_finite()
    }
    /// The modulus, in `f64`, without needless overflow. It has the same bits on every platform.
    #[inline]
    fn modulus(self) -> f64 {
        if Self::KIND.is_complex() { libm::hypot(self.re(), self.im()) } else { self.re().abs() }
    }
}

/// A number type of double precision: `f64` or `Complex<f64>`.
pub trait Double: Scalar<Wide = Self> {}
impl<T: Scalar<Wide = T>> Double for T {}

/// `2^exponent` for exponents of normal `f64`s; larger ones take two factors.
fn power_of_two(exponent: i32) -> (f64, f64) {
    let pow = |e: i32| f64::from_bits(((e.clamp(-1022, 1023) + 1023) as u64) << 52);
    let half = exponent / 2;
    (pow(half), pow(exponent - half))
}

macro_rules! number {
    ($real:ident, $bits:literal) => {
        paste::paste! {
            impl sealed::Sealed for $real {}
            impl Scalar for $real {
                type Real = $real;
                type Narrow = f32;
                type Wide = f64;
                const KIND: NumberType = NumberType::[<F $bits>];
                const EPSILON: f64 = $real::EPSILON as f64;
                const MAX: f64 = $real::MAX as f64;
                const TINY: f64 = $real::MIN_POSITIVE as f64;

                fn each<F: Family>(member: F::Of<Self>) -> Each<F> {
                    Each::[<F $bits>](member)
                }
                fn member<F: Family>(each: &Each<F>) -> Option<&F::Of<Self>> {
                    if let Each::[<F $bits>](member) = each { Some(member) } else { None }
                }
                fn into_member<F: Family>(each: Each<F>) -> Option<F::Of<Self>> {
                    if let Each::[<F $bits>](member) = each { Some(member) } else { None }
                }
                fn member_of_all<F: Family>(all: &All<F>) -> &F::Of<Self> {
                    &all.[<f $bits>]
                }
                fn member_of_all_mut<F: Family>(all: &mut All<F>) -> &mut F::Of<Self> {
                    &mut all.[<f $bits>]
                }

                #[inline(always)]
                fn from_parts(re: f64, _: f64) -> Self {
                    re as $real
                }
                #[inline(always)]
                fn re(self) -> f64 {
                    self as f64
                }
                #[inline(always)]
                fn im(self) -> f64 {
                    0.0
                }
                #[inline(always)]
                fn conj(self) -> Self {
                    self
                }
                #[inline(always)]
                fn fma(self, b: Self, c: Self) -> Self {
                    self.mul_add(b, c)
                }
                #[inline(always)]
                fn quotient(self, by: Self) -> Self {
                    self / by
                }
                #[inline(always)]
                fn root(self) -> Self {
                    self.sqrt()
                }
                fn scale_by_power_of_two(self, exponent: i32) -> Self {
                    let (a, b) = power_of_two(exponent);
                    (self as f64 * a * b) as $real
                }
            }

            impl sealed::Sealed for Complex<$real> {}
            impl Scalar for Complex<$real> {
                type Real = $real;
                type Narrow = Complex<f32>;
                type Wide = Complex<f64>;
                const KIND: NumberType = NumberType::[<C $bits>];
                const EPSILON: f64 = $real::EPSILON as f64;
                const MAX: f64 = $real::MAX as f64;
                const TINY: f64 = $real::MIN_POSITIVE as f64;

                fn each<F: Family>(member: F::Of<Self>) -> Each<F> {
                    Each::[<C $bits>](member)
                }
                fn member<F: Family>(each: &Each<F>) -> Option<&F::Of<Self>> {
                    if let Each::[<C $bits>](member) = each { Some(member) } else { None }
                }
                fn into_member<F: Family>(each: Each<F>) -> Option<F::Of<Self>> {
                    if let Each::[<C $bits>](member) = each { Some(member) } else { None }
                }
                fn member_of_all<F: Family>(all: &All<F>) -> &F::Of<Self> {
                    &all.[<c $bits>]
                }
                fn member_of_all_mut<F: Family>(all: &mut All<F>) -> &mut F::Of<Self> {
                    &mut all.[<c $bits>]
                }

                #[inline(always)]
                fn from_parts(re: f64, im: f64) -> Self {
                    Complex::new(re as $real, im as $real)
                }
                #[inline(always)]
                fn re(self) -> f64 {
                    self.re as f64
                }
                #[inline(always)]
                fn im(self) -> f64 {
                    self.im as f64
                }
                #[inline(always)]
                fn conj(self) -> Self {
                    Complex::new(self.re, -self.im)
                }
                #[inline(always)]
                fn fma(self, b: Self, c: Self) -> Self {
                    Complex::new(
                        (-self.im).mul_add(b.im, self.re.mul_add(b.re, c.re)),
                        self.im.mul_add(b.re, self.re.mul_add(b.im, c.im)),
                    )
                }
                #[inline(always)]
                fn quotient(self, by: Self) -> Self {
                    // Smith 1962: divide through by the larger part, so that no square overflows.
                    if by.re.abs() >= by.im.abs() {
                        let ratio = by.im / by.re;
                        let scale = by.im.mul_add(ratio, by.re);
                        Complex::new(
                            self.im.mul_add(ratio, self.re) / scale,
                            (-self.re).mul_add(ratio, self.im) / scale,
                        )
                    } else {
                        let ratio = by.re / by.im;
                        let scale = by.re.mul_add(ratio, by.im);
                        Complex::new(
                            self.re.mul_add(ratio, self.im) / scale,
                            self.im.mul_add(ratio, -self.re) / scale,
                        )
                    }
                }
                #[inline(always)]
                fn root(self) -> Self {
                    // |z| scaled by the larger part; then the half-angle formulas on the side without cancellation.
                    let (re, im) = (self.re.abs(), self.im.abs());
                    let (large, small) = if re >= im { (re, im) } else { (im, re) };
                    if large == 0.0 {
                        return Complex::new(0.0, self.im);
                    }
                    let ratio = small / large;
                    let modulus = large * ratio.mul_add(ratio, 1.0).sqrt();
                    let half = (0.5 * (modulus + re)).sqrt();
                    let other = 0.5 * im / half;
                    if self.re >= 0.0 {
                        Complex::new(half, other.copysign(self.im))
                    } else {
                        Complex::new(other, half.copysign(self.im))
                    }
                }
                fn scale_by_power_of_two(self, exponent: i32) -> Self {
                    Complex::new(
                        self.re.scale_by_power_of_two(exponent),
                        self.im.scale_by_power_of_two(exponent),
                    )
                }
            }
        }
    };
}
number!(f32, 32);
number!(f64, 64);

#[cfg(test)]
mod tests {
    use super::*;

    fn close<T: Scalar>(a: T, b: T) -> bool {
        (a - b).modulus() <= 8.0 * T::EPSILON * (1.0 + b.modulus())
    }

    #[test]
    fn complex_quotient_and_root_invert_their_operations() {
        for (re, im) in [(3.0, 4.0), (-3.0, 4.0), (-3.0, -4.0), (1e-30, 2.0), (5.0, -1e-30), (-7.0, 0.0)] {
            let z = Complex::<f64>::new(re, im);
            let w = Complex::new(0.5, -1.25);
            assert!(close((z * w).quotient(w), z), "{z}");
            assert!(close(z.root() * z.root(), z), "{z}");
            assert!(z.root().re >= 0.0, "{z}");
            let z = Complex::<f32>::new(re as f32, im as f32);
            assert!(close(z.root() * z.root(), z), "{z}");
        }
    }

    #[test]
    fn quotient_survives_parts_whose_squares_overflow() {
        let z = Complex::new(1e200, 2e200);
        assert!(close(z.quotient(z), Complex::new(1.0, 0.0)));
    }

    #[test]
    fn scaling_is_exact() {
        assert_eq!(3.5f64.scale_by_power_of_two(-1000).scale_by_power_of_two(1000), 3.5);
        assert_eq!(f64::MAX.scale_by_power_of_two(-1023).scale_by_power_of_two(1023), f64::MAX);
        assert_eq!(1.5f32.scale_by_power_of_two(100), 1.5 * 2f32.powi(100));
    }
}
