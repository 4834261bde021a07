//! Loading a library.
use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The state of a library that was found.
const FOUND: u64 = 1;
/// The state of a library that was not.
pub(crate) const MISSING: u64 = 2;

/// A library and its functions.
pub(crate) struct Library {
    /// Its file, by the names that it may have.
    pub(crate) files: &'static [&'static CStr],
    /// Its functions.
    pub(crate) names: &'static [&'static CStr],
    /// Answers where there is no library.
    pub(crate) none: extern "C" fn() -> i32,
    /// Answers for a function that the library lacks.
    pub(crate) unknown: extern "C" fn() -> i32,
}

/// Loads the library, unless it is there, and fills the table of its functions. Threads that do so at once store the same.
pub(crate) fn fill(library: &Library, table: &[AtomicPtr<c_void>], state: &AtomicU64) {
    // SAFETY: the names end with a zero. Code of the library may run, as in any program that is linked with it; its symbols are
    // for nobody else.
    let open = |file: &&CStr| unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    let handle = library.files.iter().map(open).find(|handle| !handle.is_null());
    let otherwise = if handle.is_some() { library.unknown } else { library.none };
    for (name, place) in library.names.iter().zip(table) {
        // SAFETY: an open library, and a name that ends with a zero.
        let found = handle.map_or(ptr::null_mut(), |handle| unsafe { libc::dlsym(handle, name.as_ptr()) });
        let function = if found.is_null() { otherwise as *mut c_void } else { found };
        place.store(function, Ordering::Release);
    }
    state.store(if handle.is_some() { FOUND } else { MISSING }, Ordering::Release);
}
