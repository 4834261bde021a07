//! Factors of `A − σ B`: the operator of shift-invert, and the number of eigenvalues below `σ`.
use lacuna_direct::{Analysis, Cost, Factors, Inertia, Kind, Limits, Number, Task};
use lacuna_engine::{Complex64, Error, HostOperator, Result, Scalar};
use lacuna_formats::{Csr, Triplets};
use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;

/// The most that factors may cost: as the preconditioner `direct`.
const LIMITS: Limits = Limits { bytes: 4.0 * (1u64 << 30) as f64, operations: 2e11 };

/// By how much more time there must be for an order to be looked for again.
const AGAIN: f64 = 2.0;

/// `A − σ B`, or `A − σ I`.
pub(crate) fn shifted<T: Scalar>(a: &Csr<T>, b: Option<&Csr<T>>, sigma: f64) -> Result<Csr<T::Wide>> {
    let n = a.rows();
    let by = <T::Wide as Scalar>::from_real(sigma);
    let mut sum = Triplets::with_capacity(n, n, a.nnz() + b.map_or(n, Csr::nnz));
    a.entries().for_each(|(i, j, v)| sum.push(i, j, v.wide()));
    match b {
        Some(b) => b.entries().for_each(|(i, j, v)| sum.push(i, j, -(by * v.wide()))),
        None => (0..n).for_each(|i| sum.push(i, i, -by)),
    }
    sum.to_csr()
}

/// Factors in the double precision of a number type.
pub(crate) trait Solve<T: Scalar>: Send + Sync {
    /// `x ← (A − σ B)⁻¹ b`
    fn solve(&self, b: &[T], x: &mut [T]);
    /// The signs of the eigenvalues; `None` if the factors do not tell.
    fn inertia(&self) -> Option<Inertia>;
    /// Factors another shifted matrix of the same pattern, in the same order.
    fn renew(&mut self, shifted: &Csr<T::Wide>) -> Result<()>;
}

impl<T: Scalar, W: Number> Solve<T> for Factors<W> {
    fn solve(&self, b: &[T], x: &mut [T]) {
        let mut wide: Vec<W> = b.iter().map(|v| v.converted()).collect();
        Factors::solve(self, Task::Plain, &mut wide);
        x.iter_mut().zip(&wide).for_each(|(x, v)| *x = v.converted());
    }
    fn inertia(&self) -> Option<Inertia> {
        Factors::inertia(self)
    }
    fn renew(&mut self, shifted: &Csr<T::Wide>) -> Result<()> {
        let any: &dyn Any = shifted;
        let shifted = any.downcast_ref::<Csr<W>>().ok_or_else(not_double)?;
        Factors::renew(self, shifted, &LIMITS, &mut || Ok(()))
    }
}

/// What is known of factors of a pattern: an order that was found and not used yet, and seconds that do not suffice.
#[derive(Default)]
pub(crate) struct Known {
    analysis: Cell<Option<Analysis>>,
    refused: Cell<f64>,
}

impl Known {
    /// Whether so many seconds are not enough, as far as is known.
    pub(crate) fn refuses(&self, seconds: f64) -> bool {
        seconds < AGAIN * self.refused.get()
    }
}

/// An analysis of a shifted matrix, before it is factored.
pub(crate) struct Shifted<W: Scalar> {
    matrix: Csr<W>,
    analysis: Analysis,
}

impl<W: Scalar> Shifted<W> {
    /// Finds an order, as a Hermitian matrix.
    ///
    /// # Errors
    /// As [`Analysis::as_kind`].
    pub(crate) fn new(matrix: Csr<W>) -> Result<Self> {
        let analysis = analysed(&matrix, f64::INFINITY)?;
        let analysis = analysis.ok_or_else(|| Error::Unsupported {
            operation: "factors of a shifted matrix".into(),
            message: "no order of elimination was found".into(),
        })?;
        Ok(Shifted { matrix, analysis })
    }
    /// The same if the factors are expected to take so many seconds at most, within the limits. An order of the same pattern that is
    /// known is taken, and one that was found in vain is kept.
    ///
    /// # Errors
    /// As [`Analysis::as_kind`].
    pub(crate) fn within(matrix: Csr<W>, seconds: f64, known: &Known) -> Result<Option<Self>> {
        let fits = |analysis: &Analysis| {
            let cost = analysis.cost();
            cost.seconds <= seconds && cost.bytes <= LIMITS.bytes && cost.operations <= LIMITS.operations
        };
        let refused = known.refuses(seconds);
        let analysis = match known.analysis.take() {
            Some(analysis) => Some(analysis),
            None if refused => None,
            None => {
                let found = analysed(&matrix, seconds)?;
                known.refused.set(if found.is_none() { seconds } else { 0.0 });
                found
            }
        };
        match analysis {
            Some(analysis) if fits(&analysis) => Ok(Some(Shifted { matrix, analysis })),
            unfit => {
                if let Some(analysis) = &unfit {
                    known.refused.set(analysis.cost().seconds / AGAIN);
                }
                known.analysis.set(unfit);
                Ok(None)
            }
        }
    }
    /// What the factors cost.
    pub(crate) fn cost(&self) -> Cost {
        self.analysis.cost()
    }
    /// Keeps the order.
    pub(crate) fn kept(self, known: &Known) {
        known.analysis.set(Some(self.analysis));
    }
    /// The factors, as those of a Hermitian matrix if that works.
    ///
    /// # Errors
    /// As [`Factors::new`]: among others for a singular matrix.
    pub(crate) fn factors<T: Scalar>(self) -> Result<Arc<dyn Solve<T>>> {
        self.made(true)
    }
    /// The factors as those of a Hermitian matrix, whose signs are known.
    ///
    /// # Errors
    /// As [`Factors::of_that_kind`].
    pub(crate) fn hermitian_factors<T: Scalar>(self) -> Result<Arc<dyn Solve<T>>> {
        self.made(false)
    }

    fn made<T: Scalar>(self, of_any_kind: bool) -> Result<Arc<dyn Solve<T>>> {
        fn factored<W: Number>(a: &Csr<W>, analysis: Analysis, of_any_kind: bool) -> Result<Factors<W>> {
            let check = &mut || Ok(());
            match of_any_kind {
                true => Factors::new(a, analysis, &LIMITS, check),
                false => Factors::of_that_kind(a, analysis, &LIMITS, check),
            }
        }
        let Shifted { matrix, analysis } = self;
        let any: &dyn Any = &matrix;
        match (any.downcast_ref::<Csr<f64>>(), any.downcast_ref::<Csr<Complex64>>()) {
            (Some(a), _) => Ok(Arc::new(factored(a, analysis, of_any_kind)?)),
            (_, Some(a)) => Ok(Arc::new(factored(a, analysis, of_any_kind)?)),
            _ => Err(not_double()),
        }
    }
}

/// An order for factors as a Hermitian matrix that are wanted within so many seconds; none if that is out of reach.
fn analysed<W: Scalar>(matrix: &Csr<W>, seconds: f64) -> Result<Option<Analysis>> {
    let any: &dyn Any = matrix;
    match (any.downcast_ref::<Csr<f64>>(), any.downcast_ref::<Csr<Complex64>>()) {
        (Some(a), _) => Analysis::as_kind_within(a, Kind::Symmetric, seconds),
        (_, Some(a)) => Analysis::as_kind_within(a, Kind::Symmetric, seconds),
        _ => Err(not_double()),
    }
}

fn not_double() -> Error {
    Error::Argument { what: "shift".into(), message: "expected a matrix in double precision".into() }
}

/// Factors of a square matrix that need not be Hermitian, in the double precision of its number type.
pub(crate) struct General<T>(Arc<dyn SolveBoth<T>>);

/// Solves with a matrix and with its adjoint.
trait SolveBoth<T>: Send + Sync {
    fn solve(&self, task: Task, b: &[T], x: &mut [T]);
}

impl<T: Scalar, W: Number> SolveBoth<T> for Factors<W> {
    fn solve(&self, task: Task, b: &[T], x: &mut [T]) {
        let mut wide: Vec<W> = b.iter().map(|v| v.converted()).collect();
        Factors::solve(self, task, &mut wide);
        x.iter_mut().zip(&wide).for_each(|(x, v)| *x = v.converted());
    }
}

/// Factors of a matrix.
///
/// # Errors
/// As [`Factors::new`]: among others for a singular matrix.
pub(crate) fn general<T: Scalar>(a: &Csr<T>) -> Result<General<T>> {
    let wide = a.wide()?;
    let any: &dyn Any = &*wide;
    let check = &mut || Ok(());
    Ok(General(match (any.downcast_ref::<Csr<f64>>(), any.downcast_ref::<Csr<Complex64>>()) {
        (Some(a), _) => Arc::new(Factors::new(a, Analysis::of(a)?, &LIMITS, check)?),
        (_, Some(a)) => Arc::new(Factors::new(a, Analysis::of(a)?, &LIMITS, check)?),
        _ => return Err(not_double()),
    }))
}

impl<T: Scalar> General<T> {
    /// The operator `A⁻¹` on the host, with its adjoint.
    pub(crate) fn inverse(&self, n: usize) -> HostOperator<T> {
        let [plain, adjoint] = [Task::Plain, Task::Adjoint].map(|task| {
            let factors = Arc::clone(&self.0);
            move |b: &[T], x: &mut [T]| factors.solve(task, b, x)
        });
        HostOperator::new(n, plain).with_adjoint(adjoint)
    }
}

/// The operator `(A − σ B)⁻¹` on the host.
pub(crate) fn inverse<T: Scalar>(n: usize, factors: Arc<dyn Solve<T>>) -> HostOperator<T> {
    HostOperator::new(n, move |b: &[T], x: &mut [T]| factors.solve(b, x))
}
