//! A prepared system: solves, takes new matrix values, and reports what was chosen.
use crate::applied::Applied;
use crate::remembered_method::RememberedMethod;
use crate::{AsVector, AsVectorMut, Chosen};
use lacuna_engine::{Device, Error, Matrix, PlanId, Reason, Result, Scalar, Vector};
use lacuna_formats::parallel;
use lacuna_solvers::auto::{AutoSolver, Choices, Joint, OperatorSolver, Refined};
use lacuna_solvers::{Factor, Observer, Outcome, Solver, Stop, Watch};
use ndarray::{Array1, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, s};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::Duration;

/// A system on a device, ready to solve for any right-hand side. [`LinearSystem::prepare`](crate::LinearSystem::prepare) makes one.
///
/// ```
/// use lacuna::prelude::*;
///
/// let a = Spec::parse("gen:poisson2d:30x30")?.build::<f64>()?;
/// let mut system = LinearSystem::new(a).prepare()?;
/// println!("{} with {}", system.method().name, system.preconditioner().name);
///
/// let mut x = vec![0.0; 900];
/// for load in [1.0, 1.1, 1.2] {
///     let outcome = system.solve_into(&[load; 900], &mut x)?; // from the `x` of the last load
///     assert!(outcome.converged());
/// }
/// # Ok::<(), lacuna::Error>(())
/// ```
pub struct Prepared<T: Scalar> {
    pub(crate) system: AnySolver<T>,
    /// The solver for corrections in the narrower type.
    refined: Option<Refined<T>>,
    /// Where the candidate that solved the system is remembered.
    memory: Option<RememberedMethod>,
    outcome: Outcome,
    pub(crate) staged: [Vec<T>; 2],
    x0: Option<Vec<T>>,
    /// The products with the matrix and with the preconditioner, once asked for, with the plan of the solve that they go with.
    pub(crate) applied: [Option<(PlanId, Applied<T>)>; 2],
}

/// A system by what is known of it.
pub(crate) enum AnySolver<T: Scalar> {
    /// The entries of the matrix.
    Matrix(Box<AutoSolver<T>>),
    /// Its products; the matrix on the device if it is one.
    Operator(Box<OperatorSolver<T>>, Option<Matrix<T>>),
}

/// What both kinds have.
macro_rules! either {
    ($kind:expr, $system:ident => $what:expr) => {
        match $kind {
            AnySolver::Matrix($system) => $what,
            AnySolver::Operator($system, _) => $what,
        }
    };
}
pub(crate) use either;

impl<T: Scalar> AnySolver<T> {
    pub(crate) fn as_matrix(&self) -> Option<&AutoSolver<T>> {
        match self {
            AnySolver::Matrix(system) => Some(system),
            AnySolver::Operator(..) => None,
        }
    }
    fn chosen(&self) -> &Choices {
        either!(self, system => system.chosen())
    }
    pub(crate) fn device(&self) -> &Device {
        either!(self, system => system.device())
    }
    /// Rows and columns.
    pub(crate) fn shape(&self) -> (usize, usize) {
        match self {
            AnySolver::Matrix(system) => (system.matrix().rows, system.matrix().cols),
            AnySolver::Operator(system, _) => system.shape(),
        }
    }
}

impl<T: Scalar> Prepared<T> {
    pub(crate) fn new(
        system: AnySolver<T>,
        refined: Option<Refined<T>>,
        memory: Option<RememberedMethod>,
        x0: Option<Vec<T>>,
    ) -> Self {
        let mut outcome = Outcome::default();
        outcome.choices.clone_from(&system.chosen().sentences);
        Prepared {
            system,
            refined,
            memory,
            outcome,
            staged: [Vec::new(), Vec::new()],
            x0,
            applied: [None, None],
        }
    }

    /// Adds to the choices that every outcome reports.
    pub(crate) fn chose(&mut self, choice: String) {
        either!(&mut self.system, system => system.report(choice.clone()));
        self.outcome.choices.push(choice);
    }

    /// Solves for `b` from the starting guess of the builder, or from 0.
    ///
    /// # Errors
    /// As [`Prepared::solve_into`].
    pub fn solve(&mut self, b: impl AsVector<T>) -> Result<(Array1<T>, Outcome)> {
        let mut x = match &self.x0 {
            Some(x0) => Array1::from_vec(x0.clone()),
            None => Array1::zeros(self.system.shape().1),
        };
        self.solve_into(b, &mut x)?;
        Ok((x, self.outcome.clone()))
    }

    /// Solves for `b` from the guess in `x`, and stores the solution there. Without a solution `x` receives
    /// the best one found, which is finite and no worse than the guess. The outcome describes the final `x`.
    ///
    /// If the confirmed residual is so small that its own rounding error could hide a larger one, it is
    /// recomputed on the host in twice the precision. A method that stops short of the tolerance continues
    /// from the true residual as long as that keeps halving, then in its classical variant, then with what was
    /// left to choose: another preconditioner, another method, incomplete and complete factors, as far as they
    /// suit the matrix; see [`Outcome::notes`]. The next solve begins with what solved this one: see [`Prepared::method`] and
    /// [`Prepared::preconditioner`]. Allocates nothing on the device unless another method is needed,
    /// and on the host only on the first call with a strided view or reordered rows.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::Element`] (an element that is not finite) for `b` and `x`; [`Error::Structure`] if the
    /// last new values were refused: see [`Prepared::update_values`]; device failures.
    pub fn solve_into(&mut self, b: impl AsVector<T>, x: impl AsVectorMut<T>) -> Result<&Outcome> {
        self.solve_watched(b, x, None)
    }

    /// Solves for every column of `b` from the same column of `x`, and stores the solutions there, each with
    /// its own outcome.
    ///
    /// On the CPU, `cg`, `bicgstab` and `gmres` (preconditioned from the right) iterate on up to 8 columns at
    /// once and read the matrix once for all of them, if it has enough entries per row for that to pay (from 9
    /// points of a grid; more for `gmres`, which reads its basis too). A column is skipped as soon as it meets the tolerance. Then each column is confirmed, and continues alone if necessary, as in
    /// [`Prepared::solve_into`]. Otherwise one column is solved after another. The vectors of the columns are
    /// allocated the first time, and again for a larger number.
    ///
    /// ```
    /// use lacuna::prelude::*;
    ///
    /// let a = Spec::parse("gen:poisson2d:20x20")?.build::<f64>()?;
    /// let b = Array2::from_shape_fn((a.rows(), 3), |(i, j)| ((i + j) % 5) as f64);
    /// let mut x = Array2::zeros(b.raw_dim());
    /// let mut system = LinearSystem::new(a).prepare()?;
    /// let outcomes = system.solve_columns(b.view(), x.view_mut())?;
    /// assert!(outcomes.iter().all(|outcome| outcome.converged()));
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Prepared::solve_into`]; [`Error::Length`] if `b` and `x` have different numbers of columns.
    pub fn solve_columns(&mut self, b: ArrayView2<'_, T>, x: ArrayViewMut2<'_, T>) -> Result<Vec<Outcome>> {
        self.solve_columns_watched(b, x, None)
    }

    /// [`Prepared::solve_columns`], calling `watch` from time to time while it runs, without a residual while several columns are
    /// iterated on. Returning `Break` cancels the solves of all columns that are not done.
    ///
    /// # Errors
    /// As there.
    pub fn solve_columns_watched(
        &mut self,
        b: ArrayView2<'_, T>,
        x: ArrayViewMut2<'_, T>,
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<Vec<Outcome>> {
        parallel::on(self.device().workers(), || self.solve_columns_here(b, x, watch))
    }

    /// [`Prepared::solve_columns_watched`] as [`Prepared::solve_here`].
    fn solve_columns_here(
        &mut self,
        b: ArrayView2<'_, T>,
        mut x: ArrayViewMut2<'_, T>,
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<Vec<Outcome>> {
        let ended = Cell::new(false);
        let mut watch = watch.map(|watch| {
            |at: Watch| {
                ended.set(ended.get() || watch(at).is_break());
                if ended.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
        });
        let mut watch = watch.as_mut().map(|watch| watch as &mut dyn FnMut(Watch) -> ControlFlow<()>);
        let operation = "solve of several columns";
        Error::check_length(operation, "the columns of x", b.ncols(), x.ncols())?;
        let (rows, cols) = self.system.shape();
        Error::check_fits("solve", (rows, cols), "a column of b", rows, b.nrows())?;
        Error::check_fits("solve", (rows, cols), "a column of x", cols, x.nrows())?;
        let together = match &mut self.system {
            AnySolver::Matrix(system) => {
                system.check_values()?;
                if self.refined.is_none() { system.together(b.ncols())? } else { None }
            }
            AnySolver::Operator(..) => None,
        };
        let step = together.unwrap_or(1);
        let mut outcomes = Vec::new();
        for first in (0..b.ncols()).step_by(step) {
            let columns = s![.., first..b.ncols().min(first + step)];
            let (b, mut x) = (b.slice(columns), x.slice_mut(columns));
            let joint = match &mut self.system {
                AnySolver::Matrix(system) if together.is_some() => {
                    iterate_together(system, b, x.view_mut(), reborrow(&mut watch))?
                }
                _ => vec![None],
            };
            for ((b, x), joint) in b.columns().into_iter().zip(x.columns_mut()).zip(joint) {
                outcomes.push(self.go_on(b, x, joint, (reborrow(&mut watch), &ended))?);
            }
        }
        Ok(outcomes)
    }

    /// Confirms a column that was iterated with others, and continues with it if necessary.
    fn go_on(
        &mut self,
        b: ArrayView1<'_, T>,
        x: ArrayViewMut1<'_, T>,
        joint: Option<Joint>,
        (watch, ended): (Watching<'_>, &Cell<bool>),
    ) -> Result<Outcome> {
        let stop = either!(&self.system, system => system.stop());
        let limit = stop.limit(self.system.shape());
        let done = joint.map_or(0, |joint| joint.iterations().min(limit));
        // What was cancelled is confirmed.
        self.set_stop(stop.max_iters(if ended.get() { 0 } else { limit - done }));
        let solved = self.solve_views(b, x, watch).cloned();
        self.set_stop(stop);
        let mut outcome = solved?;
        if ended.get() && !outcome.converged() {
            outcome.reason = Reason::Cancelled;
        }
        if let Some(joint) = joint {
            joint.add_to(&mut outcome);
        }
        Ok(outcome)
    }

    /// [`Prepared::solve_into`], calling `watch` from time to time while it runs. Returning `Break` cancels
    /// the solve.
    ///
    /// ```
    /// use lacuna::prelude::*;
    /// use std::ops::ControlFlow;
    ///
    /// let a = Spec::parse("gen:poisson2d:300x300")?.build::<f64>()?;
    /// let mut system = LinearSystem::new(a).method("cg").preconditioner("none").prepare()?;
    /// let mut x = vec![0.0; 90_000];
    /// let mut watch = |at: lacuna::Watch| {
    ///     println!("{} iterations: {:.1e}", at.iterations, at.residual);
    ///     ControlFlow::Break(()) // enough
    /// };
    /// let outcome = system.solve_watched(&[1.0; 90_000], &mut x, Some(&mut watch))?;
    /// assert_eq!(outcome.reason, Reason::Cancelled);
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Prepared::solve_into`].
    pub fn solve_watched(
        &mut self,
        b: impl AsVector<T>,
        mut x: impl AsVectorMut<T>,
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<&Outcome> {
        self.solve_views(b.as_vector(), x.as_vector_mut(), watch)
    }

    /// Solves for a right-hand side that is in the memory of the device already, and stores the solution there: nothing passes
    /// through the host. `fill` is given the vector on the device for the right-hand side and that for the guess, which is 0; it may
    /// fill them by [`Device::copy_in`], or by a product. The solution is in the vector that is returned, until the next solve, and may
    /// be taken from there by [`Device::copy_out`].
    ///
    /// The method and the preconditioner in use solve it and no other follows; the residual is confirmed in the number type of the
    /// solve; the vector is as the method left it, which may be worse than the guess if the outcome says that it is not solved.
    ///
    /// ```
    /// use lacuna::prelude::*;
    ///
    /// let a = Spec::parse("gen:poisson2d:20x20")?.build::<f64>()?;
    /// let mut system = LinearSystem::new(a).method("cg").preconditioner("none").prepare()?;
    /// let dev = system.device().clone();
    /// let ones = vec![1.0; 400];
    /// let (x, outcome) = system.solve_on_device(&mut |b, _| dev.upload(&ones, b), None)?;
    /// assert!(outcome.converged());
    /// let mut found = vec![0.0; 400];
    /// dev.download(x, &mut found)?;
    /// assert_eq!(found, system.solve(&ones)?.0.to_vec());
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `fill`; [`Error::Unsupported`] for a system in mixed precision or in another order; device failures.
    pub fn solve_on_device(
        &mut self,
        fill: &mut dyn FnMut(Vector<T>, Vector<T>) -> Result<()>,
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<(Vector<T>, &Outcome)> {
        let Prepared { system, refined, outcome, .. } = self;
        if refined.is_some() {
            return Err(Error::Unsupported {
                operation: "a solve for vectors on the device".into(),
                message: "not in mixed precision; prepare the system without `refine`".into(),
            });
        }
        let x = match system {
            AnySolver::Matrix(system) => {
                system.check_values()?;
                system.note_remarks(outcome);
                system.solve_on_device(outcome, fill, watch)?
            }
            AnySolver::Operator(system, _) => system.solve_on_device(outcome, fill, watch)?,
        };
        Ok((x, &self.outcome))
    }

    /// Shows somebody each iteration of the following solves, or nobody: see [`LinearSystem::observe`](crate::LinearSystem::observe).
    ///
    /// # Errors
    /// [`Error::Unsupported`] for an operator, which is observed from its preparation on, for a system in mixed precision, and if rows
    /// or columns are solved in another order or scale.
    pub fn observe(&mut self, observer: Option<Observer<T>>) -> Result<()> {
        match (&mut self.system, &self.refined) {
            (AnySolver::Matrix(system), None) => system.observe(observer),
            _ => Err(Error::Unsupported {
                operation: "an observer of iterations".into(),
                message:
                    "neither for a prepared operator nor in mixed precision; see `LinearSystem::observe`"
                        .into(),
            }),
        }
    }

    pub(crate) fn solve_views(
        &mut self,
        b: ArrayView1<'_, T>,
        mut x: ArrayViewMut1<'_, T>,
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<&Outcome> {
        let (rows, cols) = self.system.shape();
        Error::check_fits("solve", (rows, cols), "b", rows, b.len())?;
        Error::check_fits("solve", (rows, cols), "x0", cols, x.len())?;
        let workers = self.device().workers();
        #[cfg(feature = "ranks")]
        crate::divided::begin(self.device());
        parallel::on(workers, || self.solve_here(b, x.view_mut(), watch))?;
        #[cfg(feature = "ranks")]
        crate::divided::note(self.system.device(), &mut self.outcome);
        Ok(&self.outcome)
    }

    /// Solves, with the work of the host shared by whom the calling thread shares it with.
    fn solve_here(
        &mut self,
        b: ArrayView1<'_, T>,
        mut x: ArrayViewMut1<'_, T>,
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<()> {
        let Prepared { system, refined, memory, outcome, staged, .. } = self;
        if let Some(system) = system.as_matrix() {
            system.check_values()?;
            system.note_remarks(outcome);
        }
        let solve = |system: &mut AnySolver<T>, b: &[T], x: &mut [T]| match (system, refined) {
            (AnySolver::Operator(system, _), _) => system.solve(outcome, (b, x), watch),
            (AnySolver::Matrix(system), Some(refined)) => refined.solve(system, outcome, (b, x), watch),
            (AnySolver::Matrix(system), None) => {
                let solved_by = system.solve(outcome, (b, x), watch)?;
                if let (Some(memory), Some((method, preconditioner))) = (memory, solved_by) {
                    memory.keep(&method, &preconditioner);
                }
                Ok(())
            }
        };
        if let Some(ordered) = system.as_matrix().filter(|system| system.reorders()) {
            ordered.stage(staged, (b.len(), &|i| b[i]), (x.len(), &|i| x[i]))?;
            let [b, solution] = staged;
            solve(system, b, solution)?;
            if let Some(ordered) = system.as_matrix() {
                ordered.restore(solution, |i, v| x[i] = v)?;
                ordered.note_unscaled(&mut self.outcome, b, solution)?;
            }
            return Ok(());
        }
        let [staged_b, staged_x] = staged;
        let b = match b.as_slice() {
            Some(slice) => slice,
            None => stage(staged_b, b),
        };
        match x.as_slice_mut() {
            Some(slice) => solve(system, b, slice)?,
            None => {
                let slice = stage(staged_x, x.view());
                solve(system, b, slice)?;
                x.iter_mut().zip(slice).for_each(|(x, s)| *x = *s);
            }
        }
        Ok(())
    }

    /// Gives the matrix new values on the same pattern, in the order of [`Csr::values`](crate::formats::Csr::values) of the matrix that
    /// was prepared, and updates the preconditioner. The method and the preconditioner stay those that the next solve begins with.
    ///
    /// Nothing is allocated on the device, with two exceptions. If the values do not fit the format (`stencil`
    /// needs the same coefficients at all points of a grid, `dia-sym` a symmetric matrix, `packed` short
    /// numbers), or if the matrix is no longer Hermitian and the method needs `Aᴴ`, the matrix is stored
    /// again in a format for any values. This happens at most once per system; [`Prepared::format`] and
    /// [`Outcome::choices`] report it, and [`Prepared::matrix`] and [`Prepared::solver`] then return new
    /// handles. If what the preconditioner kept, such as the pivots of `ilut`, does not suit the values, it is set up anew.
    ///
    /// ```
    /// use lacuna::prelude::*;
    ///
    /// let a = Spec::parse("gen:poisson2d:20x20")?.build::<f64>()?;
    /// let (values, b) = (a.values().to_vec(), vec![1.0; a.rows()]);
    /// let mut system = LinearSystem::new(a).method("cg").prepare()?;
    /// assert_eq!(system.format().name, "stencil");
    /// for step in 1..4 {
    ///     let softer = |(k, v): (usize, &f64)| v / (1.0 + (step * k) as f64 / 1e6);
    ///     let values: Vec<f64> = values.iter().enumerate().map(softer).collect();
    ///     system.update_values(&values)?;
    ///     assert!(system.solve(&b)?.1.converged());
    /// }
    /// assert_ne!(system.format().name, "stencil");
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Length`] unless there are as many values as entries, [`Error::Entry`] for one that is not
    /// finite (both leave the system unchanged); errors of the preconditioner; device failures; [`Error::Unsupported`] for an
    /// operator. After errors of the preconditioner and device failures every solve fails with [`Error::Structure`] until the
    /// system is given other values.
    pub fn update_values(&mut self, values: &[T]) -> Result<()> {
        let workers = self.device().workers();
        let updated = parallel::on(workers, || match (&mut self.system, &mut self.refined) {
            (AnySolver::Matrix(system), Some(refined)) => refined.update_values(system, values),
            (AnySolver::Matrix(system), None) => system.update_values(values),
            (AnySolver::Operator(..), _) => Err(Error::Unsupported {
                operation: "new values for an operator".into(),
                message: "it has none that are known; prepare a system with the new operator".into(),
            }),
        });
        self.outcome.choices.clear();
        self.outcome.choices.extend_from_slice(&self.system.chosen().sentences);
        updated
    }

    /// The device that it is on.
    pub fn device(&self) -> &Device {
        self.system.device()
    }
    /// The time of the set-up by part: `analysis` of the structure and the choices, `matrix` to its format and the device,
    /// `preconditioner` likewise, `program` that the device runs. With refinement, those of the matrix for residuals.
    pub fn setup_parts(&self) -> &[(&'static str, Duration)] {
        &self.system.chosen().stages
    }
    /// The matrix on the device, in the row order of the device; `None` for an operator.
    pub fn matrix(&self) -> Option<Matrix<T>> {
        match &self.system {
            AnySolver::Matrix(system) => Some(system.matrix()),
            AnySolver::Operator(_, matrix) => *matrix,
        }
    }
    /// The ratio of the matrix on the device to the one given: a power of two, so that no square of a product
    /// overflows or underflows, and a sign, so that a negative definite matrix becomes positive definite.
    /// Right-hand sides and solutions are in the caller's scale.
    pub fn factor(&self) -> Factor {
        self.system.as_matrix().map_or(Factor::default(), AutoSolver::factor)
    }
    /// The method and why it was chosen.
    pub fn method(&self) -> &Chosen {
        &self.system.chosen().method
    }
    /// The preconditioner and why it was chosen.
    pub fn preconditioner(&self) -> &Chosen {
        &self.system.chosen().preconditioner
    }
    /// The storage format and why it was chosen.
    pub fn format(&self) -> &Chosen {
        &self.system.chosen().format
    }
    /// What was chosen, in words, as every outcome reports it.
    pub fn choices(&self) -> &[String] {
        &self.system.chosen().sentences
    }
    /// The order of the rows and its effect on the matrix.
    pub fn order(&self) -> &Chosen {
        &self.system.chosen().order
    }
    /// The underlying solver: the program, and the vectors on the device. They are in the row order of the
    /// device and belong to the matrix there: see [`Prepared::factor`].
    pub fn solver(&mut self) -> &mut Solver<T> {
        either!(&mut self.system, system => system.solver())
    }
    /// What `lsqr:variances=yes` found of the diagonal of `(Aᴴ A)⁻¹` in the last solve: see [`Solver::variances`].
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the device has the unknowns in another order or scale; device failures.
    pub fn variances(&mut self) -> Result<Option<Vec<T>>> {
        match self.system.as_matrix() {
            Some(system) => system.variances(),
            None => self.solver().variances(),
        }
    }
    /// The minimum number of bytes that an iteration moves; for a refined system, an iteration of a
    /// correction.
    pub fn bytes_per_iteration(&self) -> usize {
        match &self.refined {
            Some(refined) => refined.bytes_per_iteration(),
            None => either!(&self.system, system => system.bytes_per_iteration()),
        }
    }
    /// Changes the stopping criteria of later solves.
    pub fn set_stop(&mut self, stop: Stop) {
        either!(&mut self.system, system => system.set_stop(stop));
    }
}

/// Called from time to time during a solve.
type Watching<'a> = Option<&'a mut dyn FnMut(Watch) -> ControlFlow<()>>;

fn reborrow<'a>(watch: &'a mut Watching<'_>) -> Watching<'a> {
    match watch {
        Some(watch) => Some(&mut **watch),
        None => None,
    }
}

/// Copies the elements of a strided view to contiguous memory.
fn stage<'a, T: Scalar>(place: &'a mut Vec<T>, view: ArrayView1<'_, T>) -> &'a mut [T] {
    place.clear();
    place.extend(view.iter());
    place
}

/// Iterates on the columns together and replaces guesses by better solutions. Returns what became of each
/// column.
fn iterate_together<T: Scalar>(
    system: &mut AutoSolver<T>,
    b: ArrayView2<'_, T>,
    mut x: ArrayViewMut2<'_, T>,
    watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
) -> Result<Vec<Option<Joint>>> {
    let mut sides = Vec::new();
    for (b, x) in b.columns().into_iter().zip(x.columns()) {
        let mut side = [Vec::new(), Vec::new()];
        system.stage(&mut side, (b.len(), &|i| b[i]), (x.len(), &|i| x[i]))?;
        sides.push(side);
    }
    let joint = system.iterate_together(&mut sides, watch)?;
    for (mut x, ([_, solution], _)) in
        x.columns_mut().into_iter().zip(sides.iter().zip(&joint)).filter(|(_, (_, joint))| joint.is_some())
    {
        system.restore(solution, |i, v| x[i] = v)?;
    }
    Ok(joint)
}
