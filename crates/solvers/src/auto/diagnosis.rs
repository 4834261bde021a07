//! Why a solve fell short, and what to try: one line each.
use super::continuation::Continuation;
use lacuna_engine::{Reason, Scalar};

/// Rows whose largest entries differ by this factor are said to differ in scale.
const UNEVEN: f64 = 1e4;

impl<T: Scalar> Continuation<'_, T> {
    /// Says why the result falls short, and what to try, from what explains it and from the reason.
    pub(super) fn diagnose(&mut self, found: &[String], hermitian: bool) {
        let said = |why: &str, advice: &str| (why.to_string(), advice.to_string());
        let outcome = &self.outcome;
        let residual = outcome.true_residual;
        // Only a large `x` makes a residual above this one of rounding.
        let large = T::EPSILON.sqrt().sqrt();
        let or_wide = if T::EPSILON > 1e-10 { ", or double precision" } else { "" };
        let needs_hermitian = self.system.method.info().hermitian();
        let name = &self.system.chosen.method.name;
        let (why, advice) = match (found.first(), outcome.reason) {
            (Some(found), _) => {
                let (why, advice) = found.split_once("; ").unwrap_or((found, ""));
                said(
                    why,
                    if advice.is_empty() { "another right-hand side, or another matrix" } else { advice },
                )
            }
            (_, Reason::AccuracyAttained) if residual > large => (
                format!(
                    "x has grown until rounding errors of {} stop it: A is singular or nearly so",
                    T::KIND.name()
                ),
                format!("`lsmr`, whose misfit tells whether any x solves the system, or `direct`{or_wide}"),
            ),
            (_, Reason::AccuracyAttained) => (
                format!("what is left of the residual are rounding errors of {}", T::KIND.name()),
                format!("a tolerance of {:.0e}{or_wide}", 2.0 * residual),
            ),
            (_, Reason::OutOfRange) => {
                (format!("the solution is out of the range of {}", T::KIND.name()), "other units".into())
            }
            _ if needs_hermitian && !hermitian => {
                (format!("the matrix is not Hermitian, which {name} needs"), "bicgstab or gmres".into())
            }
            (_, Reason::IndefiniteOperator) => said("the matrix is not positive definite", "minres or gmres"),
            (_, Reason::IndefinitePreconditioner) => said(
                "the preconditioner is not positive definite, which the method needs",
                "jacobi, ic0 or ssor; or gmres, which takes any",
            ),
            (_, reason) => match (self.unevenness(), reason) {
                (uneven, _) if uneven > UNEVEN => (
                    format!("the rows of the matrix differ in scale by a factor of {uneven:.0e}"),
                    match hermitian {
                        true => {
                            "`jacobi`, or scaling: `--scale symmetric`, `LinearSystem::scale`; or `direct`"
                                .into()
                        }
                        false => "scaling: `--scale both`, `LinearSystem::scale`; or `direct`".into(),
                    },
                ),
                (_, Reason::Limit) => (
                    match residual < 0.9 {
                        true => format!(
                            "{} iterations were too few: the residual fell to {residual:.1e} |b|",
                            outcome.iterations
                        ),
                        false => {
                            format!(
                                "in {} iterations the residual did not fall below |b|",
                                outcome.iterations
                            )
                        }
                    },
                    "more iterations, a stronger preconditioner, or what `advise` finds".into(),
                ),
                (_, Reason::Stagnated) => said(
                    "what the method adds to x lowers the residual no more: A may be singular or nearly so, or the method does not suit it",
                    "`direct`, `gmres` with `ilut`, `lsmr` if it may be that no x solves the system, or what `advise` finds",
                ),
                (_, reason) => {
                    (reason.to_string(), "`direct`, `gmres` with `ilut`, or what `advise` finds".into())
                }
            },
        };
        (self.outcome.why, self.outcome.advice) = (why, advice);
    }

    /// The ratio of the largest to the smallest of the largest entries of the rows.
    fn unevenness(&self) -> f64 {
        let a = &self.system.matrix.a;
        let largest = |i: usize| a.row_slices(i).1.iter().map(|v| v.modulus()).fold(0.0, f64::max);
        let sizes = (0..a.rows()).map(largest).filter(|size| *size > 0.0);
        let (least, most) = sizes.fold((f64::INFINITY, 0.0f64), |(l, m), size| (l.min(size), m.max(size)));
        if least.is_finite() { most / least } else { 1.0 }
    }
}
