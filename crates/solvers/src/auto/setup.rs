//! Estimates the cost of candidates, and sets them up when they are reached.
use super::continuation::Continuation;
use super::factor::unless_lost;
use super::pace::Pace;
use super::plan::Candidate;
use super::queue::Queue;
use super::resident::record;
use super::{AutoSolver, Chosen};
use crate::{
    Method, Placed, Preconditioner, Setup, SetupWatch, Solver, Stop, method, name_of, preconditioner,
};
use lacuna_engine::{Error, Result, Scalar};
use std::time::Instant;

/// Seconds in which a candidate is wanted at least, and how many times as long it takes where that could not be counted.
const LEAST: f64 = 2.0;
const LONGER: f64 = 4.0;

/// Whether an error says that a preconditioner does not suit the matrix.
pub(super) fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Entry { .. } | Error::Unsupported { .. } | Error::Structure { .. })
}

impl<T: Scalar> Continuation<'_, T> {
    /// Estimates what the next candidate costs, if that is not known, and puts it in its place.
    pub(super) fn estimate(&mut self) -> Result<()> {
        let start = Instant::now();
        let estimated = self.estimate_next();
        self.setting_up += start.elapsed();
        estimated
    }

    fn estimate_next(&mut self) -> Result<()> {
        let Some(candidate) = self.queue.take_uncounted() else { return Ok(()) };
        let named = candidate.preconditioner.as_ref().map(|chosen| preconditioner::<T>(&chosen.name));
        let Some(mut kind) = named.transpose()?.flatten() else { return Ok(()) };
        // Counting may take a part of the time of the iterations so far: by their number and not by a clock, since all ranks must
        // decide alike.
        let a = &self.system.matrix.a;
        let Pace { preparing, iteration } = Pace::of("cg", a, true);
        let within = (preparing + self.outcome.iterations as f64 * iteration).max(LEAST);
        match kind.expected_setup(a, within) {
            Ok(seconds) => {
                self.queue.insert(candidate, seconds.unwrap_or(LONGER * within));
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
        let matrix = &self.system.matrix;
        let refused = unless_lost(matrix.order.in_given_rows(error), matrix.lost.as_ref());
        let way = self.way(Some(candidate));
        self.refused.push(way.clone());
        let counted =
            if matches!(refused, Error::Entry { .. }) { " (rows and columns count from 0)" } else { "" };
        self.outcome.notes.push(format!("{way} is not available: {refused}{counted}"));
        Ok(())
    }

    /// Sets up the method of a candidate with its preconditioner, watched. Returns whether the preconditioner was
    /// available.
    pub(super) fn set_up(
        &mut self,
        candidate: &Candidate,
        stop: Stop,
        watch: Option<SetupWatch<'_>>,
    ) -> Result<bool> {
        let start = Instant::now();
        let estimated = self.estimated.take_if(|kind| {
            candidate.preconditioner.as_ref().is_some_and(|c| name_of(&c.name) == kind.name())
        });
        let prepared = prepared(self.system, candidate, estimated, stop, watch);
        let took = start.elapsed();
        self.setting_up += took;
        match prepared {
            Ok(mut ready) => {
                ready.solver.set_norm(self.system.matrix.norm());
                let seconds = took.as_secs_f64();
                let note = candidate
                    .preconditioner
                    .as_ref()
                    .map(|_| format!("{}: set up in {seconds:.2e} s", self.way(Some(candidate))));
                self.outcome.notes.extend(note);
                self.ready = Some(ready);
                Ok(true)
            }
            Err(error) => {
                self.refused(candidate, error)?;
                Ok(false)
            }
        }
    }
}

/// A candidate that is set up.
pub(super) struct Ready<T: Scalar> {
    method: Box<dyn Method<T>>,
    /// Its preconditioner, unless it has that of the system.
    placed: Option<Placed<T>>,
    pub(super) solver: Solver<T>,
}

/// Records the method of a candidate with its preconditioner, or with that of the system.
fn prepared<T: Scalar>(
    system: &AutoSolver<T>,
    candidate: &Candidate,
    estimated: Option<Box<dyn Preconditioner<T>>>,
    stop: Stop,
    watch: Option<SetupWatch<'_>>,
) -> Result<Ready<T>> {
    let AutoSolver { device, matrix, resident, options, observer, .. } = system;
    let method = method(&candidate.method.name, options)?;
    let named = match (estimated, &candidate.preconditioner) {
        (None, Some(chosen)) => preconditioner(&chosen.name)?,
        (estimated, _) => estimated,
    };
    let setup = match watch {
        Some(watch) => Setup::new().watched(watch),
        None => Setup::new(),
    };
    let placed =
        named.map(|kind| Placed::new(device, kind, &matrix.a, *resident.pair.a, setup)).transpose()?;
    let m = placed.as_ref().or(resident.preconditioner.as_ref());
    let solver = record(
        device,
        (&resident.pair, resident.adjoint),
        m,
        (&*method, stop, observer.as_ref()),
        (matrix, resident.narrow),
    )?;
    Ok(Ready { method, placed, solver })
}

impl<T: Scalar> AutoSolver<T> {
    /// Makes a candidate that solved the system the way to begin with, in place of the one that fell short.
    pub(super) fn adopt(&mut self, candidate: Candidate, ready: Ready<T>, queue: Queue) {
        let before = self.chosen.way();
        let why = |chosen: &Chosen| format!("{}; {before} fell short before", chosen.why);
        let Candidate { method, preconditioner, weight, .. } = candidate;
        self.chosen.method = Chosen::new(&method.name, why(&method));
        if let Some(chosen) = preconditioner {
            self.chosen.preconditioner = Chosen::new(&chosen.name, why(&chosen));
            self.resident.preconditioner = ready.placed;
        }
        (self.method, self.resident.solver, self.resident.columns) = (ready.method, ready.solver, None);
        (self.queue, self.weight, self.usual) = (queue, weight, 0);
        if let Some(line) = self.chosen.sentences.iter_mut().find(|line| line.starts_with("method ")) {
            *line = self.chosen.method.sentence("method");
        }
        self.report_preconditioner();
    }
}
