//! The CPU backend: one parallel region for a whole program.
//!
//! The backend's own thread pool splits the rows at segment boundaries, balanced by nonzeros; each thread
//! keeps its share and waits for the others at a spinning barrier after each operation that needs it. Every
//! thread evaluates the cell instructions itself, so that one barrier is enough. Within a share, a pass runs
//! in chunks that stay in the first-level cache. Small programs run on the calling thread. None of this
//! affects the bits of the result.
mod divided;
mod pass;
mod plan;
mod run;
mod simd;
mod spmm;
mod spmv;
mod tri_solve;

use lacuna_engine::arena::Table;
use lacuna_engine::lower::Sweep;
use lacuna_engine::{
    Backend, Basis, Cells, Cost, DeviceInfo, Divided, Error, Finish, HostStore, OpKind, Pass, PlanId,
    Program, Resource, Result, Run, Scalar, State, Workers, reference, watched, with_each, with_number,
};
use plan::compile::Compiled;
use pulp::Arch;
use run::arena::{AnyArena, Arena};
use run::execute::Start;
use run::threads::Threads;
use std::sync::{Arc, OnceLock};

/// Which instructions the kernels use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Simd {
    /// The best that the processor supports.
    #[default]
    Best,
    /// At most AVX2 and FMA.
    Avx2,
    /// The baseline instructions of the architecture; fused multiply-adds in software if it has none.
    Baseline,
}

/// Options of a [`Cpu`].
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct CpuOptions {
    /// Number of threads; all cores by default.
    pub threads: Option<usize>,
    /// Instruction set.
    pub simd: Simd,
    /// Minimum number of entries and elements of the heaviest operation for a program to run on all threads
    /// rather than on the calling one; [`CpuOptions::PARALLEL_FROM`] by default.
    pub parallel_from: Option<usize>,
    /// Start only when all threads are available, and keep them to the end. Otherwise the calling thread
    /// starts at once, the others join when the system schedules them, and they leave for a while when other
    /// programs delay them; the results are bitwise the same.
    pub gather: bool,
}

lacuna_engine::setters!(CpuOptions {
    threads: impl Into<Option<usize>>,
    simd: Simd,
    parallel_from: impl Into<Option<usize>>,
    gather: bool,
});

impl CpuOptions {
    /// The default of [`CpuOptions::parallel_from`]: the measured size from which two threads are faster.
    pub const PARALLEL_FROM: usize = 12_000;
}

/// By what factor a program that calls functions of the caller's has to be larger to run on all threads.
const HOST_TIMES: usize = 16;

/// The CPU as a device.
pub struct Cpu {
    store: HostStore,
    plans: Table<Planned>,
    threads: Threads,
    arch: Arch,
    parallel_from: usize,
    gather: bool,
}

impl Cpu {
    /// A backend on all cores.
    ///
    /// # Errors
    /// As [`Cpu::with`].
    pub fn new() -> Result<Self> {
        Self::with(CpuOptions::default())
    }

    /// A backend with the given options. Its threads start with the first program large enough for them, which
    /// fails with [`Error::Device`] if they cannot.
    ///
    /// # Errors
    /// [`Error::Argument`] for 0 threads or more than rayon has.
    pub fn with(options: CpuOptions) -> Result<Self> {
        let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
        let threads = options.threads.unwrap_or_else(cores);
        let most = rayon::max_num_threads();
        if !(1..=most).contains(&threads) {
            let message = format!("expected 1 to {most}, got {threads}");
            return Err(Error::Argument { what: "threads".into(), message });
        }
        Ok(Self::on_threads(Threads::own(threads), options))
    }

    /// A backend that computes on a thread pool of the application, with as many threads as the pool has:
    /// including the calling thread if it belongs to the pool, otherwise with the calling thread in place of
    /// one of them. While the pool is busy with other work, a solve continues without it, unless
    /// [`gather`](CpuOptions::gather) is set, which it **must not** be if the pool's threads may wait for the
    /// solve.
    ///
    /// ```
    /// use lacuna_cpu::{Cpu, CpuOptions};
    /// use std::sync::Arc;
    ///
    /// let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build()?;
    /// let dev = Cpu::on_pool(Arc::new(pool), CpuOptions::default())?;
    /// assert_eq!(dev.threads(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`] if the options ask for a different number of threads.
    pub fn on_pool(pool: Arc<rayon::ThreadPool>, options: CpuOptions) -> Result<Self> {
        let threads = pool.current_num_threads();
        if let Some(asked) = options.threads.filter(|asked| *asked != threads) {
            let message = format!("expected the {threads} of the pool, got {asked}");
            return Err(Error::Argument { what: "threads".into(), message });
        }
        Ok(Self::on_threads(Threads::shared(pool), options))
    }

    fn on_threads(threads: Threads, options: CpuOptions) -> Self {
        Cpu {
            store: HostStore::new("cpu"),
            plans: Table::default(),
            threads,
            arch: arch(options.simd),
            parallel_from: options.parallel_from.unwrap_or(CpuOptions::PARALLEL_FROM),
            gather: options.gather,
        }
    }

    /// The number of sweeps in a plan's iteration that update several vectors, and how many of these run as
    /// one loop over all vectors if there are vector instructions, as do those of `cg` and `bicgstab` for real numbers; the
    /// rest are interpreted. `None` for a plan of another device.
    pub fn loops(&self, plan: PlanId) -> Option<(usize, usize)> {
        let Planned { compiled, .. } = self.plans.get(plan.index, plan.serial)?;
        let sweeps = || {
            let [.., each] = &compiled.sections;
            each.iter()
                .filter(|step| matches!(step.kind, plan::step::StepKind::Sweep) && step.updates.len() > 1)
        };
        Some((sweeps().count(), sweeps().filter(|step| step.fused.is_some()).count()))
    }

    /// The passes that have a loop of their own, each with the name of its form, over nine vectors; each has a
    /// coefficient of its own for every term. `c` has 15 cells, the first three for dot products.
    pub fn forms<T: Scalar>(v: Basis<T>, c: Cells<T>) -> impl Iterator<Item = (String, Pass<T>)> {
        pass::fused::listed(v, c)
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.threads.count()
    }
}

/// The instruction set for an option.
fn arch(simd: Simd) -> Arch {
    match simd {
        Simd::Best => Arch::new(),
        Simd::Baseline => Arch::Scalar,
        #[cfg(target_arch = "x86_64")]
        Simd::Avx2 => pulp::x86::V3::try_new().map_or(Arch::Scalar, Arch::V3),
        #[cfg(not(target_arch = "x86_64"))]
        Simd::Avx2 => Arch::Scalar,
    }
}

/// The CPU's form of a program.
struct Planned {
    /// The serial of the program.
    program: u32,
    compiled: Compiled,
    arena: AnyArena,
    /// The store's counts of what was freed and of matrices replaced, for which everything was resolved.
    epoch: u64,
    replaced: u64,
}

impl Planned {
    fn new(program: &Program, store: &mut HostStore, threads: usize) -> Result<Self> {
        store.check(program)?;
        let compiled = Compiled::new(program, store, threads)?;
        let arena = with_number!(program.kind(), T => {
            let mut arena = Arena::<T>::new(&compiled, threads);
            store.starts(&mut arena.vectors);
            T::each(arena)
        });
        let (program, epoch, replaced) = (program.serial(), store.epoch(), store.replaced());
        Ok(Planned { program, compiled, arena, epoch, replaced })
    }
}

impl Backend for Cpu {
    fn info(&self) -> DeviceInfo {
        let instructions = format!("{:?}", self.arch).split('(').next().unwrap_or("?").to_string();
        let info = DeviceInfo::new("cpu", processor_name(), self.threads());
        info.details(vec![("instructions", instructions)])
    }
    fn formats(&self, _: usize, _: usize) -> &'static [Cost] {
        &spmv::COSTS
    }
    fn workers(&self) -> Option<Arc<dyn Workers>> {
        Some(self.threads.workers())
    }
    fn divided(&mut self) -> Option<&mut dyn Divided> {
        Some(self)
    }
    lacuna_engine::host_memory!(store);
    lacuna_engine::primitives_by!(alone);
    fn free(&mut self, what: Resource) {
        match what {
            Resource::Plan(plan) => drop(self.plans.remove(plan.index, plan.serial)),
            what => self.store.free(what),
        }
    }

    fn plan(&mut self, program: &Program) -> Result<PlanId> {
        let prepared = Planned::new(program, &mut self.store, self.threads.count())?;
        let (index, serial) = self.plans.add(prepared);
        Ok(PlanId { index, serial })
    }

    fn execute(&mut self, program: &Program, plan: PlanId, run: Run<'_>) -> Result<Finish> {
        watched(run, |run| self.run(program, plan, run))
    }
}

impl Cpu {
    /// Runs one operation, element by element: slow, as programs are what this backend is for.
    fn alone(&mut self, kind: OpKind, pass: &Sweep, state: State<'_>) -> Result<()> {
        reference::operation(&mut self.store, &kind, pass, state)
    }
    /// Resolves again what has changed since the last run of a plan.
    fn resolve(&mut self, program: &Program, plan: PlanId) -> Result<()> {
        let Cpu { store, plans, threads, .. } = self;
        let prepared = find(plans, plan, program.name())?;
        program.check_plan(prepared.program)?;
        if prepared.replaced != store.replaced() {
            *prepared = Planned::new(program, store, threads.count())?;
        }
        if prepared.epoch != store.epoch() {
            store.check(program)?;
            with_each!(&mut prepared.arena, arena => store.starts(&mut arena.vectors));
            prepared.epoch = store.epoch();
        }
        Ok(())
    }
    /// Runs a program with a `watch` that does not panic.
    fn run(&mut self, program: &Program, plan: PlanId, run: Run<'_>) -> Result<Finish> {
        self.resolve(program, plan)?;
        let Cpu { store, plans, threads, arch, parallel_from, gather } = self;
        let Planned { compiled, arena, .. } = find(plans, plan, program.name())?;
        // Beside a function of the caller's, which all would wait for, only where much else is left to share.
        let from = if compiled.calls_host { HOST_TIMES * *parallel_from } else { *parallel_from };
        let helpers = if compiled.work >= from { threads.helpers()? } else { None };
        let control = with_each!(arena, arena => {
            let start = Start {
                cells: store.all_cells_mut(),
                history: run.history,
                limit: run.limit,
                arch: *arch,
                helpers,
                gather: *gather,
            };
            // SAFETY: all vectors were live when the pointers were resolved, nothing was freed since, and the
            // store is borrowed for the run.
            unsafe { run::execute::run(program, compiled, arena, start, run.watch) }
        })?;
        Ok(Finish::of(program, &control))
    }
}

/// The prepared form of a plan.
fn find<'a>(plans: &'a mut Table<Planned>, plan: PlanId, operation: &str) -> Result<&'a mut Planned> {
    let stale = || Error::Stale { operation: operation.into(), what: "plan" };
    plans.get_mut(plan.index, plan.serial).ok_or_else(stale)
}

/// The processor's name, if the system reports it. Reading it takes longer than a small solve.
fn processor_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let line = info.lines().find(|line| line.starts_with("model name"));
        line.and_then(|line| line.split(':').nth(1)).map_or("CPU".into(), |name| name.trim().into())
    })
}
