//! Compilers that may still run in the background when the process ends.
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads inside a compiler.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Whether the process may end while a compiler runs. Other platforms do not pass the exit status to
/// handlers.
pub const GUARDED: bool = cfg!(all(target_os = "linux", target_env = "gnu"));

/// Runs a compiler on its own thread, or on the current thread where the process could not end while it runs.
///
/// # Errors
/// If no thread can be started.
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

/// Lets the process end while a compiler runs. Call it when a backend is dropped: libraries that the compiler
/// loaded since then may have registered handlers of their own.
pub fn leave() {
    if RUNNING.load(Ordering::SeqCst) > 0 {
        exit::guard();
    }
}

/// Ends the process while a compiler runs. The compiler's destructors must not run while a thread is inside
/// it, and waiting for it would delay the exit. So the process ends without running them, nor any exit handler registered
/// earlier, the program's own included: docs/guide/backends.md says so.
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

    /// Handlers run in reverse order of registration: this one runs before all registered so far.
    pub(super) fn guard() {
        // SAFETY: the handler is a function of this library and takes no argument.
        unsafe { on_exit(end, std::ptr::null_mut()) };
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod exit {
    pub(super) fn guard() {}
}
