//! Whether a result is final, and what explains one that falls short.
use super::confirm::{Measured, tolerance};
use super::continuation::Continuation;
use crate::{Deficient, Norm, deficiency, explain};
use lacuna_engine::{Reason, Result, Scalar};
use lacuna_formats::Csr;

/// A residual meets the tolerance if it exceeds it by at most this factor.
const SLACK: f64 = 1.005;
/// Reduction of the tolerance after the device wrongly considered it met.
const TIGHTENING: f64 = 0.5;
/// A backward error of at most this many units of rounding is the best attainable, if no row is far from its own terms: a
/// large entry elsewhere would hide it.
const ATTAINED: f64 = 8.0;

/// Whether what is left of a residual consists of rounding.
fn is_rounding<T: Scalar>(measured: Measured) -> bool {
    measured.backward_error <= ATTAINED * T::EPSILON && measured.of_rows <= T::EPSILON.sqrt()
}

impl<T: Scalar> Continuation<'_, T> {
    /// Sets the accuracy of the result.
    pub(super) fn report(&mut self, measured: Measured) {
        self.outcome.true_residual = measured.residual;
        self.outcome.relative_max_residual = measured.largest;
        self.outcome.max_residual = measured.largest * self.largest;
        self.outcome.backward_error = measured.backward_error;
        self.measured = measured;
    }

    /// Whether a method stagnated at the accuracy that rounding allows.
    pub(super) fn is_exact(&self, measured: Measured) -> bool {
        self.outcome.reason == Reason::Stagnated && is_rounding::<T>(measured)
    }

    /// Whether a residual meets the tolerance.
    pub(super) fn meets(&self, measured: Measured) -> bool {
        match self.system.stop.norm {
            Norm::Two => measured.residual <= SLACK * tolerance(self.system, self.norm),
            Norm::Max => measured.largest <= SLACK * tolerance(self.system, self.largest),
        }
    }

    /// The 2-norm, relative to `‖b‖`, at which a residual of the form of this one meets the tolerance.
    pub(super) fn goal(&self, measured: Measured) -> f64 {
        match self.system.stop.norm {
            Norm::Two => tolerance(self.system, self.norm),
            Norm::Max => {
                tolerance(self.system, self.largest)
                    * (measured.residual / measured.largest.max(f64::MIN_POSITIVE))
            }
        }
    }

    /// Whether `x` meets the tolerance, or nothing more should be tried.
    pub(super) fn is_final(&mut self, measured: Measured) -> bool {
        let meets = self.meets(measured);
        let outcome = &mut *self.outcome;
        if outcome.converged() && !meets {
            // The device was deceived by rounding: the residual does not meet the tolerance.
            outcome.reason = Reason::Stagnated;
            self.tightening *= TIGHTENING;
        }
        if meets && outcome.reason != Reason::OutOfRange {
            outcome.reason = Reason::Converged;
        }
        let attained = outcome.reason == Reason::AccuracyAttained && is_rounding::<T>(measured);
        let spent = outcome.reason == Reason::Limit && outcome.iterations >= self.system.limit();
        meets
            || spent
            || attained
            || matches!(outcome.reason, Reason::Cancelled | Reason::Custom(_) | Reason::OutOfRange)
    }

    /// Sets the final reason, and adds what explains it.
    pub(super) fn conclude(&mut self) -> Result<()> {
        if self.outcome.converged() || self.outcome.reason == Reason::Cancelled {
            return Ok(());
        }
        let matrix = &self.system.matrix;
        let given = matrix.given()?;
        let mut found = matrix.lost.iter().cloned().collect::<Vec<_>>();
        if found.is_empty() {
            found = explain(&*given, &matrix.order.given_rhs(self.b)); // entries that are lost would be empty places
        }
        if found.is_empty() {
            found.extend(self.contradiction());
        }
        let outcome = &mut *self.outcome;
        let may_be_rounding =
            !matches!(outcome.reason, Reason::Limit | Reason::OutOfRange | Reason::NotFinite(_));
        if found.is_empty() && may_be_rounding && is_rounding::<T>(self.measured) {
            outcome.reason = Reason::AccuracyAttained;
        } else if outcome.reason == Reason::AccuracyAttained {
            outcome.reason = Reason::Stagnated; // a row, or what is found, says that more is missing than digits
        }
        let hermitian = is_hermitian(&given);
        let solved = if matrix.order.changes() { is_hermitian(&matrix.a) } else { hermitian };
        self.diagnose(&found, [hermitian, solved]);
        let outcome = &mut *self.outcome;
        let tried = ["minres", "gmres"].iter().any(|name| outcome.used(name, ""));
        if outcome.reason == Reason::IndefiniteOperator && solved && !tried {
            outcome.notes.push("minres and gmres do not need a definite matrix".into());
        }
        if self.system.method.info().positive_definite() && !hermitian {
            let name = &self.system.chosen.method.name;
            let what = if T::KIND.is_complex() { "Hermitian" } else { "symmetric" };
            outcome
                .notes
                .push(format!("the matrix is not {what}, which {name} needs; gmres and bicgstab do not"));
        }
        outcome.notes.extend(found);
        Ok(())
    }

    /// What the rank of a small matrix explains.
    fn contradiction(&self) -> Option<String> {
        let (a, b) = (&*self.system.matrix.a, &self.scaled.0);
        let Deficient { rank, consistent } = deficiency(a, b)?;
        let n = a.rows();
        Some(match consistent {
            false => format!(
                "to working precision the rank of A is {rank} of {n}, and no x solves the system; lsmr finds the x of least |b - A x|"
            ),
            true => format!(
                "to working precision the rank of A is {rank} of {n}, so that the solution is not unique; lsmr finds the one \
                 of least norm"
            ),
        })
    }
}

/// Whether a matrix equals its conjugate transpose.
fn is_hermitian<T: Scalar>(a: &Csr<T>) -> bool {
    a.entries().all(|(i, j, v)| a.get(j, i).unwrap_or(T::zero()) == v.conj())
}
