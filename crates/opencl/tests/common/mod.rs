//! Shared by the tests of this crate: a device of each shape and mode, or a printed skip.
#![allow(dead_code, reason = "each test file uses its part")]
use lacuna_engine::{Device, Scalar};
use lacuna_formats::Csr;
use lacuna_opencl::{Mode, OpenCl, OpenClOptions};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The device that `LACUNA_OPENCL_DEVICE` names, or the first, in the given mode, with the shape of its kind
/// (or `LACUNA_OPENCL_SHAPE`). `None`, with a message, if there is no device; fails if `LACUNA_REQUIRE` names
/// `opencl`.
pub(crate) fn device(mode: Mode) -> Option<Device> {
    let options = OpenClOptions::from_env().expect("the environment's options").mode(mode);
    match OpenCl::new(options) {
        Ok(dev) => Some(dev.into()),
        Err(error) => {
            let required = std::env::var("LACUNA_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|name| name == "opencl"), "required but not there: {error}");
            eprintln!("SKIPPED, no OpenCL device: {error}");
            None
        }
    }
}

/// Bytes of device memory that a device holds.
pub(crate) fn held(dev: &Device) -> u64 {
    dev.with(|dev: &mut OpenCl| dev.held_bytes()).expect("an OpenCL device")
}

/// A device for each mode in which it runs programs, except `Auto`.
pub(crate) fn devices() -> Vec<(Mode, Device)> {
    let modes = device(Mode::Auto).and_then(|dev| dev.with(|dev: &mut OpenCl| dev.modes()).ok());
    let modes = modes.into_iter().flatten();
    modes.filter(|mode| *mode != Mode::Auto).filter_map(|mode| Some((mode, device(mode)?))).collect()
}

/// Serialises the tests of one process: not every driver builds programs on several threads.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether to skip what is slow under a memory checker: `LACUNA_TEST_SMALL` is set.
pub(crate) fn small() -> bool {
    std::env::var_os("LACUNA_TEST_SMALL").is_some()
}

/// The bits of the numbers of a slice; all NaNs are equal.
pub(crate) fn bits<T: Scalar>(values: &[T]) -> Vec<(u64, u64)> {
    let bits = |x: f64| if x.is_nan() { u64::MAX } else { x.to_bits() };
    values.iter().map(|v| (bits(v.re()), bits(v.im()))).collect()
}

/// A stream of pseudo-random numbers (xorshift64*).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn word(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((self.word() >> 33) as usize) % n.max(1)
    }
    pub(crate) fn real(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    pub(crate) fn number<T: Scalar>(&mut self) -> T {
        T::from_parts(self.real(), self.real())
    }
    pub(crate) fn vector<T: Scalar>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| self.number()).collect()
    }
    /// A matrix with about `per_row` entries a row, some rows empty.
    pub(crate) fn matrix<T: Scalar>(&mut self, rows: usize, cols: usize, per_row: usize) -> Csr<T> {
        let (mut row_ptr, mut col_idx, mut values) = (vec![0u32], vec![], vec![]);
        for _ in 0..rows {
            let count = if self.below(7) == 0 { 0 } else { self.below(2 * per_row + 1) }.min(cols);
            let mut columns: Vec<u32> = (0..count).map(|_| self.below(cols) as u32).collect();
            columns.sort_unstable();
            columns.dedup();
            values.extend((0..columns.len()).map(|_| self.number::<T>()));
            col_idx.extend(columns);
            row_ptr.push(col_idx.len() as u32);
        }
        Csr::new(rows, cols, row_ptr, col_idx, values).expect("a valid matrix")
    }
}

/// A convection-diffusion matrix on an `m × m` grid; symmetric if `wind` is 0.
pub(crate) fn grid<T: Scalar>(m: usize, wind: T, shift: T) -> Csr<T> {
    let (mut row_ptr, mut col_idx, mut values) = (vec![0u32], vec![], vec![]);
    for i in 0..m * m {
        let (r, c) = (i / m, i % m);
        let mut put = |inside: bool, j: usize, v: T| {
            if inside {
                col_idx.push(j as u32);
                values.push(v);
            }
        };
        put(r > 0, i.wrapping_sub(m), -T::one());
        put(c > 0, i.wrapping_sub(1), -T::one() - wind);
        put(true, i, T::from_real(4.0) + shift);
        put(c + 1 < m, i + 1, -T::one() + wind);
        put(r + 1 < m, i + m, -T::one());
        row_ptr.push(col_idx.len() as u32);
    }
    Csr::new(m * m, m * m, row_ptr, col_idx, values).expect("a valid matrix")
}

/// Runs a generic case for the four number types.
macro_rules! in_every_type {
    ($case:ident) => {
        paste::paste! {
            #[test]
            fn [<$case _f32>]() {
                let _alone = common::alone();
                $case::<f32>();
            }
            #[test]
            fn [<$case _f64>]() {
                let _alone = common::alone();
                $case::<f64>();
            }
            #[test]
            fn [<$case _c32>]() {
                let _alone = common::alone();
                $case::<lacuna_engine::Complex32>();
            }
            #[test]
            fn [<$case _c64>]() {
                let _alone = common::alone();
                $case::<lacuna_engine::Complex64>();
            }
        }
    };
}
