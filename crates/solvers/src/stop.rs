//! When a solve ends, and how far it has come.
use crate::scale::{max_norm, vector_norm};
use lacuna_engine::Scalar;

/// A norm of the residual.
///
/// ```
/// use lacuna_solvers::Norm;
///
/// assert_eq!(Norm::Two.of(&[3.0, -4.0]), 5.0);
/// assert_eq!(Norm::Max.of(&[3.0, -4.0]), 4.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Norm {
    /// The square root of the sum of the squares.
    #[default]
    Two,
    /// The largest modulus of an element.
    Max,
}

impl Norm {
    /// `‖v‖`, without overflow or underflow; NaN if an element is not finite.
    pub fn of<T: Scalar>(self, v: &[T]) -> f64 {
        match self {
            Norm::Two => vector_norm(v),
            Norm::Max => max_norm(v),
        }
    }
}

/// Stopping criteria.
///
/// ```
/// use lacuna_solvers::{Norm, Stop};
///
/// let stop = Stop::default(); // a relative residual of 1e-8
/// assert_eq!((stop.rtol, stop.limit((500, 500))), (1e-8, 5000));
/// let stop = stop.rtol(0.0).atol(1e-6).norm(Norm::Max); // no element of `b − A x` above 1e-6
/// assert_eq!(stop.max_iters(100).limit((500, 500)), 100);
/// ```
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
    /// The norm of the test. Whichever it is, the history is that of the 2-norm, and so are progress and divergence.
    ///
    /// In the maximum norm, `max |b − A x|ᵢ ≤ max(rtol max |b|ᵢ, atol)`, a method that has the residual in a vector stops in the
    /// iteration that meets the test. One that knows its 2-norm alone (`minres`, `tfqmr`, the variants of `gmres`) computes it
    /// where the test is likely to hold: once at a quarter of the tolerance in the mean square, then as the residual found there
    /// suggests.
    pub norm: Norm,
    /// Diverged if the residual exceeds this factor times `max(‖b‖, ‖b − A x₀‖)`.
    pub dtol: f64,
}

impl Default for Stop {
    fn default() -> Self {
        Stop { rtol: 1e-8, atol: 0.0, max_iters: None, norm: Norm::Two, dtol: 1e8 }
    }
}

lacuna_engine::setters!(Stop { rtol: f64, atol: f64, max_iters: impl Into<Option<u64>>, norm: Norm, dtol: f64 });

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
