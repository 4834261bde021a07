//! Estimates the cost of candidates, and sets them up when they are reached.
use super::AutoSolver;
use super::candidates::{Candidate, Cost};
use crate::factor::{times, unless_lost};
use crate::prepared::Parts;
use lacuna_engine::{Backend, Error, LinOp, Result, Scalar};
use lacuna_solvers::{Placed, Preconditioner, Solver, Stop, method, name_of, preconditioner};
use std::time::Instant;

/// Whether an error says that a preconditioner does not suit the matrix.
pub(crate) fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Entry { .. } | Error::Unsupported { .. } | Error::Structure { .. })
}

impl<T: Scalar> AutoSolver<'_, T> {
    /// Estimates what the next candidate costs, if that is not known, and puts it in its place.
    pub(super) fn estimate(&mut self) -> Result<()> {
        let start = Instant::now();
        let estimated = self.estimate_next();
        self.setting_up += start.elapsed();
        estimated
    }

    fn estimate_next(&mut self) -> Result<()> {
        let unknown = |candidate: &mut Candidate| matches!(candidate.cost, Cost::Unknown(_));
        let Some(candidate) = self.candidates.list.pop_front_if(unknown) else { return Ok(()) };
        let Some(mut kind) = candidate.preconditioner.map(preconditioner::<T>).transpose()?.flatten() else {
            return Ok(());
        };
        let Parts { factor, order, given, .. } = &self.parts;
        let a = times(*factor, order.arranged(given)?)?;
        match kind.expected_setup(&a) {
            Ok(seconds) => {
                self.candidates.insert(candidate, seconds.unwrap_or(0.0));
                self.estimated = Some(kind);
            }
            Err(refused) => self.refused(&candidate, refused)?,
        }
        Ok(())
    }

    /// Notes that a candidate is left out. A matrix that a preconditioner rejects is no failure of the solve.
    fn refused(&mut self, candidate: &Candidate, error: Error) -> Result<()> {
        if !is_refusal(&error) {
            return Err(error);
        }
        let refused = unless_lost(self.parts.order.in_given_rows(error), &self.parts.lost);
        self.outcome.notes.push(format!("{candidate} is not available: {refused}"));
        Ok(())
    }

    /// Sets up the method of a candidate with its preconditioner. Returns whether the preconditioner was
    /// available.
    pub(super) fn set_up<B: Backend>(
        &mut self,
        dev: &mut B,
        candidate: &Candidate,
        stop: Stop,
    ) -> Result<bool> {
        let (start, mark) = (Instant::now(), dev.mark());
        let estimated = self
            .estimated
            .take_if(|kind| candidate.preconditioner.is_some_and(|name| name_of(name) == kind.name()));
        let prepared = Self::prepared(self.parts, dev, candidate, estimated, stop);
        let took = start.elapsed();
        self.setting_up += took;
        match prepared {
            Ok(solver) => {
                let seconds = took.as_secs_f64();
                let note =
                    candidate.preconditioner.map(|_| format!("{candidate}: set up in {seconds:.2e} s"));
                self.outcome.notes.extend(note);
                self.solver = Some(solver);
                Ok(true)
            }
            Err(error) => {
                dev.release(mark);
                self.refused(candidate, error)?;
                Ok(false)
            }
        }
    }

    fn prepared<B: Backend>(
        parts: &Parts<T>,
        dev: &mut B,
        candidate: &Candidate,
        estimated: Option<Box<dyn Preconditioner<T>>>,
        stop: Stop,
    ) -> Result<Solver<T>> {
        let Parts { pair, adjoint, placed, factor, narrow, options, order, given, .. } = parts;
        let method = method(candidate.method, options)?;
        let named = match (estimated, candidate.preconditioner) {
            (None, Some(name)) => preconditioner(name)?,
            (estimated, _) => estimated,
        };
        let own = named.map(|kind| {
            let a = times(*factor, order.arranged(given)?)?;
            Placed::new(dev, kind, &a, pair.a)
        });
        let own = own.transpose()?;
        let m = own.as_ref().or(placed.as_ref()).map(|m| m as &dyn LinOp<T>);
        let operator: &dyn LinOp<T> = if *adjoint { pair } else { &pair.a };
        let mut solver = Solver::new(dev, operator, m, &*method, stop)?;
        solver.set_factor(*factor);
        solver.set_narrow(*narrow);
        Ok(solver)
    }
}
