//! Runs a compiled program: on the calling thread, and on the others if it is large enough.
use crate::pass::dot::SegmentSums;
use crate::pass::update::BoundTerm;
use crate::plan::compile::Compiled;
use crate::plan::rolled::Rolled;
use crate::plan::step::{Step, StepKind};
use crate::run::arena::{Arena, HELD_UP, Private, Quickest, Thread};
use crate::run::barrier::{Barrier, CANCEL, FAIL, PART, Running};
use crate::run::gang::{Gang, Helpers, Task};
use crate::run::share::{self, Share};
use crate::run::watch::{Watch, Watching};
use crate::spmv::{Stored, hyb};
use lacuna_engine::cells::{Instr, Machine};
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::{
    Caller, Control, Error, History, Program, Result, Scalar, Section, catching, next_section,
};
use pulp::{Arch, Simd, WithSimd};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// State shared by all threads of a run.
struct Shared<'a, T: Scalar> {
    program: &'a Program,
    compiled: &'a Compiled,
    vectors: &'a [*mut T],
    sums: *mut T,
    pieces: *mut T,
    arch: Arch,
    barrier: Barrier,
    /// The first panic of the caller's code.
    failure: Mutex<Option<Error>>,
    /// Who called, for that code.
    caller: Caller,
}

// SAFETY: threads write disjoint rows and disjoint sums between barriers.
unsafe impl<T: Scalar> Sync for Shared<'_, T> {}

/// The point at which all threads begin together: the start of a stretch of a section.
#[derive(Clone, Copy)]
struct Entry<'a, T: Scalar> {
    shared: *const Shared<'a, T>,
    /// The caller's cells and control state.
    from: *const Machine<T>,
    /// The threads' states, the caller's first.
    threads: *mut Thread<T>,
    section: Section,
    stretch: u32,
    meetings: usize,
}

/// Maximum nanoseconds per entry or element on threads without interference: a cache miss at an unpredictable
/// address.
const SLOW: u64 = 16;
/// Work above which a section takes longer than calling the threads.
const LONG: usize = 1 << 20;

/// The initial state of a run.
pub(crate) struct Start<'a, T> {
    pub(crate) cells: &'a mut Vec<T>,
    pub(crate) history: &'a mut History,
    pub(crate) limit: u64,
    pub(crate) arch: Arch,
    /// The other threads; without them the calling thread runs alone.
    pub(crate) helpers: Option<Helpers<'a>>,
    /// Whether to start only when all threads are available, and never to separate.
    pub(crate) gather: bool,
}

/// Runs a program to its end and returns its control.
///
/// # Errors
/// [`Error::Function`] if a host function or a format panics.
///
/// # Safety
/// `arena.vectors` must point to the vectors of the program, which nothing else may access meanwhile.
pub(crate) unsafe fn run<T: Scalar>(
    program: &Program,
    compiled: &Compiled,
    arena: &mut Arena<T>,
    start: Start<'_, T>,
    watch: Watching<'_>,
) -> Result<Control> {
    start.history.reset(start.limit);
    let Private { machine: first, terms, .. } = &mut arena.threads[0].private;
    terms.resize(compiled.terms, BoundTerm::NONE);
    first.control = Control::new(start.limit, program.confirms());
    std::mem::swap(&mut first.cells, start.cells);
    std::mem::swap(&mut first.history, start.history);
    let shared = Shared {
        program,
        compiled,
        vectors: &arena.vectors,
        sums: arena.sums.as_mut_ptr(),
        pieces: arena.pieces.as_mut_ptr(),
        arch: start.arch,
        barrier: Barrier::new(arena.threads.len()),
        failure: Mutex::new(None),
        caller: Caller::here(),
    };
    let _running = Running::new(1);
    let mut gang = start.helpers.map(|helpers| Gang::call(helpers, start.gather));
    let mut watch = Watch::new(watch);
    // SAFETY: the threads of the gang are those of the arena.
    unsafe { shared.lead(arena.threads.as_mut_ptr(), &mut gang, &mut watch, &mut arena.quickest) };
    drop(gang);
    let failure = shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    let first = &mut arena.threads[0].private.machine;
    std::mem::swap(&mut first.cells, start.cells);
    std::mem::swap(&mut first.history, start.history);
    match failure {
        Some(failure) => Err(failure),
        None => Ok(first.control),
    }
}

/// A thread that has joined: from the caller's state to the end, or until all except the caller leave.
///
/// # Safety
/// `data` must point to an [`Entry`] that lives until the first barrier, and the targets of its pointers must
/// live until the thread leaves; the caller must continue from the same point.
unsafe fn join<T: Scalar>(data: *const (), thread: usize) {
    // SAFETY: as the caller promises; each thread uses the private part of its own number, and the caller
    // changes its machine only after the first barrier.
    unsafe {
        let Entry { shared, from, threads, section, stretch, meetings } = *data.cast::<Entry<'_, T>>();
        let Thread { rolled, private } = &mut *threads.add(thread);
        private.machine.cells.clone_from(&(*from).cells);
        private.machine.control = (*from).control;
        private.machine.history.stride = 0;
        private.terms.resize((*shared).compiled.terms, BoundTerm::NONE);
        (*shared).barrier.wait();
        (*shared).follow(thread, (rolled, private), (section, stretch), meetings);
    }
}

impl<T: Scalar> Shared<'_, T> {
    /// Number of stretches of a section, between which threads may join and leave: one per rolled step, and
    /// one for the rest.
    fn stretches(&self, section: Section) -> u32 {
        match &self.compiled.rolled {
            Some(rolled) if section == Section::Each => rolled.count + 1,
            _ => 1,
        }
    }

    /// Whether a stretch on all threads took longer than it would without interference.
    fn is_late(&self, section: Section, stretch: u32, took: Duration, quickest: &mut Quickest) -> bool {
        let at_most = |work: usize| Duration::from_nanos(SLOW * work as u64);
        match &self.compiled.rolled {
            // A step takes longer than the previous one.
            Some(rolled) if section == Section::Each && stretch < rolled.count => {
                took > HELD_UP + at_most(rolled.work)
            }
            _ => {
                let work = self.compiled.works.get(section as usize).copied().unwrap_or(0);
                quickest.is_late(section, took, at_most(work))
            }
        }
    }

    /// Runs the steps of a stretch, until `run` reports that the rest of the section is skipped.
    fn walk(
        &self,
        section: Section,
        stretch: u32,
        rolled: &mut Option<Rolled>,
        run: impl FnMut(&Step) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match rolled {
            Some(rolled) if section == Section::Each && stretch < rolled.count => {
                rolled.at(stretch).iter().try_for_each(run)
            }
            _ => self.compiled.sections.get(section as usize).into_iter().flatten().try_for_each(run),
        }
    }

    /// The caller's thread runs the program to its end, with the others when they are available.
    ///
    /// # Safety
    /// `threads` must point to the states of all threads of the gang, or to a single one if there is no gang.
    unsafe fn lead(
        &self,
        threads: *mut Thread<T>,
        gang: &mut Option<Gang<'_>>,
        watch: &mut Watch<'_>,
        quickest: &mut Quickest,
    ) {
        let mut section = Section::Setup;
        let mut meetings = 0usize;
        let mut entry;
        // SAFETY: the caller's own state.
        let Thread { rolled, private } = unsafe { &mut *threads };
        while private.machine.control.section != Section::Stopped {
            private.machine.control.enter(section);
            for stretch in 0..self.stretches(section) {
                if let Some(gang) = gang
                    && !gang.together()
                    && gang.ready(section == Section::Setup && self.compiled.work >= LONG)
                {
                    entry = Entry {
                        shared: self,
                        from: &raw const private.machine,
                        threads,
                        section,
                        stretch,
                        meetings,
                    };
                    let task = Task { run: join::<T>, data: (&raw const entry).cast() };
                    // SAFETY: the entry lives until the gang is dropped or called again, and by then all
                    // threads have left.
                    unsafe { gang.join(task) };
                    self.barrier.wait();
                }
                let together = gang.as_ref().is_some_and(Gang::together);
                let began = together.then(Instant::now);
                let flow = self.walk(section, stretch, rolled, |step| {
                    let with =
                        if gang.as_ref().is_some_and(Gang::together) { self.barrier.threads() } else { 1 };
                    // SAFETY: all participating threads run the same steps, since all make the same
                    // decisions.
                    let wishes = unsafe { self.step(step, 0, with, private, &mut meetings) };
                    if wishes & PART != 0
                        && let Some(gang) = gang
                    {
                        gang.leave();
                        self.barrier.take_back(PART);
                    }
                    private.obey(wishes, section)
                });
                if flow.is_break() {
                    break;
                }
                // The last stretch is followed by the end of the section, where the caller is asked too.
                let between = section == Section::Each && stretch + 1 < self.stretches(section);
                if between && self.ends(watch, gang, private) {
                    break;
                }
                let late = began.is_some_and(|at| self.is_late(section, stretch, at.elapsed(), quickest));
                if late && gang.as_ref().is_some_and(Gang::may_leave) {
                    self.barrier.wish(PART);
                }
            }
            if section == Section::Each {
                self.ends(watch, gang, private);
            }
            section = next_section(self.program, section, &private.machine.control);
        }
    }

    /// Asks the caller whether the run is to end, if that is due. Returns whether it has ended: threads that run together
    /// learn of it at their next barrier.
    fn ends(&self, watch: &mut Watch<'_>, gang: &Option<Gang<'_>>, private: &mut Private<T>) -> bool {
        let control = &mut private.machine.control;
        if !watch.ends(control) {
            return false;
        }
        if gang.as_ref().is_some_and(Gang::together) {
            self.barrier.wish(CANCEL);
        } else if control.section != Section::Stopped {
            control.cancel();
        }
        control.halted()
    }

    /// Another thread runs its share until the program ends or it is asked to leave.
    ///
    /// # Safety
    /// All threads must begin with the same section and the same state.
    unsafe fn follow(
        &self,
        me: usize,
        (rolled, private): (&mut Option<Rolled>, &mut Private<T>),
        from: (Section, u32),
        mut meetings: usize,
    ) {
        let (mut section, mut first) = from;
        while private.machine.control.section != Section::Stopped {
            private.machine.control.enter(section);
            let mut parts = false;
            let _ = (first..self.stretches(section)).try_for_each(|stretch| {
                self.walk(section, stretch, rolled, |step| {
                    // SAFETY: all threads run the same steps, since all make the same decisions.
                    let wishes =
                        unsafe { self.step(step, me, self.barrier.threads(), private, &mut meetings) };
                    parts = wishes & PART != 0;
                    if parts { ControlFlow::Break(()) } else { private.obey(wishes, section) }
                })
            });
            if parts {
                return;
            }
            first = 0;
            section = next_section(self.program, section, &private.machine.control);
        }
    }

    /// Runs one step and returns the caller's requests.
    unsafe fn step(
        &self,
        step: &Step,
        me: usize,
        threads: usize,
        private: &mut Private<T>,
        meetings: &mut usize,
    ) -> u8 {
        let machine = &mut private.machine;
        if !self.evaluate(machine, &step.before, step.rotates) {
            return 0;
        }
        let mut wishes = 0;
        if me == 0
            && let StepKind::Host { f, x, cols, y } = &step.kind
        {
            let [x, y] = [x, y].map(|v| self.vectors[*v as usize]);
            // SAFETY: two vectors of these lengths, which no other thread accesses before the barrier below.
            let (x, y) =
                unsafe { (std::slice::from_raw_parts(x, *cols), std::slice::from_raw_parts_mut(y, step.n)) };
            wishes = self.unless_failed(f.call(x, y));
        }
        if let StepKind::TriSolve { a, b, x } = &step.kind {
            let vectors = [b, x].map(|v| self.vectors[*v as usize]);
            if let Some(a) = a.get::<T>() {
                // SAFETY: two vectors of the matrix's length; all threads run the same steps and passed a barrier
                // before this one.
                let share = || unsafe { a.share(self.arch, vectors, (me, threads), &self.barrier) };
                wishes |= if a.is_foreign() { self.foreign(|| _ = share()) } else { share() };
            }
        }
        let borders = &self.compiled.divisions[step.shares];
        let count = step.n.div_ceil(SEGMENT);
        let segments = match &step.kind {
            StepKind::Pieces { a, .. } => match a.get::<T>() {
                Some(Stored::Hyb(a)) => hyb::share(a, me, threads),
                _ => 0..0,
            },
            _ if threads == 1 => 0..count,
            _ => borders[me]..borders[me + 1],
        };
        // SAFETY: both halves are in the allocation. This is the half that no thread can still be reading.
        let sums = unsafe { self.sums.add((*meetings & 1) * self.compiled.sums) };
        share::bind(step, self.vectors, &machine.cells, &mut private.terms);
        let (cells, terms) = (&machine.cells, &private.terms);
        let (vectors, pieces) = (self.vectors, self.pieces);
        let share = Share { step, vectors, cells, terms, segments, sums, pieces };
        // SAFETY: the rows of this thread; products read vectors that no step writes before the next barrier.
        let run = || unsafe { share::run(self.arch, &share) };
        match &step.kind {
            StepKind::Spmv { a, .. } if a.get::<T>().is_some_and(Stored::is_foreign) => {
                wishes |= self.foreign(run)
            }
            _ => run(),
        }
        if step.meet && threads > 1 {
            wishes |= self.barrier.wait();
            *meetings += 1;
        }
        // SAFETY: all threads have written their segments, and write to the other half next.
        let all = unsafe { std::slice::from_raw_parts(sums, count * step.sums()) };
        let mut sums = SegmentSums { all, count };
        sums.next(&mut machine.cells[step.summed()]);
        for dot in &step.dots {
            let cell = &mut machine.cells[dot.cell as usize];
            match dot.largest {
                false => sums.next(std::slice::from_mut(cell)),
                true => *cell = sums.next_maximum(),
            }
        }
        self.evaluate(machine, &step.after, step.rotates);
        wishes
    }

    /// Runs a format of the caller's, which may not call the device on any thread. If it panics, the run is stopped: the
    /// threads meet as they always do, and leave together.
    fn foreign(&self, run: impl FnOnce()) -> u8 {
        let run = || {
            run();
            Ok(())
        };
        self.unless_failed(self.caller.run(|| catching(run)))
    }

    /// Requests the end of the run if the caller's code failed, and keeps the first failure.
    fn unless_failed(&self, done: Result<()>) -> u8 {
        let Err(error) = done else { return 0 };
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.barrier.wish(FAIL);
        FAIL
    }

    /// Runs instructions, if any; with the processor's fused multiply-adds if they include rotations.
    #[inline]
    fn evaluate(&self, machine: &mut Machine<T>, code: &[Instr], rotates: bool) -> bool {
        if code.is_empty() {
            return true;
        }
        if !rotates {
            return machine.run(code);
        }
        evaluate_rotating(self.arch, machine, code)
    }
}

/// Runs instructions that include rotations, with the processor's fused multiply-adds.
pub(crate) fn evaluate_rotating<T: Scalar>(arch: Arch, machine: &mut Machine<T>, code: &[Instr]) -> bool {
    arch.dispatch(Rotating { machine, code })
}

/// Instructions that include rotations.
struct Rotating<'a, T: Scalar> {
    machine: &'a mut Machine<T>,
    code: &'a [Instr],
}

impl<T: Scalar> WithSimd for Rotating<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> bool {
        self.machine.run_inlined(self.code)
    }
}
