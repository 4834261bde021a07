//! New values on the same pattern, changing the format if necessary.
use crate::factor::{factor_of, lost, rounded, rounds, times, unless_lost};
use crate::prepared::{Parts, sentences};
use crate::{Chosen, choose_multigrid, choose_preconditioner};
use lacuna_engine::{Backend, Error, Format, LinOp, Result, Scalar};
use lacuna_formats::{Csr, FORMATS, Pair, Structure, choose_lasting_format, convert};
use lacuna_solvers::{Multigrid, Placed, Solver, preconditioner};
use std::sync::Arc;

impl<T: Scalar> Parts<T> {
    /// [`Error::Structure`] if new values were not taken by all parts.
    pub(crate) fn check_values(&self) -> Result<()> {
        match &self.refused {
            None => Ok(()),
            Some(why) => Err(Error::Structure {
                operation: "solve".into(),
                message: format!("the last new values were refused; give the matrix others first ({why})"),
            }),
        }
    }

    /// Gives the matrix new values on the host. On an error nothing changes.
    pub(crate) fn set_values(&mut self, values: &[T]) -> Result<()> {
        Arc::make_mut(&mut self.given).set_values(values)
    }

    /// Puts the values of the matrix on the device, and updates the preconditioner: see [`crate::Prepared::update_values`].
    pub(crate) fn update<B: Backend>(&mut self, dev: &mut B) -> Result<()> {
        if rounds(&self.format.name) {
            (self.given, self.rounding) = rounded(&self.given)?;
        }
        let factor = factor_of(&self.given, self.definite, self.narrow);
        let a = times(factor, self.order.arranged(&self.given)?)?;
        (self.factor, self.norm) = (factor, None);
        self.lost = lost::<T, T>(&self.given, factor.exponent);
        self.solver.set_factor(factor);
        self.overwrite(dev, &a).or_else(|error| self.place_again(dev, &a, error))?;
        let updated = self.placed.as_mut().map_or(Ok(()), |m| m.update(dev, &a));
        let updated = updated.or_else(|error| self.precondition_again(dev, &a, error));
        updated.map_err(|error| unless_lost(self.order.in_given_rows(error), &self.lost))?;
        self.choices.retain(|choice| !choice.starts_with("preconditioner "));
        self.choices.extend(sentences(&self.preconditioner, self.placed.as_ref()));
        Ok(())
    }

    /// Chooses another preconditioner if the current one rejects the values. On an error everything stays as
    /// it was.
    fn precondition_again<B: Backend>(&mut self, dev: &mut B, a: &Arc<Csr<T>>, refused: Error) -> Result<()> {
        if !(self.chooses_preconditioner && of_values(&refused)) {
            return Err(refused);
        }
        let (s, before) = (Structure::of(&**a), self.preconditioner.name.clone());
        let on_host = dev.device().memory.is_none();
        let multigrid = self
            .definite
            .then(|| choose_multigrid(a, &s, Multigrid::grid(a), on_host))
            .flatten()
            .filter(|m| m.name != before);
        let hermitian = self.algorithm.info().hermitian();
        let mut after = multigrid.unwrap_or_else(|| choose_preconditioner(a, &s, hermitian));
        after.why += &format!("; {before} rejects the new values");
        let kind = preconditioner(&after.name)?;
        let (mark, kept) = (dev.mark(), self.placed.take());
        let placed = kind.map(|kind| Placed::new(dev, kind, a, self.pair.a)).transpose();
        let recorded = placed.and_then(|placed| {
            self.placed = placed;
            self.record(dev, self.pair)
        });
        if let Err(error) = recorded {
            dev.release(mark);
            self.placed = kept;
            return Err(error);
        }
        self.preconditioner = after;
        Ok(())
    }

    /// Overwrites the values on the device, in the same layout.
    fn overwrite<B: Backend>(&self, dev: &mut B, a: &Arc<Csr<T>>) -> Result<()> {
        let Pair { a: stored, adjoint } = self.pair;
        dev.set_matrix(stored, convert(a, &self.format.name)?)?;
        if !self.adjoint {
            return Ok(());
        }
        let turned = Arc::new(a.adjoint());
        match adjoint == stored {
            false => dev.set_matrix(adjoint, convert(&turned, &self.format.name)?),
            true if turned == *a => Ok(()),
            true => Err(Error::Structure {
                operation: "new values of a matrix".into(),
                message: "the matrix is no longer Hermitian".into(),
            }),
        }
    }

    /// Puts the matrix on the device again, in a format for any values, if the values did not fit; then
    /// records the solve again. On an error everything stays as it was.
    fn place_again<B: Backend>(&mut self, dev: &mut B, a: &Arc<Csr<T>>, refused: Error) -> Result<()> {
        let by_values = FORMATS.iter().any(|format| format.name == self.format.name && format.by_values);
        let by_adjoint = self.adjoint && self.pair.adjoint == self.pair.a && a.adjoint() != **a;
        if !of_values(&refused) || !(by_values || by_adjoint) {
            return Err(refused);
        }
        let (name, why) = match by_values {
            true => {
                choose_lasting_format(a, &Structure::of(&**a), dev.formats(a.rows(), Format::bytes(&**a)))
            }
            false => (&*self.format.name, self.format.why.clone()),
        };
        let why = match by_values {
            true => format!("{why}; {} cannot store the new values", self.format.name),
            false => why,
        };
        let after = Chosen::new(name, why);
        let mark = dev.mark();
        let placed = self.record_over(dev, a, &after.name);
        if placed.is_err() {
            dev.release(mark);
        }
        placed?;
        self.format = after;
        Ok(())
    }

    /// Places the matrix, and records the solve with it.
    fn record_over<B: Backend>(&mut self, dev: &mut B, a: &Arc<Csr<T>>, format: &str) -> Result<()> {
        let pair = if self.adjoint {
            Pair::new(dev, a, format)?
        } else {
            let stored = dev.matrix(convert(a, format)?)?;
            Pair { a: stored, adjoint: stored }
        };
        let before = self.pair.a;
        if let Some(placed) = &mut self.placed {
            placed.set_matrix(pair.a);
        }
        let recorded = self.record(dev, pair);
        if let (Err(_), Some(placed)) = (&recorded, &mut self.placed) {
            placed.set_matrix(before);
        }
        recorded
    }

    /// Records the solve with a matrix and its preconditioner.
    fn record<B: Backend>(&mut self, dev: &mut B, pair: Pair<T>) -> Result<()> {
        let m = self.placed.as_ref().map(|m| m as &dyn LinOp<T>);
        let operator: &dyn LinOp<T> = if self.adjoint { &pair } else { &pair.a };
        let mut solver = Solver::new(dev, operator, m, &*self.algorithm, self.stop)?;
        solver.set_factor(self.factor);
        solver.set_narrow(self.narrow);
        (self.solver, self.pair, self.columns) = (solver, pair, None);
        Ok(())
    }
}

/// Whether an error is about unsuitable values, as opposed to a failure.
fn of_values(error: &Error) -> bool {
    matches!(error, Error::Structure { .. } | Error::Unsupported { .. } | Error::Entry { .. })
}
