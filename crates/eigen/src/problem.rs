//! The builder of an eigenvalue problem.
use crate::outcome::Eigen;
use crate::solve::Task;
use lacuna_engine::{Device, Error, Result, Scalar, compiled_here};
use lacuna_formats::algebra::check_hermitian;
use lacuna_formats::{Csr, parallel};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Which eigenvalues are sought.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Which {
    /// The smallest ones, the most negative first.
    Smallest,
    /// The largest ones.
    Largest,
    /// Those nearest to a number.
    Near(f64),
}

/// How to make sure that no value is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Check {
    /// By count, if factors of a shifted matrix promise to take no longer than the search did, else by a second start.
    #[default]
    Auto,
    /// By count: factors of a shifted matrix, whose pivots have the signs of its eigenvalues.
    Counted,
    /// By a second start from other vectors, with what was found moved to the other end of the spectrum.
    Probed,
    /// Not at all.
    Off,
}

/// The methods by name, with what they are for.
pub const EIGEN_METHODS: &[(&str, &str)] = &[
    ("lobpcg", "smallest or largest eigenvalues with a preconditioner; any mass matrix"),
    (
        "lanczos",
        "largest eigenvalues; by factors of the shifted matrix those near a number and the smallest, also with a mass matrix",
    ),
    ("dense", "all eigenvalues of a small matrix"),
];

/// What is told of the progress of a search.
pub(crate) type Watcher<'w> = &'w mut dyn FnMut(EigenProgress) -> ControlFlow<()>;

/// The progress of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct EigenProgress {
    /// What is being done: `search`, or `second start`.
    pub what: &'static str,
    /// Iterations, or products of Lanczos' method.
    pub iterations: u64,
    /// Pairs that have converged.
    pub converged: usize,
    /// Pairs that are sought.
    pub of: usize,
    /// The largest residual over its tolerance.
    pub worst: f64,
}

/// `A x = λ x`, or `A x = λ B x`, for a Hermitian matrix `A` and a Hermitian positive definite mass matrix `B`. Where `lanczos` looks for
/// those near a number, `B` may have a null space.
///
/// ```
/// use lacuna_cpu::Cpu;
/// use lacuna_eigen::{EigenProblem, Which};
/// use lacuna_engine::Device;
/// use lacuna_io::Spec;
///
/// // The Laplacian of a square, whose second and third eigenvalue are equal.
/// let a = Spec::parse("gen:poisson2d:40x40")?.build::<f64>()?;
/// let found = EigenProblem::new(a).count(3).which(Which::Smallest).solve(&Device::new(Cpu::new()?))?;
/// assert!(found.outcome.converged());
/// assert!((found.values[1] - found.values[2]).abs() < 1e-9);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a problem does nothing until it is solved"]
pub struct EigenProblem<T: Scalar> {
    pub(crate) a: Arc<Csr<T>>,
    pub(crate) mass: Option<Arc<Csr<T>>>,
    pub(crate) count: usize,
    pub(crate) which: Which,
    pub(crate) method: String,
    pub(crate) preconditioner: String,
    pub(crate) rtol: f64,
    pub(crate) max_iters: u64,
    pub(crate) check: Check,
    pub(crate) seed: u32,
    pub(crate) start: Vec<Vec<T>>,
}

impl<T: Scalar> EigenProblem<T> {
    /// The default tolerance of residuals, relative to the eigenvalue: 1e-8, or 1e-4 in single precision.
    pub const DEFAULT_RTOL: f64 = if T::EPSILON < 1e-10 { 1e-8 } else { 1e-4 };

    /// The six smallest eigenvalues of a matrix; what else is wanted is set by the other methods.
    pub fn new(a: impl Into<Arc<Csr<T>>>) -> Self {
        EigenProblem {
            a: a.into(),
            mass: None,
            count: 6,
            which: Which::Smallest,
            method: "auto".into(),
            preconditioner: "auto".into(),
            rtol: Self::DEFAULT_RTOL,
            max_iters: 10_000,
            check: Check::Auto,
            seed: 0,
            start: Vec::new(),
        }
    }
    /// The mass matrix `B`.
    pub fn mass(mut self, b: impl Into<Arc<Csr<T>>>) -> Self {
        self.mass = Some(b.into());
        self
    }
    /// How many eigenvalues.
    pub fn count(mut self, count: usize) -> Self {
        self.count = count;
        self
    }
    /// Which ones.
    pub fn which(mut self, which: Which) -> Self {
        self.which = which;
        self
    }
    /// The method by name, see [`EIGEN_METHODS`]; `auto` chooses: `dense` up to 500 rows; for the smallest `lanczos` by factors
    /// where these are cheap, else `lobpcg`; `lanczos` for the largest and for those near a number.
    pub fn method(mut self, name: &str) -> Self {
        self.method = name.into();
        self
    }
    /// The preconditioner of `lobpcg` by name, see [`PRECONDITIONERS`](lacuna_solvers::PRECONDITIONERS); `auto` takes `amg` for the
    /// smallest values of a matrix with a positive diagonal, `none` none.
    pub fn preconditioner(mut self, name: &str) -> Self {
        self.preconditioner = name.into();
        self
    }
    /// A pair has converged if `‖A x − λ B x‖ ≤ rtol |λ|`, or if that is at the level of rounding.
    pub fn rtol(mut self, rtol: f64) -> Self {
        self.rtol = rtol;
        self
    }
    /// The most iterations of a block, or products of Lanczos' method: 10 000 by default.
    pub fn max_iters(mut self, iterations: u64) -> Self {
        self.max_iters = iterations;
        self
    }
    /// How to make sure that no value is missing.
    pub fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }
    /// Another seed of the vectors to begin with: 0 by default, below 1000.
    pub fn seed(mut self, seed: u32) -> Self {
        self.seed = seed;
        self
    }
    /// Vectors to begin with, such as those of a matrix that is near; `lanczos` takes the first.
    pub fn start(mut self, vectors: Vec<Vec<T>>) -> Self {
        self.start = vectors;
        self
    }

    /// Solves it on a device.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::Entry`] unless the matrices are square and Hermitian; [`Error::Argument`] for a number of values, a
    /// name or a tolerance out of range; [`Error::Length`] for a mass matrix or vectors of another size; [`Error::Unsupported`] for
    /// what a method cannot do; errors of the set-up of a preconditioner that was named, and of factors; device failures.
    pub fn solve(self, dev: &Device) -> Result<Eigen<T>> {
        self.solve_watched(dev, &mut |_| ControlFlow::Continue(()))
    }

    /// [`EigenProblem::solve`], calling `watch` after each iteration or cycle. Returning `Break` ends the search as
    /// [`Reason::Cancelled`](lacuna_engine::Reason::Cancelled).
    ///
    /// # Errors
    /// As there.
    pub fn solve_watched(
        self,
        dev: &Device,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<Eigen<T>> {
        self.checked()?;
        compiled_here!(T, |problem: EigenProblem<T>, dev: &Device, watch: Watcher<'_>| -> Result<Eigen<T>> {
            parallel::on(dev.workers(), || Task::new(problem, dev)?.solve(watch))
        })(self, dev, watch)
    }

    pub(crate) fn checked(&self) -> Result<()> {
        let operation = "eigenvalues";
        let n = self.a.rows();
        let refused = |what: &str, message: String| Err(Error::Argument { what: what.into(), message });
        check_hermitian(operation, &self.a)?;
        if let Some(mass) = &self.mass {
            Error::check_length(operation, "the rows of the mass matrix", n, mass.rows())?;
            check_hermitian("the mass matrix", mass)?;
        }
        if self.count == 0 || self.count > n {
            return refused("count", format!("expected 1 to {n} eigenvalues, got {}", self.count));
        }
        if !(self.rtol >= 0.0 && self.rtol.is_finite()) {
            return refused("rtol", format!("expected a number from 0 on, got {}", self.rtol));
        }
        if self.seed >= 1000 {
            return refused("seed", format!("expected a number below 1000, got {}", self.seed));
        }
        if let Which::Near(sigma) = self.which
            && !sigma.is_finite()
        {
            return refused("near", format!("expected a finite number, got {sigma}"));
        }
        if self.method != "auto" && EIGEN_METHODS.iter().all(|(name, _)| *name != self.method) {
            let names: Vec<&str> = EIGEN_METHODS.iter().map(|(name, _)| *name).collect();
            return refused(
                "method",
                format!("expected auto or one of {}, got `{}`", names.join(", "), self.method),
            );
        }
        self.start
            .iter()
            .try_for_each(|x| Error::check_length(operation, "a vector to begin with", n, x.len()))
    }
}
