//! A linear system: choose, prepare once, solve for as many right-hand sides as you like.
use crate::order::Order;
use crate::{Chosen, choose_method, choose_preconditioner, tune_format};
use lacuna_core::{Backend, Error, Format, LinOp, Matrix, Result, Scalar};
use lacuna_formats::{Csr, FORMATS, Pair, Structure, choose_format, convert};
use lacuna_solvers::{
    METHODS, Method, Options, Outcome, PRECONDITIONERS, Placed, Preconditioner, Solver, Stop, Watch, method,
    name_of, preconditioner,
};
use ndarray::{Array1, ArrayView1, ArrayViewMut1};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Solves `A x = b` with the method and the preconditioner that suit the matrix, to a relative residual of 1e-8 (1e-5 in
/// single precision). [`Outcome::choices`] says what was chosen and why.
///
/// The matrix is copied, and everything on the device is released afterwards; [`LinearSystem`] does neither.
///
/// ```
/// use lacuna::prelude::*;
/// use lacuna::ndarray::arr1;
///
/// let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![4.0, 1.0, 1.0, 3.0])?;
/// let (x, outcome) = solve(&mut default_backend()?, &a, arr1(&[1.0, 2.0]).view())?;
/// assert!((x - arr1(&[1.0 / 11.0, 7.0 / 11.0])).iter().all(|e: &f64| e.abs() < 1e-8));
/// assert!(outcome.choices[0].starts_with("method cg: the matrix is symmetric"));
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] where the matrix is not square, [`Error::Length`] and [`Error::Element`] for `b`, device failures.
pub fn solve<T: Scalar, B: Backend>(
    dev: &mut B,
    a: &Csr<T>,
    b: ArrayView1<'_, T>,
) -> Result<(Array1<T>, Outcome)> {
    let mark = dev.mark();
    let solved = LinearSystem::new(a.clone()).prepare(dev).and_then(|mut system| system.solve(dev, b));
    dev.release(mark);
    solved
}

enum MethodChoice<T: Scalar> {
    Auto,
    Named(String),
    Own(Box<dyn Method<T>>),
}

enum PreconditionerChoice<T: Scalar> {
    Auto,
    Named(String),
    Own(Box<dyn Preconditioner<T>>),
}

/// A matrix and how to solve with it. What is not set is chosen when [`LinearSystem::prepare`] sees the matrix.
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
/// let (x, outcome) = system.solve(&mut dev, b.view())?;
/// assert!(outcome.converged());
///
/// // Again for another b, from the last solution, with nothing allocated.
/// let (mut x, b) = (x, 2.0 * b);
/// assert!(system.solve_into(&mut dev, b.view(), x.view_mut())?.converged());
/// # Ok::<(), lacuna::Error>(())
/// ```
pub struct LinearSystem<T: Scalar> {
    a: Arc<Csr<T>>,
    method: MethodChoice<T>,
    preconditioner: PreconditionerChoice<T>,
    format: Option<String>,
    reorder: String,
    adjoint: bool,
    options: Options,
    stop: Stop,
    x0: Option<Vec<T>>,
}

impl<T: Scalar> LinearSystem<T> {
    /// The relative tolerance where none is given: 1e-8, or 1e-5 in single precision, whose unit roundoff of 6e-8 the
    /// condition of the matrix magnifies.
    pub const DEFAULT_RTOL: f64 = if T::EPSILON > 1e-10 { 1e-5 } else { 1e-8 };

    /// A system with this matrix, given by value or shared.
    pub fn new(a: impl Into<Arc<Csr<T>>>) -> Self {
        LinearSystem {
            a: a.into(),
            method: MethodChoice::Auto,
            preconditioner: PreconditionerChoice::Auto,
            format: None,
            reorder: "none".into(),
            adjoint: false,
            options: Options::default(),
            stop: Stop { rtol: Self::DEFAULT_RTOL, ..Stop::default() },
            x0: None,
        }
    }

    /// The method by name, see [`METHODS`], with options as `NAME:key=value,…`; `auto` chooses.
    pub fn method(mut self, name: &str) -> Self {
        self.method = match name {
            "auto" => MethodChoice::Auto,
            name => MethodChoice::Named(name.into()),
        };
        self
    }
    /// A method of your own, or one of [`crate::solvers`] with settings that have no name.
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
    /// The storage format by name, see [`FORMATS`](lacuna_formats::FORMATS); `auto` chooses by the bytes a product moves,
    /// `tune` by measurement, once for each structure, number type and device: see [`tune_format`].
    /// While the matrix is converted both forms are in memory.
    pub fn format(mut self, name: &str) -> Self {
        self.format = (name != "auto").then(|| name.into());
        self
    }
    /// The order of rows and columns by name, see [`ORDERS`](lacuna_formats::ORDERS): `none`, the default, is the one given,
    /// `auto` another where that promises much. Right-hand sides, solutions and errors are in the order given all the same.
    pub fn reorder(mut self, name: &str) -> Self {
        self.reorder = name.into();
        self
    }
    /// Puts the conjugate transpose on the device too, in the same format, as much memory again unless the matrix is
    /// Hermitian: for methods of your own that need `Aᴴ x`.
    ///
    /// The normal equations by conjugate gradients (CGNR), for any matrix that is not singular:
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
    /// assert!(system.solve(&mut dev, b.view())?.1.converged());
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    pub fn with_adjoint(mut self) -> Self {
        self.adjoint = true;
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
    /// When to stop.
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }
    /// Where [`Prepared::solve`] starts from; 0 where not given.
    pub fn x0(mut self, x0: ArrayView1<'_, T>) -> Self {
        self.x0 = Some(x0.to_vec());
        self
    }

    /// Chooses what is open, puts the matrix on the device and makes the solve ready.
    ///
    /// # Errors
    /// [`Error::Shape`] where the matrix is not square, [`Error::Length`] for `x0`, [`Error::Argument`] for an unknown
    /// name or option of anything or a tolerance that is none, [`Error::Unsupported`] for a format that does not suit the matrix
    /// or that the backend has no kernel for, what the preconditioner refuses (for Jacobi's [`Error::Entry`], a diagonal
    /// entry that is zero), device failures.
    pub fn prepare<B: Backend>(self, dev: &mut B) -> Result<Prepared<T>> {
        let (rows, cols) = (self.a.rows(), self.a.cols());
        if rows != cols {
            let expected = "a square matrix".into();
            return Err(Error::Shape { operation: "solve".into(), expected, got: (rows, cols) });
        }
        if let Some(x0) = &self.x0 {
            Error::check_length("solve", "x0", rows, x0.len())?;
        }
        let given = self.a;
        let (order, a) = Order::new(given.clone(), &self.reorder)?;
        let tunes = self.format.as_deref() == Some("tune");
        let undecided = matches!(self.method, MethodChoice::Auto)
            || matches!(self.preconditioner, PreconditionerChoice::Auto)
            || (self.format.is_none() || tunes) && dev.formats(a.rows(), Format::bytes(&*a)).len() > 1;
        let structure = undecided.then(|| Structure::of(&*a));
        let asked = |name: &str| Chosen::new(name, "asked for");
        let (chosen_method, own) = match (self.method, &structure) {
            (MethodChoice::Own(own), _) => (asked(own.name()), Some(own)),
            (MethodChoice::Named(name), _) => (asked(&name), None),
            (MethodChoice::Auto, Some(s)) => (choose_method(s, T::KIND.is_complex()), None),
            (MethodChoice::Auto, None) => (asked(METHODS[0].name), None),
        };
        let method = own.map_or_else(|| method(&chosen_method.name, &self.options), Ok)?;
        let (chosen_preconditioner, kind) = match (self.preconditioner, &structure) {
            (PreconditionerChoice::Own(own), _) => (asked(&own.name()), Some(own)),
            (PreconditionerChoice::Named(name), _) => (asked(&name), preconditioner(&name)?),
            (PreconditionerChoice::Auto, Some(s)) => {
                let info = METHODS.iter().find(|m| m.name == name_of(&chosen_method.name));
                let chosen = choose_preconditioner(&a, s, info.is_some_and(|m| m.positive_definite));
                let kind = preconditioner(&chosen.name)?;
                (chosen, kind)
            }
            (PreconditionerChoice::Auto, None) => (asked(PRECONDITIONERS[0].name), None),
        };
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
            (None, Some(s)) => {
                let (name, why) = choose_format(&a, s, dev.formats(a.rows(), Format::bytes(&*a)));
                Chosen::new(name, why)
            }
            (_, None) | (Some(_), _) => Chosen::new("csr", "the only format the backend has"),
        };
        let pair = if self.adjoint {
            Pair::new(dev, &a, &format.name)?
        } else {
            let stored = dev.matrix(convert(&a, &format.name)?)?;
            Pair { a: stored, adjoint: stored }
        };
        let placed = kind.map(|kind| Placed::new(dev, kind, &a, pair.a)).transpose();
        let placed = placed.map_err(|error| order.told(error))?;
        drop(a);
        let m = placed.as_ref().map(|m| m as &dyn LinOp<T>);
        let operator: &dyn LinOp<T> = if self.adjoint { &pair } else { &pair.a };
        let solver = Solver::new(dev, operator, m, &*method, self.stop)?;
        let mut choices = vec![
            chosen_method.sentence("method"),
            chosen_preconditioner.sentence("preconditioner"),
            format.sentence("format"),
        ];
        for (what, value) in placed.iter().flat_map(|m| m.report()) {
            choices.push(format!("preconditioner {}: {what} {value}", chosen_preconditioner.name));
        }
        if self.reorder != "none" {
            choices.push(order.chosen.sentence("order"));
        }
        Ok(Prepared {
            solver,
            method: chosen_method,
            preconditioner: chosen_preconditioner,
            format,
            given,
            pair,
            adjoint: self.adjoint,
            placed,
            order,
            outcome: Outcome { choices, ..Outcome::default() },
            staged: [Vec::new(), Vec::new()],
            x0: self.x0,
            n: rows,
        })
    }
}

/// A system on a device, ready to solve for any right-hand side.
pub struct Prepared<T: Scalar> {
    solver: Solver<T>,
    method: Chosen,
    preconditioner: Chosen,
    format: Chosen,
    /// In the caller's order.
    given: Arc<Csr<T>>,
    pair: Pair<T>,
    adjoint: bool,
    placed: Option<Placed<T>>,
    order: Order,
    outcome: Outcome,
    staged: [Vec<T>; 2],
    x0: Option<Vec<T>>,
    n: usize,
}

impl<T: Scalar> Prepared<T> {
    /// Solves for `b` from the starting guess of the builder, or from 0.
    ///
    /// # Errors
    /// As [`Prepared::solve_into`].
    pub fn solve<B: Backend>(&mut self, dev: &mut B, b: ArrayView1<'_, T>) -> Result<(Array1<T>, Outcome)> {
        let mut x = match &self.x0 {
            Some(x0) => Array1::from_vec(x0.clone()),
            None => Array1::zeros(self.n),
        };
        self.solve_into(dev, b, x.view_mut())?;
        Ok((x, self.outcome.clone()))
    }

    /// Solves for `b` from what `x` holds, and puts the solution there. Allocates nothing on the device, and on the host
    /// only the first time that a view is strided or the rows are in another order.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::Element`] (an element that is not finite) for `b` and `x`; device failures.
    pub fn solve_into<B: Backend>(
        &mut self,
        dev: &mut B,
        b: ArrayView1<'_, T>,
        x: ArrayViewMut1<'_, T>,
    ) -> Result<&Outcome> {
        self.solve_watched(dev, b, x, None)
    }

    /// [`Prepared::solve_into`], calling `watch` now and then while it runs; breaking cancels the solve.
    ///
    /// # Errors
    /// As [`Prepared::solve_into`].
    pub fn solve_watched<B: Backend>(
        &mut self,
        dev: &mut B,
        b: ArrayView1<'_, T>,
        mut x: ArrayViewMut1<'_, T>,
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<&Outcome> {
        let order = &self.order;
        if let Some([b, solution]) = order.stage(&mut self.staged, b, x.view())? {
            let outcome = self.solver.solve_watched(dev, b, solution, watch);
            copy_outcome(outcome.map_err(|error| order.told(error))?, &mut self.outcome);
            order.restore(solution, x);
            return Ok(&self.outcome);
        }
        let [staged_b, staged_x] = &mut self.staged;
        let b = match b.as_slice() {
            Some(slice) => slice,
            None => stage(staged_b, b),
        };
        let outcome = match x.as_slice_mut() {
            Some(slice) => self.solver.solve_watched(dev, b, slice, watch)?,
            None => {
                let slice = stage(staged_x, x.view());
                let outcome = self.solver.solve_watched(dev, b, slice, watch)?;
                x.iter_mut().zip(slice).for_each(|(x, s)| *x = *s);
                outcome
            }
        };
        copy_outcome(outcome, &mut self.outcome);
        Ok(&self.outcome)
    }

    /// Gives the matrix new values on the same pattern, in the order of [`Csr::values`] of the matrix that was prepared, and
    /// sets the preconditioner up for them. Everything stays as it was chosen. Nothing is allocated on the device.
    ///
    /// ```
    /// use lacuna::prelude::*;
    ///
    /// let a = Spec::parse("gen:poisson2d:20x20")?.build::<f64>()?;
    /// let (values, b) = (a.values().to_vec(), Array1::ones(a.rows()));
    /// let mut dev = default_backend()?;
    /// let mut system = LinearSystem::new(a).format("csr").prepare(&mut dev)?;
    /// for step in 1..4 {
    ///     let scaled: Vec<f64> = values.iter().map(|v| v * step as f64).collect();
    ///     system.update_values(&mut dev, &scaled)?;
    ///     assert!(system.solve(&mut dev, b.view())?.1.converged());
    /// }
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Length`] unless there are as many values as entries, [`Error::Entry`] for one that is not finite (both leave the
    /// system as it was); [`Error::Structure`] and [`Error::Unsupported`] where the values do not suit the format, whose layout
    /// may depend on them (`stencil`, `dia-sym`, `packed`); what the preconditioner refuses; device failures. After these the system
    /// **must** be given other values before it solves again.
    pub fn update_values<B: Backend>(&mut self, dev: &mut B, values: &[T]) -> Result<()> {
        Arc::make_mut(&mut self.given).set_values(values)?;
        let a = self.order.arranged(&self.given)?;
        dev.set_matrix(self.pair.a, convert(&a, &self.format.name)?)?;
        if self.adjoint {
            let turned = Arc::new(a.adjoint());
            if self.pair.adjoint != self.pair.a {
                dev.set_matrix(self.pair.adjoint, convert(&turned, &self.format.name)?)?;
            } else if *turned != *a {
                let message =
                    "they are not Hermitian, as those prepared were; prepare the system anew".into();
                return Err(Error::Structure { operation: "new values of a matrix".into(), message });
            }
        }
        let updated = self.placed.as_mut().map_or(Ok(()), |m| m.update(dev, &a));
        updated.map_err(|error| self.order.told(error))
    }

    /// The matrix on the device, in the order of the rows there.
    pub fn matrix(&self) -> Matrix<T> {
        self.pair.a
    }
    /// The method and why it was chosen.
    pub fn method(&self) -> &Chosen {
        &self.method
    }
    /// The preconditioner and why it was chosen.
    pub fn preconditioner(&self) -> &Chosen {
        &self.preconditioner
    }
    /// The storage format and why it was chosen.
    pub fn format(&self) -> &Chosen {
        &self.format
    }
    /// The order of the rows and what it does to the matrix.
    pub fn order(&self) -> &Chosen {
        &self.order.chosen
    }
    /// What runs underneath: the program, and the vectors on the device, in the order of the rows there.
    pub fn solver(&mut self) -> &mut Solver<T> {
        &mut self.solver
    }
    /// Changes when to stop, for the solves to come.
    pub fn set_stop(&mut self, stop: Stop) {
        self.solver.set_stop(stop);
    }
}

/// The elements of a strided view, side by side.
fn stage<'a, T: Scalar>(place: &'a mut Vec<T>, view: ArrayView1<'_, T>) -> &'a mut [T] {
    place.clear();
    place.extend(view.iter());
    place
}

/// Everything but the choices, which stay; the history's memory is used again.
fn copy_outcome(from: &Outcome, to: &mut Outcome) {
    to.reason = from.reason;
    to.iterations = from.iterations;
    to.restarts = from.restarts;
    to.residual = from.residual;
    to.true_residual = from.true_residual;
    to.history.clone_from(&from.history);
    to.history_stride = from.history_stride;
    to.time = from.time;
    to.transfers = from.transfers;
}
