//! Measures solves and products on every available backend, in alternating rounds.
mod bandwidth;
mod by_hand;
mod host;
mod machine;
mod pass;
mod product;
mod samples;
mod solve;
mod system;
mod target;

pub(crate) use bandwidth::{copy, triad};
pub(crate) use by_hand::{BY_HAND, ByHand};
pub(crate) use host::{ASSEMBLE, HOST, Host, READ, TO};
pub(crate) use machine::Machine;
pub(crate) use pass::PASSES;
pub(crate) use samples::{Samples, Timing};
pub(crate) use system::{Subject, System};
pub(crate) use target::{Target, open};

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// In each round, work is repeated for about this long, and the median is taken.
pub(crate) const BUDGET: Duration = Duration::from_millis(20);

/// A case to measure: a solve; products if the method is [`SPMV`]; or a pass, by name, if the subject is
/// vectors.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) method: String,
    pub(crate) precond: String,
    pub(crate) format: &'static str,
    pub(crate) stop: lacuna::Stop,
    pub(crate) restart: Option<usize>,
}

/// The method name that means sparse products.
pub(crate) const SPMV: &str = "spmv";
/// GMRES with one classical Gram-Schmidt sweep, as in most libraries.
pub(crate) const GMRES_ONCE: &str = "gmres-once";

/// The measurements of one case. Times are for all iterations together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) iterations: u64,
    /// The minimum number of bytes that the iterations move, each array once per use.
    pub(crate) bytes: u64,
    /// A solve that includes making the vectors, the program and the plan, and transfers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fresh: Option<Timing>,
    /// A solve with a prepared solver, including transfers; or products alone.
    pub(crate) again: Timing,
    /// The same with `b` and `x` already on the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on_device: Option<Timing>,
    /// The part of `fresh` spent before the solve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) setup: Option<Timing>,
    /// Transfers of `b` and the first guess to the device, and of `x` back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transfers: Option<Timing>,
    /// The very first set-up, which may include the compilation of kernels.
    pub(crate) first_setup: f64,
    /// The transfer of the matrix to the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upload: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) true_residual: Option<f64>,
    /// A digest of the bits of `x`, and one of the residuals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) x_bits: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) history_bits: Option<String>,
    /// Whether every solve of this case gave the same bits.
    pub(crate) reproducible: bool,
    /// Relative residuals, to four digits, at iterations 0, stride, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) history: Vec<f64>,
    #[serde(default)]
    pub(crate) history_stride: u64,
}

impl Measured {
    /// The measurements of repeated work without parts: products or passes. `bits` if results can be
    /// compared.
    fn of_one(bytes: u64, once: Timing, first_setup: f64, bits: Option<u64>) -> Self {
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
            x_bits: bits.map(|bits| format!("{bits:016x}")),
            history_bits: None,
            reproducible: true,
            history: Vec::new(),
            history_stride: 0,
        }
    }

    /// Seconds per iteration with a prepared solver.
    pub(crate) fn each(&self) -> f64 {
        self.again.median / self.iterations.max(1) as f64
    }
    /// Seconds per iteration of a solve that includes its set-up.
    pub(crate) fn each_fresh(&self) -> Option<f64> {
        Some(self.fresh?.median / self.iterations.max(1) as f64)
    }
    /// Seconds per iteration with `b` and `x` on the device.
    pub(crate) fn each_on_device(&self) -> Option<f64> {
        Some(self.on_device?.median / self.iterations.max(1) as f64)
    }
    /// Bytes per second, by the minimum traffic, without transfers to and from the device.
    pub(crate) fn rate(&self) -> f64 {
        self.bytes as f64 / self.on_device.unwrap_or(self.again).median
    }
}

/// Rounds to four digits, the useful precision of a measurement.
pub(crate) fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
