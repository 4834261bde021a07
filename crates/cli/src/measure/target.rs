//! An open backend with its device and the cases prepared on it, independent of its type.
use super::product::Products;
use super::solve::Solves;
use super::system::{Typed, with_system};
use super::{Measured, SPMV, Subject, Task, copy};
use lacuna::backend::Mark;
use lacuna::{Backend, BackendOptions, DeviceInfo, Error, OnBackend, Result, Scalar};
use std::marker::PhantomData;

/// Measurements on a backend.
pub trait Target {
    fn device(&self) -> &DeviceInfo;
    /// Bytes read and written per second by a copy, measured when the target was opened.
    fn copy(&self) -> f64;
    /// The format chosen for a matrix.
    fn choose_format(&self, subject: &Subject) -> Option<&'static str>;
    /// Prepares a case, runs it once, and returns its index.
    fn prepare(&mut self, subject: &Subject, task: &Task) -> Result<usize>;
    /// Measures a case once more.
    fn round(&mut self, case: usize) -> Result<()>;
    /// The measurements of a case; `None` before its first round.
    fn measured(&self, case: usize) -> Option<Measured>;
    /// Drops every case and frees its memory.
    fn clear(&mut self);
}

/// Opens a backend by name and measures its copy bandwidth.
///
/// # Errors
/// As [`lacuna::on`].
pub(crate) fn open<C: Cases>(name: &str, options: BackendOptions) -> Result<Box<dyn Target>> {
    lacuna::on(Some(name), options, Opening::<C>(PhantomData))?
}

/// A prepared case on a backend.
pub trait Case<B: Backend> {
    fn round(&mut self, dev: &mut B) -> Result<()>;
    fn measured(&self) -> Option<Measured>;
}

/// The kinds of cases that a run measures.
pub trait Cases: 'static {
    /// Prepares a case and runs it once.
    fn prepare<B: Backend>(dev: &mut B, subject: &Subject, task: &Task) -> Result<Box<dyn Case<B>>>;
}

/// Products and solves with a matrix.
#[derive(Debug)]
pub struct Matrices;

impl Cases for Matrices {
    fn prepare<B: Backend>(dev: &mut B, subject: &Subject, task: &Task) -> Result<Box<dyn Case<B>>> {
        match subject {
            Subject::System(system) => with_system!(&**system, typed => of_matrix(dev, typed, task)),
            Subject::Vectors { .. } => Err(task.needs_matrix()),
        }
    }
}

struct Opening<C>(PhantomData<C>);

impl<C: Cases> OnBackend for Opening<C> {
    type Output = Result<Box<dyn Target>>;

    fn run<B: Backend>(self, mut dev: B) -> Self::Output {
        let device = dev.device();
        // A device without double precision is measured in single precision.
        let copy = match copy::<f64, B>(&mut dev, device.memory) {
            Err(Error::Unsupported { .. }) => copy::<f32, B>(&mut dev, device.memory)?,
            speed => speed?,
        };
        let start = dev.mark();
        Ok(Box::new(Held::<B, C> { dev, device, copy, start, cases: Vec::new(), kinds: PhantomData }))
    }
}

struct Held<B, C> {
    dev: B,
    device: DeviceInfo,
    copy: f64,
    start: Mark,
    cases: Vec<Box<dyn Case<B>>>,
    kinds: PhantomData<C>,
}

impl<B: Backend, C: Cases> Target for Held<B, C> {
    fn device(&self) -> &DeviceInfo {
        &self.device
    }
    fn copy(&self) -> f64 {
        self.copy
    }
    fn choose_format(&self, subject: &Subject) -> Option<&'static str> {
        match subject {
            Subject::System(system) => Some(with_system!(&**system, typed => typed.choose(&self.dev))),
            Subject::Vectors { .. } => None,
        }
    }
    fn prepare(&mut self, subject: &Subject, task: &Task) -> Result<usize> {
        self.cases.push(C::prepare(&mut self.dev, subject, task)?);
        Ok(self.cases.len() - 1)
    }
    fn round(&mut self, case: usize) -> Result<()> {
        self.cases[case].round(&mut self.dev)
    }
    fn measured(&self, case: usize) -> Option<Measured> {
        self.cases[case].measured()
    }
    fn clear(&mut self) {
        self.cases.clear();
        self.dev.release(self.start);
    }
}

fn of_matrix<T: Scalar, B: Backend>(dev: &mut B, system: &Typed<T>, task: &Task) -> Result<Box<dyn Case<B>>> {
    Ok(match task.method.as_str() {
        SPMV => Box::new(Products::new(dev, system, task)?),
        _ => Box::new(Solves::new(dev, system, task)?),
    })
}
