//! The state of a running program, and its residual history.
use crate::Reason;

/// Reasons common to all programs, by index; a program's own reasons follow.
pub(crate) const COMMON_REASONS: [Reason; 5] = [
    Reason::Converged,
    Reason::Limit,
    Reason::Stagnated,
    Reason::NotFinite("the residual"),
    Reason::Cancelled,
];
const CONVERGED: u32 = 0;
const LIMIT: u32 = 1;
const STAGNATED: u32 = 2;
const NOT_FINITE: u32 = 3;
const CANCELLED: u32 = 4;

/// Which part of a program is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Runs once, at the start.
    Setup,
    /// Runs at the start and whenever the iteration was left.
    Restart,
    /// Runs repeatedly.
    Each,
    /// Nothing runs any more.
    Stopped,
}

impl Section {
    /// The sections that have operations.
    pub const RUNNING: [Section; 3] = [Section::Setup, Section::Restart, Section::Each];
}

/// The state of a running program: the results of its tests so far.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// The running section.
    pub section: Section,
    /// Whether the iteration was left and the restart section is due.
    pub left: bool,
    /// Iterations done.
    pub iterations: u64,
    /// Iterations allowed.
    pub limit: u64,
    /// Confirmations that did not end the solve.
    pub restarts: u64,
    /// The squared residual norm by the recurrence, at the last count.
    pub recurrence: f64,
    /// The squared norm of the true residual, at the last confirmation.
    pub confirmed: f64,
    reason: u32,
    pending: Option<(u32, bool)>,
    /// Whether a stop within the iteration goes to the restart section first, which confirms: see [`Program::confirms`](crate::Program::confirms).
    confirms: bool,
}

impl Control {
    /// The initial state.
    pub fn new(limit: u64, confirms: bool) -> Self {
        Control {
            section: Section::Setup,
            left: false,
            iterations: 0,
            limit,
            restarts: 0,
            recurrence: f64::NAN,
            confirmed: f64::NAN,
            reason: LIMIT,
            pending: None,
            confirms,
        }
    }
    /// Whether the rest of the current section is skipped.
    #[inline(always)]
    pub fn halted(&self) -> bool {
        self.left || self.section == Section::Stopped
    }
    /// The index of the reason, once the program has stopped.
    pub fn reason(&self) -> u32 {
        self.reason
    }
    /// Begins a section, unless the program has stopped.
    pub fn enter(&mut self, section: Section) {
        if self.section != Section::Stopped {
            self.section = section;
            self.left = false;
        }
    }
    /// Stops the program for the caller; the true residual is computed if there is a restart section.
    pub fn cancel(&mut self) {
        self.stop(CANCELLED, false);
    }
    /// Stops the program at once, after a failure that is reported in place of an outcome.
    pub fn abort(&mut self) {
        self.end(CANCELLED);
    }
    pub(crate) fn stop(&mut self, reason: u32, soft: bool) {
        if self.confirms && self.section == Section::Each {
            self.pending = Some((reason, soft));
            self.left = true;
        } else {
            self.end(reason);
        }
    }
    fn end(&mut self, reason: u32) {
        self.reason = reason;
        self.section = Section::Stopped;
    }
    pub(crate) fn count(&mut self, rr: f64, finite: bool) {
        self.iterations += 1;
        self.recurrence = rr;
        if !finite {
            self.stop(NOT_FINITE, false);
        } else if self.iterations >= self.limit {
            self.stop(LIMIT, false);
        }
    }
    pub(crate) fn confirm(&mut self, rr: f64, target: f64, last: f64, shrink: f64) {
        self.confirmed = rr;
        if self.iterations == 0 {
            self.recurrence = rr;
        }
        let pending = self.pending.take();
        if !rr.is_finite() {
            self.end(NOT_FINITE);
        } else if rr <= target {
            self.end(CONVERGED);
        } else if let Some((reason, false)) = pending {
            self.end(reason);
        } else if self.iterations >= self.limit {
            self.end(LIMIT);
        } else if rr >= shrink * last {
            self.end(pending.map_or(STAGNATED, |(reason, _)| reason));
        } else {
            self.restarts += 1;
        }
    }
}

/// Squared residual norms, one for every `stride` iterations.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Iterations between two values.
    pub stride: u64,
    /// `values[k]` belongs to iteration `k · stride`.
    pub values: Vec<f64>,
}

impl History {
    /// Maximum number of values kept; with more iterations, the history is thinned out evenly.
    pub const CAPACITY: u64 = 1 << 20;

    /// Empties the history for a solve of at most `limit` iterations.
    pub fn reset(&mut self, limit: u64) {
        self.stride = limit.saturating_add(1).div_ceil(Self::CAPACITY).max(1);
        self.values.clear();
    }
    /// A history that records nothing.
    pub fn off() -> Self {
        History { stride: 0, values: Vec::new() }
    }
    pub(crate) fn record(&mut self, iteration: u64, value: f64) {
        if self.stride > 0 && iteration.is_multiple_of(self.stride) {
            self.values.truncate((iteration / self.stride) as usize);
            self.values.push(value);
        }
    }
}
