//! The serial, obviously right backend: the oracle for every other one.
use crate::expr::cells::Machine;
use crate::ir::control::{Control, History};
use crate::ir::lower::{Coefficient, Sweep, Term};
use crate::ir::operation::{Kind, Op};
use crate::run::sum::pairwise;
use crate::{
    Backend, Basis, Cell, Cells, DeviceInfo, Finish, Format, HostStore, Mark, Matrix, Plan, Program, Result,
    Run, Scalar, Vector, not_triangular, step_by_step,
};
use std::sync::Arc;

/// A backend that runs every operation literally, element by element.
pub struct Reference {
    store: HostStore,
}

impl Default for Reference {
    fn default() -> Self {
        Reference { store: HostStore::new("reference") }
    }
}

impl Reference {
    /// An empty backend.
    pub fn new() -> Self {
        Self::default()
    }
}

/// `conj(a) · b` as a canonical sum.
pub fn dot_product<T: Scalar>(a: &[T], b: &[T]) -> T {
    pairwise(&a.iter().zip(b).map(|(a, b)| a.dot_term(*b)).collect::<Vec<_>>())
}

/// `f[i] · b[i]`
fn times<T: Scalar>(f: &[T], b: &[T]) -> Vec<T> {
    f.iter().zip(b).map(|(f, b)| *f * *b).collect()
}

/// One term of an update added to the sum so far (`None` before the first), rounded as [`crate::lower`]
/// specifies.
#[inline(always)]
pub fn add_term<T: Scalar>(sum: Option<T>, term: &Term<T>, v: T, factor: Option<T>, cells: &[T]) -> T {
    match (term.coefficient, factor, sum) {
        (Coefficient::One, None, None) => v,
        (Coefficient::One, None, Some(sum)) => sum + v,
        (Coefficient::MinusOne, None, None) => -v,
        (Coefficient::MinusOne, None, Some(sum)) => sum - v,
        (Coefficient::One, Some(f), None) => f * v,
        (Coefficient::One, Some(f), Some(sum)) => f.fma(v, sum),
        (Coefficient::MinusOne, Some(f), None) => -(f * v),
        (Coefficient::MinusOne, Some(f), Some(sum)) => (-f).fma(v, sum),
        (Coefficient::Cell(c), None, None) => cells[c as usize] * v,
        (Coefficient::Cell(c), None, Some(sum)) => cells[c as usize].fma(v, sum),
        (Coefficient::Cell(c), Some(f), None) => cells[c as usize] * (f * v),
        (Coefficient::Cell(c), Some(f), Some(sum)) => cells[c as usize].fma(f * v, sum),
    }
}

impl Backend for Reference {
    fn device(&self) -> DeviceInfo {
        DeviceInfo {
            backend: "reference",
            name: "serial reference".into(),
            units: 1,
            memory: None,
            details: Vec::new(),
        }
    }
    fn vector<T: Scalar>(&mut self, n: usize) -> Result<Vector<T>> {
        self.store.vector(n)
    }
    fn basis<T: Scalar>(&mut self, n: usize, columns: usize) -> Result<Basis<T>> {
        self.store.basis(n, columns)
    }
    fn narrow_basis<T: Scalar>(&mut self, n: usize, columns: usize) -> Result<Basis<T>> {
        self.store.narrow_basis(n, columns)
    }
    fn cells<T: Scalar>(&mut self, count: usize) -> Result<Cells<T>> {
        self.store.cells(count)
    }
    fn matrix<T: Scalar>(&mut self, a: Arc<dyn Format<T>>) -> Result<Matrix<T>> {
        self.store.matrix(a)
    }
    fn set_matrix<T: Scalar>(&mut self, a: Matrix<T>, to: Arc<dyn Format<T>>) -> Result<()> {
        self.store.set_matrix(a, to)
    }
    fn mark(&self) -> Mark {
        self.store.mark()
    }
    fn release(&mut self, mark: Mark) {
        self.store.release(mark);
    }
    fn upload<T: Scalar>(&mut self, from: &[T], to: Vector<T>) -> Result<()> {
        self.store.upload(from, to)
    }
    fn clear<T: Scalar>(&mut self, v: Vector<T>) -> Result<()> {
        self.store.clear(v)
    }
    fn download<T: Scalar>(&mut self, from: Vector<T>, to: &mut [T]) -> Result<()> {
        self.store.download(from, to)
    }
    fn write<T: Scalar>(&mut self, cell: Cell<T>, value: T) -> Result<()> {
        self.store.write(cell, value)
    }
    fn read<T: Scalar>(&mut self, cells: &[Cell<T>]) -> Result<Vec<T>> {
        self.store.read(cells)
    }

    fn step<T: Scalar>(&mut self, op: &Op<T>, control: &mut Control, history: &mut History) -> Result<()> {
        reference_step(&mut self.store, op, control, history)
    }
    fn plan<T: Scalar>(&mut self, program: Program<T>) -> Result<Plan<T>> {
        self.store.check(&program)?;
        Ok(Plan { program, prepared: Box::new(()) })
    }
    fn execute<T: Scalar>(&mut self, plan: &mut Plan<T>, run: Run<'_>) -> Result<Finish> {
        self.store.check(&plan.program)?;
        step_by_step(self, plan, run)
    }
}

/// Runs one operation on host memory, element by element: [`Backend::step`] of a host backend.
///
/// # Errors
/// Stale handles.
pub fn reference_step<T: Scalar>(
    store: &mut HostStore,
    op: &Op<T>,
    control: &mut Control,
    history: &mut History,
) -> Result<()> {
    let name = &op.sweep.name;
    let mut machine = Machine {
        cells: std::mem::take(store.all_cells_mut::<T>()),
        control: *control,
        history: std::mem::take(history),
    };
    let mut run = || -> Result<()> {
        if !machine.run(&op.sweep.before) {
            return Ok(());
        }
        match &op.kind {
            Kind::Sweep => {}
            Kind::Spmv { a, x, y } => product(store, *a, *x, *y, name)?,
            Kind::Spmm { a, x, y } => {
                (0..x.columns).try_for_each(|j| product(store, *a, x.column(j), y.column(j), name))?;
            }
            Kind::BasisDot { v, w, h } => {
                for j in 0..h.count {
                    let (column, w) = (store.slice(v.column(j as usize), name)?, store.slice(*w, name)?);
                    machine.cells[(h.first + j) as usize] = dot_product(column, w);
                }
            }
            Kind::BasisAxpy { v, h, w, add } => {
                let mut sum = store.slice(*w, name)?.to_vec();
                for j in 0..h.count {
                    let h = machine.cells[(h.first + j) as usize];
                    let h = if *add { h } else { -h };
                    if h == T::zero() {
                        continue;
                    }
                    let column = store.slice(v.column(j as usize), name)?;
                    sum.iter_mut().zip(column).for_each(|(sum, v)| *sum = h.fma(*v, *sum));
                }
                store.set(*w, &sum, name)?;
            }
            Kind::TriSolve { a, b, x } => {
                let (a, b, mut to) =
                    (store.format(*a, name)?, store.slice(*b, name)?, vec![T::zero(); x.len]);
                a.triangle().ok_or_else(|| not_triangular(name, a.kernel()))?.solve(b, &mut to);
                store.set(*x, &to, name)?;
            }
            Kind::Host { f, x, y } => {
                let (from, mut to) = (store.slice(*x, name)?, vec![T::zero(); y.len]);
                f.call(from, &mut to)?;
                store.set(*y, &to, name)?;
            }
        }
        sweep(store, &op.sweep, &mut machine)?;
        machine.run(&op.sweep.after);
        Ok(())
    };
    let done = run();
    *store.all_cells_mut::<T>() = machine.cells;
    (*control, *history) = (machine.control, machine.history);
    done
}

fn product<T: Scalar>(
    store: &mut HostStore,
    a: Matrix<T>,
    x: Vector<T>,
    y: Vector<T>,
    name: &str,
) -> Result<()> {
    let (a, x) = (store.format(a, name)?, store.slice(x, name)?);
    let product: Vec<T> = (0..y.len).map(|i| a.row(i, x)).collect();
    store.set(y, &product, name)
}

fn sweep<T: Scalar>(store: &mut HostStore, sweep: &Sweep<T>, machine: &mut Machine<T>) -> Result<()> {
    for update in &sweep.updates {
        let mut values = vec![T::zero(); update.dst.len];
        for (position, term) in update.terms.iter().enumerate() {
            let vector = store.slice(term.vector, &sweep.name)?;
            let factor = term.factor.map(|f| store.slice(f, &sweep.name)).transpose()?;
            for (i, value) in values.iter_mut().enumerate() {
                let sum = (position > 0).then_some(*value);
                *value = add_term(sum, term, vector[i], factor.map(|f| f[i]), &machine.cells);
            }
        }
        store.set(update.dst, &values, &sweep.name)?;
    }
    for dot in &sweep.dots {
        let (a, b) = (store.slice(dot.a, &sweep.name)?, store.slice(dot.b, &sweep.name)?);
        machine.cells[dot.cell as usize] = match dot.factor {
            Some(f) => dot_product(a, &times(store.slice(f, &sweep.name)?, b)),
            None => dot_product(a, b),
        };
    }
    Ok(())
}
