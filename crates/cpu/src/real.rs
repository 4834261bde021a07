//! Real numbers as many at a time as a register holds.
use lacuna_core::Scalar;
use pulp::Simd;

/// A real number type as vectors of it.
pub(crate) trait Real<S: Simd> {
    type Number: Scalar;
    type Vector: Copy;
    /// Numbers of a vector.
    const LANES: usize = size_of::<Self::Vector>() / size_of::<Self::Number>();
    fn splat(simd: S, number: Self::Number) -> Self::Vector;
    fn mul(simd: S, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn add(simd: S, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The sum of its numbers, in whatever order the processor takes.
    fn sum(simd: S, vector: Self::Vector) -> Self::Number;
    /// `a b + c`, rounded once.
    fn fma(simd: S, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// The same in the first `count` lanes, of numbers that follow each other; `c` in the others.
    ///
    /// # Safety
    /// So many numbers must be there.
    unsafe fn fma_first(
        simd: S,
        count: usize,
        a: *const Self::Number,
        b: *const Self::Number,
        c: Self::Vector,
    ) -> Self::Vector;
}

pub(crate) struct F64;
pub(crate) struct F32;

macro_rules! real {
    ($name:ident, $number:ident, $bits:literal) => {
        paste::paste! {
            impl<S: Simd> Real<S> for $name {
                type Number = $number;
                type Vector = S::[<$number s>];
                #[inline(always)]
                fn splat(simd: S, number: Self::Number) -> Self::Vector {
                    simd.[<splat_ $number s>](number)
                }
                #[inline(always)]
                fn mul(simd: S, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                    simd.[<mul_ $number s>](a, b)
                }
                #[inline(always)]
                fn add(simd: S, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                    simd.[<add_ $number s>](a, b)
                }
                #[inline(always)]
                fn sum(simd: S, vector: Self::Vector) -> Self::Number {
                    simd.[<reduce_sum_ $number s>](vector)
                }
                #[inline(always)]
                fn fma(simd: S, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
                    simd.[<mul_add_ $number s>](a, b, c)
                }
                #[inline(always)]
                unsafe fn fma_first(
                    simd: S,
                    count: usize,
                    a: *const Self::Number,
                    b: *const Self::Number,
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

/// Vector `k` of numbers that follow each other.
///
/// # Safety
/// The numbers must be there.
#[inline(always)]
pub(crate) unsafe fn load<R: Real<S>, S: Simd>(from: *const R::Number, k: usize) -> R::Vector {
    // SAFETY: a vector is as many numbers as it has lanes.
    unsafe { from.add(k * R::LANES).cast::<R::Vector>().read_unaligned() }
}

/// Writes vectors behind each other.
///
/// # Safety
/// There must be room for all their lanes.
#[inline(always)]
pub(crate) unsafe fn store<R: Real<S>, S: Simd>(to: *mut R::Number, vectors: &[R::Vector]) {
    for (k, vector) in vectors.iter().enumerate() {
        // SAFETY: as the caller promises.
        unsafe { to.add(k * R::LANES).cast::<R::Vector>().write_unaligned(*vector) };
    }
}
