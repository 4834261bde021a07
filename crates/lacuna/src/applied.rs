//! Operators on a device with their products prepared, for vectors on the host: those of a prepared system among them.
use crate::prepared::{AnySolver, either};
use crate::{AsVector, AsVectorMut, Prepared};
use lacuna_engine::{Device, Error, History, LinOp, Pass, Plan, Recorder, Result, Run, Scalar, Vector};
use lacuna_solvers::Factor;
use lacuna_solvers::auto::AutoSolver;
use ndarray::{ArrayView1, ArrayViewMut1};
use std::borrow::Cow;

/// `y ← A x`, prepared once. It keeps alive what the operator refers to.
pub(crate) struct Applied<T: Scalar> {
    plan: Plan,
    x: Vector<T>,
    y: Vector<T>,
}

impl<T: Scalar> Applied<T> {
    pub(crate) fn new(dev: &Device, operator: &dyn LinOp<T>) -> Result<Self> {
        let (rows, cols) = operator.shape();
        let mut k = Recorder::new(dev, "product");
        operator.keep(&mut k);
        let (x, y) = (k.vector(cols), k.vector(rows));
        k.spmv_dot(operator, x, y, Pass::nothing());
        Ok(Applied { plan: dev.plan(k.finish()?)?, x, y })
    }

    pub(crate) fn apply(&mut self, x: &[T], y: &mut [T]) -> Result<()> {
        let shape = (self.y.len, self.x.len);
        Error::check_fits("product", shape, "the vector given", self.x.len, x.len())?;
        Error::check_fits("product", shape, "the result", self.y.len, y.len())?;
        let dev = self.plan.device().clone();
        dev.upload(x, self.x)?;
        self.plan.execute(Run { limit: u64::MAX - 1, history: &mut History::off(), watch: None })?;
        dev.download(self.y, y)
    }

    /// [`Applied::apply`] on views, which are copied only if they are not contiguous.
    pub(crate) fn apply_views(&mut self, x: ArrayView1<'_, T>, mut y: ArrayViewMut1<'_, T>) -> Result<()> {
        let x = x.as_slice().map_or_else(|| Cow::Owned(x.to_vec()), Cow::Borrowed);
        if let Some(y) = y.as_slice_mut() {
            return self.apply(&x, y);
        }
        let mut contiguous = vec![T::zero(); y.len()];
        self.apply(&x, &mut contiguous)?;
        y.assign(&ArrayView1::from(&contiguous));
        Ok(())
    }
}

/// What can be applied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Matrix,
    Preconditioner,
}

impl Side {
    fn operation(self) -> &'static str {
        match self {
            Side::Matrix => "product",
            Side::Preconditioner => "preconditioner",
        }
    }
}

impl<T: Scalar> Prepared<T> {
    /// `z ← M r` by the preconditioner of the system; `z ← r` if it has none. The first call prepares it, and so does the first
    /// after another preconditioner was chosen or set up.
    ///
    /// ```
    /// use lacuna::prelude::*;
    ///
    /// let a = Csr::<f64>::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![4.0, 8.0])?;
    /// let mut system = LinearSystem::new(a).method("cg").preconditioner("jacobi").prepare()?;
    /// let mut z = [0.0; 2];
    /// system.precondition(&[1.0, 1.0], &mut z)?;
    /// assert_eq!(z, [0.25, 0.125]);
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Length`]; [`Error::Unsupported`] for a system of an operator, whose preconditioner is the caller's; device failures.
    pub fn precondition(&mut self, r: impl AsVector<T>, z: impl AsVectorMut<T>) -> Result<()> {
        self.apply(Side::Preconditioner, r.as_vector(), z)
    }

    /// `y ← A x` by the matrix on the device, in its format. The first call prepares it.
    ///
    /// # Errors
    /// As [`Prepared::precondition`].
    pub fn product(&mut self, x: impl AsVector<T>, y: impl AsVectorMut<T>) -> Result<()> {
        self.apply(Side::Matrix, x.as_vector(), y)
    }

    fn apply(&mut self, side: Side, from: ArrayView1<'_, T>, mut to: impl AsVectorMut<T>) -> Result<()> {
        let (operation, (rows, cols)) = (side.operation(), self.system.shape());
        let mut to = to.as_vector_mut();
        let expected = if side == Side::Matrix { rows } else { cols };
        Error::check_fits(operation, (rows, cols), "the vector given", cols, from.len())?;
        Error::check_fits(operation, (rows, cols), "the result", expected, to.len())?;
        let id = either!(&mut self.system, system => system.solver().id());
        let kept = &mut self.applied[side as usize];
        if kept.as_ref().is_none_or(|(of, _)| *of != id) {
            let operator: &dyn LinOp<T> = match (&self.system, side) {
                (AnySolver::Matrix(system), Side::Matrix) => &system.matrix(),
                (AnySolver::Matrix(system), Side::Preconditioner) => match system.placed() {
                    Some(placed) => placed,
                    None => {
                        to.assign(&from);
                        return Ok(());
                    }
                },
                (AnySolver::Operator(_, Some(matrix)), Side::Matrix) => matrix,
                (AnySolver::Operator(..), _) => {
                    return Err(Error::Unsupported {
                        operation: operation.into(),
                        message: "it is the caller's own operator; apply that".into(),
                    });
                }
            };
            *kept = Some((id, Applied::new(self.system.device(), operator)?));
        }
        let Some((_, applied)) = kept else { return Ok(()) };
        match &self.system {
            AnySolver::Matrix(system) if system.reorders() => {
                let mut result = vec![T::zero(); expected];
                let zeros = |_: usize| T::zero();
                let [b, x] = &mut self.staged;
                let staged = &mut [std::mem::take(b), std::mem::take(x)];
                let factor = system.factor();
                match side {
                    Side::Matrix => {
                        system.stage(staged, (rows, &zeros), (cols, &|i| from[i]))?;
                        applied.apply(&staged[1], &mut result)?;
                        let inverse = Factor { exponent: -factor.exponent, ..factor };
                        let given = inverse.times(&system.given_rhs(&result));
                        to.iter_mut().zip(given).for_each(|(to, v)| *to = v);
                    }
                    Side::Preconditioner => {
                        system.stage(staged, (rows, &|i| from[i]), (cols, &zeros))?;
                        applied.apply(&staged[0], &mut result)?;
                        system.restore(&factor.times(&result), |i, v| to[i] = v)?;
                    }
                }
                self.staged = std::mem::take(staged);
            }
            system => {
                applied.apply_views(from, to.view_mut())?;
                let factor = system.as_matrix().map_or(Factor::default(), AutoSolver::factor);
                let exponent = if side == Side::Matrix { -factor.exponent } else { factor.exponent };
                let factor = Factor { exponent, ..factor };
                to.mapv_inplace(|v| factor.of(v));
            }
        }
        Ok(())
    }
}
