//! Finds the method and preconditioner that solve a system fastest, by trying the plausible ones.
use crate::remembered_method::RememberedMethod;
use crate::{AsVector, LinearSystem};
use lacuna_engine::{Device, Error, Reason, Result, Scalar};
use lacuna_formats::{Csr, interrupt};
use lacuna_solvers::auto::{Asked, Candidate, Facts, When, plan};
use lacuna_solvers::{Combined, Options, Outcome, SetupProgress, Stop, Watch};
use ndarray::{Array1, ArrayView1};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Once a trial has solved the system, each other one gets this multiple of its time, and at least the
/// minimum.
const LENIENCE: u32 = 4;
const LEAST: Duration = Duration::from_millis(200);

/// A trial of a method with a preconditioner, by name.
#[derive(Debug)]
#[non_exhaustive]
pub struct Trial {
    /// The method; `auto` for the automatic choice.
    pub method: String,
    /// The preconditioner; `auto` if it goes with the method.
    pub preconditioner: String,
    /// Time to prepare the solve.
    pub setup: Duration,
    /// How the solve ended, [`Reason::Cancelled`] if it took too long; or the error that prevented it.
    pub outcome: Result<Outcome>,
}

impl Trial {
    /// Whether it solved the system.
    pub fn converged(&self) -> bool {
        self.outcome.as_ref().is_ok_and(Outcome::converged)
    }
    /// Whether it was stopped because it took too long.
    pub fn given_up(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|outcome| outcome.reason == Reason::Cancelled)
    }
    /// Time of the solve without its preparation, which is the time for another right-hand side.
    pub fn again(&self) -> Duration {
        self.outcome.as_ref().map_or(Duration::ZERO, |outcome| outcome.time)
    }
    /// Time from the matrix to the solution.
    pub fn total(&self) -> Duration {
        self.setup + self.again()
    }
    /// Points of seconds since the start of the preparation and the relative residual by the method's
    /// recurrence. Iterations are assumed to take equal times.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let Ok(outcome) = &self.outcome else { return Vec::new() };
        let each = outcome.time.as_secs_f64() / outcome.iterations.max(1) as f64;
        let at = |k: usize| self.setup.as_secs_f64() + each * k as f64 * outcome.history_stride as f64;
        outcome.history.iter().enumerate().map(|(k, residual)| (at(k), *residual)).collect()
    }
    /// The options of `lacuna solve` for this trial.
    pub fn options(&self) -> String {
        match (&*self.method, &*self.preconditioner) {
            ("auto", _) => String::new(),
            (method, "auto") => format!("--method {method}"),
            (method, preconditioner) => format!("--method {method} --precond {preconditioner}"),
        }
    }
    /// The Rust expression for this trial.
    pub fn expression(&self) -> String {
        match (&*self.method, &*self.preconditioner) {
            ("auto", _) => "LinearSystem::new(a)".into(),
            (method, "auto") => format!("LinearSystem::new(a).method({method:?})"),
            (method, preconditioner) => {
                format!("LinearSystem::new(a).method({method:?}).preconditioner({preconditioner:?})")
            }
        }
    }
}

/// A callback that receives the names of the method and preconditioner being tried, and the progress of the
/// solve.
pub type Trying<'a> = dyn FnMut((&str, &str), Option<Watch>) -> ControlFlow<()> + 'a;

/// A method and a preconditioner by name.
type Names = (String, String);

/// The automatic choice, then pairs of methods and preconditioners that may suit a matrix, by increasing set-up cost.
fn plausible<T: Scalar>(a: &Arc<Csr<T>>, on_host: bool) -> Result<Vec<Names>> {
    let mut facts = Facts::of(a.clone(), on_host);
    let plan = plan(&mut facts, &Asked::nothing(&Options::default()))?;
    let names = |candidate: &Candidate| {
        let preconditioner = candidate.preconditioner.as_ref().map_or("auto", |chosen| &chosen.name);
        (candidate.method.name.clone(), preconditioner.into())
    };
    let automatic = ("auto".into(), "auto".into());
    Ok([automatic].into_iter().chain(plan.others(When::Trial).map(names)).collect())
}

/// Runs one iteration, so that threads, memory and kernels are ready before the first trial.
fn warm<T: Scalar>(dev: &Device, a: &Arc<Csr<T>>, b: ArrayView1<'_, T>) -> Result<()> {
    let stop = Stop::default().max_iters(1);
    let system = LinearSystem::new(a.clone()).preconditioner("none").stop(stop);
    let ran = system.on(dev).prepare().and_then(|mut system| system.solve(b).map(drop));
    ran.or_else(|error| match error {
        Error::Cancelled { .. } => Err(error),
        error if error.is_device_failure() => Err(error),
        _ => Ok(()),
    })
}

/// Tries the automatic choice and what else the structure of the matrix allows, each from zero, and returns all trials: first those that solved
/// the system, by their total time. The fastest is remembered for the method `tune`, see
/// [`LinearSystem::method`].
///
/// Each gets at most `seconds` of iterations, and once one has solved the system, at most a few times the
/// time which that took, for which set-ups are not interrupted. `watch` is called before each trial with its names, and
/// from time to time while it is set up and runs; returning `Break` ends the search.
///
/// ```
/// use lacuna::prelude::*;
/// use std::ops::ControlFlow;
///
/// let a = Spec::parse("gen:poisson2d:40x40")?.build::<f64>()?;
/// let b = Array1::ones(a.rows());
/// let stop = Stop::default().rtol(1e-8);
/// let mut watch = |_: (&str, &str), _| ControlFlow::Continue(());
/// let trials = lacuna::advise(&default_device()?, a, &b, stop, 1.0, &mut watch)?;
/// println!("{}", trials[0].expression());
/// assert!(trials[0].converged());
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// [`Error::Length`] for `b`, those of [`interrupt::check`], device failures. An error of a preconditioner becomes the outcome of its trial.
pub fn advise<T: Scalar>(
    dev: &Device,
    a: impl Into<Arc<Csr<T>>>,
    b: impl AsVector<T>,
    stop: Stop,
    seconds: f64,
    watch: &mut Trying<'_>,
) -> Result<Vec<Trial>> {
    let (a, b) = (a.into(), b.as_vector());
    Error::check_fits("advise on a solve", (a.rows(), a.cols()), "b", a.rows(), b.len())?;
    let most = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let mut trials: Vec<Trial> = Vec::new();
    warm(dev, &a, b)?;
    let on_host = dev.info().memory.is_none();
    for (method, preconditioner) in plausible(&a, on_host)? {
        let names = (&*method, &*preconditioner);
        interrupt::check()?;
        if watch(names, None).is_break() {
            break;
        }
        let best = trials.iter().filter(|trial| trial.converged()).map(Trial::total).min();
        let limit = best.map_or(most, |best| most.min((LENIENCE * best).max(LEAST)));
        let start = Instant::now();
        let system = LinearSystem::new(a.clone()).method(&method).preconditioner(&preconditioner).stop(stop);
        let (mut setup, mut ended) = (Duration::ZERO, false);
        let solve = || {
            let begun = Watch::new(0, f64::NAN);
            let mut setting_up = |_: SetupProgress| {
                let flow = watch(names, Some(begun));
                ended |= flow.is_break();
                flow
            };
            let mut prepared = system.on(dev).prepare_watched(&mut setting_up)?;
            setup = start.elapsed();
            let solving = Instant::now();
            let mut x = Array1::zeros(a.cols());
            let mut limited = |at: Watch| {
                ended |= watch(names, Some(at)).is_break();
                let over = ended || solving.elapsed() > limit;
                if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            prepared.solve_watched(b, x.view_mut(), Some(&mut limited)).cloned()
        };
        let outcome = match solve() {
            Err(error) if error.is_device_failure() => return Err(error),
            outcome => outcome,
        };
        trials.push(Trial { method, preconditioner, setup, outcome });
        if ended {
            break;
        }
    }
    let rank = |trial: &Trial| (!trial.converged(), trial.outcome.is_err(), trial.total());
    trials.sort_by_key(rank);
    let fastest = trials.iter().find(|trial| trial.method != "auto").filter(|trial| trial.converged());
    if let Some(Trial { method, preconditioner, .. }) = fastest {
        match Combined::named(method) {
            Some((_, own)) => RememberedMethod::of(dev, &*a).keep(Combined::METHOD, &own),
            None => RememberedMethod::of(dev, &*a).keep(method, preconditioner),
        }
    }
    Ok(trials)
}
