//! Runs a program: work is queued ahead, and reads queued behind it report progress to the host.
use crate::backend::OpenCl;
use crate::compiler::{FirstLaunches, JIT_CELLS_AT, JIT_HISTORY_AT};
use crate::driver::{Arg, Event, Status};
use crate::jit::{JIT_BUDGET, JIT_ENTER, JIT_SHORT_HISTORY};
use crate::launches::Steps;
use crate::one_group::PROGRAM_BUDGET;
use crate::plan::{ADVANCE_MODE, Executable, Execution, HISTORY};
use lacuna_engine::cells::{Instr, Machine};
use lacuna_engine::encode::{self, real_bits, real_from_bits};
use lacuna_engine::lower::Sweep;
use lacuna_engine::{
    Finish, History, NumberType, Op, OpKind, Program, Progress, Result, Run, Scalar, Section, State,
    catching, with_number,
};
use std::ops::Range;
use std::time::{Duration, Instant};

/// The modes of the kernel `advance`, as in `kernels-opencl/shared/cells.cl`.
const MODE_DONE: u32 = 0;
const MODE_ENTER: u32 = 1;
const MODE_CANCEL: u32 = 2;
/// Rounds in the queue at once.
const AHEAD: usize = 2;
/// Maximum duration of a round, which bounds how late the host sees progress.
const ROUND: Duration = Duration::from_millis(3);
/// Operations of the first launch of a whole program: in one work-group, and by a generated kernel.
const ONE_GROUP_FIRST: u64 = 1024;
const JIT_FIRST: u64 = 4096;

type Words = [u64; encode::CONTROL_WORDS as usize];

fn word(words: &Words, at: u32) -> u64 {
    words[at as usize]
}

/// Queues rounds of one program.
struct Rounds<'a> {
    dev: &'a OpenCl,
    prepared: &'a mut Executable,
    /// Operations with vectors, for each section.
    sections: [Vec<usize>; 3],
    /// Iterations that one run of `each` counts.
    counts: u64,
    /// Iterations of the next round, divided by `counts`; operations if a whole program is launched.
    size: u64,
    /// Iterations queued so far, done or not.
    queued: u64,
    /// Whether nothing has been launched yet.
    begins: bool,
    /// Whether the history fits after the control block.
    short_history: bool,
}

impl Rounds<'_> {
    fn launch_section(&self, section: u32) -> Result<(), Status> {
        let Execution::Launches(steps) = &self.prepared.execution else { return Ok(()) };
        let steps = self.sections[section as usize].iter().filter_map(|op| steps[*op].as_ref());
        let mut launches = steps.flat_map(Steps::launches);
        launches
            .try_for_each(|launch| self.dev.driver.queue.launch(&launch.kernel, launch.groups, launch.size))
    }

    fn advance(&mut self, mode: u32) -> Result<(), Status> {
        self.prepared.advance.set(ADVANCE_MODE, &Arg::Word(mode))?;
        self.dev.driver.queue.launch(&self.prepared.advance, 1, 1)
    }

    /// Queues everything before the first iteration.
    fn begin(&mut self) -> Result<(), Status> {
        if self.prepared.is_jit() {
            return Ok(()); // its first launch does this
        }
        self.advance(MODE_ENTER)?;
        self.launch_section(encode::SECTION_SETUP)?;
        self.launch_section(encode::SECTION_RESTART)
    }

    /// Queues a round of at most `left` iterations.
    fn round(&mut self, left: u64) -> Result<(), Status> {
        let budget = Arg::Word(self.size as u32);
        match &mut self.prepared.execution {
            Execution::Jit(jit) => {
                let kernel = &mut jit.launch.kernel;
                kernel.set(JIT_BUDGET, &budget)?;
                kernel.set(JIT_SHORT_HISTORY, &Arg::Word(self.short_history.into()))?;
                kernel.set(JIT_ENTER, &Arg::Word(self.begins.into()))?;
                self.begins = false;
                return self.dev.driver.queue.launch(kernel, jit.launch.groups, jit.launch.size);
            }
            Execution::OneGroup(launch) => {
                launch.kernel.set(PROGRAM_BUDGET, &budget)?;
                return self.dev.driver.queue.launch(&launch.kernel, launch.groups, launch.size);
            }
            Execution::Launches(_) => {}
        }
        let times = self.size.min(left.div_ceil(self.counts)).max(1);
        for _ in 0..times {
            self.launch_section(encode::SECTION_EACH)?;
        }
        self.queued += times * self.counts;
        if self.sections[encode::SECTION_EACH as usize].is_empty() {
            // Only instructions, more than one call evaluates.
            self.advance(MODE_DONE)?;
            self.launch_section(encode::SECTION_SETUP)?;
        }
        self.launch_section(encode::SECTION_RESTART)
    }

    /// Queues a read of the control block into one of the host's buffers.
    fn look(&mut self, place: usize) -> Result<Event, Status> {
        let jit = self.prepared.is_jit();
        let Executable { control, host, .. } = &mut *self.prepared;
        let words = if jit { host[place].len() } else { encode::CONTROL_WORDS as usize };
        let to = bytemuck::cast_slice_mut(&mut host[place][..words]);
        // SAFETY: the buffer is in a box that the plan owns; it is not accessed before the event has been
        // waited for, and `execute` waits for the queue before it returns, also after a failure.
        let event = unsafe { self.dev.driver.queue.read_later(control, 0, to) }?;
        self.dev.driver.queue.flush()?;
        Ok(event)
    }
}

/// Whether the history of `limit` iterations fits after the control block.
fn is_short(limit: u64) -> bool {
    limit < (JIT_CELLS_AT - JIT_HISTORY_AT) as u64
}

impl OpenCl {
    /// Runs a prepared program after checking what may have changed since. Nothing is queued any more when it returns.
    pub(crate) fn run_checked(
        &mut self,
        program: &Program,
        prepared: &mut Box<Executable>,
        run: Run<'_>,
    ) -> Result<Finish> {
        if prepared.epoch != self.store.epoch {
            self.store.check(program)?;
            prepared.epoch = self.store.epoch;
        }
        if prepared.holds_entries() && prepared.values != self.store.values {
            *prepared = self.making_room(|this| this.prepare(program))?;
        }
        let first = if prepared.is_fresh() { FirstLaunches::hold(&self.driver.device) } else { None };
        let finish = self.run(program, prepared, run);
        if finish.is_err() || first.is_some() {
            // Nothing queued may outlive the memory it uses. The first error is the one to report.
            let _ = self.driver.queue.finish();
        }
        finish
    }

    /// Runs one operation: its instructions on the host, the rest on the device. Slow, for what no program can do.
    pub(crate) fn alone(&mut self, kind: OpKind, pass: &Sweep, state: State<'_>) -> Result<()> {
        let whole = Program::once(Op { kind: kind.clone(), sweep: pass.clone() })?;
        self.store.check(&whole)?;
        let used = encode::encode(&whole)?.cells;
        let bare = Program::once(Op { kind, sweep: pass.without_instructions() })?;
        with_number!(pass.kind(), T => self.around::<T>(&bare, pass, used, state))
    }

    /// Runs a program between the instructions of a pass, which use these cells.
    fn around<T: Scalar>(
        &mut self,
        program: &Program,
        pass: &Sweep,
        used: Range<u32>,
        state: State<'_>,
    ) -> Result<()> {
        let first = used.start as usize;
        let mut machine = Machine {
            cells: vec![T::from_real(0.0); used.end as usize],
            control: *state.control,
            history: std::mem::take(state.history),
        };
        let mut run = |this: &mut Self, code: &[Instr]| {
            let cells = bytemuck::cast_slice_mut(&mut machine.cells[first..]);
            this.store.read_range(&this.driver, T::KIND, first, cells)?;
            let goes_on = machine.run(code);
            let cells = bytemuck::cast_slice(&machine.cells[first..]);
            this.store.write_range(&this.driver, T::KIND, first, cells).map(|()| goes_on)
        };
        let done = catching(|| {
            if run(self, pass.before())? {
                let mut prepared = self.making_room(|this| this.prepare(program))?;
                let once = Run { limit: 1, history: &mut History::off(), watch: None };
                self.run_checked(program, &mut prepared, once)?;
                run(self, pass.after())?;
            }
            Ok(())
        });
        (*state.control, *state.history) = (machine.control, machine.history);
        done
    }

    fn run(&mut self, program: &Program, prepared: &mut Executable, run: Run<'_>) -> Result<Finish> {
        let Run { limit, history, mut watch } = run;
        history.reset(limit);
        let (operation, kind) = (format!("running `{}`", program.name()), prepared.encoded.kind);
        self.take_jit(prepared, &operation)?;
        if program.iterates() {
            lacuna_gpu::count_run(prepared.is_jit());
        }
        self.bind(prepared)?;
        let fail = self.driver.fail(&operation);
        let nan = real_bits(kind, f64::NAN);
        let start = prepared.encoded.control(limit, history.stride, HISTORY as u64, nan);
        let [.., written] = &mut prepared.host;
        written[..start.len()].copy_from_slice(&start);
        // SAFETY: the buffer does not change until this returns, and everything queued has been waited for by
        // then.
        unsafe {
            self.driver.queue.write_later(&prepared.control, 0, bytemuck::cast_slice(&written[..start.len()]))
        }
        .map_err(&fail)?;

        let of = |section: usize| prepared.encoded.sections[section].clone();
        let with_vectors = |section| -> Vec<usize> {
            of(section).filter(|op| !prepared.encoded.is_scalar(*op)).map(|op| op as usize).collect()
        };
        let sections = [0, 1, 2].map(with_vectors);
        let (whole, jit) = (!matches!(prepared.execution, Execution::Launches(_)), prepared.is_jit());
        let counts = program.counts().max(1) as u64;
        // Operations of the whole solve without restarts.
        let operations = limit
            .div_ceil(counts)
            .saturating_mul(program.section(Section::Each).len() as u64)
            .saturating_add(64);
        let ahead = if jit && operations <= JIT_FIRST { 1 } else { AHEAD };
        let size = match limit.div_ceil(counts) {
            _ if jit => JIT_FIRST,
            _ if whole => ONE_GROUP_FIRST,
            few if few <= 64 => few.max(1),
            _ => 8,
        };
        let loops = program.iterates();
        let mut rounds = Rounds {
            dev: self,
            prepared,
            sections,
            counts,
            size,
            queued: 0,
            begins: true,
            short_history: is_short(limit),
        };
        rounds.begin().map_err(&fail)?;

        let mut in_flight = std::collections::VecDeque::with_capacity(AHEAD);
        let (mut place, mut reported) = (0, 0);
        let mut since = Instant::now();
        let mut state: Words = start;
        let mut looked = false;
        let (mut last, mut cancelled) = (0, false);
        loop {
            // As many rounds as may be needed, but only a few.
            while in_flight.len() < ahead
                && (in_flight.is_empty() || (loops && (whole || rounds.queued < limit)))
            {
                if loops || whole || looked {
                    rounds.round(limit.saturating_sub(rounds.queued)).map_err(&fail)?;
                }
                looked = true;
                in_flight.push_back((place, rounds.look(place).map_err(&fail)?));
                place = (place + 1) % AHEAD;
            }
            let Some((at, event)) = in_flight.pop_front() else { break };
            event.wait().map_err(&fail)?;
            state.copy_from_slice(&rounds.prepared.host[at][..start.len()]);
            last = at;
            if word(&state, encode::CONTROL_OP) == u64::from(encode::NONE) {
                break;
            }
            let iterations = word(&state, encode::CONTROL_ITERATIONS);
            if in_flight.is_empty() {
                rounds.queued = iterations;
            }
            rounds.grow(since.elapsed(), iterations);
            since = Instant::now();
            if let Some(watch) = watch.as_mut().filter(|_| !cancelled)
                && iterations > reported
            {
                reported = iterations;
                let rr = real_from_bits(kind, word(&state, encode::CONTROL_RECURRENCE));
                cancelled = catching(|| Ok(watch(Progress { iterations, rr })))?.is_break();
                if cancelled {
                    rounds.advance(MODE_CANCEL).map_err(&fail)?;
                    rounds.launch_section(encode::SECTION_RESTART).map_err(&fail)?;
                }
            }
        }
        // Work still queued finds the program stopped.
        for (_, event) in in_flight {
            event.wait().map_err(&fail)?;
        }
        if jit && is_short(limit) {
            let count = (word(&state, encode::CONTROL_HISTORY) as usize).min(JIT_CELLS_AT - JIT_HISTORY_AT);
            add_history(kind, bytemuck::cast_slice(&prepared.host[last][JIT_HISTORY_AT..]), count, history);
        } else {
            self.read_history(kind, &state, history).map_err(&fail)?;
        }
        if jit {
            let cells = &prepared.host[last][JIT_CELLS_AT..];
            self.store.mirror(kind, prepared.encoded.cells.clone(), bytemuck::cast_slice(cells));
        }
        Ok(Finish {
            reason: program.reason(word(&state, encode::CONTROL_REASON) as u32),
            iterations: word(&state, encode::CONTROL_ITERATIONS),
            restarts: word(&state, encode::CONTROL_RESTARTS),
            recurrence: real_from_bits(kind, word(&state, encode::CONTROL_RECURRENCE)),
            confirmed: real_from_bits(kind, word(&state, encode::CONTROL_CONFIRMED)),
        })
    }

    fn read_history(&self, kind: NumberType, state: &Words, history: &mut History) -> Result<(), Status> {
        let count = (word(state, encode::CONTROL_HISTORY) as usize).min(HISTORY);
        let Some(scratch) = self.scratch.as_ref().filter(|_| count > 0) else { return Ok(()) };
        let mut bytes = vec![0u8; count * real_size(kind)];
        self.driver.queue.read(&scratch.history, 0, &mut bytes)?;
        add_history(kind, &bytes, count, history);
        Ok(())
    }
}

/// Bytes of a part of a number.
fn real_size(kind: NumberType) -> usize {
    if kind == kind.narrow() { 4 } else { 8 }
}

/// Appends `count` numbers of the real type, as the device wrote them.
fn add_history(kind: NumberType, bytes: &[u8], count: usize, history: &mut History) {
    let size = real_size(kind);
    let number = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..size].copy_from_slice(bytes);
        real_from_bits(kind, u64::from_le_bytes(word))
    };
    history.values.extend(bytes.chunks_exact(size).take(count).map(number));
}

impl Rounds<'_> {
    /// Lengthens rounds as the solve proceeds, up to the maximum duration of a round.
    fn grow(&mut self, last: Duration, iterations: u64) {
        if last > ROUND {
            self.size = (self.size / 2).max(1);
        } else if !matches!(self.prepared.execution, Execution::Launches(_)) {
            self.size = (2 * self.size).min(1 << 30);
        } else {
            // Launches after the end only cost their overhead: keep them a small fraction of those before it.
            self.size = self.size.max(iterations / (8 * self.counts));
        }
    }
}
