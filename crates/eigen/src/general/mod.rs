//! Eigenvalues of matrices that need not be Hermitian: the builder of a problem, its solution and its checks.
mod krylov_schur;
mod schur;

use crate::problem::EigenProgress;
use crate::search::{Goal, placed};
use crate::shift::{general, shifted};
use crate::small::length;

use krylov_schur::{Before, Search, krylov_schur};
use lacuna_engine::{Complex64, Device, Error, LinOp, Reason, Result, Scalar};
use lacuna_formats::{Csr, Triplets, parallel};
use lacuna_solvers::{norm_bound, residual_norm};
use schur::Schur;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows up to which all eigenvalues are computed.
const DENSE: usize = 120;
/// The tolerance of values of an inverse.
const INVERSE: f64 = 64.0 * f64::EPSILON;

/// Which eigenvalues of a matrix that need not be Hermitian are sought.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// Those of largest modulus.
    Modulus,
    /// Those of largest real part.
    Rightmost,
    /// Those of smallest real part.
    Leftmost,
    /// Those nearest to a number, by factors of the shifted matrix.
    Near(Complex64),
}

/// `A x = λ x` for a square matrix that need not be Hermitian. All is computed in complex double precision, whatever the number type.
///
/// ```
/// use lacuna_cpu::Cpu;
/// use lacuna_eigen::{GeneralProblem, Part};
/// use lacuna_engine::Device;
/// use lacuna_io::Spec;
///
/// let a = Spec::parse("gen:convection:20x20")?.build::<f64>()?;
/// let found = GeneralProblem::new(&a)?.count(3).which(Part::Rightmost).solve(&Device::new(Cpu::new()?))?;
/// assert!(found.outcome.converged());
/// assert!(found.values[0].re >= found.values[1].re);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[must_use = "a problem does nothing until it is solved"]
pub struct GeneralProblem {
    a: Arc<Csr<Complex64>>,
    count: usize,
    which: Part,
    rtol: f64,
    max_iters: u64,
    seed: u32,
    start: Option<Vec<Complex64>>,
}

/// How a search for eigenvalues of a matrix that need not be Hermitian ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GeneralOutcome {
    /// [`Reason::Converged`] if all pairs meet their tolerance by products made anew. Whether values are missing is not known: nothing
    /// counts the eigenvalues of such a matrix.
    pub reason: Reason,
    /// `‖A x − λ x‖` of each pair, for `‖x‖ = 1`, summed in twice the working precision.
    pub residuals: Vec<f64>,
    /// Which pairs meet their tolerance.
    pub converged: Vec<bool>,
    /// Products with `A`, or solves of the shifted matrix.
    pub products: u64,
    /// Cycles after the first.
    pub restarts: u64,
    /// The largest residual over its tolerance, for each cycle.
    pub history: Vec<f64>,
    /// Set-up: factors.
    pub setup: Duration,
    /// All of it.
    pub time: Duration,
    /// The method that was taken, and why.
    pub choices: Vec<String>,
    /// What is worth knowing.
    pub notes: Vec<String>,
}

impl GeneralOutcome {
    /// Whether the pairs are what was asked for.
    pub fn converged(&self) -> bool {
        self.reason == Reason::Converged
    }
}

/// Eigenvalues and eigenvectors of a matrix that need not be Hermitian.
#[derive(Clone, Debug)]
pub struct GeneralEigen {
    /// The eigenvalues, those that come first by what was sought first.
    pub values: Vec<Complex64>,
    /// The eigenvectors, `‖x‖ = 1`, each with a real positive largest element. Pairs are handed back whatever the reason.
    pub vectors: Vec<Vec<Complex64>>,
    /// How the search ended.
    pub outcome: GeneralOutcome,
}

impl GeneralProblem {
    /// The six eigenvalues of largest modulus; what else is wanted is set by the other methods.
    ///
    /// # Errors
    /// [`Error::Shape`] unless the matrix is square.
    pub fn new<T: Scalar>(a: &Csr<T>) -> Result<Self> {
        if a.rows() != a.cols() {
            let (operation, expected) = ("eigenvalues".into(), "a square matrix".into());
            return Err(Error::Shape { operation, expected, got: (a.rows(), a.cols()) });
        }
        let mut complex = Triplets::with_capacity(a.rows(), a.cols(), a.nnz());
        a.entries().for_each(|(i, j, v)| complex.push(i, j, Complex64::new(v.re(), v.im())));
        Ok(GeneralProblem {
            a: Arc::new(complex.to_csr()?),
            count: 6,
            which: Part::Modulus,
            rtol: if T::EPSILON < 1e-10 { 1e-8 } else { 1e-4 },
            max_iters: 100_000,
            seed: 0,
            start: None,
        })
    }
    /// How many eigenvalues.
    pub fn count(mut self, count: usize) -> Self {
        self.count = count;
        self
    }
    /// Which ones.
    pub fn which(mut self, which: Part) -> Self {
        self.which = which;
        self
    }
    /// A pair has converged if `‖A x − λ x‖ ≤ rtol |λ|`, or if that is at the level of rounding.
    pub fn rtol(mut self, rtol: f64) -> Self {
        self.rtol = rtol;
        self
    }
    /// The most products: 100 000 by default.
    pub fn max_iters(mut self, products: u64) -> Self {
        self.max_iters = products;
        self
    }
    /// Another seed of the vectors to begin with: 0 by default, below 1000.
    pub fn seed(mut self, seed: u32) -> Self {
        self.seed = seed;
        self
    }
    /// A vector to begin with.
    pub fn start(mut self, vector: Vec<Complex64>) -> Self {
        self.start = Some(vector);
        self
    }

    /// Solves it on a device.
    ///
    /// # Errors
    /// [`Error::Argument`] for a number of values, a number or a tolerance out of range; [`Error::Length`] for a vector of another size;
    /// [`Error::Unsupported`] for so many values that the method cannot find them, and for factors that cost too much; device failures.
    pub fn solve(self, dev: &Device) -> Result<GeneralEigen> {
        self.solve_watched(dev, &mut |_| ControlFlow::Continue(()))
    }

    /// [`GeneralProblem::solve`], calling `watch` after each cycle. Returning `Break` ends the search as [`Reason::Cancelled`].
    ///
    /// # Errors
    /// As there.
    pub fn solve_watched(
        self,
        dev: &Device,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<GeneralEigen> {
        let n = self.a.rows();
        let refused = |what: &str, message: String| Err(Error::Argument { what: what.into(), message });
        if self.count == 0 || self.count > n {
            return refused("count", format!("expected 1 to {n} eigenvalues, got {}", self.count));
        }
        if !(self.rtol >= 0.0 && self.rtol.is_finite()) {
            return refused("rtol", format!("expected a number from 0 on, got {}", self.rtol));
        }
        if self.seed >= 1000 {
            return refused("seed", format!("expected a number below 1000, got {}", self.seed));
        }
        if let Part::Near(sigma) = self.which
            && !sigma.finite()
        {
            return refused("near", format!("expected a finite number, got {sigma}"));
        }
        if let Some(start) = &self.start {
            Error::check_length("eigenvalues", "the vector to begin with", n, start.len())?;
        }
        parallel::on(dev.workers(), || self.searched(dev, watch))
    }

    fn searched(
        self,
        dev: &Device,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<GeneralEigen> {
        let (started, n, of) = (Instant::now(), self.a.rows(), self.count);
        let floor = 4.0 * (n as f64).sqrt() * f64::EPSILON * norm_bound(&self.a);
        let goal = Goal { relative: self.rtol, floor: floor.max(f64::MIN_POSITIVE) };
        let size = |v: Complex64| length(&[v]);
        let before: Before<'_> = match self.which {
            Part::Modulus | Part::Near(_) => &|a, b| size(a) > size(b),
            Part::Rightmost => &|a, b| a.re > b.re,
            Part::Leftmost => &|a, b| a.re < b.re,
        };
        let (mut choices, mut notes) = (Vec::new(), Vec::new());
        let mut tell = |iterations, converged, worst| {
            watch(EigenProgress { what: "search", iterations, converged, of, worst })
        };
        let (mut found, setup) = if n <= DENSE || self.count + 4 > n {
            if n > 4 * DENSE {
                return Err(Error::Unsupported {
                    operation: "krylov-schur".into(),
                    message: format!("{of} of {n} eigenvalues are too many"),
                });
            }
            choices.push("method dense: the matrix is small".into());
            (self.dense(before)?, Duration::ZERO)
        } else {
            let of_value = |value: Complex64| goal.of(size(value));
            let of_inverse = |value: Complex64| INVERSE * size(value);
            let search = |a, goal| Search {
                dev,
                a,
                count: of,
                before,
                goal,
                limit: self.max_iters,
                seed: self.seed,
                start: self.start.as_deref(),
            };
            match self.which {
                Part::Near(sigma) => {
                    choices.push("method krylov-schur: by factors of the shifted matrix".into());
                    let (operator, sigma) = self.inverse(sigma, &mut notes)?;
                    let setup = started.elapsed();
                    let mut found =
                        krylov_schur(&search(&operator as &dyn LinOp<_>, &of_inverse), &mut tell)?;
                    found.values.iter_mut().for_each(|value| *value = sigma + value.inv());
                    (found, setup)
                }
                _ => {
                    choices.push("method krylov-schur: products alone find that end of the spectrum".into());
                    let a = placed(dev, &self.a)?;
                    let setup = started.elapsed();
                    (krylov_schur(&search(&a as &dyn LinOp<_>, &of_value), &mut tell)?, setup)
                }
            }
        };
        let residuals: Vec<f64> = found
            .vectors
            .iter_mut()
            .zip(&found.values)
            .map(|(x, value)| {
                let largest = x.iter().copied().fold(Complex64::from(0.0), |largest, v| {
                    if v.norm_sqr() > largest.norm_sqr() { v } else { largest }
                });
                let (norm, most) = (length(x), size(largest));
                if norm > 0.0 && most > 0.0 {
                    let by = largest.conj() / (most * norm);
                    x.iter_mut().for_each(|v| *v *= by);
                }
                let right: Vec<Complex64> = x.iter().map(|v| *value * *v).collect();
                residual_norm(&self.a, &right, x)
            })
            .collect();
        let met = |(value, left): (&Complex64, &f64)| *left <= goal.of(size(*value));
        let converged: Vec<bool> = found.values.iter().zip(&residuals).map(met).collect();
        let reason = match found.reason {
            Reason::Converged if !converged.iter().all(|met| *met) => Reason::Stagnated,
            reason => reason,
        };
        if n > DENSE {
            notes.push(
                "whether values are missing is not known: those of such a matrix cannot be counted".into(),
            );
        }
        let outcome = GeneralOutcome {
            reason,
            residuals,
            converged,
            products: found.products,
            restarts: found.restarts,
            history: found.history,
            setup,
            time: started.elapsed(),
            choices,
            notes,
        };
        Ok(GeneralEigen { values: found.values, vectors: found.vectors, outcome })
    }

    /// All eigenvalues, of which those that are wanted are kept.
    fn dense(&self, before: Before<'_>) -> Result<krylov_schur::Found> {
        let (n, sigma) = (self.a.rows(), if let Part::Near(sigma) = self.which { Some(sigma) } else { None });
        let mut whole = crate::small::Small::<Complex64>::zeros(n, n);
        self.a.entries().for_each(|(i, j, v)| whole.set(i, j, v));
        let mut schur = Schur::of(whole)?;
        let nearer = |a: Complex64, b: Complex64| {
            sigma.map_or_else(|| before(a, b), |sigma| length(&[a - sigma]) < length(&[b - sigma]))
        };
        schur.order(self.count, &nearer);
        let vectors = schur.vectors.times(&schur.eigenvectors(self.count));
        Ok(krylov_schur::Found {
            reason: Reason::Converged,
            values: schur.values()[..self.count].to_vec(),
            vectors: (0..self.count).map(|j| vectors.column(j).to_vec()).collect(),
            products: 0,
            restarts: 0,
            history: Vec::new(),
        })
    }

    /// The inverse of the shifted matrix, with the shift, which is moved a little if it is an eigenvalue.
    fn inverse(
        &self,
        sigma: Complex64,
        notes: &mut Vec<String>,
    ) -> Result<(lacuna_engine::HostOperator<Complex64>, Complex64)> {
        let n = self.a.rows();
        let made = |sigma: Complex64| {
            let by = shifted_by(&self.a, sigma)?;
            general(&by).map(|factors| factors.inverse(n))
        };
        match made(sigma) {
            Err(Error::Unsupported { .. }) => {
                let moved = sigma + 1e-6 * norm_bound(&self.a);
                notes.push(format!("{sigma} is an eigenvalue, or near one: {moved} was taken in its place"));
                Ok((made(moved)?, moved))
            }
            other => Ok((other?, sigma)),
        }
    }
}

/// `A − σ I`
fn shifted_by(a: &Csr<Complex64>, sigma: Complex64) -> Result<Csr<Complex64>> {
    let mut real = shifted(a, None, sigma.re)?;
    if sigma.im != 0.0 {
        let n = real.rows();
        let mut sum = Triplets::with_capacity(n, n, real.nnz() + n);
        real.entries().for_each(|(i, j, v)| sum.push(i, j, v));
        (0..n).for_each(|i| sum.push(i, i, Complex64::new(0.0, -sigma.im)));
        real = sum.to_csr()?;
    }
    Ok(real)
}
