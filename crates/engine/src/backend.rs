//! What a device implements.
use crate::ir::control::{Control, Section};
use crate::ir::operation::Op;
use crate::ir::program::Program;
use crate::{
    Basis, Cell, Cells, CompressedRows, Cost, Error, Format, Graph, Matrix, Memory, Pass, Reason, Recorder,
    Result, Scalar, Vector,
};
use std::any::Any;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A program that a backend has checked and prepared. It owns no device memory: running it after its vectors
/// were released is an error, not a fault.
pub struct Plan<T> {
    /// The program.
    pub program: Program<T>,
    /// The backend's prepared form of it.
    pub prepared: Box<dyn Any + Send>,
}

/// Everything made after a mark is released with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Numbers of vectors, matrices and cells at the mark, as the backend counts them.
    pub counts: [usize; 6],
}

/// A copy to the host in progress.
#[derive(Clone, Debug)]
pub struct Ticket<T> {
    /// The values, once they have arrived.
    pub values: Option<Vec<T>>,
    /// The backend's number for the copy.
    pub number: u64,
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
    pub history: &'a mut crate::History,
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
    pub fn of<T>(program: &Program<T>, control: &Control) -> Self {
        Finish {
            reason: program.reasons.get(control.reason() as usize).copied().unwrap_or(Reason::Limit),
            iterations: control.iterations,
            restarts: control.restarts,
            recurrence: control.recurrence,
            confirmed: control.confirmed,
        }
    }
}

/// Description of a device.
#[derive(Clone, Debug)]
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

/// A device with its memory and its queue.
///
/// Work is queued in order. Only `download`, `read` and `execute` wait: the first two for the queue,
/// `execute` until the program has stopped.
/// Implementations **must** compute what [`crate::lower`], [`crate::sum`] and [`Format::row`] specify, bit
/// for bit.
pub trait Backend: Sized + 'static {
    /// What the device is.
    fn device(&self) -> DeviceInfo;

    /// The formats with kernels on this device, each with its estimated cost for a matrix of `rows` rows and
    /// `bytes` bytes in `csr`; the cost depends on the size because of caches and registers. Used to choose a
    /// format. Provided: `csr`.
    fn formats(&self, rows: usize, bytes: usize) -> &'static [Cost] {
        let _ = (rows, bytes);
        const { &[Cost::of_bytes("csr", 1.0)] }
    }

    // Memory.
    /// A vector of `n` zeros.
    fn vector<T: Scalar>(&mut self, n: usize) -> Result<Vector<T>>;
    /// `columns` vectors of `n` elements each, with unspecified contents until they are written.
    fn basis<T: Scalar>(&mut self, n: usize, columns: usize) -> Result<Basis<T>>;
    /// `columns` vectors of `n` elements each, stored in [`Scalar::Narrow`], with unspecified contents until
    /// they are written: see [`Vector`]. If there is no narrower type, this **must** be [`Backend::basis`].
    /// Provided: refuses.
    fn narrow_basis<T: Scalar>(&mut self, n: usize, columns: usize) -> Result<Basis<T>> {
        if !T::HAS_NARROW {
            return self.basis(n, columns);
        }
        Err(Error::Unsupported {
            operation: format!("vectors of {} stored in {}", T::KIND.name(), T::Narrow::KIND.name()),
            message: format!("the backend `{}` keeps vectors in their own type only", self.device().backend),
        })
    }
    /// A run of zero cells.
    fn cells<T: Scalar>(&mut self, count: usize) -> Result<Cells<T>>;
    /// A matrix. The host keeps its arrays alive; a backend **may** use them in place.
    fn matrix<T: Scalar>(&mut self, a: Arc<dyn Format<T>>) -> Result<Matrix<T>>;
    /// Gives a matrix new values on the same pattern (see [`crate::check_pattern`]) in its existing memory.
    /// Plans that use it **must** use the new values from then on. Provided: refuses.
    fn set_matrix<T: Scalar>(&mut self, a: Matrix<T>, to: Arc<dyn Format<T>>) -> Result<()> {
        let _ = (a, to);
        Err(Error::Unsupported {
            operation: "new values of a matrix".into(),
            message: format!("the backend `{}` takes none; prepare the system anew", self.device().backend),
        })
    }
    /// Marks what has been allocated so far.
    fn mark(&self) -> Mark;
    /// Releases everything allocated after the mark; its handles become stale. The backend **may** reuse the
    /// memory for later allocations.
    fn release(&mut self, mark: Mark);

    // Transfer.
    /// Copies a host slice into a vector of the same length.
    fn upload<T: Scalar>(&mut self, from: &[T], to: Vector<T>) -> Result<()>;
    /// Sets a vector to zero. Provided: uploads zeros.
    fn clear<T: Scalar>(&mut self, v: Vector<T>) -> Result<()> {
        self.upload(&vec![T::zero(); v.len], v)
    }
    /// Copies a vector into a host slice of the same length.
    fn download<T: Scalar>(&mut self, from: Vector<T>, to: &mut [T]) -> Result<()>;
    /// Sets a cell.
    fn write<T: Scalar>(&mut self, cell: Cell<T>, value: T) -> Result<()>;
    /// Waits for the queue and returns the cells.
    fn read<T: Scalar>(&mut self, cells: &[Cell<T>]) -> Result<Vec<T>>;
    /// Starts an asynchronous copy of the cells. Provided: waits.
    fn read_later<T: Scalar>(&mut self, cells: &[Cell<T>]) -> Result<Ticket<T>> {
        Ok(Ticket { values: Some(self.read(cells)?), number: 0 })
    }
    /// The values of a copy, if it has arrived.
    fn poll<T: Scalar>(&mut self, ticket: &mut Ticket<T>) -> Result<Option<Vec<T>>> {
        Ok(ticket.values.take())
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
    fn sparse_product<T: Scalar>(&mut self, factors: &[&dyn Format<T>]) -> Result<Option<CompressedRows<T>>> {
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

    /// Frees the memory that sparse algebra keeps from one call to the next. Provided: nothing.
    fn finish_sparse_algebra(&mut self) {}

    // Programs.
    /// Runs one operation outside a program; [`Backend::execute`] and the primitives call it unless they are
    /// overridden. It **must** check every handle, and pass `control` through the cell instructions.
    fn step<T: Scalar>(
        &mut self,
        op: &Op<T>,
        control: &mut Control,
        history: &mut crate::History,
    ) -> Result<()>;

    /// Checks a program's handles and prepares it; every error of a program is reported here.
    fn plan<T: Scalar>(&mut self, program: Program<T>) -> Result<Plan<T>> {
        Ok(Plan { program, prepared: Box::new(()) })
    }

    /// Runs a program until it stops. Provided: operation by operation.
    fn execute<T: Scalar>(&mut self, plan: &mut Plan<T>, run: Run<'_>) -> Result<Finish> {
        step_by_step(self, plan, run)
    }

    // Fused primitives, one call at a time. A program runs them without the per-call checks.
    /// Runs a pass.
    fn multi_axpy_dot<T: Scalar>(&mut self, pass: Pass<T>) -> Result<()> {
        once(self, |k| k.multi_axpy_dot(pass))
    }
    /// `y ← A x`, then the pass.
    fn spmv_dot<T: Scalar>(
        &mut self,
        a: &dyn crate::LinOp<T>,
        x: Vector<T>,
        y: Vector<T>,
        pass: Pass<T>,
    ) -> Result<()> {
        once(self, |k| k.spmv_dot(a, x, y, pass))
    }
    /// `Y ← A X` for all columns of `x`; `y` has the same number of columns and shares none with `x`.
    fn spmm<T: Scalar>(&mut self, a: &dyn crate::LinOp<T>, x: Basis<T>, y: Basis<T>) -> Result<()> {
        once(self, |k| k.spmm(a, x, y))
    }
    /// `x ← A⁻¹ b` with a triangular matrix stored for solves (see [`crate::Triangle`]), then the pass.
    fn tri_solve<T: Scalar>(
        &mut self,
        a: Matrix<T>,
        b: Vector<T>,
        x: Vector<T>,
        pass: Pass<T>,
    ) -> Result<()> {
        once(self, |k| k.tri_solve(a, b, x, pass))
    }
    /// `h ← Vᴴ w`.
    fn basis_dot<T: Scalar>(&mut self, v: Basis<T>, w: Vector<T>, h: Cells<T>) -> Result<()> {
        once(self, |k| k.basis_dot(v, w, h))
    }
    /// `w ← w − V h`, then the pass.
    fn basis_axpy<T: Scalar>(&mut self, v: Basis<T>, h: Cells<T>, w: Vector<T>, pass: Pass<T>) -> Result<()> {
        once(self, |k| k.basis_axpy(v, h, w, pass))
    }
}

/// Runs a program operation by operation through [`Backend::step`]: the provided implementation of
/// [`Backend::execute`].
///
/// # Errors
/// As the operations.
pub fn step_by_step<T: Scalar, B: Backend>(dev: &mut B, plan: &mut Plan<T>, run: Run<'_>) -> Result<Finish> {
    let program = &plan.program;
    let Run { limit, history, mut watch } = run;
    history.reset(limit);
    let mut control = Control::new(limit, program.confirms());
    let mut section = Section::Setup;
    let mut seen = 0;
    while control.section != Section::Stopped {
        control.enter(section);
        for op in program.section(section) {
            dev.step(op, &mut control, history)?;
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
pub fn next_section<T: Scalar>(program: &Program<T>, section: Section, control: &Control) -> Section {
    match section {
        _ if control.section == Section::Stopped => Section::Stopped,
        Section::Setup if !program.restart.is_empty() => Section::Restart,
        Section::Setup | Section::Restart if program.iterates() => Section::Each,
        Section::Each if !control.left => Section::Each,
        Section::Each if !program.restart.is_empty() => Section::Restart,
        _ => Section::Stopped,
    }
}

/// Records, checks and runs a few operations once, then releases the cells that recording allocated.
fn once<T: Scalar, B: Backend>(dev: &mut B, body: impl FnOnce(&mut Recorder<'_, T>)) -> Result<()> {
    let mark = dev.mark();
    let mut recorder = Recorder::new(dev, "once");
    body(&mut recorder);
    let program = recorder.finish();
    let done = program.and_then(|program| {
        let mut plan = dev.plan(program)?;
        let run = Run { limit: u64::MAX - 1, history: &mut crate::History::off(), watch: None };
        dev.execute(&mut plan, run).map(drop)
    });
    dev.release(mark);
    done
}

impl<T: Scalar, B: Backend> Memory<T> for B {
    fn vector(&mut self, n: usize) -> Result<Vector<T>> {
        Backend::vector(self, n)
    }
    fn basis(&mut self, n: usize, columns: usize) -> Result<Basis<T>> {
        Backend::basis(self, n, columns)
    }
    fn narrow_basis(&mut self, n: usize, columns: usize) -> Result<Basis<T>> {
        Backend::narrow_basis(self, n, columns)
    }
    fn cells(&mut self, count: usize) -> Result<Cells<T>> {
        Backend::cells(self, count)
    }
    fn write(&mut self, cell: Cell<T>, value: T) -> Result<()> {
        Backend::write(self, cell, value)
    }
    fn upload(&mut self, numbers: &[T], to: Vector<T>) -> Result<()> {
        Backend::upload(self, numbers, to)
    }
}
