//! A matrix in one of the number types, with the data that all backends share.
use crate::failure::Result;
use crate::input::Source;
use lacuna::formats::{choose_format, convert};
use lacuna::{Complex32, Complex64, Csr, Format, NumberType, Scalar, Structure};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// The subject of a measurement.
pub enum Subject {
    System(Box<System>),
    /// Only vectors of a given length.
    Vectors {
        kind: NumberType,
        n: usize,
    },
}

impl Subject {
    pub(crate) fn kind(&self) -> NumberType {
        match self {
            Subject::System(system) => system.kind(),
            Subject::Vectors { kind, .. } => *kind,
        }
    }
    pub(crate) fn structure(&self) -> Option<&Structure> {
        match self {
            Subject::System(system) => Some(system.structure()),
            Subject::Vectors { .. } => None,
        }
    }
    /// Unknowns and entries.
    pub(crate) fn size(&self) -> (usize, usize) {
        match self {
            Subject::System(system) => (system.structure().cols, system.structure().nnz),
            Subject::Vectors { n, .. } => (*n, 0),
        }
    }
}

/// A matrix in a number type.
pub enum System {
    F32(Typed<f32>),
    F64(Typed<f64>),
    C32(Typed<Complex32>),
    C64(Typed<Complex64>),
}

/// Runs generic code on the system, for its number type.
#[doc(hidden)]
#[macro_export]
macro_rules! with_system {
    ($system:expr, $typed:ident => $body:expr) => {
        match $system {
            $crate::System::F32($typed) => $body,
            $crate::System::F64($typed) => $body,
            $crate::System::C32($typed) => $body,
            $crate::System::C64($typed) => $body,
        }
    };
}
pub(crate) use with_system;

/// A matrix, and its conversions so far.
pub struct Typed<T: Scalar> {
    pub a: Arc<Csr<T>>,
    pub(crate) structure: Structure,
    stored: RefCell<HashMap<&'static str, Arc<dyn Format<T>>>>,
}

impl System {
    /// Reads or generates the matrix.
    pub(crate) fn read(source: &Source, kind: NumberType, quiet: bool) -> Result<Self> {
        Ok(match kind {
            NumberType::F32 => System::F32(Typed::read(source, quiet)?),
            NumberType::F64 => System::F64(Typed::read(source, quiet)?),
            NumberType::C32 => System::C32(Typed::read(source, quiet)?),
            NumberType::C64 => System::C64(Typed::read(source, quiet)?),
        })
    }

    fn kind(&self) -> NumberType {
        match self {
            System::F32(_) => NumberType::F32,
            System::F64(_) => NumberType::F64,
            System::C32(_) => NumberType::C32,
            System::C64(_) => NumberType::C64,
        }
    }

    fn structure(&self) -> &Structure {
        with_system!(self, typed => &typed.structure)
    }
}

impl<T: Scalar> Typed<T> {
    fn read(source: &Source, quiet: bool) -> Result<Self> {
        let a = source.read::<T>(quiet)?;
        let structure = Structure::of(&a);
        Ok(Typed { a: Arc::new(a), structure, stored: RefCell::default() })
    }

    /// The format that is estimated to be fastest, by the cost model of the backend.
    pub(crate) fn choose(&self, dev: &lacuna::Device) -> lacuna::Result<&'static str> {
        let costs = dev.formats(self.a.rows(), Format::bytes(&*self.a))?;
        Ok(choose_format(&self.a, &self.structure, costs).0)
    }

    /// The matrix in a format; converted once for all backends.
    pub(crate) fn in_format(&self, name: &'static str) -> lacuna::Result<Arc<dyn Format<T>>> {
        if let Some(stored) = self.stored.borrow().get(name) {
            return Ok(stored.clone());
        }
        let stored = convert(&self.a, name)?;
        self.stored.borrow_mut().insert(name, stored.clone());
        Ok(stored)
    }
}
