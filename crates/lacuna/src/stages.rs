//! The time of a set-up, by part.
use std::fmt::{Display, Formatter, Result};
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
}

impl Display for Stages {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (k, (part, took)) in self.ended.iter().enumerate() {
            let comma = if k > 0 { ", " } else { "" };
            write!(f, "{comma}{part} {:.4} s", took.as_secs_f64())?;
        }
        Ok(())
    }
}
