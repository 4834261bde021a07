//! Statuses, and the sentence about the last error of each thread.
use crate::text::copied;
use lacuna::{Error, ErrorKind};
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `LAC_PANIC`
const PANIC: c_int = 8;

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps a sentence as the last error of this thread; not while the thread ends.
fn keep(sentence: String) {
    let _ = LAST.try_with(|last| *last.borrow_mut() = sentence);
}

/// Runs a function of the interface and returns its status.
pub(crate) fn guard(run: impl FnOnce() -> Result<(), Error>) -> c_int {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            keep(error.to_string());
            status(&error)
        }
        Err(panic) => {
            std::mem::forget(panic); // its destructor may panic
            keep("a bug of the library's: it panicked".into());
            PANIC
        }
    }
}

fn status(error: &Error) -> c_int {
    match error.kind() {
        ErrorKind::NotConverged => ErrorKind::Argument.code(), // it is an outcome here
        kind => kind.code(),
    }
}

/// The error of an argument.
pub(crate) fn wrong(what: &str, message: impl Into<String>) -> Error {
    Error::Argument { what: what.into(), message: message.into() }
}

/// The error of a handle that another call uses.
pub(crate) fn busy(operation: &str) -> Error {
    Error::Busy {
        operation: operation.into(),
        message: "the system is in use by another call; use one system for each thread".into(),
    }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_last_error(text: *mut c_char, capacity: usize) -> usize {
    let last = LAST.try_with(|last| last.borrow().clone()).unwrap_or_default();
    // SAFETY: the caller promises `capacity` bytes at `text`, unless that is null.
    unsafe { copied(&last, text, capacity) }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn lac_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn lac_abi() -> u32 {
    1
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn lac_reason_name(reason: i32) -> *const c_char {
    const NAMES: [(i32, &CStr); 12] = [
        (0, c"converged"),
        (1, c"limit"),
        (2, c"stagnated"),
        (3, c"accuracy_attained"),
        (-1, c"diverged"),
        (-2, c"indefinite_operator"),
        (-3, c"indefinite_preconditioner"),
        (-4, c"out_of_range"),
        (-5, c"breakdown"),
        (-6, c"not_finite"),
        (-7, c"cancelled"),
        (-8, c"custom"),
    ];
    NAMES.iter().find(|(code, _)| *code == reason).map_or(c"unknown", |(_, name)| name).as_ptr()
}
