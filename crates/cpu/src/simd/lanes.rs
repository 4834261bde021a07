//! Lanes of a row sum.
use crate::simd::numbers::{F32, F64, Real};
use lacuna_engine::{NumberType, Scalar};
use pulp::Simd;
use std::array::from_fn;
use std::marker::PhantomData;
use std::mem::transmute_copy;

/// The sum of the entries `first..last` of a row with `W` lanes: lane `j` accumulates entries `j`, `j + W`
/// and so on, and lanes are summed by halving. `term(k)` returns entry `k` and its factor, and is called only
/// for entries of the row; `ahead(k)` is called for the first of every two rounds.
#[inline(always)]
pub(crate) fn row_sum<T: Scalar, S: Simd, const W: usize>(
    simd: S,
    (first, last): (usize, usize),
    term: impl Fn(usize) -> (T, T),
    ahead: impl Fn(usize),
) -> T {
    let (mut k, mut sums) = (first, [T::zero(); W]);
    while k + 2 * W <= last {
        ahead(k);
        add_terms(simd, &mut sums, |j| term(k + j));
        add_terms(simd, &mut sums, |j| term(k + W + j));
        k += 2 * W;
    }
    if k + W <= last {
        add_terms(simd, &mut sums, |j| term(k + j));
        k += W;
    }
    if Registers::<T, S, W>::NONE {
        for (s, k) in sums.iter_mut().zip(k..last) {
            let (value, x) = term(k);
            *s = value.fma(x, *s);
        }
    } else if k < last {
        // Adding -0 times 1 changes no sum, not even -0.
        let nothing = (-T::zero(), T::one());
        add_terms(simd, &mut sums, |j| {
            let there = term((k + j).min(last - 1));
            if k + j < last { there } else { nothing }
        });
    }
    halved(sums)
}

/// `sums[j] ← value x + sums[j]` for each lane `j`, in registers if the processor has them: LLVM keeps arrays
/// of four numbers in memory, written one by one and read together, which stalls.
#[inline(always)]
fn add_terms<T: Scalar, S: Simd, const W: usize>(simd: S, sums: &mut [T; W], term: impl Fn(usize) -> (T, T)) {
    if Registers::<T, S, W>::F64_BY_8 {
        in_registers::<F64, T, S, W, 8>(simd, sums, term);
    } else if Registers::<T, S, W>::F32_BY_16 {
        in_registers::<F32, T, S, W, 16>(simd, sums, term);
    } else if Registers::<T, S, W>::F64_BY_4 {
        // SAFETY: the registers are those of this instruction set level or of the one above.
        #[cfg(target_arch = "x86_64")]
        in_registers::<F64, T, _, W, 4>(unsafe { pulp::x86::V3::new_unchecked() }, sums, term);
    } else if Registers::<T, S, W>::F32_BY_8 {
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        in_registers::<F32, T, _, W, 8>(unsafe { pulp::x86::V3::new_unchecked() }, sums, term);
    } else {
        let terms: [(T, T); W] = from_fn(term);
        *sums = from_fn(|j| terms[j].0.fma(terms[j].1, sums[j]));
    }
}

/// The kind of registers that hold `W` sums. Constants, so that the other branches are not compiled.
struct Registers<T, S, const W: usize>(PhantomData<(T, S)>);

impl<T: Scalar, S: Simd, const W: usize> Registers<T, S, W> {
    /// The lanes that are left at the end of a row are added one by one.
    const NONE: bool = T::KIND.is_complex() || W <= 2;
    const WIDE: bool = size_of::<S::f64s>() == 64;
    const F64_BY_8: bool = matches!(T::KIND, NumberType::F64) && Self::WIDE && W >= 8;
    const F32_BY_16: bool = matches!(T::KIND, NumberType::F32) && Self::WIDE && W >= 16;
    const AVX2: bool = cfg!(target_arch = "x86_64") && size_of::<S::f64s>() >= 32 && W >= 4;
    const F64_BY_4: bool = matches!(T::KIND, NumberType::F64) && Self::AVX2 && !Self::F64_BY_8;
    const F32_BY_8: bool = matches!(T::KIND, NumberType::F32) && Self::AVX2 && !Self::F32_BY_16;
}

/// The same in registers of `L` lanes, some of them idle if `W` is smaller, for a real number type `R` equal
/// to `T`.
#[inline(always)]
fn in_registers<R: Real<S>, T: Scalar, S: Simd, const W: usize, const L: usize>(
    simd: S,
    sums: &mut [T; W],
    term: impl Fn(usize) -> (T, T),
) {
    let fma = |first: usize, sums: [T; L]| -> [T; L] {
        let idle = (T::zero(), T::zero());
        let terms: [(T, T); L] = from_fn(|l| if first + l < W { term(first + l) } else { idle });
        let (values, xs): ([T; L], [T; L]) = (from_fn(|l| terms[l].0), from_fn(|l| terms[l].1));
        // SAFETY: a register is as large as its lanes.
        unsafe {
            let sums = R::fma(simd, transmute_copy(&values), transmute_copy(&xs), transmute_copy(&sums));
            transmute_copy(&sums)
        }
    };
    if W < L {
        let padded = fma(0, from_fn(|l| if l < W { sums[l] } else { T::zero() }));
        *sums = from_fn(|j| padded[j]);
    } else {
        for (k, sums) in sums.as_chunks_mut::<L>().0.iter_mut().enumerate() {
            *sums = fma(k * L, *sums);
        }
    }
}

/// The sum of lanes by halving. `W` is a constant, so that they stay in registers.
#[inline(always)]
pub(crate) fn halved<T: Scalar, const W: usize>(mut sums: [T; W]) -> T {
    let mut half = W / 2;
    while half > 0 {
        for j in 0..half {
            let upper = sums[j + half];
            sums[j] += upper;
        }
        half /= 2;
    }
    sums[0]
}

/// The sum of a power of two of lanes by halving, in place.
#[inline(always)]
pub(crate) fn halve<T: Scalar>(sums: &mut [T]) -> T {
    let mut half = sums.len() / 2;
    while half > 0 {
        let (lower, upper) = sums.split_at_mut(half);
        lower.iter_mut().zip(upper).for_each(|(s, u)| *s += *u);
        half /= 2;
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::row_sum;
    use lacuna_engine::{Complex32, Scalar};
    use pulp::{Arch, Simd, WithSimd};

    /// The sum of all terms with `W` lanes.
    struct Sum<'a, T, const W: usize>(&'a [(T, T)]);
    impl<T: Scalar, const W: usize> WithSimd for Sum<'_, T, W> {
        type Output = T;
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> T {
            row_sum::<T, S, W>(simd, (0, self.0.len()), |k| self.0[k], |_| {})
        }
    }

    /// The same sum, straight from the definition.
    fn by_definition<T: Scalar>(terms: &[(T, T)], width: usize) -> T {
        let mut sums = vec![T::zero(); width];
        for (k, (value, x)) in terms.iter().enumerate() {
            sums[k % width] = value.fma(*x, sums[k % width]);
        }
        let mut half = width / 2;
        while half > 0 {
            (0..half).for_each(|j| sums[j] = sums[j] + sums[j + half]);
            half /= 2;
        }
        sums[0]
    }

    fn sums_are_those_defined<T: Scalar>(number: impl Fn(usize) -> T) {
        fn of<T: Scalar, const W: usize>(terms: &[(T, T)]) {
            let want = by_definition(terms, W);
            for arch in [Arch::new(), Arch::Scalar] {
                let got = arch.dispatch(Sum::<T, W>(terms));
                let same = bytemuck::bytes_of(&got) == bytemuck::bytes_of(&want)
                    || (got.re().is_nan() && want.re().is_nan());
                assert!(same, "{} terms, {W} lanes: {got}, not {want}", terms.len());
            }
        }
        for count in 0..130 {
            let terms: Vec<(T, T)> = (0..count).map(|k| (number(k), number(3 * k + 1))).collect();
            of::<T, 1>(&terms);
            of::<T, 2>(&terms);
            of::<T, 4>(&terms);
            of::<T, 8>(&terms);
            of::<T, 16>(&terms);
            of::<T, 32>(&terms);
        }
    }

    #[test]
    fn lanes_are_summed_as_defined_whatever_the_registers() {
        let number = |k: usize| 1.0 / ((k * 7919 % 1000) as f64 - 333.3);
        sums_are_those_defined(number);
        sums_are_those_defined(|k| number(k) as f32);
        sums_are_those_defined(|k| Complex32::new(number(k) as f32, number(k + 1) as f32));
    }

    #[test]
    fn lanes_without_an_entry_change_no_bit_of_the_others() {
        sums_are_those_defined(|k| if k.is_multiple_of(2) { -0.0 } else { 1.0f64 });
        sums_are_those_defined(|k| if k == 5 { f32::INFINITY } else { -0.0 });
        sums_are_those_defined(|k| if k == 40 { f64::NAN } else { 0.5 });
    }
}
