//! Prepares the rungs of a ladder when they are reached.
use crate::climb::Climb;
use crate::factor::times;
use crate::ladder::{Cost, Rung};
use crate::prepared::Parts;
use lacuna_engine::{Backend, Error, LinOp, Result, Scalar};
use lacuna_solvers::{Placed, Preconditioner, Solver, Stop, method, name_of, preconditioner};
use std::time::Instant;

/// Whether an error says that a preconditioner does not suit the matrix.
pub(crate) fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Entry { .. } | Error::Unsupported { .. } | Error::Structure { .. })
}

impl<T: Scalar> Climb<'_, T> {
    /// Counts what the next rung costs, if that is not known, and puts it in its place.
    pub(crate) fn count(&mut self) -> Result<()> {
        let unknown = |rung: &mut Rung| matches!(rung.cost, Cost::Uncounted(_));
        let Some(rung) = self.ladder.rungs.pop_front_if(unknown) else { return Ok(()) };
        let Some(mut kind) = rung.preconditioner.map(preconditioner::<T>).transpose()?.flatten() else {
            return Ok(());
        };
        let Parts { factor, order, given, .. } = &self.parts;
        let a = times(*factor, order.arranged(given)?)?;
        match kind.expected_setup(&a) {
            Ok(seconds) => {
                self.ladder.insert(rung, seconds.unwrap_or(0.0));
                self.counted = Some(kind);
            }
            Err(refused) => self.refused(&rung, refused)?,
        }
        Ok(())
    }

    /// Notes that a rung is left out. A matrix that a preconditioner rejects is no failure of the solve.
    fn refused(&mut self, rung: &Rung, error: Error) -> Result<()> {
        if !is_refusal(&error) {
            return Err(error);
        }
        let refused = self.parts.order.told(error);
        self.outcome.notes.push(format!("{rung} is not to be had: {refused}"));
        Ok(())
    }

    /// Prepares the method of a rung with its preconditioner. Returns whether the preconditioner was
    /// available.
    pub(crate) fn call<B: Backend>(&mut self, dev: &mut B, rung: &Rung, stop: Stop) -> Result<bool> {
        let (start, mark) = (Instant::now(), dev.mark());
        let counted =
            self.counted.take_if(|kind| rung.preconditioner.is_some_and(|name| name_of(name) == kind.name()));
        match Self::prepared(self.parts, dev, rung, counted, stop) {
            Ok(solver) => {
                let took = start.elapsed().as_secs_f64();
                let note = rung.preconditioner.map(|_| format!("{rung}: set up in {took:.2e} s"));
                self.outcome.notes.extend(note);
                self.called = Some(solver);
                Ok(true)
            }
            Err(error) => {
                dev.release(mark);
                self.refused(rung, error)?;
                Ok(false)
            }
        }
    }

    fn prepared<B: Backend>(
        parts: &Parts<T>,
        dev: &mut B,
        rung: &Rung,
        counted: Option<Box<dyn Preconditioner<T>>>,
        stop: Stop,
    ) -> Result<Solver<T>> {
        let Parts { pair, adjoint, placed, factor, options, order, given, .. } = parts;
        let method = method(rung.method, options)?;
        let named = match (counted, rung.preconditioner) {
            (None, Some(name)) => preconditioner(name)?,
            (counted, _) => counted,
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
        Ok(solver)
    }
}
