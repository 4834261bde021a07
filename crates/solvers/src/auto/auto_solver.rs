//! A system on a device that is solved by what suits it.
use super::analysis::{Analysis, Made};
use super::continuation::{self, Watching, copy};
use super::matrix::HostMatrix;
use super::queue::Queue;
use super::resident::{Resident, record};
use super::{Chosen, Request};
use crate::{Factor, Method, Observer, Options, Outcome, Placed, Solver, Stop, Way};
use lacuna_engine::{Device, Error, Matrix, Result, Scalar, Vector};
use lacuna_formats::Csr;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// What was chosen for a system that is on a device, each with the reason.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Choices {
    /// The method.
    pub method: Chosen,
    /// The preconditioner.
    pub preconditioner: Chosen,
    /// The storage format.
    pub format: Chosen,
    /// The order of the rows and its effect on the matrix.
    pub order: Chosen,
    /// All of it in words, as outcomes report it.
    pub sentences: Vec<String>,
    /// The time of the set-up by part.
    pub stages: Vec<(&'static str, Duration)>,
}

impl Choices {
    /// Makes it the only way of an outcome. Allocates nothing if it is that already.
    pub(super) fn begin(&self, outcome: &mut Outcome) {
        let is_first = |way: &Way| (&way.method, &way.preconditioner) == (&self.method, &self.preconditioner);
        if !matches!(&*outcome.ways, [way] if is_first(way)) {
            outcome.ways.clear();
            outcome.ways.push(self.way());
        }
    }

    /// The way that a solve begins with.
    pub(super) fn way(&self) -> Way {
        Way { method: self.method.clone(), preconditioner: self.preconditioner.clone() }
    }
}

/// A system on a device. It solves with the method and the preconditioner chosen first, confirms the result on the host, and
/// continues with other candidates if it falls short.
///
/// Vectors are in the order of the device: see [`AutoSolver::stage`] and [`AutoSolver::restore`].
pub struct AutoSolver<T: Scalar> {
    pub(super) device: Device,
    pub(super) matrix: HostMatrix<T>,
    pub(super) resident: Resident<T>,
    /// The method that is recorded.
    pub(super) method: Box<dyn Method<T>>,
    pub(super) chosen: Choices,
    /// Whether the preconditioner was left open.
    pub(super) open_preconditioner: bool,
    /// The preconditioner that was asked for by name.
    pub(super) asked_preconditioner: Option<String>,
    /// Whether the preconditioner still has what it chose by former values.
    pub(super) behind: bool,
    /// The candidates that follow.
    pub(super) queue: Queue,
    /// Complete factors of these values that were counted and are not in use yet.
    pub(super) counted: Made<T>,
    /// The cost of an iteration, in iterations of the method chosen at first.
    pub(super) weight: u64,
    /// The iterations in which the recorded method solved the system before, if those were more than its share; else 0.
    pub(super) usual: u64,
    pub(super) options: Options,
    pub(super) stop: Stop,
    /// Whether the first method is the only one.
    pub(super) strict: bool,
    pub(super) observer: Option<Observer<T>>,
    /// What every outcome notes, besides what is said of the rounded matrix.
    pub(super) remarks: Vec<String>,
    /// Why the last new values were refused after the matrix had changed, if they were.
    pub(super) refused: Option<String>,
    /// The preconditioner that was chosen first and refused the matrix, if one did.
    pub(super) unavailable: Option<String>,
}

/// What is said of a preconditioner: that it was chosen and why, and what it reports.
pub(super) fn preconditioner_sentences<T: Scalar>(
    chosen: &Chosen,
    placed: Option<&Placed<T>>,
) -> Vec<String> {
    let reported = placed.into_iter().flat_map(Placed::report);
    let line = |(what, value): &(&str, String)| format!("preconditioner {}: {what} {value}", chosen.name);
    [chosen.sentence("preconditioner")].into_iter().chain(reported.map(line)).collect()
}

/// Fails if vectors on the device are not in the caller's order and scale, which an operation needs.
pub(super) fn check_order<T: Scalar>(matrix: &HostMatrix<T>, operation: &str) -> Result<()> {
    match matrix.order.changes() {
        false => Ok(()),
        true => Err(Error::Unsupported {
            operation: operation.into(),
            message: "rows or columns are solved in another order or scale than those given; ask for `none` of both".into(),
        }),
    }
}

impl<T: Scalar> AutoSolver<T> {
    /// Chooses what a request leaves open, and puts the system on a device.
    ///
    /// # Errors
    /// As [`Analysis::new`] and [`Analysis::place`].
    pub fn new(dev: &Device, request: Request<T>) -> Result<Self> {
        Analysis::new(request, dev.info().memory.is_none())?.place(dev)
    }

    /// Solves for `b` from `x`, both in the order of the device. Returns the method and the preconditioner that solved it in
    /// place of those chosen first, if others did.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::Element`] for `b` and `x`; [`Error::Structure`] if the last new values were refused;
    /// device failures.
    pub fn solve(
        &mut self,
        outcome: &mut Outcome,
        (b, x): (&[T], &mut [T]),
        watch: Watching<'_>,
    ) -> Result<Option<(String, String)>> {
        continuation::solve(self, outcome, (b, x), watch)
            .map_err(|error| self.matrix.order.in_given_rows(error))
    }

    /// Solves for a right-hand side that is on the device already, in the caller's order and scale: `fill` is given the vectors for it
    /// and for the guess, which is 0, and the solution is in the latter then, as the method left it. By the method and the
    /// preconditioner in use and no other, confirmed in the number type of the solve.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the device has the unknowns in another order or scale; those of `fill`; device failures.
    pub fn solve_on_device(
        &mut self,
        outcome: &mut Outcome,
        fill: &mut dyn FnMut(Vector<T>, Vector<T>) -> Result<()>,
        watch: Watching<'_>,
    ) -> Result<Vector<T>> {
        check_order(&self.matrix, "a solve for vectors on the device")?;
        if self.method.reads_norm() {
            self.resident.solver.set_norm(self.matrix.norm());
        }
        let solver = &mut self.resident.solver;
        copy(solver.solve_filled(fill, watch)?, outcome);
        Ok(solver.x())
    }

    /// Shows somebody else each iteration of the following solves, or nobody. Records the solve again.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if rows or columns are solved in another order or scale; errors of recording and planning.
    pub fn observe(&mut self, observer: Option<Observer<T>>) -> Result<()> {
        if observer.is_some() {
            check_order(&self.matrix, "an observer of iterations")?;
        }
        let how = (&*self.method, self.stop, observer.as_ref());
        let Resident { pair, adjoint, preconditioner, narrow, .. } = &self.resident;
        let of_matrix = (&self.matrix, *narrow);
        self.resident.solver =
            record(&self.device, (pair, *adjoint), preconditioner.as_ref(), how, of_matrix)?;
        self.observer = observer;
        Ok(())
    }

    /// See [`Solver::variances`].
    ///
    /// # Errors
    /// As there; [`Error::Unsupported`] if the device has the unknowns in another order or scale.
    pub fn variances(&self) -> Result<Option<Vec<T>>> {
        check_order(&self.matrix, "variances")?;
        self.resident.solver.variances()
    }

    /// Notes the residual of the system as it was given, if its rows were scaled: `b` and `x` as for [`AutoSolver::solve`].
    ///
    /// # Errors
    /// [`Error::Entry`] for entries that are out of range without their factors.
    pub fn note_unscaled(&self, outcome: &mut Outcome, b: &[T], x: &[T]) -> Result<()> {
        let [of_b, of_x] = self.resident.solver.factors(b);
        if let Some(residual) = self.matrix.unscaled_residual(&of_b.times(b), &of_x.times(x))? {
            let note = format!(
                "residuals are those of the scaled rows; of the rows as given, |b - A x| = {residual:.2e} |b|"
            );
            outcome.notes.push(note);
        }
        Ok(())
    }

    /// [`Error::Structure`] if the last new values were not taken by all parts.
    ///
    /// # Errors
    /// That error.
    pub fn check_values(&self) -> Result<()> {
        match &self.refused {
            None => Ok(()),
            Some(why) => Err(Error::Structure {
                operation: "solve".into(),
                message: format!("the last new values were refused; give the matrix others first ({why})"),
            }),
        }
    }

    /// Adds to the choices.
    pub fn report(&mut self, choice: String) {
        self.chosen.sentences.push(choice);
    }

    /// Adds to what every outcome notes.
    pub fn remark(&mut self, remark: String) {
        self.remarks.push(remark);
    }

    /// Starts an outcome with what is known before the solve.
    pub fn note_remarks(&self, outcome: &mut Outcome) {
        outcome.why.clear();
        outcome.advice.clear();
        self.chosen.begin(outcome);
        if outcome.choices != self.chosen.sentences {
            outcome.choices.clone_from(&self.chosen.sentences);
        }
        outcome.notes.clear();
        outcome.notes.extend(self.matrix.rounding.iter().chain(&self.remarks).cloned());
    }

    /// Whether vectors on the device are in another order than the caller's, or scaled.
    pub fn reorders(&self) -> bool {
        self.matrix.order.changes()
    }

    /// Copies the right-hand side and the starting guess, each a length and its elements, in the order of the device.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn stage(
        &self,
        staged: &mut [Vec<T>; 2],
        b: (usize, &dyn Fn(usize) -> T),
        x: (usize, &dyn Fn(usize) -> T),
    ) -> Result<()> {
        self.matrix.order.stage(staged, b, x)
    }

    /// Hands the elements of a solution on with their numbers in the caller's order.
    ///
    /// # Errors
    /// [`Error::Element`] for one that the factor of its column takes out of the range of numbers; then none is handed on.
    pub fn restore(&self, solution: &[T], set: impl FnMut(usize, T)) -> Result<()> {
        self.matrix.order.restore(solution, set)
    }

    /// A right-hand side of the device in the caller's order, without the factors of the rows.
    pub fn given_rhs<'v>(&self, values: &'v [T]) -> Cow<'v, [T]> {
        self.matrix.order.given_rhs(values)
    }

    /// The preconditioner on the device, of the matrix there.
    pub fn placed(&self) -> Option<&Placed<T>> {
        self.resident.preconditioner.as_ref()
    }
    /// The matrix on the host, in the order of the device and times [`AutoSolver::factor`].
    pub fn host_matrix(&self) -> &Arc<Csr<T>> {
        &self.matrix.a
    }
    /// The device that it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }
    /// The matrix on the device.
    pub fn matrix(&self) -> Matrix<T> {
        *self.resident.pair.a
    }
    /// The ratio of the matrix on the device to the one given.
    pub fn factor(&self) -> Factor {
        self.matrix.factor
    }
    /// What was chosen.
    pub fn chosen(&self) -> &Choices {
        &self.chosen
    }
    /// The recorded solve and its vectors on the device.
    pub fn solver(&mut self) -> &mut Solver<T> {
        &mut self.resident.solver
    }
    /// The minimum number of bytes that an iteration moves.
    pub fn bytes_per_iteration(&self) -> usize {
        self.resident.solver.program().bytes_per_iteration()
    }
    /// The stopping criteria.
    pub fn stop(&self) -> Stop {
        self.stop
    }
    /// The largest number of iterations of a solve: see [`Stop::limit`].
    pub fn limit(&self) -> u64 {
        self.stop.limit((self.matrix.a.rows(), self.matrix.a.cols()))
    }
    /// Changes the stopping criteria of later solves, but for the norm, which is recorded.
    pub fn set_stop(&mut self, stop: Stop) {
        let stop = stop.norm(self.stop.norm);
        self.stop = stop;
        self.resident.solver.set_stop(stop);
    }
}
