//! Passes of the commonest forms, each as one loop over all its vectors.
//!
//! Any pass can be interpreted ([`crate::pass::sweep`]), or run update by update ([`crate::pass::update`]), which
//! alternates between pieces of different vectors. In one loop, every vector is a single stream from its
//! first element to its last, and sums read values still in registers. The bits are the same.
mod form;
mod listed;
mod passes;

use crate::pass::dot::halved;
use crate::plan::step::{Dot, Update};
use crate::run::share::Share;
use crate::simd::known::Known;
use crate::simd::numbers::{F32, F64, Real};
use form::{NONE, VECTORS};
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::{Operands, Scalar};
pub(crate) use listed::listed;
use passes::{ALL, DOTS, Pass, TERMS, UPDATES, Which};
use pulp::Simd;
use std::mem::MaybeUninit;

/// A pass that has its own loop, and its vectors by slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fused {
    which: Which,
    vectors: [u32; VECTORS],
}

impl Fused {
    /// The loop for these updates and dot products, if there is one.
    pub(crate) fn find(updates: &[Update], dots: &[Dot]) -> Option<Self> {
        ALL.iter()
            .find_map(|(which, form)| Some(Fused { which: *which, vectors: form.vectors(updates, dots)? }))
    }
}

impl Operands for Fused {
    #[inline]
    fn numbers(&mut self, each: &mut impl FnMut(&mut u32)) {
        self.vectors.iter_mut().filter(|slot| **slot != NONE).for_each(each);
    }
}

/// Bytes of a thread's share of the vectors that fit in the core's private cache, and of all vectors that fit
/// in the shared cache.
const OWN_CACHE: usize = 1 << 20;
const ALL_CACHE: usize = 12 << 20;

/// The operands of a loop.
struct Streams<N> {
    /// Starting at the first element of the share.
    vectors: [*mut N; VECTORS],
    coefficients: [[N; TERMS]; UPDATES],
    /// Full segments.
    segments: usize,
    /// Starting at the first sum of the share, for each dot product.
    sums: [*mut N; DOTS],
    /// Whether the vectors are in a cache close enough that the number of independent sums matters more than
    /// the order of access.
    near: bool,
}

/// Runs the full segments of a share through the loop for its pass, if there is one; returns how many it ran.
///
/// # Safety
/// As for [`crate::run::share::run`].
#[inline(always)]
pub(crate) unsafe fn run<T: Scalar, S: Simd>(simd: S, share: &Share<'_, T>) -> usize {
    let Some(fused) = share.step.fused else { return 0 };
    let end = share.segments.end.min(share.step.n / SEGMENT);
    let segments = end.saturating_sub(share.segments.start);
    if segments == 0 {
        return 0;
    }
    // SAFETY: the types match the kind, the rest as the caller promises. A segment has twice as many
    // registers as the first number, and four times as many as the second. The third is a fraction of the
    // processor's registers.
    unsafe {
        if Known::<T, S>::F64_IN_64 {
            fused.which.sweep::<F64, S, 16, 8, 8>(simd, streams::<F64, T, S>(fused, share, segments));
        } else if Known::<T, S>::F64_IN_32 {
            fused.which.sweep::<F64, S, 32, 16, 4>(simd, streams::<F64, T, S>(fused, share, segments));
        } else if Known::<T, S>::F32_IN_64 {
            fused.which.sweep::<F32, S, 8, 4, 8>(simd, streams::<F32, T, S>(fused, share, segments));
        } else if Known::<T, S>::F32_IN_32 {
            fused.which.sweep::<F32, S, 16, 8, 4>(simd, streams::<F32, T, S>(fused, share, segments));
        } else {
            return 0;
        }
    }
    segments
}

/// The vectors, coefficients and sums of the first `segments` segments of a share.
#[inline(always)]
fn streams<R: Real<S>, T: Scalar, S: Simd>(
    fused: Fused,
    share: &Share<'_, T>,
    segments: usize,
) -> Streams<R::Number> {
    let (start, all) = (share.segments.start, share.step.n.div_ceil(SEGMENT));
    let mut vectors = [std::ptr::null_mut(); VECTORS];
    let mut bytes = 0;
    for (vector, slot) in vectors.iter_mut().zip(fused.vectors).filter(|(_, slot)| *slot != NONE) {
        *vector = share.vectors[slot as usize].wrapping_add(start * SEGMENT).cast();
        bytes += SEGMENT * size_of::<T>();
    }
    let near = bytes * segments <= OWN_CACHE || share.step.updates.is_empty() && bytes * all <= ALL_CACHE;
    let mut coefficients = [[bytemuck::cast(T::zero()); TERMS]; UPDATES];
    let mut terms = share.terms;
    for (row, update) in coefficients.iter_mut().zip(&share.step.updates) {
        let (own, rest) = terms.split_at(update.terms.len());
        for (c, term) in row.iter_mut().zip(own) {
            *c = bytemuck::cast(term.coefficient.value());
        }
        terms = rest;
    }
    let mut sums = [std::ptr::null_mut(); DOTS];
    for (d, sums) in sums.iter_mut().enumerate() {
        *sums = share.sums.wrapping_add(d * all + start).cast();
    }
    Streams { vectors, coefficients, segments, sums, near }
}

/// Register values spilled to memory, each aligned to a cache line.
#[repr(align(64))]
struct Lines<V, const N: usize>([[MaybeUninit<V>; N]; DOTS]);

/// The loop.
///
/// # Safety
/// The vectors and sums must be valid; a segment must have `2 HALF` and `4 QUARTER` registers.
#[inline(always)]
unsafe fn sweep<P: Pass, R: Real<S>, S: Simd, const HALF: usize, const QUARTER: usize, const KEPT: usize>(
    simd: S,
    on: Streams<R::Number>,
) {
    let Streams { mut vectors, coefficients, segments, mut sums, near } = on;
    let mut c = [[R::splat(simd, coefficients[0][0]); TERMS]; UPDATES];
    for (c, coefficients) in c.iter_mut().zip(coefficients) {
        for (c, coefficient) in c.iter_mut().zip(coefficients) {
            *c = R::splat(simd, coefficient);
        }
    }
    for _ in 0..segments {
        // SAFETY: as the caller promises.
        unsafe {
            // With `HALF` = 8, the sums of each dot product stay in registers in memory order too.
            if near && HALF > 8 {
                by_quarters::<P, R, S, QUARTER>(simd, &vectors, &c, &sums);
            } else {
                in_order::<P, R, S, HALF, KEPT>(simd, &vectors, &c, &sums);
            }
        }
        vectors.iter_mut().for_each(|vector| *vector = vector.wrapping_add(SEGMENT));
        sums.iter_mut().for_each(|sum| *sum = sum.wrapping_add(1));
    }
}

/// One segment in memory order, which suits the prefetcher best; returns the sums of its dot products. `KEPT`
/// sums of each stay in registers from one half of the segment to the other, the rest are spilled.
#[inline(always)]
unsafe fn in_order<P: Pass, R: Real<S>, S: Simd, const HALF: usize, const KEPT: usize>(
    simd: S,
    vectors: &[*mut R::Number; VECTORS],
    c: &[[R::Vector; TERMS]; UPDATES],
    totals: &[*mut R::Number; DOTS],
) {
    let mut kept = [[c[0][0]; KEPT]; DOTS];
    let mut lines = Lines([[MaybeUninit::<R::Vector>::uninit(); HALF]; DOTS]);
    macro_rules! elements {
        ($k:expr, |$d:ident, $product:ident| $sum:expr) => {
            P::elements::<R, S>(
                simd,
                vectors,
                c,
                $k,
                #[inline(always)]
                |$d, $product| $sum,
            )
        };
    }
    // SAFETY: as the caller promises; the first half writes what the second half adds to.
    unsafe {
        unrolled::<KEPT>(
            #[inline(always)]
            |k| elements!(k, |d, product| kept[d][k] = product),
        );
        keep_order();
        for k in KEPT..HALF {
            elements!(k, |d, product| lines.0[d][k] = MaybeUninit::new(product));
        }
        keep_order();
        unrolled::<KEPT>(
            #[inline(always)]
            |k| elements!(HALF + k, |d, product| kept[d][k] = R::add(simd, kept[d][k], product)),
        );
        keep_order();
        for k in KEPT..HALF {
            elements!(HALF + k, |d, product| {
                lines.0[d][k] = MaybeUninit::new(R::add(simd, lines.0[d][k].assume_init(), product));
            });
        }
        keep_order();
        for (d, total) in totals.iter().enumerate().take(P::FORM.dots.len()) {
            let sums = std::array::from_fn(
                #[inline(always)]
                |k| if k < KEPT { kept[d][k] } else { lines.0[d][k].assume_init() },
            );
            **total = R::sum(simd, halved::<R, S, HALF>(simd, sums));
        }
    }
}

/// Keeps the compiler from moving loads across this point.
#[inline(always)]
fn keep_order() {
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}

/// A loop over `0..N`, fully unrolled, so that the arrays it indexes can stay in registers.
#[inline(always)]
fn unrolled<const N: usize>(mut f: impl FnMut(usize)) {
    macro_rules! each {
        ($($k:literal)*) => { $(if $k < N { f($k) })* };
    }
    const { assert!(N <= 8) };
    each!(0 1 2 3 4 5 6 7);
}

/// The same with four registers at a time, a quarter of a segment apart: half the sums of [`in_order`].
#[inline(always)]
unsafe fn by_quarters<P: Pass, R: Real<S>, S: Simd, const QUARTER: usize>(
    simd: S,
    vectors: &[*mut R::Number; VECTORS],
    c: &[[R::Vector; TERMS]; UPDATES],
    totals: &[*mut R::Number; DOTS],
) {
    let mut lines = Lines([[MaybeUninit::<R::Vector>::uninit(); QUARTER]; DOTS]);
    // SAFETY: as the caller promises; every sum is written.
    unsafe {
        for k in 0..QUARTER {
            let mut four = [[c[0][0]; 4]; DOTS];
            for (i, k) in (k..).step_by(QUARTER).take(4).enumerate() {
                P::elements::<R, S>(
                    simd,
                    vectors,
                    c,
                    k,
                    #[inline(always)]
                    |d, product| four[d][i] = product,
                );
            }
            for (d, four) in four.into_iter().take(P::FORM.dots.len()).enumerate() {
                lines.0[d][k].write(halved::<R, S, 4>(simd, four));
            }
        }
        for (sums, total) in lines.0.iter().zip(totals).take(P::FORM.dots.len()) {
            let sums = sums.map(
                #[inline(always)]
                |sum| sum.assume_init(),
            );
            **total = R::sum(simd, halved::<R, S, QUARTER>(simd, sums));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, Fused, listed};
    use crate::plan::compile::Compiled;
    use lacuna_engine::{Device, HostStore, Recorder, Reference};

    /// A form that is there twice would be found as the first of the two.
    #[test]
    fn every_form_is_found_as_itself() {
        let dev = Device::new(Reference::new()).scope();
        let (v, c) = (dev.basis::<f64>(9, 9).unwrap(), dev.run_of_cells(15).unwrap());
        for ((name, pass), (which, _)) in listed::<f64>(v, c).zip(ALL) {
            let mut k = Recorder::new(&dev, "form");
            k.each(|k| k.multi_axpy_dot(pass.count(c.at(0))));
            let program = k.finish().unwrap();
            let [.., steps] = Compiled::new(&program, &HostStore::new("none"), 1).unwrap().sections;
            assert_eq!(steps[0].fused.map(|fused| fused.which), Some(*which), "{name}");
        }
    }

    #[test]
    fn slots_have_one_place_and_places_one_slot() {
        let of = |a, b| crate::plan::step::Dot { cell: 0, a, b, factor: None, largest: false };
        assert!(Fused::find(&[], &[of(1, 2), of(2, 2), of(3, 2)]).is_some());
        assert!(Fused::find(&[], &[of(1, 2), of(2, 2), of(1, 2)]).is_none());
        assert!(Fused::find(&[], &[of(1, 2), of(2, 2), of(3, 4)]).is_none());
        assert!(Fused::find(&[], &[of(1, 2), of(2, 2)]).is_none());
    }
}
