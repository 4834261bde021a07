//! Numbers that look random and belong to a place, so that every device and every number of threads has the same.

/// A number between −1 and 1 that belongs to a row and to the number of a vector, below 2²⁴, alone.
pub(crate) fn hashed(row: usize, vector: usize) -> f64 {
    let h = ((row as u64 + 1) ^ (vector as u64) << 40).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let h = (h ^ (h >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (h >> 12) as f64 / (1u64 << 51) as f64 - 1.0
}
