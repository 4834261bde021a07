//! The CPU backend: one parallel region for a whole program.
//!
//! Each thread of the backend's own pool keeps its share of the rows, cut at segment borders and balanced by nonzeros,
//! and meets the others at a spinning barrier after each operation that needs it. Cell instructions are evaluated by
//! every thread for itself, so that one meeting is enough. Inside a share a pass runs in chunks that stay in the
//! first-level cache. Small programs run on the calling thread. The bits do not depend on any of this.
mod apart;
mod barrier;
mod compile;
mod divide;
mod dot;
mod execute;
mod fused;
mod gather;
mod instances;
mod lanes;
mod numbers;
mod prefetch;
mod product;
mod share;
mod spmm;
mod spmm_bcsr;
mod spmm_csr;
mod spmm_dia;
mod spmm_sell;
mod spmv_bcsr;
mod spmv_csr;
mod spmv_dense;
mod spmv_dia;
mod spmv_hyb;
mod spmv_packed;
mod spmv_pkt;
mod spmv_sell;
mod spmv_stencil;
mod sweep;
mod sync;
mod team;
mod tri_solve;
mod turns;
mod update;
mod watch;

use compile::Compiled;
use execute::{Arena, Start};
use instances::Instance;
use lacuna_core::{
    Backend, Basis, Cell, Cells, Control, Cost, DeviceInfo, Error, Finish, Format, History, HostStore, Mark,
    Matrix, Op, Plan, Program, Result, Run, Scalar, Vector, check_process,
};
use pulp::Arch;
use std::sync::Arc;
use team::Helpers;

/// Which instructions the kernels use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Simd {
    /// The best the processor has.
    #[default]
    Best,
    /// AVX2 and FMA at the most.
    Avx2,
    /// The instructions every processor of the architecture has; fused multiply-adds in software where it has none.
    Baseline,
}

/// How a [`Cpu`] computes.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuOptions {
    /// Threads; all cores where not given.
    pub threads: Option<usize>,
    /// Instructions.
    pub simd: Simd,
    /// Entries and elements of the heaviest operation from which all threads work on a program, rather than the
    /// calling one; [`CpuOptions::PARALLEL_FROM`] where not given.
    pub parallel_from: Option<usize>,
    /// Begin only when all threads are there and keep them to the end. Otherwise the calling thread begins at once, the
    /// others join once the system runs them, and they part for a while when other programs hold them up; the results are
    /// the same to the bit.
    pub gather: bool,
}

impl CpuOptions {
    /// The default of [`CpuOptions::parallel_from`]: where two threads began to win when this was measured.
    pub const PARALLEL_FROM: usize = 12_000;
}

/// The CPU as a device.
pub struct Cpu {
    store: HostStore,
    /// The threads beside the caller's.
    pool: Option<Arc<rayon::ThreadPool>>,
    /// Whether the pool is the program's.
    shared: bool,
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

    /// A backend with the given options.
    ///
    /// # Errors
    /// [`Error::Argument`] for 0 threads, [`Error::Device`] where the threads cannot be had,
    /// or as [`check_process`].
    pub fn with(options: CpuOptions) -> Result<Self> {
        check_process("starting threads")?;
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let threads = options.threads.unwrap_or(cores);
        if threads == 0 {
            let message = "expected at least 1, got 0".into();
            return Err(Error::Argument { what: "threads".into(), message });
        }
        let pool = (threads > 1)
            .then(|| {
                rayon::ThreadPoolBuilder::new()
                    .num_threads(threads - 1)
                    .thread_name(|i| format!("lacuna-{}", i + 1))
                    .build()
            })
            .transpose()
            .map_err(|error| Error::Device {
                device: "cpu".into(),
                operation: format!("starting {threads} threads"),
                message: error.to_string(),
            })?;
        Ok(Self::on_threads(pool.map(Arc::new), false, options))
    }

    /// A backend that computes on the threads of a pool of the program's, as many as it has: with the calling thread where that is one of
    /// the pool's, else with the calling thread in the place of one of them. While they are busy with something else, a solve goes on
    /// without them, unless the options say [`gather`](CpuOptions::gather), which **must not** be where they may wait for the solve.
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
    /// [`Error::Argument`] where the options ask for another number of threads, or as [`check_process`].
    pub fn on_pool(pool: Arc<rayon::ThreadPool>, options: CpuOptions) -> Result<Self> {
        check_process("computing on a pool")?;
        let threads = pool.current_num_threads();
        if let Some(asked) = options.threads.filter(|asked| *asked != threads) {
            let message = format!("expected the {threads} of the pool, got {asked}");
            return Err(Error::Argument { what: "threads".into(), message });
        }
        Ok(Self::on_threads((threads > 1).then_some(pool), true, options))
    }

    fn on_threads(pool: Option<Arc<rayon::ThreadPool>>, shared: bool, options: CpuOptions) -> Self {
        Cpu {
            store: HostStore::new("cpu"),
            pool,
            shared,
            arch: arch(options.simd),
            parallel_from: options.parallel_from.unwrap_or(CpuOptions::PARALLEL_FROM),
            gather: options.gather,
        }
    }

    /// How many sweeps of a plan's iteration update several vectors, and how many of those are one loop over all of them where there
    /// are vector instructions, as the sweeps of the library's methods are in real numbers; any other is interpreted.
    /// `None` for a plan of another backend.
    pub fn loops<T: Scalar>(plan: &Plan<T>) -> Option<(usize, usize)> {
        let Prepared { compiled, .. } = plan.prepared.downcast_ref::<Prepared<T>>()?;
        let sweeps = || {
            let [.., each] = &compiled.sections;
            each.iter().filter(|step| matches!(step.kind, compile::Kind::Sweep) && step.updates.len() > 1)
        };
        Some((sweeps().count(), sweeps().filter(|step| step.fused.is_some()).count()))
    }

    /// Threads it computes with.
    pub fn threads(&self) -> usize {
        self.helpers().map_or(1, Helpers::threads)
    }

    fn helpers(&self) -> Option<Helpers<'_>> {
        self.pool.as_deref().map(|pool| Helpers { pool, shared: self.shared })
    }
}

/// The instruction set for a wish.
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
    /// That of the matrices it found.
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
        &product::COSTS
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
        lacuna_core::reference_step(&mut self.store, op, control, history)
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
            return Err(store.check(program).err().unwrap_or(stale)); // which names the pass
        }
        let shared = self.shared;
        let helpers = self.pool.as_deref().filter(|_| compiled.work >= self.parallel_from);
        let helpers = helpers.map(|pool| Helpers { pool, shared });
        let start = Start {
            cells: self.store.all_cells_mut::<T>(),
            history: run.history,
            limit: run.limit,
            arch: self.arch,
            helpers,
            gather: self.gather,
        };
        // SAFETY: the pointers were found just now, all vectors are live, and `self` is borrowed for the run.
        let control = unsafe { (Instance::get().run)(program, compiled, arena, start, run.watch) }?;
        Ok(Finish::of(program, &control))
    }
}

/// The processor's name, where the system tells.
fn processor_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split(':').nth(1)).map_or("CPU".into(), |name| name.trim().into())
}
