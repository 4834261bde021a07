//! Medians and quartiles.
use crate::{budget, four_digits};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Several measurements of one thing, in seconds.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The value below which the fraction `q` of the measurements lies, by linear interpolation between two
    /// of them; NaN if there are none.
    pub(crate) fn quantile(&self, q: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
        let at = q * last as f64;
        let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
        low + (high - low) * at.fract()
    }

    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The summary of the measurements, if there are any.
    pub fn timing(&self) -> Option<Timing> {
        let at = |q| four_digits(self.quantile(q));
        (!self.0.is_empty()).then(|| Timing {
            median: at(0.5),
            low: at(0.25),
            high: at(0.75),
            rounds: self.0.len(),
        })
    }

    /// Adds the median of the seconds returned by `work`, over as many calls as fit the time budget of a
    /// round.
    pub fn round<E>(&mut self, mut work: impl FnMut() -> Result<Duration, E>) -> Result<(), E> {
        let (start, mut calls) = (Instant::now(), Samples::default());
        loop {
            calls.push(work()?.as_secs_f64());
            if start.elapsed() >= budget() {
                break;
            }
        }
        self.push(calls.median());
        Ok(())
    }
}

/// The median and the quartiles over rounds, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    pub rounds: usize,
}

impl Timing {
    /// The interquartile range divided by the median.
    pub fn spread(&self) -> f64 {
        (self.high - self.low) / self.median
    }
}

#[cfg(test)]
mod tests {
    use super::Samples;

    #[test]
    fn quartiles_lie_between_measurements() {
        let mut samples = Samples::default();
        assert!(samples.median().is_nan() && samples.timing().is_none());
        for value in [4.0, 1.0, 3.0, 2.0] {
            samples.push(value);
        }
        assert_eq!((samples.quantile(0.25), samples.median(), samples.quantile(1.0)), (1.75, 2.5, 4.0));
        let timing = samples.timing().unwrap();
        assert_eq!((timing.low, timing.high, timing.rounds, timing.spread()), (1.75, 3.25, 4, 0.6));
    }
}
