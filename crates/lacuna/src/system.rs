//! The builder of a linear system. Whatever is not set is chosen when it is prepared.
use crate::auto_solver::{Candidates, Open, is_refusal};
use crate::factor::{factor_of, times};
use crate::order::Order;
use crate::prepared::{Parts, Prepared, sentences};
use crate::remembered_method::{Memory, REMEMBERED};
use crate::settings::{MethodChoice, PreconditionerChoice, combined};
use crate::stages::Stages;
use crate::{AsVector, Chosen, choose_method, choose_multigrid, choose_preconditioner, tune_format};
use lacuna_engine::{Backend, Error, Format, LinOp, Result, Scalar, check_process};
use lacuna_formats::{Csr, FORMATS, Pair, Stencil, Structure, choose_format, convert};
use lacuna_solvers::{
    Amg, METHODS, Method, Multigrid, Options, Outcome, PRECONDITIONERS, Placed, Preconditioner, Solver, Stop,
    method, preconditioner,
};
use ndarray::Array1;
use std::any::Any;
use std::sync::Arc;

/// Solves `A x = b` with a method and a preconditioner chosen for the matrix, to a relative residual of 1e-8
/// (1e-5 in single precision). [`Outcome::choices`] says what was chosen and why.
///
/// Copies the matrix, and releases everything on the device afterwards; [`LinearSystem`] does neither.
///
/// ```
/// use lacuna::prelude::*;
///
/// let a = Csr::<f64>::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![4.0, 1.0, 1.0, 3.0])?;
/// let (x, outcome) = solve(&mut default_backend()?, &a, &[1.0, 2.0])?;
/// assert!((x[0] - 1.0 / 11.0).abs() < 1e-8 && (x[1] - 7.0 / 11.0).abs() < 1e-8);
/// assert!(outcome.choices[0].starts_with("method cg: the matrix is symmetric"));
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// [`Error::Length`] and [`Error::Element`] for `b`, device failures.
pub fn solve<T: Scalar, B: Backend>(
    dev: &mut B,
    a: &Csr<T>,
    b: impl AsVector<T>,
) -> Result<(Array1<T>, Outcome)> {
    let mark = dev.mark();
    let solved = LinearSystem::new(a.clone()).prepare(dev).and_then(|mut system| system.solve(dev, b));
    dev.release(mark);
    solved
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
/// let mut dev = default_backend()?;
/// let mut system = LinearSystem::new(a)
///     .method("gmres")
///     .restart(50)
///     .preconditioner("jacobi")
///     .stop(Stop { rtol: 1e-10, ..Stop::default() })
///     .prepare(&mut dev)?;
/// let (x, outcome) = system.solve(&mut dev, &b)?;
/// assert!(outcome.converged());
///
/// // Again for another b, from the last solution, with nothing allocated.
/// let (mut x, b) = (x, 2.0 * b);
/// assert!(system.solve_into(&mut dev, &b, &mut x)?.converged());
/// # Ok::<(), lacuna::Error>(())
/// ```
pub struct LinearSystem<T: Scalar> {
    pub(crate) a: Arc<Csr<T>>,
    pub(crate) method: MethodChoice<T>,
    pub(crate) preconditioner: PreconditionerChoice<T>,
    pub(crate) format: Option<String>,
    pub(crate) reorder: String,
    pub(crate) adjoint: bool,
    pub(crate) refines: bool,
    pub(crate) options: Options,
    pub(crate) stop: Stop,
    pub(crate) x0: Option<Vec<T>>,
}

impl<T: Scalar> LinearSystem<T> {
    /// The default relative tolerance: 1e-8, or 1e-5 in single precision, whose unit roundoff of 6e-8 is
    /// magnified by the condition number of the matrix.
    pub const DEFAULT_RTOL: f64 = if T::EPSILON > 1e-10 { 1e-5 } else { 1e-8 };

    /// A system with this matrix, given by value, shared (`Arc<Csr<T>>`) or borrowed (`CsrRef<'_, T>`), which is copied once.
    pub fn new(a: impl Into<Arc<Csr<T>>>) -> Self {
        LinearSystem {
            a: a.into(),
            method: MethodChoice::Auto,
            preconditioner: PreconditionerChoice::Auto,
            format: None,
            reorder: "none".into(),
            adjoint: false,
            refines: false,
            options: Options::default(),
            stop: Stop { rtol: Self::DEFAULT_RTOL, ..Stop::default() },
            x0: None,
        }
    }

    /// The method by name, see [`METHODS`], with options as `NAME:key=value,…`; `auto` chooses. `tune` takes
    /// what solved a matrix of this structure fastest before, by [`advise`](crate::advise) or by a solve with
    /// `tune`, with its preconditioner; if nothing is remembered or a preconditioner is named, it chooses. `jacobi`,
    /// `gauss-seidel`, `sor` and `direct` are [`Richardson`](lacuna_solvers::Richardson)'s iteration with a preconditioner, whose
    /// options they take: see [`Combined`](lacuna_solvers::Combined).
    pub fn method(mut self, name: &str) -> Self {
        self.method = match name {
            "auto" => MethodChoice::Auto,
            "tune" => MethodChoice::Tune,
            name => MethodChoice::Named(name.into()),
        };
        self
    }
    /// A method of your own, or one of [`crate::solvers`] with settings that a name cannot express.
    pub fn own_method(mut self, method: impl Method<T> + 'static) -> Self {
        self.method = MethodChoice::Own(Box::new(method));
        self
    }
    /// The preconditioner by name, see [`PRECONDITIONERS`], with options as `NAME:key=value,…`; `auto` chooses.
    pub fn preconditioner(mut self, name: &str) -> Self {
        self.preconditioner = match name {
            "auto" => PreconditionerChoice::Auto,
            name => PreconditionerChoice::Named(name.into()),
        };
        self
    }
    /// A preconditioner of your own.
    pub fn own_preconditioner(mut self, preconditioner: impl Preconditioner<T> + 'static) -> Self {
        self.preconditioner = PreconditionerChoice::Own(Box::new(preconditioner));
        self
    }
    /// The storage format by name, see [`FORMATS`](lacuna_formats::FORMATS). `auto` chooses by the bytes that
    /// a product moves, or keeps `csr` on the host beside factors whose solves outweigh a product, `tune` by measurement, once per structure, number type and device: see
    /// [`tune_format`]. Both forms of the matrix are in memory during the conversion.
    pub fn format(mut self, name: &str) -> Self {
        self.format = (name != "auto").then(|| name.into());
        self
    }
    /// The order of rows and columns by name, see [`ORDERS`](lacuna_formats::ORDERS): `none`, the default,
    /// keeps the given one; `auto` changes it if that is likely to gain much; `matching` moves rows alone, so
    /// that large entries are on the diagonal. With an automatic method that is done where the diagonal has zeros
    /// and most entries have no mirror image. Right-hand sides, solutions and errors stay in the given order.
    pub fn reorder(mut self, name: &str) -> Self {
        self.reorder = name.into();
        self
    }
    /// Stores the conjugate transpose on the device too, in the same format. This takes as much memory again
    /// unless the matrix is Hermitian. For methods of your own that need `Aᴴ x`, see
    /// [`Method::needs_adjoint`].
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
    /// let mut dev = default_backend()?;
    /// let mut system = LinearSystem::new(a).own_method(cgnr).with_adjoint().prepare(&mut dev)?;
    /// assert!(system.solve(&mut dev, &b)?.1.converged());
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    pub fn with_adjoint(mut self) -> Self {
        self.adjoint = true;
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
    /// let mut dev = default_backend()?;
    /// let stop = Stop { rtol: 1e-12, ..Stop::default() };
    /// let mut system = LinearSystem::new(a).refine(true).stop(stop).prepare(&mut dev)?;
    /// assert!(system.solve(&mut dev, &b)?.1.true_residual <= 1e-12);
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    pub fn refine(mut self, refine: bool) -> Self {
        self.refines = refine;
        self
    }
    /// Settings that some methods take.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }
    /// Iterations of a GMRES cycle.
    pub fn restart(mut self, iterations: usize) -> Self {
        self.options.restart = Some(iterations);
        self
    }
    /// Stopping criteria.
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }
    /// The starting guess of [`Prepared::solve`]; 0 by default.
    pub fn x0(mut self, x0: impl AsVector<T>) -> Self {
        self.x0 = Some(x0.as_vector().to_vec());
        self
    }

    /// Chooses whatever is open, puts the matrix on the device and prepares the solver.
    ///
    /// # Errors
    /// [`Error::Shape`] if the method needs a square matrix and this is not, [`Error::Length`] for `x0`,
    /// [`Error::Argument`] for an unknown name or option or an invalid tolerance, [`Error::Unsupported`] for
    /// a format that does not suit the matrix or has no kernel on the backend, errors of the preconditioner
    /// (for Jacobi, [`Error::Entry`] for a zero diagonal entry), errors of [`check_process`], device
    /// failures.
    pub fn prepare<B: Backend>(self, dev: &mut B) -> Result<Prepared<T>> {
        check_process("preparing a solve")?;
        if self.refines {
            return crate::refine::prepare(self, dev);
        }
        let mut stages = Stages::start();
        let (rows, cols) = (self.a.rows(), self.a.cols());
        if let Some(x0) = &self.x0 {
            Error::check_length("solve", "x0", cols, x0.len())?;
        }
        if rows != cols && self.reorder != "none" {
            let expected = "a square matrix for an order of its rows and columns".into();
            return Err(Error::Shape { operation: "solve".into(), expected, got: (rows, cols) });
        }
        let (asked_method, asked_preconditioner) = combined(self.method, self.preconditioner)?;
        let given = self.a;
        let (mut order, mut a) = Order::new(given.clone(), &self.reorder)?;
        let automatic = matches!(asked_method, MethodChoice::Auto | MethodChoice::Tune);
        let on_host = dev.device().memory.is_none();
        let chooses_preconditioner = matches!(asked_preconditioner, PreconditionerChoice::Auto);
        let memory = matches!(asked_method, MethodChoice::Tune).then(|| Memory::of(dev, &given));
        let recalls = memory.as_ref().filter(|_| chooses_preconditioner);
        let remembered = recalls.and_then(Memory::recall::<T>);
        let tunes = self.format.as_deref() == Some("tune");
        let outweighs = match &asked_preconditioner {
            PreconditionerChoice::Own(own) => own.outweighs_product(),
            PreconditionerChoice::Named(name) => {
                preconditioner::<T>(name)?.is_some_and(|kind| kind.outweighs_product())
            }
            PreconditionerChoice::Auto => false,
        };
        let plain = self.format.is_none() && on_host && outweighs;
        // Structured multigrid accepts stencils only, and nothing of a stencil is stored.
        let is_multigrid = |name: &str| name.split(':').next() == Some(Multigrid::NAME);
        let needs_stencil = self.format.is_none()
            && matches!(&asked_preconditioner, PreconditionerChoice::Named(name) if is_multigrid(name));
        let undecided = automatic
            || chooses_preconditioner
            || (self.format.is_none() || tunes)
                && !plain
                && !needs_stencil
                && dev.formats(a.rows(), Format::bytes(&*a)).len() > 1;
        let mut structure = undecided.then(|| Structure::of(&*a));
        if let Some(s) = structure.as_ref().filter(|_| automatic && !order.changes())
            && let Some(moved) = Order::against_zeros(&a, s)?
        {
            (order, a) = moved;
            structure = Some(Structure::of(&*a));
        }
        let asked = |name: &str| Chosen::new(name, "asked for");
        let (chosen_method, own) = match (asked_method, &structure) {
            (MethodChoice::Own(own), _) => (asked(own.name()), Some(own)),
            (MethodChoice::Named(name), _) => (asked(&name), None),
            (MethodChoice::Auto | MethodChoice::Tune, structure) => match (&remembered, structure) {
                (Some((name, _)), _) => (Chosen::new(name, REMEMBERED), None),
                (None, Some(s)) => (choose_method(s, T::KIND.is_complex()), None),
                (None, None) => (asked(METHODS[0].name), None),
            },
        };
        let method = own.map_or_else(|| method(&chosen_method.name, &self.options), Ok)?;
        let info = method.info();
        let definite = info.positive_definite();
        let least_squares = method.least_squares();
        let adjoint = self.adjoint || method.needs_adjoint();
        let factor = factor_of(&given, definite);
        let a = times(factor, a)?;
        let grid = (chooses_preconditioner && definite).then(|| Multigrid::grid(&a)).flatten();
        let (mut chosen_preconditioner, kind) = match (asked_preconditioner, &remembered, &structure) {
            (PreconditionerChoice::Own(own), ..) => (asked(&own.name()), Some(own)),
            (PreconditionerChoice::Named(name), ..) => (asked(&name), preconditioner(&name)?),
            (PreconditionerChoice::Auto, Some((_, name)), _) => {
                (Chosen::new(name, REMEMBERED), preconditioner(name)?)
            }
            (PreconditionerChoice::Auto, ..) if least_squares => {
                let why = "least squares; column-scaling evens out columns of different norms";
                (Chosen::new("none", why), None)
            }
            (PreconditionerChoice::Auto, _, Some(s)) => {
                let multigrid = definite.then(|| choose_multigrid(&a, s, grid, on_host)).flatten();
                let chosen = multigrid.unwrap_or_else(|| choose_preconditioner(&a, s, info.hermitian()));
                let kind = preconditioner(&chosen.name)?;
                (chosen, kind)
            }
            (PreconditionerChoice::Auto, _, None) => (asked(PRECONDITIONERS[0].name), None),
        };
        let on_grid = self.format.is_none() && is_multigrid(&chosen_preconditioner.name);
        let rounds = |name: &str| FORMATS.iter().any(|format| format.name == name && format.rounds);
        let format = match (self.format, &structure) {
            (Some(_), Some(s)) if tunes => {
                let tuned = tune_format(dev, &a, s)?;
                Chosen::new(tuned.name(), tuned.why())
            }
            (Some(name), _) if !tunes && rounds(&name) => {
                let narrow = T::Narrow::KIND.name();
                Chosen::new(&name, format!("asked for; the system solved has its values rounded to {narrow}"))
            }
            (Some(name), _) if !tunes => asked(&name),
            (None, _) if plain => Chosen::new(
                "csr",
                "beside this preconditioner, another format saves less than it costs to make",
            ),
            (None, _) if on_grid => {
                Chosen::new("stencil", "multigrid needs a stencil, of which nothing is stored")
            }
            (None, Some(s)) => {
                let (name, why) = choose_format(&a, s, dev.formats(a.rows(), Format::bytes(&*a)));
                Chosen::new(name, why)
            }
            (_, None) | (Some(_), _) => Chosen::new("csr", "the only format the backend has"),
        };
        stages.end("analysis");
        let mut norm_of_stencil = None;
        let pair = if adjoint {
            Pair::new(dev, &a, &format.name)?
        } else {
            let stored = match convert(&a, &format.name) {
                // The preconditioner says why.
                Err(_) if on_grid => convert(&a, "csr")?,
                stored => stored?,
            };
            let stencil = (stored.clone() as Arc<dyn Any + Send + Sync>).downcast::<Stencil<T>>();
            norm_of_stencil = stencil.ok().map(|stencil| stencil.norm_bound());
            let stored = dev.matrix(stored)?;
            Pair { a: stored, adjoint: stored }
        };
        stages.end("matrix");
        let placed = kind.map(|kind| Placed::new(dev, kind, &a, pair.a)).transpose();
        let placed = match placed {
            // Other values than those it was remembered for.
            Err(refused) if chosen_preconditioner.why == REMEMBERED && is_refusal(&refused) => {
                let why =
                    format!("{} is remembered but not available: {refused}", chosen_preconditioner.name);
                chosen_preconditioner = Chosen::new(PRECONDITIONERS[0].name, why);
                None
            }
            placed => placed.map_err(|error| order.in_given_rows(error))?,
        };
        drop(a);
        stages.end("preconditioner");
        let m = placed.as_ref().map(|m| m as &dyn LinOp<T>);
        let operator: &dyn LinOp<T> = if adjoint { &pair } else { &pair.a };
        let mut solver = Solver::new(dev, operator, m, &*method, self.stop)?;
        solver.set_factor(factor);
        stages.end("program");
        let multigrid = [Multigrid::NAME, Amg::NAME].contains(&&*chosen_preconditioner.name);
        let chosen = Open {
            method: automatic,
            preconditioner: chooses_preconditioner && !multigrid,
            definite,
            grid: grid.is_some(),
        };
        let bytes = solver.program().bytes_per_iteration();
        let candidates = Candidates::new(&*method, chosen, &given, structure.as_ref(), bytes, on_host);
        // In a matrix that mirrors itself, column sums follow from row sums.
        let mirrored = structure.filter(|s| s.hermitian || s.symmetric || s.skew_symmetric);
        let norm = mirrored.map(|s| s.norm_inf.scale_by_power_of_two(factor.exponent)).or(norm_of_stencil);
        let mut choices = vec![chosen_method.sentence("method")];
        choices.extend(sentences(&chosen_preconditioner, placed.as_ref()));
        choices.insert(2, format.sentence("format"));
        if self.reorder != "none" || order.changes() {
            choices.push(order.chosen.sentence("order"));
        }
        if !on_host && solver.program().calls_host() {
            let why = "host functions run between operations, and each call transfers two vectors";
            choices.push(format!("execution operation by operation: {why}"));
        }
        Ok(Prepared::new(Parts {
            solver,
            algorithm: method,
            candidates,
            memory,
            options: self.options,
            method: chosen_method,
            definite,
            least_squares,
            preconditioner: chosen_preconditioner,
            chooses_preconditioner,
            format,
            given,
            factor,
            norm,
            pair,
            adjoint,
            placed,
            columns: None,
            order,
            choices,
            stages: stages.ended(),
            stop: self.stop,
            x0: self.x0,
        }))
    }
}
