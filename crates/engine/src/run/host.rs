//! Operators given by functions of the host program.
use crate::{Error, LinOp, NumberType, Pass, Recorder, Result, Run, Scalar, Vector};
use std::error::Error as StdError;
use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// `y ← f(x)`, on the bytes of numbers
type Function = dyn Fn(&[u8], &mut [u8]) -> Result<()> + Send + Sync;

/// What a function of the caller's returns: nothing, or a result whose error ends the solve and is the source of its
/// [`Error::Function`].
pub trait HostResult {
    /// As a result.
    ///
    /// # Errors
    /// That of the function.
    fn into_result(self) -> Result<(), Box<dyn StdError + Send + Sync>>;
}

impl HostResult for () {
    fn into_result(self) -> Result<(), Box<dyn StdError + Send + Sync>> {
        Ok(())
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> HostResult for Result<(), E> {
    fn into_result(self) -> Result<(), Box<dyn StdError + Send + Sync>> {
        self.map_err(Into::into)
    }
}

/// A function `y ← f(x)` on slices of host memory, shared by the programs that call it.
#[derive(Clone)]
pub struct HostFunction {
    kind: NumberType,
    function: Arc<Function>,
}

impl HostFunction {
    /// A function on numbers of one type.
    pub fn new<T: Scalar, R: HostResult>(
        function: impl Fn(&[T], &mut [T]) -> R + Send + Sync + 'static,
    ) -> Self {
        let on_bytes = move |x: &[u8], y: &mut [u8]| {
            let done = function(bytemuck::cast_slice(x), bytemuck::cast_slice_mut(y)).into_result();
            done.map_err(|source| Error::Function { message: source.to_string(), source: Some(source) })
        };
        HostFunction { kind: T::KIND, function: Arc::new(on_bytes) }
    }
    /// The type of the numbers.
    pub fn kind(&self) -> NumberType {
        self.kind
    }
    /// Calls it. A panic of the function is returned as an error, as its own error is.
    ///
    /// # Errors
    /// [`Error::Function`]; [`Error::Argument`] for numbers of another type.
    pub fn call<T: Scalar>(&self, x: &[T], y: &mut [T]) -> Result<()> {
        if self.kind != T::KIND {
            let message = format!("it is a function on {}, called with {}", self.kind.name(), T::KIND.name());
            return Err(Error::Argument { what: "a host function".into(), message });
        }
        let (x, y) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(y));
        catching(|| (self.function)(x, y))
    }
}

/// Runs code of the caller's. A panic is returned as an error.
///
/// # Errors
/// Those of the code; [`Error::Function`].
pub fn catching<R>(code: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(code)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        std::mem::forget(panic); // its destructor may panic
        let message = text.unwrap_or_else(|| "it says nothing".into());
        Err(Error::Function { message, source: None })
    })
}

/// Calls `execute` with a run whose `watch` cannot panic: a panic of the caller's cancels the run, and continues
/// when that has ended.
pub fn watched<R>(run: Run<'_>, execute: impl FnOnce(Run<'_>) -> R) -> R {
    let Run { limit, history, watch } = run;
    let Some(watch) = watch else { return execute(Run { limit, history, watch: None }) };
    let mut panic = None;
    let mut guarded = |progress| {
        catch_unwind(AssertUnwindSafe(|| watch(progress))).unwrap_or_else(|payload| {
            panic = Some(payload);
            ControlFlow::Break(())
        })
    };
    let done = execute(Run { limit, history, watch: Some(&mut guarded) });
    match panic {
        Some(payload) => resume_unwind(payload),
        None => done,
    }
}

impl fmt::Debug for HostFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostFunction")
    }
}

impl PartialEq for HostFunction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.function, &other.function)
    }
}

impl Eq for HostFunction {}

/// `y ← f(x)`: an operator given by a function, used as a matrix or as a preconditioner.
///
/// The function gets all of `x` and must write all of `y`, whose previous contents are unspecified. On the
/// CPU it works on the vectors in place; on a GPU, `x` and `y` are copied to the host and back for each
/// product, which is slow. It is called on the thread that runs the solve. It may return a result, whose error ends
/// the solve: see [`HostResult`]. It must be linear: it is not called for a vector of zeros, as a guess often is.
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
    function: HostFunction,
    adjoint: Option<HostFunction>,
    marker: PhantomData<fn() -> T>,
}

impl<T: Scalar> HostOperator<T> {
    /// A square operator on vectors of `n` elements.
    pub fn new<R: HostResult>(
        n: usize,
        function: impl Fn(&[T], &mut [T]) -> R + Send + Sync + 'static,
    ) -> Self {
        Self::rectangular(n, n, function)
    }
    /// An operator from vectors of `cols` elements to vectors of `rows` elements.
    pub fn rectangular<R: HostResult>(
        rows: usize,
        cols: usize,
        function: impl Fn(&[T], &mut [T]) -> R + Send + Sync + 'static,
    ) -> Self {
        HostOperator { rows, cols, function: linear(function), adjoint: None, marker: PhantomData }
    }
    /// The same operator with `y ← Aᴴ x` as a second function, for methods that need it.
    pub fn with_adjoint<R: HostResult>(
        mut self,
        function: impl Fn(&[T], &mut [T]) -> R + Send + Sync + 'static,
    ) -> Self {
        self.adjoint = Some(linear(function));
        self
    }
}

/// A linear function, which maps 0 to 0 without being called.
fn linear<T: Scalar, R: HostResult>(
    function: impl Fn(&[T], &mut [T]) -> R + Send + Sync + 'static,
) -> HostFunction {
    HostFunction::new(move |x: &[T], y: &mut [T]| {
        if x.iter().all(|v| *v == T::zero()) {
            y.fill(T::zero());
            return Ok(());
        }
        function(x, y).into_result()
    })
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

fn unknown(what: &str) -> Error {
    Error::Unsupported {
        operation: format!("{what} of a host operator"),
        message: "it was given no function for it; see `HostOperator::with_adjoint`".into(),
    }
}
