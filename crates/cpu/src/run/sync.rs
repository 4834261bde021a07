//! What threads wait by. `tests/model` compiles the barrier and the team against a model of these.
pub(crate) use rayon::ThreadPool;
pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Mutex};
pub(crate) use std::thread::yield_now;
pub(crate) use std::time::Instant;

/// A count of jobs, which orders nothing.
pub(crate) type Queued = Arc<AtomicUsize>;
