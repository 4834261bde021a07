//! Pseudo-random numbers by a hash of their index, the same on every device and with any number of threads.

/// A number between −1 and 1 that depends only on the row and on the index of the vector, which is below 2²⁴.
pub(crate) fn hashed(row: usize, vector: usize) -> f64 {
    let h = ((row as u64 + 1) ^ (vector as u64) << 40).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let h = (h ^ (h >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (h >> 12) as f64 / (1u64 << 51) as f64 - 1.0
}
