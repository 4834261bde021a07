//! Plans programs.
use crate::compiler::{Code, Job};
use crate::driver::{Driver, Event, Graph, Kernel, Launch, kernel_name};
use crate::jit::Jit;
use crate::launches::{Common, Step, step};
use crate::memory::{Buffer, Pool};
use crate::options::{Compile, Mode};
use crate::plan_cache::{Entries, Kept};
use crate::store::Store;
use crate::transfer::Pinned;
use lacuna_engine::encode::{CONTROL_WORDS, Encoded, OP_SECTION, SECTION_EACH, SECTION_RESTART, encode};
use lacuna_engine::{Basis, Error, Matrix, Op, OpKind, Program, Result, Scalar, Vector, not_triangular};
use lacuna_gpu::{AT_CELLS, PlanCache, Stage, columns_pay, rows_come_first, solve_stages};
use std::ffi::c_void;
use std::sync::Arc;

/// Shared memory of a kernel besides what is requested.
const FIXED_SHARED: u32 = 1024;
/// Blocks of a sweep per multiprocessor.
const BLOCKS_PER_UNIT: u32 = 8;
/// Rows of a level of a triangular solve that one block processes in about the time of a launch.
const NARROW_LEVEL: usize = 512;

/// Bytes of a control block.
pub(crate) const CONTROL_BYTES: usize = CONTROL_WORDS as usize * 8;
/// Bytes of a history stored after the control block and read back with it.
pub(crate) const SHORT_HISTORY: usize = 2048;

/// The handles that a program uses, checked live before each run.
struct Handles<T> {
    vectors: Vec<Vector<T>>,
    bases: Vec<Basis<T>>,
    matrices: Vec<Matrix<T>>,
    /// Serials of the cells when the plan was made.
    cells: Vec<u32>,
    first_cell: usize,
}

/// Device memory that belongs to a plan, and a token that tells whether the plan still exists.
pub(crate) struct Owned {
    pub(crate) alive: Arc<()>,
    pub(crate) buffers: Vec<Buffer>,
}

/// A program in the backend's own form.
pub(crate) struct Prepared<T> {
    handles: Handles<T>,
    pub(crate) encoded: Encoded<T>,
    /// The generation of the matrices when this was made; a generated kernel has their entries in its own
    /// order.
    pub(crate) generation: u64,
    /// The mode of execution; never `Auto`.
    pub(crate) mode: Mode,
    /// The kernels of operations, by section.
    pub(crate) steps: [Vec<(Step, Kernel)>; 3],
    pub(crate) start: Kernel,
    /// The generated kernel; if present, it runs the program.
    pub(crate) jit: Option<Jit>,
    /// The compilation of the generated kernel, while it is running.
    pub(crate) compiling: Option<Job>,
    /// What it shares with other plans.
    _ready: Option<Kept>,
    pub(crate) common: Common,
    pub(crate) control: Pinned,
    /// Where a generated kernel writes control block, short history and cells.
    pub(crate) result: Pinned,
    pub(crate) epoch: u64,
    /// The current tag of operands, for a generated kernel.
    pub(crate) tag: u64,
    pub(crate) graph: Option<(Graph, Common, u64)>,
    pub(crate) events: Vec<Event>,
    /// Keeps the buffers alive in the backend.
    pub(crate) alive: Arc<()>,
    /// Operations in the next launch of a generated kernel with a watch.
    pub(crate) watched_passes: u64,
}

/// The parts of a backend that planning needs.
pub(crate) struct Planner<'a> {
    pub(crate) driver: &'a mut Driver,
    pub(crate) store: &'a mut Store,
    pub(crate) owned: &'a mut Vec<Owned>,
    pub(crate) plans: &'a mut PlanCache<Entries, Kept>,
    pub(crate) mode: Mode,
    pub(crate) compile: Compile,
}

impl Planner<'_> {
    /// Returns buffers of dropped plans to the pool.
    pub(crate) fn sweep_up(&mut self) {
        sweep_up(self.owned, &mut self.store.pool);
    }

    pub(crate) fn prepare<T: Scalar>(&mut self, program: &Program<T>) -> Result<Prepared<T>> {
        self.sweep_up();
        // If operations are launched one by one, columns are multiplied together, else one after the other.
        let cache = self.driver.limits.cache;
        let worth = |kernel: &str, bytes| self.mode != Mode::Auto || columns_pay(kernel, bytes, cache);
        // Kernels for several columns do not support narrow ones.
        let several = |a| !program.has_narrow() && self.store.multiplies_columns(a, worth);
        let kept = program.column_by_column(several);
        let apart = if self.mode == Mode::Jit { program.column_by_column(|_| false) } else { kept };
        let program = &*apart;
        let encoded = encode(program)?;
        let handles = handles(self.store, program, &encoded)?;
        let once = self.mode == Mode::Auto && encoded.sections[SECTION_EACH as usize].is_empty();
        // Triangular solves go level by level, with separate kernels.
        let solves = program.has_solves();
        let (ready, compiling) = match program.has_columns() || once || solves {
            true => (None, None),
            false => match self.jit(program.name, &encoded)? {
                None => (None, None),
                Some(Code::Ready(ready)) => (Some(ready), None),
                Some(Code::Compiling(job)) => (None, Some(job)),
            },
        };
        let mut steps = [Vec::new(), Vec::new(), Vec::new()];
        let mode = match self.mode {
            _ if ready.is_some() => Mode::Jit,
            Mode::Jit if solves => Mode::Graph,
            Mode::Jit => return Err(refused(program.name)),
            Mode::Auto if once => Mode::Stream,
            Mode::Auto => Mode::Graph,
            mode => mode,
        };
        if ready.is_none() {
            steps = match self.steps(program, &encoded) {
                // Only a generated kernel can run so wide a pass.
                Err(Error::Unsupported { operation, message })
                    if self.mode == Mode::Auto && self.compile != Compile::Never =>
                {
                    let Planner { driver, store, owned, plans, compile, .. } = self;
                    let mut jit = Planner { driver, store, owned, plans, mode: Mode::Jit, compile: *compile };
                    return jit.prepare(program).map_err(|_| Error::Unsupported { operation, message });
                }
                steps => steps?,
            };
        }

        let alive = Arc::new(());
        let mut owned = Owned { alive: alive.clone(), buffers: Vec::new() };
        let jit = match &ready {
            Some(ready) => self.build_jit(&encoded, program.name, ready, &mut owned).map(Some),
            None => Ok(None),
        };
        let built = jit.and_then(|jit| Ok((jit, self.build(&encoded, &steps, &mut owned)?)));
        let (jit, common) = match built {
            Ok(built) => built,
            Err(error) => {
                owned.buffers.into_iter().for_each(|b| self.store.pool.give(b));
                return Err(error);
            }
        };
        self.owned.push(owned);
        let control = self.driver.pinned(3 * CONTROL_BYTES)?;
        let result = self.driver.pinned(8 * AT_CELLS + encoded.cells.len() * size_of::<T>())?;
        let start = self.driver.kernel(&kernel_name("start", T::KIND))?;
        let events = (0..2).map(|_| Event::new(self.driver)).collect::<Result<_>>()?;
        Ok(Prepared {
            handles,
            generation: self.store.generation,
            encoded,
            mode,
            steps,
            start,
            jit,
            compiling,
            _ready: ready,
            common,
            control,
            result,
            // Not 0: words begin as zeros, and their tags must differ from all expected ones.
            epoch: 1,
            tag: 1,
            graph: None,
            events,
            alive,
            watched_passes: 16,
        })
    }

    /// The kernels of a program's operations, by section.
    fn steps<T: Scalar>(
        &mut self,
        program: &Program<T>,
        encoded: &Encoded<T>,
    ) -> Result<[Vec<(Step, Kernel)>; 3]> {
        let mut steps = [Vec::new(), Vec::new(), Vec::new()];
        for (op, from) in program.ops().enumerate() {
            if let Some(step) = step(self.store, encoded, op as u32, &from.sweep.name)? {
                let most = self.driver.limits.shared.saturating_sub(FIXED_SHARED + 4096);
                if step.shared > most {
                    return Err(Error::Unsupported {
                        operation: format!("pass `{}`", from.sweep.name),
                        message: format!(
                            "its vectors and dot products need {} bytes of shared memory, {} has {most}: split it",
                            step.shared, self.driver.limits.name
                        ),
                    });
                }
                let rows_first = self.rows_come_first(from);
                let stages = self.stages(from)?;
                let section = &mut steps[encoded.op(op as u32, OP_SECTION) as usize];
                let mut push = |step: Step| -> Result<()> {
                    let kernel = self.driver.kernel(&step.kernel_name(T::KIND))?;
                    section.push((step, kernel));
                    Ok(())
                };
                match stages {
                    Some(stages) => step.stages(stages).into_iter().try_for_each(push)?,
                    None if rows_first => step.rows_first().into_iter().try_for_each(push)?,
                    None => push(step)?,
                }
            }
        }
        Ok(steps)
    }

    /// The stages of a triangular solve.
    fn stages<T: Scalar>(&self, op: &Op<T>) -> Result<Option<Vec<Stage>>> {
        let OpKind::TriSolve { a, .. } = op.kind else { return Ok(None) };
        let name = &op.sweep.name;
        let stored = self.store.stored(a, name)?;
        let not_triangular = || not_triangular(name, stored.kernel);
        let format = self.store.format(a).ok_or_else(not_triangular)?;
        let triangle = format.triangle().ok_or_else(not_triangular)?;
        Ok(Some(solve_stages(&triangle, NARROW_LEVEL)))
    }

    /// Whether an operation is a product whose rows are computed ahead of the pass.
    fn rows_come_first<T: Scalar>(&self, op: &Op<T>) -> bool {
        let OpKind::Spmv { a, .. } = op.kind else { return false };
        self.store.stored(a, &op.sweep.name).is_ok_and(|stored| stored.kernel == "csr")
            && rows_come_first(a.rows, a.nnz, self.driver.limits.multiprocessors as usize)
    }

    /// The buffers of a plan.
    fn build<T: Scalar>(
        &mut self,
        encoded: &Encoded<T>,
        steps: &[Vec<(Step, Kernel)>; 3],
        owned: &mut Owned,
    ) -> Result<Common> {
        let driver = &*self.driver;
        let pool = &mut self.store.pool;
        let mut take = |bytes: usize, zeroed: bool| -> Result<u64> {
            let what = "the tables of a program";
            let buffer =
                if zeroed { pool.take_zeroed(driver, bytes, what)? } else { pool.take(driver, bytes, what)? };
            let address = buffer.address;
            owned.buffers.push(buffer);
            Ok(address)
        };
        let mut common = Common { first: encoded.sections.each_ref().map(|s| s.start), ..Common::default() };
        common.control = take(CONTROL_BYTES + SHORT_HISTORY, true)?;
        let most = |f: fn(&Step) -> usize| steps.iter().flatten().map(|(step, _)| f(step)).max().unwrap_or(0);
        let word = size_of::<T>();
        let sums = most(|s| s.op.dots as usize * s.op.segments as usize);
        let groups = most(|s| s.op.segments.div_ceil(256) as usize);
        let group_sums = most(|s| s.op.dots as usize * s.op.segments.div_ceil(256) as usize);
        common.partial = take(sums * word, false)?;
        common.group = take(group_sums * word, false)?;
        common.tickets = take((groups + 1) * 4, true)?;
        common.words = take(encoded.words.len() * 4, false)?;
        driver.upload(&encoded.words, common.words, "copying a program's table")?;
        Ok(common)
    }
}

/// Returns buffers of dropped plans to the pool.
pub(crate) fn sweep_up(owned: &mut Vec<Owned>, pool: &mut Pool) {
    let mut at = 0;
    while at < owned.len() {
        if Arc::strong_count(&owned[at].alive) == 1 {
            owned.swap_remove(at).buffers.into_iter().for_each(|b| pool.give(b));
        } else {
            at += 1;
        }
    }
}

/// The handles of a program; all must be live.
fn handles<T: Scalar>(store: &Store, program: &Program<T>, encoded: &Encoded<T>) -> Result<Handles<T>> {
    for op in program.ops() {
        store.check_cells_of(op)?;
        op.sweep.mentions().try_for_each(|(v, _)| store.address(v, &op.sweep.name).map(drop))?;
    }
    let serials = store.cell_serials::<T>();
    let range = encoded.cells.start as usize..encoded.cells.end as usize;
    let cells = serials.get(range.clone());
    let cells = cells.ok_or_else(|| Error::Stale { operation: program.name.into(), what: "cell" })?.to_vec();
    let handles = Handles {
        vectors: encoded.vectors.clone(),
        bases: encoded.bases.clone(),
        matrices: encoded.matrices.clone(),
        cells,
        first_cell: range.start,
    };
    handles.check(store, program.name)?;
    Ok(handles)
}

impl<T: Scalar> Handles<T> {
    fn check(&self, store: &Store, operation: &str) -> Result<()> {
        self.vectors.iter().try_for_each(|v| store.address(*v, operation).map(drop))?;
        self.bases.iter().try_for_each(|v| store.basis_place(*v, operation).map(drop))?;
        self.matrices.iter().try_for_each(|a| store.stored(*a, operation).map(drop))?;
        let serials = store.cell_serials::<T>();
        let now = serials.get(self.first_cell..self.first_cell + self.cells.len());
        if now != Some(&self.cells) {
            return Err(Error::Stale { operation: operation.into(), what: "cell" });
        }
        Ok(())
    }
}

impl<T: Scalar> Prepared<T> {
    /// Fails unless everything the program uses is live.
    pub(crate) fn check(&self, store: &Store, operation: &str) -> Result<()> {
        self.handles.check(store, operation)
    }
    /// The steps of the restart section.
    pub(crate) fn restart(&self) -> &[(Step, Kernel)] {
        &self.steps[SECTION_RESTART as usize]
    }
    /// The steps of an iteration.
    pub(crate) fn each(&self) -> &[(Step, Kernel)] {
        &self.steps[SECTION_EACH as usize]
    }
}

impl Step {
    /// The launch shape of this step on a device with `units` multiprocessors.
    fn launch(&self, units: u32) -> Launch {
        let blocks = self.blocks.min(units * BLOCKS_PER_UNIT).max(1);
        Launch { blocks, threads: 256, shared: self.shared, cooperative: false }
    }
    /// Queues this step.
    pub(crate) fn queue(&self, driver: &Driver, kernel: Kernel, common: &Common) -> Result<()> {
        let (mut common, mut op) = (*common, self.op.clone());
        let mut arguments = [(&raw mut common).cast::<c_void>(), (&raw mut *op).cast()];
        // SAFETY: the kernel takes `Common` and `StreamOp`; `prepare` resolved every address from live
        // handles, which `Handles::check` found live again before this run, and sized the buffers for the
        // operation.
        unsafe {
            driver.launch(self.kernel, kernel, self.launch(driver.limits.multiprocessors), &mut arguments)
        }
    }
}

/// Queues the kernel that starts a program.
pub(crate) fn queue_start(driver: &Driver, kernel: Kernel, common: &Common) -> Result<()> {
    let mut common = *common;
    let mut arguments = [(&raw mut common).cast::<c_void>()];
    let how = Launch { blocks: 1, threads: 32, shared: 0, cooperative: false };
    // SAFETY: the kernel takes `Common`, whose addresses belong to live buffers.
    unsafe { driver.launch("start", kernel, how, &mut arguments) }
}

fn refused(program: &str) -> Error {
    Error::Unsupported {
        operation: format!("program `{program}` in mode `jit`"),
        message:
            "no kernel is generated for its lengths, formats or size, or none is wanted; mode `auto` runs it"
                .into(),
    }
}

/// A program of one operation, for [`Backend::step`](lacuna_engine::Backend::step).
pub(crate) fn single<T: Scalar>(op: &Op<T>) -> Program<T> {
    let mut program = Program::new("step");
    let mut op = op.clone();
    op.sweep.before.clear();
    op.sweep.after.clear();
    if matches!(op.kind, OpKind::Sweep) && op.sweep.is_scalar() {
        return program;
    }
    program.setup.push(op);
    program
}
