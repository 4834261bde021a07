//! Eigenvalues and singular values.
use crate::arrays::{Numbers, array, kind};
use crate::errors::{Slot, raised};
use crate::functions::{device, thread_count};
use crate::matrix::Matrix;
use crate::watching::{Watching, interruptible};
use lacuna::dynamic::{self, Sought};
use lacuna::{Complex64, NumberType};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Values of a matrix: `what` is `eigen`, `general` or `svd`. Returns what was found by name.
#[pyfunction]
#[pyo3(signature = (what, matrix, count, which, sigma, mass, method, preconditioner, rtol, max_iters, complete, seed, start, start_char, device_name, threads))]
#[expect(clippy::too_many_arguments, reason = "the arguments of one call from Python")]
pub(crate) fn spectrum<'py>(
    py: Python<'py>,
    what: &str,
    matrix: &Matrix,
    count: usize,
    which: &str,
    sigma: (f64, f64),
    mass: Option<&Matrix>,
    method: &str,
    preconditioner: &str,
    rtol: Option<f64>,
    max_iters: Option<u64>,
    complete: &str,
    seed: u32,
    start: Option<&Bound<'py, PyAny>>,
    start_char: &str,
    device_name: Option<&str>,
    threads: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let threads = thread_count(threads)?;
    let search = match what {
        "eigen" => dynamic::eigen,
        "general" => dynamic::general,
        "svd" => dynamic::svd,
        other => return Err(PyValueError::new_err(format!("expected eigen, general or svd, got {other}"))),
    };
    let start = start.map(|start| Numbers::new(start, kind(start_char)?, "v0")).transpose()?;
    let start = start.as_ref().map(|numbers| numbers.bytes("v0")).transpose()?;
    let (mass, sigma) = (mass.map(|mass| &mass.0), Complex64::new(sigma.0, sigma.1));
    let sought =
        Sought { count, which, sigma, mass, method, preconditioner, rtol, max_iters, complete, seed, start };
    let slot = Slot::default();
    let mut watching = Watching::new(slot.clone(), None);
    let found = interruptible(py, &slot, || {
        let dev = device(device_name, threads)?;
        search(&dev, &matrix.0, &sought, &mut || watching.signals())
    });
    if let Some(exception) = slot.take() {
        return Err(exception);
    }
    let found = found.map_err(raised)?;
    let result = PyDict::new(py);
    result.set_item("values", array(py, NumberType::C64, dynamic::bytes_of(&found.values)))?;
    result.set_item("vectors", array(py, found.kind, &found.vectors))?;
    result.set_item("left", array(py, found.kind, &found.left))?;
    result.set_item("converged", found.converged)?;
    result.set_item("reason", found.reason)?;
    result.set_item("complete", found.complete)?;
    result.set_item("residuals", found.residuals)?;
    result.set_item("met", found.met)?;
    result.set_item("iterations", found.work[0])?;
    result.set_item("products", found.work[1])?;
    result.set_item("history", found.history)?;
    result.set_item("said", found.said)?;
    Ok(result)
}
