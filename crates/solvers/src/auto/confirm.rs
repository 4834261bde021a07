//! The accuracy of a solution, and whether the result of the device can be trusted.
use super::AutoSolver;
use crate::{Outcome, residual_norm, vector_norm};
use lacuna_engine::{Reason, Scalar};

/// The rounding error of a residual computed in working precision matters above this fraction of the
/// tolerance.
const HIDDEN: f64 = 0.005;
/// That rounding error is bounded by this many units of rounding times `‖A‖ ‖x‖ + ‖b‖`.
const UNITS: f64 = 4.0;
/// An iteration limit below this is a deliberate choice of the caller, and needs no costly explanation.
const EARLY: u64 = 5000;
/// A matrix with at most this many entries is checked in negligible time.
const QUICK: usize = 1 << 20;

/// The accuracy of a solution.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    /// `‖b − A x‖ / ‖b‖` in twice the precision, for vectors in the order of the device.
    pub(super) residual: f64,
    /// The same in the maximum norm.
    pub(super) largest: f64,
    pub(super) backward_error: f64,
    /// The largest residual of a row, relative to the terms of that row: `max |b − A x|ᵢ / (|A| |x| + |b|)ᵢ`.
    pub(super) of_rows: f64,
}

impl Measured {
    /// Of `x = 0`.
    pub(super) const ZERO: Self = Measured { residual: 1.0, largest: 1.0, backward_error: 1.0, of_rows: 1.0 };
}

/// The tolerance relative to `‖b‖`, in the norm of the test.
pub(super) fn tolerance<T: Scalar>(system: &AutoSolver<T>, b: f64) -> f64 {
    system.stop.rtol.max(system.stop.atol / b)
}

/// Whether an outcome stands as it is: one ended by the caller, or convergence, or an early limit on a large
/// system, provided that rounding cannot change the verdict. Sets the backward error.
pub(super) fn stands<T: Scalar>(system: &mut AutoSolver<T>, outcome: &mut Outcome, b: &[T], x: &[T]) -> bool {
    if outcome.true_residual.is_nan() || matches!(outcome.reason, Reason::Cancelled | Reason::Custom(_)) {
        return true;
    }
    let limited = outcome.reason == Reason::Limit
        && outcome.iterations >= system.limit()
        && outcome.iterations < EARLY
        && system.matrix.a.nnz() > QUICK;
    if !outcome.converged() && !limited {
        return false;
    }
    let (b, size) = (vector_norm(b), system.stop.norm.of(b));
    if b == 0.0 {
        outcome.backward_error = 0.0;
        return true;
    }
    let ax = system.matrix.norm_of_product(x);
    outcome.backward_error = outcome.true_residual * b / (ax + b);
    // The residual that the rounding error is compared with: in either norm, as no element of it is larger than its 2-norm.
    let residual = match limited {
        true => outcome.true_residual * b,
        false => tolerance(system, size) * size,
    };
    let no_worse = !limited || outcome.history.first().is_none_or(|first| outcome.true_residual <= *first);
    no_worse && UNITS * T::EPSILON * (ax + b) <= HIDDEN * residual
}

/// `‖b − A x‖ / ‖b‖` in twice the precision, for vectors in the order of the device.
pub(super) fn misfit<T: Scalar>(system: &AutoSolver<T>, b: &[T], x: &[T]) -> f64 {
    let [of_b, of_x] = system.resident.solver.factors(b);
    let b = of_b.times(b);
    let norm = vector_norm(&b);
    if norm == 0.0 { 0.0 } else { residual_norm(&system.matrix.a, &b, &of_x.times(x)) / norm }
}
