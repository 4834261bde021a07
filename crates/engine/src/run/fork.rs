//! Threads do not survive a fork: what has some knows the process that it was made in.
use crate::{Error, Result};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many forks lie between the first process that asked and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process that something was made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process(u32);

impl Process {
    /// This one.
    pub fn this() -> Self {
        static COUNTING: Once = Once::new();
        COUNTING.call_once(count_forks);
        Process(FORKS.load(Ordering::Relaxed))
    }
    /// Fails in a process that was forked from it: what was made there has threads that this one lacks.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn check(self, operation: &str) -> Result<()> {
        if self.0 == FORKS.load(Ordering::Relaxed) { Ok(()) } else { Err(forked(operation)) }
    }
}

#[cfg(unix)]
fn count_forks() {
    type Handler = Option<extern "C" fn()>;
    unsafe extern "C" {
        /// POSIX: calls functions before a fork, and after it in the parent and in the child.
        fn pthread_atfork(before: Handler, in_parent: Handler, in_child: Handler) -> std::ffi::c_int;
    }
    extern "C" fn count() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the function does nothing that is not allowed in the child of a fork. Without memory for it forks are not noticed.
    let _ = unsafe { pthread_atfork(None, None, Some(count)) };
}

#[cfg(not(unix))]
fn count_forks() {}

#[cold]
fn forked(operation: &str) -> Error {
    Error::Device {
        device: "cpu".into(),
        operation: operation.into(),
        message: "this process was forked from the one where the device was opened, whose threads it lacks; open the device, or \
                  make the object that is on it, again in this process"
            .into(),
    }
}
