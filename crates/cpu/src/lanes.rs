//! Lanes of a row sum.
use lacuna_core::Scalar;

/// The sum of lanes by halving. Of so many known here, so that they stay in registers.
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
