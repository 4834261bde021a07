//! What a system keeps on a device.
use super::matrix::HostMatrix;
use crate::{ColumnSolver, Method, Observer, Placed, Solver, Stop};
use lacuna_engine::{Device, LinOp, Result, Scalar};
use lacuna_formats::Pair;

/// The matrix, the preconditioner and the recorded solve on a device.
pub(super) struct Resident<T: Scalar> {
    pub(super) pair: Pair<T>,
    /// Whether the conjugate transpose is there.
    pub(super) adjoint: bool,
    pub(super) preconditioner: Option<Placed<T>>,
    /// Whether that uses numbers of the narrower type.
    pub(super) narrow: bool,
    pub(super) solver: Solver<T>,
    /// The solver for several right-hand sides at once, once requested.
    pub(super) columns: Option<ColumnSolver<T>>,
}

/// Records a method for a matrix on a device.
pub(super) fn record<T: Scalar>(
    dev: &Device,
    (pair, adjoint): (&Pair<T>, bool),
    preconditioner: Option<&Placed<T>>,
    (method, stop, observer): (&dyn Method<T>, Stop, Option<&Observer<T>>),
    (matrix, narrow): (&HostMatrix<T>, bool),
) -> Result<Solver<T>> {
    let m = preconditioner.map(|m| m as &dyn LinOp<T>);
    let mut solver = Solver::observed(dev, operator(pair, adjoint), m, method, stop, observer.cloned())?;
    solver.set_factor(matrix.factor);
    solver.set_narrow(narrow);
    Ok(solver)
}

/// The operator of a solve, with its adjoint where that is there.
pub(super) fn operator<T: Scalar>(pair: &Pair<T>, adjoint: bool) -> &dyn LinOp<T> {
    if adjoint { pair } else { &pair.a }
}
