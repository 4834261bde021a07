//! The time of a set-up, by part.
use std::time::{Duration, Instant};

/// Parts that followed each other, each with its time.
pub(crate) struct Stages {
    since: Instant,
    ended: Vec<(&'static str, Duration)>,
}

impl Stages {
    pub(crate) fn start() -> Self {
        Stages { since: Instant::now(), ended: Vec::with_capacity(4) }
    }
    /// Ends the part that began when the last one ended.
    pub(crate) fn end(&mut self, part: &'static str) {
        let now = Instant::now();
        self.ended.push((part, now - self.since));
        self.since = now;
    }
    /// The parts in order.
    pub(crate) fn ended(self) -> Vec<(&'static str, Duration)> {
        self.ended
    }
}
