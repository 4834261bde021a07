//! Mixed precision: corrections in the narrower type, residuals in the wide one.
use super::continuation::{Watching, settle};
use super::factor::{lost, unless_lost};
use super::order::Order;
use super::{AutoSolver, Chosen, MethodChoice, PreconditionerChoice, Request};
use crate::{Method, Outcome, Stop, System, Watch, largest};
use lacuna_engine::{Error, Pass, Reason, Recorder, Result, Scalar, Vector};
use lacuna_formats::{Csr, MATCHING, Structure};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The relative reduction of the residual by a correction; single precision has some digits to spare.
const INNER: f64 = 1e-4;
/// If a correction leaves more than this fraction of the residual, it is the last.
const GAIN: f64 = 0.5;

/// The inner system, and work vectors for a correction.
pub struct Refined<T: Scalar> {
    /// `2ᵉ A` in the narrower type.
    inner: Box<AutoSolver<T::Narrow>>,
    exponent: i32,
    /// The residual on the device, after a confirmation.
    r: Place<T>,
    /// The residual and the correction on the host.
    narrow: [Vec<T::Narrow>; 2],
    wide: Vec<T>,
    /// The best iterate.
    kept: Vec<T>,
    /// Whether the method was left open.
    automatic: bool,
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
    /// [`Error::Entry`] for a value that the narrower type does not hold.
    pub fn corrections(&mut self, outer: &AutoSolver<T>) -> Result<Request<T::Narrow>> {
        let a = outer.host_matrix();
        self.exponent = scaling(largest(a.values()));
        self.lost = lost::<T, T::Narrow>(a.values(), self.exponent);
        let a = narrowed(a, self.exponent)?;
        Ok(std::mem::replace(&mut self.inner, Request::new(())).replace(a).1)
    }

    /// The error of the corrections' set-up, unless entries that are lost explain it.
    pub fn refused(&self, error: Error) -> Error {
        unless_lost(error, self.lost.as_ref())
    }

    /// Joins the two systems on the device.
    pub fn join(self, outer: &mut AutoSolver<T>, inner: AutoSolver<T::Narrow>) -> Refined<T> {
        outer.remarks.extend(inner.remarks.iter().cloned());
        let refined = Refined {
            inner: Box::new(inner),
            exponent: self.exponent,
            r: self.place,
            narrow: [Vec::new(), Vec::new()],
            wide: Vec::new(),
            kept: Vec::new(),
            automatic: self.automatic,
        };
        refined.report(outer);
        refined
    }
}

impl<T: Scalar> Refined<T> {
    /// Sets new values on the same pattern: see [`AutoSolver::update_values`].
    ///
    /// # Errors
    /// As there.
    pub fn update_values(&mut self, outer: &mut AutoSolver<T>, values: &[T]) -> Result<()> {
        outer.set_values(values)?;
        let updated = outer.update().and_then(|()| self.update(outer.host_matrix()));
        outer.refused = updated.as_ref().err().map(Error::to_string);
        self.report(outer);
        updated
    }

    fn update(&mut self, a: &Csr<T>) -> Result<()> {
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
        let mut iterating = Duration::ZERO;
        refine(outer, self, outcome, (b, x), &mut watch, &mut iterating)
            .map_err(|error| outer.matrix.order.in_given_rows(error))?;
        outer.resident.solver.set_stop(outer.stop);
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

fn refine<T: Scalar>(
    outer: &mut AutoSolver<T>,
    refined: &mut Refined<T>,
    outcome: &mut Outcome,
    (b, x): (&[T], &mut [T]),
    watch: &mut Watching<'_>,
    iterating: &mut Duration,
) -> Result<()> {
    let stop = outer.stop;
    (outcome.iterations, outcome.restarts, outcome.history_stride) = (0, 0, 1);
    outcome.history.clear();
    x.clone_into(&mut refined.kept);
    let (mut last, mut inner) = (f64::INFINITY, Reason::Limit);
    loop {
        outer.resident.solver.set_stop(stop.max_iters(0));
        let found = outer.resident.solver.solve(b, x)?;
        *iterating += found.time.saturating_sub(found.transfers);
        let (reason, residual) = (found.reason, found.true_residual);
        outcome.target = found.target;
        if outcome.history.is_empty() {
            outcome.history.push(residual);
        }
        if residual.is_nan() || residual > last {
            x.copy_from_slice(&refined.kept); // no worse than the guess
        } else {
            outcome.true_residual = residual;
        }
        outcome.residual = outcome.true_residual;
        outcome.reason = match reason {
            Reason::Converged => Reason::Converged,
            _ if inner == Reason::Cancelled => Reason::Cancelled,
            Reason::Limit if residual.is_nan() || residual > GAIN * last => match inner {
                Reason::Converged | Reason::Limit => Reason::Stagnated,
                why => why,
            },
            other => other,
        };
        let goes_on = outcome.reason == Reason::Limit && outcome.iterations < outer.limit();
        if !goes_on {
            break;
        }
        refined.kept.copy_from_slice(x);
        last = residual;
        outcome.restarts += u64::from(outcome.iterations > 0);
        inner = correct(outer, refined, outcome, (b, x), watch, iterating)?;
        if largest(x).is_nan() {
            x.copy_from_slice(&refined.kept);
            outcome.reason = Reason::OutOfRange;
            break;
        }
    }
    settle(outer, outcome, b, x)?;
    if refined.automatic && !outcome.converged() && outcome.reason != Reason::Cancelled {
        outcome.notes.push(format!(
            "refine keeps to the method chosen first, in {}; without it, others continue",
            T::Narrow::KIND.name()
        ));
    }
    Ok(())
}

/// Adds a correction to `x`. Returns how its solve ended.
fn correct<T: Scalar>(
    outer: &mut AutoSolver<T>,
    refined: &mut Refined<T>,
    outcome: &mut Outcome,
    (b, x): (&[T], &mut [T]),
    watch: &mut Watching<'_>,
    iterating: &mut Duration,
) -> Result<Reason> {
    refined.wide.resize(x.len(), T::zero());
    let place = *refined.r.lock().unwrap_or_else(PoisonError::into_inner);
    let r = place.ok_or(Error::Stale { operation: "refine".into(), what: "vector" })?;
    outer.device.download(r, &mut refined.wide)?;
    let [of_b, _] = outer.resident.solver.factors(b);
    let up = scaling(largest(&refined.wide));
    let [r, d] = &mut refined.narrow;
    r.clear();
    r.extend(refined.wide.iter().map(|v| v.scale_by_power_of_two(up).narrowed()));
    d.clear();
    d.resize(x.len(), T::Narrow::from_real(0.0));
    let (done, residual) = (outcome.iterations, outcome.true_residual);
    let rtol = (GAIN * outcome.target / residual).clamp(INNER, GAIN);
    let mut watch_inner = |w: Watch| match watch {
        Some(watch) => watch(Watch::new(done + w.iterations, w.residual * residual)),
        None => ControlFlow::Continue(()),
    };
    refined.set_stop(rtol, outer.limit() - done);
    let [r, d] = &mut refined.narrow;
    let inner = refined.inner.resident.solver.solve_watched(r, d, Some(&mut watch_inner))?;
    *iterating += inner.time.saturating_sub(inner.transfers);
    outcome.iterations += inner.iterations;
    if inner.history_stride == 1 {
        outcome.history.extend(inner.history.iter().skip(1).map(|r| r * residual));
    }
    // 2ᵉ f A d' = 2ᵘ g r with the factors f of A and g of b, and A d = r.
    let down = refined.exponent + outer.factor().exponent - up - of_b.exponent;
    for (x, d) in x.iter_mut().zip(&*d) {
        *x += T::widened(*d).scale_by_power_of_two(down);
    }
    Ok(inner.reason)
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
        adjoint: request.adjoint,
        options: request.options,
        stop: request.stop,
        remembered: None,
    })
}
