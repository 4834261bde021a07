//! A solver for one matrix: vectors, cells and program, reused for any number of right-hand sides.
mod transfer;

use crate::observed::Observed;
use crate::observer::Observing;
use crate::scale::{largest, norm, scaling_exponent};
use crate::system::MaxNorm;
use crate::{Factor, Method, Needs, Norm, Observer, Outcome, Stop, System, Watch};
use lacuna_engine::{
    Cell, Device, Error, Expr, Finish, Formula, History, LinOp, Pass, Plan, PlanId, Program, Progress,
    Reason, Recorder, Result, Run, Scalar, Vector,
};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
pub(crate) use transfer::Loaded;
use transfer::{is_result, no_worse};

/// A method prepared for a system. Solving for a second right-hand side allocates nothing on the device and
/// compiles nothing.
///
/// It chooses nothing and continues with nothing else; `LinearSystem` of the crate `lacuna` does.
///
/// ```
/// use lacuna_engine::{Device, Reference};
/// use lacuna_io::Spec;
/// use lacuna_solvers::{Cg, Solver, Stop};
/// use std::sync::Arc;
///
/// let dev = Device::new(Reference::new());
/// let a = dev.matrix(Arc::new(Spec::parse("gen:poisson2d:10x10")?.build::<f64>()?))?;
/// let mut solver = Solver::new(&dev, &*a, None, &Cg, Stop::default())?;
/// let mut x = [0.0; 100];
/// solver.solve(&[1.0; 100], &mut x)?.ok()?;
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
pub struct Solver<T: Scalar> {
    plan: Plan,
    b: Vector<T>,
    x: Vector<T>,
    /// The best confirmed iterate, if the method keeps it.
    kept: Option<Vector<T>>,
    variances: Option<Vector<T>>,
    bb: Cell<T>,
    best: Cell<T>,
    /// Estimates of the squares of the norm and the condition number.
    estimates: [Cell<T>; 2],
    rtol2: Cell<T>,
    atol2: Cell<T>,
    dtol2: Cell<T>,
    norm2: Cell<T>,
    max: Option<MaxNorm<T>>,
    stop: Stop,
    /// A bound on the norm of the operator on the device, 0 if none is known.
    norm: f64,
    operator: Factor,
    /// Whether right-hand sides are scaled for the narrower type.
    narrow: bool,
    history: History,
    outcome: Outcome,
    least_squares: bool,
    /// A nonzero guess, saved while the caller's array holds the result.
    guess: Vec<T>,
    ignores_preconditioner: bool,
    observer: Option<Observer<T>>,
}

impl<T: Scalar> Solver<T> {
    /// Prepares a method for `A x = b` with a preconditioner `M ≈ A⁻¹` or none, or a least-squares method for
    /// `min ‖b − A x‖`. For the latter `M` has as many rows and columns as `A` has columns, and should make the
    /// columns of `A M` more nearly orthonormal.
    ///
    /// # Errors
    /// [`Error::Shape`] if the method needs a square `A` and it is not, or if `M` does not have as many rows
    /// and columns as `A` has columns; [`Error::Unsupported`] for a preconditioner with a method that needs
    /// [`Needs::Range`], and for a least-squares method with the maximum norm; [`Error::Argument`] for a tolerance that is negative or NaN; errors of recording and
    /// planning.
    pub fn new(
        dev: &Device,
        a: &dyn LinOp<T>,
        m: Option<&dyn LinOp<T>>,
        method: &dyn Method<T>,
        stop: Stop,
    ) -> Result<Self> {
        Self::observed(dev, a, m, method, stop, None)
    }

    /// [`Solver::new`] with somebody who sees each iteration.
    ///
    /// # Errors
    /// As there.
    pub fn observed(
        dev: &Device,
        a: &dyn LinOp<T>,
        m: Option<&dyn LinOp<T>>,
        method: &dyn Method<T>,
        stop: Stop,
        observer: Option<Observer<T>>,
    ) -> Result<Self> {
        let (rows, cols) = a.shape();
        let least_squares = method.least_squares();
        if rows != cols && !least_squares {
            let expected = format!("a square matrix for {} (lsmr takes any)", method.name());
            return Err(Error::Shape { operation: "solve".into(), expected, got: (rows, cols) });
        }
        if m.is_some() && method.info().needs == Needs::Range {
            let operation = format!("{} with a preconditioner", method.name());
            let message =
                "it would change the norm that the solution minimises; lsmr and lsqr take one".into();
            return Err(Error::Unsupported { operation, message });
        }
        if let Some(m) = m
            && m.shape() != (cols, cols)
        {
            let expected = format!("a {cols}x{cols} preconditioner");
            return Err(Error::Shape { operation: "solve".into(), expected, got: m.shape() });
        }
        for (what, value) in [("rtol", stop.rtol), ("atol", stop.atol), ("dtol", stop.dtol)] {
            if value.is_nan() || value < 0.0 {
                let message = format!("expected a number of at least 0, got {value}");
                return Err(Error::Argument { what: what.into(), message });
            }
        }
        if least_squares && stop.norm == Norm::Max {
            let message = "least squares are tested in the 2-norm".into();
            return Err(Error::Unsupported { operation: "the maximum norm".into(), message });
        }
        let mut k = Recorder::new(dev, method.name());
        a.keep(&mut k);
        let observed = m.map(Observed::new);
        let m = observed.as_ref().map(|m| m as &dyn LinOp<T>);
        m.iter().for_each(|m| m.keep(&mut k));
        let (b, x) = (k.vector(rows), k.vector(cols));
        let [bb, target, goal, norm2, rtol2, atol2, dtol2, diverged, last, shrink, best] = k.cells();
        let estimates @ [norm_a2, cond_a2] = k.cells();
        let kept = method.keeps_best().then(|| k.vector(cols));
        if method.estimates_variances() && T::KIND.is_complex() {
            let message = "expected a real matrix for estimates of variances".into();
            return Err(Error::Unsupported { operation: method.name().into(), message });
        }
        let variances = method.estimates_variances().then(|| k.vector(cols));
        let max = (stop.norm == Norm::Max).then(|| {
            let [of_b, of_r, limit, goal, first] = k.cells();
            MaxNorm { of_b, of_r, limit, goal, first }
        });
        let system = System {
            a,
            m,
            b,
            x,
            bb,
            target,
            goal,
            norm2,
            rtol2,
            atol2,
            dtol2,
            diverged,
            last,
            shrink,
            kept,
            best,
            norm_a2,
            cond_a2,
            variances,
            max,
            observer: observer.as_ref().map(|o| o as &dyn Observing),
        };
        system.begin(&mut k, least_squares);
        k.multi_axpy_dot(Pass::new("shrink").eval(shrink, Formula::from(method.shrink())));
        method.record(&mut k, &system);
        system.show_iterates(&mut k);
        let ignores_preconditioner = observed.as_ref().is_some_and(|m| !m.is_used());
        let program = k.finish()?;
        let plan = dev.plan(program)?;
        Ok(Solver {
            plan,
            b,
            x,
            kept,
            variances,
            bb,
            best,
            estimates,
            rtol2,
            atol2,
            dtol2,
            norm2,
            max,
            stop,
            norm: 0.0,
            operator: Factor::default(),
            narrow: false,
            history: History::default(),
            outcome: Outcome::default(),
            least_squares,
            guess: Vec::new(),
            ignores_preconditioner,
            observer,
        })
    }

    /// Whether the method was given a preconditioner and records no use of it.
    pub fn ignores_preconditioner(&self) -> bool {
        self.ignores_preconditioner
    }

    /// States that the operator on the device is a multiple of the caller's. Right-hand sides, guesses and
    /// solutions remain those of the caller.
    pub fn set_factor(&mut self, operator: Factor) {
        self.operator = operator;
    }

    /// States a bound on the 2-norm of the operator on the device, such as [`norm_bound`](crate::norm_bound). Stationary methods
    /// and `minres` then end with [`Reason::AccuracyAttained`] once what is left of the residual consists of rounding errors.
    pub fn set_norm(&mut self, norm: f64) {
        self.norm = norm;
    }

    /// States that the preconditioner stores vectors in the narrower type: right-hand sides outside the range of that type, in
    /// which they would become 0 or infinite, are scaled too.
    pub fn set_narrow(&mut self, narrow: bool) {
        self.narrow = narrow;
    }

    /// The exponent of the power of two for a right-hand side of this size.
    fn exponent(&self, largest: f64) -> i32 {
        if self.narrow { scaling_exponent::<T::Narrow>(largest) } else { scaling_exponent::<T>(largest) }
    }

    /// The factors by which the right-hand side `b` and its solution are multiplied on the device.
    pub fn factors(&self, b: &[T]) -> [Factor; 2] {
        let largest = largest(b);
        let exponent = if largest > 0.0 { self.exponent(largest) } else { 0 };
        [
            Factor { exponent, ..self.operator },
            Factor { exponent: exponent - self.operator.exponent, negative: false },
        ]
    }

    /// The right-hand side on the device, for callers that compute it there.
    pub fn b(&self) -> Vector<T> {
        self.b
    }
    /// The starting guess, later the solution, on the device.
    pub fn x(&self) -> Vector<T> {
        self.x
    }
    /// The diagonal of `(Aᴴ A)⁻¹`, as far as the last solve found it, if the method estimates it: the variances of the unknowns of a
    /// least-squares problem, but for the factor of the noise. In the caller's scale.
    ///
    /// # Errors
    /// Device failures.
    pub fn variances(&self) -> Result<Option<Vec<T>>> {
        let Some(vector) = self.variances else { return Ok(None) };
        let mut found = vec![T::zero(); vector.len];
        self.plan.device().download(vector, &mut found)?;
        let exponent = 2 * self.operator.exponent;
        found.iter_mut().for_each(|v| *v = v.scale_by_power_of_two(exponent));
        Ok(Some(found))
    }
    /// The program that runs.
    pub fn program(&self) -> &Program {
        self.plan.program()
    }
    /// The plan of that program: another one whenever the solve is recorded again.
    pub fn id(&self) -> PlanId {
        self.plan.id()
    }
    /// The largest number of iterations of a solve.
    fn limit(&self) -> u64 {
        self.stop.limit((self.b.len, self.x.len))
    }
    /// Changes the stopping criteria of later solves, but for the norm, which is recorded.
    pub fn set_stop(&mut self, stop: Stop) {
        self.stop = stop.norm(self.stop.norm);
    }

    /// Solves for `b`, starting from `x`, which receives the solution.
    ///
    /// A right-hand side so large or small that squares of its elements could overflow or underflow is scaled
    /// by a power of two, exactly, and the solution is scaled back. For `b = 0` the solution is 0. A guess so large that its
    /// residual could overflow is replaced by 0 unless its residual is no larger than `b`.
    ///
    /// `x` receives the vector described by the outcome: the solution; without one, the best confirmed
    /// iterate if the method keeps it; otherwise the guess. It is finite, and no worse than the guess.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::Element`] (an element that is not finite) for `b` and `x`; device failures.
    pub fn solve(&mut self, b: &[T], x: &mut [T]) -> Result<&Outcome> {
        self.solve_watched(b, x, None)
    }

    /// [`Solver::solve`], calling `watch` from time to time while it runs. Returning `Break` cancels the
    /// solve.
    ///
    /// # Errors
    /// As [`Solver::solve`].
    pub fn solve_watched(
        &mut self,
        b: &[T],
        x: &mut [T],
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<&Outcome> {
        let start = Instant::now();
        self.observe(0);
        let Some(loaded) = self.load(b, x)? else {
            self.outcome.time = start.elapsed();
            return Ok(&self.outcome);
        };
        self.observe(loaded.of_x);
        // Only `watch` needs the norm.
        let norm = if watch.is_some() && !self.least_squares {
            norm(b, loaded.largest).scale_by_power_of_two(loaded.exponent)
        } else {
            f64::NAN
        };
        let there = start.elapsed();
        self.run((loaded.exponent, self.limit()), norm, watch)?;
        let done = start.elapsed();
        if let Some(first) =
            self.outcome.history.first_mut().filter(|first| loaded.from_zero && first.is_nan())
        {
            *first = 1.0;
        }
        // A restart before the first iteration overwrites the residual of the guess.
        let first = match loaded.from_zero {
            true => 1.0,
            false => self.outcome.history.first().copied().unwrap_or(f64::NAN),
        };
        let found = (self.outcome.reason, self.outcome.true_residual);
        (self.outcome.reason, self.outcome.true_residual) = self.hand_back(x, loaded, first, found)?;
        if let Some(observer) = self.observer.as_ref().filter(|_| self.outcome.reason != Reason::Cancelled) {
            observer.end(self.outcome.iterations, x, self.outcome.residual);
        }
        self.outcome.time = start.elapsed();
        self.outcome.transfers = self.outcome.time.saturating_sub(done.saturating_sub(there));
        Ok(&self.outcome)
    }

    /// Tells the observer that a solve begins whose solution is multiplied by two to this power on the device.
    fn observe(&self, exponent: i32) {
        self.observer.iter().for_each(|observer| observer.begin(exponent));
    }

    /// Computes the residual of what is in [`Solver::x`] after [`Solver::load`], by a method that confirms before it iterates.
    /// Returns its norm on the device; the outcome has the relative one.
    ///
    /// # Errors
    /// Device failures.
    pub(crate) fn confirm(&mut self, loaded: Loaded) -> Result<f64> {
        self.run((loaded.exponent, 0), f64::NAN, None).map(f64::sqrt)
    }

    /// [`Solver::solve_on_device`] from 0, for a right-hand side of this norm, which only `watch` needs. Returns the outcome, and
    /// whether [`Solver::x`] is better than 0.
    ///
    /// # Errors
    /// Device failures.
    pub(crate) fn solve_from_zero(
        &mut self,
        norm: f64,
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<(&Outcome, bool)> {
        self.plan.device().clear(self.x)?;
        self.run((0, self.limit()), norm, watch)?;
        let found = (self.outcome.reason, self.outcome.true_residual);
        Ok((&self.outcome, is_result(found, 1.0)))
    }

    /// The outcome of the last run.
    pub(crate) fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// [`Solver::solve_on_device`] for a right-hand side in the caller's scale, which a function stores in the first vector that it is
    /// given; the second is for the guess, 0 unless it stores another, and gets the solution. No power of two brings the right-hand side
    /// near 1.
    ///
    /// # Errors
    /// Those of the function; device failures.
    pub(crate) fn solve_filled(
        &mut self,
        fill: &mut dyn FnMut(Vector<T>, Vector<T>) -> Result<()>,
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<&Outcome> {
        let (dev, Factor { exponent, negative }) = (self.plan.device().clone(), self.operator);
        dev.clear(self.x)?;
        fill(self.b, self.x)?;
        let start = Instant::now();
        // `A x = b` is `(± 2^e A) (2^-e x) = ± b`: the squares of `b` neither overflow nor underflow for the factor.
        if negative {
            dev.multi_axpy_dot(Pass::new("the sign of the matrix").set(self.b, -Expr::from(self.b)))?;
        }
        self.scale_solution(-exponent)?;
        let norm = match &watch {
            Some(_) => {
                dev.multi_axpy_dot(Pass::new("norm").dot(self.bb, self.b, self.b))?;
                dev.read(&[self.bb])?[0].re().sqrt()
            }
            None => f64::NAN,
        };
        self.observe(-exponent);
        self.run((0, self.limit()), norm, watch)?;
        self.check_norm()?;
        self.scale_solution(exponent)?;
        self.outcome.time = start.elapsed();
        self.outcome.transfers = Duration::ZERO;
        Ok(&self.outcome)
    }

    /// Fails if `‖b‖²` underflowed in a solve that was not scaled: it met a tolerance of 0 with anything.
    fn check_norm(&self) -> Result<()> {
        let dev = self.plan.device();
        if dev.read(&[self.bb])?[0].re() != 0.0 {
            return Ok(());
        }
        let large = Formula::value(T::from_real(T::MAX.sqrt()));
        dev.multi_axpy_dot(
            Pass::new("a norm that underflowed").set(self.b, large * self.b).dot(self.bb, self.b, self.b),
        )?;
        if dev.read(&[self.bb])?[0].re() == 0.0 {
            return Ok(());
        }
        Err(Error::Unsupported {
            operation: "a solve for vectors on the device".into(),
            message:
                "the squares of the right-hand side underflow; scale it, or solve for vectors on the host"
                    .into(),
        })
    }

    /// `x ← 2^exponent x` on the device.
    fn scale_solution(&self, exponent: i32) -> Result<()> {
        if exponent == 0 {
            return Ok(());
        }
        // Either half is a number of the type.
        let power = |exponent: i32| Formula::value(T::one().scale_by_power_of_two(exponent));
        let (x, half) = (self.x, exponent / 2);
        let pass = Pass::new("the factor of the matrix").set(x, power(half) * x);
        self.plan.device().multi_axpy_dot(pass.set(x, power(exponent - half) * x))
    }

    /// Solves for the right-hand side in [`Solver::b`] on the device, starting from the guess in
    /// [`Solver::x`]. Both are in the scale of the system on the device. The guess is replaced by the last
    /// iterate, or by the best one if the method keeps it.
    ///
    /// # Errors
    /// Device failures.
    pub fn solve_on_device(
        &mut self,
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<&Outcome> {
        let start = Instant::now();
        self.run((0, self.limit()), f64::NAN, watch)?;
        (self.outcome.time, self.outcome.transfers) = (start.elapsed(), Duration::ZERO);
        Ok(&self.outcome)
    }

    /// Runs the program. Returns `‖b − A x‖²` on the device.
    fn run(
        &mut self,
        (exponent, limit): (i32, u64),
        norm: f64,
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<f64> {
        let dev = self.plan.device().clone();
        let Stop { rtol, atol, dtol, .. } = self.stop;
        // `Aᴴ (b − A x)` has the factor of the matrix too.
        let of_normal = if self.least_squares { self.operator.exponent } else { 0 };
        let atol = atol.scale_by_power_of_two(exponent + of_normal);
        for (cell, value) in [(self.rtol2, rtol), (self.atol2, atol), (self.dtol2, dtol)] {
            dev.write(cell, T::from_real(value * value))?;
        }
        dev.write(self.norm2, T::from_real((self.norm * self.norm).min(T::MAX)))?;
        let mut on_progress = watch.map(|watch| {
            move |p: Progress| {
                watch(Watch { iterations: p.iterations, residual: p.rr.max(0.0).sqrt() / norm })
            }
        });
        let watch = on_progress
            .as_mut()
            .map(|on_progress| on_progress as &mut dyn FnMut(Progress) -> ControlFlow<()>);
        let mut finish = self.plan.execute(Run { limit, history: &mut self.history, watch })?;
        let cells = dev.read(&[self.bb, self.best])?;
        let (bb, best) = (cells[0].re(), cells[1].re());
        let max = self.max.map(|max| dev.read(&[max.of_b, max.of_r])).transpose()?;
        let mut max = max.map_or([f64::NAN; 2], |cells| [cells[0].re(), cells[1].re()]);
        // One that converged in the maximum norm may have a larger 2-norm.
        let better =
            finish.reason != Reason::Converged && best.is_finite() && !no_worse(finish.confirmed, best);
        if let Some(kept) = self.kept.filter(|_| better) {
            dev.multi_axpy_dot(Pass::new("taken back").set(self.x, kept))?;
            (finish.confirmed, max[1]) = (best, f64::NAN);
        }
        let confirmed = finish.confirmed;
        self.conclude(finish, bb);
        if self.least_squares {
            self.estimate(exponent, bb)?;
        }
        self.outcome.norm = self.stop.norm;
        self.outcome.target = rtol.max(atol / if self.max.is_some() { max[0] } else { bb }.sqrt());
        self.outcome.max_residual = max[1].sqrt().scale_by_power_of_two(-exponent);
        self.outcome.relative_max_residual = if max[1] == 0.0 { 0.0 } else { (max[1] / max[0]).sqrt() };
        Ok(confirmed)
    }

    /// Sets what is known of a least-squares problem alone, in the caller's scale.
    fn estimate(&mut self, exponent: i32, bb: f64) -> Result<()> {
        let found = self.plan.device().read(&self.estimates)?;
        let of_a = -self.operator.exponent;
        self.outcome.norm_a = found[0].re().sqrt().scale_by_power_of_two(of_a);
        self.outcome.cond_a = found[1].re().sqrt();
        self.outcome.normal_residual =
            (self.outcome.true_residual * bb.sqrt()).scale_by_power_of_two(of_a - exponent);
        Ok(())
    }

    fn conclude(&mut self, finish: Finish, bb: f64) {
        let relative = |rr: f64| if rr == 0.0 { 0.0 } else { (rr / bb).sqrt() };
        let outcome = &mut self.outcome;
        // A breakdown after `x` has met the tolerance ends the first iteration before it is counted, and the history begins with
        // the residual found then.
        let uncounted = finish.reason == Reason::Converged && finish.iterations == 0 && finish.restarts > 0;
        outcome.reason = finish.reason;
        outcome.iterations = finish.iterations + u64::from(uncounted);
        outcome.restarts = finish.restarts.saturating_sub(1); // the first confirmation starts the solve
        outcome.residual = relative(finish.recurrence);
        outcome.true_residual = relative(finish.confirmed);
        outcome.history.clear();
        outcome.history.extend(uncounted.then_some(f64::NAN));
        outcome.history.extend(self.history.values.iter().map(|&rr| relative(rr)));
        outcome.history_stride = self.history.stride;
    }
}
