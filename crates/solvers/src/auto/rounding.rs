//! Refines what complete factors leave of a residual, once that is rounding.
use super::confirm::Measured;
use super::continuation::{Continuation, Watching, reborrow};
use crate::Factor;
use crate::accuracy::residuals;
use lacuna_engine::{Reason, Result, Scalar};

/// A residual that is rounding is near a tolerance within this factor.
const NEAR: f64 = 10.0;
/// The most steps, and the tolerance of their corrections.
const CORRECTIONS: usize = 3;
const CORRECTED: f64 = 0.01;

impl<T: Scalar> Continuation<'_, T> {
    /// Refines a solution by complete factors whose residual is rounding and near the tolerance, with residuals in twice the
    /// precision: then only the digits of `x` limit it (Moler 1967, doi:10.1145/321386.321394).
    pub(super) fn refined(
        &mut self,
        x: &mut [T],
        mut measured: Measured,
        mut watch: Watching<'_>,
    ) -> Result<Measured> {
        let (goal, first) = (self.goal(measured), measured.residual);
        let [of_b, _] = self.system.resident.solver.factors(self.b);
        let back = Factor { exponent: -of_b.exponent, ..of_b };
        for _ in 0..CORRECTIONS {
            let left = self.system.limit().saturating_sub(self.outcome.iterations);
            if self.meets(measured) || measured.residual > NEAR * goal || left == 0 {
                break;
            }
            let (b, of_x) = &self.scaled;
            let residual = back.times(&residuals(&self.system.matrix.a, b, &of_x.times(x)));
            let (before, mut correction) = (x.to_vec(), vec![T::zero(); x.len()]);
            let solver = &mut self.system.resident.solver;
            solver.set_stop(self.system.stop.rtol(CORRECTED).atol(0.0).max_iters(left));
            let solved = solver.solve_watched(&residual, &mut correction, reborrow(&mut watch))?;
            let outcome = &mut *self.outcome;
            if (outcome.history_stride, solved.history_stride) == (1, 1) {
                outcome.history.extend(solved.history.iter().skip(1).map(|left| left * measured.residual));
            }
            outcome.iterations += solved.iterations;
            self.iterating += solved.time.saturating_sub(solved.transfers);
            if solved.reason == Reason::Cancelled {
                outcome.reason = solved.reason;
                break;
            }
            x.iter_mut().zip(&correction).for_each(|(x, d)| *x += *d);
            measured = self.better(x, &before, measured);
        }
        if measured.residual < first {
            self.outcome.notes.push(format!(
                "complete factors left a residual of {first:.1e} |b|, which refinement with residuals in twice the precision reduced"
            ));
        }
        Ok(measured)
    }
}
