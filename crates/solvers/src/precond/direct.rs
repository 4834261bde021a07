//! A complete factorisation: the direct solver as a preconditioner.
use super::triangles::name_with;
use crate::explain::unmatched;
use crate::named::{OptionInfo, Settings};
use crate::{Handles, Parts, PrecondInfo, Preconditioner, Setup};
use lacuna_direct::{Analysis, Factors, Limits, Number, Task};
use lacuna_engine::{Complex64, Double, Error, HostOperator, LinOp, Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::{Csr, interrupt};
use std::any::Any;
use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};

const OPERATION: &str = "direct";

/// `M = A⁻¹` by a sparse factorisation in double precision, of the kind that promises least time: `L Lᴴ` if the matrix is Hermitian
/// and positive definite, `L B Lᴴ` if it is Hermitian, otherwise `L U` of its blocks by columns or by fronts; with partial pivoting
/// where these fail. A method then needs one or two steps, which refine the solution.
///
/// * Needs: a nonsingular matrix. The entries of the factors and the operations are counted before anything
///   is factored, and a matrix beyond the limits is refused: fill on grids in 3D is too large from some 100
///   000 unknowns on.
/// * Cost of an application: two triangular solves on the host, on one thread; from a GPU, `r` and `z` are
///   transferred.
/// * Set-up: the fronts run on all threads, the rest on one; the bits do not depend on their number. New values on the same
///   pattern keep the order.
/// * Reference: Davis 2006, Direct Methods for Sparse Linear Systems, doi:10.1137/1.9780898718881; the kinds and their sources are
///   those of the crate `lacuna-direct`.
pub struct Direct {
    options: DirectOptions,
    /// The order found by [`Direct::analyse`].
    analysis: Option<Analysis>,
    /// A [`Made`] of the number type of the matrix.
    made: Option<Box<dyn Any + Send>>,
}

/// Limits on the cost of a factorisation.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct DirectOptions {
    /// Bytes of the factors, in GiB.
    pub memory: f64,
    /// Operations of the factorisation, in units of 10⁹.
    pub work: f64,
}

lacuna_engine::setters!(DirectOptions { memory: f64, work: f64 });

impl Default for DirectOptions {
    fn default() -> Self {
        DirectOptions { memory: 4.0, work: 200.0 }
    }
}

impl DirectOptions {
    fn limits(&self) -> Limits {
        Limits { bytes: self.memory * (1u64 << 30) as f64, operations: self.work * 1e9 }
    }
}

/// The operator that programs call, and the factors that it solves with; new values replace these.
struct Made<T: Scalar> {
    operator: HostOperator<T>,
    factors: Arc<RwLock<Box<dyn Solve<T>>>>,
}

/// Factors that solve systems in the number type of the matrix.
trait Solve<T: Scalar>: Send + Sync {
    fn solve(&self, task: Task, b: &[T], x: &mut [T]);
    fn renew(&mut self, a: &Csr<T>, options: &DirectOptions, setup: &mut Setup<'_>) -> Result<()>;
    fn report(&self) -> Vec<(&'static str, String)>;
}

impl<T: Scalar, W: Number> Solve<T> for Factors<W> {
    fn solve(&self, task: Task, b: &[T], x: &mut [T]) {
        let mut wide: Vec<W> = b.iter().map(|v| v.converted()).collect();
        Factors::solve(self, task, &mut wide);
        x.iter_mut().zip(&wide).for_each(|(x, v)| *x = v.converted());
    }
    fn renew(&mut self, a: &Csr<T>, options: &DirectOptions, setup: &mut Setup<'_>) -> Result<()> {
        setup.progress("factors", 0, None)?;
        setup.check_memory(OPERATION, self.cost().bytes as u64)?;
        let wide = a.wide()?;
        let a = (&*wide as &dyn Any).downcast_ref().ok_or_else(not_set_up)?;
        self.renew(a, &options.limits(), &mut || setup.check())
    }
    fn report(&self) -> Vec<(&'static str, String)> {
        self.report()
    }
}

impl Direct {
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: "direct",
        about: "complete factors on the host, of the kind that promises least time: a direct solve",
        options: &[
            OptionInfo { key: "memory", default: "4", about: "GiB that the factors may take, above 0" },
            OptionInfo { key: "work", default: "200", about: "10^9 operations that it may take, above 0" },
        ],
        needs_diagonal: false,
        needs_hermitian: false,
        needs_stencil: false,
    };

    /// With the given limits.
    pub fn new(options: DirectOptions) -> Self {
        Direct { options, analysis: None, made: None }
    }

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        let positive = |key: &str| settings.number(key, "a number above 0", |v: &f64| *v > 0.0);
        Ok(Direct::new(DirectOptions { memory: positive("memory")?, work: positive("work")? }))
    }

    fn made<T: Scalar>(&self) -> Option<&Made<T>> {
        self.made.as_ref()?.downcast_ref()
    }
}

impl Default for Direct {
    fn default() -> Self {
        Direct::new(DirectOptions::default())
    }
}

impl<T: Scalar> Made<T> {
    fn new(n: usize, factors: Box<dyn Solve<T>>) -> Self {
        let factors = Arc::new(RwLock::new(factors));
        let solves = |task: Task| {
            let factors = factors.clone();
            move |b: &[T], x: &mut [T]| {
                factors.read().unwrap_or_else(PoisonError::into_inner).solve(task, b, x)
            }
        };
        let operator = HostOperator::new(n, solves(Task::Plain)).with_adjoint(solves(Task::Adjoint));
        Made { operator, factors }
    }

    fn parts(&self) -> Parts<T> {
        let factors = self.factors.read().unwrap_or_else(PoisonError::into_inner);
        factors.report().into_iter().fold(Parts::new(), |parts, (what, value)| parts.report(what, value))
    }
}

impl<T: Scalar> Preconditioner<T> for Direct {
    fn name(&self) -> Cow<'static, str> {
        let (own, usual) = (self.options, DirectOptions::default());
        let mut said = Vec::new();
        let mut say = |differs: bool, what: String| said.extend(differs.then_some(what));
        say(own.memory != usual.memory, format!("memory={}", own.memory));
        say(own.work != usual.work, format!("work={}", own.work));
        name_with("direct", said)
    }
    fn set_up(&mut self, a: &Csr<T>, setup: &mut Setup<'_>) -> Result<Parts<T>> {
        setup.check()?;
        if let Some(made) = self.made::<T>().filter(|_| setup.is_update()) {
            let mut factors = made.factors.write().unwrap_or_else(PoisonError::into_inner);
            factors.renew(a, &self.options, setup)?;
            drop(factors);
            return Ok(made.parts());
        }
        let explained = |error| explained(a, error);
        let wide = a.wide()?;
        interrupt::check()?;
        let analysis = self.analysis.take().map_or_else(|| whole_analysis(&*wide), Ok).map_err(explained)?;
        setup.progress("factors", 0, None)?;
        setup.check_memory(OPERATION, analysis.cost().bytes as u64)?;
        let limits = self.options.limits();
        let check = &mut || setup.check();
        let factors: Box<dyn Solve<T>> = match of_double(&*wide) {
            OfDouble::Real(a) => Box::new(Factors::new(a, analysis, &limits, check).map_err(explained)?),
            OfDouble::Complex(a) => Box::new(Factors::new(a, analysis, &limits, check).map_err(explained)?),
        };
        setup.check()?;
        let made = Made::new(a.rows(), factors);
        let parts = made.parts();
        self.made = Some(Box::new(made));
        Ok(parts)
    }
    fn expected_setup(&mut self, a: &Csr<T>, within: f64) -> Result<Option<f64>> {
        let analysis = analysed(&*a.wide()?, within).map_err(|error| explained(a, error))?;
        let Some(analysis) = analysis else { return Ok(None) };
        let seconds = analysis.cost().seconds;
        // Where they take longer, a better order was not sought.
        self.analysis = (seconds <= within).then_some(analysis);
        Ok(Some(seconds))
    }
    fn outweighs_product(&self) -> bool {
        true
    }
    fn apply(&self, k: &mut Recorder<'_, T>, _: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        match self.made::<T>() {
            Some(made) => made.operator.apply(k, r, z, then),
            None => k.fail(not_set_up()),
        }
    }
    fn knows_adjoint(&self) -> bool {
        true
    }
    fn apply_adjoint(
        &self,
        k: &mut Recorder<'_, T>,
        _: &Handles<T>,
        r: Vector<T>,
        z: Vector<T>,
        then: Pass<T>,
    ) {
        match self.made::<T>() {
            Some(made) => made.operator.apply_adjoint(k, r, z, then),
            None => k.fail(not_set_up()),
        }
    }
}

/// A matrix in double precision.
enum OfDouble<'a> {
    Real(&'a Csr<f64>),
    Complex(&'a Csr<Complex64>),
}

fn of_double<W: Double>(a: &Csr<W>) -> OfDouble<'_> {
    let any: &dyn Any = a;
    match any.downcast_ref() {
        Some(real) => OfDouble::Real(real),
        None => OfDouble::Complex(any.downcast_ref().expect("one of two types")),
    }
}

fn whole_analysis<W: Double>(a: &Csr<W>) -> Result<Analysis> {
    match of_double(a) {
        OfDouble::Real(a) => Analysis::of(a),
        OfDouble::Complex(a) => Analysis::of(a),
    }
}

/// None if the order alone takes too long for factors within so many seconds.
fn analysed<W: Double>(a: &Csr<W>, within: f64) -> Result<Option<Analysis>> {
    match of_double(a) {
        OfDouble::Real(a) => Analysis::within(a, within),
        OfDouble::Complex(a) => Analysis::within(a, within),
    }
}

/// An error of a factorisation, or which rows make the matrix structurally singular.
fn explained<T: Scalar>(a: &Csr<T>, error: Error) -> Error {
    if matches!(error, Error::Unsupported { .. })
        && let Some(message) = unmatched(a)
    {
        return Error::Unsupported { operation: OPERATION.into(), message };
    }
    error
}

fn not_set_up() -> Error {
    Error::Unsupported {
        operation: OPERATION.into(),
        message: "it was not set up for this number type".into(),
    }
}
