//! A preconditioner by itself.
use crate::arrays::{Numbers, NumbersMut, char};
use crate::errors::{Slot, raised, unless_busy};
use crate::functions::{device, thread_count};
use crate::matrix::Matrix;
use crate::watching::{Watching, interruptible};
use lacuna::dynamic;
use lacuna::solvers::SetupProgress;
use pyo3::prelude::*;
use std::sync::Mutex;

/// A preconditioner that is set up for a matrix.
#[pyclass(frozen, module = "lacuna_sparse._core")]
pub(crate) struct Preconditioner(pub(crate) Mutex<dynamic::Preconditioner>);

#[pymethods]
impl Preconditioner {
    #[new]
    #[pyo3(signature = (matrix, name, device_name=None, threads=None))]
    fn new(
        py: Python<'_>,
        matrix: &Matrix,
        name: &str,
        device_name: Option<&str>,
        threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let threads = thread_count(threads)?;
        let slot = Slot::default();
        let mut watching = Watching::new(slot.clone(), None);
        let made = interruptible(py, &slot, || {
            let dev = device(device_name, threads)?;
            let mut watch = |_: SetupProgress| watching.signals();
            dynamic::Preconditioner::new(&dev, &matrix.0, name, Some(&mut watch))
        });
        match slot.take() {
            Some(exception) => Err(exception),
            None => made.map(|made| Preconditioner(Mutex::new(made))).map_err(raised),
        }
    }

    /// `z ← M r`, or `z ← Mᴴ r`.
    fn apply(
        &self,
        py: Python<'_>,
        r: &Bound<'_, PyAny>,
        z: &Bound<'_, PyAny>,
        adjoint: bool,
    ) -> PyResult<()> {
        let mut m = unless_busy(&self.0)?;
        let kind = m.kind();
        let (r, mut z) = (Numbers::new(r, kind, "r")?, NumbersMut::new(z, kind, "z")?);
        let (r, z) = (r.bytes("r")?, z.bytes("z")?);
        let m = &mut *m;
        py.detach(|| if adjoint { m.apply_adjoint(r, z) } else { m.apply(r, z) }).map_err(raised)
    }

    /// Sets it up for new values on the same pattern.
    fn update_values(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut m = unless_busy(&self.0)?;
        let data = Numbers::new(data, m.kind(), "data")?;
        let (data, m) = (data.bytes("data")?, &mut *m);
        py.detach(|| m.update_values(data)).map_err(raised)
    }

    #[getter]
    fn shape(&self) -> PyResult<(usize, usize)> {
        Ok(unless_busy(&self.0)?.shape())
    }
    #[getter]
    fn char(&self) -> PyResult<&'static str> {
        Ok(char(unless_busy(&self.0)?.kind()))
    }
    /// What the set-up reports.
    #[getter]
    fn report(&self) -> PyResult<Vec<(&'static str, String)>> {
        Ok(unless_busy(&self.0)?.report())
    }
}
