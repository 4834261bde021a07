//! Plans programs.
use crate::compiler::{Code, Job};
use crate::divided::Parts;
use crate::driver::{Driver, Event, Graph, Kernel, Launch, kernel_name};
use crate::execute::cell_range;
use crate::jit::Jit;
use crate::launches::{ALONE, Common, OpLaunch, room_of, step};
use crate::memory::Buffer;
use crate::options::{Compile, Mode, Wanted};
use crate::plan_cache::{Kept, RepackedBuffers};
use crate::store::Store;
use crate::transfer::Pinned;
use bytemuck::cast_slice;
use lacuna_engine::encode::{CONTROL_WORDS, Encoded, OP_SECTION, SECTION_EACH, SECTION_RESTART, encode};
use lacuna_engine::{Error, Op, OpKind, Program, Result, not_triangular, with_each};
use lacuna_gpu::{AT_CELLS, PlanCache, Stage, columns_pay, rows_come_first, solve_stages};
use std::ffi::c_void;

/// Shared memory of a kernel besides what is requested.
const FIXED_SHARED: u32 = 1024;
/// Blocks of a sweep per multiprocessor.
const BLOCKS_PER_UNIT: u32 = 8;
/// Rows of a level of a triangular solve that one block processes in about the time of a launch.
const NARROW_LEVEL: u32 = 512;

/// Bytes of a control block.
pub(crate) const CONTROL_BYTES: usize = CONTROL_WORDS as usize * 8;
/// Bytes of a history stored after the control block and read back with it.
pub(crate) const SHORT_HISTORY: usize = 2048;

/// The kernels of operations, by section.
type Steps = [Vec<(OpLaunch, Kernel)>; 3];

/// What is kept for a planned program.
pub(crate) struct Planned {
    /// The serial number of the program.
    pub(crate) program: u32,
    /// `None` for one that runs operation by operation.
    pub(crate) prepared: Option<Executable>,
    /// For a backend that runs parts.
    pub(crate) parts: Option<Parts>,
}

/// A program in the backend's own form.
pub(crate) struct Executable {
    pub(crate) encoded: Encoded,
    /// How it was to be executed.
    pub(crate) wanted: Wanted,
    /// The mode of execution; never `Auto`.
    pub(crate) mode: Mode,
    /// The epoch of the memory in which all handles were live.
    pub(crate) checked: u64,
    /// The last epoch in which its matrices were given values: a generated kernel has their entries in its own order.
    pub(crate) values: u64,
    pub(crate) steps: Steps,
    pub(crate) start: Kernel,
    /// The generated kernel; if present, it runs the program.
    pub(crate) jit: Option<Jit>,
    /// The compilation of the generated kernel, while it is running.
    pub(crate) compiling: Option<Job>,
    pub(crate) common: Common,
    pub(crate) control: Pinned,
    /// Where a generated kernel writes control block, short history and cells.
    pub(crate) result: Pinned,
    /// The current epoch of exchanges and tag of operands, for a generated kernel.
    pub(crate) state: [u64; 2],
    pub(crate) graph: Option<(Graph, Common, u64)>,
    pub(crate) events: [Event; 2],
    /// Operations in the next launch of a generated kernel with a watch.
    pub(crate) watched_passes: u64,
    /// What its kernels use: of this plan alone, and shared with other plans.
    _buffers: Vec<Buffer>,
    _kept: Option<Kept>,
}

/// The parts of a backend that planning needs.
pub(crate) struct Planner<'a> {
    pub(crate) driver: &'a mut Driver,
    pub(crate) store: &'a mut Store,
    pub(crate) cache: &'a mut PlanCache<RepackedBuffers, Kept>,
    pub(crate) wanted: Wanted,
}

impl Planner<'_> {
    pub(crate) fn prepare(&mut self, program: &Program) -> Result<Executable> {
        self.store.check(program)?;
        let (Wanted { mode, compile }, name) = (self.wanted, program.name());
        // If operations are launched one by one, columns are multiplied together, else one after the other.
        let cache = self.driver.limits.cache;
        let worth = |kernel: &str, bytes| mode != Mode::Auto || columns_pay(kernel, bytes, cache);
        let kept = program.column_by_column(|kind| self.takes_together(program, kind, worth));
        let apart = if mode == Mode::Jit { program.column_by_column(|_| false) } else { kept };
        let program = &*apart;
        let encoded = encode(program)?;
        if cell_range(&encoded).end > self.store.cells_of(encoded.kind).len() {
            return Err(Error::Stale { operation: name.into(), what: "cell" });
        }
        let once = mode == Mode::Auto && encoded.sections[SECTION_EACH as usize].is_empty();
        // Triangular solves go level by level, with separate kernels.
        let solves = program.has_solves();
        let (kept, compiling) = match program.has_columns() || once || solves {
            true => (None, None),
            false => match self.jit(name, &encoded)? {
                None => (None, None),
                Some(Code::Ready(kept)) => (Some(kept), None),
                Some(Code::Compiling(job)) => (None, Some(job)),
            },
        };
        let ran = match mode {
            _ if kept.is_some() => Mode::Jit,
            Mode::Jit if solves => Mode::Graph,
            Mode::Jit => return Err(refused(name)),
            Mode::Auto if once => Mode::Stream,
            Mode::Auto => Mode::Graph,
            mode => mode,
        };
        let mut steps = Steps::default();
        if kept.is_none() {
            steps = match self.steps(program, &encoded) {
                // Only a generated kernel can run so wide a pass.
                Err(Error::Unsupported { operation, message })
                    if mode == Mode::Auto && compile != Compile::Never =>
                {
                    let Planner { driver, store, cache, .. } = self;
                    let mut jit =
                        Planner { driver, store, cache, wanted: Wanted { mode: Mode::Jit, compile } };
                    return jit.prepare(program).map_err(|_| Error::Unsupported { operation, message });
                }
                steps => steps?,
            };
        }
        let mut buffers = Vec::new();
        let jit = kept.as_ref().map(|kept| self.build_jit(&encoded, name, kept, &mut buffers)).transpose()?;
        let common = self.build(&encoded, &steps, &mut buffers)?;
        let driver = &mut *self.driver;
        let cells = encoded.cells.len() * encoded.kind.size();
        let result = if jit.is_some() { 8 * AT_CELLS + cells } else { 0 };
        Ok(Executable {
            wanted: self.wanted,
            mode: ran,
            checked: self.store.epoch,
            values: self.store.values_of(&encoded.matrices),
            start: driver.kernel(&kernel_name("start", encoded.kind))?,
            control: driver.pinned(3 * CONTROL_BYTES)?,
            result: driver.pinned(result)?,
            events: [Event::new(driver)?, Event::new(driver)?],
            encoded,
            steps,
            jit,
            compiling,
            common,
            // Not 0: words begin as zeros, and their tags must differ from all expected ones.
            state: [1; 2],
            graph: None,
            watched_passes: 16,
            _buffers: buffers,
            _kept: kept,
        })
    }

    /// Whether there is a kernel for an operation on several columns. Products must be worth it, by the format and its bytes.
    pub(crate) fn takes_together(
        &self,
        program: &Program,
        kind: &OpKind,
        worth: impl Fn(&str, usize) -> bool,
    ) -> bool {
        // No kernel for several columns supports narrow ones.
        !program.has_narrow()
            && match kind {
                OpKind::Spmm { a, .. } => self.store.multiplies_columns(*a, worth),
                _ => true,
            }
    }

    /// Runs an operation without instructions, and waits for it.
    pub(crate) fn run_alone(&mut self, op: &Op) -> Result<()> {
        let (program, name, kind) = (Program::once(op.clone())?, op.sweep.name(), op.sweep.kind());
        let program = program.column_by_column(|kind| self.takes_together(&program, kind, |_, _| true));
        let encoded = encode(&program)?;
        let cells = cell_range(&encoded);
        if cells.end > self.store.cells_of(kind).len() {
            return Err(Error::Stale { operation: name.to_string(), what: "cell" });
        }
        let (steps, mut buffers) = (self.steps(&program, &encoded)?, Vec::new());
        let mut common = self.build(&encoded, &steps, &mut buffers)?;
        (common.cells, common.alone) = (self.store.device_cells(self.driver, kind)?, ALONE);
        self.store.cells_of(kind).device_changes(&cells);
        let queued =
            steps.iter().flatten().try_for_each(|(step, kernel)| step.queue(self.driver, *kernel, &common));
        queued.and(self.driver.wait("running an operation"))
    }

    /// The kernels of a program's operations.
    pub(crate) fn steps(&mut self, program: &Program, encoded: &Encoded) -> Result<Steps> {
        let mut steps = Steps::default();
        for (op, from) in program.ops().enumerate() {
            if let Some(step) = step(self.store, encoded, op as u32, from.sweep.name())? {
                let most = self.driver.limits.shared.saturating_sub(FIXED_SHARED + 4096);
                if step.shared > most {
                    return Err(Error::Unsupported {
                        operation: format!("pass `{}`", from.sweep.name()),
                        message: format!(
                            "its vectors and dot products need {} bytes of shared memory, {} has {most}: split it",
                            step.shared, self.driver.limits.name
                        ),
                    });
                }
                let rows_first = self.rows_come_first(from);
                let stages = self.stages(from)?;
                let section = &mut steps[encoded.op(op as u32, OP_SECTION) as usize];
                let mut push = |step: OpLaunch| -> Result<()> {
                    let kernel = self.driver.kernel(&step.kernel_name(encoded.kind))?;
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
    fn stages(&self, op: &Op) -> Result<Option<Vec<Stage>>> {
        let OpKind::TriSolve { a, .. } = op.kind else { return Ok(None) };
        let name = op.sweep.name();
        let stored = self.store.stored(a, name)?;
        let stages = with_each!(&stored.format, format => {
            solve_stages(&**format, NARROW_LEVEL)
        });
        stages.map(Some).ok_or_else(|| not_triangular(name, stored.kernel))
    }

    /// Whether an operation is a product whose rows are computed ahead of the pass.
    fn rows_come_first(&self, op: &Op) -> bool {
        let OpKind::Spmv { a, .. } = op.kind else { return false };
        self.store.stored(a, op.sweep.name()).is_ok_and(|stored| stored.kernel == "csr")
            && rows_come_first(a.rows, a.nnz, self.driver.limits.multiprocessors as usize)
    }

    /// The arguments that the kernels of a plan share, and their buffers.
    fn build(&self, encoded: &Encoded, steps: &Steps, buffers: &mut Vec<Buffer>) -> Result<Common> {
        let (driver, pool, what) = (&*self.driver, &self.store.pool, "the tables of a program");
        let mut keep = |buffer: Buffer| {
            let address = buffer.address;
            buffers.push(buffer);
            address
        };
        let most =
            |f: fn(&OpLaunch) -> usize| steps.iter().flatten().map(|(step, _)| f(step)).max().unwrap_or(0);
        let word = encoded.kind.size();
        let sums = most(|s| s.op.dots as usize * room_of(s.op.segments));
        let groups = most(|s| s.op.groups as usize);
        let group_sums = most(|s| s.op.dots as usize * room_of(s.op.groups));
        Ok(Common {
            first: encoded.sections.each_ref().map(|s| s.start),
            control: keep(pool.zeroed(driver, CONTROL_BYTES + SHORT_HISTORY, what)?),
            partial: keep(pool.take(driver, sums * word, what)?),
            group: keep(pool.take(driver, group_sums * word, what)?),
            tickets: keep(pool.zeroed(driver, (groups + 1) * 4, what)?),
            words: keep(pool.filled(driver, cast_slice(&encoded.words), what)?),
            ..Common::default()
        })
    }
}

impl Executable {
    /// The steps of the restart section.
    pub(crate) fn restart(&self) -> &[(OpLaunch, Kernel)] {
        &self.steps[SECTION_RESTART as usize]
    }
    /// The steps of an iteration.
    pub(crate) fn each(&self) -> &[(OpLaunch, Kernel)] {
        &self.steps[SECTION_EACH as usize]
    }
}

impl OpLaunch {
    /// The launch shape of this step on a device with `units` multiprocessors.
    fn launch(&self, units: u32) -> Launch {
        let blocks = self.blocks.min(units * BLOCKS_PER_UNIT).max(1);
        Launch { blocks, threads: 256, shared: self.shared, cooperative: false }
    }
    /// Queues this step.
    pub(crate) fn queue(&self, driver: &Driver, kernel: Kernel, common: &Common) -> Result<()> {
        let (mut common, mut op) = (*common, self.op.clone());
        let mut arguments = [(&raw mut common).cast::<c_void>(), (&raw mut *op).cast()];
        // SAFETY: the kernel takes `Common` and `StreamOp`; planning resolved every address from handles, which
        // were found live since the last of any was freed, and sized the buffers for the operation.
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
