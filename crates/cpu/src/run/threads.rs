//! The threads that a backend computes on.
use super::gang::Helpers;
use super::sync::Queued;
use super::workers::Shared;
use lacuna_engine::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, OnceLock};

/// The threads besides the caller's.
pub(crate) struct Threads {
    pool: Arc<Pool>,
    queued: Queued,
    workers: Arc<Shared>,
}

/// Where threads come from.
pub(crate) enum Pool {
    /// Own threads, `count` with the caller's, started for the first program that is large enough for them.
    Own { count: usize, pool: OnceLock<ThreadPool> },
    /// A pool of the application, whose threads include the caller or leave one out.
    Shared(Arc<ThreadPool>),
}

impl Pool {
    /// Number of threads, including the caller's.
    pub(crate) fn count(&self) -> usize {
        match self {
            Pool::Own { count, .. } => *count,
            Pool::Shared(pool) => pool.current_num_threads(),
        }
    }
    /// The threads, started if they are not.
    ///
    /// # Errors
    /// [`Error::Device`] if they cannot be started.
    pub(crate) fn started(&self) -> Result<&ThreadPool> {
        match self {
            Pool::Shared(pool) => Ok(pool),
            Pool::Own { count, pool } => match pool.get() {
                Some(pool) => Ok(pool),
                None => {
                    let made = start(*count)?;
                    Ok(pool.get_or_init(|| made))
                }
            },
        }
    }
}

impl Threads {
    /// `count` threads with the caller's.
    pub(crate) fn own(count: usize) -> Self {
        Self::of(Pool::Own { count, pool: OnceLock::new() })
    }
    /// The threads of a pool of the application.
    pub(crate) fn shared(pool: Arc<ThreadPool>) -> Self {
        Self::of(Pool::Shared(pool))
    }
    fn of(pool: Pool) -> Self {
        let (pool, queued) = (Arc::new(pool), Queued::default());
        let workers = Arc::new(Shared { pool: pool.clone(), queued: queued.clone() });
        Threads { pool, queued, workers }
    }

    /// Number of threads, including the caller's.
    pub(crate) fn count(&self) -> usize {
        self.pool.count()
    }
    /// The threads, for work of the host.
    pub(crate) fn workers(&self) -> Arc<Shared> {
        self.workers.clone()
    }

    /// The threads that help the caller, started if they are not; `None` if it is alone.
    ///
    /// # Errors
    /// [`Error::Device`] if the threads cannot be started.
    pub(crate) fn helpers(&self) -> Result<Option<Helpers<'_>>> {
        if self.count() == 1 {
            return Ok(None);
        }
        let shared = matches!(*self.pool, Pool::Shared(_));
        Ok(Some(Helpers { pool: self.pool.started()?, shared, queued: &self.queued }))
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
        let threads = Threads::shared(pool.clone());
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
