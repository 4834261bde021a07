//! New values on the same pattern, changing the format or the preconditioner if necessary.
use super::analysis::Made;
use super::factor::{rounds, unless_lost};
use super::place::place;
use super::plan::{ASKED_FOR, Asked, When, plan};
use super::resident::record;
use super::{AutoSolver, Chosen, Facts, is_refusal, preconditioner_sentences};
use crate::{Placed, Setup, preconditioner};
use lacuna_engine::{Error, Format, Result, Scalar};
use lacuna_formats::{Csr, FORMATS, Pair, Structure, choose_lasting_format, convert};
use std::sync::Arc;

impl<T: Scalar> AutoSolver<T> {
    /// Gives the matrix new values, in the order of the values of the matrix given, and updates what depends on them. They are
    /// copied once, into the order and the scale of the device, and once more if its format is not `csr`.
    ///
    /// # Errors
    /// [`Error::Length`] unless there are as many values as entries, [`Error::Entry`] for one that is not finite (both
    /// leave the system unchanged); errors of the preconditioner; device failures. After the last two every solve
    /// fails until the system is given other values.
    pub fn update_values(&mut self, values: &[T]) -> Result<()> {
        self.set_values(values)?;
        let before = self.chosen.format.clone();
        let updated = self.update();
        self.refused = updated.as_ref().err().map(Error::to_string);
        self.report_format(&before);
        self.report_preconditioner();
        updated
    }

    /// Gives the matrix on the host new values. On an error nothing changes.
    pub(super) fn set_values(&mut self, values: &[T]) -> Result<()> {
        let definite = self.method.info().positive_definite();
        self.counted = None;
        self.matrix.set_values(values, definite, self.resident.narrow, rounds(&self.chosen.format.name))
    }

    /// Puts the values of the matrix on the device, and updates the preconditioner.
    pub(super) fn update(&mut self) -> Result<()> {
        let a = self.matrix.a.clone();
        self.resident.solver.set_factor(self.matrix.factor);
        self.overwrite(&a).or_else(|error| self.place_again(&a, error))?;
        let updated = self.resident.preconditioner.as_mut().map_or(Ok(()), |m| m.update(&a, Setup::new()));
        self.behind = updated.is_ok();
        let updated = updated.or_else(|error| self.precondition_again(&a, error));
        updated
            .map_err(|error| unless_lost(self.matrix.order.in_given_rows(error), self.matrix.lost.as_ref()))
    }

    fn report_format(&mut self, before: &Chosen) {
        let (before, after) = (before.sentence("format"), self.chosen.format.sentence("format"));
        self.chosen
            .sentences
            .iter_mut()
            .filter(|choice| **choice == before)
            .for_each(|choice| choice.clone_from(&after));
    }

    pub(super) fn report_preconditioner(&mut self) {
        let lines =
            preconditioner_sentences(&self.chosen.preconditioner, self.resident.preconditioner.as_ref());
        let is_concerned = |choice: &String| choice.starts_with("preconditioner ");
        if !self.chosen.sentences.iter().filter(|choice| is_concerned(choice)).eq(&lines) {
            self.chosen.sentences.retain(|choice| !is_concerned(choice));
            self.chosen.sentences.extend(lines);
        }
    }

    /// Sets up the preconditioner from nothing if what it kept of its former set-up does not suit the values, and chooses another one
    /// if it rejects them. On an error everything stays as it was.
    fn precondition_again(&mut self, a: &Arc<Csr<T>>, mut refused: Error) -> Result<()> {
        if !is_refusal(&refused) {
            return Err(refused);
        }
        match self.set_up_anew() {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => refused = error,
        }
        if !is_refusal(&refused) {
            return Err(refused);
        }
        let before = self.chosen.preconditioner.name.clone();
        let mut last = refused;
        for mut chosen in self.instead(a)?.into_iter().filter(|chosen| chosen.name != before) {
            match self.precondition(a, preconditioner(&chosen.name)?) {
                Ok(()) => {
                    chosen.why += &format!("; {before} rejects the new values");
                    self.chosen.preconditioner = chosen;
                    return Ok(());
                }
                Err(error) if is_refusal(&error) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// What may take the place of a preconditioner that rejects new values: what was asked for, if that had given way before, or
    /// what may be chosen.
    fn instead(&self, a: &Arc<Csr<T>>) -> Result<Vec<Chosen>> {
        if !self.open_preconditioner {
            let asked = self.asked_preconditioner.as_deref();
            return Ok(asked.map(|name| Chosen::new(name, ASKED_FOR)).into_iter().collect());
        }
        let mut facts = Facts::of_scaled(a.clone(), self.device.info().memory.is_none());
        let asked = Asked {
            method: Some((&*self.chosen.method.name, &*self.method)),
            preconditioner: None,
            narrow: false,
            remembered: None,
            options: &self.options,
        };
        let plan = plan(&mut facts, &asked)?;
        let others = [&plan.first].into_iter().chain(plan.others(When::Refused));
        Ok(others.map(|candidate| candidate.chosen().1).collect())
    }

    /// Whether the preconditioner still has what it chose by former values: entries, levels.
    pub(super) fn is_behind(&self) -> bool {
        self.behind && self.resident.preconditioner.as_ref().is_some_and(Placed::keeps_choices)
    }

    /// Sets up the preconditioner from nothing and records the solve with it; whether there is one.
    pub(super) fn set_up_anew(&mut self) -> Result<bool> {
        let Some(m) = &mut self.resident.preconditioner else { return Ok(false) };
        m.set_up_anew(&self.matrix.a, Setup::new())?;
        self.record(self.resident.pair.clone())?;
        self.behind = false;
        Ok(true)
    }

    /// Puts another preconditioner in place of the current one, and records the solve with it.
    fn precondition(&mut self, a: &Arc<Csr<T>>, made: Made<T>) -> Result<()> {
        let placed = place(&self.device, made, a, *self.resident.pair.a)?;
        let former = std::mem::replace(&mut self.resident.preconditioner, placed);
        let recorded = self.record(self.resident.pair.clone());
        if recorded.is_err() {
            self.resident.preconditioner = former;
        }
        recorded
    }

    /// Overwrites the values on the device, in the same layout.
    fn overwrite(&self, a: &Arc<Csr<T>>) -> Result<()> {
        let (stored, adjoint) = (*self.resident.pair.a, *self.resident.pair.adjoint);
        self.device.set_matrix(stored, convert(a, &self.chosen.format.name)?)?;
        if !self.resident.adjoint {
            return Ok(());
        }
        let turned = Arc::new(a.adjoint());
        match adjoint == stored {
            false => self.device.set_matrix(adjoint, convert(&turned, &self.chosen.format.name)?),
            true if turned == *a => Ok(()),
            true => Err(Error::Structure {
                operation: "new values of a matrix".into(),
                message: "the matrix is no longer Hermitian".into(),
            }),
        }
    }

    /// Puts the matrix on the device again, in a format for any values, if the values did not fit; then
    /// records the solve again. On an error everything stays as it was.
    fn place_again(&mut self, a: &Arc<Csr<T>>, refused: Error) -> Result<()> {
        let by_values =
            FORMATS.iter().any(|format| format.name == self.chosen.format.name && format.by_values);
        let Pair { a: stored, adjoint } = &self.resident.pair;
        let by_adjoint = self.resident.adjoint && **adjoint == **stored && a.adjoint() != **a;
        if !is_refusal(&refused) || !(by_values || by_adjoint) {
            return Err(refused);
        }
        let (name, why) = match by_values {
            true => choose_lasting_format(
                a,
                &Structure::of(&**a),
                self.device.formats(a.rows(), Format::bytes(&**a))?,
            ),
            false => (&*self.chosen.format.name, self.chosen.format.why.clone()),
        };
        let why = match by_values {
            true => format!("{why}; {} cannot store the new values", self.chosen.format.name),
            false => why,
        };
        let after = Chosen::new(name, why);
        self.record_over(a, &after.name)?;
        self.chosen.format = after;
        Ok(())
    }

    /// Places the matrix, and records the solve with it.
    fn record_over(&mut self, a: &Arc<Csr<T>>, format: &str) -> Result<()> {
        let pair = if self.resident.adjoint {
            Pair::new(&self.device, a, format)?
        } else {
            let stored = self.device.matrix(convert(a, format)?)?;
            Pair { a: stored.clone(), adjoint: stored }
        };
        let before = *self.resident.pair.a;
        let set_matrix = |placed: &mut Option<Placed<T>>, a| placed.iter_mut().for_each(|m| m.set_matrix(a));
        set_matrix(&mut self.resident.preconditioner, *pair.a);
        let recorded = self.record(pair);
        if recorded.is_err() {
            set_matrix(&mut self.resident.preconditioner, before);
        }
        recorded
    }

    /// Records the solve with a matrix and the preconditioner.
    fn record(&mut self, pair: Pair<T>) -> Result<()> {
        let resident = &mut self.resident;
        let solver = record(
            &self.device,
            (&pair, resident.adjoint),
            resident.preconditioner.as_ref(),
            (&*self.method, self.stop, self.observer.as_ref()),
            (&self.matrix, resident.narrow),
        )?;
        (resident.solver, resident.pair, resident.columns) = (solver, pair, None);
        Ok(())
    }
}
