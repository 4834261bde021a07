//! A program of one operation, run again and again.
use crate::{Measured, PreparedCase, Samples, budget, digest, four_digits};
use lacuna::backend::{History, Plan, Run};
use lacuna::{Cell, Result, Scalar};
use std::time::Instant;

/// Runs before the duration of one is known.
const FIRST: u64 = 3;

/// A planned operation: its times, and whether its sums stay the same. `K` is what it runs on.
pub(crate) struct Repeated<T: Scalar, K> {
    plan: Plan,
    sums: Vec<Cell<T>>,
    iterations: u64,
    first: u64,
    reproducible: bool,
    first_setup: f64,
    once: Samples,
    _kept: K,
}

impl<T: Scalar, K> Repeated<T, K> {
    /// For a set-up that began at `start`.
    pub(crate) fn new(plan: Plan, sums: Vec<Cell<T>>, kept: K, start: Instant) -> Result<Self> {
        let first_setup = start.elapsed().as_secs_f64();
        let (iterations, reproducible, once) = (FIRST, true, Samples::default());
        let mut made =
            Repeated { plan, sums, iterations, first: 0, reproducible, first_setup, once, _kept: kept };
        made.time()?;
        let once = made.time()?;
        made.iterations = (budget().as_secs_f64() / once).ceil().clamp(FIRST as f64, 1e6) as u64;
        made.first = made.digest()?;
        Ok(made)
    }

    /// Seconds of the operation.
    fn time(&mut self) -> Result<f64> {
        let start = Instant::now();
        let run = Run { limit: self.iterations, history: &mut History::off(), watch: None };
        self.plan.execute(run)?;
        Ok(start.elapsed().as_secs_f64() / self.iterations as f64)
    }

    /// The bits of its sums.
    fn digest(&self) -> Result<u64> {
        Ok(digest(&self.plan.device().read(&self.sums)?))
    }
}

impl<T: Scalar, K> PreparedCase for Repeated<T, K> {
    fn round(&mut self) -> Result<()> {
        let time = self.time()?;
        self.once.push(time);
        self.reproducible &= self.digest()? == self.first;
        Ok(())
    }

    fn measured(&self) -> Option<Measured> {
        let (bytes, bits) = (self.plan.program().bytes_of(1), Some(self.first));
        let measured = Measured::of_one(bytes, self.once.timing()?, four_digits(self.first_setup), bits);
        Some(Measured { reproducible: self.reproducible, ..measured })
    }
}
