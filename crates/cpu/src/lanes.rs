//! Lanes of a row sum.
use lacuna_core::Scalar;

/// The sum of lanes by halving.
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
