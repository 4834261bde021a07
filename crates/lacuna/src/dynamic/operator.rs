//! What systems are made of besides matrices: functions of the caller's, on bytes.
use super::bytes::{numbers, numbers_mut};
use super::{Matrix, Preconditioner};
use lacuna_engine::{Error, HostOperator, NumberType, Result, Scalar, with_each};
use lacuna_solvers::Observer;
use std::error::Error as StdError;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The error of a function of the caller's.
pub type Failure = Box<dyn StdError + Send + Sync>;

/// `y ← f(x)`, on the bytes of numbers.
pub type Function = Arc<dyn Fn(&[u8], &mut [u8]) -> Result<(), Failure> + Send + Sync>;

/// An operator given by functions.
#[derive(Clone)]
pub struct Functions {
    /// The number type.
    pub kind: NumberType,
    /// Rows and columns.
    pub shape: (usize, usize),
    /// `y ← A x`
    pub product: Function,
    /// `y ← Aᴴ x`
    pub adjoint: Option<Function>,
}

/// What a system is solved for.
#[derive(Clone)]
pub enum Operator {
    /// A matrix.
    Matrix(Matrix),
    /// Functions.
    Functions(Functions),
}

impl Operator {
    /// The number type.
    pub fn kind(&self) -> NumberType {
        match self {
            Operator::Matrix(a) => a.kind(),
            Operator::Functions(a) => a.kind,
        }
    }
    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        match self {
            Operator::Matrix(a) => a.shape(),
            Operator::Functions(a) => a.shape,
        }
    }
}

impl Operator {
    /// `x ↦ A (B x)`, of this `A` and another operator, by functions.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `B` has as many rows as `A` has columns, [`Error::Argument`] for another number type.
    pub fn after(self, first: Operator) -> Result<Operator> {
        let ((rows, inner), (got, cols)) = (self.shape(), first.shape());
        if inner != got {
            let expected = format!("an operator with {inner} rows");
            return Err(Error::Shape {
                operation: "product of operators".into(),
                expected,
                got: (got, cols),
            });
        }
        let (kind, of_first) = (self.kind(), first.kind());
        if kind != of_first {
            let message = format!("expected one of type {}, got {}", kind.name(), of_first.name());
            return Err(Error::Argument { what: "product of operators".into(), message });
        }
        let (last, first) = (self.functions(), first.functions());
        let chain = |first: Function, last: Function| -> Function {
            Arc::new(move |x, y| {
                // As words, so that the numbers are aligned.
                let mut between = vec![0u128; (inner * kind.size()).div_ceil(16)];
                let between = &mut bytemuck::cast_slice_mut(&mut between)[..inner * kind.size()];
                first(x, between)?;
                last(between, y)
            })
        };
        let adjoint = last.adjoint.zip(first.adjoint).map(|(last, first)| chain(last, first));
        let product = chain(first.product, last.product);
        Ok(Operator::Functions(Functions { kind, shape: (rows, cols), product, adjoint }))
    }

    /// It by functions: a matrix by products on the host.
    fn functions(self) -> Functions {
        let a = match self {
            Operator::Functions(a) => return a,
            Operator::Matrix(a) => a,
        };
        let (kind, shape) = (a.kind(), a.shape());
        with_each!(a.0, a => {
            let turned = a.adjoint();
            let product: Function = Arc::new(move |x, y| Ok(a.product(numbers("x", x)?, numbers_mut("y", y)?)?));
            let adjoint: Function =
                Arc::new(move |x, y| Ok(turned.product(numbers("x", x)?, numbers_mut("y", y)?)?));
            Functions { kind, shape, product, adjoint: Some(adjoint) }
        })
    }
}

/// A preconditioner `M ≈ A⁻¹` that is given, not named.
pub enum Precondition<'a> {
    /// A matrix or functions.
    Operator(Operator),
    /// One that is set up, on the device of the system.
    Placed(&'a Preconditioner),
}

/// A function that is shown the bytes of `x`.
pub type ShowBytes = dyn Fn(&[u8]) -> ControlFlow<()> + Send + Sync;
/// A function that is shown a residual.
pub type ShowResidual = dyn Fn(f64) -> ControlFlow<()> + Send + Sync;

/// Who sees each iteration: see [`Observer`].
#[derive(Clone)]
pub enum Observing {
    /// The bytes of `x`.
    Iterates(Arc<ShowBytes>),
    /// `‖r‖ / ‖b‖`.
    Residuals(Arc<ShowResidual>),
}

impl Observing {
    pub(super) fn typed<T: Scalar>(self) -> Observer<T> {
        match self {
            Observing::Iterates(function) => {
                Observer::of_iterates(move |x: &[T]| function(bytemuck::cast_slice(x)))
            }
            Observing::Residuals(function) => Observer::of_residuals(move |residual| function(residual)),
        }
    }
}

impl Functions {
    /// As an operator of a number type, which must be theirs.
    pub(super) fn typed<T: Scalar>(self) -> HostOperator<T> {
        let on_numbers = |function: Function| {
            move |x: &[T], y: &mut [T]| function(bytemuck::cast_slice(x), bytemuck::cast_slice_mut(y))
        };
        let (rows, cols) = self.shape;
        let operator = HostOperator::rectangular(rows, cols, on_numbers(self.product));
        match self.adjoint {
            Some(adjoint) => operator.with_adjoint(on_numbers(adjoint)),
            None => operator,
        }
    }
}
