//! A system of which products are all that is known: an operator, or a matrix in a format without its entries.
use super::analysis::{named_method, without_cycles};
use super::continuation::{Watching, copy};
use super::plan::ASKED_FOR;
use super::request::combined;
use super::rules::NONE;
use super::{Choices, Chosen, PreconditionerChoice, Request};
use crate::{Outcome, Preconditioner, Solver, Stop, method};
use lacuna_engine::{Device, Error, LinOp, Result, Scalar, Vector};
use std::time::Instant;

/// Why a method is chosen for an operator.
const UNKNOWN: &str = "products are all that is known of the operator";

/// A system of an operator on a device.
///
/// The method is the one asked for, or `gmres`, or `lsmr` for an operator that is not square; no other follows. The true
/// residual is confirmed by the operator itself, in the number type of the solve. What needs the entries of a matrix is an
/// error: preconditioners by name, an order, a format, new values; so is refinement.
pub struct OperatorSolver<T: Scalar> {
    device: Device,
    shape: (usize, usize),
    solver: Solver<T>,
    stop: Stop,
    chosen: Choices,
    remarks: Vec<String>,
}

impl<T: Scalar> OperatorSolver<T> {
    /// Chooses the method if that is open, and records the solve. `format` says what the operator is.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for what needs the entries of a matrix, and for a method that needs the adjoint of an operator
    /// that does not know it; [`Error::Argument`] for an unknown name or option; [`Error::Stale`] for an operator or a
    /// preconditioner of another device; as [`Solver::new`].
    pub fn new<A>(
        dev: &Device,
        operator: &dyn LinOp<T>,
        format: Chosen,
        request: Request<T, A>,
    ) -> Result<Self> {
        let start = Instant::now();
        let Request { reorder, scale, adjoint, options, stop, observer, .. } = request;
        if reorder != "none" {
            return Err(needs_entries(&format!("the order `{reorder}`")));
        }
        if scale != "none" {
            return Err(needs_entries(&format!("the scaling `{scale}`")));
        }
        if let Some(name) = request.format {
            return Err(needs_entries(&format!("the format `{name}`")));
        }
        if adjoint {
            return Err(Error::Unsupported {
                operation: "the adjoint of an operator".into(),
                message:
                    "an operator has to provide it itself: see `HostOperator::with_adjoint` and `WithAdjoint`"
                        .into(),
            });
        }
        let (asked, preconditioner, _) = combined(request.method, request.preconditioner)?;
        let open = asked.is_open();
        let (name, named) = named_method(asked, &options)?;
        let square = operator.shape().0 == operator.shape().1;
        let name = name.unwrap_or_else(|| if square { "gmres" } else { "lsmr" }.into());
        let method = named.map_or_else(|| method(&name, &options), Ok)?;
        let chosen_method = Chosen::new(&name, if open { UNKNOWN } else { ASKED_FOR });
        let own = given(preconditioner)?;
        let m = own.as_deref().and_then(Preconditioner::operator);
        let chosen_preconditioner = match &own {
            Some(own) => Chosen::new(&own.name(), ASKED_FOR),
            None => Chosen::new(NONE, "the others need the entries of a matrix"),
        };
        let solver = Solver::observed(dev, operator, m, &*method, stop, observer)?;
        let mut remarks: Vec<_> = without_cycles(&options, &*method, false).into_iter().collect();
        let info = method.info();
        if info.hermitian() {
            let definite = if info.positive_definite() { " positive definite" } else { "" };
            remarks.push(format!(
                "{} needs a Hermitian{definite} operator, which products alone do not show",
                info.name
            ));
        }
        let order = Chosen::new("none", "an operator has the order of its vectors");
        let mut sentences = vec![
            chosen_method.sentence("method"),
            chosen_preconditioner.sentence("preconditioner"),
            format.sentence("format"),
        ];
        sentences
            .push(format!("confirmation by the operator, in {}: its entries are not known", T::KIND.name()));
        let chosen = Choices {
            method: chosen_method,
            preconditioner: chosen_preconditioner,
            format,
            order,
            sentences,
            stages: vec![("program", start.elapsed())],
        };
        Ok(OperatorSolver { device: dev.clone(), shape: operator.shape(), solver, stop, chosen, remarks })
    }

    /// Solves for `b` from `x`.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::Element`] for `b` and `x`; [`Error::Function`] if a function of the caller's fails; device
    /// failures.
    pub fn solve(
        &mut self,
        outcome: &mut Outcome,
        (b, x): (&[T], &mut [T]),
        watch: Watching<'_>,
    ) -> Result<()> {
        self.chosen.begin(outcome);
        outcome.notes.clone_from(&self.remarks);
        copy(self.solver.solve_watched(b, x, watch)?, outcome);
        Ok(())
    }

    /// As [`AutoSolver::solve_on_device`](super::AutoSolver::solve_on_device).
    ///
    /// # Errors
    /// As there.
    pub fn solve_on_device(
        &mut self,
        outcome: &mut Outcome,
        fill: &mut dyn FnMut(Vector<T>, Vector<T>) -> Result<()>,
        watch: Watching<'_>,
    ) -> Result<Vector<T>> {
        self.chosen.begin(outcome);
        outcome.notes.clone_from(&self.remarks);
        copy(self.solver.solve_filled(fill, watch)?, outcome);
        Ok(self.solver.x())
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        self.shape
    }
    /// What was chosen.
    pub fn chosen(&self) -> &Choices {
        &self.chosen
    }
    /// Adds to the choices.
    pub fn report(&mut self, choice: String) {
        self.chosen.sentences.push(choice);
    }
    /// The device that it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }
    /// The recorded solve and its vectors on the device.
    pub fn solver(&mut self) -> &mut Solver<T> {
        &mut self.solver
    }
    /// The stopping criteria.
    pub fn stop(&self) -> Stop {
        self.stop
    }
    /// Changes the stopping criteria of later solves.
    pub fn set_stop(&mut self, stop: Stop) {
        let stop = stop.norm(self.stop.norm);
        self.stop = stop;
        self.solver.set_stop(stop);
    }
    /// The minimum number of bytes that an iteration moves, without those of host functions.
    pub fn bytes_per_iteration(&self) -> usize {
        self.solver.program().bytes_per_iteration()
    }
}

/// The preconditioner, if it needs no matrix.
fn given<T: Scalar>(asked: PreconditionerChoice<T>) -> Result<Option<Box<dyn Preconditioner<T>>>> {
    match asked {
        PreconditionerChoice::Auto => Ok(None),
        PreconditionerChoice::Named(name) if name == NONE => Ok(None),
        PreconditionerChoice::Named(name) => Err(needs_entries(&format!("the preconditioner `{name}`"))),
        PreconditionerChoice::Own(own) if own.operator().is_some() => Ok(Some(own)),
        PreconditionerChoice::Own(own) => Err(needs_entries(&format!("the preconditioner `{}`", own.name()))),
    }
}

/// The error of what an operator does not have.
fn needs_entries(what: &str) -> Error {
    Error::Unsupported {
        operation: format!("{what} for an operator"),
        message: "it needs the entries of a matrix, of which products alone are known; give the matrix, or for a preconditioner an \
                  operator, as one placed for a matrix that is near"
            .into(),
    }
}
