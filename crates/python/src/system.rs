//! A prepared system.
use crate::arrays::{Numbers, NumbersMut, char};
use crate::errors::{Slot, raised, unless_busy};
use crate::functions::{device, thread_count};
use crate::operator::{observing, operator};
use crate::preconditioner::Preconditioner;
use crate::report::Report;
use crate::watching::{Watching, interruptible};
use lacuna::Watch;
use lacuna::backend::Outside;
use lacuna::dynamic::{self, Precondition, Settings};
use lacuna::solvers::SetupProgress;
use pyo3::prelude::*;
use std::sync::Mutex;
use std::time::Instant;

/// A system that is prepared on a device.
#[pyclass(frozen, module = "lacuna_sparse._core")]
pub(crate) struct System {
    inner: Mutex<dynamic::System>,
    slot: Slot,
    /// Seconds of the set-up.
    setup: f64,
}

#[pymethods]
impl System {
    #[new]
    #[pyo3(signature = (given, settings, m=None, device_name=None, threads=None, callback=None, residuals=false))]
    #[expect(clippy::too_many_arguments, reason = "the arguments of one call from Python")]
    fn new(
        py: Python<'_>,
        given: &Bound<'_, PyAny>,
        settings: &str,
        m: Option<&Bound<'_, PyAny>>,
        device_name: Option<&str>,
        threads: Option<&Bound<'_, PyAny>>,
        callback: Option<Py<PyAny>>,
        residuals: bool,
    ) -> PyResult<Self> {
        let start = Instant::now();
        let threads = thread_count(threads)?;
        let settings = Settings::parse(settings).map_err(raised)?;
        let (given, slot) = (operator(given)?, Slot::default());
        let placed = m.and_then(|m| m.cast::<Preconditioner>().ok());
        let other = match (m, placed) {
            (Some(m), None) => Some(operator(m)?),
            _ => None,
        };
        let placed = placed.map(|placed| unless_busy(&placed.get().0)).transpose()?;
        let placed = placed.as_deref();
        let observed = callback.map(|callback| observing(given.kind(), callback, residuals, slot.clone()));
        let mut watching = Watching::new(slot.clone(), None);
        let made = interruptible(py, &slot, || {
            let mut watch = |_: SetupProgress| watching.signals();
            let (dev, m) = match (placed, other) {
                (Some(placed), _) => (placed.device().clone(), Some(Precondition::Placed(placed))),
                (None, Some(other)) => (device(device_name, threads)?, Some(Precondition::Operator(other))),
                (None, None) => (device(device_name, threads)?, None),
            };
            dynamic::System::new(&dev, given, &settings, m, observed, Some(&mut watch))
        });
        if let Some(exception) = slot.take() {
            return Err(exception);
        }
        let inner = Mutex::new(made.map_err(raised)?);
        Ok(System { inner, slot, setup: start.elapsed().as_secs_f64() })
    }

    /// Solves for `b` from the guess in `x`, which receives the solution.
    #[pyo3(signature = (b, x, monitor=None))]
    fn solve(
        &self,
        py: Python<'_>,
        b: &Bound<'_, PyAny>,
        x: &Bound<'_, PyAny>,
        monitor: Option<Py<PyAny>>,
    ) -> PyResult<Report> {
        let mut system = unless_busy(&self.inner)?;
        let kind = system.kind();
        let (numbers, mut solution) = (Numbers::new(b, kind, "b")?, NumbersMut::new(x, kind, "x")?);
        let (b, bytes) = (numbers.bytes("b")?, solution.bytes("x")?);
        self.slot.take();
        let mut watching = Watching::new(self.slot.clone(), monitor);
        let system = &mut *system;
        let solved = interruptible(py, &self.slot, || {
            system.solve(b, bytes, Some(&mut |at: Watch| watching.progress(at)))
        });
        if let Some(exception) = self.slot.take() {
            return Err(exception);
        }
        Ok(Report::new(solved.map_err(raised)?, x.clone().unbind(), self.setup))
    }

    /// Solves for the columns of `b`, one after the other in a flat array, from those of `x`.
    fn solve_columns(
        &self,
        py: Python<'_>,
        columns: usize,
        b: &Bound<'_, PyAny>,
        x: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Report>> {
        let mut system = unless_busy(&self.inner)?;
        let (kind, (rows, cols)) = (system.kind(), system.shape());
        let (numbers, mut solution) = (Numbers::new(b, kind, "b")?, NumbersMut::new(x, kind, "x")?);
        let (b, bytes) = (numbers.bytes("b")?, solution.bytes("x")?);
        self.slot.take();
        let mut watching = Watching::new(self.slot.clone(), None);
        let system = &mut *system;
        let solved = interruptible(py, &self.slot, || {
            let mut watch = |at: Watch| watching.progress(at);
            system.solve_columns(columns, (b, rows), (bytes, cols), Some(&mut watch))
        });
        if let Some(exception) = self.slot.take() {
            return Err(exception);
        }
        let outcomes = solved.map_err(raised)?;
        drop(solution);
        let parts = x.call_method1("reshape", ((columns, cols),))?;
        let report = |(j, outcome)| Ok(Report::new(outcome, parts.get_item(j)?.unbind(), self.setup));
        outcomes.into_iter().enumerate().map(report).collect()
    }

    /// Solves for the right-hand side at one address in the memory of the device; that at the other receives the solution, whose array
    /// the report has.
    #[pyo3(signature = (b, x, array, from_guess, monitor=None))]
    fn solve_at(
        &self,
        py: Python<'_>,
        b: u64,
        x: u64,
        array: Py<PyAny>,
        from_guess: bool,
        monitor: Option<Py<PyAny>>,
    ) -> PyResult<Report> {
        let mut system = unless_busy(&self.inner)?;
        self.slot.take();
        let mut watching = Watching::new(self.slot.clone(), monitor);
        let system = &mut *system;
        let [of_b, of_x] = system.bytes();
        // SAFETY: the package has checked the length and the type of the arrays, which it holds; the backend checks that the
        // addresses are of its device.
        let (b, x) = unsafe { (Outside::new(b, of_b), Outside::new(x, of_x)) };
        let solved = interruptible(py, &self.slot, || {
            let mut watch = |at: Watch| watching.progress(at);
            system.solve_at(b, x, from_guess, Some(&mut watch))
        });
        if let Some(exception) = self.slot.take() {
            return Err(exception);
        }
        Ok(Report::new(solved.map_err(raised)?, array, self.setup))
    }

    /// Writes the diagonal of the inverse of `Aᴴ A` to an array, if the method estimates it. Returns whether it does.
    fn variances(&self, to: &Bound<'_, PyAny>) -> PyResult<bool> {
        let mut system = unless_busy(&self.inner)?;
        let mut to = NumbersMut::new(to, system.kind(), "the result")?;
        system.variances(to.bytes("the result")?).map_err(raised)
    }

    /// Calls a function with `x` after each iteration of the following solves, or none.
    fn observe(&self, py: Python<'_>, callback: Option<Py<PyAny>>) -> PyResult<()> {
        let mut system = unless_busy(&self.inner)?;
        let observed = callback.map(|callback| observing(system.kind(), callback, false, self.slot.clone()));
        let system = &mut *system;
        py.detach(|| system.observe(observed)).map_err(raised)
    }

    /// Gives the matrix new values on the same pattern.
    fn update_values(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut system = unless_busy(&self.inner)?;
        let data = Numbers::new(data, system.kind(), "data")?;
        let (data, system) = (data.bytes("data")?, &mut *system);
        py.detach(|| system.update_values(data)).map_err(raised)
    }

    /// `y ← A x`, or `y ← M x`.
    fn apply(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        y: &Bound<'_, PyAny>,
        preconditioner: bool,
    ) -> PyResult<()> {
        let mut system = unless_busy(&self.inner)?;
        let kind = system.kind();
        let (x, mut y) = (Numbers::new(x, kind, "x")?, NumbersMut::new(y, kind, "y")?);
        let (x, y, system) = (x.bytes("x")?, y.bytes("y")?, &mut *system);
        py.detach(|| if preconditioner { system.precondition(x, y) } else { system.product(x, y) })
            .map_err(raised)
    }

    #[getter]
    fn shape(&self) -> PyResult<(usize, usize)> {
        Ok(unless_busy(&self.inner)?.shape())
    }
    #[getter]
    fn char(&self) -> PyResult<&'static str> {
        Ok(char(unless_busy(&self.inner)?.kind()))
    }
    #[getter]
    fn device(&self) -> PyResult<(&'static str, String, usize)> {
        let system = unless_busy(&self.inner)?;
        let info = system.device().info();
        Ok((info.backend, info.name.clone(), info.units))
    }
    /// The names of the method, the preconditioner, the format and the order, each with why.
    #[getter]
    fn chosen(&self) -> PyResult<Vec<(String, String)>> {
        Ok(unless_busy(&self.inner)?.chosen().into())
    }
    #[getter]
    fn choices(&self) -> PyResult<Vec<String>> {
        Ok(unless_busy(&self.inner)?.choices())
    }
    /// Seconds of the set-up, by part.
    #[getter]
    fn setup(&self) -> PyResult<Vec<(&'static str, f64)>> {
        let parts = unless_busy(&self.inner)?.setup();
        Ok(parts.into_iter().map(|(part, time)| (part, time.as_secs_f64())).collect())
    }
}
