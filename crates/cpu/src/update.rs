//! Updates over a piece of vectors that fits the first-level cache: a small interpreter whose unit is a block of registers.
//!
//! Every function is inlined into code compiled for the instruction set at hand, see [`crate::share`].
use crate::numbers::{Numbers, load, registers, store};
use lacuna_core::Scalar;
use pulp::Simd;

/// A term with its pointers and its coefficient found: `value · factor · vector`.
#[derive(Clone, Copy)]
pub(crate) struct BoundTerm<T> {
    pub(crate) coefficient: Bound,
    /// ±1 or that of a cell. For real numbers, ±1 multiplies to exactly what adding and subtracting round to.
    pub(crate) value: T,
    /// Null where there is none.
    pub(crate) factor: *const T,
    /// Null where it is what the update before sets.
    pub(crate) vector: *const T,
}

impl<T: Scalar> BoundTerm<T> {
    /// What stands where no term is bound.
    pub(crate) fn none() -> Self {
        BoundTerm {
            coefficient: Bound::One,
            value: T::one(),
            factor: std::ptr::null(),
            vector: std::ptr::null(),
        }
    }
}

// SAFETY: the pointers are bound, used and forgotten by one thread within a step.
unsafe impl<T: Send> Send for BoundTerm<T> {}

/// What a coefficient is known to be.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    One,
    MinusOne,
    Value,
}

/// An update with its destination found, and how many of the terms are its own.
#[derive(Clone, Copy)]
pub(crate) struct BoundUpdate<T> {
    pub(crate) dst: *mut T,
    pub(crate) terms: usize,
    /// Whether the next update has it as a factor.
    pub(crate) multiplies: bool,
}

impl<T> BoundUpdate<T> {
    /// What stands where no update is bound.
    pub(crate) const NONE: Self = BoundUpdate { dst: std::ptr::null_mut(), terms: 0, multiplies: false };
}

// SAFETY: as of terms.
unsafe impl<T: Send> Send for BoundUpdate<T> {}

/// Whether real terms without factors are all there is.
pub(crate) fn plain<T: Scalar>(updates: &[crate::compile::Update]) -> bool {
    let plain = |update: &crate::compile::Update| {
        !update.terms.is_empty() && update.terms.iter().all(|term| term.factor.is_none())
    };
    !T::KIND.is_complex() && updates.iter().all(plain)
}

/// Updates of the elements in `start..end`, in order, a block of registers of all vectors at a time. `PLAIN` ones have terms, which
/// are real and without factors.
///
/// # Safety
/// All pointers must be valid for the range, and operands to the end of the segment it ends in; vectors may be the same but not
/// overlap otherwise. There must be as many terms as the updates have.
#[inline(always)]
pub(crate) unsafe fn blocks<N: Numbers<S>, S: Simd, const PLAIN: bool>(
    simd: S,
    updates: &[BoundUpdate<N::Number>],
    terms: &[BoundTerm<N::Number>],
    start: usize,
    end: usize,
) {
    // SAFETY: as the caller promises.
    unsafe {
        match size_of::<N::Vector>() {
            64 => blocks_of::<N, S, PLAIN, 8>(simd, updates, terms, start, end),
            _ => blocks_of::<N, S, PLAIN, 4>(simd, updates, terms, start, end),
        }
    }
}

/// The same in blocks of `B` registers. What an update sets is written only when the next has read, and handed on in registers: what is
/// read where another vector was just written, pages aside, would wait for it.
#[inline(always)]
unsafe fn blocks_of<N: Numbers<S>, S: Simd, const PLAIN: bool, const B: usize>(
    simd: S,
    updates: &[BoundUpdate<N::Number>],
    terms: &[BoundTerm<N::Number>],
    start: usize,
    end: usize,
) {
    let (mut set, mut to) = ([N::zero(simd); B], std::ptr::null_mut::<N::Number>());
    let mut i = start;
    // SAFETY: as the caller promises; the last block is read whole and written as far as the range goes.
    unsafe {
        while i + B * N::LANES <= end {
            let mut term = terms.as_ptr();
            for &BoundUpdate { dst, terms, multiplies } in updates {
                let sum = sums::<N, S, PLAIN, B>(simd, &set, term, terms, i);
                if !to.is_null() {
                    store::<N, S>(to, &set);
                }
                (set, to) = (sum, dst.add(i));
                if !PLAIN && multiplies {
                    store::<N, S>(to, &set);
                    to = std::ptr::null_mut();
                }
                term = term.add(terms);
            }
            i += B * N::LANES;
        }
        if !to.is_null() {
            store::<N, S>(to, &set);
        }
        if i < end {
            let mut term = terms.as_ptr();
            for &BoundUpdate { dst, terms, .. } in updates {
                set = sums::<N, S, PLAIN, B>(simd, &set, term, terms, i);
                for (k, set) in set.iter().enumerate() {
                    let from = i + k * N::LANES;
                    if from < end {
                        N::store_first(simd, (end - from).min(N::LANES), dst.add(from), *set);
                    }
                }
                term = term.add(terms);
            }
        }
    }
}

/// The sums of terms in the registers of a block from element `i` on, rounded as [`lacuna_core::lower`] says. Where a term has no vector
/// it has what the update before it `set`.
#[inline(always)]
unsafe fn sums<N: Numbers<S>, S: Simd, const PLAIN: bool, const B: usize>(
    simd: S,
    set: &[N::Vector; B],
    terms: *const BoundTerm<N::Number>,
    count: usize,
    i: usize,
) -> [N::Vector; B] {
    macro_rules! all {
        (|$k:ident| $value:expr) => {
            registers!(simd, N, B, |$k| $value)
        };
    }
    macro_rules! at {
        ($from:expr, $k:expr) => {
            load::<N, S>($from.add(i), $k)
        };
    }
    // SAFETY: as the caller promises.
    unsafe {
        if !PLAIN && count == 0 {
            return [N::zero(simd); B];
        }
        let BoundTerm { coefficient, value, factor: f, vector: v } = *terms;
        let c = N::coefficient(simd, value);
        if PLAIN {
            let mut sum = match v.is_null() {
                true => all!(|k| N::scale(simd, c, set[k])),
                false => all!(|k| N::scale(simd, c, at!(v, k))),
            };
            for t in 1..count {
                let BoundTerm { value, vector: v, .. } = *terms.add(t);
                let c = N::coefficient(simd, value);
                sum = match v.is_null() {
                    true => all!(|k| N::scale_add(simd, c, set[k], sum[k])),
                    false => all!(|k| N::scale_add(simd, c, at!(v, k), sum[k])),
                };
            }
            return sum;
        }
        let v = match v.is_null() {
            true => *set,
            false => all!(|k| at!(v, k)),
        };
        let mut sum = match (coefficient, f.is_null()) {
            (Bound::One, true) => v,
            (Bound::MinusOne, true) => all!(|k| N::neg(simd, v[k])),
            (Bound::Value, true) => all!(|k| N::scale(simd, c, v[k])),
            (Bound::One, false) => all!(|k| N::mul(simd, at!(f, k), v[k])),
            (Bound::MinusOne, false) => all!(|k| N::neg(simd, N::mul(simd, at!(f, k), v[k]))),
            (Bound::Value, false) => all!(|k| N::scale(simd, c, N::mul(simd, at!(f, k), v[k]))),
        };
        for t in 1..count {
            let BoundTerm { coefficient, value, factor: f, vector: v } = *terms.add(t);
            let c = N::coefficient(simd, value);
            let v = match v.is_null() {
                true => *set,
                false => all!(|k| at!(v, k)),
            };
            sum = match (coefficient, f.is_null()) {
                (Bound::One, true) => all!(|k| N::add(simd, sum[k], v[k])),
                (Bound::MinusOne, true) => all!(|k| N::add(simd, sum[k], N::neg(simd, v[k]))),
                (Bound::Value, true) => all!(|k| N::scale_add(simd, c, v[k], sum[k])),
                (Bound::One, false) => all!(|k| N::fma(simd, at!(f, k), v[k], sum[k])),
                (Bound::MinusOne, false) => all!(|k| N::fma(simd, N::neg(simd, at!(f, k)), v[k], sum[k])),
                (Bound::Value, false) => {
                    all!(|k| N::scale_add(simd, c, N::mul(simd, at!(f, k), v[k]), sum[k]))
                }
            };
        }
        sum
    }
}
