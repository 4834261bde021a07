//! Ritz values: what a few Lanczos steps tell of a Hermitian matrix.
use crate::random::hashed;
use lacuna_engine::{Device, History, LinOp, Pass, Recorder, Result, Run, Scalar};
use lacuna_formats::Csr;
use std::mem;

/// Bisections of an eigenvalue of the tridiagonal matrix: to the last bit.
const BISECTIONS: usize = 60;
/// A step whose `β` is this small next to the first has found an invariant subspace.
const EXHAUSTED: f64 = 1e-12;

/// The eigenvalues of the tridiagonal matrix that Lanczos' method makes of a Hermitian operator. They lie
/// between the operator's extreme eigenvalues and approach these first.
#[derive(Clone, Debug, PartialEq)]
pub struct RitzValues {
    /// The diagonal, and the entries beside it.
    alpha: Vec<f64>,
    beta: Vec<f64>,
}

impl RitzValues {
    /// `steps` Lanczos steps for a Hermitian `A` from a hashed vector, as a program: one product and three
    /// sweeps a step. Vectors are not orthogonalised again, which repeats extreme values but makes no others.
    ///
    /// # Errors
    /// [`lacuna_engine::Error::Shape`] unless square; device failures.
    ///
    /// Reference: Saad 2003, Iterative Methods for Sparse Linear Systems, Algorithm 6.15,
    /// doi:10.1137/1.9780898718003.
    pub fn of<T: Scalar>(dev: &Device, a: &dyn LinOp<T>, steps: usize) -> Result<Self> {
        let n = a.shape().1;
        let steps = steps.min(n);
        let mut k = Recorder::new(dev, "lanczos");
        let mut v = k.vector_of(&(0..n).map(|row| T::from_real(hashed(row, 0))).collect::<Vec<_>>());
        let [mut u, w] = k.vectors(n);
        let (alpha, beta) = (k.run_of_cells(steps), k.run_of_cells(steps + 1));
        let [norm] = k.cells();
        k.multi_axpy_dot(Pass::new("start").dot(norm, v, v).eval(beta.at(0), norm.sqrt()));
        k.multi_axpy_dot(Pass::new("normalise").set(v, v / beta.at(0)));
        for j in 0..steps {
            let (alpha, before, after) = (alpha.at(j), beta.at(j), beta.at(j + 1));
            k.spmv_dot(a, v, w, Pass::new("along v").dot(alpha, v, w));
            let orthogonal = Pass::new("orthogonalise").set(w, w - alpha * v);
            let orthogonal = if j == 0 { orthogonal } else { orthogonal.set(w, w - before * u) };
            k.multi_axpy_dot(orthogonal.dot(norm, w, w).eval(after, norm.sqrt()));
            k.multi_axpy_dot(Pass::new("normalise").set(u, w / after));
            mem::swap(&mut u, &mut v);
        }
        let mut plan = dev.plan(k.finish()?)?;
        plan.execute(Run { limit: 1, history: &mut History::off(), watch: None })?;
        let real = |cells: Vec<T>| cells.into_iter().map(|v| v.re()).collect::<Vec<f64>>();
        let alphas = real(dev.read(&(0..steps).map(|j| alpha.at(j)).collect::<Vec<_>>())?);
        let betas = real(dev.read(&(1..=steps).map(|j| beta.at(j)).collect::<Vec<_>>())?);
        Ok(Self::from_tridiagonal(alphas, betas))
    }

    /// The leading part of a tridiagonal matrix up to the first entry beside the diagonal that is nearly 0.
    fn from_tridiagonal(mut alpha: Vec<f64>, mut beta: Vec<f64>) -> Self {
        let size = alpha.first().map_or(0.0, |a| a.abs()).max(beta.first().copied().unwrap_or(0.0));
        let goes_on = |b: &&f64| b.is_finite() && **b > EXHAUSTED * size;
        let couplings = beta.iter().take(alpha.len().saturating_sub(1)).take_while(goes_on).count();
        alpha.truncate(couplings + 1);
        beta.truncate(couplings);
        RitzValues { alpha, beta }
    }

    /// The number of steps that were done.
    pub fn steps(&self) -> usize {
        self.alpha.len()
    }

    /// The number of values below a bound, by the signs of Sturm's sequence.
    pub fn below(&self, bound: f64) -> usize {
        let mut pivot = f64::INFINITY;
        let negative = self.alpha.iter().enumerate().filter(|(j, a)| {
            let coupling = if *j == 0 { 0.0 } else { self.beta[j - 1].powi(2) };
            pivot = *a - bound - coupling / pivot;
            if pivot == 0.0 {
                pivot = f64::MIN_POSITIVE;
            }
            pivot < 0.0
        });
        negative.count()
    }

    /// The smallest and the largest value; `None` without any.
    pub fn extremes(&self) -> Option<[f64; 2]> {
        let steps = self.steps();
        let reach = |j: usize| {
            let beside = |at: Option<usize>| at.and_then(|at| self.beta.get(at)).copied().unwrap_or(0.0);
            let (a, b) = (self.alpha[j], beside(j.checked_sub(1)) + beside(Some(j)));
            [a - b, a + b]
        };
        let widest = |[low, high]: [f64; 2], [a, b]: [f64; 2]| [low.min(a), high.max(b)];
        let bounds = (0..steps).map(reach).reduce(widest)?;
        let bisect = |count: usize| {
            let [mut low, mut high] = bounds;
            for _ in 0..BISECTIONS {
                let middle = 0.5 * (low + high);
                if self.below(middle) > count { high = middle } else { low = middle }
            }
            0.5 * (low + high)
        };
        Some([bisect(0), bisect(steps - 1)])
    }

    /// A lower bound of the condition number, if no value is negative.
    pub fn condition(&self) -> Option<f64> {
        self.extremes().filter(|[low, _]| *low > 0.0).map(|[low, high]| high / low)
    }

    /// Iterations after which conjugate gradients reduce the error by `tolerance` at the latest, if the condition
    /// number is no larger than these values show: `½ √κ ln(2 / tolerance)`.
    pub fn cg_iterations(&self, tolerance: f64) -> Option<u64> {
        self.condition().map(|condition| (0.5 * condition.sqrt() * libm::log(2.0 / tolerance)).ceil() as u64)
    }
}

/// `|D|^(-½) A |D|^(-½)`, whose eigenvalues are those of `|D|⁻¹ A`; the matrix itself if its diagonal has zeros
/// or numbers so small that this would overflow.
///
/// # Errors
/// [`lacuna_engine::Error::OutOfMemory`].
pub fn balanced<T: Scalar>(a: &Csr<T>) -> Result<Csr<T>> {
    let root = |i: usize| a.get(i, i).map_or(0.0, |d| d.modulus().sqrt());
    let roots: Vec<f64> = (0..a.rows()).map(root).collect();
    let scaled: Vec<T> = a.entries().map(|(i, j, v)| v * T::from_real(1.0 / (roots[i] * roots[j]))).collect();
    if scaled.iter().all(|v| v.finite()) { a.with_values(scaled) } else { Ok(a.clone()) }
}
