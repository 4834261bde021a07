//! Shared by the tests of the CUDA backend: a device or a printed skip, random numbers, equality of bits.
#![allow(dead_code, unreachable_pub)]
use lacuna_cuda::{Cuda, CudaOptions, Mode};
use lacuna_engine::{Device, Error, Result, Scalar};
use lacuna_formats::{Csr, Triplets};
use std::io::Write as _;

/// A device, or `None` if there is none; fails if `LACUNA_REQUIRE` names `cuda`.
pub fn device() -> Option<Device> {
    match Cuda::with(&CudaOptions::default()) {
        Ok(cuda) => Some(Device::new(cuda)),
        Err(error) => {
            skip(&format!("no CUDA device: {error}"));
            None
        }
    }
}

/// Says, past the test harness, that something is skipped; fails if `LACUNA_REQUIRE` names `cuda`.
fn skip(why: &str) {
    let required = std::env::var("LACUNA_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name.trim() == "cuda"), "LACUNA_REQUIRE names cuda: {why}");
    // If even this fails, nothing better can be done.
    let _ = writeln!(std::io::stderr(), "\n*** SKIPPED: {why} ***");
}

/// Whether kernels can be generated; if not, it is said.
pub fn compiler() -> bool {
    let found = lacuna_cuda::compiler_found();
    if !found {
        skip("generated kernels: no NVRTC");
    }
    found
}

/// Sets how programs planned from now on are executed.
pub fn set_mode(dev: &Device, mode: Mode) {
    dev.with(|cuda: &mut Cuda| cuda.set_mode(mode)).unwrap();
}

/// The modes of execution available on this machine.
pub fn modes() -> Vec<Mode> {
    let mut modes = vec![Mode::Stream, Mode::Graph];
    if compiler() {
        modes.push(Mode::Jit);
    }
    modes
}

/// The result of a program in a mode; `None`, with a message, if no kernel can be generated for it.
#[track_caller]
pub fn unless_refused<X>(mode: Mode, done: Result<X>, what: &str) -> Option<X> {
    match done {
        Err(Error::Unsupported { message, .. }) if mode == Mode::Jit => {
            eprintln!("REFUSED {what}: {message}");
            None
        }
        done => Some(done.unwrap_or_else(|e| panic!("{what}: {e}"))),
    }
}

/// A generator of numbers between −1 and 1.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() >> 33) as usize % n.max(1)
    }
    pub fn real(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    pub fn number<T: Scalar>(&mut self) -> T {
        let (re, im) = (self.real(), self.real());
        T::from_parts(re, im)
    }
    pub fn vector<T: Scalar>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| self.number()).collect()
    }
}

/// Whether two numbers have the same bits; all NaNs are equal.
pub fn same<T: Scalar>(a: T, b: T) -> bool {
    let part = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    part(a.re(), b.re()) && part(a.im(), b.im())
}

/// Fails at the first element whose bits differ.
#[track_caller]
pub fn assert_same<T: Scalar>(got: &[T], expected: &[T], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let mut wrong = got.iter().zip(expected).enumerate().filter(|(_, (a, b))| !same(**a, **b));
    if let Some((i, (a, b))) = wrong.next() {
        panic!(
            "{what}: {} element {i}: got {a:e}, expected {b:e}; {} of {} differ",
            T::KIND.name(),
            1 + wrong.count(),
            got.len()
        );
    }
}

/// A random matrix with about `per_row` entries a row, some rows empty and some with twice as many; square
/// ones are diagonally dominant.
pub fn random_matrix<T: Scalar>(rows: usize, cols: usize, per_row: usize, seed: u64) -> Csr<T> {
    let mut random = Random::new(seed);
    let mut triplets = Triplets::new(rows, cols);
    for i in 0..rows {
        let count = match random.below(8) {
            0 if rows != cols => 0,
            1 => 2 * per_row,
            _ => per_row,
        };
        let mut columns: Vec<usize> = (0..count.min(cols)).map(|_| random.below(cols)).collect();
        columns.sort_unstable();
        columns.dedup();
        for j in columns {
            if i != j || rows != cols {
                triplets.push(i, j, random.number::<T>());
            }
        }
        if rows == cols {
            triplets.push(i, i, T::from_real(4.0 + 2.0 * per_row as f64));
        }
    }
    triplets.to_csr().unwrap()
}

/// Instantiates tests that are generic over the number type.
#[macro_export]
macro_rules! in_every_type {
    ($($test:ident),* $(,)?) => {
        $(mod $test {
            #[test]
            fn f32() {
                super::$test::<f32>();
            }
            #[test]
            fn f64() {
                super::$test::<f64>();
            }
            #[test]
            fn c32() {
                super::$test::<lacuna_engine::Complex32>();
            }
            #[test]
            fn c64() {
                super::$test::<lacuna_engine::Complex64>();
            }
        })*
    };
}
