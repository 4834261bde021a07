//! Puts an analysed system on a device: the matrix in its format, the preconditioner, the recorded solve.
use super::analysis::{Analysis, Made};
use super::auto_solver::check_order;
use super::factor::unless_lost;
use super::matrix::HostMatrix;
use super::plan::{Candidate, When};
use super::queue::Queue;
use super::resident::{Resident, record};
use super::{AutoSolver, Choices, Chosen, is_refusal, preconditioner_sentences};
use crate::{Method, Placed, Setup, SetupWatch, Solver, method as named, preconditioner};
use lacuna_engine::{Device, Format, Matrix, Result, Scalar};
use lacuna_formats::{Csr, Pair, Stencil, convert, interrupt};
use std::any::Any;
use std::sync::Arc;

impl<T: Scalar> Analysis<T> {
    /// Puts the system on a device.
    ///
    /// # Errors
    /// A [`lacuna_engine::Error`]: a shape if the method needs a square matrix and this is not, an argument for an
    /// invalid tolerance, `Unsupported` for a format that does not suit the matrix or has no kernel on the device; the
    /// errors of the preconditioner; device failures.
    pub fn place(self, dev: &Device) -> Result<AutoSolver<T>> {
        self.place_watched(dev, None)
    }

    /// [`Analysis::place`], watched between its parts and during the set-up of the preconditioner, which may cancel it.
    ///
    /// # Errors
    /// As there; [`lacuna_engine::Error::Cancelled`].
    pub fn place_watched(mut self, dev: &Device, mut watch: Option<SetupWatch<'_>>) -> Result<AutoSolver<T>> {
        watched(&mut watch).check()?;
        let a = self.matrix().clone();
        let mut format = self.choose_format(dev.formats(a.rows(), Format::bytes(&*a))?);
        self.stages.end("analysis");
        watched(&mut watch).check()?;
        let stencil = self.stencil_to_store(&mut format);
        let (pair, norm) = store(dev, &a, stencil, &format.name, self.adjoint)?;
        self.stages.end("matrix");
        watched(&mut watch).check()?;
        let matrix = HostMatrix::new(&self.facts, self.order, self.rounding.take(), norm);
        let (facts, mut plan, options, stop) = (self.facts, self.plan, self.options, self.stop);
        let replacement = plan.others(When::Refused).next().filter(|_| self.open_preconditioner);
        let narrow =
            !self.open_preconditioner && self.preconditioner.as_ref().is_some_and(|kind| kind.is_narrow());
        let chosen = self.chosen_preconditioner.name.clone();
        let first = (self.chosen_preconditioner, self.preconditioner);
        let (preconditioner, placed, replaced) =
            place_first(dev, first, replacement, (&matrix, *pair.a), &mut watch)?;
        let unavailable = replaced.map(|_| chosen);
        if let Some(next) = replaced.cloned() {
            // What takes its place does not follow it.
            plan.others.retain(|other| other.when != When::Short || !other.is_as(&next));
            if next.method.name != self.chosen_method.name {
                self.method = named(&next.method.name, &options)?;
                self.chosen_method = next.method;
            }
        }
        self.stages.end("preconditioner");
        watched(&mut watch).check()?;
        let (method, adjoint) = (self.method, self.adjoint);
        if placed.is_some() && method.least_squares() && a.rows() < a.cols() {
            let name = &preconditioner.name;
            self.remarks.push(format!(
                "fewer rows than columns: under {name}, M, the solution is the one of least |M^-1 x|, not of least |x|"
            ));
        }
        let observer = self.observer;
        if observer.is_some() {
            check_order(&matrix, "an observer of iterations")?;
        }
        let how = (&*method, stop, observer.as_ref());
        let solver = record(dev, (&pair, adjoint), placed.as_ref(), how, (&matrix, narrow))?;
        self.stages.end("program");
        self.remarks.extend(silences(&solver, &*method, &preconditioner, placed.as_ref()));
        let program = solver.program();
        let queue = Queue::new(&plan, (a.rows(), a.nnz()), program.bytes_per_iteration(), facts.on_host());
        let mut choices = vec![self.chosen_method.sentence("method")];
        choices.extend(preconditioner_sentences(&preconditioner, placed.as_ref()));
        choices.insert(2, format.sentence("format"));
        choices.extend(matrix.order.scaling.iter().map(|scaling| scaling.sentence("scaling")));
        if self.reports_order {
            choices.push(matrix.order.chosen.sentence("order"));
        }
        if !facts.on_host() && program.calls_host() {
            let why = "host functions run between operations, and each call transfers two vectors";
            choices.push(format!("execution operation by operation: {why}"));
        }
        let order = matrix.order.chosen.clone();
        let resident = Resident { pair, adjoint, preconditioner: placed, narrow, solver, columns: None };
        Ok(AutoSolver {
            device: dev.clone(),
            matrix,
            resident,
            method,
            chosen: Choices {
                method: self.chosen_method,
                preconditioner,
                format,
                order,
                sentences: choices,
                stages: self.stages.ended(),
            },
            open_preconditioner: self.open_preconditioner,
            asked_preconditioner: self.asked_preconditioner,
            behind: false,
            queue,
            counted: self.counted,
            weight: 1,
            usual: 0,
            options,
            stop,
            strict: self.strict,
            observer,
            remarks: self.remarks,
            refused: None,
            unavailable,
        })
    }

    /// The stencil that is stored, if that is known; the format falls back to `csr` if the matrix is none, of which
    /// `multigrid` says why.
    fn stencil_to_store(&mut self, format: &mut Chosen) -> Option<Stencil<T>> {
        let stencil = self.facts.take_stencil().or_else(|| self.stencil.take());
        if !self.is_for_multigrid() || format.name != "stencil" {
            return stencil.filter(|_| format.name == "stencil");
        }
        let stencil = stencil.or_else(|| Stencil::from_csr(&**self.matrix()).ok());
        if stencil.is_none() {
            *format = Chosen::new("csr", "the matrix is no stencil");
        }
        stencil
    }
}

/// What would be wrong in silence: a preconditioner that the method does not use or must not have, and a residual that nobody checks.
fn silences<T: Scalar>(
    solver: &Solver<T>,
    method: &dyn Method<T>,
    preconditioner: &Chosen,
    placed: Option<&Placed<T>>,
) -> Vec<String> {
    let (name, kind) = (method.name(), &preconditioner.name);
    let mut said = Vec::new();
    if solver.ignores_preconditioner() {
        said.push(format!("{name} does not use its preconditioner: {kind} was set up in vain"));
    } else if placed.is_some_and(Placed::may_be_unsymmetric) && method.info().hermitian() {
        said.push(format!("{name} needs a Hermitian preconditioner, and {kind} is not known to be one"));
    }
    if !solver.program().confirms() {
        said.push(format!(
            "{name} confirms no residual (`System::confirm`): what it ends with is not checked"
        ));
    }
    said
}

/// The matrix, which may be a known stencil, on the device in a format, with its adjoint if that is needed, and a bound
/// of its norm where the format knows one.
fn store<T: Scalar>(
    dev: &Device,
    a: &Arc<Csr<T>>,
    stencil: Option<Stencil<T>>,
    format: &str,
    adjoint: bool,
) -> Result<(Pair<T>, Option<f64>)> {
    if adjoint {
        return Ok((Pair::new(dev, a, format)?, None));
    }
    interrupt::check()?;
    let stored: Arc<dyn Format<T>> = match stencil {
        Some(stencil) => Arc::new(stencil),
        None => convert(a, format)?,
    };
    let stencil = (stored.clone() as Arc<dyn Any + Send + Sync>).downcast::<Stencil<T>>();
    let norm = stencil.ok().map(|stencil| stencil.norm_bound());
    interrupt::check()?;
    let stored = dev.matrix(stored)?;
    Ok((Pair { a: stored.clone(), adjoint: stored }, norm))
}

/// Sets up the preconditioner that was chosen. If that refuses the values, or the coarse matrices that follow from
/// them, that of its replacement, which is returned.
#[expect(clippy::type_complexity, reason = "what stands, and what it stands for")]
fn place_first<'a, T: Scalar>(
    dev: &Device,
    (chosen, made): (Chosen, Made<T>),
    replacement: Option<&'a Candidate>,
    (matrix, stored): (&HostMatrix<T>, Matrix<T>),
    watch: &mut Option<SetupWatch<'_>>,
) -> Result<(Chosen, Option<Placed<T>>, Option<&'a Candidate>)> {
    let refused = match placed_by(dev, made, &matrix.a, stored, watched(watch)) {
        Ok(placed) => return Ok((chosen, placed, None)),
        Err(refused) => matrix.order.in_given_rows(refused),
    };
    let Some(next) = replacement.filter(|_| is_refusal(&refused)) else {
        return Err(unless_lost(refused, matrix.lost.as_ref()));
    };
    let simple = next.chosen().1;
    let why = format!("{} is not available: {refused}; {}", chosen.name, simple.why);
    let placed = placed_by(dev, preconditioner(&simple.name)?, &matrix.a, stored, watched(watch));
    let placed =
        placed.map_err(|error| unless_lost(matrix.order.in_given_rows(error), matrix.lost.as_ref()))?;
    Ok((Chosen::new(&simple.name, why), placed, Some(next)))
}

/// The setting of a set-up that is watched by whoever watches.
fn watched<'w>(watch: &'w mut Option<SetupWatch<'_>>) -> Setup<'w> {
    match watch {
        Some(watch) => Setup::new().watched(&mut **watch),
        None => Setup::new(),
    }
}

/// Sets up a preconditioner and puts it on the device.
pub(super) fn place<T: Scalar>(
    dev: &Device,
    made: Made<T>,
    a: &Csr<T>,
    stored: Matrix<T>,
) -> Result<Option<Placed<T>>> {
    placed_by(dev, made, a, stored, Setup::new())
}

fn placed_by<T: Scalar>(
    dev: &Device,
    made: Made<T>,
    a: &Csr<T>,
    stored: Matrix<T>,
    setup: Setup<'_>,
) -> Result<Option<Placed<T>>> {
    made.map(|kind| Placed::new(dev, kind, a, stored, setup)).transpose()
}
