//! A preconditioner by itself: applied to vectors, and shared with systems.
use crate::applied::Applied;
use crate::{AsVector, AsVectorMut};
use lacuna_engine::{
    Adjoint, Basis, Device, Error, Format, LinOp, Matrix, Owned, Pass, Recorder, Result, Scalar, Vector,
};
use lacuna_formats::{Csr, parallel};
use lacuna_solvers::auto::{IntoPreconditioner, PreconditionerChoice};
use lacuna_solvers::{Placed, Setup, preconditioner};
use ndarray::{ArrayView1, ArrayViewMut1};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A preconditioner `M ≈ A⁻¹` on a device, set up for a matrix, without a method.
///
/// ```
/// use lacuna::Preconditioned;
/// use lacuna::prelude::*;
///
/// let a = Spec::parse("gen:poisson2d:40x40")?.build::<f64>()?;
/// let mut m = Preconditioned::new(&default_device()?, a.clone(), "amg")?;
/// let mut z = vec![0.0; 1600];
/// m.apply(&[1.0; 1600], &mut z)?;
///
/// // The same one in a system of a matrix that is near, on the same device.
/// let near = a.scaled(1.5)?;
/// let mut system = LinearSystem::new(near).method("cg").preconditioner(m.operator()).on(m.device()).prepare()?;
/// system.solve(&[1.0; 1600])?.1.ok()?;
/// # Ok::<(), lacuna::Error>(())
/// ```
pub struct Preconditioned<T: Scalar> {
    device: Device,
    a: Arc<Csr<T>>,
    shared: Shared<T>,
    applied: [Option<Applied<T>>; 2],
}

/// The preconditioner of a [`Preconditioned`] as an operator of programs; new values of it are new values here.
#[derive(Clone)]
struct Shared<T: Scalar> {
    placed: Arc<Mutex<Placed<T>>>,
    /// The matrix on the device, which it may use.
    stored: Owned<Matrix<T>>,
}

impl<T: Scalar> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Placed<T>> {
        self.placed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Scalar> LinOp<T> for Shared<T> {
    fn shape(&self) -> (usize, usize) {
        self.lock().shape()
    }
    fn keep(&self, k: &mut Recorder<'_, T>) {
        self.stored.keep(k);
        self.lock().keep(k);
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.lock().apply(k, x, y, then);
    }
    fn apply_columns(&self, k: &mut Recorder<'_, T>, x: Basis<T>, y: Basis<T>) {
        self.lock().apply_columns(k, x, y);
    }
    fn diagonal(&self) -> Option<Vector<T>> {
        self.lock().diagonal()
    }
    fn apply_adjoint(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.lock().apply_adjoint(k, x, y, then);
    }
}

impl<T: Scalar> Preconditioned<T> {
    /// Sets a preconditioner up: by name with options, or as a value, also one of your own, as
    /// [`LinearSystem::preconditioner`](crate::LinearSystem::preconditioner) takes it.
    ///
    /// # Errors
    /// [`Error::Argument`] for an unknown name or option, and for `none` and `auto`; errors of the set-up; device failures.
    pub fn new<By>(
        dev: &Device,
        a: impl Into<Arc<Csr<T>>>,
        preconditioner: impl IntoPreconditioner<T, By>,
    ) -> Result<Self> {
        Self::watched(dev, a, preconditioner, Setup::new())
    }

    /// [`Preconditioned::new`], with a set-up that is watched, cancelled or limited.
    ///
    /// # Errors
    /// As there; [`Error::Cancelled`].
    pub fn watched<By>(
        dev: &Device,
        a: impl Into<Arc<Csr<T>>>,
        preconditioner: impl IntoPreconditioner<T, By>,
        setup: Setup<'_>,
    ) -> Result<Self> {
        let (a, choice) = (a.into(), preconditioner.into_preconditioner());
        parallel::on(dev.workers(), || Self::placed(dev, a, choice, setup))
    }

    fn placed(
        dev: &Device,
        a: Arc<Csr<T>>,
        choice: PreconditionerChoice<T>,
        setup: Setup<'_>,
    ) -> Result<Self> {
        let none = |name: &str| Error::Argument {
            what: "preconditioner".into(),
            message: format!("expected the name of one, got `{name}`"),
        };
        let kind = match choice {
            PreconditionerChoice::Own(own) => own,
            PreconditionerChoice::Named(name) => preconditioner(&name)?.ok_or_else(|| none(&name))?,
            PreconditionerChoice::Auto => return Err(none("auto")),
        };
        let stored = dev.matrix(a.clone() as Arc<dyn Format<T>>)?;
        let placed = Placed::new(dev, kind, &a, *stored, setup)?;
        let shared = Shared { placed: Arc::new(Mutex::new(placed)), stored };
        Ok(Preconditioned { device: dev.clone(), a, shared, applied: [None, None] })
    }

    /// `z ← M r`. The first call prepares it.
    ///
    /// # Errors
    /// [`Error::Length`], device failures.
    pub fn apply(&mut self, r: impl AsVector<T>, mut z: impl AsVectorMut<T>) -> Result<()> {
        self.applied(0, r.as_vector(), z.as_vector_mut())
    }
    /// `z ← Mᴴ r`.
    ///
    /// # Errors
    /// As [`Preconditioned::apply`]; [`Error::Unsupported`] for a preconditioner without an adjoint.
    pub fn apply_adjoint(&mut self, r: impl AsVector<T>, mut z: impl AsVectorMut<T>) -> Result<()> {
        self.applied(1, r.as_vector(), z.as_vector_mut())
    }
    fn applied(&mut self, side: usize, r: ArrayView1<'_, T>, z: ArrayViewMut1<'_, T>) -> Result<()> {
        let (dev, shared) = (&self.device, &self.shared);
        let applied = match &mut self.applied[side] {
            Some(applied) => applied,
            empty if side == 0 => empty.insert(Applied::new(dev, shared)?),
            empty => empty.insert(Applied::new(dev, &Adjoint(shared))?),
        };
        applied.apply_views(r, z)
    }

    /// It as an operator for [`LinearSystem::preconditioner`](crate::LinearSystem::preconditioner), for systems on its device. New
    /// values of this are new values there.
    pub fn operator(&self) -> impl LinOp<T> + Send + 'static + use<T> {
        self.shared.clone()
    }

    /// Sets it up for new values of the matrix, on the same pattern.
    ///
    /// # Errors
    /// [`Error::Length`] unless there are as many values as entries; errors of the set-up; device failures.
    pub fn update_values(&mut self, values: &[T]) -> Result<()> {
        Arc::make_mut(&mut self.a).set_values(values)?;
        self.device.set_matrix(*self.shared.stored, self.a.clone())?;
        parallel::on(self.device.workers(), || self.shared.lock().update(&self.a, Setup::new()))
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.a.cols(), self.a.cols())
    }
    /// The device that it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }
    /// Its name.
    pub fn name(&self) -> String {
        self.shared.lock().name().into()
    }
    /// Its report on the set-up, as pairs of name and value.
    pub fn report(&self) -> Vec<(&'static str, String)> {
        self.shared.lock().report().to_vec()
    }
}
