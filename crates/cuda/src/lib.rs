//! The CUDA backend: whole solves on the device.
//!
//! A program runs in one of three ways, all with equal bits: see [`Mode`]. The kernels are compiled when the
//! crate is built, and embedded; at run time only the driver is needed. If NVRTC, the compiler of the CUDA
//! toolkit, is found at run time, a kernel is generated and compiled for each program that loops: see
//! [`Compile`]. [`Cuda::new`] returns an error if there is no driver or device.
mod algebra;
mod carrier;
mod compiler;
mod device;
mod driver;
mod execute;
mod jit;
mod launches;
mod memory;
mod options;
mod plan;
mod plan_cache;
mod store;
mod transfer;

pub use compiler::compiler_found;
pub use device::devices;
pub use options::{Compile, CudaOptions, Mode};

use crate::algebra::{Algebra, Workspace};
use crate::driver::Driver;
use crate::execute::Runner;
use crate::memory::Buffer;
use crate::plan::{Owned, Planner, Prepared, single, sweep_up};
use crate::plan_cache::{Entries, Kept};
use crate::store::Store;
use lacuna_engine::cells::{Instr, Machine, Unary};
use lacuna_engine::{
    Backend, Basis, Cell, Cells, CompressedRows, Control, Cost, DeviceInfo, Error, Finish, Format, Graph,
    History, Kind, Mark, Matrix, Op, OpKind, Plan, Program, Result, Run, Scalar, StepByStep, Vector, encode,
    host_call, step_by_step,
};
use lacuna_gpu::PlanCache;
use lacuna_gpu::algebra::{distance_two_set, sparse_product};
use rayon::prelude::*;
use std::sync::Arc;

/// A backend on an NVIDIA GPU.
pub struct Cuda {
    store: Store,
    owned: Vec<Owned>,
    /// What plans share with later plans.
    plans: PlanCache<Entries, Kept>,
    /// Of sparse algebra.
    workspace: Workspace,
    history: Option<Buffer>,
    mode: Mode,
    compile: Compile,
    driver: Driver,
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
        let (mode, compile) = (options.mode()?, options.compile()?);
        let driver = Driver::open(&options.device())?;
        let (store, owned, plans) = (Store::new(), Vec::new(), PlanCache::default());
        Ok(Cuda {
            store,
            owned,
            plans,
            workspace: Workspace::default(),
            history: None,
            mode,
            compile,
            driver,
        })
    }
    /// Sets how programs planned from now on are executed.
    pub fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }
    /// Device allocations that the driver has made so far; a second solve must not add any.
    pub fn allocations(&self) -> usize {
        self.store.pool.allocations
    }
    /// How a plan of this backend is executed: `Graph` becomes `Jit` in the first run that finds the kernel
    /// compiled.
    pub fn mode_of<T: Scalar>(plan: &Plan<T>) -> Option<Mode> {
        plan.prepared.downcast_ref::<Prepared<T>>().map(|p| p.mode)
    }
    /// Waits until the stream is empty.
    ///
    /// # Errors
    /// [`Error::Device`] if a kernel faulted.
    pub fn wait(&self) -> Result<()> {
        self.driver.wait("waiting")
    }

    /// Copies `bytes` bytes on the device `times` times and returns the seconds of one copy. The bandwidth of
    /// the device is twice the bytes in that time.
    ///
    /// # Errors
    /// Device failures.
    pub fn time_copy(&mut self, bytes: usize, times: u32) -> Result<f64> {
        let count = bytes / 16;
        let from = self.store.pool.take_zeroed(&self.driver, bytes, "a copy")?;
        let to = match self.store.pool.take_zeroed(&self.driver, bytes, "a copy") {
            Ok(to) => to,
            Err(error) => {
                self.store.pool.give(from);
                return Err(error);
            }
        };
        let timed = self.time_copies(from.address, to.address, count as u64, times);
        self.store.pool.give(from);
        self.store.pool.give(to);
        timed
    }

    fn time_copies(&mut self, from: u64, to: u64, count: u64, times: u32) -> Result<f64> {
        let kernel = self.driver.kernel("copy_bytes")?;
        let (mut from, mut to, mut count) = (from, to, count);
        let blocks = self.driver.limits.multiprocessors * 8;
        let how = driver::Launch { blocks, threads: 256, shared: 0, cooperative: false };
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
        let there = self.store.pool.take_zeroed(&self.driver, bytes, "a copy")?;
        let driver = &self.driver;
        let mut fastest = [f64::INFINITY; 2];
        let timed = (0..10).try_for_each(|i| {
            driver.wait("a copy")?;
            let start = std::time::Instant::now();
            match i % 2 {
                0 => driver.send(&host, 0, bytes, there.address)?,
                _ => driver.fetch(there.address, &host, 0, bytes)?,
            }
            driver.wait("a copy")?;
            fastest[i % 2] = fastest[i % 2].min(start.elapsed().as_secs_f64());
            Ok(())
        });
        self.store.pool.give(there);
        timed.map(|()| fastest)
    }

    fn workshop(&mut self) -> Planner<'_> {
        let Cuda { store, owned, plans, mode, compile, driver, .. } = self;
        Planner { driver, store, owned, plans, mode: *mode, compile: *compile }
    }

    /// Runs `make`; if memory runs out, clears the caches of plans and retries once.
    fn making_room<X>(&mut self, mut make: impl FnMut(&mut Self) -> Result<X>) -> Result<X> {
        self.driver.enter()?;
        match make(self) {
            Err(Error::OutOfMemory { .. }) if self.workspace.clear(&self.driver) | self.plans.clear() => {
                sweep_up(&mut self.owned, &mut self.store.pool);
                make(self)
            }
            made => made,
        }
    }

    fn algebra(&mut self, kind: Kind) -> Algebra<'_> {
        Algebra { driver: &mut self.driver, kind, workspace: self.workspace.clone() }
    }

    /// Sparse algebra, unless memory is too small for it.
    fn unless_too_large<X>(&mut self, make: impl FnMut(&mut Self) -> Result<Option<X>>) -> Result<Option<X>> {
        match self.making_room(make) {
            Err(Error::OutOfMemory { .. }) => Ok(None),
            made => made,
        }
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        lacuna_gpu::background::leave();
        if self.driver.enter().is_ok() {
            // A failure was reported before; what is freed below then goes with the context.
            let _ = self.driver.wait("closing the device");
            let Cuda { store, owned, workspace, history, driver, .. } = self;
            workspace.clear(driver);
            for buffer in owned.drain(..).flat_map(|o| o.buffers).chain(history.take()) {
                store.pool.give(buffer);
            }
            store.free(driver);
            driver.free_pinned();
        }
    }
}

impl Backend for Cuda {
    fn device(&self) -> DeviceInfo {
        self.driver.limits.info()
    }
    fn formats(&self, rows: usize, bytes: usize) -> &'static [Cost] {
        let limits = &self.driver.limits;
        lacuna_gpu::costs(rows, limits.multiprocessors as usize, bytes, limits.cache)
    }
    fn vector<T: Scalar>(&mut self, n: usize) -> Result<Vector<T>> {
        Ok(Backend::basis::<T>(self, n, 1)?.column(0))
    }
    fn basis<T: Scalar>(&mut self, n: usize, columns: usize) -> Result<Basis<T>> {
        self.making_room(|this| this.store.basis::<T, T>(&this.driver, n, columns))
    }
    fn narrow_basis<T: Scalar>(&mut self, n: usize, columns: usize) -> Result<Basis<T>> {
        self.making_room(|this| this.store.basis::<T, T::Narrow>(&this.driver, n, columns))
    }
    fn cells<T: Scalar>(&mut self, count: usize) -> Result<Cells<T>> {
        self.store.new_cells(&self.driver, count)
    }
    fn matrix<T: Scalar>(&mut self, a: Arc<dyn Format<T>>) -> Result<Matrix<T>> {
        a.prepare()?;
        if a.triangle().is_none() {
            launches::product_kernel(a.kernel())?;
        }
        self.making_room(|this| this.store.matrix(&this.driver, a.clone()))
    }
    fn set_matrix<T: Scalar>(&mut self, a: Matrix<T>, to: Arc<dyn Format<T>>) -> Result<()> {
        self.driver.enter()?;
        self.store.set_matrix(&self.driver, a, to)?;
        self.plans.retain(|serial| serial != a.serial);
        Ok(())
    }
    fn mark(&self) -> Mark {
        self.store.mark()
    }
    fn release(&mut self, mark: Mark) {
        self.store.release(mark);
        self.plans.retain(|serial| self.store.has_matrix(serial));
        sweep_up(&mut self.owned, &mut self.store.pool);
    }
    fn upload<T: Scalar>(&mut self, from: &[T], to: Vector<T>) -> Result<()> {
        Error::check_length("upload", "the host slice", to.len, from.len())?;
        let address = self.store.address(to, "upload")?;
        if to.narrow {
            let rounded: Vec<T::Narrow> = from.par_iter().map(|number| number.narrowed()).collect();
            self.driver.enter()?;
            return self.driver.upload(&rounded, address, "upload");
        }
        self.driver.enter()?;
        self.driver.upload(from, address, "upload")
    }
    fn clear<T: Scalar>(&mut self, v: Vector<T>) -> Result<()> {
        let address = self.store.address(v, "clear")?;
        self.driver.enter()?;
        self.driver.zero(address, v.bytes())
    }
    fn download<T: Scalar>(&mut self, from: Vector<T>, to: &mut [T]) -> Result<()> {
        Error::check_length("download", "the host slice", from.len, to.len())?;
        let address = self.store.address(from, "download")?;
        self.driver.enter()?;
        if from.narrow {
            let mut stored = vec![<T::Narrow as Default>::default(); to.len()];
            self.driver.download(address, &mut stored, "download")?;
            to.iter_mut().zip(stored).for_each(|(to, number)| *to = T::widened(number));
            return Ok(());
        }
        self.driver.download(address, to, "download")
    }
    fn write<T: Scalar>(&mut self, cell: Cell<T>, value: T) -> Result<()> {
        self.driver.enter()?;
        self.store.write(&self.driver, cell, value)
    }
    fn read<T: Scalar>(&mut self, cells: &[Cell<T>]) -> Result<Vec<T>> {
        cells.iter().try_for_each(|c| self.store.check_cell(*c, "read"))?;
        self.driver.enter()?;
        let host = self.store.host_cells::<T>(&self.driver)?;
        Ok(cells.iter().map(|c| host[c.index as usize]).collect())
    }

    fn sparse_product<T: Scalar>(&mut self, factors: &[&dyn Format<T>]) -> Result<Option<CompressedRows<T>>> {
        self.unless_too_large(|this| sparse_product::<T, _>(&mut this.algebra(T::KIND), factors))
    }
    fn distance_two_set(&mut self, graph: Graph<'_>, priorities: &[u64]) -> Result<Option<Vec<u32>>> {
        self.unless_too_large(|this| distance_two_set(&mut this.algebra(Kind::F32), graph, priorities))
    }
    fn has_fast_sparse_algebra(&self) -> bool {
        true
    }
    fn finish_sparse_algebra(&mut self) {
        if self.driver.enter().is_ok() {
            self.workspace.clear(&self.driver);
        }
    }

    fn step<T: Scalar>(&mut self, op: &Op<T>, control: &mut Control, history: &mut History) -> Result<()> {
        self.driver.enter()?;
        self.store.check_cells_of(op)?;
        let mut machine = Machine {
            cells: std::mem::take(self.store.host_cells::<T>(&self.driver)?),
            control: *control,
            history: std::mem::take(history),
        };
        let goes_on = machine.run(&op.sweep.before);
        *self.store.host_cells::<T>(&self.driver)? = std::mem::take(&mut machine.cells);
        self.store.host_changed::<T>();
        let mut done = Ok(());
        if goes_on {
            done = self.sweep_alone(op).and_then(|copies| {
                machine.cells = std::mem::take(self.store.host_cells::<T>(&self.driver)?);
                machine.run(&copies);
                machine.run(&op.sweep.after);
                *self.store.host_cells::<T>(&self.driver)? = std::mem::take(&mut machine.cells);
                self.store.host_changed::<T>();
                Ok(())
            });
        }
        (*control, *history) = (machine.control, machine.history);
        done
    }

    fn plan<T: Scalar>(&mut self, program: Program<T>) -> Result<Plan<T>> {
        if program.calls_host() {
            self.store.check(&program)?;
            return Ok(Plan { program, prepared: Box::new(StepByStep) });
        }
        let prepared = self.making_room(|this| this.workshop().prepare(&program))?;
        Ok(Plan { program, prepared: Box::new(prepared) })
    }

    fn execute<T: Scalar>(&mut self, plan: &mut Plan<T>, run: Run<'_>) -> Result<Finish> {
        self.driver.enter()?;
        if plan.prepared.is::<StepByStep>() {
            self.store.check(&plan.program)?;
            return step_by_step(self, plan, run);
        }
        let stale = || Error::Stale { operation: plan.program.name.into(), what: "plan" };
        let prepared = plan.prepared.downcast_mut::<Prepared<T>>().ok_or_else(stale)?;
        if !self.owned.iter().any(|o| Arc::ptr_eq(&o.alive, &prepared.alive)) {
            return Err(stale());
        }
        if prepared.jit.is_some() && prepared.generation != self.store.generation {
            *prepared = self.making_room(|this| this.workshop().prepare(&plan.program))?;
            sweep_up(&mut self.owned, &mut self.store.pool);
        }
        if prepared.compiling.as_ref().is_some_and(compiler::Job::is_done) {
            prepared.compiling = None;
            let mut workshop = Planner { mode: Mode::Auto, compile: Compile::Auto, ..self.workshop() };
            // If there is no memory for it, the graph stays in use.
            if let Ok(jit) = workshop.prepare(&plan.program) {
                *prepared = jit;
            }
        }
        let Cuda { store, history, driver, .. } = self;
        Runner { driver, store, history }.run(&plan.program, prepared, run)
    }
}

impl Cuda {
    /// The sweep of one operation without its instructions. Returns instructions that copy the sums to
    /// further cells.
    fn sweep_alone<T: Scalar>(&mut self, op: &Op<T>) -> Result<Vec<Instr>> {
        if let OpKind::Host { f, x, y } = &op.kind {
            return host_call(self, f, *x, *y).map(|()| Vec::new());
        }
        let program = single(op);
        if program.setup.is_empty() {
            return Ok(Vec::new());
        }
        let mode = std::mem::replace(&mut self.mode, Mode::Stream);
        let prepared = self.workshop().prepare(&program);
        self.mode = mode;
        let mut prepared = prepared?;
        (prepared.common.cells, prepared.common.alone) = (self.store.device_cells::<T>(&self.driver)?, 1);
        let encoded = &prepared.encoded;
        self.store.device_changes::<T>(encoded.cells.start as usize..encoded.cells.end as usize);
        for (step, _) in &prepared.steps[0] {
            let kernel = self.driver.kernel(&step.kernel_name(T::KIND))?;
            step.queue(&self.driver, kernel, &prepared.common)?;
        }
        self.driver.wait("running an operation")?;
        let after = encoded.op(0, encode::OP_AFTER) as usize;
        let copies = encoded.op(0, encode::OP_COPIES) * encode::INSTR_WORDS;
        let copy = |w: &[u32]| Instr::Unary {
            op: Unary::Copy,
            dst: w[encode::INSTR_DST as usize],
            a: w[encode::INSTR_A as usize],
        };
        let words = &encoded.words[after..after + copies as usize];
        Ok(words.chunks(encode::INSTR_WORDS as usize).map(copy).collect())
    }
}
