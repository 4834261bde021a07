//! The result of a solve.
use crate::{Chosen, Norm, name_of};
use lacuna_engine::{NotConverged, Reason};
use std::fmt;
use std::time::Duration;

/// A method with its preconditioner, as a solve used them, each with the reason why it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Way {
    /// The method.
    pub method: Chosen,
    /// The preconditioner; `none` if there is none.
    pub preconditioner: Chosen,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.preconditioner.name {
            "none" => write!(f, "{}", self.method.name),
            preconditioner => write!(f, "{} with {preconditioner}", self.method.name),
        }
    }
}

/// The result of a solve.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[must_use = "a solve that did not converge is an outcome: see `converged` and `ok`"]
#[non_exhaustive]
pub struct Outcome {
    /// Why it stopped.
    pub reason: Reason,
    /// Iterations done.
    pub iterations: u64,
    /// Restarts: how often a cycle ended, or the recurrence met the tolerance and the true residual did not.
    pub restarts: u64,
    /// `‖r‖ / ‖b‖` by the method's recurrence, at the last iteration.
    pub residual: f64,
    /// `‖b − A x‖ / ‖b‖`, or `‖Aᴴ (b − A x)‖ / ‖Aᴴ b‖` for least squares, of the `x` that is returned.
    /// Computed from `x` in the number type of the solve, and by [`residual_norm`](crate::residual_norm) if
    /// that is not accurate enough to decide. NaN for a method that does not confirm.
    pub true_residual: f64,
    /// The relative residual to converge to, `max(rtol, atol / ‖b‖)`, with `‖Aᴴ b‖` for least squares, in the norm of the test. NaN
    /// if nothing was solved.
    pub target: f64,
    /// The norm of the test: [`Stop::norm`](crate::Stop::norm). Residuals that do not say so are 2-norms whichever it is.
    pub norm: Norm,
    /// `‖b − A x‖_∞`, the largest `|b − A x|ᵢ`, computed as the true residual is. NaN unless the norm of the test is the maximum norm:
    /// [`residual`](crate::residual) computes it on the host.
    pub max_residual: f64,
    /// `‖b − A x‖_∞ / ‖b‖_∞`, likewise: if the maximum norm is tested, what is to fall below the target.
    pub relative_max_residual: f64,
    /// `‖b − A x‖ / (‖A‖ ‖x‖ + ‖b‖)` with `‖A‖ = √(‖A‖₁ ‖A‖_∞)`: the smallest relative change of `A` and `b`
    /// that makes `x` exact, up to the choice of the norm (Rigal and Gaches 1967). The best possible value is
    /// the unit roundoff. NaN if the matrix is not known.
    pub backward_error: f64,
    /// `‖b − A x‖ / ‖b‖` of a least-squares problem: the part of `b` outside the range of `A`. NaN for other
    /// systems, and if the matrix is not known.
    pub misfit: f64,
    /// `‖Aᴴ (b − A x)‖` of a least-squares problem at its last confirmation; NaN for other systems.
    pub normal_residual: f64,
    /// An estimate of the Frobenius norm of `A` by `lsqr` and `lsmr`: the part of it that the iterations have seen, and no more than
    /// it. NaN for other methods.
    pub norm_a: f64,
    /// An estimate of the condition number of `A`, likewise.
    pub cond_a: f64,
    /// `‖r‖ / ‖b‖` at iterations 0, `history_stride`, 2 `history_stride`, … The first is NaN if it is not known: if an exact
    /// breakdown within the first iteration from a guess leaves the solution.
    pub history: Vec<f64>,
    /// Iterations between two values of the history: 1 if the limit is below 1 048 576; for a right-hand side that was iterated
    /// together with others, the joint iterations.
    pub history_stride: u64,
    /// Time of the solve itself: the transfers of `b` and `x`, the iterations, and the set-up of what continues with it.
    pub time: Duration,
    /// The part of `time` spent on setting up other methods and preconditioners that continued.
    pub setup: Duration,
    /// The part of `time` spent on inspecting `b` and `x`, on transfers to the device and back, and on checks
    /// on the host; the rest of `time`, without `setup`, is the iterations.
    pub transfers: Duration,
    /// Why it fell short, in one line; empty if it converged, and for a [`Solver`](crate::Solver) alone.
    pub why: String,
    /// What to try then, in one line.
    pub advice: String,
    /// The methods that were used, in order, each with its preconditioner: the one chosen first, and those that continued where it
    /// fell short. The last one finished. Empty for a [`Solver`](crate::Solver) alone.
    pub ways: Vec<Way>,
    /// What was chosen before the solve, in words.
    pub choices: Vec<String>,
    /// What happened during the solve, and what explains its end, in words.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Whether the true residual meets the tolerance.
    pub fn converged(&self) -> bool {
        self.reason == Reason::Converged
    }
    /// An error unless the true residual meets the tolerance, for `outcome.ok()?`.
    ///
    /// # Errors
    /// [`NotConverged`], which becomes an [`Error`](lacuna_engine::Error).
    pub fn ok(&self) -> Result<(), NotConverged> {
        if self.converged() {
            return Ok(());
        }
        let confirmed = match self.norm {
            Norm::Two => self.true_residual,
            Norm::Max => self.relative_max_residual,
        };
        let residual = if confirmed.is_nan() { self.residual } else { confirmed };
        Err(NotConverged::new(self.reason, self.iterations, residual, self.target))
    }
    /// What finished the solve, and the ways before it. `None` for a [`Solver`](crate::Solver) alone.
    pub fn finished_by(&self) -> Option<(&Way, &[Way])> {
        self.ways.split_last()
    }
    /// Whether a method with this name was used, with a preconditioner of that name. An empty name stands for any.
    pub(crate) fn used(&self, method: &str, preconditioner: &str) -> bool {
        let is = |chosen: &Chosen, name: &str| name.is_empty() || name_of(&chosen.name) == name;
        self.ways.iter().any(|way| is(&way.method, method) && is(&way.preconditioner, preconditioner))
    }
    /// The time of the iterations.
    pub fn iterating(&self) -> Duration {
        self.time.saturating_sub(self.transfers + self.setup)
    }
}

impl Default for Outcome {
    fn default() -> Self {
        Outcome {
            reason: Reason::Limit,
            iterations: 0,
            restarts: 0,
            residual: f64::NAN,
            true_residual: f64::NAN,
            target: f64::NAN,
            norm: Norm::Two,
            max_residual: f64::NAN,
            relative_max_residual: f64::NAN,
            backward_error: f64::NAN,
            misfit: f64::NAN,
            normal_residual: f64::NAN,
            norm_a: f64::NAN,
            cond_a: f64::NAN,
            history: Vec::new(),
            history_stride: 1,
            time: Duration::ZERO,
            setup: Duration::ZERO,
            transfers: Duration::ZERO,
            why: String::new(),
            advice: String::new(),
            ways: Vec::new(),
            choices: Vec::new(),
            notes: Vec::new(),
        }
    }
}
