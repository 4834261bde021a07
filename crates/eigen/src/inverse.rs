//! Eigenvalues by factors of a shifted matrix: Lanczos' method for its inverse, and a count of what it found.
//!
//! Reference: Ericsson and Ruhe 1980, doi:10.1090/S0025-5718-1980-0583502-2.
use crate::complete::{APART, before_last, seconds_of_search};
use crate::lanczos::{End, lanczos};
use crate::lobpcg::guards;
use crate::outcome::Complete;
use crate::problem::{Check, EigenProgress};
use crate::search::{Found, Goal, Search, placed};
use crate::shift::{self, Shifted, Solve};
use crate::solve::{Sum, Task, stretch};
use lacuna_engine::{Error, LinOp, Reason, Result, Scalar};
use lacuna_solvers::auto::seconds_of_counting;
use lacuna_solvers::norm_bound;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The tolerance of Lanczos' method for an inverse, whose values are wanted to full precision.
const INVERSE: f64 = 64.0;
/// The tolerance of a search for how far they are.
const ROUGH: f64 = 1e-2;
/// A shift below all eigenvalues of a semidefinite matrix, beside its norm.
const BELOW: f64 = -1e-9;
/// Solves that Lanczos' method is expected to take, beside two for each value.
const SOLVES: usize = 40;
/// Bytes that solves and orthogonalisation read in a second, from caches that hold so many, and from memory: the factors twice, and a
/// basis of twice as many columns as values four times.
const READ: [f64; 2] = [1e10, 4e9];
const CACHED: f64 = 32e6;

/// What became of a search for the smallest eigenvalues by factors.
pub(crate) enum ByFactors<T> {
    /// What was found, and what setting up took.
    Found(Box<Sum<T>>, Duration),
    /// They promise to take longer.
    Costly,
    /// They show no semidefinite matrix.
    Indefinite,
    /// Something was missed.
    Missed,
}

/// What became of factors with all eigenvalues above a shift.
enum Factored<T: Scalar> {
    Shifted(Arc<dyn Solve<T>>, f64),
    Costly,
    Indefinite,
}

impl<T: Scalar> Task<'_, T> {
    /// Eigenvalues near a number.
    pub(crate) fn by_inverse(
        &mut self,
        sigma: f64,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<(Sum<T>, Duration)> {
        let setting_up = Instant::now();
        let (mut factors, sigma) = self.factors_near(sigma)?;
        let setup = setting_up.elapsed();
        let found = self.nearest(&factors, sigma, INVERSE * T::EPSILON, watch)?;
        let (complete, note) = match self.problem.check {
            Check::Off => (Complete::Unchecked("not asked for".into()), None),
            _ => self.counted_near(&mut factors, sigma, &found)?,
        };
        self.notes.extend(note);
        Ok((Sum { found, second_starts: 0, complete }, setup))
    }

    /// The smallest eigenvalues of a positive semidefinite matrix, if factors promise to take so many seconds at most.
    pub(crate) fn by_factors_within(
        &mut self,
        seconds: f64,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<ByFactors<T>> {
        let setting_up = Instant::now();
        let (mut factors, sigma) = match self.semidefinite_factors(seconds)? {
            Factored::Shifted(factors, sigma) => (factors, sigma),
            Factored::Costly => return Ok(ByFactors::Costly),
            Factored::Indefinite => return Ok(ByFactors::Indefinite),
        };
        let (mut sigma, mut rough) = (sigma, None);
        if sigma < 0.0 {
            // Beside the value of the inverse that is nearest to the shift the others have few digits: a shift as far from it as these.
            let found = self.nearest(&factors, sigma, ROUGH, watch)?;
            let last = found.values[self.problem.count - 1];
            if found.reason == Reason::Converged && -last < sigma {
                sigma = -last;
                if self.below(&mut factors, sigma)? != Some(0) {
                    return Ok(ByFactors::Missed);
                }
            }
            rough = Some(found);
        }
        let setup = setting_up.elapsed();
        let found = match rough {
            Some(cancelled) if cancelled.reason == Reason::Cancelled => cancelled,
            rough => {
                let mut found = self.nearest(&factors, sigma, INVERSE * T::EPSILON, watch)?;
                rough.iter().for_each(|rough| found.follow(rough));
                found
            }
        };
        let complete = match (found.reason, self.problem.check) {
            (Reason::Converged, Check::Off) => Complete::Unchecked("not asked for".into()),
            (Reason::Converged, _) => {
                let values = &found.values[..self.problem.count];
                let before = before_last(values, false, self.goal);
                let here = values.iter().filter(|value| **value <= before).count();
                if self.below(&mut factors, before)? != Some(here) {
                    // A block and second starts find what is missing.
                    return Ok(ByFactors::Missed);
                }
                Complete::Counted
            }
            _ => Complete::Unchecked("the search did not converge".into()),
        };
        self.takes("lanczos", "factors of the matrix promise less time than a block");
        Ok(ByFactors::Found(Box::new(Sum { found, second_starts: 0, complete }), setup))
    }

    /// Seconds that a block is expected to take for so many iterations.
    pub(crate) fn seconds_of_block(&self, iterations: u64) -> f64 {
        let columns = self.problem.count + guards(self.problem.count);
        let products = iterations * columns as u64;
        seconds_of_search(&self.problem.a, [products; 3], self.dev.info().memory.is_none())
    }

    /// Factors of `A − σ B` with all eigenvalues above `σ`.
    fn semidefinite_factors(&self, seconds: f64) -> Result<Factored<T>> {
        let (a, mass) = (&*self.problem.a, self.problem.mass.as_deref());
        // A row with entries beside a diagonal that is not positive belongs to an indefinite minor.
        let coupled = |row: usize| a.row_entries(row).any(|(column, v)| column != row && v != T::zero());
        let mut diagonal = a.diagonal().into_iter().map(|d| d.re()).enumerate();
        if diagonal.any(|(row, d)| d < 0.0 || d == 0.0 && coupled(row)) {
            return Ok(Factored::Indefinite);
        }
        if seconds_of_counting((a.rows(), a.nnz())) > seconds {
            return Ok(Factored::Costly);
        }
        for sigma in [0.0, BELOW * norm_bound(a) * stretch(&self.problem).powi(2)] {
            // They are made twice: for the search and for the count.
            let shifted = shift::shifted(a, mass, sigma)?;
            let Some(analysed) = Shifted::within(shifted, seconds, &self.known)? else {
                return Ok(Factored::Costly);
            };
            let cost = analysed.cost();
            let count = self.problem.count;
            let numbers = 2.0 * cost.entries + (8 * count * a.rows()) as f64;
            let solves = (SOLVES + 2 * count) as f64;
            let bytes = numbers * size_of::<T::Wide>() as f64;
            let solving = solves * bytes / READ[usize::from(bytes > CACHED)];
            if 2.0 * cost.seconds + solving > seconds {
                analysed.kept(&self.known);
                return Ok(Factored::Costly);
            }
            let factors = match analysed.hermitian_factors::<T>() {
                Ok(factors) => factors,
                // Those of a singular matrix fail.
                Err(Error::Unsupported { .. }) => continue,
                Err(Error::OutOfMemory { .. }) => return Ok(Factored::Costly),
                Err(error) => return Err(error),
            };
            match factors.inertia() {
                Some(inertia) if inertia.negative > 0 => break,
                Some(inertia) if inertia.zero == 0 => return Ok(Factored::Shifted(factors, sigma)),
                _ => {}
            }
        }
        Ok(Factored::Indefinite)
    }

    /// The eigenvalues nearest to the shift of factors, to a tolerance relative to those of the inverse.
    fn nearest(
        &self,
        factors: &Arc<dyn Solve<T>>,
        sigma: f64,
        relative: f64,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<Found<T>> {
        let operator = shift::inverse(self.problem.a.rows(), Arc::clone(factors));
        let mass = self.problem.mass.as_ref().map(|b| placed(self.dev, b)).transpose()?;
        let mass = mass.as_ref().map(|b| b as &dyn LinOp<T>);
        let wanted = self.problem.count;
        let search = Search {
            goal: Goal { relative, floor: 0.0 },
            largest: false,
            ..self.search(&operator, mass, None)
        };
        let mut told = |iterations, converged, worst| {
            watch(EigenProgress { what: "search", iterations, converged, of: wanted, worst })
        };
        let mut found = lanczos(&search, End::Modulus, true, &mut told)?;
        found.values.iter_mut().for_each(|value| *value = sigma + 1.0 / *value);
        Ok(found)
    }
    /// Factors of `A − σ B`; a `σ` that is an eigenvalue is moved a little.
    pub(crate) fn factors_near(&mut self, sigma: f64) -> Result<(Arc<dyn Solve<T>>, f64)> {
        let norm = norm_bound(&self.problem.a);
        let made = |sigma: f64| {
            let mass = self.problem.mass.as_deref();
            Shifted::new(shift::shifted(&self.problem.a, mass, sigma)?)?.factors::<T>()
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
    pub(crate) fn counted_near(
        &self,
        factors: &mut Arc<dyn Solve<T>>,
        sigma: f64,
        found: &Found<T>,
    ) -> Result<(Complete, Option<String>)> {
        let wanted = self.problem.count;
        let distance = |value: f64| (value - sigma).abs();
        let last = distance(found.values[wanted - 1]);
        let size = found.values[..wanted].iter().map(|value| value.abs()).fold(last, f64::max);
        let radius = last - (APART * size).max(8.0 * self.goal.floor);
        if radius <= 0.0 {
            return Ok((Complete::Unchecked("all values found are as near as rounding tells".into()), None));
        }
        let inside = found.values[..wanted].iter().filter(|value| distance(**value) <= radius).count();
        let complete = match (self.below(factors, sigma + radius)?, self.below(factors, sigma - radius)?) {
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
    /// How many eigenvalues are below a number, by factors that are made anew; none if they do not tell.
    fn below(&self, factors: &mut Arc<dyn Solve<T>>, sigma: f64) -> Result<Option<usize>> {
        let shifted = shift::shifted(&self.problem.a, self.problem.mass.as_deref(), sigma)?;
        // The search that had them is over.
        let Some(alone) = Arc::get_mut(factors) else { return Ok(None) };
        let mut inertia = alone.renew(&shifted).ok().and_then(|()| alone.inertia());
        if inertia.is_none() {
            // The pivots of one shift need not suit another, and factors with other pivots have no signs.
            let factors = Shifted::new(shifted)?.hermitian_factors::<T>();
            inertia = factors.ok().and_then(|factors| factors.inertia());
        }
        Ok(inertia.filter(|inertia| inertia.zero == 0).map(|inertia| inertia.negative))
    }
}
