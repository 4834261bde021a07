//! `lac_stop` and `lac_report`.
use crate::error::wrong;
use lacuna::dynamic::System;
use lacuna::{Error, Outcome, Stop};
use std::ffi::c_int;

/// `lac_stop`
#[repr(C)]
pub(crate) struct LacStop {
    size: usize,
    rtol: f64,
    atol: f64,
    max_iters: u64,
}

/// `lac_report`
#[repr(C)]
pub(crate) struct LacReport {
    size: usize,
    reason: i32,
    iterations: u64,
    residual: f64,
    true_residual: f64,
    backward_error: f64,
    seconds: f64,
    setup_seconds: f64,
}

/// Checks the size that the caller set, of a structure that may have grown since.
fn check<T>(what: &str, size: usize) -> Result<(), Error> {
    if size >= size_of::<T>() {
        return Ok(());
    }
    Err(wrong(what, format!("size: expected sizeof({what}), {}, got {size}", size_of::<T>())))
}

/// The criteria of a call; those of the system for null.
///
/// # Safety
/// `stop` must be null or point to a `lac_stop`.
pub(crate) unsafe fn stop_of(stop: *const LacStop, of_system: Stop) -> Result<Stop, Error> {
    // SAFETY: as the caller promises.
    let Some(stop) = (unsafe { stop.as_ref() }) else { return Ok(of_system) };
    check::<LacStop>("lac_stop", stop.size)?;
    let LacStop { rtol, atol, max_iters, .. } = *stop;
    if !(rtol >= 0.0 && atol >= 0.0) {
        let message = format!("rtol, atol: expected numbers of at least 0, got {rtol} and {atol}");
        return Err(wrong("lac_stop", message));
    }
    Ok(of_system.rtol(rtol).atol(atol).max_iters((max_iters > 0).then_some(max_iters)))
}

/// Checks a report before the solve.
///
/// # Safety
/// `report` must be null or point to a `lac_report`.
pub(crate) unsafe fn checked<'a>(report: *mut LacReport) -> Result<Option<&'a mut LacReport>, Error> {
    // SAFETY: as the caller promises.
    let Some(report) = (unsafe { report.as_mut() }) else { return Ok(None) };
    check::<LacReport>("lac_report", report.size)?;
    Ok(Some(report))
}

impl LacReport {
    pub(crate) fn set(&mut self, outcome: &Outcome, system: &System) {
        self.reason = c_int::from(outcome.reason.code());
        self.iterations = outcome.iterations;
        self.residual = outcome.residual;
        self.true_residual = outcome.true_residual;
        self.backward_error = outcome.backward_error;
        self.seconds = outcome.time.as_secs_f64();
        self.setup_seconds = system.setup().iter().map(|(_, time)| time.as_secs_f64()).sum();
    }
    /// The size that the caller set, which is that of each in an array.
    pub(crate) fn size(&self) -> usize {
        self.size
    }
}
