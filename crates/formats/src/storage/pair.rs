//! A matrix and its conjugate transpose on a device.
use crate::{Csr, convert, interrupt};
use lacuna_engine::{Basis, Device, LinOp, Matrix, Owned, Pass, Recorder, Result, Scalar, Vector};
use std::sync::Arc;

/// A matrix on a device with its conjugate transpose, both in one format: `Aᴴ x` costs as much as `A x`, and
/// so does the memory, unless the matrix is Hermitian and stored once. A row of `Aᴴ` is summed in the order
/// of the format.
///
/// ```
/// use lacuna_engine::{Adjoint, Device, Pass, Reference};
/// use lacuna_formats::Pair;
/// use lacuna_io::Spec;
/// use std::sync::Arc;
///
/// let a = Arc::new(Spec::parse("gen:convection:30x30")?.build::<f64>()?);
/// let dev = Device::new(Reference::new());
/// let pair = Pair::new(&dev, &a, "sell")?;
/// let (x, y) = (dev.vector(a.rows())?, dev.vector(a.cols())?);
/// dev.spmv_dot(&Adjoint(&pair), *x, *y, Pass::nothing())?;
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pair<T> {
    /// `A`
    pub a: Owned<Matrix<T>>,
    /// `Aᴴ`; the same matrix if `A` is Hermitian.
    pub adjoint: Owned<Matrix<T>>,
}

impl<T: Scalar> Pair<T> {
    /// Stores the matrix and its conjugate transpose on a device, in the format of that name.
    ///
    /// # Errors
    /// The conversion errors of either, as [`convert`]; device failures; those of [`interrupt::check`].
    pub fn new(dev: &Device, a: &Arc<Csr<T>>, format: &str) -> Result<Self> {
        let stored = dev.matrix(convert(a, format)?)?;
        interrupt::check()?;
        let turned = Arc::new(a.adjoint());
        interrupt::check()?;
        let adjoint = if *turned == **a { stored.clone() } else { dev.matrix(convert(&turned, format)?)? };
        Ok(Pair { a: stored, adjoint })
    }
}

impl<T: Scalar> LinOp<T> for Pair<T> {
    fn shape(&self) -> (usize, usize) {
        self.a.shape()
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.a.apply(k, x, y, then);
    }
    fn apply_columns(&self, k: &mut Recorder<'_, T>, x: Basis<T>, y: Basis<T>) {
        self.a.apply_columns(k, x, y);
    }
    fn apply_transpose(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        lacuna_engine::WithAdjoint(&self.a, &self.adjoint).apply_transpose(k, x, y, then);
    }
    fn apply_adjoint(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.adjoint.apply(k, x, y, then);
    }
}
