//! Stateless random numbers: a number depends only on its place, so every thread draws the same.

/// A well-mixed 64-bit word of `seed` and two indices (the finaliser of SplitMix64, three times).
pub(super) fn word(seed: u64, i: u64, k: u64) -> u64 {
    let mix = |mut z: u64| {
        z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    mix(mix(mix(seed) ^ i) ^ k)
}

/// A number in `[0, 1)`, uniform, a multiple of 2⁻⁵³.
pub(super) fn unit(seed: u64, i: u64, k: u64) -> f64 {
    (word(seed, i, k) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A number in `[-1, 1)`, uniform.
pub(super) fn signed(seed: u64, i: u64, k: u64) -> f64 {
    2.0 * unit(seed, i, k) - 1.0
}

/// An index below `bound`, uniform to one part in 2³².
pub(super) fn below(bound: usize, seed: u64, i: u64, k: u64) -> usize {
    ((word(seed, i, k) as u128 * bound as u128) >> 64) as usize
}
