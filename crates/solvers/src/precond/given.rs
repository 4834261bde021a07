//! An operator of the caller's as a preconditioner.
use super::{Handles, Parts, Preconditioner, Setup};
use lacuna_engine::{Error, LinOp, Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::Csr;

/// `z ← M r` by an operator `M` that is there: a function, a matrix on the device, or a [`Placed`](crate::Placed)
/// preconditioner of another matrix.
///
/// * Needs: an `M` as large as the matrix has columns, on the device of the system; in the order of the system as it is given.
/// * Set-up: none. New values of the system leave `M` as it is.
pub struct Given<O>(pub O);

impl<T: Scalar, O: LinOp<T> + Send> Preconditioner<T> for Given<O> {
    fn accepts_any_shape(&self) -> bool {
        true
    }
    fn set_up(&mut self, a: &Csr<T>, _: &mut Setup<'_>) -> Result<Parts<T>> {
        let (n, got) = (a.cols(), self.0.shape());
        if got != (n, n) {
            let expected = format!("a {n}x{n} preconditioner");
            return Err(Error::Shape { operation: "solve".into(), expected, got });
        }
        Ok(Parts::new())
    }
    fn operator(&self) -> Option<&dyn LinOp<T>> {
        Some(&self.0)
    }
    fn apply(&self, k: &mut Recorder<'_, T>, _: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        self.0.keep(k);
        self.0.apply(k, r, z, then);
    }
    fn diagonal(&self, _: &Handles<T>) -> Option<Vector<T>> {
        self.0.diagonal()
    }
    fn knows_adjoint(&self) -> bool {
        true // or recording says that it does not
    }
    fn apply_adjoint(
        &self,
        k: &mut Recorder<'_, T>,
        _: &Handles<T>,
        r: Vector<T>,
        z: Vector<T>,
        then: Pass<T>,
    ) {
        self.0.keep(k);
        self.0.apply_adjoint(k, r, z, then);
    }
}
