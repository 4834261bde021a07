//! The accuracy of a solution, and whether the result of the device can be trusted.
use crate::factor::times;
use crate::prepared::Parts;
use lacuna_engine::{Reason, Result, Scalar};
use lacuna_solvers::{Outcome, norm_bound, residual_norm, vector_norm};

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
pub(crate) struct Measured {
    /// `‖b − A x‖ / ‖b‖` in twice the precision, for vectors in the order of the device.
    pub(crate) residual: f64,
    pub(crate) backward_error: f64,
    /// The largest part of its own terms that a row of `b − A x` is.
    pub(crate) of_rows: f64,
}

impl Measured {
    /// Of `x = 0`.
    pub(crate) const ZERO: Self = Measured { residual: 1.0, backward_error: 1.0, of_rows: 1.0 };
}

/// An upper bound on `‖A‖ ‖x‖`, in the caller's units.
pub(crate) fn norm_of_product<T: Scalar>(parts: &mut Parts<T>, x: &[T]) -> f64 {
    let exponent = parts.factor.exponent;
    let given = &parts.given;
    let norm = *parts.norm.get_or_insert_with(|| norm_bound(given).scale_by_power_of_two(exponent));
    let x = vector_norm(x);
    let of_x = if x == 0.0 { 0 } else { x.log2().floor() as i32 };
    (norm * x.scale_by_power_of_two(-of_x)).scale_by_power_of_two(of_x - exponent)
}

/// The tolerance relative to `‖b‖`.
pub(crate) fn tolerance<T: Scalar>(parts: &Parts<T>, b: f64) -> f64 {
    parts.stop.rtol.max(parts.stop.atol / b)
}

/// Whether an outcome stands as it is: one ended by the caller, or convergence, or an early limit on a large
/// system, provided that rounding cannot change the verdict. Sets the backward error.
pub(crate) fn stands<T: Scalar>(parts: &mut Parts<T>, outcome: &mut Outcome, b: &[T], x: &[T]) -> bool {
    if outcome.true_residual.is_nan() || matches!(outcome.reason, Reason::Cancelled | Reason::Custom(_)) {
        return true;
    }
    let limited = outcome.reason == Reason::Limit
        && outcome.iterations >= parts.stop.max_iters
        && outcome.iterations < EARLY
        && parts.given.nnz() > QUICK;
    if !outcome.converged() && !limited {
        return false;
    }
    let b = vector_norm(b);
    if b == 0.0 {
        outcome.backward_error = 0.0;
        return true;
    }
    let ax = norm_of_product(parts, x);
    outcome.backward_error = outcome.true_residual * b / (ax + b);
    // The residual that the rounding error is compared with.
    let residual = if limited { outcome.true_residual } else { tolerance(parts, b) };
    let no_worse = !limited || outcome.history.first().is_none_or(|first| outcome.true_residual <= *first);
    no_worse && UNITS * T::EPSILON * (ax + b) <= HIDDEN * residual * b
}

/// `‖b − A x‖ / ‖b‖` in twice the precision, for vectors in the order of the device.
pub(crate) fn misfit<T: Scalar>(parts: &Parts<T>, b: &[T], x: &[T]) -> Result<f64> {
    let a = times(parts.factor, parts.given.clone())?;
    let [of_b, of_x] = parts.solver.factors(b);
    let (b, x) = (of_b.times(&parts.order.given_rhs(b)), of_x.times(&parts.order.given_solution(x)));
    let norm = vector_norm(&b);
    Ok(if norm == 0.0 { 0.0 } else { residual_norm(&a, &b, &x) / norm })
}
