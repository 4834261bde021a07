//! Updates of a piece of the vectors that fits in the first-level cache.
//!
//! All functions are inlined into code compiled for the current instruction set: see [`crate::run::share`].
use crate::pass::sweep;
use crate::simd::known::Known;
use lacuna_engine::Scalar;
use pulp::Simd;

/// A term with resolved pointers: `coefficient · factor · vector`.
#[derive(Clone, Copy)]
pub(crate) struct BoundTerm<T> {
    pub(crate) coefficient: Bound<T>,
    /// Null if there is none.
    pub(crate) factor: *const T,
    pub(crate) vector: *const T,
}

impl<T> BoundTerm<T> {
    /// Placeholder for an unbound term.
    pub(crate) const NONE: Self =
        BoundTerm { coefficient: Bound::One, factor: std::ptr::null(), vector: std::ptr::null() };
}

// SAFETY: the pointers are bound, used and discarded by one thread within a step.
unsafe impl<T: Send> Send for BoundTerm<T> {}

/// A coefficient with its value resolved.
#[derive(Clone, Copy)]
pub(crate) enum Bound<T> {
    One,
    MinusOne,
    Value(T),
}

impl<T: Scalar> Bound<T> {
    /// Its value: multiplying by ±1 is exact, and so equal to adding or subtracting.
    #[inline(always)]
    pub(crate) fn value(self) -> T {
        match self {
            Bound::One => T::one(),
            Bound::MinusOne => -T::one(),
            Bound::Value(v) => v,
        }
    }
}

/// Elements of the unrolled block: two 512-bit registers of `f64`, so that sums stay in registers.
const BLOCK: usize = 16;

/// `dst[i] ← Σ terms` for `i` in `range`.
///
/// # Safety
/// All pointers must be valid for the range; `dst` may equal an operand but must not overlap one otherwise.
#[inline(always)]
pub(crate) unsafe fn update<T: Scalar>(dst: *mut T, terms: &[BoundTerm<T>], start: usize, end: usize) {
    if Known::<T>::PAIRS {
        // SAFETY: as the caller promises.
        return unsafe { general(dst, terms, start, end) };
    }
    let plain = terms.iter().all(|t| t.factor.is_null());
    let own = terms.iter().position(|t| std::ptr::eq(t.vector, dst)).unwrap_or(OTHER);
    macro_rules! shapes {
        ($($terms:literal: $($own:ident)*;)*) => {
            match (terms.len(), own) {
                $($(($terms, $own) if plain => linear::<T, $terms, $own>(dst, terms, start, end),)*)*
                _ => general(dst, terms, start, end),
            }
        };
    }
    const P0: usize = 0;
    const P1: usize = 1;
    const P2: usize = 2;
    const P3: usize = 3;
    // SAFETY: as the caller promises.
    unsafe {
        shapes! {
            1: OTHER P0;
            2: OTHER P0 P1;
            3: OTHER P0 P1 P2;
            4: OTHER P0 P1 P2 P3;
        }
    }
}

/// Rounds elements to the narrower type, for narrow vectors.
///
/// # Safety
/// The pointer must be valid for the range.
#[inline(always)]
pub(crate) unsafe fn round<T: Scalar>(v: *mut T, start: usize, end: usize) {
    // SAFETY: as the caller promises.
    let v = unsafe { std::slice::from_raw_parts_mut(v.add(start), end - start) };
    v.iter_mut().for_each(|v| *v = v.rounded());
}

/// Complex columns added at a time.
const ADDED: usize = 4;

/// The destination is not one of the operands.
const OTHER: usize = usize::MAX;

/// `K` real terms without factors; term `OWN` is the destination itself.
#[inline(always)]
unsafe fn linear<T: Scalar, const K: usize, const OWN: usize>(
    dst: *mut T,
    terms: &[BoundTerm<T>],
    start: usize,
    end: usize,
) {
    let c: [T; K] = std::array::from_fn(|k| terms[k].coefficient.value());
    let n = end - start;
    // SAFETY: the range is valid in all vectors, and only the destination is written; term OWN is read
    // through it.
    unsafe {
        let v: [&[T]; K] = std::array::from_fn(|k| {
            if k == OWN { &[] } else { std::slice::from_raw_parts(terms[k].vector.add(start), n) }
        });
        let dst = std::slice::from_raw_parts_mut(dst.add(start), n);
        for (i, d) in dst.iter_mut().enumerate() {
            let mut sum = T::zero();
            for k in 0..K {
                let x = if k == OWN { *d } else { *v[k].get_unchecked(i) };
                sum = if k == 0 { c[0] * x } else { c[k].fma(x, sum) };
            }
            *d = sum;
        }
    }
}

/// Arbitrary terms: blocks in registers, the rest one by one.
#[inline(always)]
unsafe fn general<T: Scalar>(dst: *mut T, terms: &[BoundTerm<T>], start: usize, end: usize) {
    let mut i = start;
    // SAFETY: as the caller promises.
    unsafe {
        while i + BLOCK <= end {
            let mut sum = [T::zero(); BLOCK];
            for (position, term) in terms.iter().enumerate() {
                add_block::<T, BLOCK>(&mut sum, position == 0, term, i);
            }
            dst.add(i).cast::<[T; BLOCK]>().write_unaligned(sum);
            i += BLOCK;
        }
        while i < end {
            let mut sum = [T::zero(); 1];
            for (position, term) in terms.iter().enumerate() {
                add_block::<T, 1>(&mut sum, position == 0, term, i);
            }
            *dst.add(i) = sum[0];
            i += 1;
        }
    }
}

/// One term of `B` elements, rounded as [`lacuna_engine::lower`] specifies.
#[inline(always)]
unsafe fn add_block<T: Scalar, const B: usize>(sum: &mut [T; B], first: bool, term: &BoundTerm<T>, i: usize) {
    // SAFETY: the block lies in the range that the caller promises.
    let v: [T; B] = unsafe { term.vector.add(i).cast::<[T; B]>().read_unaligned() };
    let f: Option<[T; B]> =
        // SAFETY: likewise; a null pointer means no factor.
        (!term.factor.is_null()).then(|| unsafe { term.factor.add(i).cast::<[T; B]>().read_unaligned() });
    match (term.coefficient, f, first) {
        (Bound::One, None, true) => *sum = v,
        (Bound::One, None, false) => each(sum, |j, s| s + v[j]),
        (Bound::MinusOne, None, true) => each(sum, |j, _| -v[j]),
        (Bound::MinusOne, None, false) => each(sum, |j, s| s - v[j]),
        (Bound::One, Some(f), true) => each(sum, |j, _| f[j] * v[j]),
        (Bound::One, Some(f), false) => each(sum, |j, s| f[j].fma(v[j], s)),
        (Bound::MinusOne, Some(f), true) => each(sum, |j, _| -(f[j] * v[j])),
        (Bound::MinusOne, Some(f), false) => each(sum, |j, s| (-f[j]).fma(v[j], s)),
        (Bound::Value(c), None, true) => each(sum, |j, _| c * v[j]),
        (Bound::Value(c), None, false) => each(sum, |j, s| c.fma(v[j], s)),
        (Bound::Value(c), Some(f), true) => each(sum, |j, _| c * (f[j] * v[j])),
        (Bound::Value(c), Some(f), false) => each(sum, |j, s| c.fma(f[j] * v[j], s)),
    }
}

#[inline(always)]
fn each<T: Scalar, const B: usize>(sum: &mut [T; B], f: impl Fn(usize, T) -> T) {
    for (j, s) in sum.iter_mut().enumerate() {
        *s = f(j, *s);
    }
}

/// `w[i] ← w[i] + Σ h[j] v[j][i]` in order of `j`, several columns at a time in registers.
///
/// # Safety
/// `w` and every column must be valid for the range, and to the end of the segment in which it ends.
#[inline(always)]
pub(crate) unsafe fn accumulate<T: Scalar, S: Simd>(
    simd: S,
    w: *mut T,
    columns: &[(T, *const T)],
    start: usize,
    end: usize,
) {
    // SAFETY: as the caller promises.
    unsafe {
        if Known::<T, S>::COMPLEX {
            let itself = BoundTerm { vector: w.cast_const(), ..BoundTerm::NONE };
            let mut terms = [itself; 1 + ADDED];
            for group in columns.chunks(ADDED) {
                for (term, (c, vector)) in terms[1..].iter_mut().zip(group) {
                    *term = BoundTerm { coefficient: Bound::Value(*c), vector: *vector, ..itself };
                }
                sweep::run(simd, std::iter::once((w, &terms[..=group.len()])), start, end);
            }
            return;
        }
        for group in columns.chunks(4) {
            match *group {
                [a, b, c, d] => accumulate_group(w, [a, b, c, d], start, end),
                [a, b, c] => accumulate_group(w, [a, b, c], start, end),
                [a, b] => accumulate_group(w, [a, b], start, end),
                [a] => accumulate_group(w, [a], start, end),
                _ => {}
            }
        }
    }
}

/// A plain loop: written in blocks, it would be vectorised across blocks, with gathers.
#[inline(always)]
unsafe fn accumulate_group<T: Scalar, const K: usize>(
    w: *mut T,
    columns: [(T, *const T); K],
    start: usize,
    end: usize,
) {
    // SAFETY: the range is valid in all vectors, and `w` is not one of the columns.
    unsafe {
        let w = std::slice::from_raw_parts_mut(w.add(start), end - start);
        let v = columns.map(|(_, v)| std::slice::from_raw_parts(v.add(start), end - start));
        for (i, w) in w.iter_mut().enumerate() {
            let mut sum = *w;
            for k in 0..K {
                sum = columns[k].0.fma(*v[k].get_unchecked(i), sum);
            }
            *w = sum;
        }
    }
}
