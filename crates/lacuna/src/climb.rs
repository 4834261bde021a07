//! Runs a solve, checks the result of the device on the host, and tries other methods if it falls short.
use crate::factor::times;
use crate::ladder::{Ladder, Rung};
use crate::measured::{Measured, misfit, norm_of_product, stands, tolerance};
use crate::prepared::Parts;
use lacuna_engine::{Backend, Reason, Result, Scalar, check_process};
use lacuna_formats::Csr;
use lacuna_solvers::{
    Factor, Outcome, Preconditioner, Solver, Stop, Watch, explain, largest, residual_norm, vector_norm,
};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A residual meets the tolerance if it exceeds it by at most this factor.
const SLACK: f64 = 1.005;
/// The same method is tried again only if the residual has fallen below this fraction.
const GAIN: f64 = 0.5;
/// A backward error of at most this many units of rounding is the best attainable.
const ATTAINED: f64 = 8.0;

/// A matrix found not to be positive definite at a residual above this is not, whatever the rounding.
const INDEFINITE: f64 = 0.1;
/// A method is given up at once if it is expected to take this many times the iterations that the next one
/// costs.
const HOPELESS: f64 = 4.0;
/// The part of that cost which is spent on a method whose residual does not shrink.
const HOPEFUL: u64 = 3;

/// From this many iterations on, they are divided among several methods.
const MANY: u64 = 1000;
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
    if parts.least_squares {
        let guess = x.to_vec();
        parts.solver.set_stop(parts.stop);
        copy(parts.solver.solve_watched(dev, b, x, watch)?, outcome);
        let iterating = outcome.time.saturating_sub(outcome.transfers);
        outcome.misfit = misfit(parts, b, x)?;
        if !outcome.converged() {
            // In twice the precision, as the device cannot tell a residual below the rounding of A x.
            let of_guess = misfit(parts, b, &guess)?;
            if outcome.misfit.is_nan() || of_guess < outcome.misfit {
                x.copy_from_slice(&guess);
                outcome.misfit = of_guess;
                outcome.true_residual = outcome.history.first().copied().unwrap_or(f64::NAN);
            }
        }
        outcome.time = start.elapsed();
        outcome.transfers = outcome.time.saturating_sub(iterating);
        return Ok(());
    }
    let guess = if largest(x) == 0.0 { Vec::new() } else { x.to_vec() };
    parts.solver.set_stop(first_stop(parts));
    copy(parts.solver.solve_watched(dev, b, x, lend(&mut watch))?, outcome);
    let mut iterating = outcome.time.saturating_sub(outcome.transfers);
    if !stands(parts, outcome, b, x) {
        let mark = dev.mark();
        let mut climb = Climb::new(parts, outcome, b, iterating)?;
        let climbed = climb.on(dev, x, &guess, watch);
        iterating = climb.iterating;
        drop(climb);
        dev.release(mark);
        climbed?;
    }
    outcome.time = start.elapsed();
    outcome.transfers = outcome.time.saturating_sub(iterating);
    Ok(())
}

/// The stopping criteria of the method chosen first; its iterations are limited so that others get their
/// turn.
pub(crate) fn first_stop<T: Scalar>(parts: &Parts<T>) -> Stop {
    let most = parts.stop.max_iters;
    let ladder @ Ladder { climbs, stretch, .. } = &parts.ladder;
    let half = if *climbs && !ladder.is_empty() && most >= MANY { most.div_ceil(2) } else { most };
    let patience = parts.ladder.patience(1).unwrap_or(u64::MAX);
    Stop { max_iters: half.min(*stretch).min(patience), ..parts.stop }
}

/// Makes an outcome describe `x` correctly if rounding could hide a larger residual, and explains an outcome
/// that falls short.
pub(crate) fn settle<T: Scalar>(parts: &mut Parts<T>, outcome: &mut Outcome, b: &[T], x: &[T]) -> Result<()> {
    if stands(parts, outcome, b, x) {
        return Ok(());
    }
    let mut climb = Climb::new(parts, outcome, b, Duration::ZERO)?;
    let measured = climb.measure(x);
    climb.outcome.true_residual = measured.residual;
    climb.outcome.backward_error = measured.backward_error;
    climb.is_enough(measured);
    climb.conclude();
    Ok(())
}

fn lend<'a>(watch: &'a mut Watching<'_>) -> Watching<'a> {
    match watch {
        Some(watch) => Some(&mut **watch),
        None => None,
    }
}

pub(crate) struct Climb<'a, T: Scalar> {
    pub(crate) parts: &'a mut Parts<T>,
    pub(crate) outcome: &'a mut Outcome,
    b: &'a [T],
    /// `‖b‖`
    norm: f64,
    /// The matrix and the right-hand side in the caller's order, multiplied by their factors, and the factor
    /// of `x`.
    scaled: (Arc<Csr<T>>, Vec<T>, Factor),
    /// Factor on the tolerance, reduced each time the device wrongly considers it met.
    tighter: f64,
    /// Time of all iterations.
    iterating: Duration,
    /// The rungs that are left.
    pub(crate) ladder: Ladder,
    /// The preconditioner whose set-up was counted.
    pub(crate) counted: Option<Box<dyn Preconditioner<T>>>,
    /// The solver of the current rung.
    pub(crate) called: Option<Solver<T>>,
}

impl<'a, T: Scalar> Climb<'a, T> {
    fn new(
        parts: &'a mut Parts<T>,
        outcome: &'a mut Outcome,
        b: &'a [T],
        iterating: Duration,
    ) -> Result<Self> {
        let a = times(parts.factor, parts.given.clone())?;
        let [of_b, of_x] = parts.solver.factors(b);
        let scaled = (a, of_b.times(&parts.order.given(b)), of_x);
        let ladder = parts.ladder.clone();
        let (norm, counted, called) = (vector_norm(b), None, None);
        Ok(Climb { parts, outcome, b, norm, scaled, tighter: 1.0, iterating, ladder, counted, called })
    }

    /// The accuracy of `x`, computed on the host.
    fn measure(&mut self, x: &[T]) -> Measured {
        let ax = norm_of_product(self.parts, x);
        let (a, b, of_x) = &self.scaled;
        let x = of_x.times(&self.parts.order.given(x));
        let residual = residual_norm(a, b, &x) / vector_norm(b);
        Measured { residual, backward_error: residual * self.norm / (ax + self.norm) }
    }

    /// The accuracy of `x`. If `x` is worse than the guess, it is replaced by the guess (0 if that is empty).
    fn better(&mut self, x: &mut [T], guess: &[T], of_guess: Measured) -> Measured {
        let found = self.measure(x);
        if found.residual <= of_guess.residual {
            return found;
        }
        match guess {
            [] => x.fill(T::zero()),
            guess => x.copy_from_slice(guess),
        }
        of_guess
    }

    /// Continues from `x` with other methods until the result is good enough or none is left.
    fn on<B: Backend>(
        &mut self,
        dev: &mut B,
        x: &mut [T],
        guess: &[T],
        mut watch: Watching<'_>,
    ) -> Result<()> {
        let of_guess = if guess.is_empty() { Measured::ZERO } else { self.measure(guess) };
        let mut measured = self.better(x, guess, of_guess);
        // The residual at the start of an attempt. A first attempt that has stopped is compared with
        // infinity, so that it may be tried again.
        let (mut began, mut since) = (of_guess.residual, 0);
        if self.outcome.reason != Reason::Limit {
            began = f64::INFINITY;
        }
        let (mut calling, mut indefinite) = (None, false);
        // The iterations at the start of the current method, and those that it may take before the next one.
        let (mut entered, mut patience) = (0, self.ladder.patience(1));
        loop {
            self.outcome.true_residual = measured.residual;
            self.outcome.backward_error = measured.backward_error;
            if self.is_enough(measured) {
                break;
            }
            let iterations = self.outcome.iterations;
            let under_way = self.outcome.reason == Reason::Limit;
            let gains = measured.residual < GAIN * began;
            let expected = self.expected(began, measured.residual, iterations - since);
            let left = self.parts.stop.max_iters.saturating_sub(iterations);
            let weight = calling.as_ref().map_or(1, |rung: &Rung| rung.weight);
            let enough = patience.take().and_then(|_| self.ladder.patience(weight)).unwrap_or(left / 2);
            let slow = self.ladder.climbs
                && under_way
                && !self.ladder.is_empty()
                && expected > enough.min(2 * self.ladder.stretch) as f64;
            (began, since) = (measured.residual, iterations);
            if self.outcome.reason == Reason::IndefiniteOperator {
                indefinite = true;
                if measured.residual > INDEFINITE {
                    self.ladder.not_definite();
                }
            }
            let exact = measured.backward_error <= ATTAINED * T::EPSILON;
            if self.outcome.reason == Reason::Stagnated
                && exact
                && calling.as_ref().is_some_and(Rung::is_direct)
            {
                break; // nothing is more accurate than complete factors, refined
            }
            let moves = slow || !gains;
            if !(under_way && moves) {
                self.drop_front(|rung| rung.if_slow); // not worth its set-up
            }
            if moves {
                self.count()?;
            }
            let spent = iterations - entered;
            let cost =
                if under_way { self.ladder.patience(weight).unwrap_or(self.ladder.stretch) } else { 0 };
            // Only a method for definite matrices recovers from a residual that does not shrink at first.
            let cost = if self.parts.definite || gains { cost } else { cost / HOPEFUL };
            let (former, mut kept) = (calling.clone(), None);
            if moves && spent < cost && !(gains && expected > HOPELESS * cost as f64) {
                // Continue until the next one costs no more than what was spent.
                patience = Some(cost - spent);
            } else if moves {
                let why = match (gains, under_way) {
                    (true, true) => {
                        format!("after {iterations} iterations some {expected:.0} more are to be expected")
                    }
                    (false, true) => {
                        self.outcome.reason = Reason::Stagnated;
                        format!("after {iterations} iterations the residual has not halved")
                    }
                    _ => self.outcome.reason.to_string(),
                };
                let Some(next) = self.ladder.next(!under_way, weight * spent) else {
                    if under_way {
                        self.outcome.notes.push(why);
                    }
                    break;
                };
                self.outcome.notes.push(format!("{why}: goes on with {next} from a residual of {began:.1e}"));
                let next_weight = next.weight;
                calling = Some(next);
                kept = self.called.take();
                (entered, patience) = (iterations, self.ladder.patience(next_weight));
            }
            let last = self.ladder.is_empty() || !self.ladder.climbs;
            let most = self.most(last, patience);
            match self.again(dev, calling.as_ref(), most, x, measured, lend(&mut watch))? {
                Some(found) => measured = found,
                None => {
                    // Continue with the method before.
                    (calling, self.called) = (former, kept);
                    if gains {
                        began = f64::INFINITY;
                    }
                }
            }
        }
        if let (true, Some(memory), Some(rung)) = (self.outcome.converged(), &self.parts.memory, &calling) {
            memory.keep(rung.method, rung.preconditioner.unwrap_or(&self.parts.preconditioner.name));
        }
        if indefinite && matches!(self.outcome.reason, Reason::Limit | Reason::Stagnated) {
            self.outcome.reason = Reason::IndefiniteOperator; // the methods tried after it do not change that
        }
        self.conclude();
        Ok(())
    }

    fn drop_front(&mut self, if_so: impl Fn(&Rung) -> bool) {
        if self.ladder.rungs.front().is_some_and(if_so) {
            self.ladder.rungs.pop_front();
        }
    }

    /// Iterations still needed if the residual keeps falling at the same rate.
    fn expected(&self, began: f64, residual: f64, iterations: u64) -> f64 {
        let goal = tolerance(self.parts, self.norm);
        let rate = (residual / began).ln() / iterations as f64;
        if rate < 0.0 { (goal / residual).ln() / rate } else { f64::INFINITY }
    }

    /// The iteration limit of one more attempt: half of those left, except for the last attempt, and at most
    /// the patience.
    fn most(&self, last: bool, patience: Option<u64>) -> u64 {
        let done = self.outcome.iterations;
        let left = self.parts.stop.max_iters.saturating_sub(done);
        let share = if last || left < MANY { left } else { left.div_ceil(2) };
        share.min(patience.unwrap_or(self.ladder.stretch.max(done)))
    }

    /// One more attempt from `x`, by the prepared method or by a rung of the ladder, with at most `most`
    /// iterations. `None` if the preconditioner is not available.
    fn again<B: Backend>(
        &mut self,
        dev: &mut B,
        rung: Option<&Rung>,
        most: u64,
        x: &mut [T],
        measured: Measured,
        watch: Watching<'_>,
    ) -> Result<Option<Measured>> {
        if most == 0 {
            self.outcome.reason = Reason::Limit;
            return Ok(Some(measured));
        }
        let Stop { rtol, atol, .. } = self.parts.stop;
        let stop =
            Stop { rtol: rtol * self.tighter, atol: atol * self.tighter, max_iters: most, ..self.parts.stop };
        let guess = x.to_vec();
        let next = match rung {
            None => {
                self.parts.solver.set_stop(stop);
                self.parts.solver.solve_watched(dev, self.b, x, watch)?.clone()
            }
            Some(rung) => {
                if self.called.is_none() && !self.call(dev, rung, stop)? {
                    return Ok(None);
                }
                let Some(solver) = &mut self.called else { return Ok(None) };
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

    /// Whether `x` meets the tolerance, or nothing more should be tried.
    fn is_enough(&mut self, measured: Measured) -> bool {
        let outcome = &mut *self.outcome;
        let meets = measured.residual <= SLACK * tolerance(self.parts, self.norm);
        if outcome.converged() && !meets {
            // The device was deceived by rounding: the residual does not meet the tolerance.
            outcome.reason = Reason::Stagnated;
            self.tighter *= GAIN;
        }
        if meets && outcome.reason != Reason::OutOfRange {
            outcome.reason = Reason::Converged;
        }
        let spent = outcome.reason == Reason::Limit && outcome.iterations >= self.parts.stop.max_iters;
        meets || spent || matches!(outcome.reason, Reason::Cancelled | Reason::Custom(_) | Reason::OutOfRange)
    }

    /// Sets the final reason, and adds what explains it.
    fn conclude(&mut self) {
        let outcome = &mut *self.outcome;
        if outcome.converged() || outcome.reason == Reason::Cancelled {
            return;
        }
        let found = explain(&self.parts.given, &self.parts.order.given(self.b));
        let may_be_rounding =
            !matches!(outcome.reason, Reason::Limit | Reason::OutOfRange | Reason::NotFinite(_));
        if found.is_empty() && may_be_rounding && outcome.backward_error <= ATTAINED * T::EPSILON {
            outcome.reason = Reason::AccuracyAttained;
        }
        if outcome.reason == Reason::IndefiniteOperator {
            outcome.notes.push("minres and gmres need no definite matrix".into());
        }
        if self.parts.definite && !is_hermitian(&self.parts.given) {
            let name = &self.parts.method.name;
            let what = if T::KIND.is_complex() { "Hermitian" } else { "symmetric" };
            outcome
                .notes
                .push(format!("the matrix is not {what}, which {name} needs; gmres and bicgstab do not"));
        }
        outcome.notes.extend(found);
    }
}

/// Whether a matrix equals its conjugate transpose.
fn is_hermitian<T: Scalar>(a: &Csr<T>) -> bool {
    a.entries().all(|(i, j, v)| a.get(j, i) == Some(v.conj()))
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
    to.transfers = from.transfers;
}
