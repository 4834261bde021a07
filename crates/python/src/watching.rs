//! Looking for signals, and for what a monitor says, while something runs without the GIL.
use crate::errors::Slot;
use lacuna::formats::interrupt;
use lacuna::{Error, Watch};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Signals are looked for no more often than this.
const BETWEEN: Duration = Duration::from_millis(20);

/// Who watches a call.
pub(crate) struct Watching {
    slot: Slot,
    monitor: Option<Py<PyAny>>,
    last: Instant,
}

impl Watching {
    pub(crate) fn new(slot: Slot, monitor: Option<Py<PyAny>>) -> Self {
        Watching { slot, monitor, last: Instant::now() }
    }

    /// Whether to go on; an exception is kept in the slot.
    pub(crate) fn signals(&mut self) -> ControlFlow<()> {
        if self.slot.is_full() {
            return ControlFlow::Break(());
        }
        if self.last.elapsed() < BETWEEN {
            return ControlFlow::Continue(());
        }
        self.last = Instant::now();
        self.ask(|py, _| py.check_signals().map(|()| false))
    }

    /// The same within a solve; the monitor is told.
    pub(crate) fn progress(&mut self, at: Watch) -> ControlFlow<()> {
        if self.monitor.is_none() {
            return self.signals();
        }
        self.ask(|py, monitor| {
            py.check_signals()?;
            let Some(monitor) = monitor else { return Ok(false) };
            let answer = monitor.bind(py).call1((at.iterations, at.residual))?;
            Ok(is_true(&answer))
        })
    }

    fn ask(&self, ask: impl FnOnce(Python<'_>, Option<&Py<PyAny>>) -> PyResult<bool>) -> ControlFlow<()> {
        match Python::attach(|py| ask(py, self.monitor.as_ref())) {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => ControlFlow::Break(()),
            Err(exception) => {
                self.slot.keep(exception);
                ControlFlow::Break(())
            }
        }
    }
}

/// Does something without the GIL that signals may end.
pub(crate) fn interruptible<R: Send>(py: Python<'_>, slot: &Slot, work: impl FnOnce() -> R + Send) -> R {
    let mut watching = Watching::new(slot.clone(), None);
    py.detach(|| {
        let mut check = || match watching.signals() {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Cancelled { operation: "work on the host".into() }),
        };
        interrupt::checked(&mut check, work)
    })
}

/// Whether a callback returned `True`, of Python or of NumPy, and nothing else that counts as true.
pub(crate) fn is_true(answer: &Bound<'_, PyAny>) -> bool {
    answer.is(pyo3::types::PyBool::new(answer.py(), true).as_any())
        || (answer.get_type().name().is_ok_and(|name| name == "bool" || name == "bool_")
            && answer.is_truthy().unwrap_or(false))
}
