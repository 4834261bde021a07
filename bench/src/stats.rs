//! Medians and spreads.
use std::time::{Duration, Instant};

/// Several measurements of one thing.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Adds a measurement.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The value below which the fraction `q` of the measurements lies; NaN without any.
    pub fn quantile(&self, q: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
        let at = q * last as f64;
        let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
        low + (high - low) * at.fract()
    }

    /// The middle measurement.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The distance of the quartiles over the median, in percent.
    pub fn spread(&self) -> f64 {
        100.0 * (self.quantile(0.75) - self.quantile(0.25)) / self.median()
    }
}

/// Seconds that `work` takes.
pub fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// The median of the times that `work` returns, over `least` calls or as many as fit `budget`, whichever are more.
///
/// # Errors
/// The first that `work` returns.
pub fn median_of<E>(
    least: usize,
    budget: Duration,
    mut work: impl FnMut() -> Result<Duration, E>,
) -> Result<f64, E> {
    let (start, mut samples) = (Instant::now(), Samples::default());
    while samples.0.len() < least || start.elapsed() < budget {
        samples.push(work()?.as_secs_f64());
    }
    Ok(samples.median())
}
