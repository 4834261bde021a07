//! The backend: what it keeps, and its methods.
use crate::algebra::{Algebra, Kept as KeptMatrices};
use crate::compiler::Job;
use crate::divided::Staging;
use crate::driver::{Driver, Launch};
use crate::execute::Runner;
use crate::launches::product_kernel;
use crate::memory::{Buffer, Pool};
use crate::options::{CudaOptions, Mode, Wanted};
use crate::plan::{Executable, Planned, Planner};
use crate::plan_cache::{Kept, RepackedBuffers};
use crate::store::Store;
use lacuna_engine::arena::Table;
use lacuna_engine::cells::Machine;
use lacuna_engine::lower::Sweep;
use lacuna_engine::{
    AnyFormat, Backend, Basis, Cell, Cells, Cost, DeviceInfo, Each, Error, Finish, FormatRefs, Graph, Matrix,
    Number, NumberType, Op, OpKind, PlanId, Products, Program, Resource, Result, Run, Scalar, State, Vector,
    catching, step_by_step, with_each, with_number,
};
use lacuna_gpu::algebra::{Session, SharedArrays, distance_two_set, sparse_product};
use lacuna_gpu::{PlanCache, check_type};
use std::sync::Arc;

/// A backend on an NVIDIA GPU.
pub struct Cuda {
    pub(crate) plans: Table<Planned>,
    /// What plans share with later plans.
    cache: PlanCache<RepackedBuffers, Kept>,
    pub(crate) store: Store,
    pub(crate) staging: Staging,
    /// Whether it runs its part of each operation, and no program by itself.
    is_part: bool,
    /// Of sparse algebra.
    workspace: Pool,
    /// Those of set-ups.
    arrays: SharedArrays<Arc<Buffer>>,
    /// Room for histories, on the device.
    history: Option<Buffer>,
    wanted: Wanted,
    pub(crate) driver: Driver,
}

impl Cuda {
    /// A backend on the first device, or the one `LACUNA_CUDA_DEVICE` names.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no driver or device, [`Error::Unsupported`] if the device is older than
    /// Turing.
    pub fn new() -> Result<Self> {
        Self::with(&CudaOptions::default())
    }
    /// A backend with the given options.
    ///
    /// # Errors
    /// As [`Cuda::new`], and [`Error::Argument`] for a mode that does not exist.
    pub fn with(options: &CudaOptions) -> Result<Self> {
        let wanted = options.wanted()?;
        Ok(Cuda {
            plans: Table::default(),
            cache: PlanCache::default(),
            store: Store::default(),
            staging: Staging::default(),
            is_part: false,
            workspace: Pool::default(),
            arrays: SharedArrays::default(),
            history: None,
            wanted,
            driver: Driver::open(&options.device_name())?,
        })
    }
    /// A backend that is one of several which share every system: its plans are for [`Divided`](lacuna_engine::Divided), and what
    /// runs a program by itself goes step by step.
    ///
    /// # Errors
    /// As [`Cuda::with`].
    pub fn part(options: &CudaOptions) -> Result<Self> {
        let mut part = Cuda::with(options)?;
        part.is_part = true;
        Ok(part)
    }
    /// Sets how programs planned from now on are executed.
    pub fn set_mode(&mut self, mode: Mode) {
        self.wanted.mode = mode;
    }
    /// Device allocations that the driver has made so far; a second solve must not add any.
    pub fn allocations(&self) -> usize {
        self.store.pool.allocations()
    }
    /// Bytes of device memory in use, without what is kept for reuse.
    pub fn in_use_bytes(&self) -> usize {
        self.store.pool.in_use() + self.workspace.in_use()
    }
    /// How a plan is executed: `Graph` becomes `Jit` in the first run that finds the kernel compiled. `None` for one that
    /// calls functions of the host, or is not there.
    pub fn mode_of(&self, plan: PlanId) -> Option<Mode> {
        self.plans.get(plan.index, plan.serial)?.prepared.as_ref().map(|prepared| prepared.mode)
    }
    /// Waits until the stream is empty.
    ///
    /// # Errors
    /// [`Error::Device`] if a kernel faulted.
    pub fn wait(&self) -> Result<()> {
        self.driver.enter()?;
        self.driver.wait("waiting")
    }

    /// Copies `bytes` bytes on the device `times` times and returns the seconds of one copy. The bandwidth of
    /// the device is twice the bytes in that time.
    ///
    /// # Errors
    /// Device failures.
    pub fn time_copy(&mut self, bytes: usize, times: u32) -> Result<f64> {
        self.driver.enter()?;
        let buffer = || self.store.pool.zeroed(&self.driver, bytes, "a copy");
        let (source, target) = (buffer()?, buffer()?);
        let kernel = self.driver.kernel("copy_bytes")?;
        let (mut from, mut to, mut count) = (source.address, target.address, (bytes / 16) as u64);
        let blocks = self.driver.limits.multiprocessors * 8;
        let how = Launch { blocks, threads: 256, shared: 0, cooperative: false };
        let mut start = std::time::Instant::now();
        for i in 0..=times {
            if i == 1 {
                self.driver.wait("a copy")?;
                start = std::time::Instant::now();
            }
            let mut arguments = [(&raw mut from).cast(), (&raw mut to).cast(), (&raw mut count).cast()];
            // SAFETY: the kernel takes two addresses and a count of 16-byte words that both buffers hold.
            unsafe { self.driver.launch("copy_bytes", kernel, how, &mut arguments) }?;
        }
        self.driver.wait("a copy")?;
        Ok(start.elapsed().as_secs_f64() / f64::from(times.max(1)))
    }

    /// Seconds that the fastest of five copies of `bytes` bytes takes from page-locked memory to the device,
    /// and back: the limit of the link.
    ///
    /// # Errors
    /// Device failures.
    pub fn time_link(&mut self, bytes: usize) -> Result<[f64; 2]> {
        self.driver.enter()?;
        let host = self.driver.pinned(bytes)?;
        let there = self.store.pool.zeroed(&self.driver, bytes, "a copy")?;
        let driver = &self.driver;
        let mut fastest = [f64::INFINITY; 2];
        for i in 0..10 {
            driver.wait("a copy")?;
            let start = std::time::Instant::now();
            match i % 2 {
                0 => driver.send(&host, 0, bytes, there.address)?,
                _ => driver.fetch(there.address, &host, 0, bytes)?,
            }
            driver.wait("a copy")?;
            fastest[i % 2] = fastest[i % 2].min(start.elapsed().as_secs_f64());
        }
        Ok(fastest)
    }

    fn planner(&mut self, wanted: Wanted) -> Planner<'_> {
        let Cuda { driver, store, cache, .. } = self;
        Planner { driver, store, cache, wanted }
    }

    /// Runs `make`; if memory runs out, frees what is kept for later and retries once.
    fn making_room<X>(&mut self, mut make: impl FnMut(&mut Self) -> Result<X>) -> Result<X> {
        self.driver.enter()?;
        match make(self) {
            Err(Error::OutOfMemory { .. })
                if self.cache.clear()
                    | self.workspace.clear(&self.driver)
                    | self.store.pool.clear(&self.driver) =>
            {
                make(self)
            }
            made => made,
        }
    }

    fn algebra(&mut self, kind: NumberType) -> Algebra<'_> {
        Algebra { driver: &mut self.driver, kind, workspace: self.workspace.clone() }
    }

    /// Sparse algebra, unless memory is too small for it.
    fn unless_too_large<X>(&mut self, make: impl FnMut(&mut Self) -> Result<Option<X>>) -> Result<Option<X>> {
        match self.making_room(make) {
            Err(Error::OutOfMemory { .. }) => Ok(None),
            made => made,
        }
    }

    /// Runs one operation: instructions on the host, the rest on the device.
    fn alone(&mut self, kind: OpKind, pass: &Sweep, state: State<'_>) -> Result<()> {
        Op { kind: kind.clone(), sweep: pass.clone() }.check()?;
        let op = Op { kind, sweep: pass.without_instructions() };
        self.driver.enter()?;
        self.store.check_op(&op)?;
        with_number!(pass.kind(), T => self.around::<T>(&op, pass, state))
    }
    fn around<T: Scalar>(&mut self, op: &Op, pass: &Sweep, state: State<'_>) -> Result<()> {
        let State { control, history } = state;
        let cells = self.store.cells_of(T::KIND).numbers::<T>(&self.driver)?;
        let mut machine = Machine { cells, control: *control, history: std::mem::take(history) };
        let done = catching(|| {
            let goes_on = machine.run(pass.before());
            self.store.cells_of(T::KIND).set_numbers(&machine.cells);
            if goes_on {
                if !matches!(op.kind, OpKind::Sweep) || !op.sweep.is_scalar() {
                    self.making_room(|this| this.planner(this.wanted).run_alone(op))?;
                }
                machine.cells = self.store.cells_of(T::KIND).numbers(&self.driver)?;
                machine.run(&op.sweep.distinct_dots().1);
                machine.run(pass.after());
                self.store.cells_of(T::KIND).set_numbers(&machine.cells);
            }
            Ok(())
        });
        (*control, *history) = (machine.control, machine.history);
        done
    }
    /// Runs a program that was prepared.
    fn run(&mut self, program: &Program, prepared: &mut Executable, run: Run<'_>) -> Result<Finish> {
        if prepared.checked != self.store.epoch {
            self.store.check(program)?;
            if prepared.jit.is_some() && prepared.values != self.store.values_of(&prepared.encoded.matrices) {
                *prepared = self.making_room(|this| this.planner(prepared.wanted).prepare(program))?;
            }
            prepared.checked = self.store.epoch;
        }
        if prepared.compiling.as_ref().is_some_and(Job::is_done) {
            prepared.compiling = None;
            // If there is no memory for it, the graph stays in use.
            if let Ok(jit) = self.planner(prepared.wanted).prepare(program) {
                *prepared = jit;
            }
        }
        let Cuda { store, history, driver, .. } = self;
        let finish = Runner { driver, store, history }.run(program, prepared, run);
        if finish.is_err() {
            // Nothing queued may outlive what it uses. The first error is the one to report.
            let _ = driver.wait("running a program");
        }
        finish
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        lacuna_gpu::background::leave();
        if self.driver.enter().is_ok() {
            // A failure was reported before; what is freed below then goes with the context.
            let _ = self.driver.wait("closing the device");
            self.plans = Table::default();
            self.arrays = SharedArrays::default();
            self.staging = Staging::default();
            self.cache.clear();
            self.history = None;
            // Its buffers go to its pool.
            let pool = self.store.pool.clone();
            self.store = Store::default();
            pool.clear(&self.driver);
            self.workspace.clear(&self.driver);
            self.driver.free_pinned();
        }
    }
}

impl Backend for Cuda {
    fn info(&self) -> DeviceInfo {
        self.driver.limits.info()
    }
    fn formats(&self, rows: usize, bytes: usize) -> &'static [Cost] {
        let limits = &self.driver.limits;
        lacuna_gpu::costs(rows, limits.multiprocessors as usize, bytes, limits.cache)
    }
    fn vectors(&mut self, kind: NumberType, n: usize, columns: usize, narrow: bool) -> Result<Basis> {
        self.making_room(|this| this.store.vectors(&this.driver, kind, n, columns, narrow))
    }
    fn cells(&mut self, kind: NumberType, count: usize) -> Result<Cells> {
        self.driver.enter()?;
        self.store.cells(&self.driver, kind, count)
    }
    fn matrix(&mut self, a: AnyFormat) -> Result<Matrix> {
        check_type(&a)?;
        let is_triangle = with_each!(&a, a => {
            a.prepare()?;
            a.kernel() == "triangular"
        });
        if !is_triangle {
            product_kernel(a.kernel())?;
        }
        self.making_room(|this| this.store.matrix(&this.driver, a.clone()))
    }
    fn set_matrix(&mut self, a: Matrix, to: AnyFormat) -> Result<()> {
        self.driver.enter()?;
        self.store.set_matrix(&self.driver, a, to)?;
        self.cache.forget(a.serial);
        Ok(())
    }
    fn free(&mut self, what: Resource) {
        // What a plan leaves to the driver is freed with the context if it cannot be entered.
        let _ = self.driver.enter();
        match what {
            Resource::Plan(plan) => return drop(self.plans.remove(plan.index, plan.serial)),
            Resource::Matrix(a) => self.cache.forget(a.serial),
            Resource::Vectors(_) | Resource::Cells(_) => {}
        }
        self.store.free(what);
    }

    fn upload(&mut self, from: &[u8], to: Vector) -> Result<()> {
        self.driver.enter()?;
        self.store.upload(&self.driver, from, to)
    }
    fn clear(&mut self, v: Vector) -> Result<()> {
        self.driver.enter()?;
        self.store.clear(&self.driver, v)
    }
    fn download(&mut self, from: Vector, to: &mut [u8]) -> Result<()> {
        self.driver.enter()?;
        self.store.download(&self.driver, from, to)
    }
    fn copy(&mut self, from: Vector, to: Vector) -> Result<()> {
        self.driver.enter()?;
        self.store.copy(&self.driver, from, to)
    }
    unsafe fn copy_in(&mut self, from: u64, to: Vector) -> Result<()> {
        self.driver.enter()?;
        self.driver.wait_for_all()?;
        // SAFETY: as the caller promises.
        unsafe { self.store.copy_in(&self.driver, from, to) }
    }
    unsafe fn copy_out(&mut self, from: Vector, to: u64) -> Result<()> {
        self.driver.enter()?;
        self.driver.wait_for_all()?;
        // SAFETY: as the caller promises.
        unsafe { self.store.copy_out(&self.driver, from, to) }
    }
    fn write(&mut self, cell: Cell, value: Number) -> Result<()> {
        self.driver.enter()?;
        self.store.cells_of(cell.kind).write(&self.driver, cell, value)
    }
    fn read(&mut self, cells: &[Cell], to: &mut [u8]) -> Result<()> {
        self.driver.enter()?;
        self.store.read(&self.driver, cells, to)
    }

    lacuna_engine::primitives_by!(alone);

    fn plan(&mut self, program: &Program) -> Result<PlanId> {
        let (mut prepared, mut parts) = (None, None);
        if self.is_part {
            parts = Some(self.making_room(|this| this.planner(this.wanted).parts(program))?);
        } else if program.calls_host() {
            self.store.check(program)?;
        } else {
            prepared = Some(self.making_room(|this| this.planner(this.wanted).prepare(program))?);
        }
        let (index, serial) = self.plans.add(Planned { program: program.serial(), prepared, parts });
        Ok(PlanId { index, serial })
    }
    fn execute(&mut self, program: &Program, plan: PlanId, run: Run<'_>) -> Result<Finish> {
        let stale = || Error::Stale { operation: program.name().into(), what: "plan" };
        let kept = self.plans.get_mut(plan.index, plan.serial).ok_or_else(stale)?;
        program.check_plan(kept.program)?;
        let Some(mut prepared) = kept.prepared.take() else {
            self.store.check(program)?;
            return step_by_step(self, program, run);
        };
        let finish = self.driver.enter().and_then(|()| self.run(program, &mut prepared, run));
        if let Some(kept) = self.plans.get_mut(plan.index, plan.serial) {
            kept.prepared = Some(prepared);
        }
        finish
    }

    fn sparse_product(&mut self, factors: &[Each<FormatRefs<'_>>]) -> Result<Option<Each<Products>>> {
        let kind = factors.first().map_or(NumberType::F64, Each::kind);
        self.unless_too_large(|this| sparse_product(&mut this.algebra(kind), factors))
    }
    fn distance_two_set(&mut self, graph: Graph<'_>, priorities: &[u64]) -> Result<Option<Vec<u32>>> {
        self.unless_too_large(|this| distance_two_set(&mut this.algebra(NumberType::F32), graph, priorities))
    }
    fn has_fast_sparse_algebra(&self) -> bool {
        true
    }
    fn algebra(&mut self, kind: NumberType) -> Option<Box<dyn lacuna_engine::Algebra + '_>> {
        if self.is_part || kind == kind.narrow() || self.driver.enter().is_err() {
            return None;
        }
        let Cuda { driver, store, cache, arrays, workspace, .. } = self;
        let dev = Algebra { driver, kind, workspace: workspace.clone() };
        Some(Box::new(Session::new(dev, KeptMatrices { store, cache }, arrays.clone(), kind)))
    }
    fn finish_sparse_algebra(&mut self) {
        if self.driver.enter().is_ok() {
            self.workspace.clear(&self.driver);
        }
    }
}
