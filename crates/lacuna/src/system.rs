//! The builder of a linear system. Whatever is not set is chosen when it is prepared.
use crate::prepared::{AnySolver, Prepared};
use crate::remembered_method::RememberedMethod;
use crate::{AsVector, Place, tune_format};
use lacuna_engine::{Device, Error, Format, LinOp, Result, Scalar};
use lacuna_formats::{Csr, parallel};
use lacuna_solvers::auto::{
    Analysis, AutoSolver, Chosen, IntoMethod, IntoPreconditioner, MethodChoice, OperatorSolver,
    PreconditionerChoice, Refinement, Request,
};
use lacuna_solvers::{Observer, Options, Outcome, SetupWatch, Stop, interruptible};
use ndarray::Array1;
use std::sync::Arc;

/// Solves `A x = b` with a method and a preconditioner chosen for the matrix, to a relative residual of 1e-8
/// (1e-5 in single precision). [`Outcome::choices`] says what was chosen and why.
///
/// Solves on the [`default_device`](crate::default_device), and copies the matrix; [`LinearSystem`] lets you choose, and does not.
///
/// ```
/// use lacuna::prelude::*;
///
/// let a = Csr::<f64>::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![4.0, 1.0, 1.0, 3.0])?;
/// let (x, outcome) = solve(&a, &[1.0, 2.0])?;
/// assert!((x[0] - 1.0 / 11.0).abs() < 1e-8 && (x[1] - 7.0 / 11.0).abs() < 1e-8);
/// assert!(outcome.choices[0].starts_with("method "), "what was chosen, and why");
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// [`Error::Length`](lacuna_engine::Error::Length) and [`Error::Element`](lacuna_engine::Error::Element) for `b`, device failures.
pub fn solve<T: Scalar>(a: &Csr<T>, b: impl AsVector<T>) -> Result<(Array1<T>, Outcome)> {
    LinearSystem::new(a.clone()).prepare()?.solve(b)
}

/// A matrix and the settings of its solver. Whatever is not set is chosen by [`LinearSystem::prepare`] from
/// the matrix. A matrix that is not square makes it a least-squares problem, `min ‖b − A x‖`: see
/// [`Method::least_squares`](crate::Method::least_squares).
///
/// ```
/// use lacuna::prelude::*;
///
/// let a = Spec::parse("gen:convection:40x40:10")?.build::<f64>()?;
/// let b = Array1::ones(a.rows());
/// let mut system = LinearSystem::new(a)
///     .method("gmres")
///     .restart(50)
///     .preconditioner("jacobi")
///     .stop(Stop::default().rtol(1e-10))
///     .prepare()?;
/// let (x, outcome) = system.solve(&b)?;
/// assert!(outcome.converged());
///
/// // Again for another b, from the last solution, with nothing allocated.
/// let (mut x, b) = (x, 2.0 * b);
/// assert!(system.solve_into(&b, &mut x)?.converged());
/// # Ok::<(), lacuna::Error>(())
/// ```
#[must_use = "a system does nothing until it is prepared"]
pub struct LinearSystem<T: Scalar> {
    request: Request<T, Source<T>>,
    refines: bool,
    x0: Option<Vec<T>>,
    place: Place,
}

/// What a system is made of.
enum Source<T: Scalar> {
    Matrix(Arc<Csr<T>>),
    Format(Arc<dyn Format<T>>),
    Operator(Box<dyn LinOp<T> + Send>),
}

#[cfg(feature = "ranks")]
impl<T: Scalar> Source<T> {
    fn rows(&self) -> usize {
        match self {
            Source::Matrix(a) => a.rows(),
            Source::Format(a) => a.shape().0,
            Source::Operator(a) => a.shape().0,
        }
    }
}

impl<T: Scalar> LinearSystem<T> {
    /// The default relative tolerance: 1e-8, or 1e-5 in single precision, whose unit roundoff of 6e-8 is
    /// magnified by the condition number of the matrix.
    pub const DEFAULT_RTOL: f64 = <Request<T>>::DEFAULT_RTOL;

    /// A system with this matrix, given by value, shared (`Arc<Csr<T>>`) or borrowed (`CsrRef<'_, T>`), which is copied once.
    pub fn new(a: impl Into<Arc<Csr<T>>>) -> Self {
        Self::of(Source::Matrix(a.into()))
    }

    /// A system with a matrix in a format whose entries are nowhere else, as a stencil of a grid. What is said of
    /// [`LinearSystem::from_operator`] holds for it too.
    ///
    /// ```
    /// use lacuna::prelude::*;
    /// use lacuna::formats::Stencil;
    /// use std::sync::Arc;
    ///
    /// let a = Spec::parse("gen:poisson2d:40x40")?.build::<f64>()?;
    /// let grid = Arc::new(Stencil::from_csr(&a)?); // 5 numbers
    /// let mut system = LinearSystem::from_format(grid).method("cg").prepare()?;
    /// system.solve(&[1.0; 1600])?.1.ok()?;
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    pub fn from_format(a: Arc<dyn Format<T>>) -> Self {
        Self::of(Source::Format(a))
    }

    /// A system with an operator: a function ([`HostOperator`](crate::HostOperator)), which may fail, or a [`LinOp`] of your own
    /// that records its operations, on the device that it was made for.
    ///
    /// Without a method asked for, it is `gmres`, or `lsmr` if the operator is not square; no other follows. The true residual is
    /// confirmed by the operator, in the number type of the solve; there is no backward error. The preconditioner is an operator
    /// too, or a [`Placed`](crate::Placed) one of a matrix that is near. What needs the entries of a matrix is an error of
    /// [`LinearSystem::prepare`]: other preconditioners, [`LinearSystem::format`], [`LinearSystem::reorder`],
    /// [`LinearSystem::with_adjoint`] and [`LinearSystem::refine`].
    ///
    /// ```
    /// use lacuna::prelude::*;
    ///
    /// // A dense matrix of rank one beside a diagonal, of which neither is stored.
    /// let a = HostOperator::new(300, |x: &[f64], y: &mut [f64]| -> Result<(), String> {
    ///     let sum: f64 = x.iter().sum();
    ///     x.iter().zip(y).for_each(|(x, y)| *y = 4.0 * x + sum);
    ///     if sum.is_finite() { Ok(()) } else { Err("the sum overflowed".into()) }
    /// });
    /// let mut system = LinearSystem::from_operator(a).method("cg").prepare()?;
    /// let (_, outcome) = system.solve(&[1.0; 300])?;
    /// outcome.ok()?;
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    pub fn from_operator(a: impl LinOp<T> + Send + 'static) -> Self {
        Self::of(Source::Operator(Box::new(a)))
    }

    fn of(source: Source<T>) -> Self {
        LinearSystem { request: Request::new(source), refines: false, x0: None, place: Place::Default }
    }

    /// The method by name, see [`METHODS`](lacuna_solvers::METHODS), with options as `NAME:key=value,…`, or as a value:
    /// `.method("bicgstab-l")`, `.method(BiCgStabL::default())`, or a function of your own that records one. `auto` chooses.
    /// `tune` takes what solved a matrix of this structure fastest before, by [`advise`](crate::advise) or by a solve with
    /// `tune`, with its preconditioner; if nothing is remembered or a preconditioner is named, it chooses. `jacobi`,
    /// `gauss-seidel`, `sor` and `direct` are [`Richardson`](lacuna_solvers::Richardson)'s iteration with a preconditioner, whose
    /// options they take: see [`Combined`](lacuna_solvers::Combined).
    ///
    /// ```
    /// use lacuna::prelude::*;
    /// use lacuna::solvers::{Cycle, Gmres};
    ///
    /// let a = Spec::parse("gen:convection:20x20")?.build::<f64>()?;
    /// let by_name = LinearSystem::new(a.clone()).method("gmres:restart=20").prepare()?.solve(&[1.0; 400])?;
    /// let gmres = Gmres { cycle: Cycle { restart: 20, ..Cycle::default() }, ..Gmres::default() };
    /// let by_value = LinearSystem::new(a).method(gmres).prepare()?.solve(&[1.0; 400])?;
    /// assert_eq!(by_name.0, by_value.0);
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    pub fn method<By>(mut self, method: impl IntoMethod<T, By>) -> Self {
        self.request.method = method.into_method();
        self
    }
    /// The preconditioner by name, see [`PRECONDITIONERS`](lacuna_solvers::PRECONDITIONERS), with options as `NAME:key=value,…`,
    /// or as a value, also one of your own: `.preconditioner("amg:coarsest=100")`,
    /// `.preconditioner(Amg::new(AmgOptions::default().coarsest(100)))`; or an operator `M ≈ A⁻¹`, as a
    /// [`HostOperator`](crate::HostOperator), which new values leave as it is. `auto` chooses.
    ///
    /// ```
    /// use lacuna::prelude::*;
    /// use lacuna::solvers::{Amg, AmgOptions};
    ///
    /// let a = Spec::parse("gen:poisson2d:30x30")?.build::<f64>()?;
    /// let cg = || LinearSystem::new(a.clone()).method("cg");
    /// let by_name = cg().preconditioner("amg:coarsest=100").prepare()?.solve(&[1.0; 900])?;
    /// let amg = Amg::new(AmgOptions::default().coarsest(100));
    /// let by_value = cg().preconditioner(amg).prepare()?.solve(&[1.0; 900])?;
    /// assert_eq!(by_name.0, by_value.0);
    ///
    /// let quarter = HostOperator::new(900, |r: &[f64], z: &mut [f64]| {
    ///     r.iter().zip(z).for_each(|(r, z)| *z = r / 4.0);
    ///     Ok::<(), String>(())
    /// });
    /// assert!(cg().preconditioner(quarter).prepare()?.solve(&[1.0; 900])?.1.converged());
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    pub fn preconditioner<By>(mut self, preconditioner: impl IntoPreconditioner<T, By>) -> Self {
        self.request.preconditioner = preconditioner.into_preconditioner();
        self
    }
    /// The storage format by name, see [`FORMATS`](lacuna_formats::FORMATS). `auto` chooses by the bytes that
    /// a product moves, or keeps `csr` on the host beside factors whose solves outweigh a product, `tune` by measurement, once per structure, number type and device: see
    /// [`tune_format`](crate::tune_format). Both forms of the matrix are in memory during the conversion.
    pub fn format(mut self, name: &str) -> Self {
        self.request.format = (name != "auto").then(|| name.into());
        self
    }
    /// The order of rows and columns by name, see [`ORDERS`](lacuna_formats::ORDERS): `none`, the default,
    /// keeps the given one; `auto` changes it if that is likely to gain much; `matching` moves rows alone, so
    /// that large entries are on the diagonal. With an automatic method that is done where the diagonal has zeros
    /// and most entries have no mirror image. Right-hand sides, solutions and errors stay in the given order.
    pub fn reorder(mut self, name: &str) -> Self {
        self.request.reorder = name.into();
        self
    }
    /// Scales rows and columns before the solve, by powers of two, which rounds nothing: by name, see
    /// [`SCALINGS`](lacuna_formats::factor::SCALINGS); `none` is the default. For a matrix whose rows or columns differ in size by many
    /// powers of ten, because their units do. Right-hand sides and solutions stay in the given units; the tolerance and the residuals
    /// are those of the scaled rows, and [`Outcome::notes`] has the residual of the given ones. New values keep the factors.
    ///
    /// ```
    /// use lacuna::prelude::*;
    ///
    /// // Row 1 in other units.
    /// let a = Csr::<f64>::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![4.0, 1.0, 1e12, 3e12])?;
    /// let mut system = LinearSystem::new(a).method("bicgstab").preconditioner("none").scale("rows").prepare()?;
    /// let (x, outcome) = system.solve(&[1.0, 2e12])?;
    /// assert!(outcome.converged() && (x[0] - 1.0 / 11.0).abs() < 1e-8);
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    pub fn scale(mut self, name: &str) -> Self {
        self.request.scale = name.into();
        self
    }
    /// Stores the conjugate transpose on the device too, in the same format. This takes as much memory again
    /// unless the matrix is Hermitian. For methods of your own that need `Aᴴ x`, see
    /// [`Method::needs_adjoint`](crate::Method::needs_adjoint).
    ///
    /// Conjugate gradients on the normal equations (CGNR), for any nonsingular matrix:
    ///
    /// ```
    /// use lacuna::prelude::*;
    /// use lacuna::Adjoint;
    ///
    /// fn cgnr<T: Scalar>(k: &mut Recorder<'_, T>, s: &System<'_, T>) {
    ///     let (a, ah, b, x) = (s.a, Adjoint(s.a), s.b, s.x);
    ///     let [r, z, p, w] = k.vectors(s.n());
    ///     let [rr, zz, ww, alpha, beta, last] = k.cells();
    ///     let residual = s.confirm(Pass::new("residual").set(r, b - w).dot(rr, r, r), rr);
    ///     let begin = Pass::new("begin").set(p, z).dot(last, z, z);
    ///     let along = Pass::new("along").dot(ww, w, w).eval(alpha, last / ww);
    ///     let step = s.count(Pass::new("step").set(x, x + alpha * p).set(r, r - alpha * w).dot(rr, r, r), rr);
    ///     let turn = Pass::new("turn").dot(zz, z, z).eval(beta, zz / last).eval(last, zz);
    ///     k.restart(|k| {
    ///         k.spmv_dot(a, x, w, residual);
    ///         k.spmv_dot(&ah, r, z, begin);
    ///     });
    ///     k.each(|k| {
    ///         k.spmv_dot(a, p, w, along);
    ///         k.multi_axpy_dot(step);
    ///         k.spmv_dot(&ah, r, z, turn);
    ///         k.multi_axpy_dot(Pass::new("direction").set(p, z + beta * p));
    ///     });
    /// }
    ///
    /// let a = Spec::parse("gen:convection:12x12")?.build::<f64>()?;
    /// let b = Array1::ones(a.rows());
    /// let mut system = LinearSystem::new(a).method(cgnr).with_adjoint().prepare()?;
    /// assert!(system.solve(&b)?.1.converged());
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    pub fn with_adjoint(mut self) -> Self {
        self.request.adjoint = true;
        self
    }
    /// Solves in mixed precision by iterative refinement (Wilkinson 1963): corrections in the narrower type
    /// (`f32` under `f64`, `Complex32` under `Complex64`), which moves half the bytes, and residuals and the
    /// solution in the wide type. As accurate as without refinement as long as the condition number leaves
    /// single precision at least one digit. Each correction restarts the method, which costs iterations.
    ///
    /// ```
    /// use lacuna::prelude::*;
    ///
    /// let a = Spec::parse("gen:poisson2d:40x40")?.build::<f64>()?;
    /// let b = Array1::ones(a.rows());
    /// let stop = Stop::default().rtol(1e-12);
    /// let mut system = LinearSystem::new(a).refine(true).stop(stop).prepare()?;
    /// assert!(system.solve(&b)?.1.true_residual <= 1e-12);
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    pub fn refine(mut self, refine: bool) -> Self {
        self.refines = refine;
        self
    }
    /// Settings that some methods take.
    pub fn options(mut self, options: Options) -> Self {
        self.request.options = options;
        self
    }
    /// Iterations of a GMRES cycle.
    pub fn restart(mut self, iterations: usize) -> Self {
        self.request.options.restart = Some(iterations);
        self
    }
    /// Stopping criteria.
    ///
    /// ```
    /// use lacuna::prelude::*;
    ///
    /// let a = Spec::parse("gen:poisson2d:30x30")?.build::<f64>()?;
    /// let stop = Stop::default().rtol(1e-12).max_iters(200);
    /// let (_, outcome) = LinearSystem::new(a).method("cg").stop(stop).prepare()?.solve(&[1.0; 900])?;
    /// assert!(outcome.converged() && outcome.true_residual <= 1e-12);
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    pub fn stop(mut self, stop: Stop) -> Self {
        self.request.stop = stop;
        self
    }
    /// Solves by the method and the preconditioner that were asked for or chosen first, and by nothing else: no other method
    /// continues where they fall short, and a result that does is not explained. `converged` still holds for the true residual.
    /// For smoothers, inexact Newton methods and others that stop early on purpose: what falls short costs no more than its
    /// iterations.
    ///
    /// ```
    /// use lacuna::prelude::*;
    ///
    /// let a = Spec::parse("gen:poisson2d:40x40")?.build::<f64>()?;
    /// let stop = Stop::default().max_iters(5);
    /// let mut smoother = LinearSystem::new(a).method("cg").strict(true).stop(stop).prepare()?;
    /// let (x, outcome) = smoother.solve(&[1.0; 1600])?;
    /// assert!(outcome.reason == Reason::Limit && outcome.iterations == 5 && outcome.notes.is_empty());
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    pub fn strict(mut self, strict: bool) -> Self {
        self.request.strict = strict;
        self
    }
    /// Leaves a small matrix in `csr` on the host, if its format is open: for few solves, another one saves less than it costs to
    /// choose.
    ///
    /// ```
    /// use lacuna::prelude::*;
    ///
    /// let a = Spec::parse("gen:poisson2d:20x20")?.build::<f64>()?;
    /// let system = LinearSystem::new(a).method("cg").on("cpu").quick(true).prepare()?;
    /// assert_eq!(system.format().name, "csr");
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    pub fn quick(mut self, quick: bool) -> Self {
        self.request.quick = quick;
        self
    }
    /// Shows somebody each iteration of every solve: see [`Observer`]. Rows and columns must keep their order and scale.
    ///
    /// ```
    /// use lacuna::Observer;
    /// use lacuna::prelude::*;
    /// use std::ops::ControlFlow;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use std::sync::Arc;
    ///
    /// let seen = Arc::new(AtomicUsize::new(0));
    /// let count = seen.clone();
    /// let observer = Observer::of_iterates(move |x: &[f64]| {
    ///     count.fetch_add(1, Ordering::Relaxed);
    ///     if x[0].is_finite() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    /// });
    /// let a = Spec::parse("gen:poisson2d:40x40")?.build::<f64>()?;
    /// let system = LinearSystem::new(a).method("cg").strict(true).observe(observer);
    /// let (_, outcome) = system.prepare()?.solve(&[1.0; 1600])?;
    /// assert_eq!(seen.load(Ordering::Relaxed) as u64, outcome.iterations);
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    pub fn observe(mut self, observer: Observer<T>) -> Self {
        self.request.observer = Some(observer);
        self
    }
    /// The starting guess of [`Prepared::solve`]; 0 by default.
    pub fn x0(mut self, x0: impl AsVector<T>) -> Self {
        self.x0 = Some(x0.as_vector().to_vec());
        self
    }

    /// Where to solve: the name of a backend (`"cuda"`), or of one of its devices (`"cuda:1"`), or a [`Device`] that is open; see
    /// [`open`](crate::open). By default the [`default_device`](crate::default_device). A name that there is none of is an
    /// error of [`LinearSystem::prepare`].
    pub fn on(mut self, place: impl Into<Place>) -> Self {
        self.place = place.into();
        self
    }

    /// Chooses whatever is open, puts the matrix on the device and prepares the solver. What it makes there is freed when it is
    /// dropped.
    ///
    /// # Errors
    /// [`Error::Shape`](lacuna_engine::Error::Shape) if the method needs a square matrix and this is not, [`Error::Length`](lacuna_engine::Error::Length) for `x0`,
    /// [`Error::Argument`](lacuna_engine::Error::Argument) for an unknown name or option or an invalid tolerance, [`Error::Unsupported`](lacuna_engine::Error::Unsupported) for
    /// a format that does not suit the matrix or has no kernel on the backend, errors of the preconditioner
    /// (for Jacobi, [`Error::Entry`](lacuna_engine::Error::Entry) for a zero diagonal entry), device
    /// failures. For an operator or a format of its own, [`Error::Unsupported`](lacuna_engine::Error::Unsupported) for what needs the
    /// entries of a matrix, and [`Error::Stale`](lacuna_engine::Error::Stale) for an operator of another device.
    pub fn prepare(self) -> Result<Prepared<T>> {
        self.prepare_by(None)
    }

    /// [`LinearSystem::prepare`], calling `watch` from time to time: between the parts of the analysis and of conversions, and while the
    /// preconditioner is set up. Returning `Break` cancels it.
    ///
    /// ```
    /// use lacuna::prelude::*;
    /// use std::ops::ControlFlow;
    ///
    /// let a = Spec::parse("gen:poisson2d:60x60")?.build::<f64>()?;
    /// let mut cancel = |_: lacuna::solvers::SetupProgress| ControlFlow::Break(());
    /// let prepared = LinearSystem::new(a).method("cg").preconditioner("amg").prepare_watched(&mut cancel);
    /// assert!(matches!(prepared.err(), Some(Error::Cancelled { .. })));
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    ///
    /// # Errors
    /// As there; [`Error::Cancelled`](lacuna_engine::Error::Cancelled).
    pub fn prepare_watched(self, watch: SetupWatch<'_>) -> Result<Prepared<T>> {
        self.prepare_by(Some(watch))
    }

    fn prepare_by(self, watch: Option<SetupWatch<'_>>) -> Result<Prepared<T>> {
        let (dev, passed) = self.place.open()?;
        let mut prepared =
            parallel::on(dev.workers(), || interruptible(watch, |watch| self.prepared(&dev, watch)))?;
        if !passed.is_empty() {
            prepared.chose(format!("device {}: {passed}", dev.info().backend));
        }
        Ok(prepared)
    }

    fn prepared(self, dev: &Device, watch: Option<SetupWatch<'_>>) -> Result<Prepared<T>> {
        let LinearSystem { request, refines, x0, .. } = self;
        let (source, request) = request.replace(());
        #[cfg(feature = "ranks")]
        crate::divided::check_rows(dev, source.rows())?;
        let (operator, matrix, format): (Box<dyn LinOp<T>>, _, _) = match source {
            Source::Matrix(a) => {
                check_guess(&x0, (a.rows(), a.cols()))?;
                let request = request.replace(a).1;
                return if refines {
                    refined(dev, request, x0, watch)
                } else {
                    solved(dev, request, x0, watch)
                };
            }
            Source::Format(a) => {
                let format = Chosen::new(a.kernel(), "the matrix is given in it");
                let stored = dev.matrix(a)?;
                let handle = *stored;
                (Box::new(stored), Some(handle), format)
            }
            Source::Operator(a) => (a, None, Chosen::new("operator", "given by its products")),
        };
        check_guess(&x0, operator.shape())?;
        if refines {
            return Err(Error::Unsupported {
                operation: "refine".into(),
                message: "an operator exists in one number type only; give a matrix".into(),
            });
        }
        let system = OperatorSolver::new(dev, &*operator, format, request)?;
        Ok(Prepared::new(AnySolver::Operator(Box::new(system), matrix), None, None, x0))
    }
}

fn check_guess<T>(x0: &Option<Vec<T>>, shape: (usize, usize)) -> Result<()> {
    x0.as_ref().map_or(Ok(()), |x0| Error::check_fits("solve", shape, "x0", shape.1, x0.len()))
}

/// A system of a matrix that is solved in its own number type.
fn solved<T: Scalar>(
    dev: &Device,
    mut request: Request<T>,
    x0: Option<Vec<T>>,
    watch: Option<SetupWatch<'_>>,
) -> Result<Prepared<T>> {
    let tunes = matches!(request.method, MethodChoice::Tune);
    let memory = tunes.then(|| RememberedMethod::of(dev, &request.a));
    let recalls = matches!(request.preconditioner, PreconditionerChoice::Auto);
    request.remembered = memory.as_ref().filter(|_| recalls).and_then(RememberedMethod::recall::<T>);
    let mut system = place(dev, request, watch)?;
    if tunes && !recalls {
        let remark = "tune recalls a method with its preconditioner: with one named, the method is chosen";
        system.remark(remark.into());
    }
    Ok(Prepared::new(AnySolver::Matrix(Box::new(system)), None, memory, x0))
}

/// A system of a matrix that is solved with corrections in the narrower type.
fn refined<T: Scalar>(
    dev: &Device,
    request: Request<T>,
    x0: Option<Vec<T>>,
    watch: Option<SetupWatch<'_>>,
) -> Result<Prepared<T>> {
    let tunes = matches!(request.method, MethodChoice::Tune);
    let (residuals, mut refinement) = Refinement::split(request)?;
    let mut outer = place(dev, residuals, None)?; // it has no preconditioner
    let corrections = refinement.corrections(&outer)?;
    let inner = place(dev, corrections, watch).map_err(|error| refinement.refused(error))?;
    let refined = refinement.join(&mut outer, inner)?;
    if tunes {
        outer.remark("refine recalls no method: tune chooses one".into());
    }
    Ok(Prepared::new(AnySolver::Matrix(Box::new(outer)), Some(refined), None, x0))
}

/// Chooses what a request leaves open, measures formats if it asks for that, and puts the system on a device.
fn place<T: Scalar>(
    dev: &Device,
    mut request: Request<T>,
    watch: Option<SetupWatch<'_>>,
) -> Result<AutoSolver<T>> {
    let measures = request.format.take_if(|name| name == "tune").is_some();
    let mut analysis = Analysis::new(request, dev.info().memory.is_none())?;
    if measures {
        let tuned = tune_format(dev, analysis.matrix(), analysis.structure())?;
        analysis.set_format(Chosen::new(tuned.name(), tuned.why()));
    }
    analysis.place_watched(dev, watch)
}
