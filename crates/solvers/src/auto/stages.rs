//! The time of a set-up, by part.
use std::time::{Duration, Instant};

/// Parts that followed each other, each with its time.
pub(super) struct Stages {
    since: Instant,
    ended: Vec<(&'static str, Duration)>,
}

impl Stages {
    pub(super) fn start() -> Self {
        Stages { since: Instant::now(), ended: Vec::with_capacity(4) }
    }
    /// Ends the part that began when the last one ended.
    pub(super) fn end(&mut self, part: &'static str) {
        let now = Instant::now();
        self.ended.push((part, now - self.since));
        self.since = now;
    }
    /// The parts in order.
    pub(super) fn ended(self) -> Vec<(&'static str, Duration)> {
        self.ended
    }
}
