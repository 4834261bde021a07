//! Progress of long tasks on a terminal, and Ctrl-C.
use crate::failure::INTERRUPTED;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lacuna::Watch;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{IsTerminal, stderr};
use std::ops::ControlFlow;
use std::sync::Once;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// The interval between two checks of the residual, and between two updates of the terminal.
const EVERY: Duration = Duration::from_millis(100);
/// The number of residuals used to extrapolate the remaining time.
const SAMPLES: usize = 64;
/// Tasks shorter than this show no progress.
const SHOWN_AFTER: Duration = Duration::from_millis(300);

fn target(quiet: bool) -> ProgressDrawTarget {
    if quiet || !stderr().is_terminal() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() }
}

fn style(template: &str) -> ProgressStyle {
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

/// Says what is being set up, with the seconds so far, and disappears when dropped.
pub(crate) struct SettingUp {
    bar: ProgressBar,
}

impl SettingUp {
    pub(crate) fn new(quiet: bool, what: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, target(quiet));
        bar.set_style(style("{msg} {elapsed}"));
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_secs(1));
        SettingUp { bar }
    }
}

impl Drop for SettingUp {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The progress of a solve.
pub(crate) struct Solving {
    bar: ProgressBar,
    since: Instant,
    looked: Instant,
    /// Seconds and the logarithm of the relative residual.
    samples: VecDeque<(f64, f64)>,
    rtol: f64,
    max_iters: u64,
}

impl Solving {
    pub(crate) fn new(quiet: bool, rtol: f64, max_iters: u64) -> Self {
        let bar = ProgressBar::with_draw_target(None, target(quiet));
        bar.set_style(style("{msg}"));
        let now = Instant::now();
        Solving { bar, since: now, looked: now, samples: VecDeque::new(), rtol, max_iters }
    }

    /// Sets the name of the current trial, if there are several.
    pub(crate) fn name(&self, way: &str) {
        self.bar.set_style(style("{prefix}  {msg}"));
        self.bar.set_prefix(way.to_owned());
        self.bar.set_message("sets up");
    }

    /// Records the progress of the solve. Returns whether it should continue.
    pub(crate) fn at(&mut self, watch: Watch) -> ControlFlow<()> {
        if interrupted() {
            return ControlFlow::Break(());
        }
        if self.looked.elapsed() >= EVERY {
            self.looked = Instant::now();
            self.show(watch);
        }
        ControlFlow::Continue(())
    }

    fn show(&mut self, watch: Watch) {
        let seconds = self.since.elapsed().as_secs_f64();
        let rate = watch.iterations as f64 / seconds;
        let mut line = format!("iteration {}", watch.iterations);
        let mut left = (self.max_iters.saturating_sub(watch.iterations)) as f64 / rate;
        self.samples.push_back((seconds, watch.residual.ln()));
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
        if let Some(needed) = self.extrapolated() {
            left = left.min(needed);
        }
        if watch.residual.is_finite() {
            line += &format!("  residual {:.2e}", watch.residual);
        }
        line += &format!("  {rate:.0} iterations/s");
        if left.is_finite() {
            let left = if left < 120.0 { format!("{left:.0} s") } else { duration(left) };
            line += &format!("  at most {left} left");
        }
        self.bar.set_message(line);
    }

    /// Estimated seconds until the tolerance is met if the residual keeps falling at the same rate, by a
    /// least-squares line.
    fn extrapolated(&self) -> Option<f64> {
        let n = self.samples.len() as f64;
        if n < 3.0 || self.rtol <= 0.0 {
            return None;
        }
        let (t, r) = self.samples.iter().fold((0.0, 0.0), |sum, s| (sum.0 + s.0 / n, sum.1 + s.1 / n));
        let moments = self.samples.iter().map(|s| ((s.0 - t).powi(2), (s.0 - t) * (s.1 - r)));
        let (tt, tr) = moments.fold((0.0, 0.0), |sum, s| (sum.0 + s.0, sum.1 + s.1));
        let slope = tr / tt;
        let last = self.samples.back()?;
        let needed = (self.rtol.ln() - r) / slope - (last.0 - t);
        (slope < 0.0 && needed.is_finite()).then_some(needed.max(0.0))
    }
}

impl Drop for Solving {
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

/// A time as text, to about three digits.
pub(crate) fn duration(seconds: f64) -> String {
    let digits = |value: f64, unit: &str| {
        let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
        format!("{value:.decimals$} {unit}")
    };
    match seconds {
        s if s >= 5400.0 => digits(s / 3600.0, "h"),
        s if s >= 120.0 => digits(s / 60.0, "min"),
        s if s >= 0.9995 => digits(s, "s"),
        s if s >= 0.9995e-3 => digits(s * 1e3, "ms"),
        s => digits(s * 1e6, "µs"),
    }
}

/// 0: Ctrl-C ends the process. 1: it cancels the current work. 2: it has cancelled it.
static INTERRUPT: AtomicU8 = AtomicU8::new(0);

/// Whether Ctrl-C was pressed since [`cancel_on_interrupt`].
pub(crate) fn interrupted() -> bool {
    INTERRUPT.load(Ordering::Relaxed) == 2
}

/// From now on Ctrl-C cancels the current work; a second one ends the process.
pub(crate) fn cancel_on_interrupt() {
    INTERRUPT.store(1, Ordering::Relaxed);
    // If no handler can be set, Ctrl-C ends the process as usual.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPT.compare_exchange(1, 2, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            std::process::exit(INTERRUPTED.into());
        }
    });
}

/// From now on Ctrl-C ends the process.
pub(crate) fn solved() {
    INTERRUPT.store(0, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn times_have_three_digits() {
        assert_eq!(duration(4321.0), "72.0 min");
        assert_eq!(duration(12.34), "12.3 s");
        assert_eq!(duration(0.0123456), "12.3 ms");
        assert_eq!(duration(0.9999), "1.00 s");
        assert_eq!(duration(1.5e-6), "1.50 µs");
    }
}
