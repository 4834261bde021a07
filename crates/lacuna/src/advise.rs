//! Finds the method and preconditioner that solve a system fastest, by trying the plausible ones.
use crate::factor::{factor_of, times};
use crate::remembered_method::Memory;
use crate::settings::RICHARDSON;
use crate::{AsVector, LinearSystem};
use lacuna_engine::{Backend, Error, Reason, Result, Scalar, compiled_here};
use lacuna_formats::{Csr, Structure};
use lacuna_solvers::{Combined, Multigrid, Outcome, PRECONDITIONERS, Stop, Watch};
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
pub struct Trial {
    /// The method; `auto` for the automatic choice.
    pub method: &'static str,
    /// The preconditioner; `auto` if it goes with the method.
    pub preconditioner: &'static str,
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
        match (self.method, self.preconditioner) {
            ("auto", _) => String::new(),
            (method, "auto") => format!("--method {method}"),
            (method, preconditioner) => format!("--method {method} --precond {preconditioner}"),
        }
    }
    /// The Rust expression for this trial.
    pub fn expression(&self) -> String {
        match (self.method, self.preconditioner) {
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

/// Pairs of methods and preconditioners that may suit a matrix: `auto` first, then by increasing set-up cost.
pub fn plausible<T: Scalar>(a: &Csr<T>) -> Vec<(&'static str, &'static str)> {
    compiled_here!(T, |a: &Csr<T>| -> Vec<(&'static str, &'static str)> {
        let mut ways = vec![("auto", "auto")];
        if a.rows() != a.cols() {
            ways.extend([("lsmr", "none"), ("lsqr", "none"), ("cgls", "none")]);
            return ways;
        }
        let s = Structure::of(a);
        let diagonal = if s.zero_diagonal == 0 { "jacobi" } else { "none" };
        let direct = PRECONDITIONERS.iter().any(|kind| kind.name == "direct").then_some(("direct", "auto"));
        let factor = factor_of(a, true, false);
        if s.hermitian && (s.diagonal_positive || factor.negative) {
            ways.extend([("cg", diagonal), ("minres", "none")]);
            ways.extend(["chebyshev", "ssor", "ic0", "fsai", "amg"].map(|kind| ("cg", kind)));
            let grid = match factor.negative {
                false => Multigrid::grid(a),
                true => times(factor, Arc::new(a.clone())).ok().and_then(|a| Multigrid::grid(&a)),
            };
            ways.extend(grid.map(|_| ("cg", Multigrid::NAME)));
            ways.extend(direct);
            return ways;
        }
        if s.hermitian {
            ways.push(("minres", "none"));
        }
        ways.extend([("bicgstab", diagonal), ("idr", diagonal), ("gmres", diagonal)]);
        if s.zero_diagonal == 0 {
            ways.extend([("bicgstab", "ilu0"), ("bicgstab", "block-ilu")]);
            ways.extend(s.diagonally_dominant.then_some(("bicgstab", "amg")));
        }
        ways.push(("gmres:restart=50", "ilut"));
        ways.extend(direct);
        ways
    })(a)
}

/// Runs one iteration, so that threads, memory and kernels are ready before the first trial.
fn warm<T: Scalar, B: Backend>(dev: &mut B, a: &Arc<Csr<T>>, b: ArrayView1<'_, T>) -> Result<()> {
    let mark = dev.mark();
    let stop = Stop { max_iters: 1, ..Stop::default() };
    let system = LinearSystem::new(a.clone()).preconditioner("none").stop(stop);
    let ran = system.prepare(dev).and_then(|mut system| system.solve(dev, b).map(drop));
    dev.release(mark);
    ran.or_else(|error| if error.is_device_failure() { Err(error) } else { Ok(()) })
}

/// Tries the pairs listed by [`plausible`], each from zero, and returns all trials: first those that solved
/// the system, by their total time. The fastest is remembered for the method `tune`, see
/// [`LinearSystem::method`].
///
/// Each gets at most `seconds` of iterations, and once one has solved the system, at most a few times the
/// time which that took. Set-ups are not interrupted. `watch` is called before each trial with its names, and
/// from time to time while it runs; returning `Break` ends the search.
///
/// ```
/// use lacuna::prelude::*;
/// use std::ops::ControlFlow;
///
/// let a = Spec::parse("gen:poisson2d:40x40")?.build::<f64>()?;
/// let b = Array1::ones(a.rows());
/// let stop = Stop { rtol: 1e-8, ..Stop::default() };
/// let mut watch = |_: (&str, &str), _| ControlFlow::Continue(());
/// let trials = lacuna::advise(&mut default_backend()?, a, &b, stop, 1.0, &mut watch)?;
/// println!("{}", trials[0].expression());
/// assert!(trials[0].converged());
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// [`Error::Length`] for `b`, device failures. An error of a preconditioner becomes the outcome of its trial.
pub fn advise<T: Scalar, B: Backend>(
    dev: &mut B,
    a: impl Into<Arc<Csr<T>>>,
    b: impl AsVector<T>,
    stop: Stop,
    seconds: f64,
    watch: &mut Trying<'_>,
) -> Result<Vec<Trial>> {
    let (a, b) = (a.into(), b.as_vector());
    Error::check_length("advise", "b", a.rows(), b.len())?;
    let most = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let mut trials: Vec<Trial> = Vec::new();
    warm(dev, &a, b)?;
    for names @ (method, preconditioner) in plausible(&*a) {
        if watch(names, None).is_break() {
            break;
        }
        let best = trials.iter().filter(|trial| trial.converged()).map(Trial::total).min();
        let limit = best.map_or(most, |best| most.min((LENIENCE * best).max(LEAST)));
        let start = Instant::now();
        let mark = dev.mark();
        let system = LinearSystem::new(a.clone()).method(method).preconditioner(preconditioner).stop(stop);
        let (mut setup, mut ended) = (Duration::ZERO, false);
        let solve = || {
            let mut prepared = system.prepare(dev)?;
            setup = start.elapsed();
            let solving = Instant::now();
            let mut x = Array1::zeros(a.cols());
            let mut limited = |at: Watch| {
                ended |= watch(names, Some(at)).is_break();
                let over = ended || solving.elapsed() > limit;
                if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            prepared.solve_watched(dev, b, x.view_mut(), Some(&mut limited)).cloned()
        };
        let outcome = solve();
        dev.release(mark);
        let outcome = match outcome {
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
            Some((_, own)) => Memory::of(dev, &*a).keep(RICHARDSON, &own),
            None => Memory::of(dev, &*a).keep(method, preconditioner),
        }
    }
    Ok(trials)
}
