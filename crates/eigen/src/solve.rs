//! Solves an eigenvalue problem: places it on a device, searches, checks, and searches again for what was missed.
use crate::choice::{BLOCK, Method, method};
use crate::complete::{Completeness, Verdict};
use crate::inverse::ByFactors;
use crate::lanczos::{End, lanczos};
use crate::lobpcg::{guards, lobpcg};
use crate::outcome::{Complete, Eigen, EigenOutcome};
use crate::problem::{EigenProblem, EigenProgress, Which};
use crate::search::{Found, Goal, Search, placed};
use crate::shift::Known;
use crate::small::Small;
use crate::trust;
use lacuna_engine::{Device, Error, LinOp, Matrix, Owned, Reason, Result, Scalar};
use lacuna_formats::Csr;
use lacuna_solvers::{Placed, Setup, norm_bound, preconditioner};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Second starts after which the search ends, beside two for each value.
const MOST_STARTS: u64 = 10;
/// Iterations that a block with a preconditioner is expected to take, from any vectors or from those of a matrix that is near, and by
/// how much more before factors are asked again.
const ITERATIONS: u64 = 25;
const WARM: u64 = 8;
const PATIENCE: u64 = 2;
/// Products that Lanczos' method may take for each column of a block.
const PRODUCTS: u64 = 200;

/// A matrix on the device.
type Stored<T> = Owned<Matrix<T>>;

/// A problem on a device.
pub(crate) struct Task<'d, T: Scalar> {
    pub(crate) problem: EigenProblem<T>,
    pub(crate) dev: &'d Device,
    method: Method,
    pub(crate) goal: Goal,
    started: Instant,
    pub(crate) choices: Vec<String>,
    pub(crate) notes: Vec<String>,
    /// An order of elimination that was found and not used.
    pub(crate) known: Known,
}

/// What has been found so far, and what it took.
pub(crate) struct Sum<T> {
    pub(crate) found: Found<T>,
    pub(crate) second_starts: u64,
    pub(crate) complete: Complete,
}

impl<'d, T: Scalar> Task<'d, T> {
    pub(crate) fn new(problem: EigenProblem<T>, dev: &'d Device) -> Result<Self> {
        let started = Instant::now();
        let mut choices = Vec::new();
        let method = method(&problem, &mut choices)?;
        let stretch = stretch(&problem);
        let floor = 4.0 * (problem.a.rows() as f64).sqrt() * T::EPSILON * norm_bound(&problem.a) * stretch;
        let goal = Goal { relative: problem.rtol, floor: floor.max(f64::MIN_POSITIVE) };
        Ok(Task { problem, dev, method, goal, started, choices, notes: Vec::new(), known: Known::default() })
    }

    pub(crate) fn solve(
        mut self,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<Eigen<T>> {
        let (sum, setup) = match self.method {
            Method::Dense => (self.dense()?, Duration::ZERO),
            Method::Lobpcg => self.by_block(None, watch)?,
            Method::Smallest => self.smallest(watch)?,
            Method::Lanczos => match self.problem.which {
                Which::Near(sigma) => self.by_inverse(sigma, watch)?,
                _ => self.by_products(self.problem.max_iters, watch)?,
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
        let at = |i: &usize| vectors.column(*i).iter().map(|v| v.converted()).collect();
        let vectors = order.iter().map(at).collect();
        let found = Found::given(order.iter().map(|i| values[*i]).collect(), vectors);
        Ok(Sum { found, second_starts: 0, complete: Complete::All })
    }

    /// Says which method runs now. One that ran before has another line, so that there is one for the method of the result.
    pub(crate) fn takes(&mut self, method: &str, why: &str) {
        for line in &mut self.choices {
            if let Some(before) = line.strip_prefix("method ") {
                *line = format!("before that {before}");
            }
        }
        self.choices.insert(0, format!("method {method}: {why}"));
    }

    pub(crate) fn operators(&self) -> Result<(Stored<T>, Option<Stored<T>>)> {
        let mass = self.problem.mass.as_ref().map(|b| placed(self.dev, b)).transpose()?;
        Ok((placed(self.dev, &self.problem.a)?, mass))
    }

    /// The preconditioner of the block, if there is to be one.
    pub(crate) fn preconditioner(&mut self, a: Matrix<T>) -> Result<Option<Placed<T>>> {
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

    pub(crate) fn search<'s>(
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
            interval: None,
        }
    }

    /// By factors if these promise to take less time than a block, at first and whenever the block took longer than expected.
    fn smallest(
        &mut self,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<(Sum<T>, Duration)> {
        let iterations = if self.problem.start.is_empty() { ITERATIONS } else { WARM };
        match self.by_factors_within(self.seconds_of_block(iterations), watch)? {
            ByFactors::Found(sum, setup) => Ok((*sum, setup)),
            ByFactors::Costly => self.by_chosen_block(Some(iterations), watch),
            ByFactors::Missed => self.by_chosen_block(None, watch),
            ByFactors::Indefinite => self.of_indefinite(watch),
        }
    }

    /// The smallest of a matrix that is not semidefinite are not near 0: products alone may find them.
    fn of_indefinite(
        &mut self,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<(Sum<T>, Duration)> {
        if self.problem.mass.is_some() {
            return self.by_chosen_block(None, watch);
        }
        self.takes(
            "lanczos",
            "the matrix is not semidefinite, so that factors do not find its smallest values",
        );
        let most = PRODUCTS * (self.problem.count + guards(self.problem.count)) as u64;
        let (sum, setup) = self.by_products(most.min(self.problem.max_iters), watch)?;
        if sum.found.reason != Reason::Limit || most >= self.problem.max_iters {
            return Ok((sum, setup));
        }
        self.notes.push(format!("{most} products of lanczos did not suffice: by a block then"));
        let (mut other, setup) = self.by_chosen_block(None, watch)?;
        other.found.follow(&sum.found);
        Ok((other, setup))
    }

    fn by_chosen_block(
        &mut self,
        patience: Option<u64>,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<(Sum<T>, Duration)> {
        self.takes("lobpcg", BLOCK);
        self.by_block(patience, watch)
    }

    /// With `patience`, factors are asked again after so many iterations, and again after a multiple of that.
    fn by_block(
        &mut self,
        patience: Option<u64>,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<(Sum<T>, Duration)> {
        let setting_up = Instant::now();
        let (a, b) = self.operators()?;
        let m = self.preconditioner(*a)?;
        let setup = setting_up.elapsed();
        let (b, m) = (b.as_ref().map(|b| b as &dyn LinOp<T>), m.as_ref().map(|m| m as &dyn LinOp<T>));
        let method = |search: &Search<'_, T>, watch: crate::search::Watching<'_>| lobpcg(search, watch);
        let (most, mut limit) = (self.problem.max_iters, patience.map(|patience| PATIENCE * patience));
        let mut before: Option<Sum<T>> = None;
        let sum = loop {
            let (start, spent) = match &before {
                Some(sum) => (&sum.found.vectors, sum.found.iterations),
                None => (&self.problem.start, 0),
            };
            let left = most.saturating_sub(spent);
            let search =
                Search { limit: limit.map_or(left, |limit| limit.min(left)), start, ..self.search(&a, b, m) };
            let mut sum = self.completed(search, &method, watch)?;
            if let Some(before) = &before {
                sum.found.follow(&before.found);
            }
            let spent = sum.found.iterations;
            if sum.found.reason != Reason::Limit || spent >= most {
                break sum;
            }
            limit = match self.by_factors_within(self.seconds_of_block(spent), watch)? {
                ByFactors::Found(mut other, making) => {
                    other.found.follow(&sum.found);
                    return Ok((*other, setup + making));
                }
                ByFactors::Costly => limit.map(|limit| PATIENCE * limit),
                ByFactors::Indefinite | ByFactors::Missed => None,
            };
            before = Some(sum);
        };
        if sum.found.reason != Reason::Stagnated || m.is_none() || self.problem.preconditioner != "auto" {
            return Ok((sum, setup));
        }
        // That of a matrix which is not definite may be none.
        self.notes.push("the search with a preconditioner stagnated: another without one".into());
        let mut other = match b {
            None => {
                self.takes("lanczos", "products alone, without a preconditioner");
                self.by_products(most, watch)?.0
            }
            Some(_) => self.completed(self.search(&a, b, None), &method, watch)?,
        };
        other.found.follow(&sum.found);
        Ok((other, setup))
    }

    fn by_products(
        &mut self,
        limit: u64,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<(Sum<T>, Duration)> {
        let (a, _) = self.operators()?;
        let this = &*self;
        let end = if this.problem.which == Which::Largest { End::Largest } else { End::Smallest };
        let method =
            |search: &Search<'_, T>, watch: crate::search::Watching<'_>| lanczos(search, end, false, watch);
        let search = Search { limit, ..this.search(&a, None, None) };
        Ok((this.completed(search, &method, watch)?, Duration::ZERO))
    }

    pub(crate) fn completeness(&self, largest: bool) -> Completeness<'_, T> {
        Completeness {
            a: &self.problem.a,
            b: self.problem.mass.as_deref(),
            largest,
            check: self.problem.check,
            wanted: self.problem.count,
            on_host: self.dev.info().memory.is_none(),
            known: &self.known,
        }
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
        let completeness = self.completeness(search.largest);
        // What comes after those that were wanted has not converged.
        found.values.truncate(wanted);
        found.vectors.truncate(wanted);
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

    /// Checks the pairs and puts everything together.
    pub(crate) fn finish(mut self, sum: Sum<T>, setup: Duration) -> Result<Eigen<T>> {
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
                "rounding limits residuals to about {:.1e} in {}: that is the tolerance of eigenvalues below {:.1e}, for which rtol asks \
                 for less",
                self.goal.floor,
                T::KIND.name(),
                self.goal.floor / self.goal.relative
            ));
        }
        let stretch = stretch(&self.problem);
        let known = matches!(complete, Complete::All | Complete::Counted);
        let known = known && !matches!(self.problem.which, Which::Near(_));
        let lengths: Vec<f64> = quality.residuals.iter().map(|left| left * stretch).collect();
        // What the floor of residuals is made of, without the square root of their number.
        let rounding = self.goal.floor / (a.rows() as f64).sqrt() * stretch;
        let outcome = EigenOutcome {
            reason,
            bounds: trust::bounds(&found.values, &lengths, known, rounding),
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
pub(crate) fn stretch<T: Scalar>(problem: &EigenProblem<T>) -> f64 {
    problem.mass.as_ref().map_or(1.0, |b| {
        let least = b.diagonal().iter().map(|d| d.re()).fold(f64::INFINITY, f64::min);
        if least > 0.0 && least.is_finite() { 1.0 / least.sqrt() } else { 1.0 }
    })
}
