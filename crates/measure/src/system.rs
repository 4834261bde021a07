//! A matrix in one of the number types, with the data that all backends share.
use crate::failure::Result;
use crate::input::Source;
use crate::vector::{Length, VectorSource, Vectors, right_hand_side};
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
    /// The right-hand side and the guess in words, where they are not ones and 0.
    pub(crate) fn given(&self) -> Option<&str> {
        match self {
            Subject::System(system) => system.given(),
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
    pub(crate) b: Vec<T>,
    /// `None` for 0.
    pub(crate) x0: Option<Vec<T>>,
    /// What `b` and the guess are, where they are not ones and 0.
    given: Option<String>,
    stored: RefCell<HashMap<String, Arc<dyn Format<T>>>>,
}

impl System {
    /// Reads or generates the matrix, its right-hand side and the starting guess.
    pub(crate) fn read(source: &Source, vectors: &Vectors, kind: NumberType, quiet: bool) -> Result<Self> {
        Ok(match kind {
            NumberType::F32 => System::F32(Typed::read(source, vectors, quiet)?),
            NumberType::F64 => System::F64(Typed::read(source, vectors, quiet)?),
            NumberType::C32 => System::C32(Typed::read(source, vectors, quiet)?),
            NumberType::C64 => System::C64(Typed::read(source, vectors, quiet)?),
        })
    }

    fn given(&self) -> Option<&str> {
        with_system!(self, typed => typed.given.as_deref())
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
    fn read(source: &Source, vectors: &Vectors, quiet: bool) -> Result<Self> {
        let a = source.read::<T>(quiet)?;
        let structure = Structure::of(&a);
        let b = right_hand_side(vectors.rhs.as_ref(), source, a.rows(), quiet)?;
        let guess = |x0: &VectorSource| x0.read::<T>(Length::Columns(a.cols()), source, quiet);
        let x0 = vectors.x0.as_ref().map(guess).transpose()?;
        let beside = || b.iter().any(|v| *v != T::one()).then(|| "the one beside the matrix".into());
        let rhs = match &vectors.rhs {
            Some(rhs) => rhs.words(),
            None => beside(),
        };
        let words = rhs.map(|rhs| format!("b is {rhs}"));
        let guess = vectors.x0.as_ref().and_then(VectorSource::words).map(|x0| format!("the guess is {x0}"));
        let given = Some(words.into_iter().chain(guess).collect::<Vec<_>>().join(", "));
        let given = given.filter(|words| !words.is_empty());
        Ok(Typed { a: Arc::new(a), structure, b, x0, given, stored: RefCell::default() })
    }

    /// The starting guess.
    pub(crate) fn guess(&self) -> Vec<T> {
        self.x0.clone().unwrap_or_else(|| vec![T::zero(); self.a.cols()])
    }

    /// The format that is estimated to be fastest, by the cost model of the backend.
    pub(crate) fn choose(&self, dev: &lacuna::Device) -> lacuna::Result<&'static str> {
        let costs = dev.formats(self.a.rows(), Format::bytes(&*self.a))?;
        Ok(choose_format(&self.a, &self.structure, costs).0)
    }

    /// The matrix in a format; converted once for all backends.
    pub(crate) fn in_format(&self, name: &str) -> lacuna::Result<Arc<dyn Format<T>>> {
        if let Some(stored) = self.stored.borrow().get(name) {
            return Ok(stored.clone());
        }
        let stored = convert(&self.a, name)?;
        self.stored.borrow_mut().insert(name.into(), stored.clone());
        Ok(stored)
    }
}
