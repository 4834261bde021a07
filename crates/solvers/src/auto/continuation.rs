//! Solves with the method chosen first, checks the result on the host, and continues with other methods if it
//! falls short.
use super::AutoSolver;
use super::confirm::{Measured, misfit, stands, tolerance};
use super::is_refusal;
use super::plan::{Candidate, DIRECT};
use super::queue::Queue;
use super::setup::Ready;
use super::switch::Current;
use crate::explain::contradicts;
use crate::{
    Factor, Needs, Outcome, Preconditioner, SetupProgress, SetupWatch, Stop, Watch, Way, largest, max_norm,
    name_of, residual, vector_norm,
};
use lacuna_engine::{Error, Reason, Result, Scalar};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// A limit of at least this many iterations is divided among several methods whatever the size of the system.
const MANY: u64 = 1000;
/// The least share of a method if fewer are left, unless the system has more unknowns than that: in exact arithmetic a Krylov
/// method needs at most as many iterations.
const LEAST: u64 = 50;

/// A method may take its former iterations and one part in so many more before it is asked to give way.
const MARGIN: u64 = 4;

/// `A x = b` comes nearer if a continued solve leaves less than this part of its misfit.
const HALF: f64 = 0.5;
/// The tolerance of a continued solve, as a part of what the misfit asks for.
const TIGHTER: f64 = 0.1;

/// Called from time to time while a solve runs; `Break` cancels it.
pub type Watching<'a> = Option<&'a mut dyn FnMut(Watch) -> ControlFlow<()>>;

/// Solves for `b` from `x`, both in the row order of the device. Time spent on host checks counts as
/// transfer.
pub(super) fn solve<T: Scalar>(
    system: &mut AutoSolver<T>,
    outcome: &mut Outcome,
    (b, x): (&[T], &mut [T]),
    watch: Watching<'_>,
) -> Result<Option<(String, String)>> {
    let solved = within_limits(system, outcome, (b, x), watch);
    // What is solved on the device later has the limits of the system, not those of an attempt.
    system.resident.solver.set_stop(system.stop);
    solved
}

/// [`solve`], which leaves the limits of an attempt behind.
fn within_limits<T: Scalar>(
    system: &mut AutoSolver<T>,
    outcome: &mut Outcome,
    (b, x): (&[T], &mut [T]),
    mut watch: Watching<'_>,
) -> Result<Option<(String, String)>> {
    let start = Instant::now();
    let guess = if largest(x) == 0.0 { Vec::new() } else { x.to_vec() };
    if system.method.least_squares() {
        least_squares(system, outcome, (b, x), &guess, watch)?;
        return Ok(None);
    }
    let stop = first_stop(system);
    if system.method.reads_norm() {
        let norm = system.matrix.norm();
        system.solver().set_norm(norm);
    }
    let solver = system.solver();
    solver.set_stop(stop);
    copy(solver.solve_watched(b, x, reborrow(&mut watch))?, outcome);
    let mut iterating = outcome.time.saturating_sub(outcome.transfers);
    if system.is_behind() && broke(outcome) {
        iterating += again(system, outcome, (b, x), &guess, reborrow(&mut watch))?;
    }
    let mut solved_by = None;
    if system.strict {
        verify(system, outcome, b, x);
    } else if !stands(system, outcome, b, x) {
        let mut continuation = Continuation::new(system, outcome, b, iterating);
        let continued = continuation.run(x, &guess, watch);
        iterating = continuation.iterating;
        let setting_up = continuation.setting_up;
        drop(continuation);
        solved_by = continued?;
        if solved_by.is_none() && outcome.converged() {
            system.usual = outcome.iterations;
        }
        outcome.setup = setting_up;
    }
    outcome.time = start.elapsed();
    outcome.transfers = outcome.time.saturating_sub(iterating + outcome.setup);
    Ok(solved_by)
}

/// Checks a result that counts as converged in twice the precision, if rounding could hide a larger residual. One that falls
/// short is not explained.
fn verify<T: Scalar>(system: &mut AutoSolver<T>, outcome: &mut Outcome, b: &[T], x: &[T]) {
    if !outcome.converged() || stands(system, outcome, b, x) {
        return;
    }
    let mut continuation = Continuation::new(system, outcome, b, Duration::ZERO);
    let measured = continuation.measure(x);
    continuation.report(measured);
    continuation.is_final(measured);
}

/// Whether a solve ended before its limit without a solution, by itself.
fn broke(outcome: &Outcome) -> bool {
    !matches!(outcome.reason, Reason::Converged | Reason::Limit | Reason::Cancelled | Reason::Custom(_))
}

/// Solves once more from the guess, with a preconditioner set up from nothing for the values it has. Returns the time of the
/// iterations.
fn again<T: Scalar>(
    system: &mut AutoSolver<T>,
    outcome: &mut Outcome,
    (b, x): (&[T], &mut [T]),
    guess: &[T],
    watch: Watching<'_>,
) -> Result<Duration> {
    let left = system.limit().saturating_sub(outcome.iterations);
    match if left == 0 { Ok(false) } else { system.set_up_anew() } {
        Ok(true) => {}
        Ok(false) => return Ok(Duration::ZERO),
        Err(error) if is_refusal(&error) => return Ok(Duration::ZERO), // what it has stays
        Err(error) => return Err(error),
    }
    let before = outcome.clone();
    restore(x, guess);
    let (stop, norm) = (first_stop(system), system.matrix.norm());
    let solver = system.solver();
    solver.set_norm(norm);
    solver.set_stop(stop.max_iters(stop.max_iters.unwrap_or(left).min(left)));
    copy(solver.solve_watched(b, x, watch)?, outcome);
    if (before.history_stride, outcome.history_stride) == (1, 1) {
        let later = std::mem::take(&mut outcome.history).into_iter().skip(1);
        let first = before.history.into_iter().take(before.iterations as usize + 1);
        outcome.history = first.chain(later).collect();
    }
    outcome.iterations += before.iterations;
    outcome.restarts += before.restarts + 1;
    let (first, name) = (before.reason, &system.chosen.preconditioner.name);
    outcome.notes.push(format!(
        "{first}: {name} was set up from scratch, as it was still arranged for earlier values"
    ));
    Ok(outcome.time.saturating_sub(outcome.transfers))
}

/// Solves a least-squares problem, `min ‖b − A x‖`, with the method that is prepared. One that needs a solution of `A x = b`
/// continues with a tighter tolerance until that holds, or no longer comes nearer.
fn least_squares<T: Scalar>(
    system: &mut AutoSolver<T>,
    outcome: &mut Outcome,
    (b, x): (&[T], &mut [T]),
    guess: &[T],
    mut watch: Watching<'_>,
) -> Result<()> {
    let start = Instant::now();
    let needs_range = system.method.info().needs == Needs::Range;
    let (mut stop, mut iterating, mut last) = (system.stop, Duration::ZERO, f64::INFINITY);
    let mut before = Outcome { iterations: 0, ..Outcome::default() };
    loop {
        system.resident.solver.set_stop(stop);
        copy(system.resident.solver.solve_watched(b, x, reborrow(&mut watch))?, outcome);
        iterating += outcome.time.saturating_sub(outcome.transfers);
        outcome.misfit = misfit(system, b, x);
        if before.iterations > 0 {
            let later = outcome.history.drain(..).skip(1).collect::<Vec<_>>();
            outcome.history = [std::mem::take(&mut before.history), later].concat();
            outcome.iterations += before.iterations;
            outcome.target = before.target;
        }
        let goal = tolerance(system, vector_norm(b));
        if !(needs_range && outcome.converged() && outcome.misfit > goal) {
            break;
        }
        if outcome.misfit > HALF * last || outcome.iterations >= system.limit() {
            outcome.reason = Reason::Stagnated;
            break;
        }
        last = outcome.misfit;
        let rtol = stop.rtol * TIGHTER * goal / outcome.misfit;
        stop = system.stop.rtol(rtol).atol(0.0).max_iters(system.limit() - outcome.iterations);
        before = outcome.clone();
    }
    if !outcome.converged() {
        // In twice the precision, as the device cannot tell a residual below the rounding of A x.
        let of_guess = if guess.is_empty() { 1.0 } else { misfit(system, b, guess) };
        if outcome.misfit.is_nan() || of_guess < outcome.misfit {
            restore(x, guess);
            outcome.misfit = of_guess;
            outcome.true_residual = outcome.history.first().copied().unwrap_or(f64::NAN);
        }
    }
    if needs_range && matches!(outcome.reason, Reason::Stagnated | Reason::Diverged | Reason::Breakdown(_)) {
        let (misfit, name) = (outcome.misfit, system.method.name());
        outcome.notes.push(format!(
            "`A x = b` holds only to {misfit:.1e} |b|: {name} needs a system that has a solution; `lsmr` and `lsqr` take others"
        ));
    }
    outcome.time = start.elapsed();
    outcome.transfers = outcome.time.saturating_sub(iterating);
    Ok(())
}

/// The stopping criteria of the method chosen first; its iterations are limited to leave some for the
/// candidates.
pub(super) fn first_stop<T: Scalar>(system: &AutoSolver<T>) -> Stop {
    let limit = system.limit();
    if system.strict {
        return system.stop.max_iters(limit);
    }
    let queue @ Queue { switches_early, interval, exhausted, fallback, .. } = &system.queue;
    let weight = system.weight;
    let shares = *switches_early && !queue.is_empty();
    let share = if shares { half(limit, system.matrix.a.rows()) } else { limit };
    let enough = if fallback.is_some() { *exhausted } else { u64::MAX };
    // A method that solved the system before is not interrupted before it has taken as many iterations again.
    let usual = system.usual.saturating_add(system.usual / MARGIN);
    let budget = queue.budget(weight).unwrap_or(u64::MAX).max(usual).min(enough);
    system.stop.max_iters(share.min(*interval).min(budget))
}

/// The share of a method in the iterations that are left, if others may follow.
pub(super) fn half(left: u64, unknowns: usize) -> u64 {
    let least = if left < MANY { LEAST.max(unknowns as u64) } else { 0 };
    left.div_ceil(2).max(least).min(left)
}

/// Makes an outcome describe `x` correctly if rounding could hide a larger residual, and explains an outcome
/// that falls short.
pub(super) fn settle<T: Scalar>(
    system: &mut AutoSolver<T>,
    outcome: &mut Outcome,
    b: &[T],
    x: &[T],
) -> Result<()> {
    if system.strict {
        verify(system, outcome, b, x);
        return Ok(());
    }
    if stands(system, outcome, b, x) {
        return Ok(());
    }
    let mut continuation = Continuation::new(system, outcome, b, Duration::ZERO);
    let measured = continuation.measure(x);
    continuation.report(measured);
    continuation.is_final(measured);
    continuation.conclude()
}

/// Puts the guess back (0 if it is empty).
fn restore<T: Scalar>(x: &mut [T], guess: &[T]) {
    match guess {
        [] => x.fill(T::zero()),
        guess => x.copy_from_slice(guess),
    }
}

pub(super) fn reborrow<'a>(watch: &'a mut Watching<'_>) -> Watching<'a> {
    match watch {
        Some(watch) => Some(&mut **watch),
        None => None,
    }
}

/// A solve that continues with other methods.
pub(super) struct Continuation<'a, T: Scalar> {
    pub(super) system: &'a mut AutoSolver<T>,
    pub(super) outcome: &'a mut Outcome,
    pub(super) b: &'a [T],
    /// `‖b‖`
    pub(super) norm: f64,
    /// `‖b‖_∞`
    pub(super) largest: f64,
    /// The right-hand side multiplied by its factor, and the factor of `x`.
    pub(super) scaled: (Vec<T>, Factor),
    /// Factor on the tolerance, reduced each time the device wrongly considers it met.
    pub(super) tightening: f64,
    /// Time of all iterations.
    pub(super) iterating: Duration,
    /// Time of the set-up of candidates, and of estimating it.
    pub(super) setting_up: Duration,
    /// The accuracy of the result.
    pub(super) measured: Measured,
    /// The candidates that are left.
    pub(super) queue: Queue,
    /// The preconditioner of the candidate whose cost was estimated last.
    pub(super) estimated: Option<Box<dyn Preconditioner<T>>>,
    /// Why the attempt ended whose `x` stands.
    standing: Reason,
    /// The ways whose preconditioner refused the matrix.
    pub(super) refused: Vec<Way>,
    /// The candidate in use, set up.
    pub(super) ready: Option<Ready<T>>,
}

impl<'a, T: Scalar> Continuation<'a, T> {
    fn new(system: &'a mut AutoSolver<T>, outcome: &'a mut Outcome, b: &'a [T], iterating: Duration) -> Self {
        let [of_b, of_x] = system.resident.solver.factors(b);
        let queue = system.queue.clone();
        let estimated = system.counted.take();
        Continuation {
            system,
            outcome,
            b,
            norm: vector_norm(b),
            largest: max_norm(b),
            scaled: (of_b.times(b), of_x),
            tightening: 1.0,
            iterating,
            setting_up: Duration::ZERO,
            measured: Measured::ZERO,
            queue,
            estimated,
            standing: Reason::Limit,
            refused: Vec::new(),
            ready: None,
        }
    }

    /// Continues from `x` with other methods until the result is good enough or no candidate is left. Returns what solved the
    /// system, if that is a candidate.
    fn run(&mut self, x: &mut [T], guess: &[T], mut watch: Watching<'_>) -> Result<Option<(String, String)>> {
        let mut guess = guess;
        let mut of_guess = if guess.is_empty() { Measured::ZERO } else { self.measure(guess) };
        if !of_guess.residual.is_finite() {
            (guess, of_guess) = (&[], Measured::ZERO); // its products overflow: the solver began with 0 too
        }
        let mut measured = self.better(x, guess, of_guess);
        let is_direct = name_of(&self.system.chosen.preconditioner.name) == DIRECT;
        let weight = self.system.weight;
        let mut current =
            Current::prepared(of_guess.residual, self.queue.budget(weight), (weight, is_direct));
        if self.outcome.reason != Reason::Limit {
            current.may_repeat();
        }
        self.standing = self.outcome.reason;
        let (mut indefinite, mut anew) = (false, Vec::new());
        self.report(measured);
        if is_direct && (self.outcome.reason == Reason::AccuracyAttained || self.is_exact(measured)) {
            measured = self.refined(x, measured, reborrow(&mut watch))?;
            self.report(measured);
        }
        // What the sums of rows and columns show need not be tried.
        let contradicts = !self.is_final(measured) && {
            let given = self.system.matrix.given()?;
            contradicts(&*given, &self.system.matrix.order.given_rhs(self.b))
        };
        if contradicts && self.outcome.reason == Reason::Limit {
            self.outcome.reason = Reason::Stagnated;
        }
        loop {
            self.report(measured);
            if self.is_final(measured) || contradicts {
                break;
            }
            let trend = self.trend(&mut current, measured);
            if self.outcome.reason == Reason::IndefiniteOperator {
                indefinite = true;
                self.drop_definite(measured);
            }
            if current.is_direct() && self.is_exact(measured) {
                break; // nothing is more accurate than complete factors, refined
            }
            let mut former = None;
            if self.should_switch(&mut current, &trend)? {
                former = self.switch(&mut current, &trend);
                if former.is_none() {
                    break; // no candidate is left
                }
            } else if trend.at_limit {
                anew.push(self.outcome.iterations);
            }
            let limit = self.iteration_limit(current.budget);
            match self.attempt(current.candidate.as_ref(), limit, x, measured, reborrow(&mut watch))? {
                Some(found) => measured = found,
                None => {
                    if let Some(former) = former {
                        (current.candidate, self.ready) = former;
                        anew.push(self.outcome.iterations);
                    }
                    if trend.gains {
                        current.may_repeat();
                    }
                }
            }
        }
        self.note_beginnings(&anew);
        let solved_by = current.candidate.filter(|_| self.outcome.converged());
        let solved_by = solved_by.zip(self.ready.take()).map(|(candidate, ready)| {
            self.system.adopt(candidate, ready, self.queue.clone());
            (self.system.chosen.method.name.clone(), self.system.chosen.preconditioner.name.clone())
        });
        // How the last one failed says nothing of the x that stands.
        let failed =
            matches!(self.outcome.reason, Reason::NotFinite(_) | Reason::Diverged | Reason::Breakdown(_));
        if failed && self.standing != self.outcome.reason && !self.outcome.converged() {
            self.outcome.notes.push(format!("the last attempt ended differently: {}", self.outcome.reason));
            self.outcome.reason = match self.standing {
                Reason::Limit | Reason::Converged => Reason::Stagnated,
                standing => standing,
            };
        }
        if indefinite && matches!(self.outcome.reason, Reason::Limit | Reason::Stagnated) {
            self.outcome.reason = Reason::IndefiniteOperator; // the methods tried after it do not change that
        }
        self.conclude()?;
        Ok(solved_by)
    }

    /// Notes where the only method began anew from its `x`, without what its iterations had found, since another was considered
    /// there and not taken; unless it was near its end.
    fn note_beginnings(&mut self, anew: &[u64]) {
        let Outcome { ways, iterations, .. } = &*self.outcome;
        let ([way], Some(first), Some(last), true) =
            (&**ways, anew.first(), anew.last(), self.outcome.converged())
        else {
            return;
        };
        if 2 * (iterations - last) < *last {
            return;
        }
        let more =
            if anew.len() == 1 { String::new() } else { format!(" and {} times later", anew.len() - 1) };
        let note = format!(
            "{way} began anew from its x after {first} iterations{more}, where another way was considered and not taken: it may need \
             fewer iterations if method and preconditioner are named"
        );
        self.outcome.notes.push(note);
    }

    /// A candidate, or the method that was prepared, with the preconditioner that it has here.
    pub(super) fn way(&self, candidate: Option<&Candidate>) -> Way {
        let first = &self.system.chosen;
        let Some(Candidate { method, preconditioner, .. }) = candidate else { return first.way() };
        let is_first = method.name == first.method.name;
        Way {
            method: if is_first { first.method.clone() } else { method.clone() },
            preconditioner: preconditioner.as_ref().unwrap_or(&first.preconditioner).clone(),
        }
    }

    /// The accuracy of `x`, computed on the host.
    fn measure(&mut self, x: &[T]) -> Measured {
        let ax = self.system.matrix.norm_of_product(x);
        let (b, of_x) = &self.scaled;
        let found = residual(&self.system.matrix.a, b, &of_x.times(x));
        let residual = found.norm / vector_norm(b);
        let backward_error = residual * self.norm / (ax + self.norm);
        Measured { residual, largest: found.largest / max_norm(b), backward_error, of_rows: found.of_rows }
    }

    /// The accuracy of `x`. If `x` is worse than the guess, it is replaced by the guess (0 if that is empty).
    pub(super) fn better(&mut self, x: &mut [T], guess: &[T], of_guess: Measured) -> Measured {
        let found = self.measure(x);
        if found.residual <= of_guess.residual || self.meets(found) {
            return found;
        }
        restore(x, guess);
        of_guess
    }

    /// One more attempt from `x`, by the prepared method or by a candidate, with at most `limit` iterations.
    /// `None` if the preconditioner is not available.
    fn attempt(
        &mut self,
        candidate: Option<&Candidate>,
        limit: u64,
        x: &mut [T],
        measured: Measured,
        mut watch: Watching<'_>,
    ) -> Result<Option<Measured>> {
        if limit == 0 {
            self.outcome.reason = Reason::Limit;
            return Ok(Some(measured));
        }
        let Stop { rtol, atol, .. } = self.system.stop;
        let (rtol, atol) = (rtol * self.tightening, atol * self.tightening);
        let stop = self.system.stop.rtol(rtol).atol(atol).max_iters(limit);
        let guess = x.to_vec();
        let next = match candidate {
            None => {
                self.system.resident.solver.set_stop(stop);
                self.system.resident.solver.solve_watched(self.b, x, watch)?.clone()
            }
            Some(candidate) => {
                if self.ready.is_none() {
                    let so_far = Watch { iterations: self.outcome.iterations, residual: measured.residual };
                    let mut asked = watch.as_mut().map(|watch| move |_: SetupProgress| watch(so_far));
                    let asked = asked.as_mut().map(|asked| asked as SetupWatch<'_>);
                    match self.set_up(candidate, stop, asked) {
                        Ok(true) => {
                            let way = self.way(Some(candidate));
                            self.outcome.ways.push(way);
                        }
                        Ok(false) => return Ok(None),
                        Err(Error::Cancelled { .. }) => {
                            self.outcome.reason = Reason::Cancelled;
                            return Ok(Some(measured));
                        }
                        Err(error) => return Err(error),
                    }
                }
                let Some(Ready { solver, .. }) = &mut self.ready else { return Ok(None) };
                solver.set_stop(stop);
                solver.solve_watched(self.b, x, watch)?.clone()
            }
        };
        let outcome = &mut *self.outcome;
        outcome.reason = next.reason;
        outcome.residual = next.residual;
        outcome.restarts += 1 + next.restarts;
        self.iterating += next.time.saturating_sub(next.transfers);
        if (outcome.history_stride, next.history_stride) == (1, 1) {
            outcome.history.truncate(outcome.iterations as usize + 1);
            outcome.history.extend(next.history.iter().skip(1));
        }
        outcome.iterations += next.iterations;
        let found = self.better(x, &guess, measured);
        if found.residual < measured.residual {
            self.standing = next.reason;
        }
        Ok(Some(found))
    }
}

/// Copies everything but the choices and notes, which stay. Reuses the memory of the history.
pub(super) fn copy(from: &Outcome, to: &mut Outcome) {
    to.reason = from.reason;
    to.iterations = from.iterations;
    to.restarts = from.restarts;
    to.residual = from.residual;
    to.true_residual = from.true_residual;
    (to.target, to.norm) = (from.target, from.norm);
    (to.max_residual, to.relative_max_residual) = (from.max_residual, from.relative_max_residual);
    to.backward_error = from.backward_error;
    to.misfit = from.misfit;
    to.normal_residual = from.normal_residual;
    (to.norm_a, to.cond_a) = (from.norm_a, from.cond_a);
    to.history.clone_from(&from.history);
    to.history_stride = from.history_stride;
    to.time = from.time;
    to.setup = from.setup;
    to.transfers = from.transfers;
}
