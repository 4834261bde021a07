//! Operators given by functions of the host program.
use crate::{Backend, Error, LinOp, Pass, Recorder, Result, Scalar, Vector};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// `y ← f(x)`
type Function<T> = dyn Fn(&[T], &mut [T]) + Send + Sync;

/// A function `y ← f(x)` on slices of host memory, shared by the programs that call it.
#[derive(Clone)]
pub struct HostFunction<T>(Arc<Function<T>>);

impl<T> HostFunction<T> {
    /// Calls it. A panic of the function is returned as an error.
    ///
    /// # Errors
    /// [`Error::Function`].
    pub fn call(&self, x: &[T], y: &mut [T]) -> Result<()> {
        catch_unwind(AssertUnwindSafe(|| (self.0)(x, y))).map_err(|panic| {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Error::Function { message: text.unwrap_or_else(|| "it panicked".into()) }
        })
    }
}

impl<T> fmt::Debug for HostFunction<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostFunction")
    }
}

impl<T> PartialEq for HostFunction<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Eq for HostFunction<T> {}

/// `y ← f(x)`: an operator given by a function, used as a matrix or as a preconditioner.
///
/// The function gets all of `x` and must write all of `y`, whose previous contents are unspecified. On the
/// CPU it works on the vectors in place; on a GPU, `x` and `y` are copied to the host and back for each
/// product, which is slow. It is called on the thread that runs the solve.
///
/// ```
/// # use lacuna_engine::{HostOperator, LinOp};
/// let laplacian = HostOperator::new(100, |x: &[f64], y: &mut [f64]| {
///     for i in 0..x.len() {
///         let left = if i > 0 { x[i - 1] } else { 0.0 };
///         let right = x.get(i + 1).copied().unwrap_or(0.0);
///         y[i] = 2.0 * x[i] - left - right;
///     }
/// });
/// assert_eq!(LinOp::shape(&laplacian), (100, 100));
/// ```
#[derive(Clone, Debug)]
pub struct HostOperator<T> {
    rows: usize,
    cols: usize,
    function: HostFunction<T>,
    adjoint: Option<HostFunction<T>>,
}

impl<T: Scalar> HostOperator<T> {
    /// A square operator on vectors of `n` elements.
    pub fn new(n: usize, function: impl Fn(&[T], &mut [T]) + Send + Sync + 'static) -> Self {
        Self::rectangular(n, n, function)
    }
    /// An operator from vectors of `cols` elements to vectors of `rows` elements.
    pub fn rectangular(
        rows: usize,
        cols: usize,
        function: impl Fn(&[T], &mut [T]) + Send + Sync + 'static,
    ) -> Self {
        HostOperator { rows, cols, function: HostFunction(Arc::new(function)), adjoint: None }
    }
    /// The same operator with `y ← Aᴴ x` as a second function, for methods that need it.
    pub fn with_adjoint(mut self, function: impl Fn(&[T], &mut [T]) + Send + Sync + 'static) -> Self {
        self.adjoint = Some(HostFunction(Arc::new(function)));
        self
    }
}

impl<T: Scalar> LinOp<T> for HostOperator<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        k.host_product(&self.function, x, y, then);
    }
    fn apply_transpose(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        match (&self.adjoint, T::KIND.is_complex()) {
            (Some(function), false) => k.host_product(function, x, y, then),
            _ => k.fail(unknown("transpose")),
        }
    }
    fn apply_adjoint(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        match &self.adjoint {
            Some(function) => k.host_product(function, x, y, then),
            None => k.fail(unknown("adjoint")),
        }
    }
}

/// [`crate::Plan::prepared`] of a program with operations that the device has no kernels for: it runs
/// operation by operation (see [`crate::step_by_step`]), and the host executes those operations, with their
/// vectors copied there and back.
#[derive(Clone, Copy, Debug)]
pub struct StepByStep;

/// Calls a host function on two vectors of a device: the implementation of [`Backend::step`] for
/// [`crate::OpKind::Host`] on a device whose memory is not host memory.
///
/// # Errors
/// As the transfers, and [`Error::Function`].
pub fn host_call<T: Scalar, B: Backend>(
    dev: &mut B,
    f: &HostFunction<T>,
    x: Vector<T>,
    y: Vector<T>,
) -> Result<()> {
    let (mut from, mut to) = (vec![T::zero(); x.len], vec![T::zero(); y.len]);
    dev.download(x, &mut from)?;
    f.call(&from, &mut to)?;
    dev.upload(&to, y)
}

fn unknown(what: &str) -> Error {
    Error::Unsupported {
        operation: format!("{what} of a host operator"),
        message: "it was given no function for it; see `HostOperator::with_adjoint`".into(),
    }
}
