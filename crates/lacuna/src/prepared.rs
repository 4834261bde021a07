//! A prepared system: solves, takes new matrix values, and reports what was chosen.
use crate::auto_solver::{self, Candidates};
use crate::columns::Joint;
use crate::order::Order;
use crate::refine::Refined;
use crate::remembered_method::Memory;
use crate::{AsVector, AsVectorMut, Chosen};
use lacuna_engine::{Backend, Error, Matrix, Result, Scalar};
use lacuna_formats::{Csr, Pair};
use lacuna_solvers::{ColumnSolver, Factor, Method, Options, Outcome, Placed, Solver, Stop, Watch};
use ndarray::{Array1, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, s};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// A system on a device, ready to solve for any right-hand side.
pub struct Prepared<T: Scalar> {
    pub(crate) parts: Parts<T>,
    /// The solver for corrections in the narrower type.
    pub(crate) refined: Option<Refined<T>>,
    pub(crate) outcome: Outcome,
    staged: [Vec<T>; 2],
}

/// What is said of a preconditioner: that it was chosen and why, and what it reports.
pub(crate) fn sentences<T: Scalar>(chosen: &Chosen, placed: Option<&Placed<T>>) -> Vec<String> {
    let reported = placed.into_iter().flat_map(Placed::report);
    let line = |(what, value): &(&str, String)| format!("preconditioner {}: {what} {value}", chosen.name);
    [chosen.sentence("preconditioner")].into_iter().chain(reported.map(line)).collect()
}

/// The parts of a prepared system.
pub(crate) struct Parts<T: Scalar> {
    pub(crate) solver: Solver<T>,
    /// The method that the solver recorded.
    pub(crate) algorithm: Box<dyn Method<T>>,
    pub(crate) candidates: Candidates,
    /// Where the candidate that solved the system is remembered.
    pub(crate) memory: Option<Memory>,
    pub(crate) options: Options,
    pub(crate) method: Chosen,
    /// Whether it needs a Hermitian positive definite matrix.
    pub(crate) definite: bool,
    /// Whether the preconditioner uses numbers of the narrower type.
    pub(crate) narrow: bool,
    /// Whether it solves least-squares problems.
    pub(crate) least_squares: bool,
    pub(crate) preconditioner: Chosen,
    /// Whether the preconditioner was left open.
    pub(crate) chooses_preconditioner: bool,
    pub(crate) format: Chosen,
    /// The matrix in the caller's order, without the factor.
    pub(crate) given: Arc<Csr<T>>,
    /// What is said of the matrix if its format rounds values.
    pub(crate) rounding: Option<String>,
    /// What every outcome notes, besides.
    pub(crate) remarks: Vec<String>,
    /// The ratio of the matrix on the device to the one given.
    pub(crate) factor: Factor,
    /// What is said of entries that are lost by the factor.
    pub(crate) lost: Option<String>,
    /// `√(‖A‖₁ ‖A‖_∞)` with the factor, once known.
    pub(crate) norm: Option<f64>,
    /// Why the last new values were refused after the matrix had changed, if they were.
    pub(crate) refused: Option<String>,
    pub(crate) pair: Pair<T>,
    pub(crate) adjoint: bool,
    pub(crate) placed: Option<Placed<T>>,
    /// The solver for several right-hand sides at once, once requested.
    pub(crate) columns: Option<ColumnSolver<T>>,
    pub(crate) order: Order,
    pub(crate) choices: Vec<String>,
    pub(crate) stages: Vec<(&'static str, Duration)>,
    pub(crate) stop: Stop,
    pub(crate) x0: Option<Vec<T>>,
}

impl<T: Scalar> Prepared<T> {
    pub(crate) fn new(parts: Parts<T>) -> Self {
        let outcome = Outcome { choices: parts.choices.clone(), ..Outcome::default() };
        Prepared { parts, refined: None, outcome, staged: [Vec::new(), Vec::new()] }
    }

    /// Solves for `b` from the starting guess of the builder, or from 0.
    ///
    /// # Errors
    /// As [`Prepared::solve_into`].
    pub fn solve<B: Backend>(&mut self, dev: &mut B, b: impl AsVector<T>) -> Result<(Array1<T>, Outcome)> {
        let mut x = match &self.parts.x0 {
            Some(x0) => Array1::from_vec(x0.clone()),
            None => Array1::zeros(self.parts.given.cols()),
        };
        self.solve_into(dev, b, &mut x)?;
        Ok((x, self.outcome.clone()))
    }

    /// Solves for `b` from the guess in `x`, and stores the solution there. Without a solution `x` receives
    /// the best one found, which is finite and no worse than the guess. The outcome describes the final `x`.
    ///
    /// If the confirmed residual is so small that its own rounding error could hide a larger one, it is
    /// recomputed on the host in twice the precision. A method that stops short of the tolerance continues
    /// from the true residual as long as that keeps halving, then in its classical variant, then with what was
    /// left to choose: another preconditioner, another method, incomplete and complete factors, as far as they
    /// suit the matrix; see [`Outcome::notes`]. Allocates nothing on the device unless another method is needed,
    /// and on the host only on the first call with a strided view or reordered rows.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::Element`] (an element that is not finite) for `b` and `x`; [`Error::Structure`] if the
    /// last new values were refused: see [`Prepared::update_values`]; device failures.
    pub fn solve_into<B: Backend>(
        &mut self,
        dev: &mut B,
        b: impl AsVector<T>,
        x: impl AsVectorMut<T>,
    ) -> Result<&Outcome> {
        self.solve_watched(dev, b, x, None)
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
    /// let mut dev = default_backend()?;
    /// let mut system = LinearSystem::new(a).prepare(&mut dev)?;
    /// let outcomes = system.solve_columns(&mut dev, b.view(), x.view_mut())?;
    /// assert!(outcomes.iter().all(|outcome| outcome.converged()));
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Prepared::solve_into`]; [`Error::Length`] if `b` and `x` have different numbers of columns.
    pub fn solve_columns<B: Backend>(
        &mut self,
        dev: &mut B,
        b: ArrayView2<'_, T>,
        mut x: ArrayViewMut2<'_, T>,
    ) -> Result<Vec<Outcome>> {
        let operation = "solve of several columns";
        Error::check_length(operation, "the columns of x", b.ncols(), x.ncols())?;
        Error::check_length(operation, "a column of b", self.parts.given.rows(), b.nrows())?;
        Error::check_length(operation, "a column of x", self.parts.given.cols(), x.nrows())?;
        self.parts.check_values()?;
        let together = if self.refined.is_none() { self.parts.together(dev, b.ncols())? } else { None };
        let step = together.unwrap_or(1);
        let mut outcomes = Vec::new();
        for first in (0..b.ncols()).step_by(step) {
            let columns = s![.., first..b.ncols().min(first + step)];
            let (b, mut x) = (b.slice(columns), x.slice_mut(columns));
            let joint = match together {
                Some(_) => self.parts.iterate_together(dev, b, x.view_mut())?,
                None => vec![None],
            };
            for ((b, x), joint) in b.columns().into_iter().zip(x.columns_mut()).zip(joint) {
                outcomes.push(self.go_on(dev, b, x, joint)?);
            }
        }
        Ok(outcomes)
    }

    /// Confirms a column that was iterated with others, and continues with it if necessary.
    fn go_on<B: Backend>(
        &mut self,
        dev: &mut B,
        b: ArrayView1<'_, T>,
        x: ArrayViewMut1<'_, T>,
        joint: Option<Joint>,
    ) -> Result<Outcome> {
        let most = self.parts.stop.max_iters;
        self.parts.stop.max_iters -= joint.map_or(0, |joint| joint.iterations().min(most));
        let solved = self.solve_views(dev, b, x, None).cloned();
        self.parts.stop.max_iters = most;
        let mut outcome = solved?;
        if let Some(joint) = joint {
            joint.add_to(&mut outcome);
        }
        Ok(outcome)
    }

    /// [`Prepared::solve_into`], calling `watch` from time to time while it runs. Returning `Break` cancels
    /// the solve.
    ///
    /// # Errors
    /// As [`Prepared::solve_into`].
    pub fn solve_watched<B: Backend>(
        &mut self,
        dev: &mut B,
        b: impl AsVector<T>,
        mut x: impl AsVectorMut<T>,
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<&Outcome> {
        self.solve_views(dev, b.as_vector(), x.as_vector_mut(), watch)
    }

    pub(crate) fn solve_views<B: Backend>(
        &mut self,
        dev: &mut B,
        b: ArrayView1<'_, T>,
        mut x: ArrayViewMut1<'_, T>,
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<&Outcome> {
        let Prepared { parts, refined, outcome, staged } = self;
        parts.check_values()?;
        outcome.notes.clear();
        outcome.notes.extend(parts.rounding.iter().chain(&parts.remarks).cloned());
        let solve = |parts: &mut Parts<T>, dev: &mut B, b: &[T], x: &mut [T]| match refined {
            Some(refined) => refined.solve(parts, outcome, dev, (b, x), watch),
            None => auto_solver::solve(parts, outcome, dev, b, x, watch),
        };
        if parts.order.changes() {
            parts.order.stage(staged, b, x.view())?;
            let [b, solution] = staged;
            let solved = solve(parts, dev, b, solution);
            solved.map_err(|error| parts.order.in_given_rows(error))?;
            parts.order.restore(solution, x);
            return Ok(&self.outcome);
        }
        let [staged_b, staged_x] = staged;
        let b = match b.as_slice() {
            Some(slice) => slice,
            None => stage(staged_b, b),
        };
        match x.as_slice_mut() {
            Some(slice) => solve(parts, dev, b, slice)?,
            None => {
                let slice = stage(staged_x, x.view());
                solve(parts, dev, b, slice)?;
                x.iter_mut().zip(slice).for_each(|(x, s)| *x = *s);
            }
        }
        Ok(&self.outcome)
    }

    /// Gives the matrix new values on the same pattern, in the order of [`Csr::values`] of the matrix that
    /// was prepared, and updates the preconditioner. The method and the preconditioner stay as chosen.
    ///
    /// Nothing is allocated on the device, with one exception. If the values do not fit the format (`stencil`
    /// needs the same coefficients at all points of a grid, `dia-sym` a symmetric matrix, `packed` short
    /// numbers), or if the matrix is no longer Hermitian and the method needs `Aᴴ`, the matrix is stored
    /// again in a format for any values. This happens at most once per system; [`Prepared::format`] and
    /// [`Outcome::choices`] report it, and [`Prepared::matrix`] and [`Prepared::solver`] then return new
    /// handles.
    ///
    /// ```
    /// use lacuna::prelude::*;
    ///
    /// let a = Spec::parse("gen:poisson2d:20x20")?.build::<f64>()?;
    /// let (values, b) = (a.values().to_vec(), vec![1.0; a.rows()]);
    /// let mut dev = default_backend()?;
    /// let mut system = LinearSystem::new(a).prepare(&mut dev)?;
    /// assert_eq!(system.format().name, "stencil");
    /// for step in 1..4 {
    ///     let softer = |(k, v): (usize, &f64)| v / (1.0 + (step * k) as f64 / 1e6);
    ///     let values: Vec<f64> = values.iter().enumerate().map(softer).collect();
    ///     system.update_values(&mut dev, &values)?;
    ///     assert!(system.solve(&mut dev, &b)?.1.converged());
    /// }
    /// assert_ne!(system.format().name, "stencil");
    /// # Ok::<(), lacuna::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Length`] unless there are as many values as entries, [`Error::Entry`] for one that is not
    /// finite (both leave the system unchanged); errors of the preconditioner; device failures. After the
    /// last two every solve fails with [`Error::Structure`] until the system is given other values.
    pub fn update_values<B: Backend>(&mut self, dev: &mut B, values: &[T]) -> Result<()> {
        self.parts.set_values(values)?;
        let before = self.formats();
        let updated = self.update(dev);
        self.parts.refused = updated.as_ref().err().map(Error::to_string);
        self.report_formats(&before);
        self.report_preconditioner();
        updated
    }

    /// Updates everything that depends on the values of the matrix.
    fn update<B: Backend>(&mut self, dev: &mut B) -> Result<()> {
        let Prepared { parts, refined, .. } = self;
        parts.update(dev)?;
        match refined {
            Some(refined) => refined.update(dev, &*parts.order.arranged(&parts.given)?),
            None => Ok(()),
        }
    }

    /// The formats in use, as they are reported.
    fn formats(&self) -> Vec<String> {
        let own = &self.parts.format;
        match &self.refined {
            Some(refined) => {
                vec![own.sentence("format of the residuals"), refined.format().sentence("format")]
            }
            None => vec![own.sentence("format")],
        }
    }

    /// Updates the reported choices after a change of the preconditioner.
    fn report_preconditioner(&mut self) {
        let Prepared { parts, refined, outcome, .. } = self;
        let concerned = |choice: &&String| choice.starts_with("preconditioner ");
        let inner = refined.as_ref().map_or(&parts.choices[..], Refined::choices);
        if inner.iter().filter(concerned).eq(outcome.choices.iter().filter(concerned)) {
            return;
        }
        let lines: Vec<String> = inner.iter().filter(concerned).cloned().collect();
        for choices in [&mut parts.choices, &mut outcome.choices] {
            choices.retain(|choice| !concerned(&choice));
            choices.extend(lines.iter().cloned());
        }
    }

    /// Updates the reported choices after a change of formats.
    fn report_formats(&mut self, before: &[String]) {
        for (before, after) in before.iter().zip(self.formats()) {
            let choices = self.parts.choices.iter_mut().chain(&mut self.outcome.choices);
            choices.filter(|choice| **choice == *before).for_each(|choice| choice.clone_from(&after));
        }
    }

    /// The time of the set-up by part: `analysis` of the structure and the choices, `matrix` to its format and the device,
    /// `preconditioner` likewise, `program` that the device runs. With refinement, those of the matrix for residuals.
    pub fn setup_parts(&self) -> &[(&'static str, Duration)] {
        &self.parts.stages
    }
    /// The matrix on the device, in the row order of the device.
    pub fn matrix(&self) -> Matrix<T> {
        self.parts.pair.a
    }
    /// The ratio of the matrix on the device to the one given: a power of two, so that no square of a product
    /// overflows or underflows, and a sign, so that a negative definite matrix becomes positive definite.
    /// Right-hand sides and solutions are in the caller's scale.
    pub fn factor(&self) -> Factor {
        self.parts.factor
    }
    /// The method and why it was chosen.
    pub fn method(&self) -> &Chosen {
        &self.parts.method
    }
    /// The preconditioner and why it was chosen.
    pub fn preconditioner(&self) -> &Chosen {
        &self.parts.preconditioner
    }
    /// The storage format and why it was chosen.
    pub fn format(&self) -> &Chosen {
        &self.parts.format
    }
    /// The order of the rows and its effect on the matrix.
    pub fn order(&self) -> &Chosen {
        &self.parts.order.chosen
    }
    /// The underlying solver: the program, and the vectors on the device. They are in the row order of the
    /// device and belong to the matrix there: see [`Prepared::factor`].
    pub fn solver(&mut self) -> &mut Solver<T> {
        &mut self.parts.solver
    }
    /// The minimum number of bytes that an iteration moves; for a refined system, an iteration of a
    /// correction.
    pub fn bytes_per_iteration(&self) -> usize {
        match &self.refined {
            Some(refined) => refined.bytes_per_iteration(),
            None => self.parts.solver.program().bytes_per_iteration(),
        }
    }
    /// Changes the stopping criteria of later solves.
    pub fn set_stop(&mut self, stop: Stop) {
        self.parts.stop = stop;
        self.parts.solver.set_stop(stop);
    }
}

/// Copies the elements of a strided view to contiguous memory.
fn stage<'a, T: Scalar>(place: &'a mut Vec<T>, view: ArrayView1<'_, T>) -> &'a mut [T] {
    place.clear();
    place.extend(view.iter());
    place
}
