//! A run in small: a caller that begins alone, others that join and leave.
use crate::barrier::{Barrier, CANCEL, PART};
use crate::gang::{Gang, Helpers, Task};
use crate::sync::{Queued, ThreadPool, begin};
use loom::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs a model of so many threads in every order, with at most so many preemptions where a bound is given, and says how many there
/// were.
pub(crate) fn explore(
    what: &str,
    threads: usize,
    preemptions: Option<usize>,
    model: impl Fn() + Send + Sync + 'static,
) {
    // The count of running threads, by which waits are shorter, is the process's: one model at a time.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 20_000;
    let orders = Arc::new(AtomicUsize::new(0));
    let count = orders.clone();
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        begin(threads > 2);
        model();
    });
    eprintln!("{what}: {} orders", orders.load(Ordering::Relaxed));
}

/// Rows of the system, each of one thread where several take part.
const ROWS: usize = 3;

/// What a thread goes by: the machine of its cells and control.
#[derive(Clone, Copy, Debug, PartialEq)]
struct State {
    number: usize,
    steps: usize,
    cancelled: bool,
}

/// What all threads see.
struct Shared {
    barrier: Barrier,
    plan: Scenario,
    rows: [UnsafeCell<usize>; ROWS],
    sums: [[UnsafeCell<usize>; ROWS]; 2],
    states: [UnsafeCell<State>; ROWS],
}

/// What happens in a run.
#[derive(Clone, Copy)]
struct Scenario {
    threads: usize,
    stretches: usize,
    steps: usize,
    /// The stretch behind which the caller wishes that the others leave.
    parts: Option<usize>,
    /// The stretch behind which it wishes that the run end.
    cancels: Option<usize>,
    gather: bool,
}

/// Where threads begin together.
struct Entry {
    shared: *const Shared,
    stretch: usize,
    meetings: usize,
}

/// The rows of a thread.
fn share(me: usize, threads: usize) -> std::ops::Range<usize> {
    me * ROWS / threads..(me + 1) * ROWS / threads
}

impl Shared {
    /// One step: all rows from the number of the step before, their sum, a meeting, the next number.
    unsafe fn step(&self, me: usize, threads: usize, state: &mut State, meetings: &mut usize) -> u8 {
        let half = &self.sums[*meetings & 1];
        for i in share(me, threads) {
            // SAFETY: the rows of this thread.
            self.rows[i].with_mut(|row| unsafe { *row += state.number + i });
            // SAFETY: the sums of this thread, in the half that no one can still be reading.
            half[i].with_mut(|sum| self.rows[i].with(|row| unsafe { *sum = *row }));
        }
        let mut wishes = 0;
        if threads > 1 {
            wishes |= self.barrier.wait();
            *meetings += 1;
        }
        // SAFETY: all threads have written their sums, and write the other half next.
        state.number = half.iter().map(|sum| sum.with(|sum| unsafe { *sum })).sum::<usize>() % 1009;
        state.steps += 1;
        wishes
    }

    /// The caller: alone, and with the others when they are there.
    unsafe fn lead(&self, gang: &mut Option<Gang<'_>>, state: &mut State) {
        let mut meetings = 0;
        let mut entry;
        for stretch in 0..self.plan.stretches {
            if state.cancelled {
                break;
            }
            if let Some(gang) = gang
                && !gang.together()
                && gang.ready(stretch == 0)
            {
                // SAFETY: no other thread is inside.
                self.states[0].with_mut(|of| unsafe { *of = *state });
                entry = Entry { shared: self, stretch, meetings };
                // SAFETY: the entry lives until the gang is dropped or called anew, and by then all have left.
                unsafe { gang.join(Task { run: join, data: (&raw const entry).cast() }) };
                self.barrier.wait();
                // What the others begin from may change once all have met.
                // SAFETY: as just said.
                self.states[0].with_mut(|of| unsafe { (*of).number = usize::MAX });
            }
            for _ in 0..self.plan.steps {
                let with = if gang.as_ref().is_some_and(Gang::together) { self.barrier.threads() } else { 1 };
                // SAFETY: all threads that take part run the same steps.
                let wishes = unsafe { self.step(0, with, state, &mut meetings) };
                if wishes & PART != 0
                    && let Some(gang) = gang
                {
                    gang.leave();
                    self.barrier.take_back(PART);
                }
                state.cancelled |= wishes & CANCEL != 0;
                if state.cancelled {
                    break;
                }
            }
            if self.plan.parts == Some(stretch) && gang.as_ref().is_some_and(Gang::may_leave) {
                self.barrier.wish(PART);
            }
            if self.plan.cancels == Some(stretch) {
                match gang {
                    Some(gang) if gang.together() => self.barrier.wish(CANCEL),
                    _ => state.cancelled = true,
                }
            }
        }
    }

    /// Another thread, until the run ends or it is told to leave.
    unsafe fn follow(&self, me: usize, state: &mut State, first: usize, mut meetings: usize) {
        for _ in first..self.plan.stretches {
            for _ in 0..self.plan.steps {
                // SAFETY: all threads that take part run the same steps.
                let wishes = unsafe { self.step(me, self.barrier.threads(), state, &mut meetings) };
                if wishes & PART != 0 {
                    return;
                }
                state.cancelled |= wishes & CANCEL != 0;
                if state.cancelled {
                    return;
                }
            }
        }
    }
}

unsafe fn join(data: *const (), thread: usize) {
    // SAFETY: the entry lives until the first meeting, and what it points to until the thread leaves.
    unsafe {
        let Entry { shared, stretch, meetings } = *data.cast::<Entry>();
        let shared = &*shared;
        let mut state = shared.states[0].with(|of| *of);
        shared.states[thread].with_mut(|of| *of = state);
        shared.barrier.wait();
        shared.follow(thread, &mut state, stretch, meetings);
        shared.states[thread].with_mut(|of| *of = state);
    }
}

/// A run; its end must be that of one thread alone, and no other thread may be inside when it is there.
fn run(plan: Scenario) -> State {
    let state = State { number: 1, steps: 0, cancelled: false };
    let shared = Shared {
        barrier: Barrier::new(plan.threads),
        plan,
        rows: std::array::from_fn(|_| UnsafeCell::new(0)),
        sums: std::array::from_fn(|_| std::array::from_fn(|_| UnsafeCell::new(0))),
        states: std::array::from_fn(|_| UnsafeCell::new(state)),
    };
    let (pool, queued) = (ThreadPool { threads: plan.threads - 1 }, Queued::default());
    let mut state = state;
    let helpers = Helpers { pool: &pool, shared: false, queued: &queued };
    let mut gang = (plan.threads > 1).then(|| Gang::call(helpers, plan.gather));
    // SAFETY: the threads of the gang are those of the plan.
    unsafe { shared.lead(&mut gang, &mut state) };
    drop(gang);
    // Nothing is shared any more: loom fails where another thread's access is not ordered before these.
    for cell in shared.rows.iter().chain(shared.sums.iter().flatten()) {
        // SAFETY: all others have left.
        cell.with_mut(|cell| unsafe { *cell = 0 });
    }
    for cell in &shared.states {
        // SAFETY: as above.
        cell.with_mut(|of| unsafe { (*of).steps = 0 });
    }
    state
}

fn every_end_is_that_of_one_thread(what: &str, preemptions: Option<usize>, plan: Scenario) {
    explore(what, plan.threads, preemptions, move || {
        let alone = Scenario { threads: 1, parts: None, cancels: None, ..plan };
        let got = run(plan);
        // A run that is cancelled ends at one of its steps.
        let mut want = State { number: 1, steps: 0, cancelled: got.cancelled };
        let mut rows = [0; ROWS];
        while want.steps < got.steps {
            (0..ROWS).for_each(|i| rows[i] += want.number + i);
            want.number = rows.iter().sum::<usize>() % 1009;
            want.steps += 1;
        }
        assert_eq!(got, want);
        let all = alone.stretches * alone.steps;
        assert!(got.steps == all || plan.cancels.is_some() && got.cancelled && got.steps < all);
    });
}

const PLAN: Scenario =
    Scenario { threads: 2, stretches: 3, steps: 1, parts: None, cancels: None, gather: false };

#[test]
fn one_joins_at_any_time() {
    every_end_is_that_of_one_thread("one joins", Some(4), PLAN);
}

#[test]
fn one_joins_and_the_caller_waits_for_it() {
    every_end_is_that_of_one_thread("one joins, waited for", Some(4), Scenario { gather: true, ..PLAN });
}

#[test]
fn one_joins_is_told_to_leave_and_joins_again() {
    let plan = Scenario { stretches: 4, parts: Some(0), ..PLAN };
    every_end_is_that_of_one_thread("one leaves and joins again", Some(4), plan);
    let plan = Scenario { steps: 2, parts: Some(1), ..PLAN };
    every_end_is_that_of_one_thread("one leaves within a stretch", Some(4), plan);
    let plan = Scenario { parts: Some(2), ..PLAN };
    every_end_is_that_of_one_thread("one is told to leave at the end", Some(4), plan);
}

#[test]
fn one_joins_and_the_run_is_cancelled() {
    every_end_is_that_of_one_thread("cancelled", Some(4), Scenario { steps: 2, cancels: Some(0), ..PLAN });
    let plan = Scenario { parts: Some(0), cancels: Some(0), ..PLAN };
    every_end_is_that_of_one_thread("told to leave and cancelled at once", Some(4), plan);
}

#[test]
fn two_join_leave_and_join_again() {
    let plan = Scenario { threads: 3, ..PLAN };
    every_end_is_that_of_one_thread("two join", Some(1), plan);
    every_end_is_that_of_one_thread("two leave and join again", Some(1), Scenario { parts: Some(0), ..plan });
}

#[test]
#[ignore = "minutes"]
fn two_join_with_more_preemptions() {
    let plan = Scenario { threads: 3, stretches: 1, ..PLAN };
    every_end_is_that_of_one_thread("two join, waited for", Some(1), Scenario { gather: true, ..plan });
    every_end_is_that_of_one_thread("two join, two preemptions", Some(2), plan);
}
