//! Runs a compiled program: on the calling thread where it is small, else in one parallel region.
use crate::barrier::Barrier;
use crate::compile::{Compiled, Kind, Step};
use crate::dot::total;
use crate::share::{self, Share};
use crate::update::BoundTerm;
use lacuna_core::cells::Machine;
use lacuna_core::sum::SEGMENT;
use lacuna_core::{Control, History, Program, Progress, Scalar, Section, next_section};
use pulp::Arch;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often the caller's `watch` is called.
const TELL: Duration = Duration::from_millis(40);

/// Everything a run needs that a second run uses again.
pub(crate) struct Arena<T> {
    /// Vectors by number; found anew for every run.
    pub(crate) vectors: Vec<*mut T>,
    /// Segment sums, one half for every other meeting.
    sums: Vec<T>,
    threads: Vec<Private<T>>,
}

/// What one thread keeps to itself.
struct Private<T> {
    machine: Machine<T>,
    scratch: Vec<T>,
    terms: Vec<BoundTerm<T>>,
}

impl<T: Scalar> Arena<T> {
    pub(crate) fn new(compiled: &Compiled<T>, threads: usize) -> Self {
        let private = || Private {
            machine: Machine { cells: Vec::new(), control: Control::new(0, false), history: History::off() },
            scratch: vec![T::zero(); compiled.segments.div_ceil(SEGMENT)],
            terms: Vec::new(),
        };
        Arena {
            vectors: Vec::with_capacity(compiled.vectors.len()),
            sums: vec![T::zero(); 2 * compiled.sums],
            threads: (0..threads).map(|_| private()).collect(),
        }
    }
}

// SAFETY: the pointers are to vectors that outlive the run and that its threads share by the rules of `share::run`.
unsafe impl<T: Send> Send for Arena<T> {}

/// What all threads of a run see.
struct Shared<'a, T: Scalar> {
    program: &'a Program<T>,
    compiled: &'a Compiled<T>,
    vectors: &'a [*mut T],
    sums: *mut T,
    arch: Arch,
    barrier: Barrier,
    cancel: AtomicBool,
    /// Iterations and the bits of the squared residual norm, for the caller.
    told: [AtomicU64; 2],
}
// SAFETY: threads write disjoint rows and disjoint sums between barriers.
unsafe impl<T: Scalar> Sync for Shared<'_, T> {}

/// The wish of a caller who watches.
pub(crate) type Watching<'w> = Option<&'w mut dyn FnMut(Progress) -> ControlFlow<()>>;

/// What a run starts from.
pub(crate) struct Start<'a, T> {
    pub(crate) cells: &'a mut Vec<T>,
    pub(crate) history: &'a mut History,
    pub(crate) limit: u64,
    pub(crate) arch: Arch,
    /// The pool, and so all threads; the calling thread alone where not given.
    pub(crate) pool: Option<&'a rayon::ThreadPool>,
}

/// Runs a program to its end and returns its control.
///
/// # Safety
/// `arena.vectors` must point to the vectors of the program, which nothing else may touch meanwhile.
pub(crate) unsafe fn run<T: Scalar>(
    program: &Program<T>,
    compiled: &Compiled<T>,
    arena: &mut Arena<T>,
    start: Start<'_, T>,
    mut watch: Watching<'_>,
) -> Control {
    let threads = start.pool.map_or(1, |pool| pool.current_num_threads());
    start.history.reset(start.limit);
    for (t, private) in arena.threads.iter_mut().enumerate() {
        private.machine.control = Control::new(start.limit, !program.restart.is_empty());
        if t == 0 {
            std::mem::swap(&mut private.machine.cells, start.cells);
            std::mem::swap(&mut private.machine.history, start.history);
        } else if threads > 1 {
            private.machine.history.stride = 0;
        }
    }
    if threads > 1
        && let Some((first, others)) = arena.threads.split_first_mut()
    {
        others.iter_mut().for_each(|p| p.machine.cells.clone_from(&first.machine.cells));
    }
    let shared = Shared {
        program,
        compiled,
        vectors: &arena.vectors,
        sums: arena.sums.as_mut_ptr(),
        arch: start.arch,
        barrier: Barrier::new(threads),
        cancel: AtomicBool::new(false),
        told: [AtomicU64::new(0), AtomicU64::new(0)],
    };
    match start.pool {
        None => {
            // SAFETY: this thread alone runs the program.
            unsafe { shared.work(0, 1, &mut arena.threads[0], &mut watch) };
        }
        Some(pool) => parallel(pool, &shared, &mut arena.threads, watch),
    }
    let first = &mut arena.threads[0].machine;
    std::mem::swap(&mut first.cells, start.cells);
    std::mem::swap(&mut first.history, start.history);
    first.control
}

/// One parallel region for the whole program, while the calling thread watches.
fn parallel<T: Scalar>(
    pool: &rayon::ThreadPool,
    shared: &Shared<'_, T>,
    threads: &mut [Private<T>],
    watch: Watching<'_>,
) {
    let count = threads.len();
    let done = AtomicBool::new(false);
    let caller = std::thread::current();
    let slots: Vec<_> = threads.iter_mut().map(|p| std::sync::Mutex::new(Some(p))).collect();
    pool.in_place_scope(|scope| {
        scope.spawn_broadcast(|_, context| {
            let private = slots[context.index()].lock().ok().and_then(|mut slot| slot.take());
            if let Some(private) = private {
                // SAFETY: every thread of the pool runs the program with its own share of the rows.
                unsafe { shared.work(context.index(), count, private, &mut None) };
            }
            if context.index() == 0 {
                done.store(true, Ordering::Release);
                caller.unpark();
            }
        });
        if let Some(watch) = watch {
            let mut last = 0;
            while !done.load(Ordering::Acquire) {
                std::thread::park_timeout(TELL);
                let [iterations, bits] =
                    [&shared.told[0], &shared.told[1]].map(|t| t.load(Ordering::Relaxed));
                let progress = Progress { iterations, rr: f64::from_bits(bits) };
                if iterations > last && watch(progress).is_break() {
                    shared.cancel.store(true, Ordering::Relaxed);
                    break;
                }
                last = iterations;
            }
        }
    });
}

impl<T: Scalar> Shared<'_, T> {
    /// Thread `me` of `threads` runs the program to its end.
    ///
    /// # Safety
    /// All threads must run it, each once.
    unsafe fn work(&self, me: usize, threads: usize, private: &mut Private<T>, watch: &mut Watching<'_>) {
        let mut section = Section::Setup;
        let mut meetings = 0usize;
        let mut last_told = watch.is_some().then(Instant::now);
        while private.machine.control.section != Section::Stopped {
            private.machine.control.enter(section);
            let steps = match section {
                Section::Setup => &self.compiled.sections[0][..],
                Section::Restart => &self.compiled.sections[1],
                Section::Each => &self.compiled.sections[2],
                Section::Stopped => &[],
            };
            for step in steps {
                // SAFETY: all threads run the same steps, since all take the same decisions.
                let cancelled = unsafe { self.step(step, me, threads, private, &mut meetings) };
                let control = &mut private.machine.control;
                if cancelled && section == Section::Each && !control.halted() {
                    control.cancel();
                }
                if control.halted() {
                    break;
                }
            }
            let control = &mut private.machine.control;
            if me == 0 {
                self.told[1].store(control.recurrence.to_bits(), Ordering::Relaxed);
                self.told[0].store(control.iterations, Ordering::Relaxed);
            }
            if let (Some(watch), Some(told)) = (watch.as_mut(), last_told.as_mut())
                && section == Section::Each
                && told.elapsed() >= TELL
            {
                *told = Instant::now();
                if watch(Progress { iterations: control.iterations, rr: control.recurrence }).is_break()
                    && control.section != Section::Stopped
                {
                    control.cancel();
                }
            }
            section = next_section(self.program, section, control);
        }
    }

    /// One step; tells whether the caller was seen to cancel.
    unsafe fn step(
        &self,
        step: &Step<T>,
        me: usize,
        threads: usize,
        private: &mut Private<T>,
        meetings: &mut usize,
    ) -> bool {
        let machine = &mut private.machine;
        if !machine.run(&step.before) {
            return false;
        }
        let borders = &self.compiled.divisions[step.shares];
        let count = step.n.div_ceil(SEGMENT);
        let segments = if threads == 1 { 0..count } else { borders[me]..borders[me + 1] };
        // The half of the sums that no thread can still be reading.
        // SAFETY: both halves are in the allocation.
        let sums = unsafe { self.sums.add((*meetings & 1) * self.compiled.sums) };
        share::bind(step, self.vectors, &machine.cells, &mut private.terms);
        let (cells, terms) = (&machine.cells, &private.terms);
        let share = Share { step, vectors: self.vectors, cells, terms, segments, sums };
        // SAFETY: the rows of this thread; products read vectors that no step writes before the next meeting.
        unsafe { share::run(self.arch, share) };
        let mut cancelled = false;
        if step.meet && threads > 1 {
            cancelled = self.barrier.wait(&self.cancel);
            *meetings += 1;
        }
        // SAFETY: all threads have written their segments, and write the other half next.
        let all = unsafe { std::slice::from_raw_parts(sums, count * step.sums()) };
        let mut sum = |d: usize| total(&all[d * count..(d + 1) * count], &mut private.scratch);
        let mut d = 0;
        if let Kind::BasisDot { columns, h, .. } = step.kind {
            for j in 0..columns {
                machine.cells[(h + j) as usize] = sum(d);
                d += 1;
            }
        }
        for dot in &step.dots {
            machine.cells[dot.cell as usize] = sum(d);
            d += 1;
        }
        machine.run(&step.after);
        cancelled
    }
}
