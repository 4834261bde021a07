//! The ways to run a program on the device. The control flow is that of
//! [`Backend::execute`](lacuna_engine::Backend::execute), decided by the device; the host reads the control
//! block behind the queue.
use crate::driver::{Address, Driver};
use crate::jit::{self, Jit};
use crate::launches::{CONTROL_NEXT, Common};
use crate::memory::Buffer;
use crate::options::Mode;
use crate::plan::{CONTROL_BYTES, Executable, SHORT_HISTORY, queue_start};
use crate::store::Store;
use bytemuck::{cast_slice, cast_slice_mut, pod_read_unaligned};
use lacuna_engine::encode::*;
use lacuna_engine::{Finish, History, NumberType, Program, Progress, Result, Run, catching};
use lacuna_gpu::{AT_CELLS, AT_HISTORY};
use std::ops::{ControlFlow, Range};
use std::time::Instant;

type Control = [u64; CONTROL_WORDS as usize];
/// See [`Run::watch`].
type Watch<'a> = Option<&'a mut dyn FnMut(Progress) -> ControlFlow<()>>;

/// Target duration of a launch of a watched program, in seconds.
const WATCH: f64 = 2e-3;
/// Maximum passes through the iteration in one graph.
const GRAPH_PASSES: u64 = 16;
/// Number of launches worth capturing together.
const GRAPH_LAUNCHES: u64 = 64;

/// The parts of a backend that runs need.
pub(crate) struct Runner<'a> {
    pub(crate) driver: &'a Driver,
    pub(crate) store: &'a mut Store,
    /// A buffer for histories, on the device.
    pub(crate) history: &'a mut Option<Buffer>,
}

impl Runner<'_> {
    /// Runs a program from the start until it stops.
    pub(crate) fn run(
        &mut self,
        program: &Program,
        prepared: &mut Executable,
        run: Run<'_>,
    ) -> Result<Finish> {
        if program.iterates() {
            lacuna_gpu::count_run(prepared.jit.is_some());
        }
        let Run { limit, history, watch } = run;
        history.reset(limit);
        let room = (limit / history.stride).saturating_add(2).min(History::CAPACITY + 2) as usize;
        let kind = prepared.encoded.kind;
        let short =
            room * real_size(kind) <= SHORT_HISTORY && (prepared.jit.is_none() || room <= jit::SHORT_HISTORY);
        let room_for = if short {
            prepared.common.control + CONTROL_BYTES as u64
        } else {
            self.reserve_history(room * real_size(kind))?
        };
        let nan = real_bits(kind, f64::NAN);
        let mut control = prepared.encoded.control(limit, history.stride, room as u64, nan);
        // Generated kernels begin at the operation in `control`, the others at a section.
        if prepared.jit.is_none() {
            control[CONTROL_NEXT] = prepared.encoded.first_section().into();
        }
        prepared.common.history = room_for;
        let jit = prepared.jit;
        let control = if let Some(jit) = jit {
            self.jit(prepared, jit, control, watch, short)?
        } else {
            prepared.common.cells = self.store.device_cells(self.driver, kind)?;
            self.store.cells_of(kind).device_changes(&cell_range(&prepared.encoded));
            self.queued(prepared, control, watch)?
        };
        let bytes = (control[CONTROL_HISTORY as usize] as usize).min(room) * real_size(kind);
        let mut words = vec![0; bytes.div_ceil(size_of::<u64>())];
        if jit.is_some() && short {
            words = prepared.result.get(AT_HISTORY, words.len());
        } else {
            self.driver.download(
                room_for,
                &mut cast_slice_mut(&mut words)[..bytes],
                "reading the history",
            )?;
        }
        let reals = cast_slice::<_, u8>(&words)[..bytes].chunks_exact(real_size(kind));
        history.values.extend(reals.map(|bytes| match bytes.len() {
            4 => f64::from(pod_read_unaligned::<f32>(bytes)),
            _ => pod_read_unaligned(bytes),
        }));
        let word = |at: u32| control[at as usize];
        Ok(Finish {
            reason: program.reason(word(CONTROL_REASON) as u32),
            iterations: word(CONTROL_ITERATIONS),
            restarts: word(CONTROL_RESTARTS),
            recurrence: real_from_bits(kind, word(CONTROL_RECURRENCE)),
            confirmed: real_from_bits(kind, word(CONTROL_CONFIRMED)),
        })
    }

    /// Runs one kernel generated for the program, in several launches if the host wants to look in between.
    /// What the host sets is passed with the launch, and the kernel writes what the host reads into host
    /// memory: nothing else is queued.
    fn jit(
        &mut self,
        prepared: &mut Executable,
        jit: Jit,
        control: Control,
        mut watch: Watch<'_>,
        short: bool,
    ) -> Result<Control> {
        let mut args = jit.args;
        let (kind, range) = (prepared.encoded.kind, cell_range(&prepared.encoded));
        let most = 8 * jit::CHANGED / kind.size();
        let (cells, changed) = self.store.device_cells_but(self.driver, kind, &range, most)?;
        let known = self.store.cells_of(kind).known(&changed);
        cast_slice_mut::<_, u8>(&mut args.given.changed)[..known.len()].copy_from_slice(known);
        args.given.changed_first = (changed.start - range.start.min(changed.start)) as u32;
        args.given.changed_count = changed.len() as u32;
        args.addresses[jit::CELLS] = cells;
        args.addresses[jit::RESULT] = prepared.result.address();
        args.addresses[jit::HISTORY] = prepared.common.history;
        args.words[jit::SHORT] = short.into();
        let (mut reported, mut words) = (0, control);
        loop {
            args.words[jit::BUDGET] = match watch {
                Some(_) => u32::try_from(prepared.watched_passes).unwrap_or(u32::MAX),
                None => u32::MAX,
            };
            let count = words.len();
            let (block, state) = args.given.words.split_at_mut(count);
            block.copy_from_slice(&words);
            state.copy_from_slice(&prepared.state);
            let start = Instant::now();
            jit.queue(self.driver, &args)?;
            self.store.cells_of(kind).device_changes(&range);
            self.driver.wait("running a program")?;
            let result = prepared.result.get(0, count + 2);
            words.copy_from_slice(&result[..count]);
            prepared.state = [result[count], result[count + 1]];
            args.given.changed_count = 0;
            let bytes = range.len() * kind.size();
            let cells = prepared.result.get(AT_CELLS, bytes.div_ceil(size_of::<u64>()));
            self.store.cells_of(kind).learn(&range, &cast_slice(&cells)[..bytes]);
            if words[CONTROL_OP as usize] == u64::from(NONE) {
                return Ok(words);
            }
            // Every allowed operation has run. Look, and continue.
            prepared.adapt(start.elapsed().as_secs_f64());
            let cancelled = report_progress(kind, &words, &mut reported, &mut watch)?;
            args.words[jit::ENTER] = if cancelled { jit::ENTER_CANCEL } else { 0 };
            if cancelled {
                watch = None;
            }
        }
    }

    /// Runs one kernel for each operation, launched or replayed.
    fn queued(
        &mut self,
        prepared: &mut Executable,
        mut control: Control,
        mut watch: Watch<'_>,
    ) -> Result<Control> {
        let common = prepared.common;
        let limit = control[CONTROL_LIMIT as usize];
        self.send(prepared, &control)?;
        queue_start(self.driver, prepared.start, &common)?;
        let mut reported = 0;
        for (step, kernel) in prepared.steps[..SECTION_EACH as usize].iter().flatten() {
            step.queue(self.driver, *kernel, &common)?;
        }
        let launches = prepared.each().len().max(1) as u64;
        let counts = counted(&prepared.encoded).max(1);
        let most = (GRAPH_LAUNCHES / launches).clamp(1, GRAPH_PASSES);
        let needed = limit.div_ceil(counts);
        let passes =
            if needed < most * 64 { needed.div_ceil(needed.div_ceil(most).max(1)) } else { most }.max(1);
        let mut queued = 0u64;
        let mut waiting = std::collections::VecDeque::new();
        let mut slot = 0;
        loop {
            // One batch: passes through the iteration, then the restart section, which usually is not due.
            if prepared.mode == Mode::Graph {
                self.replay(prepared, &common, passes)?;
            } else {
                queue_batch(self.driver, prepared, &common, passes)?;
            }
            queued += passes;
            self.driver.fetch(
                common.control,
                &prepared.control,
                (1 + slot) * CONTROL_BYTES,
                CONTROL_BYTES,
            )?;
            self.driver.record(&prepared.events[slot])?;
            waiting.push_back(slot);
            slot = 1 - slot;
            // Stay one batch ahead, but not beyond the limit, where the program is expected to end.
            while waiting.len() > 1 || (queued.saturating_mul(counts) >= limit && !waiting.is_empty()) {
                let Some(done) = waiting.pop_front() else { break };
                self.driver.wait_for(&prepared.events[done], "running a program")?;
                control = words_of(prepared, done);
                if control[CONTROL_NEXT] == u64::from(NONE) {
                    self.driver.wait("running a program")?;
                    return Ok(control);
                }
                if report_progress(prepared.encoded.kind, &control, &mut reported, &mut watch)? {
                    control = self.receive(prepared, 0, "running a program")?;
                    waiting.clear();
                    if control[CONTROL_NEXT] == u64::from(NONE) {
                        return Ok(control);
                    }
                    control[CONTROL_NEXT] = SECTION_EACH.into();
                    if cancel(&mut control) {
                        return Ok(control);
                    }
                    self.send(prepared, &control)?;
                    queue_start(self.driver, prepared.start, &common)?;
                    for (step, kernel) in prepared.restart() {
                        step.queue(self.driver, *kernel, &common)?;
                    }
                }
            }
        }
    }

    /// Replays the batch, which is captured once.
    fn replay(&mut self, prepared: &mut Executable, common: &Common, passes: u64) -> Result<()> {
        let fits = |known: &Option<(_, Common, u64)>| matches!(known, Some((_, c, p)) if c == common && *p == passes);
        if !fits(&prepared.graph) {
            prepared.graph = None;
            let graph = self.driver.capture(|| queue_batch(self.driver, prepared, common, passes))?;
            prepared.graph = Some((graph, *common, passes));
        }
        match &prepared.graph {
            Some((graph, ..)) => self.driver.replay(graph),
            None => Ok(()),
        }
    }

    fn send(&self, prepared: &mut Executable, control: &Control) -> Result<()> {
        prepared.control.set(0, control);
        self.driver.send(&prepared.control, 0, CONTROL_BYTES, prepared.common.control)
    }

    fn receive(&self, prepared: &Executable, place: usize, operation: &str) -> Result<Control> {
        self.driver.fetch(
            prepared.common.control,
            &prepared.control,
            (1 + place) * CONTROL_BYTES,
            CONTROL_BYTES,
        )?;
        self.driver.wait(operation)?;
        Ok(words_of(prepared, place))
    }

    /// A buffer of at least that many bytes for the history.
    fn reserve_history(&mut self, bytes: usize) -> Result<Address> {
        match self.history {
            Some(buffer) if buffer.bytes >= bytes => Ok(buffer.address),
            _ => {
                *self.history = None;
                let what = "the history of a solve";
                let buffer = self.store.pool.take(self.driver, bytes.max(1 << 16), what)?;
                Ok(self.history.insert(buffer).address)
            }
        }
    }
}

/// The control block that was received in a place.
fn words_of(prepared: &Executable, place: usize) -> Control {
    let mut control = [0; CONTROL_WORDS as usize];
    let words = prepared.control.get((1 + place) * control.len(), control.len());
    control.copy_from_slice(&words);
    control
}

/// Bytes of a real number of the type.
fn real_size(kind: NumberType) -> usize {
    if kind == kind.narrow() { 4 } else { 8 }
}

impl Executable {
    /// Adjusts the work of the next launch of a watched program to the duration of the last one.
    fn adapt(&mut self, seconds: f64) {
        if seconds < WATCH / 2.0 {
            self.watched_passes = self.watched_passes.saturating_mul(2);
        } else if seconds > WATCH * 2.0 {
            self.watched_passes = (self.watched_passes / 2).max(1);
        }
    }
}

fn queue_batch(driver: &Driver, prepared: &Executable, common: &Common, passes: u64) -> Result<()> {
    for _ in 0..passes {
        for (step, kernel) in prepared.each() {
            step.queue(driver, *kernel, common)?;
        }
    }
    for (step, kernel) in prepared.restart() {
        step.queue(driver, *kernel, common)?;
    }
    Ok(())
}

/// From the lowest cell that a program names to the highest: cells of other programs may lie between.
pub(crate) fn cell_range(encoded: &Encoded) -> Range<usize> {
    encoded.cells.start as usize..encoded.cells.end as usize
}

/// Iterations that one pass through `each` counts.
fn counted(encoded: &Encoded) -> u64 {
    let mut count = 0;
    for op in encoded.sections[SECTION_EACH as usize].clone() {
        for (at, length) in [(OP_BEFORE, OP_BEFORE_COUNT), (OP_AFTER, OP_AFTER_COUNT)] {
            let first = encoded.op(op, at) as usize;
            let words = &encoded.words[first..first + (encoded.op(op, length) * INSTR_WORDS) as usize];
            count += words.chunks(INSTR_WORDS as usize).filter(|w| w[0] == CODE_COUNT).count() as u64;
        }
    }
    count
}

/// Reports the state of a running program to the caller; returns whether the caller cancels it.
fn report_progress(
    kind: NumberType,
    control: &Control,
    reported: &mut u64,
    watch: &mut Watch<'_>,
) -> Result<bool> {
    let iterations = control[CONTROL_ITERATIONS as usize];
    let Some(watch) = watch else { return Ok(false) };
    if iterations <= *reported {
        return Ok(false);
    }
    *reported = iterations;
    let rr = real_from_bits(kind, control[CONTROL_RECURRENCE as usize]);
    catching(|| Ok(watch(Progress { iterations, rr }).is_break()))
}

/// Like [`lacuna_engine::Control::cancel`] between two passes through the iteration; sets `CONTROL_NEXT` to
/// the section to continue with. Returns whether the program has stopped.
fn cancel(control: &mut Control) -> bool {
    if control[CONTROL_CONFIRMS as usize] != 0 {
        control[CONTROL_PENDING as usize] = u64::from(REASON_CANCELLED) + 1;
        control[CONTROL_SOFT as usize] = 0;
        control[CONTROL_NEXT] = SECTION_RESTART.into();
        false
    } else {
        control[CONTROL_REASON as usize] = REASON_CANCELLED.into();
        control[CONTROL_SECTION as usize] = SECTION_STOPPED.into();
        true
    }
}
