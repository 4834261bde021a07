//! Updates in registers for arbitrary terms: a small interpreter that works on a block of registers at a
//! time.
use crate::pass::update::{Bound, BoundTerm};
use crate::simd::known::Known;
use crate::simd::numbers::{C32, C64, F32, F64, Numbers, load, registers, store};
use crate::simd::outlined::outlined;
use lacuna_engine::Scalar;
use pulp::Simd;
use std::ptr::eq;

/// Updates the elements in `start..end`, in order, one block of all vectors at a time. Requires vector
/// instructions.
///
/// # Safety
/// All pointers must be valid for the range, and operands to the end of the segment in which it ends; vectors
/// may be equal but must not overlap otherwise.
#[inline(always)]
pub(crate) unsafe fn run<'a, T: Scalar, S: Simd>(
    simd: S,
    updates: impl Iterator<Item = (*mut T, &'a [BoundTerm<T>])> + Clone,
    start: usize,
    end: usize,
) {
    outlined(
        simd,
        #[inline(always)]
        move || {
            // SAFETY: as the caller promises; the types match the kind.
            unsafe {
                if Known::<T, S>::F32_IN_64 {
                    blocks::<F32, S, T, 8>(simd, updates, start, end)
                } else if Known::<T, S>::F64_IN_64 {
                    blocks::<F64, S, T, 8>(simd, updates, start, end)
                } else if Known::<T, S>::C32_IN_64 {
                    blocks::<C32, S, T, 8>(simd, updates, start, end)
                } else if Known::<T, S>::C64_IN_64 {
                    blocks::<C64, S, T, 8>(simd, updates, start, end)
                } else if Known::<T, S>::F32 {
                    blocks::<F32, S, T, 4>(simd, updates, start, end)
                } else if Known::<T, S>::F64 {
                    blocks::<F64, S, T, 4>(simd, updates, start, end)
                } else if Known::<T, S>::C32 {
                    blocks::<C32, S, T, 4>(simd, updates, start, end)
                } else if Known::<T, S>::C64 {
                    blocks::<C64, S, T, 4>(simd, updates, start, end)
                }
            }
        },
    );
}

/// The same in blocks of `B` registers. The result of an update is passed on in registers and written only
/// after the next one has loaded its operands: a load from the same page offset as a recent store to another
/// vector would wait for the store (4K aliasing).
#[inline(always)]
unsafe fn blocks<'a, N: Numbers<S>, S: Simd, T: Scalar, const B: usize>(
    simd: S,
    updates: impl Iterator<Item = (*mut T, &'a [BoundTerm<T>])> + Clone,
    start: usize,
    end: usize,
) {
    let (mut set, mut to) = ([N::zero(simd); B], std::ptr::null_mut::<T>());
    let mut i = start;
    // SAFETY: as the caller promises; the last block is read whole and written only to the end of the range.
    unsafe {
        while i + B * N::LANES <= end {
            let mut before: *mut T = std::ptr::null_mut();
            for (dst, terms) in updates.clone() {
                if !before.is_null() && terms.iter().any(|term| eq(term.factor, before)) {
                    store::<N, S>(to.cast(), &set);
                    to = std::ptr::null_mut();
                }
                let sum = sums::<N, S, T, B>(simd, (before, &set), terms, i);
                if !to.is_null() {
                    store::<N, S>(to.cast(), &set);
                }
                (set, to, before) = (sum, dst.add(i), dst);
            }
            i += B * N::LANES;
        }
        if !to.is_null() {
            store::<N, S>(to.cast(), &set);
        }
        if i < end {
            for (dst, terms) in updates {
                set = sums::<N, S, T, B>(simd, (std::ptr::null(), &set), terms, i);
                for (k, set) in set.iter().enumerate() {
                    let from = i + k * N::LANES;
                    if from < end {
                        N::store_first(simd, (end - from).min(N::LANES), dst.add(from).cast(), *set);
                    }
                }
            }
        }
    }
}

/// The sums of terms in the registers of a block starting at element `i`, rounded as [`lacuna_engine::lower`]
/// specifies, where `set` is the result of the previous update.
#[inline(always)]
unsafe fn sums<N: Numbers<S>, S: Simd, T: Scalar, const B: usize>(
    simd: S,
    (before, set): (*const T, &[N::Vector; B]),
    terms: &[BoundTerm<T>],
    i: usize,
) -> [N::Vector; B] {
    macro_rules! all {
        (|$k:ident| $value:expr) => {
            registers!(simd, N, B, |$k| $value)
        };
    }
    macro_rules! at {
        ($from:expr, $k:expr) => {
            // SAFETY: as the caller promises.
            unsafe { load::<N, S>($from.add(i).cast(), $k) }
        };
    }
    macro_rules! vector {
        ($term:expr) => {
            if eq($term.vector, before) { *set } else { all!(|k| at!($term.vector, k)) }
        };
    }
    let of = |c: T| N::coefficient(simd, bytemuck::cast(c));
    let Some((first, rest)) = terms.split_first() else { return [N::zero(simd); B] };
    let (v, f) = (vector!(first), first.factor);
    let mut sum = match (first.coefficient, f.is_null()) {
        (Bound::One, true) => v,
        (Bound::MinusOne, true) => all!(|k| N::neg(simd, v[k])),
        (Bound::Value(c), true) => all!(|k| N::scale(simd, of(c), v[k])),
        (Bound::One, false) => all!(|k| N::mul(simd, at!(f, k), v[k])),
        (Bound::MinusOne, false) => all!(|k| N::neg(simd, N::mul(simd, at!(f, k), v[k]))),
        (Bound::Value(c), false) => all!(|k| N::scale(simd, of(c), N::mul(simd, at!(f, k), v[k]))),
    };
    for term in rest {
        let (v, f) = (vector!(term), term.factor);
        sum = match (term.coefficient, f.is_null()) {
            (Bound::One, true) => all!(|k| N::add(simd, sum[k], v[k])),
            (Bound::MinusOne, true) => all!(|k| N::add(simd, sum[k], N::neg(simd, v[k]))),
            (Bound::Value(c), true) => all!(|k| N::scale_add(simd, of(c), v[k], sum[k])),
            (Bound::One, false) => all!(|k| N::fma(simd, at!(f, k), v[k], sum[k])),
            (Bound::MinusOne, false) => all!(|k| N::fma(simd, N::neg(simd, at!(f, k)), v[k], sum[k])),
            (Bound::Value(c), false) => {
                all!(|k| N::scale_add(simd, of(c), N::mul(simd, at!(f, k), v[k]), sum[k]))
            }
        };
    }
    sum
}
