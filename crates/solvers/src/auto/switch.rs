//! When to switch from the method in use to a candidate.
use super::confirm::Measured;
use super::continuation::{Continuation, half};
use super::diagnosis::is_large;
use super::plan::Candidate;
use super::setup::Ready;
use lacuna_engine::{Reason, Result, Scalar};
use std::mem;

/// The same method is tried again only if the residual has fallen below this fraction.
const GAIN: f64 = 0.5;
/// A matrix found not to be positive definite at a residual above this is not, whatever the rounding.
const INDEFINITE: f64 = 0.1;
/// A method is given up at once if it is expected to take this many times the iterations that the next
/// candidate costs.
const HOPELESS: f64 = 4.0;
/// A method whose residual does not shrink may spend that cost divided by this.
const HOPEFUL: u64 = 3;

/// The method in use.
pub(super) struct Current {
    /// `None` for the method that was prepared.
    pub(super) candidate: Option<Candidate>,
    /// Iterations that it may take before the next candidate is tried, if that is limited.
    pub(super) budget: Option<u64>,
    /// All iterations done when it began.
    began: u64,
    /// The residual, and all iterations done, at the start of its last attempt.
    last: (f64, u64),
    /// The cost of an iteration of the method that was prepared, and whether that solves by complete factors.
    prepared: (u64, bool),
}

impl Current {
    /// The method that was prepared, started from a guess.
    pub(super) fn prepared(residual: f64, budget: Option<u64>, prepared: (u64, bool)) -> Self {
        Current { candidate: None, budget, began: 0, last: (residual, 0), prepared }
    }

    /// Lets it try once more whatever its last attempt achieved: any residual is below infinity.
    pub(super) fn may_repeat(&mut self) {
        self.last.0 = f64::INFINITY;
    }

    /// Whether it solves by a complete factorisation.
    pub(super) fn is_direct(&self) -> bool {
        self.candidate.as_ref().map_or(self.prepared.1, Candidate::is_direct)
    }

    /// The cost of its iterations, in iterations of the prepared method.
    fn weight(&self) -> u64 {
        self.candidate.as_ref().map_or(self.prepared.0, |candidate| candidate.weight)
    }
}

/// What the last attempt achieved.
pub(super) struct Trend {
    /// Whether it stopped at its iteration limit, and can continue.
    pub(super) at_limit: bool,
    /// Whether it at least halved the residual.
    pub(super) gains: bool,
    /// Iterations still needed at the same rate.
    expected: f64,
    /// Whether these are more than may be spent before the next candidate.
    slow: bool,
}

impl Trend {
    /// Whether to switch if a candidate is worth its cost.
    fn falls_short(&self) -> bool {
        self.slow || !self.gains
    }
}

/// The candidate and the solver in use before a switch.
type Former<T> = (Option<Candidate>, Option<Ready<T>>);

impl<T: Scalar> Continuation<'_, T> {
    /// What the last attempt achieved. The next one starts from `measured`, without a budget.
    pub(super) fn trend(&self, current: &mut Current, measured: Measured) -> Trend {
        let iterations = self.outcome.iterations;
        let (residual, before) = mem::replace(&mut current.last, (measured.residual, iterations));
        let limited = current.budget.take().is_some();
        let budget = if limited { self.queue.budget(current.weight()) } else { None };
        let budget = budget.unwrap_or(self.system.limit().saturating_sub(iterations) / 2);
        let expected = self.expected_iterations(residual, measured.residual, iterations - before);
        let expected = expected.min(self.expected_since_peak(before, measured.residual));
        let at_limit = self.outcome.reason == Reason::Limit;
        let slow = self.queue.switches_early
            && at_limit
            && !self.queue.is_empty()
            && expected > budget.min(2 * self.queue.interval) as f64;
        Trend { at_limit, gains: measured.residual < GAIN * residual, expected, slow }
    }

    /// Iterations still needed if the residual keeps falling at the same rate.
    fn expected_iterations(&self, before: f64, residual: f64, iterations: u64) -> f64 {
        let goal = self.goal(self.measured);
        let rate = libm::log(residual / before) / iterations as f64;
        if rate < 0.0 { libm::log(goal / residual) / rate } else { f64::INFINITY }
    }

    /// The same from the rate since the residual was largest, as that of conjugate gradients grows at first. Infinite unless that was
    /// half of the iterations ago or more.
    fn expected_since_peak(&self, before: u64, residual: f64) -> f64 {
        let done = self.outcome.history.get(before as usize..).unwrap_or_default();
        let peak = (0..done.len()).max_by(|&i, &j| done[i].total_cmp(&done[j])).unwrap_or(0);
        let since = done.len() - peak;
        if self.outcome.history_stride != 1 || 2 * since < done.len() || done.is_empty() {
            return f64::INFINITY;
        }
        self.expected_iterations(done[peak], residual, since as u64)
    }

    /// Drops the candidates for positive definite matrices, unless rounding may have made this one appear
    /// indefinite.
    pub(super) fn drop_definite(&mut self, measured: Measured) {
        if measured.residual > INDEFINITE {
            self.queue.not_definite();
        }
    }

    /// Whether to switch to the next candidate. If it is not worth its cost yet, sets the budget of the
    /// method in use.
    pub(super) fn should_switch(&mut self, current: &mut Current, trend: &Trend) -> Result<bool> {
        if trend.at_limit && self.queue.is_exhausted(self.outcome.iterations) {
            return Ok(true);
        }
        if !(trend.at_limit && trend.falls_short()) {
            self.queue.drop_slow(); // not worth its set-up
        }
        if !trend.falls_short() {
            return Ok(false);
        }
        self.estimate()?;
        let (spent, cost) = (self.outcome.iterations - current.began, self.cost(current, trend));
        let hopeless = trend.gains && trend.expected > HOPELESS * cost as f64;
        if spent < cost && !hopeless {
            // Continue until the next one costs no more than what was spent.
            current.budget = Some(cost - spent);
            return Ok(false);
        }
        Ok(true)
    }

    /// Iterations that the method in use may take before it is given up: those that the next candidate costs.
    fn cost(&self, current: &Current, trend: &Trend) -> u64 {
        if !trend.at_limit {
            return 0;
        }
        let cost = self.queue.budget(current.weight()).unwrap_or(self.queue.interval);
        // Only a method for definite matrices recovers from a residual that does not shrink at first.
        if self.system.method.info().positive_definite() || trend.gains { cost } else { cost / HOPEFUL }
    }

    /// Makes the next candidate the method in use, and notes why. Returns the former, or `None` if no
    /// candidate is left.
    pub(super) fn switch(&mut self, current: &mut Current, trend: &Trend) -> Option<Former<T>> {
        let iterations = self.outcome.iterations;
        let why = match (trend.gains, trend.at_limit) {
            (true, true) if trend.expected.is_infinite() => {
                format!("after {iterations} iterations, more of them are not expected to suffice")
            }
            (true, true) => {
                format!("after {iterations} iterations, about {:.0} more are expected", trend.expected)
            }
            (false, true) => {
                self.outcome.reason = Reason::Stagnated;
                format!("after {iterations} iterations, the residual has not halved")
            }
            // A residual that is large is one of rounding only beside a larger x, which was taken back.
            _ if self.outcome.reason == Reason::AccuracyAttained && is_large::<T>(current.last.0) => {
                format!("x grew until rounding errors of {} stopped it", T::KIND.name())
            }
            _ => self.outcome.reason.to_string(),
        };
        let spent = current.weight() * (iterations - current.began);
        let Some(next) = self.queue.next(!trend.at_limit || self.queue.is_exhausted(iterations), spent)
        else {
            if trend.at_limit {
                let former = self.way(current.candidate.as_ref());
                self.outcome.notes.push(format!("{former}: {why}"));
            }
            return None;
        };
        let (residual, _) = current.last;
        let [former, next_way] = [current.candidate.as_ref(), Some(&next)].map(|way| self.way(way));
        self.outcome
            .notes
            .push(format!("{former}: {why}; {next_way} continued from a residual of {residual:.1e} |b|"));
        current.began = iterations;
        current.budget = self.queue.budget(next.weight);
        Some((current.candidate.replace(next), self.ready.take()))
    }

    /// The iteration limit of one more attempt: half of those left, except for the last candidate, and at
    /// most the budget; see [`half`].
    pub(super) fn iteration_limit(&self, budget: Option<u64>) -> u64 {
        let done = self.outcome.iterations;
        let left = self.system.limit().saturating_sub(done);
        let last = self.queue.is_empty() || !self.queue.switches_early;
        let share = if last { left } else { half(left, self.system.matrix.a.rows()) };
        share.min(budget.unwrap_or(self.queue.interval.max(done)))
    }
}
