//! The threads of a run: its caller from the first step, the pool's threads once the system schedules them.
//!
//! Sums do not depend on the number of threads, so threads may join and leave between sections. A caller
//! therefore never waits for a thread that another program keeps off its core: it begins alone, lets the
//! others join once all are available, and separates from them when they delay it.
use super::barrier::Running;
use super::sync::{
    Arc, AtomicU32, AtomicUsize, Instant, Mutex, Ordering, Queued, ThreadPool, crowded, spin_loop, yield_now,
};
use std::sync::PoisonError;
use std::time::Duration;

/// How long the caller waits for the others before it begins a long section alone.
const WELCOME: Duration = Duration::from_micros(100);
/// How long the caller continues alone after separating from the others; doubled each time.
const REST: Duration = Duration::from_millis(20);
/// Maximum of that time.
const LONGEST_REST: Duration = Duration::from_millis(640);
/// Calls that a pool may leave unanswered before a run goes without it.
pub(crate) const CALLS: usize = 4;
/// Spins of a thread that waits to join before it yields its core.
const SPINS: u32 = 1 << 11;

/// The threads besides the caller's.
#[derive(Clone, Copy)]
pub(crate) struct Helpers<'a> {
    pub(crate) pool: &'a ThreadPool,
    /// Whether the pool belongs to the application: the caller may be one of its threads, and the run uses as
    /// many threads as it has.
    pub(crate) shared: bool,
    /// Jobs of calls that the pool has not begun.
    pub(crate) queued: &'a Queued,
}

impl Helpers<'_> {
    /// Number of threads of a full run, including the caller's.
    pub(crate) fn threads(self) -> usize {
        self.pool.current_num_threads() + usize::from(!self.shared)
    }

    /// The pool thread that does not take part: the caller's, or the last one.
    fn left_out(self) -> Option<usize> {
        let last = self.pool.current_num_threads() - 1;
        self.shared.then(|| self.pool.current_thread_index().unwrap_or(last))
    }

    /// Calls the threads, unless other programs take the cores, or they have left so many calls unanswered that another would
    /// only lengthen the queue of a busy pool. One that `insists` is made in any case.
    fn call(self, insists: bool) -> Option<Arc<Call>> {
        let count = self.pool.current_num_threads();
        let refused = || self.queued.load(Ordering::Relaxed) >= CALLS * count || crowded(self.threads());
        if !insists && refused() {
            return None;
        }
        self.queued.fetch_add(count, Ordering::Relaxed);
        let call = Arc::new(Call {
            state: AtomicU32::new(CALLED),
            waiting: AtomicUsize::new(0),
            inside: AtomicUsize::new(0),
            task: Mutex::new(None),
        });
        let (theirs, queued, left_out) = (call.clone(), self.queued.clone(), self.left_out());
        self.pool.spawn_broadcast(move |context| {
            queued.fetch_sub(1, Ordering::Relaxed);
            let index = context.index();
            match left_out {
                Some(left_out) if index == left_out => {}
                Some(left_out) if index > left_out => theirs.answer(index),
                _ => theirs.answer(index + 1),
            }
        });
        Some(call)
    }
}

/// The work of a thread once it joins: `run(data, thread)`.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    pub(crate) run: unsafe fn(*const (), usize),
    pub(crate) data: *const (),
}
// SAFETY: the caller that submits a task keeps `data` alive until every thread has left, see `Gang::leave`.
unsafe impl Send for Task {}

/// The states of a call.
const CALLED: u32 = 0;
const TOGETHER: u32 = 1;
const CLOSED: u32 = 2;

/// One call to the threads of a pool. It outlives the run in case a thread answers late.
struct Call {
    state: AtomicU32,
    /// Threads that have answered.
    waiting: AtomicUsize,
    /// Threads that have joined and not left.
    inside: AtomicUsize,
    task: Mutex<Option<Task>>,
}

impl Call {
    /// Run by a thread of the pool in answer to the call.
    fn answer(&self, thread: usize) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0;
        loop {
            match self.state.load(Ordering::Acquire) {
                CALLED if spins < SPINS => {
                    spins += 1;
                    spin_loop();
                }
                CALLED => yield_now(),
                TOGETHER => break,
                _ => return,
            }
        }
        let task = *self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Task { run, data }) = task {
            // SAFETY: the caller keeps `data` alive while a thread is inside.
            unsafe { run(data, thread) };
        }
        self.inside.fetch_sub(1, Ordering::Release);
    }
}

/// The caller's side of a run.
pub(crate) struct Gang<'a> {
    helpers: Helpers<'a>,
    /// None while the pool does not answer.
    call: Option<Arc<Call>>,
    /// Counts the other threads while they take part.
    together: Option<Running>,
    rest: Duration,
    left: Option<Instant>,
    /// Waits for all threads, and never separates.
    gather: bool,
}

impl<'a> Gang<'a> {
    /// Calls the threads of the pool.
    pub(crate) fn call(helpers: Helpers<'a>, gather: bool) -> Self {
        Gang { helpers, call: helpers.call(gather), together: None, rest: REST, left: None, gather }
    }

    /// Number of threads of a full run.
    pub(crate) fn threads(&self) -> usize {
        self.helpers.threads()
    }

    /// Whether the other threads may leave before the run ends.
    pub(crate) fn may_leave(&self) -> bool {
        self.together() && !self.gather
    }

    pub(crate) fn together(&self) -> bool {
        self.together.is_some()
    }

    /// Whether all threads have answered, so that [`Gang::join`] may follow. Waits a little before a `long`
    /// section.
    pub(crate) fn ready(&mut self, long: bool) -> bool {
        if let Some(left) = self.left {
            if left.elapsed() < self.rest {
                return false;
            }
            self.left = None;
            self.rest = (2 * self.rest).min(LONGEST_REST);
            self.call = None;
        }
        if self.call.is_none() {
            self.call = self.helpers.call(self.gather);
        }
        let Some(call) = &self.call else { return false };
        let there = || call.waiting.load(Ordering::Acquire) + 1 == self.threads();
        if (long || self.gather) && !there() {
            let since = Instant::now();
            while !there() && (self.gather || since.elapsed() < WELCOME) {
                if self.gather { yield_now() } else { spin_loop() }
            }
        }
        there()
    }

    /// Starts all threads on the task, after [`Gang::ready`] has said that they are there.
    ///
    /// # Safety
    /// The target of the task must live until [`Gang::leave`] has returned or the gang is dropped.
    pub(crate) unsafe fn join(&mut self, task: Task) {
        let Some(call) = &self.call else { return };
        *call.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        call.inside.store(self.threads() - 1, Ordering::Relaxed);
        call.state.store(TOGETHER, Ordering::Release);
        self.together = Some(Running::new(self.threads() - 1));
    }

    /// Waits for the other threads, which were asked to leave, to do so; they are called again later.
    pub(crate) fn leave(&mut self) {
        self.close();
        self.together = None;
        self.left = Some(Instant::now());
    }

    /// Admits no further threads, and waits until all others have left.
    fn close(&self) {
        let Some(call) = &self.call else { return };
        let before = call.state.swap(CLOSED, Ordering::AcqRel);
        let mut spins = 0;
        while before == TOGETHER && call.inside.load(Ordering::Acquire) > 0 {
            if spins < SPINS {
                spins += 1;
                spin_loop();
            } else {
                yield_now();
            }
        }
    }
}

impl Drop for Gang<'_> {
    fn drop(&mut self) {
        self.close();
    }
}
