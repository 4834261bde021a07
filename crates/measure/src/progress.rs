//! Progress of long tasks on a terminal.
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::{IsTerminal, stderr};
use std::sync::Once;
use std::time::{Duration, Instant};

/// Tasks shorter than this show no progress.
const SHOWN_AFTER: Duration = Duration::from_millis(300);

/// Standard error if it is a terminal, nothing if it is none or output is suppressed.
pub fn target(quiet: bool) -> ProgressDrawTarget {
    if quiet || !stderr().is_terminal() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() }
}

/// A template of [`indicatif`].
pub fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// The progress of reading a file.
pub(crate) struct Reading {
    bar: ProgressBar,
    quiet: bool,
    shown: Once,
    since: Instant,
}

impl Reading {
    pub(crate) fn new(path: &str, quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        bar.set_style(style("reading {msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} left"));
        bar.set_message(path.to_string());
        Reading { bar, quiet, shown: Once::new(), since: Instant::now() }
    }

    /// Reports that `read` bytes of `all` have been read.
    pub(crate) fn at(&self, read: u64, all: u64) {
        if self.since.elapsed() >= SHOWN_AFTER {
            self.shown.call_once(|| self.bar.set_draw_target(target(self.quiet)));
            if all == 0 {
                self.bar.set_style(style("reading {msg} {bytes} {bytes_per_sec}"));
            }
            self.bar.set_length(all);
            self.bar.set_position(read);
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The progress of a comparison: systems, each with a number of steps.
pub(crate) struct Counting {
    bar: ProgressBar,
    systems: Cell<usize>,
    begun: Cell<usize>,
}

impl Counting {
    pub(crate) fn new(quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), target(quiet));
        bar.set_style(style("{msg} {bar:30} {pos}/{len} {elapsed}"));
        Counting { bar, systems: Cell::new(0), begun: Cell::new(0) }
    }

    /// Announces more systems.
    pub(crate) fn expect(&self, systems: usize) {
        self.systems.set(self.systems.get() + systems);
    }

    /// Begins the next system.
    pub(crate) fn begin(&self, matrix: &str, number: &str) {
        self.begun.set(self.begun.get() + 1);
        self.bar.set_message(format!("{}/{} {matrix} {number}", self.begun.get(), self.systems.get()));
        self.bar.set_length(0);
        self.bar.set_position(0);
    }

    /// Sets the steps of the system: each combination is prepared, then measured in `rounds` rounds.
    pub(crate) fn steps(&self, combinations: usize, rounds: usize) {
        self.bar.set_length((combinations * (rounds + 1)) as u64);
    }

    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }

    /// Runs code that prints, with the progress bar hidden.
    pub(crate) fn aside<R>(&self, print: impl FnOnce() -> R) -> R {
        self.bar.suspend(print)
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
