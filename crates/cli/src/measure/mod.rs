//! Measuring: solves and products on every backend that is there, in rounds that take turns.
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

/// In each round, something is repeated for about so long and the median taken.
pub(crate) const BUDGET: Duration = Duration::from_millis(20);

/// What one case is: a solve; products where the method is [`SPMV`]; or a pass, by name, where the subject is vectors.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) method: String,
    pub(crate) precond: String,
    pub(crate) format: &'static str,
    pub(crate) stop: lacuna::Stop,
    pub(crate) restart: Option<usize>,
}

/// The name that stands for sparse products among the methods.
pub(crate) const SPMV: &str = "spmv";
/// GMRES with one classical Gram-Schmidt sweep, as most libraries have it.
pub(crate) const GMRES_ONCE: &str = "gmres-once";

/// What was measured of one case. Times are of all iterations together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) iterations: u64,
    /// Bytes that the iterations must move, each array once where it is needed.
    pub(crate) bytes: u64,
    /// A solve with vectors, program and plan made for it; transfers included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fresh: Option<Timing>,
    /// A solve with what is there, transfers included; products alone.
    pub(crate) again: Timing,
    /// The same with `b` and `x` on the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on_device: Option<Timing>,
    /// The part of `fresh` before anything is solved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) setup: Option<Timing>,
    /// `b` and the first guess to the device, `x` back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transfers: Option<Timing>,
    /// The very first set-up: kernels may have been compiled.
    pub(crate) first_setup: f64,
    /// The matrix to the device.
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
    /// Whether every solve of this case had the same bits.
    pub(crate) reproducible: bool,
    /// Relative residuals, to four digits, at iterations 0, stride, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) history: Vec<f64>,
    #[serde(default)]
    pub(crate) history_stride: u64,
}

impl Measured {
    /// Of something that is done over and over and has no parts: products, passes. `bits` where they can be compared.
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

    /// Seconds of an iteration with what is there.
    pub(crate) fn each(&self) -> f64 {
        self.again.median / self.iterations.max(1) as f64
    }
    /// Seconds of an iteration of a solve made for the occasion.
    pub(crate) fn each_fresh(&self) -> Option<f64> {
        Some(self.fresh?.median / self.iterations.max(1) as f64)
    }
    /// Seconds of an iteration with `b` and `x` on the device.
    pub(crate) fn each_on_device(&self) -> Option<f64> {
        Some(self.on_device?.median / self.iterations.max(1) as f64)
    }
    /// Bytes a second by what must be moved, without transfers to and from the device.
    pub(crate) fn rate(&self) -> f64 {
        self.bytes as f64 / self.on_device.unwrap_or(self.again).median
    }
}

/// A number to four digits, which is what a measurement is worth.
pub(crate) fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
