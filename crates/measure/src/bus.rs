//! Transfers between the host and a device, and back.
use crate::{Measured, PreparedCase, Samples, four_digits};
use lacuna::{Device, Result, Scalar, Scope, Vector};
use std::time::Instant;

/// The names of the two directions.
pub const UPLOAD: &str = "upload";
pub const DOWNLOAD: &str = "download";

/// A blocking transfer of a vector, repeated.
pub(crate) struct Transfer<T: Scalar> {
    scope: Scope,
    vector: Vector<T>,
    numbers: Vec<T>,
    up: bool,
    once: Samples,
    first_setup: f64,
}

impl<T: Scalar> Transfer<T> {
    pub(crate) fn new(dev: &Device, name: &str, n: usize) -> Result<Self> {
        let (start, scope) = (Instant::now(), dev.scope());
        let vector = scope.vector::<T>(n)?;
        let numbers = vec![T::one(); n];
        dev.upload(&numbers, vector)?;
        let first_setup = start.elapsed().as_secs_f64();
        Ok(Transfer { scope, vector, numbers, up: name == UPLOAD, once: Samples::default(), first_setup })
    }
}

impl<T: Scalar> PreparedCase for Transfer<T> {
    fn round(&mut self) -> Result<()> {
        let Transfer { scope, vector, numbers, up, once, .. } = self;
        once.round(|| -> Result<_> {
            let start = Instant::now();
            match up {
                true => scope.upload(numbers, *vector)?,
                false => scope.download(*vector, numbers)?,
            }
            Ok(start.elapsed())
        })
    }

    fn measured(&self) -> Option<Measured> {
        let bytes = (self.numbers.len() * size_of::<T>()) as u64;
        Some(Measured::of_one(bytes, self.once.timing()?, four_digits(self.first_setup), None))
    }
}
