//! The backend: memory, transfer, planning.
use crate::compiler::{self, Entry, Source};
use crate::device;
use crate::driver::{Buffer, Driver, Kernel, Program as Built, Status};
use crate::jit::{Compiled, PlanCache};
use crate::plan::{HISTORY, Planned};
use crate::store::Store;
use crate::{Mode, OpenClOptions};
use lacuna_engine::arena::Table;
use lacuna_engine::{
    Algebra, AnyFormat, Backend, Basis, Cell, Cells, Cost, DeviceInfo, Each, Error, Finish, FormatRefs,
    Graph, Matrix, Number, NumberType, PlanId, Products, Program, Resource, Result, Run, Vector,
};
use lacuna_gpu::algebra::SharedArrays;
use std::collections::HashMap;
use std::sync::Arc;

/// Cost of a byte in each format when a work-item takes a whole segment, from bandwidths of products on PoCL
/// (a 5-point grid, elasticity, stencils). Packed and dense rows and packets were not measured.
const BY_SEGMENTS: [Cost; 11] = [
    Cost::of_bytes("csr", 1.0),
    Cost::of_bytes("packed", 1.5),
    Cost::of_bytes("pkt", 1.0),
    Cost::of_bytes("dense", 1.0),
    Cost::of_bytes("stencil", 1.4),
    Cost::of_bytes("dia", 0.5),
    Cost::of_bytes("sell", 0.6),
    Cost::of_bytes("ell", 0.6),
    Cost::of_bytes("bcsr", 1.3),
    Cost::of_bytes("hyb", 1.0),
    Cost::of_bytes("coo", 1.0),
];

/// An OpenCL device with its memory and an in-order queue.
///
/// ```no_run
/// use lacuna_opencl::{OpenCl, OpenClOptions};
///
/// let dev = OpenCl::new(OpenClOptions::from_env()?)?;
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
pub struct OpenCl {
    // Kernels, programs and buffers come first: the context must be dropped last.
    /// Built parts of the library: entry points of a number type.
    library: Vec<(NumberType, Vec<Entry>, Built)>,
    /// Generated programs, by text.
    pub(crate) generated: HashMap<String, Compiled>,
    /// Programs to compile once the kernels of launches are built.
    pub(crate) to_compile: Vec<(Compiled, Source)>,
    pub(crate) plans: Table<Planned>,
    /// What plans share with later plans.
    pub(crate) kept: PlanCache,
    pub(crate) store: Store,
    pub(crate) scratch: Option<Scratch>,
    /// Those of set-ups.
    pub(crate) arrays: SharedArrays<Arc<Buffer>>,
    pub(crate) options: OpenClOptions,
    /// Whether a work-item takes a whole segment.
    pub(crate) segments_each: bool,
    pub(crate) driver: Driver,
}

/// Buffers that programs share; one program runs at a time.
pub(crate) struct Scratch {
    pub(crate) partials: Buffer,
    bytes: usize,
    pub(crate) counter: Buffer,
    pub(crate) history: Buffer,
}

impl OpenCl {
    /// Opens the device that the options name.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no such device (lists the devices there are), or if the driver fails.
    pub fn new(options: OpenClOptions) -> Result<Self> {
        let driver = Driver::new(device::find(&options)?)?;
        Ok(OpenCl {
            library: Vec::new(),
            generated: HashMap::new(),
            to_compile: Vec::new(),
            plans: Table::default(),
            kept: PlanCache::default(),
            store: Store::default(),
            scratch: None,
            arrays: SharedArrays::default(),
            segments_each: driver.device.runs_segments(options.shape),
            options,
            driver,
        })
    }

    /// The modes in which this device can run programs.
    pub fn modes(&self) -> [Mode; 3] {
        [Mode::Auto, Mode::Launches, if self.segments_each { Mode::OneGroup } else { Mode::Jit }]
    }

    /// Whether kernels are generated for programs.
    pub(crate) fn generates_kernels(&self) -> bool {
        matches!(self.options.mode, Mode::Auto | Mode::Jit) && !self.segments_each
    }

    /// Number of work-groups known to run at once.
    pub(crate) fn together(&self) -> usize {
        let known = if self.driver.device.runs_groups_together() { self.driver.device.units } else { 1 };
        self.options.together.unwrap_or(known)
    }

    /// Bytes of device memory that this backend holds.
    pub fn held_bytes(&self) -> u64 {
        self.driver.context.held()
    }

    /// Copy bandwidth of the device in bytes per second, reads and writes added: the reference for
    /// bandwidth-bound kernels.
    ///
    /// # Errors
    /// Out of memory for the two buffers of 64 MiB (fewer on a small device), and device failures.
    pub fn measure_bandwidth(&mut self) -> Result<f64> {
        let operation = "measuring bandwidth";
        let bytes = (64usize << 20).min((self.driver.device.largest_buffer / 4) as usize);
        let driver = &self.driver;
        let [from, to] = [driver.buffer(bytes, operation)?, driver.buffer(bytes, operation)?];
        let copy = |times: usize| -> Result<f64, Status> {
            let start = std::time::Instant::now();
            (0..times).try_for_each(|_| driver.queue.copy((&from, 0), (&to, 0), bytes))?;
            driver.queue.finish()?;
            Ok(start.elapsed().as_secs_f64())
        };
        let warm = || {
            driver.queue.fill(&from, 0, bytes, &[0; 4])?;
            copy(2)?;
            (0..5).map(|_| copy(8)).collect::<Result<Vec<_>, _>>()
        };
        let times = warm().map_err(driver.fail(operation))?;
        let best = times.into_iter().fold(f64::INFINITY, f64::min);
        Ok(16.0 * bytes as f64 / best)
    }

    /// Builds the entry points that are not yet built; whether there were any.
    pub(crate) fn build(&mut self, kind: NumberType, entries: &[Entry]) -> Result<bool> {
        let mut missing: Vec<Entry> =
            entries.iter().copied().filter(|entry| self.program_of(kind, *entry).is_none()).collect();
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() {
            return Ok(false);
        }
        // On a CPU each has a text of its own, so that its compiled code serves every program that needs it.
        let together = if self.segments_each { 1 } else { missing.len() };
        for entries in missing.chunks(together) {
            let text = compiler::text_of(kind, self.segments_each, self.driver.device.is_nvidia(), entries);
            let source = Source::new(&self.driver, kind, text);
            let program = source.kept().map_or_else(|| source.compile(), Ok)?;
            self.library.push((kind, entries.to_vec(), program));
        }
        Ok(true)
    }

    fn program_of(&self, kind: NumberType, entry: Entry) -> Option<&Built> {
        let has = |known: &Entry| compiler::serves(known, &entry);
        let mut library = self.library.iter().filter(|(of, ..)| *of == kind);
        library.find(|(_, entries, _)| entries.iter().any(has)).map(|(.., program)| program)
    }

    /// A kernel that has been built.
    pub(crate) fn kernel(&self, kind: NumberType, entry: Entry) -> Result<Kernel> {
        let name = format!("{}_{}", entry.0, kind.name());
        let fail = self.driver.fail(&format!("kernel {name}"));
        match self.program_of(kind, entry) {
            Some(program) => program.kernel(&name).map_err(fail),
            None => Err(Error::Stale { operation: name, what: "program" }),
        }
    }

    /// Reserves scratch memory for twice `sums` sums.
    pub(crate) fn reserve_scratch(&mut self, kind: NumberType, sums: usize) -> Result<()> {
        let bytes = 2 * sums * kind.size();
        if self.scratch.as_ref().is_some_and(|scratch| scratch.bytes >= bytes) {
            return Ok(());
        }
        let (bytes, operation) = (bytes.next_power_of_two().max(1 << 16), "room for sums");
        self.scratch = Some(Scratch {
            partials: self.driver.buffer(bytes, operation)?,
            bytes,
            counter: self.driver.zeros(64, operation)?,
            history: self.driver.buffer(8 * HISTORY, operation)?,
        });
        self.store.generation += 1;
        Ok(())
    }
}

impl Drop for OpenCl {
    fn drop(&mut self) {
        lacuna_gpu::background::leave();
    }
}

impl Backend for OpenCl {
    fn info(&self) -> DeviceInfo {
        self.driver.device.info()
    }
    fn formats(&self, rows: usize, bytes: usize) -> &'static [Cost] {
        if self.segments_each {
            &BY_SEGMENTS
        } else {
            let device = &self.driver.device;
            lacuna_gpu::costs(rows, device.units, bytes, device.cache())
        }
    }

    fn vectors(&mut self, kind: NumberType, n: usize, columns: usize, narrow: bool) -> Result<Basis> {
        self.driver.device.check_type(kind)?;
        self.making_room(|this| this.store.vectors(&this.driver, kind, n, columns, narrow))
    }
    fn cells(&mut self, kind: NumberType, count: usize) -> Result<Cells> {
        self.driver.device.check_type(kind)?;
        self.store.cells(&self.driver, kind, count)
    }
    fn matrix(&mut self, a: AnyFormat) -> Result<Matrix> {
        self.driver.device.check_type(a.kind())?;
        self.making_room(|this| this.store.matrix(&this.driver, a.clone()))
    }
    fn set_matrix(&mut self, a: Matrix, to: AnyFormat) -> Result<()> {
        self.store.set_matrix(&self.driver, a, to)?;
        self.kept.forget(a.serial);
        Ok(())
    }
    fn free(&mut self, what: Resource) {
        match what {
            Resource::Plan(plan) => drop(self.plans.remove(plan.index, plan.serial)),
            Resource::Matrix(a) => self.kept.forget(a.serial),
            Resource::Vectors(_) | Resource::Cells(_) => {}
        }
        self.store.free(what);
    }

    fn upload(&mut self, from: &[u8], to: Vector) -> Result<()> {
        self.store.upload(&self.driver, from, to)
    }
    fn clear(&mut self, v: Vector) -> Result<()> {
        self.store.clear(&self.driver, v)
    }
    fn download(&mut self, from: Vector, to: &mut [u8]) -> Result<()> {
        self.store.download(&self.driver, from, to)
    }
    fn copy(&mut self, from: Vector, to: Vector) -> Result<()> {
        self.store.copy(&self.driver, from, to)
    }
    fn write(&mut self, cell: Cell, value: Number) -> Result<()> {
        self.store.write(&self.driver, cell, value)
    }
    fn read(&mut self, cells: &[Cell], to: &mut [u8]) -> Result<()> {
        self.store.read(&self.driver, cells, to)
    }

    lacuna_engine::primitives_by!(alone);

    fn plan(&mut self, program: &Program) -> Result<PlanId> {
        let prepared = match program.calls_host() {
            true => self.store.check(program).map(|()| None)?,
            false => Some(self.making_room(|this| this.prepare(program))?),
        };
        let (index, serial) = self.plans.add(Planned { program: program.serial(), prepared });
        Ok(PlanId { index, serial })
    }
    fn execute(&mut self, program: &Program, plan: PlanId, run: Run<'_>) -> Result<Finish> {
        let planned = self.plans.get_mut(plan.index, plan.serial);
        let planned =
            planned.ok_or_else(|| Error::Stale { operation: program.name().into(), what: "plan" })?;
        program.check_plan(planned.program)?;
        let Some(mut prepared) = planned.prepared.take() else {
            self.store.check(program)?;
            return lacuna_engine::step_by_step(self, program, run);
        };
        let finish = self.run_checked(program, &mut prepared, run);
        if let Some(planned) = self.plans.get_mut(plan.index, plan.serial) {
            planned.prepared = Some(prepared);
        }
        finish
    }

    fn sparse_product(&mut self, factors: &[Each<FormatRefs<'_>>]) -> Result<Option<Each<Products>>> {
        self.unless_too_large(|this| this.multiply_sparse(factors))
    }
    fn distance_two_set(&mut self, graph: Graph<'_>, priorities: &[u64]) -> Result<Option<Vec<u32>>> {
        self.unless_too_large(|this| this.independent_set(graph, priorities))
    }
    fn has_fast_sparse_algebra(&self) -> bool {
        !self.segments_each
    }
    fn algebra(&mut self, kind: NumberType) -> Option<Box<dyn Algebra + '_>> {
        self.set_up(kind).map(|session| Box::new(session) as Box<dyn Algebra + '_>)
    }
}

impl OpenCl {
    /// Runs `make`; if memory runs out, clears the caches of plans and retries once.
    pub(crate) fn making_room<X>(&mut self, mut make: impl FnMut(&mut Self) -> Result<X>) -> Result<X> {
        match make(self) {
            Err(Error::OutOfMemory { .. }) if self.kept.clear() => make(self),
            made => made,
        }
    }

    /// Sparse algebra, unless memory is too small for it.
    fn unless_too_large<X>(&mut self, make: impl FnMut(&mut Self) -> Result<Option<X>>) -> Result<Option<X>> {
        match self.making_room(make) {
            Err(Error::OutOfMemory { .. }) => Ok(None),
            made => made,
        }
    }
}
