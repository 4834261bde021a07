//! Numbers, vectors and matrices for tests: the same seed gives the same numbers everywhere.
use lacuna_engine::Scalar;
use lacuna_formats::{Csr, Triplets};
use lacuna_io::Spec;

/// A small pseudo-random number generator (Steele, Lea and Flood 2014, `splitmix64`).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The sequence for a seed.
    pub fn new(seed: u64) -> Self {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1bad_5eed)
    }
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    /// A real number in [−1, 1).
    pub fn real(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (2.0 / (1u64 << 53) as f64) - 1.0
    }
    /// A number with parts in [−1, 1).
    pub fn number<T: Scalar>(&mut self) -> T {
        let re = self.real();
        T::from_parts(re, self.real())
    }
    /// A vector of such numbers.
    pub fn vector<T: Scalar>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| self.number()).collect()
    }
    /// A vector of numbers with magnitudes spread over `2^±spread`.
    pub fn spread<T: Scalar>(&mut self, n: usize, spread: i32) -> Vec<T> {
        let mut number = || {
            let exponent = self.below(2 * spread as usize + 1) as i32 - spread;
            self.number::<T>().scale_by_power_of_two(exponent)
        };
        (0..n).map(|_| number()).collect()
    }
}

/// A matrix with about `per_row` entries in each row, some rows empty and one row full.
///
/// # Panics
/// If it cannot be assembled.
pub fn random_matrix<T: Scalar>(rng: &mut Rng, rows: usize, cols: usize, per_row: usize) -> Csr<T> {
    let mut entries = Triplets::new(rows, cols);
    let (empty, full) = (rng.below(rows.max(1)), rng.below(rows.max(1)));
    for i in 0..rows {
        if i == full && rows > 2 {
            (0..cols).for_each(|j| entries.push(i, j, rng.number()));
        } else if i != empty || rows < 4 {
            for _ in 0..(per_row / 2 + rng.below(per_row.max(1) + 1)).min(4 * cols) {
                entries.push(i, rng.below(cols), rng.number());
            }
        }
    }
    entries.to_csr().unwrap()
}

/// A generated matrix by name.
///
/// # Panics
/// If there is none with that name.
pub fn generated<T: Scalar>(name: &str) -> Csr<T> {
    Spec::parse(name).unwrap().build().unwrap()
}
