//! The candidates that are left while a system is solved, and how long each method may take.
use super::complete::seconds_of_counting;
use super::pace::seconds_of_iteration;
use super::plan::{Candidate, Cost, Plan, When};
use crate::name_of;
use std::collections::VecDeque;

/// Iterations after which a running solve is checked. If its residual has not halved by then, it is given up;
/// otherwise it continues for as many again.
const CHECK_INTERVAL: u64 = 20_000;
/// The same limit if an incomplete factorisation, which costs about as much, is left to try, and if the
/// matrix is known to be singular: then a solution is found early or there is none.
const SHORT_CHECK_INTERVAL: u64 = 2000;
/// Iterations for each unknown after which the classical variant of a method continues. In exact arithmetic one suffices;
/// rounding disturbs the classical variant less.
const EXHAUSTED: u64 = 10;
/// The same for the smallest systems.
const EXHAUSTED_FROM: u64 = 100;
/// Iterations after which the cost of a direct solve may be estimated.
const FIRST_ESTIMATE: u64 = 50;
/// It is made once the iterations took this many times as long.
const EARLIEST: f64 = 2.0;
/// Seconds of a candidate besides its set-up: its vectors and its program.
const OVERHEAD: f64 = 2e-4;
/// Seconds of estimating that are spent while a method may still converge.
const MAX_ESTIMATING: f64 = 0.5;
/// A direct solve is preferred to an incomplete factorisation at this many times its cost.
const CERTAINTY: u64 = 10;
/// Seconds of a direct solve that is tried before any other method if one has failed.
const AFFORDABLE: f64 = 1.0;
/// The candidates that are left, and how long each may take.
#[derive(Clone)]
pub(super) struct Queue {
    /// The classical variant of the method, tried if that fails.
    pub(super) fallback: Option<Candidate>,
    /// Iterations after which it is tried even if the method has not failed.
    pub(super) exhausted: u64,
    /// In the order in which they are tried.
    list: VecDeque<Candidate>,
    /// Whether these are tried before a slow method has ended.
    pub(super) switches_early: bool,
    /// Iterations after which a running solve is checked.
    pub(super) interval: u64,
    /// Iterations after which the cost of a candidate may be counted.
    counting: u64,
    /// Seconds of an iteration, estimated from its traffic.
    iteration: f64,
}

impl Queue {
    /// What follows the first of a plan: the classical variant, then what costs least to set up. The matrix has so many
    /// `rows` and entries, and an iteration of the first moves so many `bytes`.
    pub(super) fn new(plan: &Plan, (rows, nnz): (usize, usize), bytes: usize, on_host: bool) -> Self {
        let iteration = seconds_of_iteration(bytes, on_host);
        let follow = |c: &&Candidate| matches!(c.when, When::Slow | When::Short);
        let mut list: Vec<_> = plan.others.iter().filter(follow).cloned().collect();
        let is_incomplete =
            |c: &Candidate| c.preconditioner.as_ref().is_some_and(|p| name_of(&p.name) == "ilut");
        let ends_early = plan.singular || !plan.first.definite && list.iter().any(is_incomplete);
        let interval = if ends_early { SHORT_CHECK_INTERVAL } else { CHECK_INTERVAL };
        let seconds = seconds_of_counting((rows, nnz));
        let counting =
            if seconds > MAX_ESTIMATING { u64::MAX } else { (EARLIEST * seconds / iteration) as u64 };
        let mut queue = Queue {
            fallback: plan.others(When::Failed).next().cloned(),
            exhausted: (EXHAUSTED * rows as u64).max(EXHAUSTED_FROM),
            list: VecDeque::new(),
            switches_early: !list.is_empty(),
            interval,
            counting: counting.clamp(FIRST_ESTIMATE, interval),
            iteration,
        };
        let known =
            list.extract_if(.., |candidate| matches!(candidate.cost, Cost::Known(_))).collect::<Vec<_>>();
        list.sort_by_key(|candidate| queue.iterations(candidate).unwrap_or(u64::MAX));
        queue.list = list.into();
        for candidate in known {
            if let Cost::Known(time) = candidate.cost {
                queue.insert(candidate, time.as_secs_f64());
            }
        }
        queue
    }

    /// What the set-up of a candidate costs in iterations, if that or a lower bound is known.
    fn iterations(&self, candidate: &Candidate) -> Option<u64> {
        match candidate.cost {
            Cost::Free | Cost::Known(_) => None,
            Cost::Iterations(count) => Some(count),
            Cost::Counted => Some(self.counting),
        }
    }

    /// Takes the next candidate if its cost has to be counted first.
    pub(super) fn take_uncounted(&mut self) -> Option<Candidate> {
        self.list.front().filter(|candidate| candidate.cost == Cost::Counted)?;
        self.list.pop_front()
    }

    /// Whether none is left.
    pub(super) fn is_empty(&self) -> bool {
        self.fallback.is_none() && self.list.is_empty()
    }

    /// Whether the classical variant is due after so many iterations of the method.
    pub(super) fn is_exhausted(&self, iterations: u64) -> bool {
        self.fallback.is_some() && iterations >= self.exhausted
    }

    /// The iterations that a method may take before the next candidate is tried, if each costs `weight` of
    /// the first method.
    pub(super) fn budget(&self, weight: u64) -> Option<u64> {
        let next = self.list.front().and_then(|candidate| self.iterations(candidate));
        let direct = self.list.iter().find_map(direct_cost);
        let cost = next.into_iter().chain(direct).min();
        cost.map(|iterations| (iterations / weight).max(FIRST_ESTIMATE))
    }

    /// Puts a candidate whose set-up takes some seconds in its place: after those that cost less, and, if it
    /// is not affordable, before the last.
    pub(super) fn insert(&mut self, candidate: Candidate, seconds: f64) {
        let cost = ((seconds + OVERHEAD) / self.iteration) as u64;
        let cheaper = |candidate: &Candidate| {
            let least = if candidate.when == When::Slow { cost } else { cost / CERTAINTY };
            self.iterations(candidate).is_some_and(|iterations| iterations < least)
        };
        let at = match seconds <= AFFORDABLE {
            true => self.list.iter().take_while(|candidate| cheaper(candidate)).count(),
            false => self.list.len().saturating_sub(1),
        };
        self.list.insert(at, Candidate { cost: Cost::Iterations(cost), ..candidate });
    }

    /// Takes the next candidate: a direct solve if that costs at most `spent`, the time of the method before
    /// in iterations of the first, or else the first of the list. The classical variant is for a method that
    /// failed.
    pub(super) fn next(&mut self, failed: bool, spent: u64) -> Option<Candidate> {
        if let Some(fallback) = self.fallback.take().filter(|_| failed) {
            return Some(fallback);
        }
        let due = |candidate: &Candidate| direct_cost(candidate).is_some_and(|cost| cost <= spent);
        let at = self.list.iter().position(due).unwrap_or(0);
        self.list.remove(at)
    }

    /// Drops the first if that is only for a slow method.
    pub(super) fn drop_slow(&mut self) {
        if self.list.front().is_some_and(|candidate| candidate.when == When::Slow) {
            self.list.pop_front();
        }
    }

    /// Prepares for a matrix that has turned out not to be positive definite: drops what needs one, and
    /// prefers what does not.
    pub(super) fn not_definite(&mut self) {
        self.fallback.take_if(|candidate| candidate.definite);
        self.list.retain(|candidate| !candidate.definite);
        if let Some(at) = self.list.iter().position(|candidate| candidate.method.name == "minres")
            && let Some(candidate) = self.list.remove(at)
        {
            self.list.push_front(candidate);
        }
    }
}

/// The cost of a direct solve, once it is counted.
fn direct_cost(candidate: &Candidate) -> Option<u64> {
    match candidate.cost {
        Cost::Iterations(cost) if candidate.is_direct() => Some(cost),
        _ => None,
    }
}
