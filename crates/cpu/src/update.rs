//! Updates and dot products over a piece of vectors that fits the first-level cache.
//!
//! Every function is inlined into code compiled for the instruction set at hand, see [`crate::share`].
use lacuna_core::Scalar;
use lacuna_core::sum::SEGMENT;
use std::mem::MaybeUninit;

/// A term with its pointers found: `coefficient · factor · vector`.
#[derive(Clone, Copy)]
pub(crate) struct BoundTerm<T> {
    pub(crate) coefficient: Bound<T>,
    /// Null where there is none.
    pub(crate) factor: *const T,
    pub(crate) vector: *const T,
}

// SAFETY: the pointers are bound, used and forgotten by one thread within a step.
unsafe impl<T: Send> Send for BoundTerm<T> {}

/// A coefficient with its value found.
#[derive(Clone, Copy)]
pub(crate) enum Bound<T> {
    One,
    MinusOne,
    Value(T),
}

/// Elements of the unrolled block: two 512-bit registers of `f64`, so that sums stay in registers.
const BLOCK: usize = 16;

/// `dst[i] ← Σ terms` for `i` in `range`.
///
/// # Safety
/// All pointers must be valid for the range; `dst` may equal an operand but not overlap one otherwise.
#[inline(always)]
pub(crate) unsafe fn update<T: Scalar>(dst: *mut T, terms: &[BoundTerm<T>], start: usize, end: usize) {
    let plain = !T::KIND.is_complex() && terms.iter().all(|t| t.factor.is_null());
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

/// Stands for an update whose destination is none of its operands.
const OTHER: usize = usize::MAX;

/// `K` real terms without factors, of which term `OWN` is the destination itself. A coefficient ±1 multiplies: exactly
/// what adding and subtracting round to.
#[inline(always)]
unsafe fn linear<T: Scalar, const K: usize, const OWN: usize>(
    dst: *mut T,
    terms: &[BoundTerm<T>],
    start: usize,
    end: usize,
) {
    let c: [T; K] = std::array::from_fn(|k| match terms[k].coefficient {
        Bound::One => T::one(),
        Bound::MinusOne => -T::one(),
        Bound::Value(v) => v,
    });
    let n = end - start;
    // SAFETY: the range is valid in all vectors, and only the destination is written; term OWN is read through it.
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

/// Any terms: blocks through registers, the rest one by one.
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

/// One term of `B` elements, rounded as [`lacuna_core::lower`] says.
#[inline(always)]
unsafe fn add_block<T: Scalar, const B: usize>(sum: &mut [T; B], first: bool, term: &BoundTerm<T>, i: usize) {
    // SAFETY: the block lies in the range the caller promises.
    let v: [T; B] = unsafe { term.vector.add(i).cast::<[T; B]>().read_unaligned() };
    let f: Option<[T; B]> =
        // SAFETY: likewise; null stands for no factor.
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

/// `w[i] ← w[i] + Σ h[j] v[j][i]` in order of `j`, four columns at a time through registers.
///
/// # Safety
/// `w` and every column must be valid for the range.
#[inline(always)]
pub(crate) unsafe fn accumulate<T: Scalar>(w: *mut T, columns: &[(T, *const T)], start: usize, end: usize) {
    // SAFETY: as the caller promises.
    unsafe {
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

/// A plain loop: written in blocks, this one is vectorised across blocks, with gathers.
#[inline(always)]
unsafe fn accumulate_group<T: Scalar, const K: usize>(
    w: *mut T,
    columns: [(T, *const T); K],
    start: usize,
    end: usize,
) {
    // SAFETY: the range is valid in all, and `w` is none of the columns.
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

/// The canonical sum of `conj(a[i]) b[i]` over one segment, `n ≤ 256` terms. `far` tells that the vectors come from
/// memory rather than a cache.
///
/// # Safety
/// `a` and `b` must be valid for `n` elements.
#[inline(always)]
pub(crate) unsafe fn dot_segment<T: Scalar>(a: *const T, b: *const T, n: usize, far: bool) -> T {
    // SAFETY: only asked for indices below n.
    let product = |i: usize| unsafe { (*a.add(i)).dot_term(*b.add(i)) };
    if n == SEGMENT && !far {
        return full_segment(product);
    }
    if n == SEGMENT {
        let mut products = [MaybeUninit::<T>::uninit(); SEGMENT];
        for (i, p) in products.iter_mut().enumerate() {
            p.write(product(i));
        }
        // SAFETY: all of the buffer has been written.
        let products: &[T; SEGMENT] = unsafe { &*products.as_ptr().cast() };
        return full_segment(|i| products[i]);
    }
    // From memory the products are made in its order, which the prefetcher follows, and summed from a buffer: the order
    // of the tree leaps about and would wait for every line.
    let mut products = [MaybeUninit::<T>::uninit(); SEGMENT];
    for (i, p) in products[..n].iter_mut().enumerate() {
        p.write(product(i));
    }
    products[n..].fill(MaybeUninit::new(T::zero()));
    // SAFETY: all of the buffer has been written.
    let products: &[T; SEGMENT] = unsafe { &*products.as_ptr().cast() };
    full_segment(|i| products[i])
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
