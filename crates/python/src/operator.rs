//! Operators and callbacks of Python's.
use crate::arrays::{Numbers, array, kind};
use crate::errors::{Slot, raised};
use crate::matrix::Matrix;
use crate::watching::is_true;
use lacuna::NumberType;
use lacuna::dynamic::{Failure, Function, Functions, Observing, Operator};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A matrix, a pair of operators of which the second is applied first, or the type, the shape, `matvec` and `rmatvec` of an operator, which return contiguous arrays of the type.
pub(crate) fn operator(given: &Bound<'_, PyAny>) -> PyResult<Operator> {
    if let Ok(matrix) = given.cast::<Matrix>() {
        return Ok(Operator::Matrix(matrix.get().0.clone()));
    }
    if let Ok((last, first)) = given.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
        return operator(&last)?.after(operator(&first)?).map_err(raised);
    }
    let (char, shape, product, adjoint): (String, (usize, usize), Py<PyAny>, Option<Py<PyAny>>) =
        given.extract()?;
    let kind = kind(&char)?;
    Ok(Operator::Functions(Functions {
        kind,
        shape,
        product: function(kind, product),
        adjoint: adjoint.map(|adjoint| function(kind, adjoint)),
    }))
}

/// A callable of Python's on a new array each time. Its exception is the error.
fn function(kind: NumberType, callable: Py<PyAny>) -> Function {
    Arc::new(move |x: &[u8], y: &mut [u8]| {
        Python::attach(|py| -> PyResult<()> {
            let result = callable.bind(py).call1((array(py, kind, x),))?;
            let numbers = Numbers::new(&result, kind, "the result of an operator")?;
            let bytes = numbers.bytes("the result of an operator")?;
            if bytes.len() != y.len() {
                let (expected, got) = (y.len() / kind.size(), bytes.len() / kind.size());
                let message = format!("the result of an operator: expected {expected} numbers, got {got}");
                return Err(PyValueError::new_err(message));
            }
            y.copy_from_slice(bytes);
            Ok(())
        })
        .map_err(|exception| Box::new(exception) as Failure)
    })
}

/// A callback: `x` of the type after each iteration, or the relative residual.
pub(crate) fn observing(kind: NumberType, callback: Py<PyAny>, residuals: bool, slot: Slot) -> Observing {
    let callback = Arc::new(callback);
    let ends = move |called: &dyn Fn(Python<'_>, &Bound<'_, PyAny>) -> PyResult<bool>| {
        let answer = Python::attach(|py| {
            py.check_signals()?;
            called(py, callback.bind(py))
        });
        match answer {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => ControlFlow::Break(()),
            Err(exception) => {
                slot.keep(exception);
                ControlFlow::Break(())
            }
        }
    };
    match residuals {
        true => Observing::Residuals(Arc::new(move |residual| {
            ends(&|_, callback| Ok(is_true(&callback.call1((residual,))?)))
        })),
        false => Observing::Iterates(Arc::new(move |x: &[u8]| {
            ends(&|py, callback| Ok(is_true(&callback.call1((array(py, kind, x),))?)))
        })),
    }
}
