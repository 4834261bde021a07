//! Updates in registers for arbitrary terms: a small interpreter that works on a block of registers at a
//! time.
use crate::pass::update::{Bound, BoundTerm};
use crate::simd::numbers::{C32, C64, F32, F64, Numbers, load, registers, store};
use crate::simd::outlined::outlined;
use lacuna_engine::{Kind, Scalar};
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
                match (T::KIND, size_of::<S::f64s>()) {
                    (Kind::F32, 64) => blocks::<F32, S, T, 8>(simd, updates, start, end),
                    (Kind::F64, 64) => blocks::<F64, S, T, 8>(simd, updates, start, end),
                    (Kind::C32, 64) => blocks::<C32, S, T, 8>(simd, updates, start, end),
                    (Kind::C64, 64) => blocks::<C64, S, T, 8>(simd, updates, start, end),
                    (Kind::F32, _) => blocks::<F32, S, T, 4>(simd, updates, start, end),
                    (Kind::F64, _) => blocks::<F64, S, T, 4>(simd, updates, start, end),
                    (Kind::C32, _) => blocks::<C32, S, T, 4>(simd, updates, start, end),
                    (Kind::C64, _) => blocks::<C64, S, T, 4>(simd, updates, start, end),
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

#[cfg(test)]
mod tests {
    use crate::{Cpu, CpuOptions, Simd};
    use lacuna_engine::{Backend, Cells, Complex32, Complex64, Formula, Pass, Reference, Scalar, Vector};

    /// Passes of many shapes: streams, updates, terms, factors and dot products, both of methods and of none.
    fn passes<T: Scalar>(v: [Vector<T>; 7], c: Cells<T>, sums: Cells<T>) -> Vec<Pass<T>> {
        let [x, p, r, q, z, d, w] = v;
        let [a, b] = [c.at(0), c.at(1)];
        let pass = || Pass::new("shape");
        vec![
            pass().dot(sums.at(0), x, p),
            pass().dot(sums.at(0), r, q).dot(sums.at(1), q, q).dot(sums.at(2), z, q),
            pass().dot(sums.at(0), x, d * p).dot(sums.at(1), r, p).dot(sums.at(2), x, p),
            pass().set(r, r - a * q).dot(sums.at(0), r, r).dot(sums.at(1), r, d * r).dot(
                sums.at(2),
                r,
                d * r,
            ),
            pass().set(x, a * x),
            pass().set(x, Formula::value(T::zero())).dot(sums.at(0), x, r),
            pass().set(x, x + a * p).set(r, r - a * q).set(p, r + b * p).dot(sums.at(0), r, r),
            pass().set(x, x + a * p + b * z).set(r, z - a * q).set(p, r + b * (p - a * w)).dot(
                sums.at(0),
                d,
                r,
            ),
            // A vector just set is used as a factor, multiplied, used as both, and set again.
            pass().set(z, -r).set(w, a * (z * q)).set(x, d * w - w).set(p, p - x * x).dot(sums.at(1), p, w),
            pass().set(x, r - d * q).set(x, b * x - x).set(x, -(x * x)).dot(sums.at(2), x, x),
            pass().set(w, x + a * p + b * r + a * q - z + b * (d * p)).dot(sums.at(0), w, x).dot(
                sums.at(1),
                x,
                w,
            ),
        ]
    }

    /// The contents of vectors and sums after each pass, then after operations on a basis.
    fn results<T: Scalar, B: Backend>(dev: &mut B, n: usize) -> Vec<T> {
        let number = |k: usize| (k as f64 * 0.618_034).fract() - 0.4;
        let basis = Backend::basis(dev, n, 7).unwrap();
        let vectors = std::array::from_fn(|v| {
            let vector = basis.column(v);
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
        // Six columns projected on the seventh, then a pass.
        let (w, h) = (vectors[6], Backend::cells(dev, 6).unwrap());
        dev.basis_dot(basis, w, h).unwrap();
        let pass = Pass::new("behind").set(w, c.at(0) * w).dot(sums.at(0), w, w);
        dev.basis_axpy(basis, h, w, pass).unwrap();
        results.extend(dev.read(&std::array::from_fn::<_, 6, _>(|k| h.at(k))).unwrap());
        results.extend(dev.read(&[sums.at(0)]).unwrap());
        let mut values = vec![T::zero(); n];
        dev.download(w, &mut values).unwrap();
        results.extend(values);
        results
    }

    fn passes_give_the_bits_of_the_reference<T: Scalar>() {
        // Less than a register, a block and a segment; whole ones; and with remainders.
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
