//! Compilers that run in the background while the process may end.
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads inside a compiler.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Whether a process may end while a compiler runs. Elsewhere the exit status is not known to handlers.
pub const GUARDED: bool = cfg!(all(target_os = "linux", target_env = "gnu"));

/// Runs a compiler on a thread of its own; on this one where the process could not end meanwhile.
///
/// # Errors
/// Where there is no thread to be had.
pub fn spawn(name: &str, stack: usize, compile: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    if !GUARDED {
        compile();
        return Ok(());
    }
    RUNNING.fetch_add(1, Ordering::SeqCst);
    exit::guard();
    let counted = move || {
        compile();
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    };
    let thread = std::thread::Builder::new().name(name.into()).stack_size(stack).spawn(counted);
    thread.map(drop).inspect_err(|_| {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    })
}

/// Lets the process end while a compiler runs: to be called when a backend is dropped, since libraries that the compiler has
/// loaded since may have registered handlers of their own.
pub fn leave() {
    if RUNNING.load(Ordering::SeqCst) > 0 {
        exit::guard();
    }
}

/// The end of the process. The destructors of a compiler must not run while a thread is inside it, and nobody wants to wait for
/// it: the process then ends without those of libraries registered earlier.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod exit {
    use super::{Ordering, RUNNING};
    use std::ffi::{c_int, c_void};

    unsafe extern "C" {
        fn on_exit(handler: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
        fn fflush(stream: *mut c_void) -> c_int;
        fn _exit(status: c_int) -> !;
    }

    extern "C" fn end(status: c_int, _: *mut c_void) {
        if RUNNING.load(Ordering::SeqCst) > 0 {
            // SAFETY: null flushes every C stream; `_exit` ends the process with the status that `exit` was given.
            unsafe {
                fflush(std::ptr::null_mut());
                _exit(status)
            }
        }
    }

    /// Handlers run in the reverse order of their registration: this one before those registered up to now.
    pub(super) fn guard() {
        // SAFETY: the handler is a function of this library and takes no argument.
        unsafe { on_exit(end, std::ptr::null_mut()) };
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod exit {
    pub(super) fn guard() {}
}
