//! What is measured of a case.
use crate::samples::Timing;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// In each round, work is repeated for about this long, and the median is taken, unless [`set_budget`] says otherwise.
pub const BUDGET: Duration = Duration::from_millis(20);
static MICROSECONDS: AtomicU64 = AtomicU64::new(BUDGET.as_micros() as u64);

/// The time for which work is repeated in each round.
pub fn budget() -> Duration {
    Duration::from_micros(MICROSECONDS.load(Ordering::Relaxed))
}

/// Sets that time, in whole microseconds, for the whole process.
pub fn set_budget(budget: Duration) {
    MICROSECONDS.store(budget.as_micros() as u64, Ordering::Relaxed);
}

/// The measurements of one case. Times are for all iterations together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    pub iterations: u64,
    /// The minimum number of bytes that the iterations move, each array once per use.
    pub bytes: u64,
    /// A solve that includes making the vectors, the program and the plan, and transfers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fresh: Option<Timing>,
    /// A solve with a prepared solver, including transfers; or products alone.
    pub again: Timing,
    /// The same with `b` and `x` already on the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_device: Option<Timing>,
    /// The part of `fresh` spent before the solve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<Timing>,
    /// Transfers of `b` and the first guess to the device, and of `x` back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfers: Option<Timing>,
    /// The very first set-up, which may include the compilation of kernels.
    pub first_setup: f64,
    /// The transfer of the matrix to the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The relative residual of what is handed back, from `b - A x`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub true_residual: Option<f64>,
    /// The relative residual after the last iteration, by the recurrence, with all digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual: Option<f64>,
    /// The largest modulus of an element of `b - A x`, computed in double precision on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_error: Option<f64>,
    /// The real parts of `x`, if they were asked for.
    #[serde(skip)]
    pub solution: Vec<f64>,
    /// A digest of the bits of `x`, and one of the residuals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x_bits: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_bits: Option<String>,
    /// Whether every solve of this case gave the same bits.
    pub reproducible: bool,
    /// Relative residuals, to four digits, at iterations 0, stride, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<f64>,
    #[serde(default)]
    pub history_stride: u64,
}

impl Measured {
    /// The measurements of repeated work without parts. `bits` if results can be
    /// compared.
    pub fn of_one(bytes: u64, once: Timing, first_setup: f64, bits: Option<u64>) -> Self {
        Measured {
            iterations: 1,
            bytes,
            fresh: None,
            again: once,
            on_device: None,
            setup: None,
            transfers: None,
            first_setup,
            upload: None,
            outcome: None,
            true_residual: None,
            residual: None,
            largest_error: None,
            solution: Vec::new(),
            x_bits: bits.map(|bits| format!("{bits:016x}")),
            history_bits: None,
            reproducible: true,
            history: Vec::new(),
            history_stride: 0,
        }
    }

    /// Seconds per iteration with a prepared solver.
    pub fn each(&self) -> f64 {
        self.again.median / self.iterations.max(1) as f64
    }
    /// Seconds per iteration of a solve that includes its set-up.
    pub fn each_fresh(&self) -> Option<f64> {
        Some(self.fresh?.median / self.iterations.max(1) as f64)
    }
    /// Seconds per iteration with `b` and `x` on the device.
    pub fn each_on_device(&self) -> Option<f64> {
        Some(self.on_device?.median / self.iterations.max(1) as f64)
    }
    /// Bytes per second, by the minimum traffic, without transfers to and from the device.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / self.on_device.unwrap_or(self.again).median
    }
}

/// Rounds to four digits, the useful precision of a measurement.
pub fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
