//! Singular values: the builder of a problem, and its result.
mod golub_kahan;
mod solve;

use crate::outcome::Complete;
use crate::problem::{Check, EigenProblem, EigenProgress, Watcher};
use lacuna_engine::{Device, Error, Reason, Result, Scalar, compiled_here};
use lacuna_formats::{Csr, parallel};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// Which singular values are sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extreme {
    /// The largest ones.
    Largest,
    /// The smallest ones: of a square matrix by complete factors, or of a small one.
    Smallest,
}

/// `A v = σ u`, `Aᴴ u = σ v`, for a matrix of any shape.
///
/// ```
/// use lacuna_cpu::Cpu;
/// use lacuna_eigen::SvdProblem;
/// use lacuna_engine::Device;
/// use lacuna_io::Spec;
///
/// let a = Spec::parse("gen:convection:30x30")?.build::<f64>()?;
/// let found = SvdProblem::new(a).count(3).solve(&Device::new(Cpu::new()?))?;
/// assert!(found.outcome.converged());
/// assert!(found.values[0] >= found.values[1]);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[must_use = "a problem does nothing until it is solved"]
pub struct SvdProblem<T: Scalar> {
    a: Arc<Csr<T>>,
    count: usize,
    which: Extreme,
    rtol: f64,
    max_iters: u64,
    check: Check,
    seed: u32,
}

/// How a search for singular values ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SvdOutcome {
    /// [`Reason::Converged`] if all triplets meet their tolerance by products made anew, the vectors on both sides are orthonormal,
    /// and no value is known to be missing.
    pub reason: Reason,
    /// `‖A v − σ u‖` and `‖Aᴴ u − σ v‖` of each triplet, summed in twice the working precision.
    pub residuals: Vec<[f64; 2]>,
    /// Which triplets meet their tolerance.
    pub converged: Vec<bool>,
    /// Whether values are missing.
    pub complete: Complete,
    /// `max |Uᴴ U − I|` and `max |Vᴴ V − I|`
    pub orthogonality: [f64; 2],
    /// Products with `A` or `Aᴴ`, or solves with them.
    pub products: u64,
    /// Cycles after the first.
    pub restarts: u64,
    /// Searches that found values which were missed before.
    pub second_starts: u64,
    /// The largest residual over its tolerance, for each cycle of the first search.
    pub history: Vec<f64>,
    /// Set-up: transposing, factors.
    pub setup: Duration,
    /// All of it.
    pub time: Duration,
    /// The method that was taken, and why.
    pub choices: Vec<String>,
    /// What is worth knowing.
    pub notes: Vec<String>,
}

impl SvdOutcome {
    /// Whether the triplets are what was asked for.
    pub fn converged(&self) -> bool {
        self.reason == Reason::Converged
    }
}

/// Singular values and vectors.
#[derive(Clone, Debug)]
pub struct Svd<T> {
    /// The singular values, from the largest or the smallest on; 0 where they are below the rounding of `A`.
    pub values: Vec<f64>,
    /// The left vectors `u`.
    pub left: Vec<Vec<T>>,
    /// The right vectors `v`, each with a real positive largest element. Triplets are handed back whatever the reason.
    pub right: Vec<Vec<T>>,
    /// How the search ended.
    pub outcome: SvdOutcome,
}

impl<T: Scalar> SvdProblem<T> {
    /// The six largest singular values of a matrix; what else is wanted is set by the other methods.
    pub fn new(a: impl Into<Arc<Csr<T>>>) -> Self {
        SvdProblem {
            a: a.into(),
            count: 6,
            which: Extreme::Largest,
            rtol: EigenProblem::<T>::DEFAULT_RTOL,
            max_iters: 100_000,
            check: Check::Auto,
            seed: 0,
        }
    }
    /// How many singular values.
    pub fn count(mut self, count: usize) -> Self {
        self.count = count;
        self
    }
    /// Which ones.
    pub fn which(mut self, which: Extreme) -> Self {
        self.which = which;
        self
    }
    /// A triplet has converged if both residuals are at most `rtol σ`, or at the level of rounding.
    pub fn rtol(mut self, rtol: f64) -> Self {
        self.rtol = rtol;
        self
    }
    /// The most products: 100 000 by default.
    pub fn max_iters(mut self, products: u64) -> Self {
        self.max_iters = products;
        self
    }
    /// How to make sure that no value is missing: by a second start, or [`Check::Off`]. There is no count.
    pub fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }
    /// Another seed of the vectors to begin with: 0 by default, below 1000.
    pub fn seed(mut self, seed: u32) -> Self {
        self.seed = seed;
        self
    }

    /// Solves it on a device.
    ///
    /// # Errors
    /// [`Error::Argument`] for a number of values or a tolerance out of range; [`Error::Unsupported`] for the smallest values of a
    /// large matrix that is not square, or is singular, or costs too much to factor; device failures.
    pub fn solve(self, dev: &Device) -> Result<Svd<T>> {
        self.solve_watched(dev, &mut |_| ControlFlow::Continue(()))
    }

    /// [`SvdProblem::solve`], calling `watch` after each cycle. Returning `Break` ends the search as [`Reason::Cancelled`].
    ///
    /// # Errors
    /// As there.
    pub fn solve_watched(
        self,
        dev: &Device,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<Svd<T>> {
        let least = self.a.rows().min(self.a.cols());
        let refused = |what: &str, message: String| Err(Error::Argument { what: what.into(), message });
        if self.count == 0 || self.count > least {
            return refused("count", format!("expected 1 to {least} singular values, got {}", self.count));
        }
        if !(self.rtol >= 0.0 && self.rtol.is_finite()) {
            return refused("rtol", format!("expected a number from 0 on, got {}", self.rtol));
        }
        if self.seed >= 1000 {
            return refused("seed", format!("expected a number below 1000, got {}", self.seed));
        }
        compiled_here!(T, |problem: SvdProblem<T>, dev: &Device, watch: Watcher<'_>| -> Result<Svd<T>> {
            parallel::on(dev.workers(), || solve::solve(problem, dev, watch))
        })(self, dev, watch)
    }
}
