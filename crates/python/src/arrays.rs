//! Arrays of NumPy as bytes and indices.
use lacuna::dynamic::{Indices, bytes_of, bytes_of_mut};
use lacuna::{Complex32, Complex64, NumberType};
use numpy::{Element, PyArray1, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// The number type of a character of NumPy's.
pub(crate) fn kind(char: &str) -> PyResult<NumberType> {
    match char {
        "f" => Ok(NumberType::F32),
        "d" => Ok(NumberType::F64),
        "F" => Ok(NumberType::C32),
        "D" => Ok(NumberType::C64),
        other => Err(PyTypeError::new_err(format!("expected a type of f, d, F, D, got {other}"))),
    }
}

/// The character of a number type.
pub(crate) fn char(kind: NumberType) -> &'static str {
    match kind {
        NumberType::F32 => "f",
        NumberType::F64 => "d",
        NumberType::C32 => "F",
        NumberType::C64 => "D",
    }
}

fn contiguous(what: &str) -> PyErr {
    PyValueError::new_err(format!("{what}: expected a contiguous array"))
}

/// An array of numbers to read.
pub(crate) enum Numbers<'py> {
    F32(PyReadonlyArray1<'py, f32>),
    F64(PyReadonlyArray1<'py, f64>),
    C32(PyReadonlyArray1<'py, Complex32>),
    C64(PyReadonlyArray1<'py, Complex64>),
}

impl<'py> Numbers<'py> {
    /// An array of this type.
    pub(crate) fn new(array: &Bound<'py, PyAny>, kind: NumberType, what: &str) -> PyResult<Self> {
        let found = match kind {
            NumberType::F32 => array.extract().map(Numbers::F32).ok(),
            NumberType::F64 => array.extract().map(Numbers::F64).ok(),
            NumberType::C32 => array.extract().map(Numbers::C32).ok(),
            NumberType::C64 => array.extract().map(Numbers::C64).ok(),
        };
        let expected = char(kind);
        found.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "{what}: expected an array of one dimension and type {expected} that nobody writes"
            ))
        })
    }
    pub(crate) fn bytes(&self, what: &str) -> PyResult<&[u8]> {
        match self {
            Numbers::F32(array) => array.as_slice().map(bytes_of),
            Numbers::F64(array) => array.as_slice().map(bytes_of),
            Numbers::C32(array) => array.as_slice().map(bytes_of),
            Numbers::C64(array) => array.as_slice().map(bytes_of),
        }
        .map_err(|_| contiguous(what))
    }
}

/// An array of numbers to write.
pub(crate) enum NumbersMut<'py> {
    F32(PyReadwriteArray1<'py, f32>),
    F64(PyReadwriteArray1<'py, f64>),
    C32(PyReadwriteArray1<'py, Complex32>),
    C64(PyReadwriteArray1<'py, Complex64>),
}

impl<'py> NumbersMut<'py> {
    /// An array of this type.
    pub(crate) fn new(array: &Bound<'py, PyAny>, kind: NumberType, what: &str) -> PyResult<Self> {
        let found = match kind {
            NumberType::F32 => array.extract().map(NumbersMut::F32).ok(),
            NumberType::F64 => array.extract().map(NumbersMut::F64).ok(),
            NumberType::C32 => array.extract().map(NumbersMut::C32).ok(),
            NumberType::C64 => array.extract().map(NumbersMut::C64).ok(),
        };
        let expected = char(kind);
        found.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "{what}: expected a writable array of one dimension and type {expected} that nobody else uses"
            ))
        })
    }
    pub(crate) fn bytes(&mut self, what: &str) -> PyResult<&mut [u8]> {
        match self {
            NumbersMut::F32(array) => array.as_slice_mut().map(bytes_of_mut),
            NumbersMut::F64(array) => array.as_slice_mut().map(bytes_of_mut),
            NumbersMut::C32(array) => array.as_slice_mut().map(bytes_of_mut),
            NumbersMut::C64(array) => array.as_slice_mut().map(bytes_of_mut),
        }
        .map_err(|_| contiguous(what))
    }
}

/// A new array with the numbers in bytes, which may lie anywhere.
pub(crate) fn array<'py>(py: Python<'py>, kind: NumberType, bytes: &[u8]) -> Bound<'py, PyAny> {
    match kind {
        NumberType::F32 => copied::<f32>(py, bytes),
        NumberType::F64 => copied::<f64>(py, bytes),
        NumberType::C32 => copied::<Complex32>(py, bytes),
        NumberType::C64 => copied::<Complex64>(py, bytes),
    }
}

fn copied<'py, T: bytemuck::Pod + Element>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyAny> {
    let numbers: Vec<T> = bytemuck::pod_collect_to_vec(bytes);
    PyArray1::from_vec(py, numbers).into_any()
}

/// An array of indices.
pub(crate) enum List<'py> {
    I32(PyReadonlyArray1<'py, i32>),
    I64(PyReadonlyArray1<'py, i64>),
}

impl<'py> List<'py> {
    pub(crate) fn new(array: &Bound<'py, PyAny>, what: &str) -> PyResult<Self> {
        if let Ok(array) = array.extract() {
            return Ok(List::I32(array));
        }
        array.extract().map(List::I64).map_err(|_| {
            PyTypeError::new_err(format!("{what}: expected an array of one dimension of int32 or int64"))
        })
    }
    pub(crate) fn indices(&self, what: &str) -> PyResult<Indices<'_>> {
        match self {
            List::I32(array) => array.as_slice().map(Indices::I32),
            List::I64(array) => array.as_slice().map(Indices::I64),
        }
        .map_err(|_| contiguous(what))
    }
}
