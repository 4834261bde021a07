//! The CPU backend: one parallel region for a whole program.
//!
//! The backend's own thread pool splits the rows at segment boundaries, balanced by nonzeros; each thread
//! keeps its share and waits for the others at a spinning barrier after each operation that needs it. Every
//! thread evaluates the cell instructions itself, so that one barrier is enough. Within a share, a pass runs
//! in chunks that stay in the first-level cache. Small programs run on the calling thread. None of this
//! affects the bits of the result.
mod pass;
mod plan;
mod run;
mod simd;
mod spmm;
mod spmv;
mod tri_solve;

use lacuna_engine::{
    Backend, Basis, Cell, Cells, Control, Cost, DeviceInfo, Error, Finish, Format, History, HostStore, Mark,
    Matrix, Op, Pass, Plan, Program, Result, Run, Scalar, Vector, check_process,
};
use plan::compile::Compiled;
use pulp::Arch;
use run::arena::Arena;
use run::execute::Start;
use run::threads::Threads;
use simd::instances::Instance;
use std::sync::Arc;

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

impl CpuOptions {
    /// The default of [`CpuOptions::parallel_from`]: the measured size from which two threads are faster.
    pub const PARALLEL_FROM: usize = 12_000;
}

/// The CPU as a device.
pub struct Cpu {
    store: HostStore,
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
    /// [`Error::Argument`] for 0 threads or more than rayon has, or as [`check_process`].
    pub fn with(options: CpuOptions) -> Result<Self> {
        check_process("starting threads")?;
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
    /// [`Error::Argument`] if the options ask for a different number of threads, or as [`check_process`].
    pub fn on_pool(pool: Arc<rayon::ThreadPool>, options: CpuOptions) -> Result<Self> {
        check_process("computing on a pool")?;
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
            threads,
            arch: arch(options.simd),
            parallel_from: options.parallel_from.unwrap_or(CpuOptions::PARALLEL_FROM),
            gather: options.gather,
        }
    }

    /// The number of sweeps in a plan's iteration that update several vectors, and how many of these run as
    /// one loop over all vectors if there are vector instructions, as do the sweeps of the library's methods
    /// for real numbers; the rest are interpreted. `None` for a plan of another backend.
    pub fn loops<T: Scalar>(plan: &Plan<T>) -> Option<(usize, usize)> {
        let Prepared { compiled, .. } = plan.prepared.downcast_ref::<Prepared<T>>()?;
        let sweeps = || {
            let [.., each] = &compiled.sections;
            each.iter().filter(|step| matches!(step.kind, plan::step::Kind::Sweep) && step.updates.len() > 1)
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
struct Prepared<T: Scalar> {
    compiled: Compiled<T>,
    arena: Arena<T>,
    /// The store's generation for which the matrices were resolved.
    generation: u64,
}

impl<T: Scalar> Prepared<T> {
    fn new(program: &Program<T>, store: &HostStore, threads: usize) -> Result<Self> {
        let compiled = Compiled::new(program, store, threads)?;
        let arena = Arena::new(&compiled, threads);
        Ok(Prepared { compiled, arena, generation: store.generation() })
    }
}

impl Cpu {
    fn prepare<T: Scalar>(&self, program: &Program<T>) -> Result<Prepared<T>> {
        (Instance::get().prepare)(program, &self.store, self.threads())
    }
}

impl Backend for Cpu {
    fn device(&self) -> DeviceInfo {
        let instructions = format!("{:?}", self.arch).split('(').next().unwrap_or("?").to_string();
        DeviceInfo {
            backend: "cpu",
            name: processor_name(),
            units: self.threads(),
            memory: None,
            details: vec![("instructions", instructions)],
        }
    }
    fn formats(&self, _: usize, _: usize) -> &'static [Cost] {
        &spmv::COSTS
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
        lacuna_engine::reference_step(&mut self.store, op, control, history)
    }

    fn plan<T: Scalar>(&mut self, program: Program<T>) -> Result<Plan<T>> {
        self.store.check(&program)?;
        let prepared = Box::new(self.prepare(&program)?);
        Ok(Plan { program, prepared })
    }

    fn execute<T: Scalar>(&mut self, plan: &mut Plan<T>, run: Run<'_>) -> Result<Finish> {
        check_process(plan.program.name)?;
        let Plan { program, prepared } = plan;
        let Some(prepared) = prepared.downcast_mut::<Prepared<T>>() else {
            return Err(Error::Stale { operation: program.name.into(), what: "plan" });
        };
        if prepared.generation != self.store.generation() {
            self.store.check(program)?;
            *prepared = self.prepare(program)?;
        }
        let Prepared { compiled, arena, .. } = prepared;
        let (store, name) = (&mut self.store, program.name);
        let vectors = compiled.vector.map_or(Ok(()), |v| store.starts(v, name, &mut arena.vectors));
        let cells = || compiled.cell.map_or(Ok(()), |c| store.check_cell(c, name));
        let matrices = || compiled.matrix.map_or(Ok(()), |a| store.format(a, name).map(drop));
        if let Err(stale) = vectors.and_then(|()| cells()).and_then(|()| matrices()) {
            return Err(store.check(program).err().unwrap_or(stale)); // names the pass
        }
        let helpers = if compiled.work >= self.parallel_from { self.threads.helpers()? } else { None };
        let start = Start {
            cells: self.store.all_cells_mut::<T>(),
            history: run.history,
            limit: run.limit,
            arch: self.arch,
            helpers,
            gather: self.gather,
        };
        // SAFETY: the pointers were resolved just now, all vectors are live, and `self` is borrowed for the
        // run.
        let control = unsafe { (Instance::get().run)(program, compiled, arena, start, run.watch) }?;
        Ok(Finish::of(program, &control))
    }
}

/// The processor's name, if the system reports it.
fn processor_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split(':').nth(1)).map_or("CPU".into(), |name| name.trim().into())
}
