//! The canonical sum: recursive pairwise, fan-in 256.
//!
//! Pad with zeros to a multiple of 256; inside a segment of 256 halve the stride (128, 64, …, 1); sum the
//! segment sums by the same rule until one is left. The order depends only on the length, so every backend
//! gives the same bits with any number of threads; the error grows with the logarithm of the length.
use crate::Scalar;

/// Elements of one segment of a canonical sum.
pub const SEGMENT: usize = 256;

/// The sum of one segment of at most [`SEGMENT`] terms, as if padded with zeros.
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

/// The canonical sum of `terms`; 0 for an empty slice.
pub fn pairwise<T: Scalar>(terms: &[T]) -> T {
    match terms.len() {
        0 => T::zero(),
        n if n <= SEGMENT => segment_sum(terms),
        _ => pairwise(&terms.chunks(SEGMENT).map(segment_sum).collect::<Vec<_>>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
