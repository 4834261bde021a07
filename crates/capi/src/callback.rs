//! Functions of the caller's.
use crate::error::wrong;
use lacuna::dynamic::{Failure, Function, Functions};
use lacuna::{Error, NumberType, Watch};
use std::ffi::{c_int, c_void};
use std::ops::ControlFlow;
use std::sync::Arc;

/// `lac_apply_fn`
pub(crate) type Apply = Option<unsafe extern "C" fn(*const c_void, *mut c_void, *mut c_void) -> c_int>;
/// `lac_monitor_fn`
pub(crate) type Monitor = Option<unsafe extern "C" fn(u64, f64, *mut c_void) -> c_int>;

/// What the caller wants back in a callback.
#[derive(Clone, Copy)]
pub(crate) struct User(pub(crate) *mut c_void);

// SAFETY: it is handed back on the thread that calls the library, and never read here.
unsafe impl Send for User {}
// SAFETY: likewise.
unsafe impl Sync for User {}

impl User {
    fn get(self) -> *mut c_void {
        self.0
    }
}

/// An operator by functions of the caller's.
///
/// # Safety
/// They must take vectors of the shape and the type, for as long as the operator is used.
pub(crate) unsafe fn functions(
    kind: NumberType,
    shape: (usize, usize),
    (apply, adjoint): (Apply, Apply),
    user: *mut c_void,
) -> Result<Functions, Error> {
    let apply = apply.ok_or_else(|| wrong("the product", "expected a function, got NULL"))?;
    let user = User(user);
    let called =
        |function: unsafe extern "C" fn(*const c_void, *mut c_void, *mut c_void) -> c_int| -> Function {
            Arc::new(move |x: &[u8], y: &mut [u8]| {
                // SAFETY: vectors of these lengths, as promised to the caller, who promises that the function takes them.
                match unsafe { function(x.as_ptr().cast(), y.as_mut_ptr().cast(), user.get()) } {
                    0 => Ok(()),
                    code => Err(Failure::from(format!("a callback returned {code}"))),
                }
            })
        };
    Ok(Functions { kind, shape, product: called(apply), adjoint: adjoint.map(called) })
}

/// What a monitor says.
///
/// # Safety
/// It must be safe to call.
pub(crate) unsafe fn watched(monitor: Monitor, user: *mut c_void, at: Watch) -> ControlFlow<()> {
    let Some(monitor) = monitor else { return ControlFlow::Continue(()) };
    // SAFETY: as the caller promises.
    match unsafe { monitor(at.iterations, at.residual, user) } {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    }
}
