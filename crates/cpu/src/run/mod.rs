//! Running a plan: the loop over operations, the threads that share it, the barrier between them.
pub(crate) mod arena;
pub(crate) mod barrier;
mod block;
pub(crate) mod execute;
pub(crate) mod gang;
pub(crate) mod share;
pub(crate) mod sync;
pub(crate) mod threads;
pub(crate) mod watch;
pub(crate) mod workers;
