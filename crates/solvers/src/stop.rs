//! When a solve ends, and how far it has come.

/// Stopping criteria.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
#[non_exhaustive]
pub struct Stop {
    /// Converged if `‖b − A x‖ ≤ max(rtol ‖b‖, atol)`.
    pub rtol: f64,
    /// The absolute tolerance of the same test.
    pub atol: f64,
    /// Iterations at most; by default ten for each unknown, within limits: see [`Stop::limit`].
    pub max_iters: Option<u64>,
    /// Diverged if the residual exceeds this factor times `max(‖b‖, ‖b − A x₀‖)`.
    pub dtol: f64,
}

impl Default for Stop {
    fn default() -> Self {
        Stop { rtol: 1e-8, atol: 0.0, max_iters: None, dtol: 1e8 }
    }
}

lacuna_engine::setters!(Stop { rtol: f64, atol: f64, max_iters: impl Into<Option<u64>>, dtol: f64 });

impl Stop {
    /// The largest number of iterations for an operator of this shape: `max_iters`, or 10 for each row or column, whichever are
    /// more, but at least 1000 and at most 100 000.
    pub fn limit(&self, (rows, cols): (usize, usize)) -> u64 {
        self.max_iters.unwrap_or((10 * rows.max(cols) as u64).clamp(1000, 100_000))
    }
}

/// The progress of a running solve.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Watch {
    /// Iterations done.
    pub iterations: u64,
    /// `‖r‖ / ‖b‖` by the recurrence; NaN for a solve of data already on the device, and for least squares.
    pub residual: f64,
}

impl Watch {
    /// With these fields.
    pub fn new(iterations: u64, residual: f64) -> Self {
        Watch { iterations, residual }
    }
}
