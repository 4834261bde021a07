//! Hashes of indices, and pseudo-random numbers by them, the same on every device and with any number of threads.

/// Mixes the bits of a number, which stays different from that of any other.
#[inline(always)]
pub(crate) fn mixed(word: u64) -> u64 {
    let h = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let h = (h ^ (h >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h ^ (h >> 32)
}

/// A number between −1 and 1 that depends only on the row and on the index of the vector, which is below 2²⁴.
pub fn hashed(row: usize, vector: usize) -> f64 {
    let h = ((row as u64 + 1) ^ (vector as u64) << 40).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let h = (h ^ (h >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (h >> 12) as f64 / (1u64 << 51) as f64 - 1.0
}
