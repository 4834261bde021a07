//! Mixed precision: corrections in the narrower type, residuals in the wide one.
//!
//! The two systems are on one device, and what goes from one to the other stays there: a narrow vector of the wide type has the
//! elements of a vector of the narrower type, to which it is copied. It is not that vector, as a backend in host memory stores
//! narrow vectors in full width. The host only compares norms, and names the powers of two.
use super::continuation::{Watching, copy, settle};
use super::factor::{lost, unless_lost};
use super::order::Order;
use super::{AutoSolver, Chosen, MethodChoice, PreconditionerChoice, Request};
use crate::solver::Loaded;
use crate::{Method, Norm, Outcome, Stop, System, Watch, largest};
use lacuna_engine::{
    Cell, Device, Error, History, Pass, Plan, Reason, Recorder, Result, Run, Scalar, Vector,
};
use lacuna_formats::{Csr, MATCHING, Structure, interrupt};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The relative reduction of the residual by a correction; single precision has some digits to spare.
const INNER: f64 = 1e-4;
/// If a correction leaves more than this fraction of the residual, it is the last.
const GAIN: f64 = 0.5;

/// The inner system, and what goes between it and the one of the residuals.
pub struct Refined<T: Scalar> {
    /// `2ᵉ A` in the narrower type.
    inner: Box<AutoSolver<T::Narrow>>,
    exponent: i32,
    /// The residual on the device, after a confirmation.
    place: Place<T>,
    between: Between<T>,
    /// Whether the method was left open.
    automatic: bool,
}

/// The passes between the two systems.
struct Between<T> {
    /// The residual and the solution that they are recorded for.
    of: [Vector<T>; 2],
    /// What goes to the inner system and comes back.
    narrow: Vector<T>,
    /// The solution before a correction.
    kept: Vector<T>,
    /// The factors of the residual and of the correction.
    up: Cell<T>,
    down: Cell<T>,
    /// `narrow ← up · r`
    round: Plan,
    /// `kept ← x`, `x ← x + down · narrow`
    correct: Plan,
}

impl<T: Scalar> Between<T> {
    fn new(dev: &Device, of: [Vector<T>; 2]) -> Result<Self> {
        let [r, x] = of;
        let mut k = Recorder::new(dev, "round");
        let (narrow, [up]) = (k.narrow_vector(r.len), k.cells());
        k.multi_axpy_dot(Pass::new("round").set(narrow, up * r));
        let round = dev.plan(k.finish()?)?;
        let mut k = Recorder::new(dev, "correct");
        let (kept, [down]) = (k.vector(x.len), k.cells());
        k.multi_axpy_dot(Pass::new("correct").set(kept, x).set(x, x + down * narrow));
        let correct = dev.plan(k.finish()?)?;
        Ok(Between { of, narrow, kept, up, down, round, correct })
    }

    /// Hands the residual, multiplied by a factor and rounded, to a vector of the inner system.
    fn hand_over(&mut self, factor: T, to: Vector<T::Narrow>) -> Result<()> {
        let dev = self.round.device().clone();
        dev.write(self.up, factor)?;
        once(&mut self.round)?;
        dev.copy(self.narrow, to)
    }

    /// Adds a vector of the inner system to the solution, multiplied by a factor.
    fn add(&mut self, factor: T, from: Vector<T::Narrow>) -> Result<()> {
        let dev = self.correct.device().clone();
        dev.copy(from, self.narrow)?;
        dev.write(self.down, factor)?;
        once(&mut self.correct)
    }

    /// Takes the last correction back.
    fn take_back(&self) -> Result<()> {
        let ([_, x], kept) = (self.of, self.kept);
        self.correct.device().multi_axpy_dot(Pass::new("taken back").set(x, kept))
    }
}

/// Runs a program that does not iterate.
fn once(plan: &mut Plan) -> Result<()> {
    plan.execute(Run { limit: 0, history: &mut History::off(), watch: None }).map(drop)
}

/// A method that only confirms the current `x`, and exposes the vector that holds the residual.
struct Residual<T>(Place<T>);

/// Where the residual is: another vector whenever the system is recorded again.
type Place<T> = Arc<Mutex<Option<Vector<T>>>>;

impl<T: Scalar> Method<T> for Residual<T> {
    fn record(&self, k: &mut Recorder<'_, T>, s: &System<'_, T>) {
        let [rr] = k.cells();
        let r = k.vector(s.n());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(r);
        let residual = Pass::new("residual").set(r, s.b - r).dot(rr, r, r);
        k.restart(|k| k.spmv_dot(s.a, s.x, r, s.confirm(residual, rr)));
        k.each(|k| k.multi_axpy_dot(Pass::new("nothing").count(rr).leave()));
    }
}

/// Checks that a system can be refined, and settles the order, which is that of both systems.
fn check<T: Scalar>(request: &mut Request<T>) -> Result<()> {
    if T::KIND == T::Narrow::KIND {
        let message = format!("{} has no narrower type; refine f64 or c64", T::KIND.name());
        return Err(Error::Argument { what: "refine".into(), message });
    }
    if request.observer.is_some() {
        return Err(Error::Unsupported {
            operation: "refine with an observer of iterations".into(),
            message:
                "the iterations are those of corrections, in the narrower type; solve without refinement"
                    .into(),
        });
    }
    let got @ (rows, cols) = (request.a.rows(), request.a.cols());
    if rows != cols {
        let expected = "a square matrix for iterative refinement".into();
        return Err(Error::Shape { operation: "refine".into(), expected, got });
    }
    if request.method.is_open()
        && request.reorder == "none"
        && request.a.diagonal().contains(&T::zero())
        && Order::against_zeros(&request.a, &Structure::of(&*request.a))?.is_some()
    {
        request.reorder = MATCHING.name.into();
    }
    Ok(())
}

/// A system that is to be refined: what is asked for the corrections, and where the residual will be.
pub struct Refinement<T: Scalar> {
    inner: Request<T::Narrow, ()>,
    place: Place<T>,
    exponent: i32,
    /// What is said of entries that the narrower type does not hold.
    lost: Option<String>,
    /// Whether the method was left open.
    automatic: bool,
}

impl<T: Scalar> Refinement<T> {
    /// Splits a request into that for the residuals, which has to be placed first, and the rest.
    ///
    /// # Errors
    /// [`Error::Argument`] for a type without a narrower one, [`Error::Shape`] for a matrix that is not square,
    /// [`Error::Unsupported`] for a method or preconditioner of the caller's own, which exists in one type only.
    pub fn split(mut request: Request<T>) -> Result<(Request<T>, Self)> {
        check(&mut request)?;
        let automatic = request.method.is_open();
        let (inner, mut outer) = (narrower(&request)?, request);
        let place = Place::default();
        outer.method = MethodChoice::Own(Box::new(Residual(place.clone())));
        outer.preconditioner = PreconditionerChoice::Named("none".into());
        Ok((outer, Refinement { inner, place, exponent: 0, lost: None, automatic }))
    }

    /// The request for the corrections, which has to be placed next.
    ///
    /// # Errors
    /// [`Error::Entry`] for a value that the narrower type does not hold; those of [`interrupt::check`].
    pub fn corrections(&mut self, outer: &AutoSolver<T>) -> Result<Request<T::Narrow>> {
        let a = outer.host_matrix();
        self.exponent = scaling(largest(a.values()));
        self.lost = lost::<T, T::Narrow>(a.values(), self.exponent);
        interrupt::check()?;
        let a = narrowed(a, self.exponent)?;
        interrupt::check()?;
        Ok(std::mem::replace(&mut self.inner, Request::new(())).replace(a).1)
    }

    /// The error of the corrections' set-up, unless entries that are lost explain it.
    pub fn refused(&self, error: Error) -> Error {
        unless_lost(error, self.lost.as_ref())
    }

    /// Joins the two systems on the device.
    ///
    /// # Errors
    /// Out of memory, device failures.
    pub fn join(self, outer: &mut AutoSolver<T>, inner: AutoSolver<T::Narrow>) -> Result<Refined<T>> {
        let of = ends(outer, &self.place)?;
        outer.remarks.extend(inner.remarks.iter().cloned());
        let refined = Refined {
            inner: Box::new(inner),
            exponent: self.exponent,
            place: self.place,
            between: Between::new(&outer.device, of)?,
            automatic: self.automatic,
        };
        refined.report(outer);
        Ok(refined)
    }
}

impl<T: Scalar> Refined<T> {
    /// Sets new values on the same pattern: see [`AutoSolver::update_values`].
    ///
    /// # Errors
    /// As there.
    pub fn update_values(&mut self, outer: &mut AutoSolver<T>, values: &[T]) -> Result<()> {
        outer.set_values(values)?;
        let updated = outer.update().and_then(|()| self.update(outer));
        outer.refused = updated.as_ref().err().map(Error::to_string);
        self.report(outer);
        updated
    }

    fn update(&mut self, outer: &AutoSolver<T>) -> Result<()> {
        let of = ends(outer, &self.place)?;
        if of != self.between.of {
            self.between = Between::new(&outer.device, of)?; // the residuals were recorded again
        }
        let a = outer.host_matrix();
        self.exponent = scaling(largest(a.values()));
        let narrow = narrowed(a, self.exponent)?;
        self.inner.update_values(narrow.values())
    }

    /// Reports what was chosen for the corrections as choices of the whole.
    fn report(&self, outer: &mut AutoSolver<T>) {
        let (narrow, inner) = (T::Narrow::KIND.name(), &self.inner.chosen);
        let narrowly = |chosen: &Chosen| Chosen::new(&chosen.name, format!("{}; in {narrow}", chosen.why));
        let chosen = &mut outer.chosen;
        chosen.method = narrowly(&inner.method);
        chosen.preconditioner = narrowly(&inner.preconditioner);
        chosen.sentences = vec![
            format!("refine: corrections in {narrow}, residuals in {}", T::KIND.name()),
            chosen.format.sentence("format of the residuals"),
        ];
        chosen.sentences.extend(inner.sentences.iter().cloned());
    }

    /// Solves for `b` from `x`, both in the order of the device: `x ← x + d` with `A d ≈ b − A x`, while
    /// the residual shrinks.
    ///
    /// # Errors
    /// As [`AutoSolver::solve`].
    pub fn solve(
        &mut self,
        outer: &mut AutoSolver<T>,
        outcome: &mut Outcome,
        (b, x): (&[T], &mut [T]),
        mut watch: Watching<'_>,
    ) -> Result<()> {
        let start = Instant::now();
        let iterating = refine(outer, self, outcome, (b, x), &mut watch)
            .map_err(|error| outer.matrix.order.in_given_rows(error))?;
        outcome.time = start.elapsed();
        outcome.transfers = outcome.time.saturating_sub(iterating);
        Ok(())
    }
    /// The minimum number of bytes that an iteration of a correction moves.
    pub fn bytes_per_iteration(&self) -> usize {
        self.inner.bytes_per_iteration()
    }
    /// Changes the stopping criteria of the inner method.
    fn set_stop(&mut self, rtol: f64, max_iters: u64) {
        self.inner.resident.solver.set_stop(Stop::default().rtol(rtol).max_iters(max_iters));
    }
}

/// The power of two that brings a number near 1.
fn scaling(largest: f64) -> i32 {
    if largest > 0.0 && largest.is_finite() { -(libm::log2(largest).floor() as i32) } else { 0 }
}

/// `2ᵉ A`, rounded.
fn narrowed<T: Scalar>(a: &Csr<T>, exponent: i32) -> Result<Arc<Csr<T::Narrow>>> {
    let values = a.values().iter().map(|v| v.scale_by_power_of_two(exponent).narrowed());
    Ok(Arc::new(a.with_values(values.collect())?))
}

/// The residual and the solution on the device.
fn ends<T: Scalar>(outer: &AutoSolver<T>, place: &Place<T>) -> Result<[Vector<T>; 2]> {
    let r = *place.lock().unwrap_or_else(PoisonError::into_inner);
    let r = r.ok_or(Error::Stale { operation: "refine".into(), what: "vector" })?;
    Ok([r, outer.resident.solver.x()])
}

/// Solves, and returns the time without transfers and checks on the host.
fn refine<T: Scalar>(
    outer: &mut AutoSolver<T>,
    refined: &mut Refined<T>,
    outcome: &mut Outcome,
    (b, x): (&[T], &mut [T]),
    watch: &mut Watching<'_>,
) -> Result<Duration> {
    let mut iterating = Duration::ZERO;
    match outer.resident.solver.load(b, x)? {
        None => copy(outer.resident.solver.outcome(), outcome),
        Some(loaded) => {
            let start = Instant::now();
            correct_repeatedly(outer, refined, outcome, loaded, watch)?;
            iterating = start.elapsed();
            let of_guess = outcome.history.first().copied().unwrap_or(f64::NAN);
            let first = if loaded.from_zero { 1.0 } else { of_guess };
            let found = (outcome.reason, outcome.true_residual);
            (outcome.reason, outcome.true_residual) =
                outer.resident.solver.hand_back(x, loaded, first, found)?;
            outcome.residual = outcome.true_residual;
        }
    }
    settle(outer, outcome, b, x)?;
    if refined.automatic && !outcome.converged() && outcome.reason != Reason::Cancelled {
        outcome.notes.push(format!(
            "refine tries no other method than the one chosen first, in {}; without refine, others follow",
            T::Narrow::KIND.name()
        ));
    }
    Ok(iterating)
}

/// Corrects the solution on the device while its residual shrinks. It is finite in the end, and no worse than the guess.
fn correct_repeatedly<T: Scalar>(
    outer: &mut AutoSolver<T>,
    refined: &mut Refined<T>,
    outcome: &mut Outcome,
    loaded: Loaded,
    watch: &mut Watching<'_>,
) -> Result<()> {
    (outcome.iterations, outcome.restarts, outcome.history_stride) = (0, 0, 1);
    outcome.history.clear();
    let (mut last, mut inner) = (f64::INFINITY, Reason::Limit);
    loop {
        let norm = outer.resident.solver.confirm(loaded)?;
        let found = outer.resident.solver.outcome();
        let (reason, residual) = (found.reason, found.true_residual);
        (outcome.target, outcome.norm) = (found.target, found.norm);
        let of_max = (found.max_residual, found.relative_max_residual);
        let corrected = !outcome.history.is_empty();
        if !corrected {
            outcome.true_residual = residual;
            (outcome.max_residual, outcome.relative_max_residual) = of_max;
            outcome.history.push(residual);
        } else if residual.is_nan() || residual > last && reason != Reason::Converged {
            refined.between.take_back()?; // no worse than the guess
        } else {
            outcome.true_residual = residual;
            (outcome.max_residual, outcome.relative_max_residual) = of_max;
        }
        outcome.residual = outcome.true_residual;
        outcome.reason = match reason {
            Reason::Converged => Reason::Converged,
            _ if inner == Reason::Cancelled => Reason::Cancelled,
            Reason::Limit if residual.is_nan() || residual > GAIN * last => match inner {
                Reason::Converged | Reason::Limit => Reason::Stagnated,
                why => why,
            },
            Reason::NotFinite(_) if corrected => Reason::OutOfRange, // of a finite correction
            other => other,
        };
        let goes_on = outcome.reason == Reason::Limit && outcome.iterations < outer.limit();
        if !goes_on {
            return Ok(());
        }
        last = residual;
        outcome.restarts += u64::from(outcome.iterations > 0);
        inner = correct(outer, refined, outcome, norm, watch)?;
    }
}

/// Adds a correction to the solution on the device, where the residual has this norm. Returns how its solve ended.
fn correct<T: Scalar>(
    outer: &mut AutoSolver<T>,
    refined: &mut Refined<T>,
    outcome: &mut Outcome,
    norm: f64,
    watch: &mut Watching<'_>,
) -> Result<Reason> {
    let (up, of_inner) = (scaling(norm), refined.inner.factor());
    let power = |exponent: i32| T::one().scale_by_power_of_two(exponent);
    let (done, residual) = (outcome.iterations, outcome.true_residual);
    let left = if outcome.norm == Norm::Max { outcome.relative_max_residual } else { residual };
    let rtol = (GAIN * outcome.target / left).clamp(INNER, GAIN);
    let mut watch_inner = |w: Watch| match watch {
        Some(watch) => watch(Watch::new(done + w.iterations, w.residual * residual)),
        None => ControlFlow::Continue(()),
    };
    refined.set_stop(rtol, outer.limit() - done);
    let (solver, between) = (&mut refined.inner.resident.solver, &mut refined.between);
    between.hand_over(if of_inner.negative { -power(up) } else { power(up) }, solver.b())?;
    let x = solver.x();
    let norm = norm.scale_by_power_of_two(up);
    let (inner, improves) = solver.solve_from_zero(norm, Some(&mut watch_inner))?;
    outcome.iterations += inner.iterations;
    if inner.history_stride == 1 {
        outcome.history.extend(inner.history.iter().skip(1).map(|r| r * residual));
    }
    let reason = inner.reason;
    if improves {
        // 2ᵉ f A d' = 2ᵘ r with the factor f of the inner matrix, up to the sign that both sides have, and A d = r.
        between.add(power(refined.exponent + of_inner.exponent - up), x)?;
    }
    Ok(reason)
}

/// What is asked for the corrections, in the narrower type.
///
/// # Errors
/// [`Error::Unsupported`] for a method or preconditioner of the caller's own, which exists in one type
/// only.
fn narrower<T: Scalar>(request: &Request<T>) -> Result<Request<T::Narrow, ()>> {
    let own = || Error::Unsupported {
        operation: "refine".into(),
        message:
            "a method or preconditioner of your own exists in one number type only; name one of the lists"
                .into(),
    };
    Ok(Request {
        a: (),
        method: match &request.method {
            MethodChoice::Auto | MethodChoice::Tune => MethodChoice::Auto,
            MethodChoice::Named(name) => MethodChoice::Named(name.clone()),
            MethodChoice::Own(_) => return Err(own()),
        },
        preconditioner: match &request.preconditioner {
            PreconditionerChoice::Auto => PreconditionerChoice::Auto,
            PreconditionerChoice::Named(name) => PreconditionerChoice::Named(name.clone()),
            PreconditionerChoice::Own(_) => return Err(own()),
        },
        format: request.format.clone(),
        reorder: "none".into(),
        scale: "none".into(),
        adjoint: request.adjoint,
        options: request.options,
        stop: request.stop.norm(Norm::Two),
        strict: request.strict,
        quick: request.quick,
        observer: None,
        remembered: None,
    })
}
