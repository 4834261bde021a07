//! The serial, obviously right backend: the oracle for every other one.
use crate::expr::cells::Machine;
use crate::ir::lower::{Coefficient, Sweep, Term};
use crate::run::host::catching;
use crate::run::sum::pairwise;
use crate::{
    Backend, Basis, Cells, DeviceInfo, Finish, HostStore, Matrix, PlanId, Program, Resource, Result, Run,
    Scalar, State, Vector, not_triangular, step_by_step, with_number,
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
        DeviceInfo {
            backend: "reference",
            name: "serial reference".into(),
            units: 1,
            memory: None,
            details: Vec::new(),
        }
    }
    crate::host_memory!(store);
    crate::host_primitives!(store);
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
        fn write(&mut self, cell: $crate::Cell, value: $crate::Number) -> $crate::Result<()> {
            self.$store.write(cell, value)
        }
        fn read(&mut self, cells: &[$crate::Cell], to: &mut [u8]) -> $crate::Result<()> {
            self.$store.read(cells, to)
        }
    };
}

/// The primitives of a [`Backend`] that keeps a [`HostStore`] in the field of this name: those of the serial reference.
#[macro_export]
macro_rules! host_primitives {
    ($store:ident) => {
        fn multi_axpy_dot(
            &mut self,
            pass: &$crate::lower::Sweep,
            state: $crate::State<'_>,
        ) -> $crate::Result<()> {
            $crate::reference::multi_axpy_dot(&mut self.$store, pass, state)
        }
        fn spmv_dot(
            &mut self,
            a: $crate::Matrix,
            x: $crate::Vector,
            y: $crate::Vector,
            pass: &$crate::lower::Sweep,
            state: $crate::State<'_>,
        ) -> $crate::Result<()> {
            $crate::reference::spmv_dot(&mut self.$store, a, x, y, pass, state)
        }
        fn spmm(
            &mut self,
            a: $crate::Matrix,
            x: $crate::Basis,
            y: $crate::Basis,
            pass: &$crate::lower::Sweep,
            state: $crate::State<'_>,
        ) -> $crate::Result<()> {
            $crate::reference::spmm(&mut self.$store, a, x, y, pass, state)
        }
        fn tri_solve(
            &mut self,
            a: $crate::Matrix,
            b: $crate::Vector,
            x: $crate::Vector,
            pass: &$crate::lower::Sweep,
            state: $crate::State<'_>,
        ) -> $crate::Result<()> {
            $crate::reference::tri_solve(&mut self.$store, a, b, x, pass, state)
        }
        fn basis_dot(
            &mut self,
            v: $crate::Basis,
            w: $crate::Vector,
            h: $crate::Cells,
            pass: &$crate::lower::Sweep,
            state: $crate::State<'_>,
        ) -> $crate::Result<()> {
            $crate::reference::basis_dot(&mut self.$store, v, w, h, pass, state)
        }
        fn basis_axpy(
            &mut self,
            v: $crate::Basis,
            h: $crate::Cells,
            add: bool,
            w: $crate::Vector,
            pass: &$crate::lower::Sweep,
            state: $crate::State<'_>,
        ) -> $crate::Result<()> {
            $crate::reference::basis_axpy(&mut self.$store, v, h, add, w, pass, state)
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

/// Runs a pass on host memory, element by element: [`Backend::multi_axpy_dot`] of a host backend.
///
/// # Errors
/// Stale handles.
pub fn multi_axpy_dot(store: &mut HostStore, pass: &Sweep, state: State<'_>) -> Result<()> {
    with_number!(pass.kind, T => around::<T>(store, pass, state, |_, _| Ok(())))
}

/// `y ← A x` row by row, then the pass: [`Backend::spmv_dot`] of a host backend.
///
/// # Errors
/// Stale handles; [`Error::Function`](crate::Error::Function) if the format panics.
pub fn spmv_dot(
    store: &mut HostStore,
    a: Matrix,
    x: Vector,
    y: Vector,
    pass: &Sweep,
    state: State<'_>,
) -> Result<()> {
    with_number!(pass.kind, T => {
        around::<T>(store, pass, state, |store, _| product::<T>(store, a, x, y, &pass.name))
    })
}

/// `Y ← A X` column by column: [`Backend::spmm`] of a host backend.
///
/// # Errors
/// As [`spmv_dot`].
pub fn spmm(
    store: &mut HostStore,
    a: Matrix,
    x: Basis,
    y: Basis,
    pass: &Sweep,
    state: State<'_>,
) -> Result<()> {
    with_number!(pass.kind, T => around::<T>(store, pass, state, |store, _| {
        (0..x.columns).try_for_each(|j| product::<T>(store, a, x.column(j), y.column(j), &pass.name))
    }))
}

/// `x ← A⁻¹ b` row by row: [`Backend::tri_solve`] of a host backend.
///
/// # Errors
/// As [`spmv_dot`]; [`Error::Unsupported`](crate::Error::Unsupported) for a matrix that is not stored for solves.
pub fn tri_solve(
    store: &mut HostStore,
    a: Matrix,
    b: Vector,
    x: Vector,
    pass: &Sweep,
    state: State<'_>,
) -> Result<()> {
    let name = &pass.name;
    with_number!(pass.kind, T => around::<T>(store, pass, state, |store, _| {
        let mut to = vec![T::from_real(0.0); x.len];
        let (a, b) = (store.format::<T>(a, name)?, store.slice(b, name)?);
        a.triangle().ok_or_else(|| not_triangular(name, a.kernel()))?.solve(b, &mut to);
        store.set(x, &to, name)
    }))
}

/// `h ← Vᴴ w`: [`Backend::basis_dot`] of a host backend.
///
/// # Errors
/// Stale handles.
pub fn basis_dot(
    store: &mut HostStore,
    v: Basis,
    w: Vector,
    h: Cells,
    pass: &Sweep,
    state: State<'_>,
) -> Result<()> {
    with_number!(pass.kind, T => around::<T>(store, pass, state, |store, machine| {
        for j in 0..h.count {
            let (column, w) = (store.slice(v.column(j as usize), &pass.name)?, store.slice(w, &pass.name)?);
            machine.cells[(h.first + j) as usize] = dot_product(column, w);
        }
        Ok(())
    }))
}

/// `w ← w ∓ V h`, then the pass: [`Backend::basis_axpy`] of a host backend.
///
/// # Errors
/// Stale handles.
pub fn basis_axpy(
    store: &mut HostStore,
    v: Basis,
    h: Cells,
    add: bool,
    w: Vector,
    pass: &Sweep,
    state: State<'_>,
) -> Result<()> {
    with_number!(pass.kind, T => around::<T>(store, pass, state, |store, machine| {
        let mut sum = store.slice::<T>(w, &pass.name)?.to_vec();
        for j in 0..h.count {
            let h = machine.cells[(h.first + j) as usize];
            let h = if add { h } else { -h };
            if h == T::from_real(0.0) {
                continue;
            }
            let column = store.slice::<T>(v.column(j as usize), &pass.name)?;
            sum.iter_mut().zip(column).for_each(|(sum, v)| *sum = h.fma(*v, *sum));
        }
        store.set(w, &sum, &pass.name)
    }))
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
            Some(f) => dot_product(a, &times(store.slice(f, &sweep.name)?, b)),
            None => dot_product(a, b),
        };
    }
    Ok(())
}
