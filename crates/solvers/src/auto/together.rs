//! Several right-hand sides at once: iterated together, then confirmed one by one.
use super::AutoSolver;
use super::continuation::{Watching, first_stop};
use super::resident::operator;
use crate::{Advance, ColumnMethod, ColumnSolver, Norm, Outcome, RightHandSide, largest};
use lacuna_engine::{LinOp, Matrix, Result, Scalar};
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
pub struct Joint {
    advance: Advance,
    /// The number of other columns.
    others: usize,
    /// The column's share of the time.
    time: Duration,
}

impl Joint {
    /// The iterations done together.
    pub fn iterations(self) -> u64 {
        self.advance.iterations
    }
    /// Extends the outcome of the later solve to the whole solve.
    pub fn add_to(self, outcome: &mut Outcome) {
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

impl<T: Scalar> AutoSolver<T> {
    /// The number of columns to iterate together; `None` if there is only one, if the method takes one at a
    /// time, if the matrix is light, or on a device that runs a solve as one kernel.
    ///
    /// # Errors
    /// Device failures.
    pub fn together(&mut self, columns: usize) -> Result<Option<usize>> {
        let count = columns.min(TOGETHER);
        let resident = &mut self.resident;
        let Matrix { bytes, rows, .. } = *resident.pair.a;
        // Columns that are iterated together know the 2-norm alone.
        let pays = count > 1 && self.stop.norm == Norm::Two && self.device.info().memory.is_none();
        let heavy = |method: &&dyn ColumnMethod| {
            bytes / (rows * size_of::<T>()).max(1) >= HEAVY.saturating_add(method.basis())
        };
        if self.method.columns().filter(|_| pays).filter(heavy).is_none() {
            return Ok(None);
        }
        if resident.columns.as_ref().is_none_or(|solver| solver.columns() < count) {
            let m = resident.preconditioner.as_ref().map(|m| m as &dyn LinOp<T>);
            let a = operator(&resident.pair, resident.adjoint);
            resident.columns = Some(ColumnSolver::new(&self.device, a, m, &*self.method, count)?);
        }
        Ok(resident.columns.as_ref().map(ColumnSolver::columns))
    }

    /// Iterates together on right-hand sides and their guesses, in the order of the device, of which better solutions take the
    /// place. Returns what became of each. A right-hand side of zeros takes no part, nor does one with a number that is not finite.
    ///
    /// # Errors
    /// Device failures.
    pub fn iterate_together(
        &mut self,
        sides: &mut [[Vec<T>; 2]],
        watch: Watching<'_>,
    ) -> Result<Vec<Option<Joint>>> {
        let (start, stop) = (Instant::now(), first_stop(self));
        let mut joint = vec![None; sides.len()];
        let resident = &mut self.resident;
        let takes_part = |side: &[Vec<T>; 2]| {
            let sizes = side.each_ref().map(|v| largest(v));
            sizes[0] > 0.0 && sizes.iter().all(|size| size.is_finite())
        };
        let part = sides.iter_mut().enumerate().filter(|(_, side)| takes_part(side));
        let (numbers, mut part): (Vec<_>, Vec<_>) =
            part.map(|(j, [b, x])| (j, RightHandSide { factors: resident.solver.factors(b), b, x })).unzip();
        let Some(columns) = resident.columns.as_mut().filter(|_| part.len() >= 2) else { return Ok(joint) };
        let found = columns.solve(&mut part, stop, watch)?;
        let (others, time) = (found.len() - 1, start.elapsed() / found.len() as u32);
        for (j, advance) in numbers.into_iter().zip(found) {
            joint[j] = Some(Joint { advance, others, time });
        }
        Ok(joint)
    }
}
