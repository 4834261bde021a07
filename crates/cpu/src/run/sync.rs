//! What threads wait by. `tests/model` compiles the barrier and the team against a model of these.
#[cfg(not(test))]
pub(crate) use lacuna_engine::crowded;
pub(crate) use rayon::ThreadPool;
pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Mutex};
pub(crate) use std::thread::yield_now;
pub(crate) use std::time::Instant;

/// Gives the core to others for the time of a wait that has paused so often: at first if they want it, then by sleeping, the longer
/// the longer it has waited. The last to come may be held up by another program, or by a function of the caller's.
pub(crate) fn pause(times: u32) {
    const YIELDS: u32 = 512;
    match times.checked_sub(YIELDS) {
        None => yield_now(),
        Some(times) => {
            std::thread::sleep(std::time::Duration::from_micros(u64::from(20 * (times + 1).min(50))))
        }
    }
}

/// A count of jobs, which orders nothing.
pub(crate) type Queued = Arc<AtomicUsize>;

/// Tests are of what threads do where nobody else computes.
#[cfg(test)]
pub(crate) fn crowded(_: usize) -> bool {
    false
}
