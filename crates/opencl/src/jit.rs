//! A whole program as a generated kernel: how rows and local memory are divided, and when it is compiled.
use crate::Mode;
use crate::backend::OpenCl;
use crate::compiler::Source;
use crate::driver::{Arg, Buffer, Kernel, Program};
use crate::plan::Launch;
use lacuna_engine::encode::Encoded;
use lacuna_engine::{AnyFormat, Matrix, NumberType, Result};
use lacuna_gpu::{Device, Layout, MatrixFacts, Repack, SEGMENT, background, has_shorter};
use std::sync::{Arc, OnceLock};

/// Windows, columns and values of repacked matrices, shared by all plans that use the same layout.
pub(crate) type RepackedBuffers = [Arc<Buffer>; 3];

/// The program of a generated text: empty while it compiles, `None` if the compiler rejected it.
pub(crate) type Compiled = Arc<OnceLock<Option<Program>>>;

/// What all plans of a program share.
#[derive(Clone)]
pub(crate) struct Generated {
    layout: Arc<Layout>,
    entries: RepackedBuffers,
    /// The parameters of the blocks.
    params: Arc<Buffer>,
    compiled: Compiled,
}

/// What a backend caches for later plans.
pub(crate) type PlanCache = lacuna_gpu::PlanCache<RepackedBuffers, Generated>;

/// A generated kernel with its buffers.
pub(crate) struct Jit {
    pub(crate) launch: Launch,
    pub(crate) buffers: Buffers,
}

/// Buffers of a plan, and its shared data.
pub(crate) struct Buffers {
    exchange: Buffer,
    shared: Buffer,
    generated: Generated,
}

impl Buffers {
    /// The arguments after those common to all kernels.
    pub(crate) fn args(&self) -> [Arg<'_>; 6] {
        let [windows, columns, values] = self.generated.entries.each_ref().map(|entries| &**entries);
        [&self.exchange, &self.shared, windows, &self.generated.params, columns, values].map(Arg::Buffer)
    }
}

/// The state of a program's generated kernel.
pub(crate) enum JitState {
    /// With the kernel `advance` of the same text.
    Ready(Jit, Kernel),
    Compiling(Generated),
    /// The program has no generated kernel, or the compiler or the device rejected it.
    Unavailable,
}

/// Indices of arguments that change from launch to launch.
pub(crate) const JIT_BUDGET: u32 = 15;
pub(crate) const JIT_ENTER: u32 = 16;
pub(crate) const JIT_SHORT_HISTORY: u32 = 19;
/// Maximum rows for which one work-group is faster.
const ONE_GROUP_ROWS: usize = 512;
/// Maximum segments whose sums are exchanged in one step.
const SEGMENTS: usize = 4 * SEGMENT;

/// Bytes of a compiling thread's stack.
const STACK: usize = 16 << 20;

impl OpenCl {
    /// The generated kernel of a program.
    pub(crate) fn jit(&mut self, e: &Encoded, operation: &str) -> Result<JitState> {
        let generated = match self.kept.program(e, 0) {
            Some(generated) => Some(generated),
            None => self.generated(e, operation)?,
        };
        match generated {
            Some(generated) => self.jit_state(e, generated, operation),
            None => Ok(JitState::Unavailable),
        }
    }

    /// The kernel text of a program, with its matrices on the device; `None` if no kernel can be generated.
    fn generated(&mut self, e: &Encoded, operation: &str) -> Result<Option<Generated>> {
        let formats = e.matrices.iter().map(|a| self.store.format(*a, operation).cloned());
        let formats = formats.collect::<Result<Vec<_>>>()?;
        let mut plans = std::mem::take(&mut self.kept);
        let laid = self.lay_out(e, &formats, &mut plans);
        self.kept = plans;
        let Some((layout, repack)) = laid else { return Ok(None) };
        let entries = match repack {
            Repack::Cached(entries) => entries,
            Repack::New(repacked, key, way) => {
                let filled = |bytes: &[u8]| self.driver.filled(bytes, operation).map(Arc::new);
                let entries = [
                    filled(bytemuck::cast_slice(&repacked.windows))?,
                    filled(bytemuck::cast_slice(&repacked.columns))?,
                    filled(bytemuck::cast_slice(&repacked.values))?,
                ];
                self.kept.keep(key, way, entries.clone());
                entries
            }
            Repack::Unfilled(slicer, key, way) => {
                let Some(entries) = self.sliced(slicer, &e.matrices, e.kind)? else { return Ok(None) };
                self.kept.keep(key, way, entries.clone());
                entries
            }
        };
        let params = Arc::new(self.driver.filled(bytemuck::cast_slice(&layout.generated.params), operation)?);
        let compiled = self.compiled(e.kind, &layout.text)?;
        let generated = Generated { layout: Arc::new(layout), entries, params, compiled };
        self.kept.keep_program(e, 0, generated.clone());
        Ok(Some(generated))
    }

    /// The program of a generated text: from disk, else compiled now for [`Mode::Jit`], or by its own thread
    /// for [`Mode::Auto`]. That thread may outlive the backend; it ends when its compilation does.
    fn compiled(&mut self, kind: NumberType, text: &str) -> Result<Compiled> {
        if let Some(known) = self.generated.get(text) {
            return Ok(known.clone());
        }
        let source = Source::new(&self.driver, kind, text.into());
        let compiled = Compiled::default();
        if let Some(program) = source.kept() {
            let _ = compiled.set(Some(program));
        } else if self.options.mode == Mode::Jit {
            let _ = compiled.set(Some(source.compile()?));
        } else {
            self.to_compile.push((compiled.clone(), source));
        }
        self.generated.insert(text.into(), compiled.clone());
        Ok(compiled)
    }

    /// Starts a compiler thread for each waiting text. Without threads, programs stay with launches.
    pub(crate) fn compile_beside(&mut self) {
        for (to, source) in self.to_compile.drain(..) {
            let compile = move || {
                let _ = to.set(source.compile().ok());
            };
            // Without a thread, the program stays with launches.
            let _ = background::spawn("lacuna-opencl-jit", STACK, compile);
        }
    }

    /// How a program's matrices, in these formats, are laid out; `None` if no kernel can be generated.
    fn lay_out<'f>(
        &self,
        e: &Encoded,
        formats: &'f [AnyFormat],
        plans: &mut PlanCache,
    ) -> Option<(Layout, Repack<'f, RepackedBuffers>)> {
        let n = e.n as usize;
        let (segments, units) = (n.div_ceil(SEGMENT), self.together());
        let most = self.driver.device.largest_group.min(1024) / SEGMENT;
        if !self.generates_kernels() || n == 0 || most == 0 || e.matrices.iter().any(|a| a.cols > n) {
            return None;
        }
        let facts = |(a, format): (&Matrix, &'f AnyFormat)| {
            let stages = (a.bytes as u64) < self.driver.device.memory / 8;
            MatrixFacts { format, serial: a.serial, stages }
        };
        let matrices: Vec<_> = e.matrices.iter().zip(formats).map(facts).collect();
        // Long rows justify more work-groups, which share segments; see `Layout::resident`.
        let long = matrices.iter().any(MatrixFacts::has_long_rows);
        let alone = segments <= most;
        let resident = units > 1 && segments.div_ceil(units) <= most && segments <= SEGMENTS;
        let streaming = units > 1 && self.driver.device.is_nvidia() && segments <= SEGMENT * SEGMENT;
        let groups = match () {
            () if alone && ((n <= ONE_GROUP_ROWS && !long) || !resident) => 1,
            () if resident || streaming => segments.min(units),
            () => return None,
        };
        let device = Device {
            nvidia: self.driver.device.is_nvidia(),
            cache: if self.driver.device.asks_cache() { self.driver.device.cache() } else { 0 },
            local: self.local_budget(),
            largest: self.driver.device.largest_group,
            size: 0,
            ways: 0,
            units,
            prelude: None,
        };
        let resident = resident && !(device.nvidia && has_shorter(e));
        let resident = (resident || groups == 1)
            .then(|| Layout::resident(e, &matrices, device, groups, plans))
            .flatten();
        match resident {
            None if streaming && groups > 1 => Layout::streaming(e, &matrices, device, groups, plans),
            resident => resident,
        }
    }

    /// The kernel with the buffers of a plan, once its program is compiled.
    pub(crate) fn jit_state(&self, e: &Encoded, generated: Generated, operation: &str) -> Result<JitState> {
        let program = match generated.compiled.get() {
            Some(Some(program)) => program,
            Some(None) => return Ok(JitState::Unavailable),
            None => return Ok(JitState::Compiling(generated)),
        };
        let fail = self.driver.fail(operation);
        let kernel = |stem: &str| program.kernel(&format!("{stem}_{}", e.kind.name())).map_err(&fail);
        let (mut kernel, advance) = (kernel("solve")?, kernel("advance")?);
        let Layout { groups, shape, half, shared, local, .. } = &*generated.layout;
        // NVIDIA's limit applies to kernels without a required work-group size.
        if !self.driver.device.is_nvidia() && kernel.group_limit(self.driver.device.id) < shape.size {
            return Ok(JitState::Unavailable);
        }
        let (exchange, shared) =
            (self.driver.zeros(2 * half * 8, operation)?, self.driver.zeros(8 * shared, operation)?);
        let words = [e.cells.start, e.cells.len() as u32, 0, 0, e.n, *half as u32, 0].map(Arg::Word);
        for (i, arg) in words.into_iter().chain(local.map(Arg::Local)).enumerate() {
            kernel.set(13 + i as u32, &arg).map_err(&fail)?;
        }
        let launch = Launch { kernel, groups: *groups, size: shape.size };
        let buffers = Buffers { exchange, shared, generated };
        Ok(JitState::Ready(Jit { launch, buffers }, advance))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Mode, OpenCl, OpenClOptions};
    use lacuna_engine::{Device, History, Matrix, Owned, Pass, Plan, Recorder, Run, Vector};
    use lacuna_formats::{Csr, Triplets, convert};
    use lacuna_io::Spec;
    use std::io::Write as _;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    /// Says, past the test harness, that there is no device for a test; fails if `LACUNA_REQUIRE` names `opencl-jit`.
    fn skipped() {
        let why = "no OpenCL device that generates kernels";
        let required = std::env::var("LACUNA_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|name| name.trim() == "opencl-jit"), "{why}");
        // If even this fails, nothing better can be done.
        let _ = writeln!(std::io::stderr(), "\n*** SKIPPED: {why} ***");
    }

    /// A device in this mode; `None` on CPUs, which have no generated kernels (PoCL takes minutes to compile one).
    fn device(mode: Mode) -> Option<Device> {
        let options = OpenClOptions::from_env().unwrap().mode(mode);
        let dev = OpenCl::new(options).ok().filter(|dev| dev.modes().contains(&Mode::Jit));
        if dev.is_none() {
            skipped();
        }
        dev.map(Device::new)
    }

    /// A plan of a loop, and its solution vector.
    fn planned(mode: Mode) -> Option<(Plan, Vector<f64>, Owned<Matrix<f64>>)> {
        let dev = device(mode)?;
        let a: Csr<f64> = Spec::parse("gen:poisson2d:17x18").unwrap().build().unwrap();
        let n = a.rows();
        let a = dev.matrix(Arc::new(a)).unwrap();
        let mut k = Recorder::new(&dev, "power iteration");
        let [x, y] = k.vectors(n);
        let [xx, yy, scale] = k.cells();
        k.each(|k| {
            k.spmv_dot(&a, x, y, Pass::new("along").dot(yy, y, y).eval(scale, 1.0 / yy.sqrt()));
            k.multi_axpy_dot(Pass::new("step").set(x, scale * y).dot(xx, x, x).count(xx));
        });
        let program = k.finish().unwrap();
        Some((dev.plan(program).unwrap(), x, a))
    }

    /// Whether a generated kernel runs a plan.
    fn is_jit(plan: &Plan) -> bool {
        let prepared = |dev: &mut OpenCl| {
            let planned = dev.plans.get(plan.id().index, plan.id().serial);
            planned.and_then(|planned| planned.prepared.as_ref()).is_some_and(|prepared| prepared.is_jit())
        };
        plan.device().with(prepared).unwrap()
    }

    fn solve(plan: &mut Plan, x: Vector<f64>) -> (Vec<f64>, bool) {
        let mut values: Vec<f64> = (0..x.len).map(|i| 1.0 + (i % 7) as f64).collect();
        plan.device().upload(&values, x).unwrap();
        plan.execute(Run { limit: 40, history: &mut History::default(), watch: None }).unwrap();
        plan.device().download(x, &mut values).unwrap();
        (values, is_jit(plan))
    }

    #[test]
    fn a_generated_kernel_takes_over_once_it_is_compiled() {
        let Some((mut plan, x, _a)) = planned(Mode::Auto) else { return };
        let (first, mut jit) = solve(&mut plan, x);
        let begun = Instant::now();
        while !jit {
            assert!(begun.elapsed() < Duration::from_secs(300), "the compiler does not end");
            std::thread::sleep(Duration::from_millis(20));
            let (again, by_jit) = solve(&mut plan, x);
            assert_eq!(again, first);
            jit = by_jit;
        }
        assert_eq!(solve(&mut plan, x).0, first);
        let Some((mut plan, x, _a)) = planned(Mode::Launches) else { return };
        assert_eq!(solve(&mut plan, x), (first.clone(), false));
        let Some((mut plan, x, _a)) = planned(Mode::Jit) else { return };
        assert_eq!(solve(&mut plan, x), (first, true));
    }

    /// Runs a loop over vectors of two lengths, some of them narrow, with rectangular matrices; returns its
    /// vectors, and whether a generated kernel ran it.
    fn two_lengths(mode: Mode, narrow: bool) -> Option<(Vec<u64>, bool)> {
        let dev = device(mode)?;
        let a: Csr<f64> = Spec::parse("gen:poisson2d:17x18").unwrap().build().unwrap();
        let (n, coarse) = (a.rows(), 40);
        let (mut p, mut r) = (Triplets::new(n, coarse), Triplets::new(coarse, n));
        let mut solve = Triplets::new(coarse, coarse);
        for i in 0..n {
            p.push(i, i % coarse, 1.0 / (i + 3) as f64);
            r.push(i % coarse, i, 1.0 + 1.0 / (i + 7) as f64);
        }
        for k in 0..coarse * coarse {
            solve.push(k / coarse, k % coarse, 1.0 / (k + 1) as f64);
        }
        let solve = convert(&Arc::new(solve.to_csr().unwrap()), "dense").unwrap();
        let [a, p, r] =
            [a, p.to_csr().unwrap(), r.to_csr().unwrap()].map(|a| dev.matrix(Arc::new(a)).unwrap());
        let solve = dev.matrix(solve).unwrap();
        let mut k = Recorder::new(&dev, "two lengths");
        let [x, y] = k.vectors(n);
        let mut vector = |n: usize| if narrow { k.narrow_vector(n) } else { k.vector(n) };
        let [t, rc, ec] = [n, coarse, coarse].map(&mut vector);
        let [yy, xx, scale] = k.cells();
        k.each(|k| {
            k.spmv_dot(&a, x, y, Pass::new("along").set(t, y - x).dot(yy, y, t).eval(scale, 1.0 / yy.sqrt()));
            k.spmv_dot(&r, t, rc, Pass::new("weight").set(rc, rc + scale * rc));
            k.spmv_dot(&solve, rc, ec, Pass::nothing());
            k.multi_axpy_dot(Pass::new("shift").set(ec, ec - scale * rc));
            k.spmv_dot(
                &p,
                ec,
                t,
                Pass::new("correct").set(t, y + t).set(x, scale * t).dot(xx, x, t).count(xx),
            );
        });
        let program = k.finish().unwrap();
        let mut plan = dev.plan(program).unwrap();
        let mut values: Vec<f64> = (0..n).map(|i| 1.0 + (i % 7) as f64).collect();
        dev.upload(&values, x).unwrap();
        plan.execute(Run { limit: 5, history: &mut History::default(), watch: None }).unwrap();
        let mut bits = Vec::new();
        for v in [x, y, t, rc, ec] {
            values.resize(v.len, 0.0);
            dev.download(v, &mut values).unwrap();
            bits.extend(values.iter().map(|value| value.to_bits()));
        }
        Some((bits, is_jit(&plan)))
    }

    #[test]
    fn jit_takes_several_lengths_and_narrow_vectors() {
        for narrow in [false, true] {
            let Some((bits, jit)) = two_lengths(Mode::Launches, narrow) else { return };
            assert!(!jit && bits.iter().any(|bits| f64::from_bits(*bits) != 0.0));
            assert!(two_lengths(Mode::Jit, narrow) == Some((bits, true)), "narrow: {narrow}");
        }
    }

    #[test]
    fn a_backend_can_be_dropped_while_the_compiler_runs() {
        let Some((mut plan, x, a)) = planned(Mode::Auto) else { return };
        solve(&mut plan, x);
        let begun = Instant::now();
        drop((plan, a));
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }
}
