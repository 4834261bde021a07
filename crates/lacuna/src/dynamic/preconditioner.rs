//! A preconditioner by itself, of a number type that is known at run time.
use super::Matrix;
use super::bytes::{numbers, numbers_mut};
use crate::Preconditioned;
use lacuna_engine::{Device, Each, Error, Family, LinOp, NumberType, Result, Scalar, with_each};
use lacuna_formats::Csr;
use lacuna_solvers::{Setup, SetupWatch};
use std::sync::Arc;

/// Preconditioners, by number type.
struct Placed;

impl Family for Placed {
    type Of<T: Scalar> = Preconditioned<T>;
}

/// A preconditioner that is set up: see [`Preconditioned`].
pub struct Preconditioner(Each<Placed>);

impl Preconditioner {
    /// Sets a preconditioner up by name.
    ///
    /// # Errors
    /// As [`Preconditioned::watched`].
    pub fn new(dev: &Device, a: &Matrix, name: &str, watch: Option<SetupWatch<'_>>) -> Result<Self> {
        with_each!(&a.0, a => placed(dev, a, name, watch).map(Preconditioner))
    }

    /// `z ← M r`.
    ///
    /// # Errors
    /// [`Error::Argument`] for bytes that are no numbers of the type; as [`Preconditioned::apply`].
    pub fn apply(&mut self, r: &[u8], z: &mut [u8]) -> Result<()> {
        with_each!(&mut self.0, m => m.apply(numbers("r", r)?, numbers_mut("z", z)?))
    }
    /// `z ← Mᴴ r`.
    ///
    /// # Errors
    /// As [`Preconditioner::apply`]; [`Error::Unsupported`] for one without an adjoint.
    pub fn apply_adjoint(&mut self, r: &[u8], z: &mut [u8]) -> Result<()> {
        with_each!(&mut self.0, m => m.apply_adjoint(numbers("r", r)?, numbers_mut("z", z)?))
    }
    /// Sets it up for new values of the matrix, on the same pattern.
    ///
    /// # Errors
    /// As [`Preconditioned::update_values`].
    pub fn update_values(&mut self, values: &[u8]) -> Result<()> {
        with_each!(&mut self.0, m => m.update_values(numbers("values", values)?))
    }

    /// The number type.
    pub fn kind(&self) -> NumberType {
        self.0.kind()
    }
    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        with_each!(&self.0, m => m.shape())
    }
    /// The device that it is on.
    pub fn device(&self) -> &Device {
        with_each!(&self.0, m => m.device())
    }
    /// Its name.
    pub fn name(&self) -> String {
        with_each!(&self.0, m => m.name())
    }
    /// Its report on the set-up, as pairs of name and value.
    pub fn report(&self) -> Vec<(&'static str, String)> {
        with_each!(&self.0, m => m.report())
    }

    /// It as an operator of a number type.
    pub(super) fn operator<T: Scalar>(&self) -> Result<impl LinOp<T> + Send + 'static + use<T>> {
        let placed = self.0.get::<T>().ok_or_else(|| Error::Argument {
            what: "preconditioner".into(),
            message: format!("expected one of type {}, got {}", T::KIND.name(), self.kind().name()),
        })?;
        Ok(placed.operator())
    }
}

fn placed<T: Scalar>(
    dev: &Device,
    a: &Arc<Csr<T>>,
    name: &str,
    watch: Option<SetupWatch<'_>>,
) -> Result<Each<Placed>> {
    let setup = match watch {
        Some(watch) => Setup::new().watched(watch),
        None => Setup::new(),
    };
    Preconditioned::watched(dev, a.clone(), name, setup).map(T::each)
}
