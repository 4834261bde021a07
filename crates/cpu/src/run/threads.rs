//! The threads that a backend computes on.
use super::gang::Helpers;
use lacuna_engine::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;

/// The threads besides the caller's.
pub(crate) enum Threads {
    /// Own threads, `count` with the caller's, started for the first program that is large enough for them.
    Own { count: usize, pool: Option<ThreadPool> },
    /// A pool of the application, whose threads include the caller or leave one out.
    Shared(Arc<ThreadPool>),
}

impl Threads {
    /// Number of threads, including the caller's.
    pub(crate) fn count(&self) -> usize {
        match self {
            Threads::Own { count, .. } => *count,
            Threads::Shared(pool) => pool.current_num_threads(),
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
        let (pool, shared) = match self {
            Threads::Shared(pool) => (&**pool, true),
            Threads::Own { pool: Some(pool), .. } => (&*pool, false),
            Threads::Own { count, pool } => (&*pool.insert(start(*count)?), false),
        };
        Ok(Some(Helpers { pool, shared }))
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
