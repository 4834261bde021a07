//! Errors as exceptions.
use lacuna::{Error, ErrorKind};
use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The end of what an operation of an operator of functions is called, whose message has names of Rust.
const OF_FUNCTIONS: &str = " of a host operator";

/// The exception for an error. One that a function of the caller's raised is raised as it is.
pub(crate) fn raised(error: Error) -> PyErr {
    let message = match &error {
        Error::Unsupported { operation, .. } if operation.ends_with(OF_FUNCTIONS) => format!(
            "{} of an operator: it was given no function for it; this method needs `rmatvec` of A, and of M if that is an operator",
            operation.trim_end_matches(OF_FUNCTIONS)
        ),
        error => error.to_string(),
    };
    match (error.kind(), error) {
        (_, Error::Function { source: Some(source), .. }) => match source.downcast::<PyErr>() {
            Ok(exception) => *exception,
            Err(_) => PyRuntimeError::new_err(message),
        },
        (_, Error::Io { source, .. }) => match source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, message)),
            None => PyOSError::new_err(message),
        },
        (ErrorKind::Memory, _) => PyMemoryError::new_err(message),
        (ErrorKind::Device | ErrorKind::Busy | ErrorKind::Function | ErrorKind::Cancelled, _) => {
            PyRuntimeError::new_err(message)
        }
        _ => PyValueError::new_err(message),
    }
}

/// An exception of a callback, kept until the solve that it ends has ended.
#[derive(Clone, Default)]
pub(crate) struct Slot(Arc<Mutex<Option<PyErr>>>);

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Keeps the first one.
    pub(crate) fn keep(&self, exception: PyErr) {
        self.lock().get_or_insert(exception);
    }
    /// Whether there is one: then what is watched ends.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().is_some()
    }
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.lock().take()
    }
}

/// What a mutex guards, unless another thread uses it.
pub(crate) fn unless_busy<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, PyErr> {
    match mutex.try_lock() {
        Ok(guard) => Ok(guard),
        Err(std::sync::TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(std::sync::TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
            "this object is in use by another call; use one object for each thread",
        )),
    }
}
