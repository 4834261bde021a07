//! Solves with the method chosen first, checks the result on the host, and continues with other methods if it
//! falls short.
mod candidates;
mod setup;
mod switch;
mod verdict;

use crate::factor::times;
use crate::prepared::Parts;
use crate::verified::{Measured, misfit, norm_of_product, stands, tolerance};
use candidates::Candidate;
pub(crate) use candidates::{Candidates, Open};
use lacuna_engine::{Backend, Reason, Result, Scalar, check_process};
use lacuna_formats::Csr;
use lacuna_solvers::{
    Factor, Needs, Outcome, Preconditioner, Solver, Stop, Watch, largest, residual, vector_norm,
};
pub(crate) use setup::is_refusal;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switch::Current;

/// A limit of at least this many iterations is divided among several methods whatever the size of the system.
const MANY: u64 = 1000;
/// The least share of a method if fewer are left, unless the system has more unknowns than that: in exact arithmetic a Krylov
/// method needs at most as many iterations.
const LEAST: u64 = 50;

/// `A x = b` comes nearer if a continued solve leaves less than this part of its misfit.
const HALF: f64 = 0.5;
/// The tolerance of a continued solve, as a part of what the misfit asks for.
const TIGHTER: f64 = 0.1;

pub(crate) type Watching<'a> = Option<&'a mut dyn FnMut(Watch) -> ControlFlow<()>>;

/// Solves for `b` from `x`, both in the row order of the device. Time spent on host checks counts as
/// transfer.
pub(crate) fn solve<T: Scalar, B: Backend>(
    parts: &mut Parts<T>,
    outcome: &mut Outcome,
    dev: &mut B,
    b: &[T],
    x: &mut [T],
    mut watch: Watching<'_>,
) -> Result<()> {
    check_process("solve")?;
    let start = Instant::now();
    let guess = if largest(x) == 0.0 { Vec::new() } else { x.to_vec() };
    if parts.least_squares {
        return least_squares(parts, outcome, dev, (b, x), &guess, watch);
    }
    parts.solver.set_stop(first_stop(parts));
    copy(parts.solver.solve_watched(dev, b, x, reborrow(&mut watch))?, outcome);
    let mut iterating = outcome.time.saturating_sub(outcome.transfers);
    if !stands(parts, outcome, b, x) {
        let mark = dev.mark();
        let mut auto = AutoSolver::new(parts, outcome, b, iterating)?;
        let continued = auto.run(dev, x, &guess, watch);
        iterating = auto.iterating;
        let setting_up = auto.setting_up;
        drop(auto);
        dev.release(mark);
        continued?;
        outcome.setup = setting_up;
    }
    outcome.time = start.elapsed();
    outcome.transfers = outcome.time.saturating_sub(iterating + outcome.setup);
    Ok(())
}

/// Solves a least-squares problem, `min ‖b − A x‖`, with the method that is prepared. One that needs a solution of `A x = b`
/// continues with a tighter tolerance until that holds, or no longer comes nearer.
fn least_squares<T: Scalar, B: Backend>(
    parts: &mut Parts<T>,
    outcome: &mut Outcome,
    dev: &mut B,
    (b, x): (&[T], &mut [T]),
    guess: &[T],
    mut watch: Watching<'_>,
) -> Result<()> {
    let start = Instant::now();
    let needs_range = parts.algorithm.info().needs == Needs::Range;
    let (mut stop, mut iterating, mut last) = (parts.stop, Duration::ZERO, f64::INFINITY);
    let mut before = Outcome { iterations: 0, ..Outcome::default() };
    loop {
        parts.solver.set_stop(stop);
        copy(parts.solver.solve_watched(dev, b, x, reborrow(&mut watch))?, outcome);
        iterating += outcome.time.saturating_sub(outcome.transfers);
        outcome.misfit = misfit(parts, b, x)?;
        if before.iterations > 0 {
            let later = outcome.history.drain(..).skip(1).collect::<Vec<_>>();
            outcome.history = [std::mem::take(&mut before.history), later].concat();
            outcome.iterations += before.iterations;
        }
        let goal = tolerance(parts, vector_norm(b));
        if !(needs_range && outcome.converged() && outcome.misfit > goal) {
            break;
        }
        if outcome.misfit > HALF * last || outcome.iterations >= parts.stop.max_iters {
            outcome.reason = Reason::Stagnated;
            break;
        }
        last = outcome.misfit;
        let rtol = stop.rtol * TIGHTER * goal / outcome.misfit;
        stop = Stop { rtol, atol: 0.0, max_iters: parts.stop.max_iters - outcome.iterations, ..parts.stop };
        before = outcome.clone();
    }
    if !outcome.converged() {
        // In twice the precision, as the device cannot tell a residual below the rounding of A x.
        let of_guess = if guess.is_empty() { 1.0 } else { misfit(parts, b, guess)? };
        if outcome.misfit.is_nan() || of_guess < outcome.misfit {
            restore(x, guess);
            outcome.misfit = of_guess;
            outcome.true_residual = outcome.history.first().copied().unwrap_or(f64::NAN);
        }
    }
    if needs_range && matches!(outcome.reason, Reason::Stagnated | Reason::Diverged | Reason::Breakdown(_)) {
        let (misfit, name) = (outcome.misfit, parts.algorithm.name());
        outcome.notes.push(format!(
            "`A x = b` holds to {misfit:.1e} |b| only: {name} needs a system that has a solution; `lsmr` and `lsqr` take others"
        ));
    }
    outcome.time = start.elapsed();
    outcome.transfers = outcome.time.saturating_sub(iterating);
    Ok(())
}

/// The stopping criteria of the method chosen first; its iterations are limited to leave some for the
/// candidates.
pub(crate) fn first_stop<T: Scalar>(parts: &Parts<T>) -> Stop {
    let limit = parts.stop.max_iters;
    let candidates @ Candidates { switches_early, interval, exhausted, fallback, .. } = &parts.candidates;
    let shares = *switches_early && !candidates.is_empty();
    let share = if shares { half(limit, parts.given.rows()) } else { limit };
    let enough = if fallback.is_some() { *exhausted } else { u64::MAX };
    let budget = candidates.budget(1).unwrap_or(u64::MAX).min(enough);
    Stop { max_iters: share.min(*interval).min(budget), ..parts.stop }
}

/// The share of a method in the iterations that are left, if others may follow.
fn half(left: u64, unknowns: usize) -> u64 {
    let least = if left < MANY { LEAST.max(unknowns as u64) } else { 0 };
    left.div_ceil(2).max(least).min(left)
}

/// Makes an outcome describe `x` correctly if rounding could hide a larger residual, and explains an outcome
/// that falls short.
pub(crate) fn settle<T: Scalar>(parts: &mut Parts<T>, outcome: &mut Outcome, b: &[T], x: &[T]) -> Result<()> {
    if stands(parts, outcome, b, x) {
        return Ok(());
    }
    let mut auto = AutoSolver::new(parts, outcome, b, Duration::ZERO)?;
    let measured = auto.measure(x);
    auto.report(measured);
    auto.is_final(measured);
    auto.conclude();
    Ok(())
}

/// Puts the guess back (0 if it is empty).
fn restore<T: Scalar>(x: &mut [T], guess: &[T]) {
    match guess {
        [] => x.fill(T::zero()),
        guess => x.copy_from_slice(guess),
    }
}

fn reborrow<'a>(watch: &'a mut Watching<'_>) -> Watching<'a> {
    match watch {
        Some(watch) => Some(&mut **watch),
        None => None,
    }
}

/// A solve that continues with other methods.
struct AutoSolver<'a, T: Scalar> {
    parts: &'a mut Parts<T>,
    outcome: &'a mut Outcome,
    b: &'a [T],
    /// `‖b‖`
    norm: f64,
    /// The matrix and the right-hand side in the caller's order, multiplied by their factors, and the factor
    /// of `x`.
    scaled: (Arc<Csr<T>>, Vec<T>, Factor),
    /// Factor on the tolerance, reduced each time the device wrongly considers it met.
    tightening: f64,
    /// Time of all iterations.
    iterating: Duration,
    /// Time of the set-up of candidates, and of estimating it.
    setting_up: Duration,
    /// The accuracy of the result.
    measured: Measured,
    /// The candidates that are left.
    candidates: Candidates,
    /// The preconditioner of the candidate whose cost was estimated last.
    estimated: Option<Box<dyn Preconditioner<T>>>,
    /// The solver of the candidate in use.
    solver: Option<Solver<T>>,
}

impl<'a, T: Scalar> AutoSolver<'a, T> {
    fn new(
        parts: &'a mut Parts<T>,
        outcome: &'a mut Outcome,
        b: &'a [T],
        iterating: Duration,
    ) -> Result<Self> {
        let a = times(parts.factor, parts.given.clone())?;
        let [of_b, of_x] = parts.solver.factors(b);
        let scaled = (a, of_b.times(&parts.order.given_rhs(b)), of_x);
        let candidates = parts.candidates.clone();
        Ok(AutoSolver {
            parts,
            outcome,
            b,
            norm: vector_norm(b),
            scaled,
            tightening: 1.0,
            iterating,
            setting_up: Duration::ZERO,
            measured: Measured::ZERO,
            candidates,
            estimated: None,
            solver: None,
        })
    }

    /// Continues from `x` with other methods until the result is good enough or no candidate is left.
    fn run<B: Backend>(
        &mut self,
        dev: &mut B,
        x: &mut [T],
        guess: &[T],
        mut watch: Watching<'_>,
    ) -> Result<()> {
        let mut guess = guess;
        let mut of_guess = if guess.is_empty() { Measured::ZERO } else { self.measure(guess) };
        if !of_guess.residual.is_finite() {
            (guess, of_guess) = (&[], Measured::ZERO); // its products overflow: the solver began with 0 too
        }
        let mut measured = self.better(x, guess, of_guess);
        let mut current = Current::prepared(of_guess.residual, self.candidates.budget(1));
        if self.outcome.reason != Reason::Limit {
            current.may_repeat();
        }
        let mut indefinite = false;
        loop {
            self.report(measured);
            if self.is_final(measured) {
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
            }
            let limit = self.iteration_limit(current.budget);
            match self.attempt(dev, current.candidate.as_ref(), limit, x, measured, reborrow(&mut watch))? {
                Some(found) => measured = found,
                None => {
                    if let Some(former) = former {
                        (current.candidate, self.solver) = former;
                    }
                    if trend.gains {
                        current.may_repeat();
                    }
                }
            }
        }
        self.remember(&current);
        if indefinite && matches!(self.outcome.reason, Reason::Limit | Reason::Stagnated) {
            self.outcome.reason = Reason::IndefiniteOperator; // the methods tried after it do not change that
        }
        self.conclude();
        Ok(())
    }

    /// Keeps the candidate that converged for the next system of this structure.
    fn remember(&self, current: &Current) {
        let (Some(memory), Some(candidate)) = (&self.parts.memory, &current.candidate) else { return };
        if self.outcome.converged() {
            let preconditioner = candidate.preconditioner.unwrap_or(&self.parts.preconditioner.name);
            memory.keep(candidate.method, preconditioner);
        }
    }

    /// The accuracy of `x`, computed on the host.
    fn measure(&mut self, x: &[T]) -> Measured {
        let ax = norm_of_product(self.parts, x);
        let (a, b, of_x) = &self.scaled;
        let x = of_x.times(&self.parts.order.given_solution(x));
        let found = residual(a, b, &x);
        let residual = found.norm / vector_norm(b);
        Measured { residual, backward_error: residual * self.norm / (ax + self.norm), of_rows: found.of_rows }
    }

    /// The accuracy of `x`. If `x` is worse than the guess, it is replaced by the guess (0 if that is empty).
    fn better(&mut self, x: &mut [T], guess: &[T], of_guess: Measured) -> Measured {
        let found = self.measure(x);
        if found.residual <= of_guess.residual {
            return found;
        }
        restore(x, guess);
        of_guess
    }

    /// One more attempt from `x`, by the prepared method or by a candidate, with at most `limit` iterations.
    /// `None` if the preconditioner is not available.
    fn attempt<B: Backend>(
        &mut self,
        dev: &mut B,
        candidate: Option<&Candidate>,
        limit: u64,
        x: &mut [T],
        measured: Measured,
        watch: Watching<'_>,
    ) -> Result<Option<Measured>> {
        if limit == 0 {
            self.outcome.reason = Reason::Limit;
            return Ok(Some(measured));
        }
        let Stop { rtol, atol, .. } = self.parts.stop;
        let (rtol, atol) = (rtol * self.tightening, atol * self.tightening);
        let stop = Stop { rtol, atol, max_iters: limit, ..self.parts.stop };
        let guess = x.to_vec();
        let next = match candidate {
            None => {
                self.parts.solver.set_stop(stop);
                self.parts.solver.solve_watched(dev, self.b, x, watch)?.clone()
            }
            Some(candidate) => {
                if self.solver.is_none() && !self.set_up(dev, candidate, stop)? {
                    return Ok(None);
                }
                let Some(solver) = &mut self.solver else { return Ok(None) };
                solver.set_stop(stop);
                solver.solve_watched(dev, self.b, x, watch)?.clone()
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
        Ok(Some(self.better(x, &guess, measured)))
    }
}

/// Copies everything but the choices, which stay. Reuses the memory of the history.
fn copy(from: &Outcome, to: &mut Outcome) {
    to.reason = from.reason;
    to.iterations = from.iterations;
    to.restarts = from.restarts;
    to.residual = from.residual;
    to.true_residual = from.true_residual;
    to.backward_error = from.backward_error;
    to.misfit = from.misfit;
    to.history.clone_from(&from.history);
    to.history_stride = from.history_stride;
    to.time = from.time;
    to.setup = from.setup;
    to.transfers = from.transfers;
}
