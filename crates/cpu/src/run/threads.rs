//! The threads that a backend computes on.
use super::gang::Helpers;
use super::sync::Queued;
use lacuna_engine::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;

/// The threads besides the caller's.
pub(crate) struct Threads {
    pool: Pool,
    queued: Queued,
}

enum Pool {
    /// Own threads, `count` with the caller's, started for the first program that is large enough for them.
    Own { count: usize, pool: Option<ThreadPool> },
    /// A pool of the application, whose threads include the caller or leave one out.
    Shared(Arc<ThreadPool>),
}

impl Threads {
    /// `count` threads with the caller's.
    pub(crate) fn own(count: usize) -> Self {
        Threads { pool: Pool::Own { count, pool: None }, queued: Queued::default() }
    }
    /// The threads of a pool of the application.
    pub(crate) fn shared(pool: Arc<ThreadPool>) -> Self {
        Threads { pool: Pool::Shared(pool), queued: Queued::default() }
    }

    /// Number of threads, including the caller's.
    pub(crate) fn count(&self) -> usize {
        match &self.pool {
            Pool::Own { count, .. } => *count,
            Pool::Shared(pool) => pool.current_num_threads(),
        }
    }

    /// The threads that help the caller, started if they are not; `None` if it is alone.
    ///
    /// # Errors
    /// [`Error::Device`] if the threads cannot be started.
    pub(crate) fn helpers(&mut self) -> Result<Option<Helpers<'_>>> {
        if self.count() == 1 {
            return Ok(None);
        }
        let (pool, shared) = match &mut self.pool {
            Pool::Shared(pool) => (&**pool, true),
            Pool::Own { pool: Some(pool), .. } => (&*pool, false),
            Pool::Own { count, pool } => (&*pool.insert(start(*count)?), false),
        };
        Ok(Some(Helpers { pool, shared, queued: &self.queued }))
    }
}

/// A pool of one thread fewer: the caller is one of them.
fn start(threads: usize) -> Result<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads - 1);
    pool.thread_name(|i| format!("lacuna-{}", i + 1)).build().map_err(|error| Error::Device {
        device: "cpu".into(),
        operation: format!("starting {threads} threads"),
        message: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::gang::{CALLS, Gang};
    use std::sync::Barrier;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_busy_pool_collects_few_calls_and_answers_once_it_is_free() {
        let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
        let barrier = Arc::new(Barrier::new(3));
        let busy = barrier.clone();
        pool.spawn_broadcast(move |_| {
            busy.wait();
        });
        let mut threads = Threads::shared(pool.clone());
        for _ in 0..100 {
            drop(Gang::call(threads.helpers().unwrap().unwrap(), false));
        }
        assert_eq!(threads.queued.load(Ordering::Relaxed), CALLS * 2);
        let mut gang = Gang::call(threads.helpers().unwrap().unwrap(), false);
        assert!(!gang.ready(true));
        barrier.wait();
        while !gang.ready(true) {
            std::thread::yield_now();
        }
    }
}
