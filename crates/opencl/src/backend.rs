//! The backend: memory, transfer, planning.
use crate::device::{self, Device};
use crate::driver::{Buffer, Context, Kernel, Program, Queue, Status, failed};
use crate::jit::{Compiled, PlanCache};
use crate::memory::Memory;
use crate::plan::{HISTORY, Prepared};
use crate::source::{self, Entry, FirstLaunches, Source};
use crate::{Mode, OpenClOptions};
use lacuna_engine::cells::Machine;
use lacuna_engine::{
    Backend, Basis, Cell, Cells, CompressedRows, Control, Cost, DeviceInfo, Error, Finish, Format, Graph,
    History, Kind, Mark, Matrix, Op, OpKind, Plan, Result, Run, Scalar, StepByStep, Vector, host_call,
    next_serial, step_by_step,
};
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
    library: Vec<(Kind, Vec<Entry>, Program)>,
    /// Generated programs, by text.
    pub(crate) generated: HashMap<String, Compiled>,
    /// Programs to compile once the kernels of launches are built.
    pub(crate) to_compile: Vec<(Compiled, Source)>,
    /// What plans share with later plans.
    pub(crate) plans: PlanCache,
    pub(crate) memory: Memory,
    pub(crate) scratch: Option<Scratch>,
    pub(crate) queue: Queue,
    pub(crate) context: Arc<Context>,
    pub(crate) device: Device,
    pub(crate) options: OpenClOptions,
    /// Whether a work-item takes a whole segment.
    pub(crate) segments_each: bool,
    pub(crate) serial: u32,
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
        let device = device::find(&options)?;
        let fail = |status| failed(&device.name, "opening the device", status);
        let context = Arc::new(Context::new(device.id).map_err(fail)?);
        let queue = context.queue(device.id).map_err(fail)?;
        Ok(OpenCl {
            library: Vec::new(),
            generated: HashMap::new(),
            to_compile: Vec::new(),
            plans: PlanCache::default(),
            memory: Memory::new(&device),
            scratch: None,
            queue,
            context,
            segments_each: device.runs_segments(options.shape),
            device,
            options,
            serial: next_serial(),
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
        let known = if self.device.runs_groups_together() { self.device.units } else { 1 };
        self.options.together.unwrap_or(known)
    }

    /// Bytes of device memory that this backend holds.
    pub fn held_bytes(&self) -> u64 {
        self.context.held()
    }

    /// Copy bandwidth of the device in bytes per second, reads and writes added: the reference for
    /// bandwidth-bound kernels.
    ///
    /// # Errors
    /// Out of memory for the two buffers of 64 MiB (fewer on a small device), and device failures.
    pub fn measure_bandwidth(&mut self) -> Result<f64> {
        let operation = "measuring bandwidth";
        let bytes = (64usize << 20).min((self.device.largest_buffer / 4) as usize);
        let from = self.memory.buffer(&self.context, &self.queue, bytes, operation)?;
        let to = self.memory.buffer(&self.context, &self.queue, bytes, operation)?;
        let copy = |times: usize| -> Result<f64, Status> {
            let start = std::time::Instant::now();
            (0..times).try_for_each(|_| self.queue.copy(&from, &to, bytes))?;
            self.queue.finish()?;
            Ok(start.elapsed().as_secs_f64())
        };
        let warm = || {
            self.queue.fill(&from, 0, bytes, &[0; 4])?;
            copy(2)?;
            (0..5).map(|_| copy(8)).collect::<Result<Vec<_>, _>>()
        };
        let times = warm().map_err(self.fail(operation))?;
        let best = times.into_iter().fold(f64::INFINITY, f64::min);
        Ok(16.0 * bytes as f64 / best)
    }

    pub(crate) fn fail(&self, operation: &str) -> impl Fn(Status) -> Error + use<> {
        let (device, operation) = (self.device.name.clone(), operation.to_owned());
        move |status| failed(&device, &operation, status)
    }

    /// Builds the entry points that are not yet built; whether there were any.
    pub(crate) fn build<T: Scalar>(&mut self, entries: &[Entry]) -> Result<bool> {
        let mut missing: Vec<Entry> =
            entries.iter().copied().filter(|entry| self.program_of::<T>(*entry).is_none()).collect();
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() {
            return Ok(false);
        }
        // On a CPU each has a text of its own, so that its compiled code serves every program that needs it.
        let together = if self.segments_each { 1 } else { missing.len() };
        for entries in missing.chunks(together) {
            let text = source::text_of(T::KIND, self.segments_each, self.device.is_nvidia(), entries);
            let source = Source::new(&self.context, &self.device, T::KIND, text);
            let program = source.kept().map_or_else(|| source.compile(), Ok)?;
            self.library.push((T::KIND, entries.to_vec(), program));
        }
        Ok(true)
    }

    fn program_of<T: Scalar>(&self, entry: Entry) -> Option<&Program> {
        let has = |known: &Entry| source::serves(known, &entry);
        let mut library = self.library.iter().filter(|(kind, ..)| *kind == T::KIND);
        library.find(|(_, entries, _)| entries.iter().any(has)).map(|(.., program)| program)
    }

    /// A kernel that has been built.
    pub(crate) fn kernel<T: Scalar>(&self, entry: Entry) -> Result<Kernel> {
        let name = format!("{}_{}", entry.0, T::KIND.name());
        let fail = self.fail(&format!("kernel {name}"));
        match self.program_of::<T>(entry) {
            Some(program) => program.kernel(&name).map_err(fail),
            None => Err(Error::Stale { operation: name, what: "program" }),
        }
    }

    /// Reserves scratch memory for twice `sums` sums.
    pub(crate) fn reserve_scratch<T: Scalar>(&mut self, sums: usize) -> Result<()> {
        let bytes = 2 * sums * size_of::<T>();
        if self.scratch.as_ref().is_some_and(|scratch| scratch.bytes >= bytes) {
            return Ok(());
        }
        let (bytes, operation) = (bytes.next_power_of_two().max(1 << 16), "room for sums");
        let buffer = |bytes| self.memory.buffer(&self.context, &self.queue, bytes, operation);
        let scratch =
            Scratch { partials: buffer(bytes)?, bytes, counter: buffer(64)?, history: buffer(8 * HISTORY)? };
        self.queue.fill(&scratch.counter, 0, 64, &[0; 4]).map_err(self.fail(operation))?;
        self.scratch = Some(scratch);
        self.memory.generation += 1;
        Ok(())
    }
}

impl Drop for OpenCl {
    fn drop(&mut self) {
        lacuna_gpu::background::leave();
    }
}

impl Backend for OpenCl {
    fn device(&self) -> DeviceInfo {
        self.device.info()
    }
    fn formats(&self, rows: usize, bytes: usize) -> &'static [Cost] {
        if self.segments_each {
            &BY_SEGMENTS
        } else {
            lacuna_gpu::costs(rows, self.device.units, bytes, self.device.cache())
        }
    }
    fn vector<T: Scalar>(&mut self, n: usize) -> Result<Vector<T>> {
        Ok(Backend::basis::<T>(self, n, 1)?.column(0))
    }
    fn basis<T: Scalar>(&mut self, n: usize, columns: usize) -> Result<Basis<T>> {
        self.device.check_type::<T>()?;
        self.making_room(|this| this.memory.basis::<T, T>(&this.context, &this.queue, n, columns))
    }
    fn narrow_basis<T: Scalar>(&mut self, n: usize, columns: usize) -> Result<Basis<T>> {
        self.device.check_type::<T>()?;
        self.making_room(|this| this.memory.basis::<T, T::Narrow>(&this.context, &this.queue, n, columns))
    }
    fn cells<T: Scalar>(&mut self, count: usize) -> Result<Cells<T>> {
        self.device.check_type::<T>()?;
        self.memory.cells(&self.context, &self.queue, count)
    }
    fn matrix<T: Scalar>(&mut self, a: Arc<dyn Format<T>>) -> Result<Matrix<T>> {
        self.device.check_type::<T>()?;
        self.making_room(|this| this.memory.matrix(&this.context, &this.queue, a.clone()))
    }
    fn set_matrix<T: Scalar>(&mut self, a: Matrix<T>, to: Arc<dyn Format<T>>) -> Result<()> {
        self.memory.set_matrix(&self.queue, a, to)?;
        self.plans.retain(|serial| serial != a.serial);
        Ok(())
    }
    fn mark(&self) -> Mark {
        self.memory.mark()
    }
    fn release(&mut self, mark: Mark) {
        self.memory.release(mark);
        self.plans.retain(|serial| self.memory.has_matrix(serial));
    }
    fn upload<T: Scalar>(&mut self, from: &[T], to: Vector<T>) -> Result<()> {
        Error::check_length("upload", "the host slice", to.len, from.len())?;
        let offset = self.memory.offset(to, "upload")?;
        if to.narrow {
            let rounded: Vec<T::Narrow> = from.iter().map(|number| number.narrowed()).collect();
            return self.memory.upload(&self.queue, offset, bytemuck::cast_slice(&rounded));
        }
        self.memory.upload(&self.queue, offset, bytemuck::cast_slice(from))
    }
    fn clear<T: Scalar>(&mut self, v: Vector<T>) -> Result<()> {
        let offset = self.memory.offset(v, "clear")?;
        self.memory.clear(&self.queue, offset, v.bytes())
    }
    fn download<T: Scalar>(&mut self, from: Vector<T>, to: &mut [T]) -> Result<()> {
        Error::check_length("download", "the host slice", from.len, to.len())?;
        let offset = self.memory.offset(from, "download")?;
        if from.narrow {
            let mut stored = vec![<T::Narrow as Default>::default(); to.len()];
            self.memory.download(&self.queue, offset, bytemuck::cast_slice_mut(&mut stored))?;
            to.iter_mut().zip(stored).for_each(|(to, number)| *to = T::widened(number));
            return Ok(());
        }
        self.memory.download(&self.queue, offset, bytemuck::cast_slice_mut(to))
    }
    fn write<T: Scalar>(&mut self, cell: Cell<T>, value: T) -> Result<()> {
        self.memory.write(&self.queue, cell, value)
    }
    fn read<T: Scalar>(&mut self, cells: &[Cell<T>]) -> Result<Vec<T>> {
        self.memory.read(&self.queue, cells)
    }

    fn sparse_product<T: Scalar>(&mut self, factors: &[&dyn Format<T>]) -> Result<Option<CompressedRows<T>>> {
        self.device.check_type::<T>()?;
        self.unless_too_large(|this| this.multiply_sparse(factors))
    }
    fn distance_two_set(&mut self, graph: Graph<'_>, priorities: &[u64]) -> Result<Option<Vec<u32>>> {
        self.unless_too_large(|this| this.independent_set(graph, priorities))
    }
    fn has_fast_sparse_algebra(&self) -> bool {
        !self.segments_each
    }

    /// Runs instructions on the host, the rest on the device: slow, for inspecting a program operation by
    /// operation.
    fn step<T: Scalar>(&mut self, op: &Op<T>, control: &mut Control, history: &mut History) -> Result<()> {
        let count = self.memory.cell_count::<T>();
        let mut machine = Machine {
            cells: self.memory.read_range::<T>(&self.queue, 0..count)?,
            control: *control,
            history: std::mem::take(history),
        };
        let goes_on = machine.run(&op.sweep.before);
        self.memory.write_all(&self.queue, &machine.cells)?;
        let mut done = Ok(());
        if goes_on {
            done = self.bare(op);
            machine.cells = self.memory.read_range::<T>(&self.queue, 0..count)?;
            machine.run(&op.sweep.after);
            self.memory.write_all(&self.queue, &machine.cells)?;
        }
        (*control, *history) = (machine.control, machine.history);
        done
    }

    fn plan<T: Scalar>(&mut self, program: lacuna_engine::Program<T>) -> Result<Plan<T>> {
        if program.calls_host() {
            self.memory.check(&program)?;
            return Ok(Plan { program, prepared: Box::new(StepByStep) });
        }
        let prepared = self.making_room(|this| this.prepare(&program))?;
        Ok(Plan { program, prepared: Box::new(prepared) })
    }

    fn execute<T: Scalar>(&mut self, plan: &mut Plan<T>, run: Run<'_>) -> Result<Finish> {
        if plan.prepared.is::<StepByStep>() {
            self.memory.check(&plan.program)?;
            return step_by_step(self, plan, run);
        }
        let Plan { program, prepared } = plan;
        let prepared = prepared.downcast_mut::<Prepared<T>>().filter(|p| p.owner == self.serial);
        let Some(prepared) = prepared else {
            return Err(Error::Stale { operation: format!("running `{}`", program.name), what: "plan" });
        };
        if prepared.holds_entries() && prepared.values != self.memory.values {
            *prepared = self.making_room(|this| this.prepare(program))?;
        }
        let first = if prepared.is_fresh() { FirstLaunches::hold(&self.device) } else { None };
        let finish = self.run(program, prepared, run);
        if finish.is_err() || first.is_some() {
            // Nothing queued may outlive the memory it uses. The first error is the one to report.
            let _ = self.queue.finish();
        }
        finish
    }
}

impl OpenCl {
    /// Runs `make`; if memory runs out, clears the caches of plans and retries once.
    fn making_room<X>(&mut self, mut make: impl FnMut(&mut Self) -> Result<X>) -> Result<X> {
        match make(self) {
            Err(Error::OutOfMemory { .. }) if self.plans.clear() => make(self),
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

    /// Runs an operation without its instructions.
    fn bare<T: Scalar>(&mut self, op: &Op<T>) -> Result<()> {
        if let OpKind::Host { f, x, y } = &op.kind {
            return host_call(self, f, *x, *y);
        }
        let mut alone = op.clone();
        alone.sweep.before.clear();
        alone.sweep.after.clear();
        let mut program = lacuna_engine::Program::new("step");
        program.setup.push(alone);
        let mut plan = self.plan(program)?;
        let run = Run { limit: 1, history: &mut History::off(), watch: None };
        self.execute(&mut plan, run).map(drop)
    }
}
