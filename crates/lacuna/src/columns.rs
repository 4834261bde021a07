//! Several right-hand sides at once: iterated together, then confirmed one by one.
use crate::climb::first_stop;
use crate::prepared::Parts;
use lacuna_engine::{Backend, LinOp, Result, Scalar};
use lacuna_solvers::{ColumnSolver, Outcome, RightHandSide, largest};
use ndarray::{ArrayView2, ArrayViewMut2};
use std::time::{Duration, Instant};

/// The largest number of columns iterated together: each takes its own vectors, and products gain little from
/// more.
const TOGETHER: usize = 8;

/// The progress of each column in the joint iteration; `None` for a column that took no part.
#[derive(Default)]
pub(crate) struct Advances(Vec<Option<Advanced>>);

impl Advances {
    pub(crate) fn of(&self, column: usize) -> Option<Advanced> {
        self.0.get(column).copied().flatten()
    }
}

/// The progress of a column in the joint iteration.
#[derive(Clone, Copy)]
pub(crate) struct Advanced {
    pub(crate) iterations: u64,
    /// The relative residual of the guess.
    first: f64,
    others: usize,
    /// Its share of the time.
    time: Duration,
}

impl Advanced {
    /// Extends the outcome of the later solve to the whole solve.
    pub(crate) fn tell(self, outcome: &mut Outcome) {
        let Advanced { iterations, first, others, time } = self;
        outcome.iterations += iterations;
        outcome.time += time;
        outcome.history.insert(0, first);
        let plural = if others == 1 { "" } else { "s" };
        outcome.notes.push(format!("iterated together with {others} other right-hand side{plural}"));
    }
}

impl<T: Scalar> Parts<T> {
    /// The number of columns to iterate together; `None` if there is only one, or if the method takes one at
    /// a time.
    pub(crate) fn together<B: Backend>(&mut self, dev: &mut B, columns: usize) -> Result<Option<usize>> {
        let count = columns.min(TOGETHER);
        if count < 2 || self.least_squares {
            return Ok(None);
        }
        if self.columns.as_ref().is_none_or(|solver| solver.columns() < count) {
            let m = self.placed.as_ref().map(|m| m as &dyn LinOp<T>);
            let operator: &dyn LinOp<T> = if self.adjoint { &self.pair } else { &self.pair.a };
            self.columns = ColumnSolver::new(dev, operator, m, &*self.algorithm, count)?;
        }
        Ok(self.columns.as_ref().map(ColumnSolver::columns))
    }

    /// Iterates on the columns together and replaces guesses by better solutions. A column of zeros takes no
    /// part, nor does one with a number that is not finite.
    pub(crate) fn advance<B: Backend>(
        &mut self,
        dev: &mut B,
        b: ArrayView2<'_, T>,
        mut x: ArrayViewMut2<'_, T>,
    ) -> Result<Advances> {
        let start = Instant::now();
        let stop = first_stop(self);
        let Parts { solver, columns, order, .. } = self;
        let Some(columns) = columns else { return Ok(Advances::default()) };
        let mut staged = Vec::new();
        for (j, (b, x)) in b.columns().into_iter().zip(x.columns()).enumerate() {
            let mut both = [b.to_vec(), x.to_vec()];
            order.stage(&mut both, b, x)?;
            let sizes = [largest(&both[0]), largest(&both[1])];
            if sizes[0] > 0.0 && sizes.iter().all(|size| size.is_finite()) {
                staged.push((j, both));
            }
        }
        let mut sides: Vec<_> =
            staged.iter_mut().map(|(_, [b, x])| RightHandSide { factors: solver.factors(b), b, x }).collect();
        if sides.len() < 2 {
            return Ok(Advances::default());
        }
        let found = columns.solve(dev, &mut sides, stop)?;
        drop(sides);
        let (others, time) = (found.len() - 1, start.elapsed() / found.len() as u32);
        let mut advances = vec![None; x.ncols()];
        for ((j, [_, solution]), found) in staged.iter().zip(found) {
            order.put_back(solution, x.column_mut(*j));
            let (iterations, first) = (found.iterations, found.first);
            advances[*j] = Some(Advanced { iterations, first, others, time });
        }
        Ok(Advances(advances))
    }
}
