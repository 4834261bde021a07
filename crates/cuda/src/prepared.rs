//! What planning makes of a program.
use crate::driver::{Driver, Event, Graph, Kernel, Launch, kernel_name};
use crate::memory::{Buffer, Pool};
use crate::near::Near;
use crate::options::{Compile, Mode};
use crate::store::Store;
use crate::table::{Common, Step, segments, step};
use crate::transfer::Pinned;
use crate::whole::{ProgramArgs, Refusal, WholeTable, whole_table};
use crate::written::{Entries, Written};
use lacuna_core::encode::{CONTROL_WORDS, Encoded, NONE, OP_SECTION, SECTION_EACH, SECTION_RESTART, encode};
use lacuna_core::{Basis, Error, Matrix, Op, OpKind, Program, Result, Scalar, Vector};
use lacuna_generate::{AT_CELLS, Shelf, columns_pay, rows_come_first};
use std::ffi::c_void;
use std::sync::Arc;

/// Unknowns below which one block is the fastest: an iteration costs block barriers alone.
const ONE_BLOCK: u32 = 512;
/// Unknowns above which kernels of their own are chosen: one kernel was the faster up to the largest size measured.
const GRID: u32 = 1_500_000;
/// Shared memory that kernel has besides what is asked for.
const FIXED_SHARED: u32 = 1024;
/// Blocks of a sweep for each multiprocessor.
const BLOCKS_PER_UNIT: u32 = 8;

/// Bytes of a control block.
pub(crate) const CONTROL_BYTES: usize = CONTROL_WORDS as usize * 8;
/// Bytes of a history that lies behind the control block and is read back with it.
pub(crate) const SHORT_HISTORY: usize = 2048;
/// Where the cells lie in the page-locked result of a program that runs as one kernel: behind control block and history.
pub(crate) const RESULT_CELLS: usize = CONTROL_BYTES + SHORT_HISTORY;

/// The handles a program uses, to be found live before each run.
struct Handles<T> {
    vectors: Vec<Vector<T>>,
    bases: Vec<Basis<T>>,
    matrices: Vec<Matrix<T>>,
    /// Cells with the serials they had.
    cells: Vec<u32>,
    first_cell: usize,
}

/// Device memory that belongs to a plan, and what tells whether the plan still exists.
pub(crate) struct Owned {
    pub(crate) alive: Arc<()>,
    pub(crate) buffers: Vec<Buffer>,
}

/// One launch that runs a whole program.
#[derive(Clone, Copy)]
pub(crate) struct Whole {
    pub(crate) kernel: Kernel,
    pub(crate) launch: Launch,
    pub(crate) args: ProgramArgs,
}

/// Such a launch, and the table it takes.
type Tabled<T> = (Whole, WholeTable<T>);

/// A program in this backend's own form.
pub(crate) struct Prepared<T> {
    handles: Handles<T>,
    pub(crate) encoded: Encoded<T>,
    /// How it is executed; never `Auto`.
    pub(crate) mode: Mode,
    /// Operations as kernels, by section.
    pub(crate) steps: [Vec<(Step, Kernel)>; 3],
    pub(crate) start: Kernel,
    pub(crate) whole: Option<Whole>,
    /// Where a kernel is written for the program, it is the one that runs.
    pub(crate) near: Option<Near>,
    /// What it shares with other plans.
    _written: Option<Written>,
    pub(crate) common: Common,
    pub(crate) control: Pinned,
    /// Where one kernel leaves control block, short history and cells.
    pub(crate) result: Pinned,
    pub(crate) epoch: u64,
    /// The tag of the operands so far, of a written kernel.
    pub(crate) tag: u64,
    pub(crate) graph: Option<(Graph, Common, u64)>,
    pub(crate) events: Vec<Event>,
    /// Keeps the buffers in the backend.
    pub(crate) alive: Arc<()>,
    /// Passes through `each` a replayed graph holds.
    pub(crate) watched_passes: u64,
}

/// Everything a plan is made with.
pub(crate) struct Workshop<'a> {
    pub(crate) driver: &'a mut Driver,
    pub(crate) store: &'a mut Store,
    pub(crate) owned: &'a mut Vec<Owned>,
    pub(crate) shelf: &'a mut Shelf<Entries, Written>,
    pub(crate) mode: Mode,
    pub(crate) compile: Compile,
}

impl Workshop<'_> {
    /// Returns buffers of plans that are gone to the pool.
    pub(crate) fn sweep_up(&mut self) {
        sweep_up(self.owned, &mut self.store.pool);
    }

    pub(crate) fn prepare<T: Scalar>(&mut self, program: &Program<T>) -> Result<Prepared<T>> {
        self.sweep_up();
        // Where operations are launched one by one, columns are multiplied together, else one after the other.
        let cache = self.driver.limits.cache;
        let worth = |kernel: &str, bytes| self.mode != Mode::Auto || columns_pay(kernel, bytes, cache);
        let kept = program.column_by_column(|a| self.store.multiplies_columns(a, worth));
        let one = matches!(self.mode, Mode::Block | Mode::Grid);
        let apart = if one { program.column_by_column(|_| false) } else { kept };
        let program = &*apart;
        let encoded = encode(program)?;
        let handles = handles(self.store, program, &encoded)?;
        let written = if program.has_columns() { None } else { self.written(program.name, &encoded)? };
        let mut steps = [Vec::new(), Vec::new(), Vec::new()];
        let (mode, whole) = match &written {
            Some(written) => (written.mode, None),
            None => {
                steps = self.steps(program, &encoded)?;
                match program.has_columns() && self.mode == Mode::Auto {
                    true => (Mode::Graph, None),
                    false => self.choose(program, &encoded)?,
                }
            }
        };

        let alive = Arc::new(());
        let mut owned = Owned { alive: alive.clone(), buffers: Vec::new() };
        let near = match &written {
            Some(written) => self.build_near(&encoded, program.name, written, &mut owned).map(Some),
            None => Ok(None),
        };
        let built = near.and_then(|near| {
            let (common, whole) = self.build(&encoded, mode, whole, &steps, &mut owned)?;
            Ok((near, common, whole))
        });
        let (near, common, whole) = match built {
            Ok(built) => built,
            Err(error) => {
                owned.buffers.into_iter().for_each(|b| self.store.pool.give(b));
                return Err(error);
            }
        };
        self.owned.push(owned);
        let control = self.driver.pinned(3 * CONTROL_BYTES)?;
        let cells = whole.filter(|w| w.args.result_cells != 0).map_or(0, |w| w.args.cell_count as usize);
        let result = match near {
            Some(_) => 8 * AT_CELLS + encoded.cells.len() * size_of::<T>(),
            None => RESULT_CELLS + cells * size_of::<T>(),
        };
        let result = self.driver.pinned(result)?;
        let start = self.driver.kernel(&kernel_name("start", T::KIND))?;
        let events = (0..2).map(|_| Event::new(self.driver)).collect::<Result<_>>()?;
        Ok(Prepared {
            handles,
            encoded,
            mode,
            steps,
            start,
            whole,
            near,
            _written: written,
            common,
            control,
            result,
            // Not 0: words begin as zeros, and their tags must differ from all that is expected.
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
                let section = &mut steps[encoded.op(op as u32, OP_SECTION) as usize];
                let mut push = |step: Step| -> Result<()> {
                    let kernel = self.driver.kernel(&kernel_name(step.kernel, T::KIND))?;
                    section.push((step, kernel));
                    Ok(())
                };
                match rows_first {
                    true => step.rows_first().into_iter().try_for_each(push)?,
                    false => push(step)?,
                }
            }
        }
        Ok(steps)
    }

    /// Whether an operation is a product whose rows are computed ahead of the pass.
    fn rows_come_first<T: Scalar>(&self, op: &Op<T>) -> bool {
        let OpKind::Spmv { a, .. } = op.kind else { return false };
        self.store.stored(a, &op.sweep.name).is_ok_and(|stored| stored.kernel == "csr")
            && rows_come_first(a.rows, a.nnz, self.driver.limits.multiprocessors as usize)
    }

    /// The mode, and the launch and table where that is one kernel.
    fn choose<T: Scalar>(
        &mut self,
        program: &Program<T>,
        encoded: &Encoded<T>,
    ) -> Result<(Mode, Option<Tabled<T>>)> {
        let name = program.name;
        let wanted = match self.mode {
            Mode::Auto if program.ops().any(|op| self.rows_come_first(op)) => Mode::Auto,
            Mode::Auto if encoded.n <= ONE_BLOCK => Mode::Block,
            Mode::Auto if encoded.n <= GRID => Mode::Grid,
            mode => mode,
        };
        let refusal = match wanted {
            Mode::Auto => return Ok((Mode::Graph, None)),
            Mode::Steps | Mode::Stream | Mode::Graph => return Ok((wanted, None)),
            Mode::Block | Mode::Grid => match self.fit::<T>(name, encoded, wanted)? {
                Ok(whole) => return Ok((wanted, Some(whole))),
                Err(refusal) => refusal,
            },
        };
        if self.mode == Mode::Auto {
            return Ok((Mode::Graph, None));
        }
        Err(Error::Unsupported {
            operation: format!("program `{name}` in mode `{}`", wanted.name()),
            message: format!("{refusal}; mode `auto` runs it"),
        })
    }

    /// How a program is laid out in one kernel, where it fits.
    fn fit<T: Scalar>(
        &mut self,
        name: &str,
        encoded: &Encoded<T>,
        mode: Mode,
    ) -> Result<Result<Tabled<T>, Refusal>> {
        let limits = &self.driver.limits;
        let segments = segments(encoded.n);
        let blocks = if mode == Mode::Block { 1 } else { limits.multiprocessors.min(segments) };
        if blocks == 1 && segments > 256 {
            return Ok(Err("it has too many rows for one block"));
        }
        if !limits.cooperative && blocks > 1 {
            return Ok(Err("the device cannot run all blocks of a kernel together"));
        }
        let room = limits.shared.saturating_sub(FIXED_SHARED) as usize;
        let table = match whole_table(self.store, encoded, name, blocks, room)? {
            Ok(table) => table,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let kernel = self.driver.kernel(&kernel_name("program", T::KIND))?;
        let launch = Launch { blocks, threads: table.threads, shared: table.shared, cooperative: blocks > 1 };
        Ok(Ok((Whole { kernel, launch, args: table.args }, table)))
    }

    /// The buffers of a plan.
    fn build<T: Scalar>(
        &mut self,
        encoded: &Encoded<T>,
        mode: Mode,
        whole: Option<Tabled<T>>,
        steps: &[Vec<(Step, Kernel)>; 3],
        owned: &mut Owned,
    ) -> Result<(Common, Option<Whole>)> {
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
        if let Some((mut whole, mut table)) = whole {
            let parts = if size_of::<T>() > 8 { 2 } else { 1 };
            for (vector, len) in table.as_words.clone() {
                table.set_words(vector, take((len * parts).saturating_mul(16), true)?);
            }
            let what = "copying a program's table";
            for (matrix, halo) in std::mem::take(&mut table.halos).into_iter().enumerate() {
                let values = take(size_of_val(&*halo.values), false)?;
                driver.upload(&halo.values, values, what)?;
                let mut put = |list: &[u32]| -> Result<u64> {
                    let address = take(size_of_val(list), false)?;
                    driver.upload(list, address, what)?;
                    Ok(address)
                };
                let [col_idx, groups] = [put(&halo.col_idx)?, put(&halo.groups)?];
                table.set_halo(matrix, [col_idx, values, groups, put(&halo.list)?, put(&halo.offsets)?]);
            }
            let args = &mut whole.args;
            if table.far_words {
                args.words = take(encoded.words.len() * 4, false)?;
                driver.upload(&encoded.words, args.words, "copying a program's table")?;
            }
            args.table = take(table.table.len() * 4, false)?;
            driver.upload(&table.table, args.table, "copying a program's table")?;
            if whole.launch.blocks > 1 {
                args.exchange = take(2 * 16 * args.exchange_words as usize, true)?;
                if args.at_halo == NONE {
                    let most = args.halo_most as usize * whole.launch.blocks as usize;
                    args.halo = take(most.saturating_mul(size_of::<T>()), false)?;
                }
            }
            return Ok((common, Some(whole)));
        }
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
        common.alone = (mode == Mode::Steps).into();
        Ok((common, None))
    }
}

/// Returns buffers of plans that are gone to the pool.
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

/// The handles of a program, all of them live.
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
        self.bases.iter().try_for_each(|v| store.basis_address(*v, operation).map(drop))?;
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
    /// The section of an operation in the order of the steps: setup, restart, each.
    pub(crate) fn restart(&self) -> &[(Step, Kernel)] {
        &self.steps[SECTION_RESTART as usize]
    }
    /// The steps of an iteration.
    pub(crate) fn each(&self) -> &[(Step, Kernel)] {
        &self.steps[SECTION_EACH as usize]
    }
}

impl Step {
    /// How this step is launched on a device with that many multiprocessors.
    fn launch(&self, units: u32) -> Launch {
        let blocks = self.blocks.min(units * BLOCKS_PER_UNIT).max(1);
        Launch { blocks, threads: 256, shared: self.shared, cooperative: false }
    }
    /// Queues this step.
    pub(crate) fn queue(&self, driver: &Driver, kernel: Kernel, common: &Common) -> Result<()> {
        let (mut common, mut op) = (*common, self.op.clone());
        let mut arguments = [(&raw mut common).cast::<c_void>(), (&raw mut *op).cast()];
        // SAFETY: the kernel takes `Common` and `StreamOp`; `prepare` resolved every address from live handles, which
        // `Handles::check` found live again before this run, and made the buffers large enough for the operation.
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
    // SAFETY: the kernel takes `Common`, whose addresses are of live buffers.
    unsafe { driver.launch("start", kernel, how, &mut arguments) }
}

/// Queues the kernel that runs a whole program.
pub(crate) fn queue_whole(driver: &Driver, whole: &Whole, args: &ProgramArgs) -> Result<()> {
    let mut args = *args;
    let mut arguments = [(&raw mut args).cast::<c_void>()];
    // SAFETY: the kernel takes `ProgramArgs`; its addresses are of buffers of live handles and of this plan.
    unsafe { driver.launch("program", whole.kernel, whole.launch, &mut arguments) }
}

/// One operation alone, for [`Backend::step`](lacuna_core::Backend::step).
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
