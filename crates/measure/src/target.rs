//! An open device with the cases prepared on it.
use crate::bandwidth::copy;
use crate::bus::{DOWNLOAD, Transfer, UPLOAD};
use crate::calls::{FUSED, IN_TWO, product_and_dot};
use crate::number::with_type;
use crate::pass::pass;
use crate::product::Products;
use crate::solve::Solves;
use crate::system::{Typed, with_system};
use crate::{Measured, SPMV, Subject, Task};
use lacuna::{Device, DeviceInfo, DeviceOptions, Error, Result, Scalar};

/// A prepared case on a device.
pub trait PreparedCase {
    fn round(&mut self) -> Result<()>;
    fn measured(&self) -> Option<Measured>;
}

/// Prepares a case and runs it once.
pub type Prepare = fn(&Device, &Subject, &Task) -> Result<Box<dyn PreparedCase>>;

/// Products and solves with a matrix.
///
/// # Errors
/// [`Error::Unsupported`] for a subject without a matrix; those of the preparation.
pub fn of_matrices(dev: &Device, subject: &Subject, task: &Task) -> Result<Box<dyn PreparedCase>> {
    match subject {
        Subject::System(system) => with_system!(&**system, typed => of_matrix(dev, typed, task)),
        Subject::Vectors { .. } => Err(task.needs_matrix()),
    }
}

/// The same, and passes over vectors and transfers of them, and what fusion gains.
///
/// # Errors
/// Those of the preparation.
pub fn of_everything(dev: &Device, subject: &Subject, task: &Task) -> Result<Box<dyn PreparedCase>> {
    match (subject, task.method.as_str()) {
        (Subject::Vectors { kind, n }, UPLOAD | DOWNLOAD) => {
            Ok(with_type!(*kind, T => Box::new(Transfer::<T>::new(dev, &task.method, *n)?)))
        }
        (Subject::Vectors { kind, n }, name) => {
            Ok(with_type!(*kind, T => Box::new(pass::<T>(dev, name, *n)?)))
        }
        (Subject::System(system), FUSED | IN_TWO) => {
            with_system!(&**system, typed => Ok(Box::new(product_and_dot(dev, typed, task)?)))
        }
        (Subject::System(_), _) => of_matrices(dev, subject, task),
    }
}

fn of_matrix<T: Scalar>(dev: &Device, system: &Typed<T>, task: &Task) -> Result<Box<dyn PreparedCase>> {
    Ok(match task.method.as_str() {
        SPMV => Box::new(Products::new(dev, system, task)?),
        _ => Box::new(Solves::new(dev, system, task)?),
    })
}

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
    /// Drops every case, which frees its memory.
    fn clear(&mut self);
}

/// Opens a device by the name of its backend and measures its copy bandwidth.
///
/// # Errors
/// As [`lacuna::open`].
pub(crate) fn open(name: &str, options: DeviceOptions, prepare: Prepare) -> Result<Box<dyn Target>> {
    let device = lacuna::open_with(name, options)?;
    let memory = device.info().memory;
    // A device without double precision is measured in single precision.
    let copy = match copy::<f64>(&device, memory) {
        Err(Error::Unsupported { .. }) => copy::<f32>(&device, memory)?,
        speed => speed?,
    };
    Ok(Box::new(Held { device, copy, cases: Vec::new(), prepare }))
}

struct Held {
    device: Device,
    copy: f64,
    cases: Vec<Box<dyn PreparedCase>>,
    prepare: Prepare,
}

impl Target for Held {
    fn device(&self) -> &DeviceInfo {
        self.device.info()
    }
    fn copy(&self) -> f64 {
        self.copy
    }
    fn choose_format(&self, subject: &Subject) -> Option<&'static str> {
        match subject {
            Subject::System(system) => with_system!(&**system, typed => typed.choose(&self.device).ok()),
            Subject::Vectors { .. } => None,
        }
    }
    fn prepare(&mut self, subject: &Subject, task: &Task) -> Result<usize> {
        self.cases.push((self.prepare)(&self.device, subject, task)?);
        Ok(self.cases.len() - 1)
    }
    fn round(&mut self, case: usize) -> Result<()> {
        self.cases[case].round()
    }
    fn measured(&self, case: usize) -> Option<Measured> {
        self.cases[case].measured()
    }
    fn clear(&mut self) {
        self.cases.clear();
    }
}
