//! The serial, obviously right backend: the oracle for every other one.
use crate::expr::cells::Machine;
use crate::ir::lower::{Coefficient, Sweep, Term};
use crate::ir::operation::OpKind;
use crate::run::host::catching;
use crate::run::sum::{maximum, pairwise};
use crate::{
    Backend, DeviceInfo, Finish, HostStore, Matrix, PlanId, Program, Resource, Result, Run, Scalar, State,
    Vector, not_triangular, step_by_step, with_number,
};

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
    fn alone(&mut self, kind: OpKind, pass: &Sweep, state: State<'_>) -> Result<()> {
        operation(&mut self.store, &kind, pass, state)
    }
}

/// `conj(a) · b` as a canonical sum.
pub fn dot_product<T: Scalar>(a: &[T], b: &[T]) -> T {
    pairwise(&a.iter().zip(b).map(|(a, b)| a.dot_term(*b)).collect::<Vec<_>>())
}

/// The largest `|v[i]|²`; 0 for none, NaN if one is.
pub fn largest<T: Scalar>(v: &[T]) -> T {
    maximum(v.iter().map(|v| v.square()))
}

/// `f[i] · b[i]`
fn times<T: Scalar>(f: &[T], b: &[T]) -> Vec<T> {
    f.iter().zip(b).map(|(f, b)| *f * *b).collect()
}

/// One term of an update added to the sum so far (`None` before the first), rounded as [`crate::lower`]
/// specifies.
#[inline(always)]
pub fn add_term<T: Scalar>(sum: Option<T>, term: &Term, v: T, factor: Option<T>, cells: &[T]) -> T {
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
    fn info(&self) -> DeviceInfo {
        DeviceInfo::new("reference", "serial reference", 1)
    }
    crate::host_memory!(store);
    crate::primitives_by!(alone);
    fn free(&mut self, what: Resource) {
        self.store.free(what);
    }

    fn plan(&mut self, program: &Program) -> Result<PlanId> {
        self.store.check(program)?;
        Ok(PlanId { index: 0, serial: program.serial() })
    }
    fn execute(&mut self, program: &Program, plan: PlanId, run: Run<'_>) -> Result<Finish> {
        program.check_plan(plan.serial)?;
        self.store.check(program)?;
        step_by_step(self, program, run)
    }
}

/// The methods of a [`Backend`] for memory and transfer, of a backend that keeps a [`HostStore`] in the field of this name.
#[macro_export]
macro_rules! host_memory {
    ($store:ident) => {
        fn vectors(
            &mut self,
            kind: $crate::NumberType,
            n: usize,
            columns: usize,
            narrow: bool,
        ) -> $crate::Result<$crate::Basis> {
            self.$store.vectors(kind, n, columns, narrow)
        }
        fn cells(&mut self, kind: $crate::NumberType, count: usize) -> $crate::Result<$crate::Cells> {
            self.$store.cells(kind, count)
        }
        fn matrix(&mut self, a: $crate::AnyFormat) -> $crate::Result<$crate::Matrix> {
            self.$store.matrix(a)
        }
        fn set_matrix(&mut self, a: $crate::Matrix, to: $crate::AnyFormat) -> $crate::Result<()> {
            self.$store.set_matrix(a, to)
        }
        fn upload(&mut self, from: &[u8], to: $crate::Vector) -> $crate::Result<()> {
            self.$store.upload(from, to)
        }
        fn clear(&mut self, v: $crate::Vector) -> $crate::Result<()> {
            self.$store.clear(v)
        }
        fn download(&mut self, from: $crate::Vector, to: &mut [u8]) -> $crate::Result<()> {
            self.$store.download(from, to)
        }
        fn copy(&mut self, from: $crate::Vector, to: $crate::Vector) -> $crate::Result<()> {
            self.$store.copy(from, to)
        }
        fn write(&mut self, cell: $crate::Cell, value: $crate::Number) -> $crate::Result<()> {
            self.$store.write(cell, value)
        }
        fn read(&mut self, cells: &[$crate::Cell], to: &mut [u8]) -> $crate::Result<()> {
            self.$store.read(cells, to)
        }
    };
}

/// Evaluates a pass around an operation: the instructions before it; the operation, unless they say otherwise; the updates and
/// dot products, element by element; the instructions after them.
///
/// # Errors
/// Those of the operation; stale handles; [`Error::Function`](crate::Error::Function) if it panics.
pub fn around<T: Scalar>(
    store: &mut HostStore,
    pass: &Sweep,
    state: State<'_>,
    operation: impl FnOnce(&mut HostStore, &mut Machine<T>) -> Result<()>,
) -> Result<()> {
    let mut machine = Machine {
        cells: std::mem::take(store.all_cells_mut::<T>()),
        control: *state.control,
        history: std::mem::take(state.history),
    };
    let done = catching(|| {
        if machine.run(&pass.before) {
            operation(store, &mut machine)?;
            sweep(store, pass, &mut machine)?;
            machine.run(&pass.after);
        }
        Ok(())
    });
    *store.all_cells_mut::<T>() = machine.cells;
    (*state.control, *state.history) = (machine.control, machine.history);
    done
}

/// Runs an operation on host memory, element by element, with its pass: what the primitives of a host backend do.
///
/// # Errors
/// Stale handles; [`Error::Unsupported`](crate::Error::Unsupported) for a solve with a matrix that is not stored for solves;
/// [`Error::Function`](crate::Error::Function) if code of the caller's panics.
pub fn operation(store: &mut HostStore, kind: &OpKind, pass: &Sweep, state: State<'_>) -> Result<()> {
    with_number!(pass.kind, T => around::<T>(store, pass, state, |store, machine| run(store, kind, &pass.name, machine)))
}

fn run<T: Scalar>(store: &mut HostStore, kind: &OpKind, name: &str, machine: &mut Machine<T>) -> Result<()> {
    match *kind {
        OpKind::Sweep => Ok(()),
        OpKind::Spmv { a, x, y } => product::<T>(store, a, x, y, name),
        OpKind::Spmm { a, x, y } => {
            (0..x.columns).try_for_each(|j| product::<T>(store, a, x.column(j), y.column(j), name))
        }
        OpKind::TriSolve { a, b, x } => {
            let mut to = vec![T::zero(); x.len];
            let (a, b) = (store.format::<T>(a, name)?, store.slice(b, name)?);
            a.triangle().ok_or_else(|| not_triangular(name, a.kernel()))?.solve(b, &mut to);
            store.set(x, &to, name)
        }
        OpKind::BasisDot { v, w, h } => {
            let w = store.slice(w, name)?;
            for j in 0..h.count {
                let column = store.slice(v.column(j as usize), name)?;
                machine.cells[(h.first + j) as usize] = dot_product(column, w);
            }
            Ok(())
        }
        OpKind::BasisAxpy { v, h, w, add } => {
            let mut sum = store.slice::<T>(w, name)?.to_vec();
            for j in 0..h.count {
                let h = machine.cells[(h.first + j) as usize];
                let h = if add { h } else { -h };
                if h == T::zero() {
                    continue;
                }
                let column = store.slice::<T>(v.column(j as usize), name)?;
                sum.iter_mut().zip(column).for_each(|(sum, v)| *sum = h.fma(*v, *sum));
            }
            store.set(w, &sum, name)
        }
        OpKind::BasisGram { v, w, g } => {
            for j in 0..w.columns {
                let right = store.slice(w.column(j), name)?;
                for i in 0..v.columns {
                    let at = g.first as usize + j * v.columns + i;
                    machine.cells[at] = dot_product(store.slice(v.column(i), name)?, right);
                }
            }
            Ok(())
        }
        OpKind::BasisCombine { v, c, x, add } => {
            for j in 0..x.columns {
                let mut sum = vec![T::zero(); x.len];
                if add {
                    sum.copy_from_slice(store.slice(x.column(j), name)?);
                }
                for i in 0..v.columns {
                    let c = machine.cells[c.first as usize + j * v.columns + i];
                    if c == T::zero() {
                        continue;
                    }
                    let column = store.slice::<T>(v.column(i), name)?;
                    sum.iter_mut().zip(column).for_each(|(sum, v)| *sum = c.fma(*v, *sum));
                }
                store.set(x.column(j), &sum, name)?;
            }
            Ok(())
        }
        OpKind::Host { ref f, x, y } => {
            let mut to = vec![T::zero(); y.len];
            f.call(store.slice(x, name)?, &mut to)?;
            store.set(y, &to, name)
        }
    }
}

fn product<T: Scalar>(store: &mut HostStore, a: Matrix, x: Vector, y: Vector, name: &str) -> Result<()> {
    let (a, x) = (store.format::<T>(a, name)?, store.slice(x, name)?);
    let product: Vec<T> = (0..y.len).map(|i| a.row(i, x)).collect();
    store.set(y, &product, name)
}

fn sweep<T: Scalar>(store: &mut HostStore, sweep: &Sweep, machine: &mut Machine<T>) -> Result<()> {
    for update in &sweep.updates {
        let mut values = vec![T::zero(); update.dst.len];
        for (position, term) in update.terms.iter().enumerate() {
            let vector = store.slice::<T>(term.vector, &sweep.name)?;
            let factor = term.factor.map(|f| store.slice::<T>(f, &sweep.name)).transpose()?;
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
            _ if dot.largest => largest(a),
            Some(f) => dot_product(a, &times(store.slice(f, &sweep.name)?, b)),
            None => dot_product(a, b),
        };
    }
    Ok(())
}
