//! Progress of a solve on a terminal.
use indicatif::ProgressBar;
use lacuna::Watch;
use lacuna_measure::interrupt::interrupted;
use lacuna_measure::progress::{style, target};
use lacuna_measure::quantity::duration;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The interval between two checks of the residual, and between two updates of the terminal.
const EVERY: Duration = Duration::from_millis(100);
/// The number of residuals used to extrapolate the remaining time.
const SAMPLES: usize = 64;

/// Says what is being set up, with the seconds so far, and disappears when dropped.
pub(crate) struct SettingUp {
    bar: ProgressBar,
}

impl SettingUp {
    pub(crate) fn new(quiet: bool, what: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, target(quiet));
        bar.set_style(style("{msg} {elapsed}"));
        bar.set_message(what.to_owned());
        // The thread that redraws it may not be had where memory is short.
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_secs(1));
        }
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
