//! The threads of the backend share work of the host: see [`Workers`].
use super::gang::CALLS;
use super::sync::crowded;
use super::threads::Pool;
use lacuna_engine::Workers;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The threads of a backend, for anybody who has work for them.
pub(crate) struct Shared {
    pub(crate) pool: Arc<Pool>,
    /// Jobs that the pool has not begun.
    pub(crate) queued: Arc<AtomicUsize>,
}

/// Work that threads take part in until its caller has done all that was left.
struct Job {
    work: *const (dyn Fn() + Sync),
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// Whether the caller has done its part: who comes later goes.
    closed: bool,
    inside: usize,
    panic: Option<Box<dyn Any + Send>>,
}

// SAFETY: `work` may be called by all threads, and lives until the caller has closed the job and nobody is inside.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Job {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Run by a thread of the pool, perhaps after the work is done.
    fn answer(&self) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        state.inside += 1;
        drop(state);
        // SAFETY: the caller waits for those inside.
        let done = catch_unwind(AssertUnwindSafe(|| unsafe { (*self.work)() }));
        let mut state = self.state();
        state.inside -= 1;
        if let Err(panic) = done {
            state.panic.get_or_insert(panic);
        }
        drop(state);
        self.ended.notify_all();
    }

    /// Admits nobody further and waits for those inside.
    fn close(&self) -> Option<Box<dyn Any + Send>> {
        let mut state = self.state();
        state.closed = true;
        while state.inside > 0 {
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.panic.take()
    }
}

impl Workers for Shared {
    fn count(&self) -> usize {
        self.pool.count()
    }

    fn run(&self, others: usize, work: &(dyn Fn() + Sync)) {
        let others = others.min(self.count() - 1);
        let busy = || self.queued.load(Ordering::Relaxed) >= CALLS * self.count() || crowded(others + 1);
        let Some(pool) = self.pool.started().ok().filter(|_| others > 0 && !busy()) else { return work() };
        let work: *const (dyn Fn() + Sync + '_) = work;
        // SAFETY: only the lifetime changes; it is not called after this function returns, see `Job::close`.
        let lasting =
            unsafe { std::mem::transmute::<*const (dyn Fn() + Sync + '_), *const (dyn Fn() + Sync)>(work) };
        let job = Arc::new(Job { work: lasting, state: Mutex::default(), ended: Condvar::new() });
        for _ in 0..others {
            let (job, queued) = (job.clone(), self.queued.clone());
            queued.fetch_add(1, Ordering::Relaxed);
            pool.spawn(move || {
                queued.fetch_sub(1, Ordering::Relaxed);
                job.answer();
            });
        }
        // SAFETY: the caller's own reference.
        let own = catch_unwind(AssertUnwindSafe(|| unsafe { (*work)() }));
        let others = job.close();
        if let Some(panic) = own.err().or(others) {
            resume_unwind(panic);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::run::threads::Threads;
    use lacuna_engine::Workers;
    use rayon::ThreadPoolBuilder;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Barrier};

    #[test]
    fn work_is_shared_and_a_busy_pool_is_not_waited_for() {
        for threads in [1, 3] {
            let shared = Threads::own(threads).workers();
            assert_eq!(shared.count(), threads);
            let (next, runs) = (AtomicUsize::new(0), AtomicUsize::new(0));
            shared.run(threads, &|| {
                runs.fetch_add(1, Ordering::Relaxed);
                while next.fetch_add(1, Ordering::Relaxed) < 1000 {
                    std::thread::yield_now();
                }
            });
            assert!(next.into_inner() >= 1000 && runs.into_inner() <= threads);
        }
        let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
        let barrier = Arc::new(Barrier::new(3));
        let busy = barrier.clone();
        pool.spawn_broadcast(move |_| {
            busy.wait();
        });
        let (shared, runs) = (Threads::shared(pool).workers(), AtomicUsize::new(0));
        (0..100).for_each(|_| shared.run(1, &|| _ = runs.fetch_add(1, Ordering::Relaxed)));
        assert_eq!(runs.into_inner(), 100, "the caller did it all");
        barrier.wait();
    }

    #[test]
    fn a_panic_of_either_reaches_the_caller() {
        let shared = Threads::own(2).workers();
        let here = std::thread::current().id();
        for own in [true, false] {
            let began = AtomicUsize::new(0);
            let run = || {
                shared.run(1, &|| {
                    began.fetch_add(1, Ordering::Relaxed);
                    let mine = std::thread::current().id() == here;
                    // Both begin, so that each has its turn.
                    while began.load(Ordering::Relaxed) < 2 {
                        std::thread::yield_now();
                    }
                    assert!(mine != own, "as it should");
                });
            };
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
        }
    }
}
