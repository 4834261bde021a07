//! How a solve ended.
use std::fmt;

/// Why a program stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The true residual `b − A x` meets the tolerance.
    Converged,
    /// The iteration limit was reached first.
    Limit,
    /// The residual no longer decreases: the recurrence met the tolerance, or a cycle ended, without
    /// improving the true residual. The tolerance is out of reach in this precision, or the method stagnates.
    Stagnated,
    /// The residual grew far beyond its initial value.
    Diverged,
    /// `⟨p, A p⟩` was not positive: the operator is not positive definite, which the method needs.
    IndefiniteOperator,
    /// `⟨r, M r⟩` was not positive: the preconditioner is not positive definite, which the method needs.
    IndefinitePreconditioner,
    /// The residual is at the level of rounding errors of `b − A x` in this number type, and above the
    /// tolerance.
    AccuracyAttained,
    /// The solution of the scaled system has elements that overflow or underflow when scaled back.
    OutOfRange,
    /// A divisor of the method vanished, and restarting did not help.
    Breakdown(&'static str),
    /// A quantity became infinite or NaN.
    NotFinite(&'static str),
    /// The caller asked to stop.
    Cancelled,
    /// A test of a user-defined method held.
    Custom(&'static str),
}

impl Reason {
    /// Whether a restart from the true residual may recover.
    pub fn is_soft(self) -> bool {
        matches!(self, Reason::Breakdown(_))
    }
    /// The stable number of this reason, for other languages: 0 if it converged; positive if `x` is as good as the limit or the
    /// precision let it be; negative if the method failed or was stopped.
    ///
    /// | code | reason | code | reason |
    /// |--:|---|--:|---|
    /// | 0 | [`Converged`](Reason::Converged) | −4 | [`OutOfRange`](Reason::OutOfRange) |
    /// | 1 | [`Limit`](Reason::Limit) | −5 | [`Breakdown`](Reason::Breakdown) |
    /// | 2 | [`Stagnated`](Reason::Stagnated) | −6 | [`NotFinite`](Reason::NotFinite) |
    /// | 3 | [`AccuracyAttained`](Reason::AccuracyAttained) | −7 | [`Cancelled`](Reason::Cancelled) |
    /// | −1 | [`Diverged`](Reason::Diverged) | −8 | [`Custom`](Reason::Custom) |
    /// | −2 | [`IndefiniteOperator`](Reason::IndefiniteOperator) | −3 | [`IndefinitePreconditioner`](Reason::IndefinitePreconditioner) |
    pub fn code(self) -> i32 {
        match self {
            Reason::Converged => 0,
            Reason::Limit => 1,
            Reason::Stagnated => 2,
            Reason::AccuracyAttained => 3,
            Reason::Diverged => -1,
            Reason::IndefiniteOperator => -2,
            Reason::IndefinitePreconditioner => -3,
            Reason::OutOfRange => -4,
            Reason::Breakdown(_) => -5,
            Reason::NotFinite(_) => -6,
            Reason::Cancelled => -7,
            Reason::Custom(_) => -8,
        }
    }
    /// The stable name of this reason, for JSON and scripts.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Converged => "converged",
            Reason::Limit => "limit",
            Reason::Stagnated => "stagnated",
            Reason::Diverged => "diverged",
            Reason::IndefiniteOperator => "indefinite_operator",
            Reason::IndefinitePreconditioner => "indefinite_preconditioner",
            Reason::AccuracyAttained => "accuracy_attained",
            Reason::OutOfRange => "out_of_range",
            Reason::Breakdown(_) => "breakdown",
            Reason::NotFinite(_) => "not_finite",
            Reason::Cancelled => "cancelled",
            Reason::Custom(_) => "custom",
        }
    }
}

/// A solve that did not converge, for callers to whom that is an error.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "not converged after {iterations} iterations, with a residual of {residual:.2e} for a target of {target:.2e}: {reason}"
)]
#[non_exhaustive]
pub struct NotConverged {
    /// Why it stopped.
    pub reason: Reason,
    /// Iterations done.
    pub iterations: u64,
    /// The relative residual of the solution returned.
    pub residual: f64,
    /// The relative residual to which it should converge.
    pub target: f64,
}

impl NotConverged {
    /// With these fields.
    pub fn new(reason: Reason, iterations: u64, residual: f64, target: f64) -> Self {
        NotConverged { reason, iterations, residual, target }
    }
}

/// Serialized as its stable name.
#[cfg(feature = "serde")]
impl serde::Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Converged => write!(f, "converged: the true residual meets the tolerance"),
            Reason::Limit => write!(f, "the iteration limit was reached"),
            Reason::Stagnated => write!(f, "stagnated: the true residual no longer shrinks"),
            Reason::Diverged => write!(f, "diverged: the residual grew far beyond where it began"),
            Reason::IndefiniteOperator => {
                write!(f, "the operator is not positive definite: <p, A p> was not positive")
            }
            Reason::IndefinitePreconditioner => {
                write!(f, "the preconditioner is not positive definite: <r, M r> was not positive")
            }
            Reason::AccuracyAttained => {
                write!(f, "as accurate as this number type allows: what is left of the residual is rounding")
            }
            Reason::OutOfRange => {
                write!(
                    f,
                    "the solution is outside the range of this number type: elements overflow or vanish"
                )
            }
            Reason::Breakdown(what) => write!(f, "breakdown: {what} vanished"),
            Reason::NotFinite(what) => write!(f, "{what} became infinite or NaN"),
            Reason::Cancelled => write!(f, "cancelled by the caller"),
            Reason::Custom(what) => write!(f, "{what}"),
        }
    }
}
