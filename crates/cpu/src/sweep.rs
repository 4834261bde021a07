//! A pass over vectors: its updates a block of registers at a time, its dot products segment by segment behind them. How it runs
//! follows from what is bound, for every pass of every method in every number type.
use crate::apart::apart;
use crate::dot::segment_sums;
use crate::numbers::{Numbers, by_numbers};
use crate::update::{BoundTerm, BoundUpdate, blocks};
use lacuna_core::Scalar;
use lacuna_core::sum::SEGMENT;
use pulp::Simd;
use std::ops::Range;

/// Dot products whose `b` is the same, at the most.
const TOGETHER: usize = 3;

/// A dot product with its pointers found.
#[derive(Clone, Copy)]
pub(crate) struct BoundDot<T> {
    pub(crate) a: *const T,
    pub(crate) b: *const T,
    /// Its sums, by segment.
    pub(crate) sums: *mut T,
}

impl<T> BoundDot<T> {
    /// What stands where no dot product is bound.
    pub(crate) const NONE: Self =
        BoundDot { a: std::ptr::null(), b: std::ptr::null(), sums: std::ptr::null_mut() };
}

// SAFETY: as of terms.
unsafe impl<T: Send> Send for BoundDot<T> {}

/// What a pass does, with its pointers found.
#[derive(Clone, Copy)]
pub(crate) struct Sweep<'a, T> {
    pub(crate) updates: &'a [BoundUpdate<T>],
    /// Those of all updates, one after the other.
    pub(crate) terms: &'a [BoundTerm<T>],
    pub(crate) dots: &'a [BoundDot<T>],
    /// Whether all terms are real and without factors.
    pub(crate) plain: bool,
}

/// Runs a pass over some of the segments of `n` elements.
///
/// # Safety
/// The pointers must be valid for the segments, and operands padded with zeros to a whole one; no other thread may write what is
/// read or touch what is written.
#[inline(always)]
pub(crate) unsafe fn run<T: Scalar, S: Simd>(
    simd: S,
    sweep: &Sweep<'_, T>,
    segments: Range<usize>,
    n: usize,
) {
    if sweep.updates.is_empty() && sweep.dots.is_empty() {
        return;
    }
    apart(
        simd,
        #[inline(always)]
        move || {
            // SAFETY: as the caller promises.
            unsafe { run_here(simd, sweep, segments, n) }
        },
    );
}

/// [`run`], compiled into the caller.
///
/// # Safety
/// As of [`run`].
#[inline(always)]
pub(crate) unsafe fn run_here<T: Scalar, S: Simd>(
    simd: S,
    sweep: &Sweep<'_, T>,
    segments: Range<usize>,
    n: usize,
) {
    // SAFETY: as the caller promises.
    unsafe { by_numbers!(T, S, typed::<T>(simd, sweep, segments, n)) }
}

/// The same by registers for the number type, which `T` is.
#[inline(always)]
unsafe fn typed<N: Numbers<S>, S: Simd, T>(simd: S, sweep: &Sweep<'_, T>, segments: Range<usize>, n: usize) {
    // SAFETY: the types are the same, so are pointers to what is bound; the rest as the caller promises.
    unsafe {
        let sweep = &*std::ptr::from_ref(sweep).cast::<Sweep<'_, N::Number>>();
        match sweep.plain {
            true => over::<N, S, true>(simd, *sweep, segments, n),
            false => over::<N, S, false>(simd, *sweep, segments, n),
        }
    }
}

#[inline(always)]
unsafe fn over<N: Numbers<S>, S: Simd, const PLAIN: bool>(
    simd: S,
    sweep: Sweep<'_, N::Number>,
    segments: Range<usize>,
    n: usize,
) {
    let Sweep { updates, terms, dots, .. } = sweep;
    // SAFETY: as the caller promises.
    unsafe {
        if dots.is_empty() {
            return blocks::<N, S, PLAIN>(
                simd,
                updates,
                terms,
                segments.start * SEGMENT,
                n.min(segments.end * SEGMENT),
            );
        }
        for s in segments {
            blocks::<N, S, PLAIN>(simd, updates, terms, s * SEGMENT, n.min((s + 1) * SEGMENT));
            let mut d = 0;
            while let Some(first) = dots.get(d) {
                let same = dots[d..].iter().take(TOGETHER).take_while(|dot| dot.b == first.b).count();
                let at = |k: usize| dots[d + k].a.add(s * SEGMENT);
                let b = first.b.add(s * SEGMENT);
                match same {
                    3 => put(s, &dots[d..], segment_sums::<N, S, 3>(simd, [at(0), at(1), at(2)], b)),
                    2 => put(s, &dots[d..], segment_sums::<N, S, 2>(simd, [at(0), at(1)], b)),
                    _ => put(s, &dots[d..], segment_sums::<N, S, 1>(simd, [at(0)], b)),
                }
                d += same;
            }
        }
    }
}

/// Keeps the sums of a segment.
#[inline(always)]
unsafe fn put<T: Copy, const K: usize>(s: usize, dots: &[BoundDot<T>], sums: [T; K]) {
    for (dot, sum) in dots.iter().zip(sums) {
        // SAFETY: the caller promises that there is room.
        unsafe { *dot.sums.add(s) = sum };
    }
}

#[cfg(test)]
mod tests {
    use crate::{Cpu, CpuOptions, Simd};
    use lacuna_core::{Backend, Cells, Complex32, Complex64, Formula, Pass, Reference, Scalar, Vector};

    /// Passes of many shapes: streams, updates, terms, factors and dot products, of methods and of none.
    fn passes<T: Scalar>(v: [Vector<T>; 7], c: Cells<T>, sums: Cells<T>) -> Vec<Pass<T>> {
        let [x, p, r, q, z, d, w] = v;
        let [a, b] = [c.at(0), c.at(1)];
        let pass = || Pass::new("shape");
        vec![
            pass().dot(sums.at(0), x, p),
            pass().dot(sums.at(0), r, q).dot(sums.at(1), q, q).dot(sums.at(2), z, q),
            pass().set(x, a * x),
            pass().set(x, Formula::value(T::zero())).dot(sums.at(0), x, r),
            pass().set(x, x + a * p).set(r, r - a * q).set(p, r + b * p).dot(sums.at(0), r, r),
            pass().set(x, x + a * p + b * z).set(r, z - a * q).set(p, r + b * (p - a * w)).dot(
                sums.at(0),
                d,
                r,
            ),
            // What was just set is a factor, is multiplied, is both, and is set again.
            pass().set(z, -r).set(w, a * (z * q)).set(x, d * w - w).set(p, p - x * x).dot(sums.at(1), p, w),
            pass().set(x, r - d * q).set(x, b * x - x).set(x, -(x * x)).dot(sums.at(2), x, x),
            pass().set(w, x + a * p + b * r + a * q - z + b * (d * p)).dot(sums.at(0), w, x).dot(
                sums.at(1),
                x,
                w,
            ),
        ]
    }

    /// What each pass leaves in the vectors and sums, one after the other.
    fn results<T: Scalar, B: Backend>(dev: &mut B, n: usize) -> Vec<T> {
        let number = |k: usize| (k as f64 * 0.618_034).fract() - 0.4;
        let vectors = std::array::from_fn(|v| {
            let vector = Backend::vector(dev, n).unwrap();
            let numbers: Vec<_> =
                (0..n).map(|i| T::from_parts(number(i * 7 + v), number(i * 5 + v))).collect();
            dev.upload(&numbers, vector).unwrap();
            vector
        });
        let (c, sums) = (Backend::cells(dev, 2).unwrap(), Backend::cells(dev, 3).unwrap());
        (0..2).for_each(|k| Backend::write(dev, c.at(k), T::from_parts(number(k + 3), number(k))).unwrap());
        let mut results = Vec::new();
        for pass in passes(vectors, c, sums) {
            dev.multi_axpy_dot(pass).unwrap();
            results.extend(dev.read(&[sums.at(0), sums.at(1), sums.at(2)]).unwrap());
            for v in vectors {
                let mut values = vec![T::zero(); n];
                dev.download(v, &mut values).unwrap();
                results.extend(values);
            }
        }
        results
    }

    fn passes_give_the_bits_of_the_reference<T: Scalar>() {
        // Less than a register, a block and a segment, whole ones, and parts behind them.
        for n in [1, 33, 225, 256, 511, 1003, 20_003] {
            let expected = results::<T, _>(&mut Reference::new(), n);
            for simd in [Simd::Best, Simd::Avx2, Simd::Baseline] {
                let options =
                    CpuOptions { threads: Some(2), simd, parallel_from: Some(0), ..CpuOptions::default() };
                let got = results::<T, _>(&mut Cpu::with(options).unwrap(), n);
                for (i, (got, expected)) in got.iter().zip(&expected).enumerate() {
                    let (pass, place) = (i / (7 * n + 3), i % (7 * n + 3));
                    assert!(
                        bytemuck::bytes_of(got) == bytemuck::bytes_of(expected),
                        "{n} elements, {simd:?}, pass {pass}, number {place}: {got}, not {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn passes_give_the_bits_of_the_reference_in_every_type() {
        passes_give_the_bits_of_the_reference::<f32>();
        passes_give_the_bits_of_the_reference::<f64>();
        passes_give_the_bits_of_the_reference::<Complex32>();
        passes_give_the_bits_of_the_reference::<Complex64>();
    }
}
