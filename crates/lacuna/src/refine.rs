//! Mixed precision: corrections in the narrower type, residuals in the wide one.
use crate::auto_solver::{Watching, settle};
use crate::factor::{lost, unless_lost};
use crate::order::Order;
use crate::prepared::{Parts, Prepared};
use crate::settings::{MethodChoice, PreconditionerChoice};
use crate::{Chosen, LinearSystem};
use lacuna_engine::{Backend, Error, Pass, Reason, Recorder, Result, Scalar, Vector};
use lacuna_formats::{Csr, MATCHING, Structure};
use lacuna_solvers::{Method, Outcome, Stop, System, Watch, largest, vector_norm};
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The relative reduction of the residual by a correction; single precision has some digits to spare.
const INNER: f64 = 1e-4;
/// If a correction leaves more than this fraction of the residual, it is the last.
const GAIN: f64 = 0.5;

/// The inner system, and work vectors for a correction.
pub(crate) struct Refined<T: Scalar> {
    /// `2ᵉ A` in the narrower type.
    inner: Box<Parts<T::Narrow>>,
    exponent: i32,
    /// The residual on the device, after a confirmation.
    r: Vector<T>,
    /// The residual and the correction on the host.
    narrow: [Vec<T::Narrow>; 2],
    wide: Vec<T>,
    /// The best iterate.
    kept: Vec<T>,
    /// Whether the method was left open.
    automatic: bool,
}

/// A method that only confirms the current `x`, and exposes the vector that holds the residual.
struct Residual<T>(Arc<OnceLock<Vector<T>>>);

impl<T: Scalar> Method<T> for Residual<T> {
    fn record(&self, k: &mut Recorder<'_, T>, s: &System<'_, T>) {
        let [rr] = k.cells();
        let r = *self.0.get_or_init(|| k.vector(s.n()));
        let residual = Pass::new("residual").set(r, s.b - r).dot(rr, r, r);
        k.restart(|k| k.spmv_dot(s.a, s.x, r, s.confirm(residual, rr)));
        k.each(|k| k.multi_axpy_dot(Pass::new("nothing").count(rr).leave()));
    }
}

/// Prepares a system twice: for residuals in its own type, and for corrections in the narrower one.
pub(crate) fn prepare<T: Scalar, B: Backend>(system: LinearSystem<T>, dev: &mut B) -> Result<Prepared<T>> {
    if T::KIND == T::Narrow::KIND {
        let message = format!("{} has no narrower type; refine f64 or c64", T::KIND.name());
        return Err(Error::Argument { what: "refine".into(), message });
    }
    let (rows, cols) = (system.a.rows(), system.a.cols());
    if rows != cols {
        let expected = "a square matrix for iterative refinement".into();
        return Err(Error::Shape { operation: "refine".into(), expected, got: (rows, cols) });
    }
    let tunes = matches!(system.method, MethodChoice::Tune);
    let automatic = tunes || matches!(system.method, MethodChoice::Auto);
    let mut system = system;
    // The order is that of both systems.
    if automatic
        && system.reorder == "none"
        && system.a.diagonal().contains(&T::zero())
        && Order::against_zeros(&system.a, &Structure::of(&*system.a))?.is_some()
    {
        system.reorder = MATCHING.name.into();
    }
    let (mut inner, outer) = system.split()?;
    let place = Arc::new(OnceLock::new());
    let mut outer = outer.own_method(Residual(place.clone())).preconditioner("none").prepare(dev)?;
    let a = outer.parts.order.arranged(&outer.parts.given)?;
    let exponent = scaling(largest(a.values()));
    inner.a = narrowed(&a, exponent)?;
    let lost = lost::<T, T::Narrow>(&a, exponent);
    let inner = Box::new(inner.prepare(dev).map_err(|refused| unless_lost(refused, &lost))?.parts);
    let narrow =
        |chosen: &Chosen| Chosen::new(&chosen.name, format!("{}; in {}", chosen.why, T::Narrow::KIND.name()));
    let parts = &mut outer.parts;
    parts.method = narrow(&inner.method);
    parts.preconditioner = narrow(&inner.preconditioner);
    let mut choices = vec![
        format!("refine: corrections in {}, residuals in {}", T::Narrow::KIND.name(), T::KIND.name()),
        parts.format.sentence("format of the residuals"),
    ];
    choices.extend(inner.choices.iter().cloned());
    parts.choices = choices.clone();
    parts.remarks.extend(inner.remarks.iter().cloned());
    parts.remarks.extend(tunes.then(|| "refine recalls no method: tune chooses one".into()));
    outer.outcome.choices = choices;
    outer.refined = place.get().map(|r| Refined {
        inner,
        exponent,
        r: *r,
        narrow: [Vec::new(), Vec::new()],
        wide: Vec::new(),
        kept: Vec::new(),
        automatic,
    });
    Ok(outer)
}

impl<T: Scalar> Refined<T> {
    /// Sets new values on the same pattern, in the row order of the device.
    pub(crate) fn update<B: Backend>(&mut self, dev: &mut B, a: &Csr<T>) -> Result<()> {
        self.exponent = scaling(largest(a.values()));
        let narrow = narrowed(a, self.exponent)?;
        self.inner.set_values(narrow.values())?;
        self.inner.update(dev)
    }
    /// The format of the matrix for the corrections.
    pub(crate) fn format(&self) -> &Chosen {
        &self.inner.format
    }
    /// Solves for `b` from `x`, both in the row order of the device: `x ← x + d` with `A d ≈ b − A x`, while
    /// the residual shrinks.
    pub(crate) fn solve<B: Backend>(
        &mut self,
        parts: &mut Parts<T>,
        outcome: &mut Outcome,
        dev: &mut B,
        (b, x): (&[T], &mut [T]),
        mut watch: Watching<'_>,
    ) -> Result<()> {
        let start = Instant::now();
        let mut iterating = Duration::ZERO;
        refine(parts, self, outcome, dev, (b, x), &mut watch, &mut iterating)?;
        parts.solver.set_stop(parts.stop);
        outcome.time = start.elapsed();
        outcome.transfers = outcome.time.saturating_sub(iterating);
        Ok(())
    }
    /// What was chosen for the corrections.
    pub(crate) fn choices(&self) -> &[String] {
        &self.inner.choices
    }
    /// As [`Prepared::bytes_per_iteration`].
    pub(crate) fn bytes_per_iteration(&self) -> usize {
        self.inner.solver.program().bytes_per_iteration()
    }
    /// Changes the stopping criteria of the inner method.
    fn set_stop(&mut self, rtol: f64, max_iters: u64) {
        self.inner.solver.set_stop(Stop { rtol, atol: 0.0, max_iters, ..Stop::default() });
    }
}

/// The power of two that brings a number near 1.
fn scaling(largest: f64) -> i32 {
    if largest > 0.0 && largest.is_finite() { -(largest.log2().floor() as i32) } else { 0 }
}

/// `2ᵉ A`, rounded.
fn narrowed<T: Scalar>(a: &Csr<T>, exponent: i32) -> Result<Arc<Csr<T::Narrow>>> {
    let values = a.values().iter().map(|v| v.scale_by_power_of_two(exponent).narrowed()).collect();
    let (row_ptr, col_idx) = (a.row_ptr().to_vec(), a.col_idx().to_vec());
    Ok(Arc::new(Csr::new(a.rows(), a.cols(), row_ptr, col_idx, values)?))
}

fn refine<T: Scalar, B: Backend>(
    parts: &mut Parts<T>,
    refined: &mut Refined<T>,
    outcome: &mut Outcome,
    dev: &mut B,
    (b, x): (&[T], &mut [T]),
    watch: &mut Watching<'_>,
    iterating: &mut Duration,
) -> Result<()> {
    let stop = parts.stop;
    (outcome.iterations, outcome.restarts, outcome.history_stride) = (0, 0, 1);
    outcome.history.clear();
    x.clone_into(&mut refined.kept);
    let (mut last, mut inner) = (f64::INFINITY, Reason::Limit);
    loop {
        parts.solver.set_stop(Stop { max_iters: 0, ..stop });
        let found = parts.solver.solve(dev, b, x)?;
        *iterating += found.time.saturating_sub(found.transfers);
        let (reason, residual) = (found.reason, found.true_residual);
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
        let goes_on = outcome.reason == Reason::Limit && outcome.iterations < stop.max_iters;
        if !goes_on {
            break;
        }
        refined.kept.copy_from_slice(x);
        last = residual;
        outcome.restarts += u64::from(outcome.iterations > 0);
        inner = correct(parts, refined, outcome, dev, (b, x), watch, iterating)?;
        if largest(x).is_nan() {
            x.copy_from_slice(&refined.kept);
            outcome.reason = Reason::OutOfRange;
            break;
        }
    }
    settle(parts, outcome, b, x)?;
    if refined.automatic && !outcome.converged() && outcome.reason != Reason::Cancelled {
        outcome.notes.push(format!(
            "refine keeps to the method chosen first, in {}; without it, others continue",
            T::Narrow::KIND.name()
        ));
    }
    Ok(())
}

/// Adds a correction to `x`. Returns how its solve ended.
fn correct<T: Scalar, B: Backend>(
    parts: &mut Parts<T>,
    refined: &mut Refined<T>,
    outcome: &mut Outcome,
    dev: &mut B,
    (b, x): (&[T], &mut [T]),
    watch: &mut Watching<'_>,
    iterating: &mut Duration,
) -> Result<Reason> {
    let stop = parts.stop;
    refined.wide.resize(x.len(), T::zero());
    dev.download(refined.r, &mut refined.wide)?;
    let [of_b, _] = parts.solver.factors(b);
    let up = scaling(largest(&refined.wide));
    let [r, d] = &mut refined.narrow;
    r.clear();
    r.extend(refined.wide.iter().map(|v| v.scale_by_power_of_two(up).narrowed()));
    d.clear();
    d.resize(x.len(), T::Narrow::from_real(0.0));
    let (done, residual) = (outcome.iterations, outcome.true_residual);
    let tolerance = stop.rtol.max(stop.atol / vector_norm(b));
    let rtol = (GAIN * tolerance / residual).clamp(INNER, GAIN);
    let mut watch_inner = |w: Watch| match watch {
        Some(watch) => watch(Watch { iterations: done + w.iterations, residual: w.residual * residual }),
        None => ControlFlow::Continue(()),
    };
    refined.set_stop(rtol, stop.max_iters - done);
    let [r, d] = &mut refined.narrow;
    let inner = refined.inner.solver.solve_watched(dev, r, d, Some(&mut watch_inner))?;
    *iterating += inner.time.saturating_sub(inner.transfers);
    outcome.iterations += inner.iterations;
    if inner.history_stride == 1 {
        outcome.history.extend(inner.history.iter().skip(1).map(|r| r * residual));
    }
    // 2ᵉ A d' = 2ᵘ f r with the factor f of b, and A d = r.
    let down = refined.exponent - up - of_b.exponent;
    for (x, d) in x.iter_mut().zip(&*d) {
        *x += T::widened(*d).scale_by_power_of_two(down);
    }
    Ok(inner.reason)
}

impl<T: Scalar> LinearSystem<T> {
    /// Splits into the system of the corrections, in the narrower type and without its matrix yet, and that
    /// of the residuals.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a method or preconditioner of the caller's own, which exists in one type
    /// only.
    fn split(self) -> Result<(LinearSystem<T::Narrow>, Self)> {
        let own = || Error::Unsupported {
            operation: "refine".into(),
            message:
                "a method or preconditioner of your own exists in one number type only; name one of the lists"
                    .into(),
        };
        let nothing = Csr::new(0, 0, vec![0], Vec::new(), Vec::new())?;
        let inner = LinearSystem {
            a: Arc::new(nothing),
            method: match &self.method {
                MethodChoice::Auto | MethodChoice::Tune => MethodChoice::Auto,
                MethodChoice::Named(name) => MethodChoice::Named(name.clone()),
                MethodChoice::Own(_) => return Err(own()),
            },
            preconditioner: match &self.preconditioner {
                PreconditionerChoice::Auto => PreconditionerChoice::Auto,
                PreconditionerChoice::Named(name) => PreconditionerChoice::Named(name.clone()),
                PreconditionerChoice::Own(_) => return Err(own()),
            },
            format: self.format.clone(),
            reorder: "none".into(),
            adjoint: self.adjoint,
            refines: false,
            options: self.options,
            stop: self.stop,
            x0: None,
        };
        Ok((inner, LinearSystem { refines: false, ..self }))
    }
}
