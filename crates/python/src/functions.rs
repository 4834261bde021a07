//! Functions: devices, lists, and the comparison of methods.
use crate::arrays::{Numbers, kind};
use crate::errors::{Slot, raised};
use crate::matrix::Matrix;
use crate::watching::{Watching, interruptible};
use lacuna::dynamic;
use lacuna::solvers::{Combined, METHODS, OptionInfo, PRECONDITIONERS};
use lacuna::{Device, Error, Result, Stop, Watch};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::ops::ControlFlow;

/// The variable with the number of threads, where a call says none.
const THREADS: &str = "LACUNA_NUM_THREADS";

/// A number of threads, as a call gives it.
pub(crate) fn thread_count(threads: Option<&Bound<'_, PyAny>>) -> PyResult<Option<usize>> {
    let Some(given) = threads else { return Ok(None) };
    let expected = || format!("threads: expected a whole number from 1, got {given:?}");
    let count: i64 = given.extract().map_err(|_| PyTypeError::new_err(expected()))?;
    let count = usize::try_from(count).ok().filter(|count| *count > 0);
    count.map(Some).ok_or_else(|| PyValueError::new_err(expected()))
}

/// Refuses a backend that this build lacks, and says to a user of Python how to get it.
fn check_built_in(name: &str) -> Result<()> {
    let backend = name.split(':').next().unwrap_or(name);
    let (there, missing): (Vec<_>, Vec<_>) = lacuna::backends().into_iter().partition(|info| info.built_in);
    let there: Vec<_> = there.iter().map(|info| info.name).collect();
    let there = there.join(", ");
    let message = match backend {
        "ranks" => format!("this package has no ranks; expected one of {there}"),
        _ if missing.iter().any(|info| info.name == backend) => format!(
            "this build of lacuna-sparse has {there}; in crates/python of its sources `maturin build --release --features {backend}` \
             builds a wheel that has {backend} too, and `./wheel.sh` one that has all backends"
        ),
        _ => return Ok(()),
    };
    Err(Error::Unsupported { operation: format!("device {name}"), message })
}

/// A device by name, with a number of threads for the CPU.
pub(crate) fn device(name: Option<&str>, threads: Option<usize>) -> Result<Device> {
    let name = name.unwrap_or("auto");
    check_built_in(name)?;
    if threads.is_some() || !(name == "auto" || name.starts_with("cpu")) || name.contains("threads=") {
        return dynamic::open(name, threads);
    }
    let Ok(text) = std::env::var(THREADS) else { return dynamic::open(name, None) };
    let count = text.parse().ok().filter(|count| *count > 0).ok_or_else(|| Error::Argument {
        what: THREADS.into(),
        message: format!("expected a whole number from 1, got `{text}`"),
    })?;
    let device = dynamic::open(name, None)?;
    if device.info().backend == "cpu" { dynamic::open(name, Some(count)) } else { Ok(device) }
}

/// Each backend with the names of its devices, or with why it has none.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> Vec<(&'static str, Vec<String>, String)> {
    py.detach(|| {
        let of = |backend: lacuna::BackendInfo| match (backend.built_in, lacuna::devices(backend.name)) {
            (false, _) => (backend.name, Vec::new(), "not built in".into()),
            (true, Ok(found)) => {
                (backend.name, found.into_iter().map(|device| device.name).collect(), String::new())
            }
            (true, Err(error)) => (backend.name, Vec::new(), error.to_string()),
        };
        lacuna::backends().into_iter().map(of).collect()
    })
}

/// A name, what it is, and its options: key, default, what each does.
type Listed = (&'static str, &'static str, Vec<(&'static str, &'static str, &'static str)>);

fn options(list: &[OptionInfo]) -> Vec<(&'static str, &'static str, &'static str)> {
    list.iter().map(|option| (option.key, option.default, option.about)).collect()
}

/// What a method may be called besides the names of the lists.
const AUTOMATIC: [(&str, &str); 2] = [
    ("auto", "chosen by the structure of the matrix; where it falls short, others are tried"),
    (
        "tune",
        "what `advise` found to be fastest for this structure, with its preconditioner; as auto without that",
    ),
];

/// The methods by name, all that a solver takes.
#[pyfunction]
pub(crate) fn methods() -> Vec<Listed> {
    let automatic = AUTOMATIC.iter().map(|(name, about)| (*name, *about, Vec::new()));
    let listed = METHODS.iter().map(|info| (info.name, info.about, options(info.options)));
    let combined = Combined::all().map(|info| (info.name, info.about, options(info.options())));
    automatic.chain(listed).chain(combined).collect()
}

/// The preconditioners by name.
#[pyfunction]
pub(crate) fn preconditioners() -> Vec<Listed> {
    PRECONDITIONERS.iter().map(|info| (info.name, info.about, options(info.options))).collect()
}

/// The 2-norm of an array.
#[pyfunction]
pub(crate) fn norm(char: &str, array: &Bound<'_, PyAny>) -> PyResult<f64> {
    let kind = kind(char)?;
    let numbers = Numbers::new(array, kind, "a vector")?;
    dynamic::norm(kind, numbers.bytes("a vector")?).map_err(raised)
}

/// A trial: the method, the preconditioner, seconds of set-up and solve, iterations, the true residual, and how it ended.
type Tried = (String, String, f64, f64, u64, f64, String);

/// Tries methods and preconditioners on a system, the fastest first.
#[pyfunction]
pub(crate) fn advise(
    py: Python<'_>,
    matrix: &Matrix,
    b: &Bound<'_, PyAny>,
    rtol: f64,
    seconds: f64,
    device_name: Option<&str>,
    threads: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Tried>> {
    let threads = thread_count(threads)?;
    let numbers = Numbers::new(b, matrix.0.kind(), "b")?;
    let b = numbers.bytes("b")?;
    let slot = Slot::default();
    let mut watching = Watching::new(slot.clone(), None);
    let trials = interruptible(py, &slot, || {
        let dev = device(device_name, threads)?;
        let mut watch = |_: (&str, &str), _: Option<Watch>| -> ControlFlow<()> { watching.signals() };
        dynamic::advise(&dev, &matrix.0, b, Stop::default().rtol(rtol), seconds, &mut watch)
    });
    if let Some(exception) = slot.take() {
        return Err(exception);
    }
    let tried = |trial: lacuna::Trial| {
        let (setup, again) = (trial.setup.as_secs_f64(), trial.again().as_secs_f64());
        let (iterations, residual, ended) = match &trial.outcome {
            Ok(outcome) => (outcome.iterations, outcome.true_residual, outcome.reason.to_string()),
            Err(error) => (0, f64::NAN, error.to_string()),
        };
        (trial.method, trial.preconditioner, setup, again, iterations, residual, ended)
    };
    Ok(trials.map_err(raised)?.into_iter().map(tried).collect())
}
