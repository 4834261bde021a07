//! Solves an eigenvalue problem: places it on a device, searches, checks, and searches again for what was missed.
use crate::complete::{APART, Completeness, Verdict};
use crate::lanczos::{End, lanczos};
use crate::lobpcg::{guards, lobpcg};
use crate::outcome::{Complete, Eigen, EigenOutcome};
use crate::problem::{Check, EigenProblem, EigenProgress, Which};
use crate::search::{Found, Goal, Search, placed};
use crate::shift::{self, Shifted, Solve};
use crate::small::Small;
use crate::trust;
use lacuna_engine::{Device, Error, LinOp, Matrix, Owned, Reason, Result, Scalar};
use lacuna_formats::Csr;
use lacuna_solvers::{Placed, Setup, norm_bound, preconditioner};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows up to which all eigenvalues are computed.
const DENSE: usize = 500;
/// Rows up to which `dense` may be asked for.
const MOST_DENSE: usize = 5000;
/// Second starts after which the search ends, beside two for each value.
const MOST_STARTS: u64 = 10;
/// The tolerance of Lanczos' method for an inverse, whose values are wanted to full precision.
const INVERSE: f64 = 64.0;

/// How a problem is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Dense,
    Lobpcg,
    Lanczos,
}

/// A matrix on the device.
type Stored<T> = Owned<Matrix<T>>;

/// A problem on a device.
pub(crate) struct Task<'d, T: Scalar> {
    problem: EigenProblem<T>,
    dev: &'d Device,
    method: Method,
    pub(crate) goal: Goal,
    started: Instant,
    choices: Vec<String>,
    notes: Vec<String>,
}

/// What has been found so far, and what it took.
struct Sum<T> {
    found: Found<T>,
    second_starts: u64,
    complete: Complete,
}

impl<'d, T: Scalar> Task<'d, T> {
    pub(crate) fn new(problem: EigenProblem<T>, dev: &'d Device) -> Result<Self> {
        let started = Instant::now();
        let mut choices = Vec::new();
        let method = method(&problem, &mut choices)?;
        let stretch = stretch(&problem);
        let floor = 4.0 * (problem.a.rows() as f64).sqrt() * T::EPSILON * norm_bound(&problem.a) * stretch;
        let goal = Goal { relative: problem.rtol, floor: floor.max(f64::MIN_POSITIVE) };
        Ok(Task { problem, dev, method, goal, started, choices, notes: Vec::new() })
    }

    pub(crate) fn solve(
        mut self,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<Eigen<T>> {
        let (sum, setup) = match self.method {
            Method::Dense => (self.dense()?, Duration::ZERO),
            Method::Lobpcg => self.by_block(watch)?,
            Method::Lanczos => match self.problem.which {
                Which::Near(sigma) => self.by_inverse(sigma, watch)?,
                _ => self.by_products(watch)?,
            },
        };
        self.finish(sum, setup)
    }

    /// All eigenvalues, of which those that are wanted are kept.
    fn dense(&mut self) -> Result<Sum<T>> {
        let n = self.problem.a.rows();
        let whole = |a: &Csr<T>| {
            let mut dense = Small::<T::Wide>::zeros(n, n);
            a.entries().for_each(|(i, j, v)| dense.set(i, j, v.wide()));
            dense
        };
        let a = whole(&self.problem.a);
        let (values, vectors) = match &self.problem.mass {
            None => a.hermitian_eigen()?,
            Some(b) => {
                let factor = whole(b).cholesky().ok_or_else(|| Error::Unsupported {
                    operation: "dense".into(),
                    message: "the mass matrix is not positive definite".into(),
                })?;
                // L⁻¹ A L⁻ᴴ
                let mut reduced = a;
                factor.solve_lower(&mut reduced);
                let mut reduced = reduced.adjoint();
                factor.solve_lower(&mut reduced);
                let (values, mut vectors) = reduced.hermitian_part().hermitian_eigen()?;
                factor.solve_lower_adjoint(&mut vectors);
                (values, vectors)
            }
        };
        let mut order: Vec<usize> = (0..n).collect();
        match self.problem.which {
            Which::Smallest => {}
            Which::Largest => order.reverse(),
            Which::Near(sigma) => {
                order.sort_by(|i, j| (values[*i] - sigma).abs().total_cmp(&(values[*j] - sigma).abs()))
            }
        }
        order.truncate(self.problem.count);
        let found = Found {
            reason: Reason::Converged,
            values: order.iter().map(|i| values[*i]).collect(),
            vectors: order
                .iter()
                .map(|i| vectors.column(*i).iter().map(|v| v.converted()).collect())
                .collect(),
            iterations: 0,
            restarts: 0,
            products: 0,
            preconditionings: 0,
            history: Vec::new(),
        };
        Ok(Sum { found, second_starts: 0, complete: Complete::All })
    }

    fn operators(&self) -> Result<(Stored<T>, Option<Stored<T>>)> {
        let mass = self.problem.mass.as_ref().map(|b| placed(self.dev, b)).transpose()?;
        Ok((placed(self.dev, &self.problem.a)?, mass))
    }

    /// The preconditioner of the block, if there is to be one.
    fn preconditioner(&mut self, a: Matrix<T>) -> Result<Option<Placed<T>>> {
        let name = self.problem.preconditioner.clone();
        let automatic = name == "auto";
        let largest = self.problem.which == Which::Largest;
        let positive = self.problem.a.diagonal().iter().all(|d| d.re() > 0.0);
        let names: &[&str] = match (automatic, largest || !positive) {
            (false, _) => &[&name],
            (true, true) => &[],
            (true, false) => &["amg", "jacobi"],
        };
        for name in names {
            let Some(kind) = preconditioner::<T>(name)? else { break };
            match Placed::new(self.dev, kind, &self.problem.a, a, Setup::new()) {
                Ok(placed) => {
                    let why = if automatic { "suits smallest eigenvalues" } else { "as asked for" };
                    self.choices.push(format!("preconditioner {name}: {why}"));
                    return Ok(Some(placed));
                }
                Err(error) if automatic => self.notes.push(format!("{name} was refused: {error}")),
                Err(error) => return Err(error),
            }
        }
        self.choices.push("preconditioner none".into());
        Ok(None)
    }

    fn search<'s>(
        &'s self,
        a: &'s dyn LinOp<T>,
        b: Option<&'s dyn LinOp<T>>,
        m: Option<&'s dyn LinOp<T>>,
    ) -> Search<'s, T> {
        Search {
            dev: self.dev,
            a,
            b,
            m,
            count: self.problem.count,
            largest: self.problem.which == Which::Largest,
            goal: self.goal,
            limit: self.problem.max_iters,
            seed: self.problem.seed,
            start: &self.problem.start,
            beyond: None,
        }
    }

    fn by_block(
        &mut self,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<(Sum<T>, Duration)> {
        let setting_up = Instant::now();
        let (a, b) = self.operators()?;
        let m = self.preconditioner(*a)?;
        let setup = setting_up.elapsed();
        let this = &*self;
        let (b, m) = (b.as_ref().map(|b| b as &dyn LinOp<T>), m.as_ref().map(|m| m as &dyn LinOp<T>));
        let method = |search: &Search<'_, T>, watch: crate::search::Watching<'_>| lobpcg(search, watch);
        let sum = this.completed(this.search(&a, b, m), &method, watch)?;
        if sum.found.reason != Reason::Stagnated || m.is_none() || self.problem.preconditioner != "auto" {
            return Ok((sum, setup));
        }
        // That of a matrix which is not definite may be none.
        self.notes.push("the search with a preconditioner stagnated: another without one".into());
        let mut other = match b {
            None => self.by_products(watch)?.0,
            Some(_) => self.completed(self.search(&a, b, None), &method, watch)?,
        };
        other.found.iterations += sum.found.iterations;
        other.found.products += sum.found.products;
        other.found.preconditionings += sum.found.preconditionings;
        Ok((other, setup))
    }

    fn by_products(
        &mut self,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<(Sum<T>, Duration)> {
        let (a, _) = self.operators()?;
        let this = &*self;
        let end = if this.problem.which == Which::Largest { End::Largest } else { End::Smallest };
        let method =
            |search: &Search<'_, T>, watch: crate::search::Watching<'_>| lanczos(search, end, false, watch);
        Ok((this.completed(this.search(&a, None, None), &method, watch)?, Duration::ZERO))
    }

    /// A search for one end of the spectrum, and others for what it missed until nothing is missing.
    fn completed(
        &self,
        search: Search<'_, T>,
        method: &crate::complete::Method<'_, T>,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<Sum<T>> {
        let wanted = self.problem.count;
        let mut told = |what: &'static str, iterations: u64, converged: usize, worst: f64| {
            watch(EigenProgress { what, iterations, converged, of: wanted, worst })
        };
        let mut found = method(&search, &mut |i, converged, worst| told("search", i, converged, worst))?;
        let completeness = Completeness {
            a: &self.problem.a,
            b: self.problem.mass.as_deref(),
            largest: search.largest,
            check: self.problem.check,
            wanted,
            on_host: self.dev.info().memory.is_none(),
        };
        // What comes after those that were wanted has not converged.
        found.values.truncate(wanted);
        found.vectors.truncate(wanted);
        trust::normalise(completeness.b, &mut found.vectors)?;
        let mut second_starts = 0;
        let complete = loop {
            if found.reason != Reason::Converged {
                break Complete::Unchecked("the search did not converge".into());
            }
            let mut other = |i, converged, worst| told("second start", i, converged, worst);
            let (missing, vectors) = match completeness.look(&mut found, &search, method, &mut other)? {
                Verdict::Is(complete) => break complete,
                Verdict::Misses(missing, vectors) => (missing, vectors),
            };
            second_starts += 1;
            if second_starts > 2 * wanted as u64 + MOST_STARTS {
                break Complete::Missing(missing);
            }
            completeness.join(&mut found, vectors)?;
        };
        Ok(Sum { found, second_starts, complete })
    }

    /// Eigenvalues near a number, by factors of the shifted matrix.
    fn by_inverse(
        &mut self,
        sigma: f64,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<(Sum<T>, Duration)> {
        let setting_up = Instant::now();
        let (factors, sigma) = self.factors_near(sigma)?;
        let n = self.problem.a.rows();
        let operator = shift::inverse(n, factors);
        let mass = self.problem.mass.as_ref().map(|b| placed(self.dev, b)).transpose()?;
        let mass = mass.as_ref().map(|b| b as &dyn LinOp<T>);
        let setup = setting_up.elapsed();
        let this = &*self;
        let wanted = this.problem.count;
        let search = Search {
            goal: Goal { relative: INVERSE * T::EPSILON, floor: 0.0 },
            largest: false,
            ..this.search(&operator, mass, None)
        };
        let mut told = |iterations, converged, worst| {
            watch(EigenProgress { what: "search", iterations, converged, of: wanted, worst })
        };
        let mut found = lanczos(&search, End::Modulus, true, &mut told)?;
        found.values.iter_mut().for_each(|value| *value = sigma + 1.0 / *value);
        let (complete, note) = match this.problem.check {
            Check::Off => (Complete::Unchecked("not asked for".into()), None),
            _ => this.counted_near(sigma, &found)?,
        };
        self.notes.extend(note);
        Ok((Sum { found, second_starts: 0, complete }, setup))
    }

    /// Factors of `A − σ B`; a `σ` that is an eigenvalue is moved a little.
    fn factors_near(&mut self, sigma: f64) -> Result<(Arc<dyn Solve<T>>, f64)> {
        let norm = norm_bound(&self.problem.a);
        let made = |sigma: f64| {
            let mass = self.problem.mass.as_deref();
            Shifted::new(shift::shifted(&self.problem.a, mass, sigma)?)?.factors::<T>().map(Arc::from)
        };
        match made(sigma) {
            Ok(factors) => Ok((factors, sigma)),
            Err(Error::Unsupported { .. }) => {
                let moved = sigma + 1e-6 * norm * stretch(&self.problem).powi(2);
                let factors = made(moved)?;
                self.notes
                    .push(format!("{sigma} is an eigenvalue, or near one: {moved} was taken in its place"));
                Ok((factors, moved))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether as many eigenvalues as were found are nearer than the last.
    fn counted_near(&self, sigma: f64, found: &Found<T>) -> Result<(Complete, Option<String>)> {
        let wanted = self.problem.count;
        let distance = |value: f64| (value - sigma).abs();
        let last = distance(found.values[wanted - 1]);
        let size = found.values[..wanted].iter().map(|value| value.abs()).fold(last, f64::max);
        let radius = last - (APART * size).max(8.0 * self.goal.floor);
        if radius <= 0.0 {
            return Ok((Complete::Unchecked("all values found are as near as rounding tells".into()), None));
        }
        let inside = found.values[..wanted].iter().filter(|value| distance(**value) <= radius).count();
        let below = |sigma: f64| -> Result<Option<usize>> {
            let mass = self.problem.mass.as_deref();
            let shifted = Shifted::new(shift::shifted(&self.problem.a, mass, sigma)?)?;
            let inertia = shifted.factors::<T>().map(|factors| factors.inertia());
            Ok(inertia.ok().flatten().filter(|inertia| inertia.zero == 0).map(|inertia| inertia.negative))
        };
        let complete = match (below(sigma + radius)?, below(sigma - radius)?) {
            (Some(high), Some(low)) if high - low == inside => Complete::Counted,
            (Some(high), Some(low)) if high - low > inside => Complete::Missing(high - low - inside),
            (Some(high), Some(low)) => {
                let note =
                    format!("{inside} values were found where {} are counted", high.saturating_sub(low));
                return Ok((Complete::Unchecked("the count is below the number found".into()), Some(note)));
            }
            _ => Complete::Unchecked("factors of a shifted matrix have no signs".into()),
        };
        Ok((complete, None))
    }

    /// Checks the pairs and puts everything together.
    fn finish(mut self, sum: Sum<T>, setup: Duration) -> Result<Eigen<T>> {
        let Sum { mut found, second_starts, complete } = sum;
        let wanted = self.problem.count;
        found.values.truncate(wanted);
        found.vectors.truncate(wanted);
        let (a, b) = (&self.problem.a, self.problem.mass.as_deref());
        trust::normalise(b, &mut found.vectors)?;
        let quality = trust::quality(a, b, &found.values, &found.vectors)?;
        let goal = |value: &f64| self.goal.of(*value);
        let pairs = || found.values.iter().zip(&quality.residuals);
        let converged: Vec<bool> = pairs().map(|(value, left)| *left <= goal(value)).collect();
        let by_rounding = found.values.iter().map(|value| self.goal.relative * value.abs() < self.goal.floor);
        let by_rounding: Vec<bool> = by_rounding.collect();
        let orthogonal = if T::EPSILON < 1e-10 { 1e-12 } else { 1e-5 };
        let reason = match found.reason {
            Reason::Converged if matches!(complete, Complete::Missing(_)) => {
                Reason::Custom("eigenvalues are missing among those found")
            }
            Reason::Converged if !converged.iter().all(|met| *met) => Reason::Stagnated,
            Reason::Converged if quality.orthogonality > orthogonal => {
                self.notes.push(format!(
                    "the vectors are not orthonormal: {:.1e}, {orthogonal:.0e} is asked for",
                    quality.orthogonality
                ));
                Reason::Stagnated
            }
            reason => reason,
        };
        if by_rounding.iter().any(|by| *by) {
            self.notes.push(format!(
                "rounding leaves residuals of up to {:.1e}: smaller eigenvalues have fewer digits than rtol asks for",
                self.goal.floor
            ));
        }
        let outcome = EigenOutcome {
            reason,
            residuals: quality.residuals,
            converged,
            by_rounding,
            complete,
            orthogonality: quality.orthogonality,
            iterations: found.iterations,
            products: found.products,
            preconditionings: found.preconditionings,
            restarts: found.restarts,
            second_starts,
            history: found.history,
            setup,
            time: self.started.elapsed(),
            choices: self.choices,
            notes: self.notes,
        };
        Ok(Eigen { values: found.values, vectors: found.vectors, outcome })
    }
}

/// The length of vectors of B-norm 1, about: of those along one unknown.
fn stretch<T: Scalar>(problem: &EigenProblem<T>) -> f64 {
    problem.mass.as_ref().map_or(1.0, |b| {
        let least = b.diagonal().iter().map(|d| d.re()).fold(f64::INFINITY, f64::min);
        if least > 0.0 && least.is_finite() { 1.0 / least.sqrt() } else { 1.0 }
    })
}

/// The method for a problem, and why.
fn method<T: Scalar>(problem: &EigenProblem<T>, choices: &mut Vec<String>) -> Result<Method> {
    let n = problem.a.rows();
    let mass = problem.mass.is_some();
    let refused =
        |method: &str, message: String| Err(Error::Unsupported { operation: method.into(), message });
    let fits = 3 * (problem.count + guards(problem.count)) <= n;
    let near = matches!(problem.which, Which::Near(_));
    let (method, why) = match problem.method.as_str() {
        "dense" => (Method::Dense, "as asked for"),
        "lobpcg" => (Method::Lobpcg, "as asked for"),
        "lanczos" => (Method::Lanczos, "as asked for"),
        _ if n <= DENSE => (Method::Dense, "the matrix is small"),
        _ if !fits && n <= MOST_DENSE => (Method::Dense, "a large part of all eigenvalues is wanted"),
        _ if near => (Method::Lanczos, "by factors of the shifted matrix"),
        _ if problem.which == Which::Largest && !mass => (Method::Lanczos, "products alone find the largest"),
        _ => (Method::Lobpcg, "a block with a preconditioner finds the smallest"),
    };
    match method {
        Method::Dense if n > MOST_DENSE => {
            return refused("dense", format!("it takes at most {MOST_DENSE} rows, the matrix has {n}"));
        }
        Method::Lobpcg if near => {
            return refused(
                "lobpcg",
                "it finds the smallest or largest; `lanczos` finds those near a number".into(),
            );
        }
        Method::Lanczos if mass && !near => {
            let message =
                "with a mass matrix it finds those near a number; `lobpcg` finds the smallest or largest";
            return refused("lanczos", message.into());
        }
        _ => {}
    }
    let name = match method {
        Method::Dense => "dense",
        Method::Lobpcg => "lobpcg",
        Method::Lanczos => "lanczos",
    };
    choices.push(format!("method {name}: {why}"));
    Ok(method)
}
