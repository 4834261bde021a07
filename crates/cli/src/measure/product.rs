//! Sparse products, over and over.
use super::solve::digest;
use super::system::Typed;
use super::target::Case;
use super::{BUDGET, Measured, Samples, Task, four_digits};
use lacuna::{Backend, Format, History, Pass, Plan, Recorder, Result, Run, Scalar, Vector};
use std::sync::Arc;
use std::time::Instant;

/// `y ← A x` with `x` of ones, so many times at once that it takes long enough to be timed.
pub(crate) struct Product<T: Scalar> {
    plan: Plan<T>,
    y: Vector<T>,
    iterations: u64,
}

/// Products in a run of a plan before it is known how long one takes.
const FIRST: u64 = 3;

impl<T: Scalar> Product<T> {
    /// Puts the matrix on the device and makes its product ready.
    pub(crate) fn new<B: Backend>(dev: &mut B, stored: Arc<dyn Format<T>>) -> Result<Self> {
        let a = dev.matrix(stored)?;
        let mut k = Recorder::new(dev, "spmv");
        let ([x], [y], [count]) = (k.vectors(a.cols), k.vectors(a.rows), k.cells());
        k.each(|k| k.spmv_dot(&a, x, y, Pass::new("count").count(count)));
        let program = k.finish()?;
        dev.upload(&vec![T::one(); a.cols], x)?;
        let mut product = Product { plan: dev.plan(program)?, y, iterations: FIRST };
        product.time(dev)?;
        let once = product.time(dev)?;
        product.iterations = (BUDGET.as_secs_f64() / once).ceil().clamp(FIRST as f64, 1e6) as u64;
        Ok(product)
    }

    /// Bytes that one must move: the matrix and both vectors, once each.
    pub(crate) fn bytes(&self) -> u64 {
        self.plan.program.bytes_of(1)
    }

    /// Seconds of one.
    pub(crate) fn time<B: Backend>(&mut self, dev: &mut B) -> Result<f64> {
        let start = Instant::now();
        let run = Run { limit: self.iterations, history: &mut History::off(), watch: None };
        dev.execute(&mut self.plan, run)?;
        Ok(start.elapsed().as_secs_f64() / self.iterations as f64)
    }
}

/// Products in one format, as a case.
pub(super) struct Products<T: Scalar> {
    product: Product<T>,
    first: u64,
    reproducible: bool,
    first_setup: f64,
    once: Samples,
}

impl<T: Scalar> Products<T> {
    pub(super) fn new<B: Backend>(dev: &mut B, system: &Typed<T>, task: &Task) -> Result<Self> {
        let stored = system.in_format(task.format)?;
        let start = Instant::now();
        let product = Product::new(dev, stored)?;
        let first_setup = start.elapsed().as_secs_f64();
        let first = digest_of(dev, product.y)?;
        Ok(Products { product, first, reproducible: true, first_setup, once: Samples::default() })
    }
}

fn digest_of<T: Scalar, B: Backend>(dev: &mut B, y: Vector<T>) -> Result<u64> {
    let mut values = vec![T::zero(); y.len];
    dev.download(y, &mut values)?;
    Ok(digest(&values))
}

impl<T: Scalar, B: Backend> Case<B> for Products<T> {
    fn round(&mut self, dev: &mut B) -> Result<()> {
        self.once.push(self.product.time(dev)?);
        self.reproducible &= digest_of(dev, self.product.y)? == self.first;
        Ok(())
    }

    fn measured(&self) -> Option<Measured> {
        let once = self.once.timing()?;
        let measured =
            Measured::of_one(self.product.bytes(), once, four_digits(self.first_setup), Some(self.first));
        Some(Measured { reproducible: self.reproducible, ..measured })
    }
}
