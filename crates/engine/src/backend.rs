//! What a device implements.
use crate::expr::cells::{Instr, Machine};
use crate::ir::control::{Control, Section};
use crate::ir::lower::Sweep;
use crate::ir::operation::{Op, OpKind};
use crate::ir::program::Program;
use crate::{
    Algebra, AnyFormat, Basis, Cell, Cells, Cost, Divided, Each, Error, FormatRefs, Graph, History, Matrix,
    Number, NumberType, Operands, Products, Reason, Result, Scalar, Vector, Workers, with_number,
};
use std::any::Any;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Something on a device that can be freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// All columns of a basis, or a vector as a basis of one column.
    Vectors(Basis),
    /// A run of cells, as it was allocated.
    Cells(Cells),
    /// A matrix.
    Matrix(Matrix),
    /// The prepared form of a program.
    Plan(PlanId),
}

/// The prepared form of a program on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanId {
    /// The backend's number for it.
    pub index: u32,
    /// Identifies stale ones and those of other devices.
    pub serial: u32,
}

/// Progress of a running program, reported asynchronously.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Iterations done.
    pub iterations: u64,
    /// Squared residual norm by the recurrence.
    pub rr: f64,
}

/// How to run a program once.
pub struct Run<'a> {
    /// Maximum number of iterations.
    pub limit: u64,
    /// Squared residual norms, filled in by the run.
    pub history: &'a mut History,
    /// Called from the calling thread from time to time while the program runs; breaking cancels the run.
    pub watch: Option<&'a mut dyn FnMut(Progress) -> ControlFlow<()>>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub struct Finish {
    /// Why it stopped.
    pub reason: Reason,
    /// Iterations done.
    pub iterations: u64,
    /// Confirmations of the true residual that did not end the solve.
    pub restarts: u64,
    /// Squared residual norm by the recurrence, at the last iteration.
    pub recurrence: f64,
    /// Squared norm of the true residual; NaN for a program that does not confirm.
    pub confirmed: f64,
}

impl Finish {
    /// The outcome recorded in a finished program's control block.
    pub fn of(program: &Program, control: &Control) -> Self {
        Finish {
            reason: program.reason(control.reason()),
            iterations: control.iterations,
            restarts: control.restarts,
            recurrence: control.recurrence,
            confirmed: control.confirmed,
        }
    }
}

/// Description of a device.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The backend: `cpu`, `opencl`, `cuda`, `reference`.
    pub backend: &'static str,
    /// The device's own name.
    pub name: String,
    /// Threads, compute units or multiprocessors.
    pub units: usize,
    /// Bytes of its own memory; `None` if it works in host memory.
    pub memory: Option<u64>,
    /// Other details, as name and value.
    pub details: Vec<(&'static str, String)>,
}

impl DeviceInfo {
    /// A device that works in host memory, without details.
    pub fn new(backend: &'static str, name: impl Into<String>, units: usize) -> Self {
        DeviceInfo { backend, name: name.into(), units, memory: None, details: Vec::new() }
    }
}
crate::setters!(DeviceInfo { memory: impl Into<Option<u64>>, details: Vec<(&'static str, String)> });

/// The state of a running program that an operation may change.
pub struct State<'a> {
    /// The results of its tests.
    pub control: &'a mut Control,
    /// The residuals so far.
    pub history: &'a mut History,
}

/// A device with its memory and its queue, as a [`Device`](crate::Device) drives it.
///
/// Work is queued in order. Only `download`, `read` and `execute` wait: the first two for the queue,
/// `execute` until the program has stopped. Every method **must** check the handles it is given: stale ones, and those of
/// other devices, are [`Error::Stale`].
///
/// Numbers are passed as bytes in memory order; slices are aligned for their numbers.
///
/// Implementations **must** compute what [`crate::lower`], [`crate::sum`] and [`Format::row`](crate::Format::row) specify,
/// bit for bit.
pub trait Backend: Any + Send {
    /// What the device is. **Must** always be the same.
    fn info(&self) -> DeviceInfo;

    /// The formats with kernels on this device, each with its estimated cost for a matrix of `rows` rows and
    /// `bytes` bytes in `csr`; the cost depends on the size because of caches and registers. Used to choose a
    /// format. Provided: `csr`.
    fn formats(&self, rows: usize, bytes: usize) -> &'static [Cost] {
        let _ = (rows, bytes);
        const { &[Cost::of_bytes("csr", 1.0)] }
    }

    /// The threads that it computes on, which then share the work of the host for systems on this device: analysis, conversions,
    /// set-ups, checks. Provided: none; that work is on the current rayon pool.
    fn workers(&self) -> Option<Arc<dyn Workers>> {
        None
    }

    /// The same backend as one that can run its part of a system that is divided among several. Provided: it cannot.
    fn divided(&mut self) -> Option<&mut dyn Divided> {
        None
    }

    // Memory.
    /// `columns` vectors of `n` elements, with unspecified contents until they are written. If they are `narrow`, they are
    /// stored in [`NumberType::narrow`], or keep the values of that type: see [`Vector`].
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], device failures.
    fn vectors(&mut self, kind: NumberType, n: usize, columns: usize, narrow: bool) -> Result<Basis>;
    /// A run of zero cells.
    ///
    /// # Errors
    /// As [`Backend::vectors`].
    fn cells(&mut self, kind: NumberType, count: usize) -> Result<Cells>;
    /// A matrix. A backend **may** use the arrays of the host in place.
    ///
    /// # Errors
    /// As [`Backend::vectors`]; [`Error::Unsupported`] for a format that it has no way to multiply with.
    fn matrix(&mut self, a: AnyFormat) -> Result<Matrix>;
    /// Gives a matrix new values on the same pattern (see [`crate::check_pattern`]) in its existing memory.
    /// Plans that use it **must** use the new values from then on. Provided: refuses.
    ///
    /// # Errors
    /// [`Error::Structure`] for another pattern; [`Error::Unsupported`].
    fn set_matrix(&mut self, a: Matrix, to: AnyFormat) -> Result<()> {
        let _ = (a, to);
        Err(Error::Unsupported {
            operation: "new values of a matrix".into(),
            message: format!("the backend `{}` takes none; prepare the system anew", self.info().backend),
        })
    }
    /// Frees memory: its handles become stale, and the memory can be allocated again at once. What is not there is ignored.
    fn free(&mut self, what: Resource);

    // Transfer.
    /// Copies numbers into a vector, rounded if it is narrow.
    ///
    /// # Errors
    /// [`Error::Length`] unless there are as many as the vector has elements; device failures.
    fn upload(&mut self, from: &[u8], to: Vector) -> Result<()>;
    /// Sets a vector to zero. Provided: uploads zeros.
    ///
    /// # Errors
    /// Device failures.
    fn clear(&mut self, v: Vector) -> Result<()> {
        with_number!(v.kind, T => {
            let zeros = vec![<T as num_traits::Zero>::zero(); v.len];
            self.upload(bytemuck::cast_slice(&zeros), v)
        })
    }
    /// Copies a vector to the host.
    ///
    /// # Errors
    /// As [`Backend::upload`].
    fn download(&mut self, from: Vector, to: &mut [u8]) -> Result<()>;
    /// Copies a vector into one with elements of the same type, which [`check_copy`] checks: of two vectors with the same bytes, one may
    /// be narrow and the other one of the narrower type. Provided: through the host.
    ///
    /// # Errors
    /// Of [`check_copy`]; device failures.
    fn copy(&mut self, from: Vector, to: Vector) -> Result<()> {
        check_copy(from, to)?;
        with_number!(from.kind, F => with_number!(to.kind, G => {
            let mut numbers = vec![<F as num_traits::Zero>::zero(); from.len];
            self.download(from, bytemuck::cast_slice_mut(&mut numbers))?;
            let numbers: Vec<G> = numbers.into_iter().map(Scalar::converted).collect();
            self.upload(bytemuck::cast_slice(&numbers), to)
        }))
    }
    /// Copies numbers that lie elsewhere in the device's memory, at an address there, into a vector. Waits first for all that the
    /// process has queued on the device, and returns when they are copied. Provided: refuses.
    ///
    /// # Errors
    /// [`Error::Unsupported`]; [`Error::Argument`] for an address that is known not to be of the device; device failures.
    ///
    /// # Safety
    /// As many numbers of the vector's type as it has elements **must** lie there.
    unsafe fn copy_in(&mut self, from: u64, to: Vector) -> Result<()> {
        let _ = (from, to);
        Err(self.shares_no_memory())
    }
    /// Copies a vector to an address in the device's memory, and waits for it. Provided: refuses.
    ///
    /// # Errors
    /// As [`Backend::copy_in`].
    ///
    /// # Safety
    /// As many numbers of the vector's type as it has elements **must** have room there, which nobody else reads or writes.
    unsafe fn copy_out(&mut self, from: Vector, to: u64) -> Result<()> {
        let _ = (from, to);
        Err(self.shares_no_memory())
    }
    /// The error of a backend that has no memory that others have addresses of.
    fn shares_no_memory(&self) -> Error {
        let info = self.info();
        Error::Unsupported {
            operation: "arrays in the memory of a GPU".into(),
            message: format!(
                "the device, {} on {}, cannot reach them; solve on `cuda`, or copy them to the host",
                info.name, info.backend
            ),
        }
    }
    /// Sets a cell.
    ///
    /// # Errors
    /// [`Error::Stale`] if the number is of another type; device failures.
    fn write(&mut self, cell: Cell, value: Number) -> Result<()>;
    /// Sets the cells of a run, in order, from their bytes. Provided: one by one.
    ///
    /// # Errors
    /// [`Error::Length`] unless there are as many numbers as cells; as [`Backend::write`].
    fn write_run(&mut self, cells: Cells, values: &[u8]) -> Result<()> {
        Error::check_length("write", "the bytes", cells.count as usize * cells.kind.size(), values.len())?;
        with_number!(cells.kind, T => {
            let numbers = values.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>);
            numbers.enumerate().try_for_each(|(i, v)| self.write(cells.at(i), Number::new(v)))
        })
    }
    /// Waits for the queue and copies cells of one number type to the host, one after the other.
    ///
    /// # Errors
    /// As [`Backend::upload`].
    fn read(&mut self, cells: &[Cell], to: &mut [u8]) -> Result<()>;

    // The fused primitives. Each evaluates the instructions before the pass, does nothing more if they say so, computes,
    // applies the updates and dot products of the pass, and evaluates the instructions after it.
    /// Runs a pass.
    ///
    /// # Errors
    /// Device failures, as for all primitives.
    fn multi_axpy_dot(&mut self, pass: &Sweep, state: State<'_>) -> Result<()>;
    /// `y ← A x`, then the pass.
    ///
    /// # Errors
    /// Device failures.
    fn spmv_dot(&mut self, a: Matrix, x: Vector, y: Vector, pass: &Sweep, state: State<'_>) -> Result<()>;
    /// `Y ← A X` for all columns of `x`. The pass has instructions only.
    ///
    /// # Errors
    /// Device failures.
    fn spmm(&mut self, a: Matrix, x: Basis, y: Basis, pass: &Sweep, state: State<'_>) -> Result<()>;
    /// `x ← A⁻¹ b` with a triangular matrix stored for solves: see [`crate::Triangle`]. The pass has instructions only.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a matrix that is not stored for solves; device failures.
    fn tri_solve(&mut self, a: Matrix, b: Vector, x: Vector, pass: &Sweep, state: State<'_>) -> Result<()>;
    /// `h ← Vᴴ w` over the first `h.count` columns. The pass has instructions only.
    ///
    /// # Errors
    /// Device failures.
    fn basis_dot(&mut self, v: Basis, w: Vector, h: Cells, pass: &Sweep, state: State<'_>) -> Result<()>;
    /// `w ← w ∓ V h` over the first `h.count` columns, `+` if `add`, then the pass.
    ///
    /// # Errors
    /// Device failures.
    fn basis_axpy(
        &mut self,
        v: Basis,
        h: Cells,
        add: bool,
        w: Vector,
        pass: &Sweep,
        state: State<'_>,
    ) -> Result<()>;
    /// `G ← Vᴴ W`, with a cell for each pair of columns: see [`OpKind::BasisGram`]. The pass has instructions only. Provided:
    /// column by column.
    ///
    /// # Errors
    /// Device failures.
    fn basis_gram(&mut self, v: Basis, w: Basis, g: Cells, pass: &Sweep, state: State<'_>) -> Result<()> {
        let op = Op { kind: OpKind::BasisGram { v, w, g }, sweep: pass.clone() };
        apart(&op, &mut |op, state| self.step(op, state), state)
    }
    /// `X ← V C`, or `X ← X + V C` if `add`, with a cell for each pair of columns: see [`OpKind::BasisCombine`]. The pass has
    /// instructions only. Provided: column by column.
    ///
    /// # Errors
    /// Device failures.
    fn basis_combine(
        &mut self,
        v: Basis,
        c: Cells,
        x: Basis,
        add: bool,
        pass: &Sweep,
        state: State<'_>,
    ) -> Result<()> {
        let op = Op { kind: OpKind::BasisCombine { v, c, x, add }, sweep: pass.clone() };
        apart(&op, &mut |op, state| self.step(op, state), state)
    }

    // Programs.
    /// Prepares a program: checks its handles, and that everything in it can be run. Every error of a program is reported
    /// here. [`Program::witnesses`] are the operations to look at: they mention every handle of the program.
    ///
    /// Provided: nothing is prepared or checked, and the plan has the serial number of the program. The primitives then find
    /// handles that are stale, when they come to them.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Unsupported`]; failures of compilers and devices.
    fn plan(&mut self, program: &Program) -> Result<PlanId> {
        Ok(PlanId { index: 0, serial: program.serial() })
    }
    /// Runs a program that was prepared as `plan`, until it stops. Provided: operation by operation, for a plan of the provided
    /// [`Backend::plan`].
    ///
    /// # Errors
    /// [`Error::Stale`] if the plan is of another program, or if something that the program uses is not there any more; device
    /// failures.
    fn execute(&mut self, program: &Program, plan: PlanId, run: Run<'_>) -> Result<Finish> {
        program.check_plan(plan.serial)?;
        run_by(&mut |op, state| self.step(op, state), program, run)
    }
    /// Runs one operation. Provided: by the primitive for it, and functions of the host on copies of their vectors.
    ///
    /// # Errors
    /// As the primitives; [`Error::Function`].
    fn step(&mut self, op: &Op, state: State<'_>) -> Result<()> {
        let pass = &op.sweep;
        match &op.kind {
            OpKind::Sweep => self.multi_axpy_dot(pass, state),
            &OpKind::Spmv { a, x, y } => self.spmv_dot(a, x, y, pass, state),
            &OpKind::Spmm { a, x, y } => self.spmm(a, x, y, pass, state),
            &OpKind::TriSolve { a, b, x } => self.tri_solve(a, b, x, pass, state),
            &OpKind::BasisDot { v, w, h } => self.basis_dot(v, w, h, pass, state),
            &OpKind::BasisAxpy { v, h, w, add } => self.basis_axpy(v, h, add, w, pass, state),
            &OpKind::BasisGram { v, w, g } => self.basis_gram(v, w, g, pass, state),
            &OpKind::BasisCombine { v, c, x, add } => self.basis_combine(v, c, x, add, pass, state),
            OpKind::Host { f, x, y } => {
                if !guards_hold(pass, &mut |cells, to| self.read(cells, to))? {
                    return Ok(());
                }
                with_number!(x.kind, T => {
                    let zero = <T as num_traits::Zero>::zero();
                    let (mut from, mut to) = (vec![zero; x.len], vec![zero; y.len]);
                    self.download(*x, bytemuck::cast_slice_mut(&mut from))?;
                    f.call(&from, &mut to)?;
                    self.upload(bytemuck::cast_slice(&to), *y)?;
                });
                self.multi_axpy_dot(pass, state)
            }
        }
    }

    // Sparse algebra.
    /// The product of matrices in `csr`, from the last to the first: `R (A P)` for three. An entry of `A B` is
    /// `Σ a_ik b_kj` over increasing `k`, each term rounded before it is added. Entries that cancel to zero stay stored.
    ///
    /// `None` if the host has to do it: the device has no kernels for it, too little memory or too long a row, or a
    /// number is not finite, for which the host knows the place. Provided: `None`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for another format, [`Error::Shape`] if shapes do not match; device failures.
    fn sparse_product(&mut self, factors: &[Each<FormatRefs<'_>>]) -> Result<Option<Each<Products>>> {
        let _ = factors;
        Ok(None)
    }
    /// A maximal set of rows no two of which are within two steps of each other in a graph whose edges go both ways, in
    /// increasing order: in rounds, rows whose priority is the largest within two steps join it, and rows within two steps of
    /// one that joined leave. A row of priority 0 is not in it; the other priorities differ and are below [`u64::MAX`].
    ///
    /// `None` if the host has to do it, as for [`Backend::sparse_product`]. Provided: `None`.
    ///
    /// # Errors
    /// [`Error::Length`] unless the graph has as many rows as there are priorities, [`Error::Structure`] if one of its rows
    /// leaves its arrays; device failures.
    fn distance_two_set(&mut self, graph: Graph<'_>, priorities: &[u64]) -> Result<Option<Vec<u32>>> {
        let _ = (graph, priorities);
        Ok(None)
    }
    /// Whether sparse algebra on large matrices is worth the way to the device and back. Provided: no.
    fn has_fast_sparse_algebra(&self) -> bool {
        false
    }
    /// Sparse algebra on matrices of a number type of double precision whose arrays stay on the device. `None` if the host has to
    /// do it. Provided: `None`.
    fn algebra(&mut self, kind: NumberType) -> Option<Box<dyn Algebra + '_>> {
        let _ = kind;
        None
    }
    /// Frees the memory that sparse algebra keeps from one call to the next. Provided: nothing.
    fn finish_sparse_algebra(&mut self) {}
}

/// Fails unless a vector can be copied into another one as it is: as many elements, of the same type. A narrow vector has those of
/// [`NumberType::narrow`].
///
/// # Errors
/// [`Error::Length`]; [`Error::Argument`] for elements of another type.
pub fn check_copy(from: Vector, to: Vector) -> Result<()> {
    Error::check_length("copy", "the vector", to.len, from.len)?;
    if from.stored() == to.stored() {
        return Ok(());
    }
    let message = format!("expected elements of type {}, got {}", to.stored().name(), from.stored().name());
    Err(Error::Argument { what: "copy".into(), message })
}

/// Runs an operation on several columns as operations on one each.
fn apart(
    op: &Op,
    step: &mut dyn FnMut(&Op, State<'_>) -> Result<()>,
    State { control, history }: State<'_>,
) -> Result<()> {
    op.columns().iter().try_for_each(|op| step(op, State { control: &mut *control, history: &mut *history }))
}

/// Runs a program operation by operation through [`Backend::step`]: the provided implementation of
/// [`Backend::execute`].
///
/// # Errors
/// As the operations.
pub fn step_by_step(dev: &mut dyn Backend, program: &Program, run: Run<'_>) -> Result<Finish> {
    run_by(&mut |op, state| dev.step(op, state), program, run)
}

/// Runs a program, each operation by `step`.
fn run_by(
    step: &mut dyn FnMut(&Op, State<'_>) -> Result<()>,
    program: &Program,
    run: Run<'_>,
) -> Result<Finish> {
    let Run { limit, history, mut watch } = run;
    history.reset(limit);
    let mut control = Control::new(limit, program.confirms());
    let mut section = Section::Setup;
    let mut seen = 0;
    while control.section != Section::Stopped {
        control.enter(section);
        for op in program.section(section) {
            step(op, State { control: &mut control, history })?;
            if control.halted() {
                break;
            }
        }
        if let Some(watch) = &mut watch
            && control.iterations > seen
            && control.section == Section::Each
        {
            seen = control.iterations;
            if watch(Progress { iterations: seen, rr: control.recurrence }).is_break() {
                control.cancel();
            }
        }
        section = next_section(program, section, &control);
    }
    Ok(Finish::of(program, &control))
}

/// The section that follows: setup, restart, the iteration until it is left, then restart again. A program
/// with no section left to run has stopped.
pub fn next_section(program: &Program, section: Section, control: &Control) -> Section {
    match section {
        _ if control.section == Section::Stopped => Section::Stopped,
        Section::Setup if !program.restart.is_empty() => Section::Restart,
        Section::Setup | Section::Restart if program.iterates() => Section::Each,
        Section::Each if !control.left => Section::Each,
        Section::Each if !program.restart.is_empty() => Section::Restart,
        _ => Section::Stopped,
    }
}

/// Gets the values of cells.
type Read<'a> = &'a mut dyn FnMut(&[Cell], &mut [u8]) -> Result<()>;

/// Whether the conditions of an operation hold, by the values that `read` gets of cells.
fn guards_hold(pass: &Sweep, read: Read<'_>) -> Result<bool> {
    let mut guards: Vec<Instr> =
        pass.before.iter().filter(|instr| matches!(instr, Instr::OnlyIf { .. })).copied().collect();
    let Some(first) = pass.cells.first().filter(|_| !guards.is_empty()) else { return Ok(true) };
    with_number!(first.kind, T => {
        let mut cells = vec![<T as num_traits::Zero>::zero(); pass.cells.len()];
        read(&pass.cells, bytemuck::cast_slice_mut(&mut cells))?;
        let local = |number: &mut u32| {
            *number = pass.cells.iter().position(|cell| cell.index == *number).unwrap_or(0) as u32;
        };
        guards.iter_mut().for_each(|guard| guard.numbers(&mut { local }));
        let mut machine = Machine { cells, control: Control::new(0, false), history: History::off() };
        Ok(machine.run(&guards))
    })
}

/// The primitives of a [`Backend`](crate::Backend) that runs any operation by one method,
/// `fn(&mut self, OpKind, &Sweep, State<'_>) -> Result<()>`.
#[macro_export]
macro_rules! primitives_by {
    ($run:ident) => {
        fn multi_axpy_dot(
            &mut self,
            pass: &$crate::lower::Sweep,
            state: $crate::State<'_>,
        ) -> $crate::Result<()> {
            self.$run($crate::OpKind::Sweep, pass, state)
        }
        fn spmv_dot(
            &mut self,
            a: $crate::Matrix,
            x: $crate::Vector,
            y: $crate::Vector,
            pass: &$crate::lower::Sweep,
            state: $crate::State<'_>,
        ) -> $crate::Result<()> {
            self.$run($crate::OpKind::Spmv { a, x, y }, pass, state)
        }
        fn spmm(
            &mut self,
            a: $crate::Matrix,
            x: $crate::Basis,
            y: $crate::Basis,
            pass: &$crate::lower::Sweep,
            state: $crate::State<'_>,
        ) -> $crate::Result<()> {
            self.$run($crate::OpKind::Spmm { a, x, y }, pass, state)
        }
        fn tri_solve(
            &mut self,
            a: $crate::Matrix,
            b: $crate::Vector,
            x: $crate::Vector,
            pass: &$crate::lower::Sweep,
            state: $crate::State<'_>,
        ) -> $crate::Result<()> {
            self.$run($crate::OpKind::TriSolve { a, b, x }, pass, state)
        }
        fn basis_dot(
            &mut self,
            v: $crate::Basis,
            w: $crate::Vector,
            h: $crate::Cells,
            pass: &$crate::lower::Sweep,
            state: $crate::State<'_>,
        ) -> $crate::Result<()> {
            self.$run($crate::OpKind::BasisDot { v, w, h }, pass, state)
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
            self.$run($crate::OpKind::BasisAxpy { v, h, w, add }, pass, state)
        }
        fn basis_gram(
            &mut self,
            v: $crate::Basis,
            w: $crate::Basis,
            g: $crate::Cells,
            pass: &$crate::lower::Sweep,
            state: $crate::State<'_>,
        ) -> $crate::Result<()> {
            self.$run($crate::OpKind::BasisGram { v, w, g }, pass, state)
        }
        fn basis_combine(
            &mut self,
            v: $crate::Basis,
            c: $crate::Cells,
            x: $crate::Basis,
            add: bool,
            pass: &$crate::lower::Sweep,
            state: $crate::State<'_>,
        ) -> $crate::Result<()> {
            self.$run($crate::OpKind::BasisCombine { v, c, x, add }, pass, state)
        }
    };
}
