//! Measures one method on one system by the protocol of Rupp et al. 2016 (doi:10.1145/2907944): all costs included
//! except the matrix; then the parts separately.
use crate::calls::Unfused;
use crate::system::Typed;
use crate::target::PreparedCase;
use crate::{GMRES_ONCE, Measured, Samples, Task, calls, four_digits};
use fnv::FnvHasher;
use lacuna::formats::convert;
use lacuna::solvers::{self, Combined, Gmres, Orthogonalization, preconditioner};
use lacuna::{Device, LinOp, Method, Options, Outcome, Pair, Placed, Result, Scalar};
use lacuna::{Setup, Solver, Stop};
use std::hash::Hasher;
use std::sync::Arc;
use std::time::Instant;

/// The largest number of residuals kept per solve.
const HISTORY: usize = 400;

/// A prepared solve.
pub(crate) struct Solves<T: Scalar> {
    dev: Device,
    method: Box<dyn Method<T>>,
    a: Pair<T>,
    m: Option<Placed<T>>,
    stop: Stop,
    solver: Solver<T>,
    b: Vec<T>,
    /// The starting guess.
    guess: Vec<T>,
    x: Vec<T>,
    outcome: Outcome,
    largest_error: f64,
    /// The real parts of the solution, if they are to be kept.
    solution: Vec<f64>,
    first: Bits,
    reproducible: bool,
    upload: f64,
    first_setup: f64,
    fresh: Samples,
    setup: Samples,
    again: Samples,
    transfers: Samples,
    on_device: Samples,
}

/// Digests of a solution and of its residuals.
#[derive(Clone, Copy, PartialEq)]
struct Bits {
    x: u64,
    history: u64,
}

impl Bits {
    fn of<T: Scalar>(x: &[T], outcome: &Outcome) -> Self {
        Bits { x: digest(x), history: digest(&outcome.history) }
    }
}

/// A hash of the bits of numbers, the same on every machine.
pub fn digest<T: Scalar>(values: &[T]) -> u64 {
    let mut hasher = FnvHasher::default();
    for value in values {
        hasher.write(&value.re().to_bits().to_le_bytes());
        if T::KIND.is_complex() {
            hasher.write(&value.im().to_bits().to_le_bytes());
        }
    }
    hasher.finish()
}

impl<T: Scalar> Solves<T> {
    pub(crate) fn new(dev: &Device, system: &Typed<T>, task: &Task) -> Result<Self> {
        let stored = system.in_format(&task.format)?;
        let start = Instant::now();
        let a = dev.matrix(stored)?;
        let upload = start.elapsed().as_secs_f64();
        let own = Combined::named(&task.method).map(|(_, own)| own);
        let kind = preconditioner(own.as_deref().unwrap_or(&task.precond))?;
        let m = kind.map(|kind| Placed::new(dev, kind, &system.a, *a, Setup::new())).transpose()?;
        let method = match own {
            Some(_) => solvers::method(Combined::METHOD, &Options::default())?,
            None => named::<T>(task)?,
        };
        let method = if task.unfused { Box::new(Unfused(method)) } else { method };
        let adjoint = match method.needs_adjoint() {
            true => dev.matrix(convert(&Arc::new(system.a.adjoint()), &task.format)?)?,
            false => a.clone(),
        };
        let a = Pair { a, adjoint };
        let start = Instant::now();
        let mut solver = make(dev, &a, &m, &*method, task.stop)?;
        let first_setup = start.elapsed().as_secs_f64();
        let (b, guess) = (system.b.clone(), system.guess());
        let mut x = guess.clone();
        let outcome = solver.solve(&b, &mut x)?.clone();
        let largest_error = solvers::residual(&system.a, &b, &x).largest;
        let solution = if task.keeps_solution { x.iter().map(|v| v.re()).collect() } else { Vec::new() };
        let first = Bits::of(&x, &outcome);
        let (fresh, setup, again, transfers, on_device) = Default::default();
        let (reproducible, stop) = (true, task.stop);
        Ok(Solves {
            dev: dev.clone(),
            method,
            a,
            m,
            stop,
            solver,
            b,
            guess,
            x,
            outcome,
            largest_error,
            solution,
            first,
            reproducible,
            upload,
            first_setup,
            fresh,
            setup,
            again,
            transfers,
            on_device,
        })
    }
}

impl<T: Scalar> PreparedCase for Solves<T> {
    fn round(&mut self) -> Result<()> {
        let Solves { dev, method, a, m, stop, solver, b, guess, x, first, reproducible, .. } = self;
        // One uncounted solve of each kind runs first, as for the peers: it meets the memory and the caches
        // in the state left by the previous measurement.
        let anew = |x: &mut [T], setups: &mut Samples| -> Result<_> {
            x.copy_from_slice(guess);
            let start = Instant::now();
            let mut solver = make(dev, a, m, &**method, *stop)?;
            setups.push(start.elapsed().as_secs_f64());
            solver.solve(b, x)?;
            Ok(start.elapsed())
        };
        let mut setups = Samples::default();
        anew(x, &mut Samples::default())?;
        self.fresh.round(|| anew(x, &mut setups))?;
        self.setup.push(setups.median());
        *reproducible &= digest(x) == first.x;
        let mut once_more = |x: &mut [T]| -> Result<_> {
            x.copy_from_slice(guess);
            let start = Instant::now();
            let outcome = solver.solve(b, x)?;
            let time = start.elapsed();
            *reproducible &= Bits::of(x, outcome) == *first;
            Ok(time)
        };
        once_more(x)?;
        self.again.round(|| once_more(x))?;
        x.copy_from_slice(guess);
        let mut transferred = Samples::default();
        self.on_device.round(|| -> Result<_> {
            let start = Instant::now();
            dev.upload(b, solver.b())?;
            dev.upload(x, solver.x())?;
            dev.download(solver.x(), x)?;
            transferred.push(start.elapsed().as_secs_f64());
            let start = Instant::now();
            solver.solve_on_device(None)?;
            Ok(start.elapsed())
        })?;
        self.transfers.push(transferred.median());
        Ok(())
    }

    fn measured(&self) -> Option<Measured> {
        let outcome = &self.outcome;
        let (history, history_stride) = thinned(outcome);
        Some(Measured {
            iterations: outcome.iterations,
            bytes: self.solver.program().bytes_of_solve(outcome.iterations, outcome.restarts),
            fresh: self.fresh.timing(),
            again: self.again.timing()?,
            on_device: self.on_device.timing(),
            setup: self.setup.timing(),
            transfers: self.transfers.timing(),
            first_setup: four_digits(self.first_setup),
            upload: Some(four_digits(self.upload)),
            outcome: Some(outcome.reason.name().into()),
            true_residual: Some(four_digits(outcome.true_residual)).filter(|r| r.is_finite()),
            residual: Some(outcome.residual).filter(|r| r.is_finite()),
            largest_error: Some(four_digits(self.largest_error)).filter(|error| error.is_finite()),
            solution: self.solution.clone(),
            x_bits: Some(format!("{:016x}", self.first.x)),
            history_bits: Some(format!("{:016x}", self.first.history)),
            reproducible: self.reproducible,
            history,
            history_stride,
        })
    }
}

fn make<T: Scalar>(
    dev: &Device,
    a: &Pair<T>,
    m: &Option<Placed<T>>,
    method: &dyn Method<T>,
    stop: Stop,
) -> Result<Solver<T>> {
    Solver::new(dev, a, m.as_ref().map(|m| m as &dyn LinOp<T>), method, stop)
}

fn named<T: Scalar>(task: &Task) -> Result<Box<dyn Method<T>>> {
    if task.method == GMRES_ONCE {
        let mut gmres = Gmres::default();
        gmres.cycle.orthogonalization = Orthogonalization::Classical;
        gmres.cycle.restart = task.restart.unwrap_or(gmres.cycle.restart);
        return Ok(Box::new(gmres));
    }
    if let Some(method) = calls::named(&task.method) {
        return Ok(method);
    }
    solvers::method(&task.method, &Options::default().restart(task.restart))
}

/// The residuals of a solve, thinned to at most [`HISTORY`].
fn thinned(outcome: &Outcome) -> (Vec<f64>, u64) {
    let every = outcome.history.len().div_ceil(HISTORY).max(1);
    let kept = outcome.history.iter().step_by(every).map(|&r| four_digits(r));
    (kept.map(|r| if r.is_finite() { r } else { f64::MAX }).collect(), outcome.history_stride * every as u64)
}
