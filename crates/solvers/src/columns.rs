//! Several right-hand sides at once: each column has its own recurrence, and all columns share the products
//! with `A`.
use crate::system::precondition;
use crate::{Factor, Image, Method, Stop, Watch};
use lacuna_engine::{
    AnyOp, Basis, Cell, Confirm, Device, Error, Formula, History, LinOp, Pass, Plan, Program, Progress,
    Recorder, Result, Run, Scalar, Test, Untyped, Vector,
};
use std::ops::ControlFlow;

/// `A X = B` on a device, the argument of [`ColumnMethod::record_columns`](crate::ColumnMethod::record_columns).
///
/// A column takes part in the iterations until its recurrence meets the tolerance, and is then skipped. When
/// all columns are skipped, the true residuals decide which of them continue.
pub struct Columns<'a, T = Untyped> {
    /// The operator.
    pub a: &'a dyn LinOp<T>,
    /// The preconditioner.
    pub m: Option<&'a dyn LinOp<T>>,
    /// The starting guesses, later the solutions.
    pub x: Basis<T>,
    columns: &'a [Column<T>],
    worst: Cell<T>,
    one: Cell<T>,
    last: Cell<T>,
    shrink: Cell<T>,
    /// Storage for the best confirmed solutions, if [`Method::keeps_best`](crate::Method::keeps_best).
    kept: Option<Basis<T>>,
}

/// One right-hand side of [`Columns`].
#[derive(Clone, Copy, Debug)]
pub struct Column<T = Untyped> {
    /// The right-hand side.
    pub b: Vector<T>,
    /// The starting guess, later the solution.
    pub x: Vector<T>,
    /// The squared residual norm.
    pub rr: Cell<T>,
    /// `rr` at the beginning of the iteration.
    began: Cell<T>,
    /// `‖b − A x₀‖²`.
    first: Cell<T>,
    bb: Cell<T>,
    /// The column is skipped when `rr` is at most this.
    goal: Cell<T>,
    /// Iterations in which the column took part.
    steps: Cell<T>,
    /// `rr` of the best confirmed solution.
    best: Cell<T>,
}

impl<T: Copy> Column<T> {
    fn new(k: &mut Recorder<'_, T>, b: Vector<T>, x: Vector<T>) -> Self {
        let [rr, began, first, bb, goal, steps, best] = k.cells();
        Column { b, x, rr, began, first, bb, goal, steps, best }
    }
    /// Records the start of every solve.
    fn begin(self, k: &mut Recorder<'_, T>, [rtol2, atol2]: [Cell<T>; 2]) {
        let infinity = || Formula::real(f64::INFINITY);
        let floor = 0.01 * self.bb.epsilon() * self.bb.epsilon();
        let target = (rtol2 * self.bb).max(atol2).max(floor * self.bb);
        let begin = Pass::new("target").dot(self.bb, self.b, self.b).eval(self.goal, target);
        let begin = begin.eval(self.first, infinity()).eval(self.best, infinity());
        k.multi_axpy_dot(begin.eval(self.steps, Formula::real(0.0)));
    }
    /// The same column with its number type as a value.
    fn untyped(self) -> Column {
        let Column { b, x, rr, began, first, bb, goal, steps, best } = self;
        Column {
            b: b.untyped(),
            x: x.untyped(),
            rr: rr.untyped(),
            began: began.untyped(),
            first: first.untyped(),
            bb: bb.untyped(),
            goal: goal.untyped(),
            steps: steps.untyped(),
            best: best.untyped(),
        }
    }
    /// The ratio of the squared residual norm to the goal; 0 for a column of zeros.
    fn excess(self) -> Formula<T> {
        self.rr / self.goal.max(self.goal.tiny())
    }
}

impl<T: Copy> Columns<'_, T> {
    /// The number of unknowns.
    pub fn n(&self) -> usize {
        self.x.len
    }
    /// The right-hand sides with their indices.
    pub fn columns(&self) -> impl Iterator<Item = (usize, Column<T>)> + '_ {
        self.columns.iter().copied().enumerate()
    }
    /// Allocates a vector for each column.
    pub fn basis(&self, k: &mut Recorder<'_, T>) -> Basis<T> {
        k.basis(self.n(), self.columns.len())
    }
    /// Allocates `N` cells for each column.
    pub fn cells<const N: usize>(&self, k: &mut Recorder<'_, T>) -> Vec<[Cell<T>; N]> {
        self.columns.iter().map(|_| k.cells()).collect()
    }
    /// Allocates vectors for `M r` of each column; without a preconditioner returns `r` itself.
    pub fn preconditioned(&self, k: &mut Recorder<'_, T>, r: Basis<T>) -> Basis<T> {
        self.m.map_or(r, |_| self.basis(k))
    }
    /// `M r` of each column for passes: see [`Image`].
    pub fn images(&self, k: &mut Recorder<'_, T>, r: Basis<T>) -> Vec<Image<T>> {
        let mut stored = None;
        let columns = 0..r.columns;
        let image = |j| {
            Image::new(self.m, r.column(j), || {
                stored.get_or_insert_with(|| self.preconditioned(k, r)).column(j)
            })
        };
        columns.map(image).collect()
    }
    /// Records `z ← M r`, then the pass; see [`System::precondition`](crate::System::precondition).
    pub fn precondition(&self, k: &mut Recorder<'_, T>, r: Vector<T>, z: impl Into<Image<T>>, then: Pass<T>) {
        precondition(self.m, k, r, z.into(), then);
    }

    /// Records the operations of `body`, which run only if the column takes part in the iteration.
    pub fn work(&self, k: &mut Recorder<'_, T>, column: Column<T>, body: impl FnOnce(&mut Recorder<'_, T>)) {
        k.when(column.began.gt(column.goal), body);
    }
    /// Skips a column until the next confirmation if the test holds, as after a breakdown of its recurrence.
    pub fn rest(&self, k: &mut Recorder<'_, T>, column: Column<T>, broken: Test<T>) {
        let zero = || Formula::real(0.0);
        k.when(broken, |k| {
            k.multi_axpy_dot(Pass::new("rest").eval(column.rr, zero()).eval(column.began, zero()));
        });
    }
    /// After `pass`, counts the iteration of one column.
    pub fn step(&self, pass: Pass<T>, column: Column<T>) -> Pass<T> {
        pass.eval(column.steps, column.steps + 1.0)
    }
    /// Ends the iteration of all columns.
    pub fn count(&self, k: &mut Recorder<'_, T>) {
        let pass = self.largest_excess(Pass::new("count"));
        k.multi_axpy_dot(pass.count(self.worst).leave_if(self.worst.le(self.one)));
    }
    /// Records the decision made from the true residuals: whether the solve is over, and which columns
    /// continue.
    pub fn confirm(&self, k: &mut Recorder<'_, T>) {
        for (_, column) in self.columns() {
            let first = Pass::new("first").eval(column.first, column.rr);
            k.when(column.first.not_finite(), |k| k.multi_axpy_dot(first));
        }
        let (rr, target, last, shrink) = (self.worst, self.one, self.last, self.shrink);
        let pass = self.largest_excess(Pass::new("confirm"));
        k.multi_axpy_dot(pass.confirm(Confirm { rr, target, last, shrink }));
    }
    /// Keeps the solutions whose true residuals, just confirmed, are smaller than all before; see
    /// [`System::keep`](crate::System::keep).
    pub fn keep(&self, k: &mut Recorder<'_, T>) {
        let Some(kept) = self.kept else { return };
        for (j, c) in self.columns() {
            let better = Pass::new("keep").set(kept.column(j), c.x).eval(c.best, c.rr);
            k.when(c.best.gt(c.rr), |k| k.multi_axpy_dot(better));
        }
    }
    fn largest_excess(&self, pass: Pass<T>) -> Pass<T> {
        let pass = self.columns.iter().fold(pass, |pass, c| pass.eval(c.began, c.rr));
        let zero = Formula::real(0.0);
        pass.eval(self.worst, self.columns.iter().fold(zero, |most, c| most.max(c.excess())))
    }
}

/// A method prepared for several right-hand sides of one matrix at once.
pub struct ColumnSolver<T: Scalar> {
    plan: Plan,
    columns: Vec<Column<T>>,
    kept: Option<Basis<T>>,
    rtol2: Cell<T>,
    atol2: Cell<T>,
    history: History,
}

/// One right-hand side for [`ColumnSolver::solve`], with its starting guess.
pub struct RightHandSide<'a, T> {
    /// Not all zeros.
    pub b: &'a [T],
    /// The guess; later the solution, as far as the method got.
    pub x: &'a mut [T],
    /// The factors by which `b` and `x` are multiplied on the device; see
    /// [`Solver::factors`](crate::Solver::factors).
    pub factors: [Factor; 2],
}

/// The result for one right-hand side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advance {
    /// Iterations that led to its solution; 0 if no iterate was better than the guess.
    pub iterations: u64,
    /// `‖b − A x₀‖ / ‖b‖` of the guess.
    pub first: f64,
}

impl<T: Scalar> ColumnSolver<T> {
    /// Prepares a method for `count` columns.
    ///
    /// # Errors
    /// [`Error::Shape`] if `A` is not square; [`Error::Unsupported`] if the method takes one right-hand side at a time; errors of
    /// recording and planning.
    pub fn new(
        dev: &Device,
        a: &dyn LinOp<T>,
        m: Option<&dyn LinOp<T>>,
        method: &dyn Method<T>,
        count: usize,
    ) -> Result<Self> {
        let Some(of_columns) = method.columns() else {
            return Err(Error::Unsupported {
                operation: "solve of several columns".into(),
                message: format!("{} takes one right-hand side at a time", method.name()),
            });
        };
        let (n, cols) = a.shape();
        if n != cols {
            let expected = format!("a square matrix for {}", method.name());
            return Err(Error::Shape {
                operation: "solve of several columns".into(),
                expected,
                got: (n, cols),
            });
        }
        let mut k = Recorder::new(dev, method.name());
        a.keep(&mut k);
        m.iter().for_each(|m| m.keep(&mut k));
        let (b, x) = (k.basis(n, count), k.basis(n, count));
        let columns: Vec<_> = (0..count).map(|j| Column::new(&mut k, b.column(j), x.column(j))).collect();
        let [rtol2, atol2, worst, one, last, shrink] = k.cells();
        let kept = method.keeps_best().then(|| k.basis(n, count));
        columns.iter().for_each(|c| c.begin(&mut k, [rtol2, atol2]));
        let infinity = Formula::real(f64::INFINITY);
        let begin = Pass::new("begin").eval(one, Formula::real(1.0)).eval(last, infinity);
        k.multi_axpy_dot(begin.eval(shrink, Formula::from(method.shrink())));
        let (a, m) = (AnyOp(a), m.map(AnyOp));
        let untyped: Vec<_> = columns.iter().map(|c| c.untyped()).collect();
        let system = Columns {
            a: &a,
            m: m.as_ref().map(|m| m as &dyn LinOp),
            x: x.untyped(),
            columns: &untyped,
            worst: worst.untyped(),
            one: one.untyped(),
            last: last.untyped(),
            shrink: shrink.untyped(),
            kept: kept.map(Basis::untyped),
        };
        of_columns.record_columns(k.untyped(), &system);
        let program = k.finish()?;
        let plan = dev.plan(program)?;
        Ok(ColumnSolver { plan, columns, kept, rtol2, atol2, history: History::default() })
    }

    /// The number of right-hand sides that are solved at once.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }
    /// The program that runs.
    pub fn program(&self) -> &Program {
        self.plan.program()
    }

    /// Iterates on at most [`ColumnSolver::columns`] right-hand sides until each meets the tolerance, the
    /// method stops or `watch` ends it, which hears of no residual. A solution replaces its guess if its true residual is no larger.
    ///
    /// # Errors
    /// [`Error::Length`]; device failures.
    pub fn solve(
        &mut self,
        sides: &mut [RightHandSide<'_, T>],
        stop: Stop,
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<Vec<Advance>> {
        let dev = self.plan.device().clone();
        let most = self.columns.len();
        if sides.len() > most {
            return Err(Error::Length {
                operation: "solve of several columns".into(),
                what: "the right-hand sides".into(),
                expected: most,
                got: sides.len(),
            });
        }
        for (column, side) in self.columns.iter().zip(&*sides) {
            let [of_b, of_x] = side.factors;
            for (values, factor, to) in [(side.b, of_b, column.b), (&*side.x, of_x, column.x)] {
                match factor.is_one() {
                    true => dev.upload(values, to)?,
                    false => dev.upload(&factor.times(values), to)?,
                }
            }
        }
        for column in &self.columns[sides.len()..] {
            dev.clear(column.b)?;
            dev.clear(column.x)?;
        }
        // The absolute tolerance refers to the caller's right-hand sides: the smallest scale makes it hold
        // for each.
        let scales = sides.iter().map(|side| side.factors[0].exponent);
        let atol = stop.atol.scale_by_power_of_two(scales.min().unwrap_or(0));
        dev.write(self.rtol2, T::from_real(stop.rtol * stop.rtol))?;
        dev.write(self.atol2, T::from_real(atol * atol))?;
        let limit = stop.limit((self.columns[0].b.len, self.columns[0].x.len));
        let mut told = watch.map(|watch| |p: Progress| watch(Watch::new(p.iterations, f64::NAN)));
        let watch = told.as_mut().map(|told| told as &mut dyn FnMut(Progress) -> ControlFlow<()>);
        let run = Run { limit, history: &mut self.history, watch };
        self.plan.execute(run)?;
        let cells_of = |c: &Column<T>| [c.rr, c.first, c.bb, c.steps, c.best];
        let cells = dev.read(&self.columns.iter().flat_map(cells_of).collect::<Vec<_>>())?;
        let mut found = Vec::new();
        let mut solution = vec![T::zero(); self.columns[0].x.len];
        for (j, ((c, cells), side)) in self.columns.iter().zip(cells.chunks_exact(5)).zip(sides).enumerate() {
            let [rr, first, bb, steps, best] = std::array::from_fn(|i| cells[i].re());
            let mut advance = Advance { iterations: 0, first: (first / bb).sqrt() };
            let kept = self.kept.filter(|_| best.is_finite() && (rr > best || rr.is_nan()));
            let (x, rr) = kept.map_or((c.x, rr), |kept| (kept.column(j), best));
            if rr.is_finite() && rr <= first {
                dev.download(x, &mut solution)?;
                let back = -side.factors[1].exponent;
                solution.iter_mut().for_each(|v| *v = v.scale_by_power_of_two(back));
                if !crate::largest(&solution).is_nan() {
                    side.x.copy_from_slice(&solution);
                    advance.iterations = steps as u64;
                }
            }
            found.push(advance);
        }
        Ok(found)
    }
}
