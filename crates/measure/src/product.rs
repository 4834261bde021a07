//! Repeated sparse products.
use crate::solve::digest;
use crate::system::Typed;
use crate::target::PreparedCase;
use crate::{Measured, Samples, Task, budget, four_digits};
use lacuna::{Device, Result, Scalar, TimedProduct};
use std::time::Instant;

/// Products in one format, as a case.
pub(crate) struct Products<T: Scalar> {
    product: TimedProduct<T>,
    first: u64,
    reproducible: bool,
    first_setup: f64,
    once: Samples,
}

impl<T: Scalar> Products<T> {
    pub(crate) fn new(dev: &Device, system: &Typed<T>, task: &Task) -> Result<Self> {
        let stored = system.in_format(&task.format)?;
        let start = Instant::now();
        let product = TimedProduct::new(dev, stored, budget().as_secs_f64())?;
        let first_setup = start.elapsed().as_secs_f64();
        let first = digest_of(&product)?;
        Ok(Products { product, first, reproducible: true, first_setup, once: Samples::default() })
    }
}

fn digest_of<T: Scalar>(product: &TimedProduct<T>) -> Result<u64> {
    product.product().map(|y| digest(&y))
}

impl<T: Scalar> PreparedCase for Products<T> {
    fn round(&mut self) -> Result<()> {
        self.once.push(self.product.time()?);
        self.reproducible &= digest_of(&self.product)? == self.first;
        Ok(())
    }

    fn measured(&self) -> Option<Measured> {
        let once = self.once.timing()?;
        let measured =
            Measured::of_one(self.product.bytes(), once, four_digits(self.first_setup), Some(self.first));
        Some(Measured { reproducible: self.reproducible, ..measured })
    }
}
