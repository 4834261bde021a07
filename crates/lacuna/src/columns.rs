//! Several right-hand sides at once: iterated together, then confirmed one by one.
use crate::auto_solver::first_stop;
use crate::prepared::Parts;
use lacuna_engine::{Backend, LinOp, Matrix, Result, Scalar};
use lacuna_solvers::{Advance, ColumnMethod, ColumnSolver, Outcome, RightHandSide, largest};
use ndarray::{ArrayView2, ArrayViewMut2};
use std::time::{Duration, Instant};

/// The largest number of columns iterated together: each takes its own vectors, and products gain little from
/// more.
const TOGETHER: usize = 8;
/// A matrix of at least this many times the bytes of a vector is worth reading once for several columns. For
/// fewer, the vectors of the columns cost more than the products save: measured on two threads, with grids of
/// 5, 7, 9 and 27 points. A vector of a basis counts once more: `gmres:restart=30` breaks even at 27 points.
const HEAVY: usize = 12;

/// The part of a column in a joint iteration.
#[derive(Clone, Copy)]
pub(crate) struct Joint {
    advance: Advance,
    /// The number of other columns.
    others: usize,
    /// The column's share of the time.
    time: Duration,
}

impl Joint {
    pub(crate) fn iterations(self) -> u64 {
        self.advance.iterations
    }
    /// Extends the outcome of the later solve to the whole solve.
    pub(crate) fn add_to(self, outcome: &mut Outcome) {
        let Joint { advance, others, time } = self;
        outcome.iterations += advance.iterations;
        outcome.time += time;
        // Of the residuals of the joint iterations only the first and the last are known.
        let (joint, stride) = (advance.iterations, outcome.history_stride);
        if joint > 0 {
            let known = if joint.is_multiple_of(stride) { usize::MAX } else { 1 };
            let later = std::mem::take(&mut outcome.history).into_iter();
            let later = later.step_by((joint / stride).max(1) as usize).take(known);
            outcome.history = std::iter::once(advance.first).chain(later).collect();
            outcome.history_stride = joint;
        }
        let plural = if others == 1 { "" } else { "s" };
        outcome.notes.push(format!("iterated together with {others} other right-hand side{plural}"));
    }
}

impl<T: Scalar> Parts<T> {
    /// The number of columns to iterate together; `None` if there is only one, if the method takes one at a
    /// time, if the matrix is light, or on a device that runs a solve as one kernel.
    pub(crate) fn together<B: Backend>(&mut self, dev: &mut B, columns: usize) -> Result<Option<usize>> {
        let count = columns.min(TOGETHER);
        let Matrix { bytes, rows, .. } = self.pair.a;
        let pays = count > 1 && dev.device().memory.is_none();
        let heavy = |method: &&dyn ColumnMethod<T>| {
            bytes / (rows * size_of::<T>()).max(1) >= HEAVY.saturating_add(method.basis())
        };
        let Some(method) = self.algorithm.columns().filter(|_| pays).filter(heavy) else { return Ok(None) };
        if self.columns.as_ref().is_none_or(|solver| solver.columns() < count) {
            let m = self.placed.as_ref().map(|m| m as &dyn LinOp<T>);
            let operator: &dyn LinOp<T> = if self.adjoint { &self.pair } else { &self.pair.a };
            self.columns = Some(ColumnSolver::new(dev, operator, m, method, count)?);
        }
        Ok(self.columns.as_ref().map(ColumnSolver::columns))
    }

    /// Iterates on the columns together and replaces guesses by better solutions. Returns what became of each
    /// column. A column of zeros takes no part, nor does one with a number that is not finite.
    pub(crate) fn iterate_together<B: Backend>(
        &mut self,
        dev: &mut B,
        b: ArrayView2<'_, T>,
        mut x: ArrayViewMut2<'_, T>,
    ) -> Result<Vec<Option<Joint>>> {
        let start = Instant::now();
        let stop = first_stop(self);
        let mut joint = vec![None; b.ncols()];
        let Parts { solver, columns, order, .. } = self;
        let Some(columns) = columns else { return Ok(joint) };
        let mut staged = Vec::new();
        for (j, (b, x)) in b.columns().into_iter().zip(x.columns()).enumerate() {
            let mut both = [Vec::new(), Vec::new()];
            order.stage(&mut both, b, x)?;
            let sizes = [largest(&both[0]), largest(&both[1])];
            if sizes[0] > 0.0 && sizes.iter().all(|size| size.is_finite()) {
                staged.push((j, both));
            }
        }
        if staged.len() < 2 {
            return Ok(joint);
        }
        let mut sides: Vec<_> =
            staged.iter_mut().map(|(_, [b, x])| RightHandSide { factors: solver.factors(b), b, x }).collect();
        let found = columns.solve(dev, &mut sides, stop)?;
        let (others, time) = (found.len() - 1, start.elapsed() / found.len() as u32);
        for ((j, [_, solution]), advance) in staged.iter().zip(found) {
            order.restore(solution, x.column_mut(*j));
            joint[*j] = Some(Joint { advance, others, time });
        }
        Ok(joint)
    }
}
