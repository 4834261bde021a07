//! The canonical sum: halving inside a segment of 256 terms, neighbouring pairs above the segments.
//!
//! 1. The terms are padded with +0 to a multiple of 256. A segment of 256 is summed by halving the stride: 128, 64, …, 1.
//! 2. Neighbouring segment sums are added, (0, 1), (2, 3), …, then neighbours among these sums, until one is left. At
//!    each level the last of an odd number has no neighbour and goes up as it is: nothing is added to it, not even +0,
//!    which would turn −0 into +0. So the sum of a single segment is the result.
//! 3. The sum of no terms is +0.
//!
//! To pad the segment sums with −0, to a power of two or further, is the same as rule 2, since −0 changes no number that
//! it is added to; a GPU does that.
//!
//! The order depends only on the length, so every backend gives the same bits with any number of threads, and the error
//! grows with the logarithm of the length. The sum of segments `j · 2^k` to `(j + 1) · 2^k`, as far as they exist, is a
//! subtree: it depends on no other segment and not on how many there are. Any range of whole segments is a union of at
//! most 2 log₂ of these, so that several devices each sum their own and finish together: see [`crate::division`].
//!
//! A maximum, [`maximum`], has the same value in every order, and goes the same way as sums where that is simplest: its terms
//! are not negative, so that neither +0 nor −0 in the place of a missing term changes it, but for the sign of a zero, which is +.
use crate::Scalar;

/// Elements of one segment of a canonical sum.
pub const SEGMENT: usize = 256;

/// The sum of one segment of at most [`SEGMENT`] terms, as if padded with +0.
pub fn segment_sum<T: Scalar>(terms: &[T]) -> T {
    let mut padded = [T::zero(); SEGMENT];
    padded[..terms.len()].copy_from_slice(terms);
    let mut stride = SEGMENT / 2;
    while stride > 0 {
        let (low, high) = padded.split_at_mut(stride);
        for (a, b) in low.iter_mut().zip(high) {
            *a += *b;
        }
        stride /= 2;
    }
    padded[0]
}

/// The sum of consecutive segment sums, the first of them of segment 0, by neighbouring pairs; +0 for none.
pub fn pair_sum<T: Scalar>(sums: &[T]) -> T {
    if let Ok(block) = <&[T; 64]>::try_from(sums) {
        return sum_16(&pairs::<T, 32, 16>(&pairs(block)));
    }
    if let Ok(block) = <&[T; 16]>::try_from(sums) {
        return sum_16(block);
    }
    match *sums {
        [] => T::zero(),
        [a] => a,
        [a, b] => a + b,
        [a, b, c] => (a + b) + c,
        [a, b, c, d] => (a + b) + (c + d),
        _ => {
            // The largest full subtree, and what is left.
            let (full, rest) = sums.split_at(sums.len().next_power_of_two() / 2);
            pair_sum(full) + pair_sum(rest)
        }
    }
}

/// The largest of terms of a maximum, in any order; +0 for none, NaN if one is.
pub fn maximum<T: Scalar>(terms: impl Iterator<Item = T>) -> T {
    terms.fold(T::zero(), T::larger)
}

/// One level: half as many sums.
#[inline(always)]
fn pairs<T: Scalar, const N: usize, const HALF: usize>(sums: &[T; N]) -> [T; HALF] {
    std::array::from_fn(|i| sums[2 * i] + sums[2 * i + 1])
}

#[inline(always)]
fn sum_16<T: Scalar>(sums: &[T; 16]) -> T {
    let [a, b, c, d, e, f, g, h] = pairs(sums);
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}

/// The canonical sum of `terms`; +0 for an empty slice.
pub fn pairwise<T: Scalar>(terms: &[T]) -> T {
    pair_sum(&terms.chunks(SEGMENT).map(segment_sum).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers between −1 and 1 with magnitudes so different that nearly every order of adding them rounds differently.
    fn spread(n: usize, seed: u64) -> Vec<f64> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d)
        };
        (0..n).map(|_| (next() as i64 as f64 / 2f64.powi(63)) * 2f64.powi((next() >> 60) as i32)).collect()
    }

    /// Level by level, with the segment sums padded with −0 to a power of two.
    fn by_levels(sums: &[f64]) -> f64 {
        let mut level = sums.to_vec();
        level.resize(sums.len().next_power_of_two(), -0.0);
        while level.len() > 1 {
            level = level.chunks(2).map(|pair| pair[0] + pair[1]).collect();
        }
        level[0]
    }

    #[test]
    fn neighbouring_pairs_are_added_level_by_level() {
        for n in (1..=300).chain([511, 512, 513, 1000, 4097]) {
            let sums = spread(n, n as u64);
            assert_eq!(pair_sum(&sums).to_bits(), by_levels(&sums).to_bits(), "{n}");
        }
        let (sums, halved) = (spread(256, 1), segment_sum(&spread(256, 1)));
        assert_ne!(pair_sum(&sums), halved, "the numbers tell no order from another");
    }

    #[test]
    fn a_segment_sum_without_a_neighbour_keeps_its_sign() {
        for segments in [1, 2, 3, 5, 6, 7, 12, 16, 17, 255, 257] {
            let zero = pairwise(&vec![-0.0f64; segments * SEGMENT]);
            assert!(zero == 0.0 && zero.is_sign_negative(), "{segments} segments of -0");
            let padded = pairwise(&vec![-0.0f64; segments * SEGMENT - 1]);
            assert!(
                padded == 0.0 && padded.is_sign_positive(),
                "{segments} segments, the last padded with +0"
            );
        }
        assert!(pairwise::<f64>(&[]).is_sign_positive());
    }

    #[test]
    fn integers_sum_exactly_at_every_length_around_a_border() {
        for n in [0usize, 1, 2, 255, 256, 257, 511, 65535, 65536, 65537, 100_000] {
            let terms: Vec<f64> = (0..n).map(|i| i as f64).collect();
            assert_eq!(pairwise(&terms), (n * n.saturating_sub(1) / 2) as f64, "{n}");
        }
    }

    #[test]
    fn error_grows_with_the_logarithm() {
        let n = 1 << 20;
        let terms = vec![0.1f32; n];
        let exact = 0.1f32 as f64 * n as f64;
        assert!((pairwise(&terms) as f64 - exact).abs() <= 20.0 * f32::EPSILON as f64 * exact);
    }
}
