//! An open backend with its device and the cases prepared on it, independent of its type.
use super::pass::Passes;
use super::product::Products;
use super::solve::Solves;
use super::system::{System, Typed, with_system};
use super::{Measured, SPMV, Subject, Task, copy};
use lacuna::backend::Mark;
use lacuna::{Backend, BackendOptions, Complex32, Complex64, DeviceInfo, Error, Kind, OnBackend};
use lacuna::{Result, Scalar};

/// Measurements on a backend.
pub(crate) trait Target {
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
pub(crate) fn open(name: &str, options: BackendOptions) -> Result<Box<dyn Target>> {
    lacuna::on(Some(name), options, Opening)?
}

/// A prepared case on a backend.
pub(super) trait Case<B: Backend> {
    fn round(&mut self, dev: &mut B) -> Result<()>;
    fn measured(&self) -> Option<Measured>;
}

struct Opening;

impl OnBackend for Opening {
    type Output = Result<Box<dyn Target>>;

    fn run<B: Backend>(self, mut dev: B) -> Self::Output {
        let device = dev.device();
        // A device without double precision is measured in single precision.
        let copy = match copy::<f64, B>(&mut dev, device.memory) {
            Err(Error::Unsupported { .. }) => copy::<f32, B>(&mut dev, device.memory)?,
            speed => speed?,
        };
        let start = dev.mark();
        Ok(Box::new(Held { dev, device, copy, start, cases: Vec::new() }))
    }
}

struct Held<B> {
    dev: B,
    device: DeviceInfo,
    copy: f64,
    start: Mark,
    cases: Vec<Box<dyn Case<B>>>,
}

impl<B: Backend> Target for Held<B> {
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
        let dev = &mut self.dev;
        let case: Box<dyn Case<B>> = match subject {
            Subject::System(system) => with_system!(&**system, typed => prepare(dev, typed, task))?,
            Subject::Vectors { kind: Kind::F32, n } => Box::new(Passes::<f32>::new(dev, &task.method, *n)?),
            Subject::Vectors { kind: Kind::F64, n } => Box::new(Passes::<f64>::new(dev, &task.method, *n)?),
            Subject::Vectors { kind: Kind::C32, n } => {
                Box::new(Passes::<Complex32>::new(dev, &task.method, *n)?)
            }
            Subject::Vectors { kind: Kind::C64, n } => {
                Box::new(Passes::<Complex64>::new(dev, &task.method, *n)?)
            }
        };
        self.cases.push(case);
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

fn prepare<T: Scalar, B: Backend>(dev: &mut B, system: &Typed<T>, task: &Task) -> Result<Box<dyn Case<B>>> {
    Ok(match task.method.as_str() {
        SPMV => Box::new(Products::new(dev, system, task)?),
        _ => Box::new(Solves::new(dev, system, task)?),
    })
}
