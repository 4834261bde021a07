//! Systems.
use crate::callback::{Apply, Monitor, functions, watched};
use crate::device::{LacDevice, hand_over};
use crate::error::{busy, guard, wrong};
use crate::matrix::LacMatrix;
use crate::pointers::{numbers, numbers_mut, reference, result, size, text};
use crate::report::{LacReport, LacStop, checked, stop_of};
use crate::text::{array, number, string};
use lacuna::backend::Outside;
use lacuna::dynamic::{self, Operator, Precondition, Settings, System};
use lacuna::{Error, Outcome, Stop, Watch};
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// `lac_system`
pub(crate) struct LacSystem(Mutex<State>);

struct State {
    system: System,
    /// The criteria of the options.
    stop: Stop,
    /// The stored entries, if it is a matrix.
    entries: Option<usize>,
    last: Outcome,
}

/// A system that no other call uses.
///
/// # Safety
/// As [`reference`].
unsafe fn locked<'a>(operation: &str, system: *const LacSystem) -> Result<MutexGuard<'a, State>, Error> {
    // SAFETY: as the caller promises.
    match unsafe { reference("the system", system)? }.0.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(busy(operation)),
    }
}

/// Makes a system.
///
/// # Safety
/// As the header asks of the caller.
unsafe fn create(
    device: *const LacDevice,
    matrix: *const LacMatrix,
    options: *const c_char,
    m: Option<((Apply, Apply), *mut c_void)>,
    system: *mut *mut LacSystem,
) -> c_int {
    guard(|| {
        // SAFETY: as the caller promises.
        let (to, operator, options, device) = unsafe {
            let to = result(system)?;
            let operator = reference("the matrix", matrix)?.0.clone();
            (to, operator, text("the options", options)?, device.as_ref())
        };
        let settings = Settings::parse(options.unwrap_or(""))?;
        let cols = operator.shape().1;
        let m = match m {
            None => None,
            Some((of, user)) => {
                // SAFETY: as the caller promises.
                let m = unsafe { functions(operator.kind(), (cols, cols), of, user)? };
                Some(Precondition::Operator(Operator::Functions(m)))
            }
        };
        let device = match device {
            Some(device) => device.0.clone(),
            None => dynamic::open("auto", None)?,
        };
        let entries = match &operator {
            Operator::Matrix(a) => Some(a.nnz()),
            Operator::Functions(_) => None,
        };
        let made = System::new(&device, operator, &settings, m, None, None)?;
        let stop = made.stop_of(&settings);
        let state = State { system: made, stop, entries, last: Outcome::default() };
        *to = Box::into_raw(Box::new(LacSystem(Mutex::new(state))));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_system_create(
    device: *const LacDevice,
    matrix: *const LacMatrix,
    options: *const c_char,
    system: *mut *mut LacSystem,
) -> c_int {
    // SAFETY: as the header asks of the caller.
    unsafe { create(device, matrix, options, None, system) }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_system_create_with(
    device: *const LacDevice,
    matrix: *const LacMatrix,
    options: *const c_char,
    m: Apply,
    adjoint: Apply,
    user: *mut c_void,
    system: *mut *mut LacSystem,
) -> c_int {
    // SAFETY: as the header asks of the caller.
    unsafe { create(device, matrix, options, Some(((m, adjoint), user)), system) }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_system_free(system: *mut LacSystem) {
    guard(|| {
        if !system.is_null() {
            // SAFETY: a handle of this library that is not freed yet and not in use, as the header asks of the caller.
            drop(unsafe { Box::from_raw(system) });
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_system_solve(
    system: *mut LacSystem,
    b: *const c_void,
    x: *mut c_void,
    stop: *const LacStop,
    monitor: Monitor,
    user: *mut c_void,
    report: *mut LacReport,
) -> c_int {
    guard(|| {
        // SAFETY: as the header asks of the caller, here and below.
        let mut state = unsafe { locked("lac_system_solve", system)? };
        let State { system, stop: of_system, last, .. } = &mut *state;
        let ((rows, cols), kind) = (system.shape(), system.kind());
        // SAFETY: see above.
        let (b, x, report) =
            unsafe { (numbers("b", b, rows, kind)?, numbers_mut("x", x, cols, kind)?, checked(report)?) };
        // SAFETY: see above.
        system.set_stop(unsafe { stop_of(stop, *of_system)? });
        // SAFETY: see above.
        let mut watch = |at: Watch| unsafe { watched(monitor, user, at) };
        *last = system.solve(b, x, if monitor.is_some() { Some(&mut watch) } else { None })?;
        if let Some(report) = report {
            report.set(last, system);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_system_solve_device(
    system: *mut LacSystem,
    b: *const c_void,
    x: *mut c_void,
    from_guess: c_int,
    stop: *const LacStop,
    report: *mut LacReport,
) -> c_int {
    guard(|| {
        // SAFETY: as the header asks of the caller, here and below.
        let mut state = unsafe { locked("lac_system_solve_device", system)? };
        let State { system, stop: of_system, last, .. } = &mut *state;
        // SAFETY: see above.
        let report = unsafe { checked(report)? };
        // SAFETY: see above.
        system.set_stop(unsafe { stop_of(stop, *of_system)? });
        let [of_b, of_x] = system.bytes();
        // SAFETY: the caller has as many numbers there as the system has rows and columns.
        let (b, x) = unsafe { (Outside::new(b as u64, of_b), Outside::new(x as u64, of_x)) };
        *last = system.solve_at(b, x, from_guess != 0, None)?;
        if let Some(report) = report {
            report.set(last, system);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_system_solve_columns(
    system: *mut LacSystem,
    k: i64,
    b: *const c_void,
    ldb: i64,
    x: *mut c_void,
    ldx: i64,
    stop: *const LacStop,
    reports: *mut LacReport,
) -> c_int {
    guard(|| {
        // SAFETY: as the header asks of the caller, here and below.
        let mut state = unsafe { locked("lac_system_solve_columns", system)? };
        let State { system, stop: of_system, last, .. } = &mut *state;
        let ((rows, cols), kind) = (system.shape(), system.kind());
        let (k, ldb, ldx) = (size("k", k)?, size("ldb", ldb)?, size("ldx", ldx)?);
        if k == 0 {
            return Ok(());
        }
        let spanned = |what: &str, ld: usize, n: usize| {
            let count = (k - 1).checked_mul(ld).and_then(|before| before.checked_add(n));
            count.filter(|_| ld >= n).ok_or_else(|| wrong(what, format!("expected at least {n}, got {ld}")))
        };
        let (of_b, of_x) = (spanned("ldb", ldb, rows)?, spanned("ldx", ldx, cols)?);
        // SAFETY: see above.
        let (b, x, first) =
            unsafe { (numbers("b", b, of_b, kind)?, numbers_mut("x", x, of_x, kind)?, checked(reports)?) };
        let apart = first.map(|first| first.size());
        // SAFETY: see above.
        system.set_stop(unsafe { stop_of(stop, *of_system)? });
        let outcomes = system.solve_columns(k, (b, ldb), (x, ldx), None)?;
        if let Some(apart) = apart {
            for (column, outcome) in outcomes.iter().enumerate() {
                // SAFETY: there are k reports, each as large as the caller says of the first.
                let report = unsafe { &mut *reports.byte_add(column * apart) };
                report.set(outcome, system);
            }
        }
        if let Some(outcome) = outcomes.into_iter().next_back() {
            *last = outcome;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_system_update_values(
    system: *mut LacSystem,
    values: *const c_void,
    entries: i64,
) -> c_int {
    guard(|| {
        // SAFETY: as the header asks of the caller, here and below.
        let mut state = unsafe { locked("lac_system_update_values", system)? };
        let given = size("entries", entries)?;
        if let Some(stored) = state.entries {
            Error::check_length("lac_system_update_values", "the values", stored, given)?;
        }
        // SAFETY: see above.
        let values = unsafe { numbers("the values", values, given, state.system.kind())? };
        state.system.update_values(values)
    })
}

/// Applies the matrix or the preconditioner.
///
/// # Safety
/// As the header asks of the caller.
unsafe fn apply(
    operation: &str,
    system: *mut LacSystem,
    (from, to): (*const c_void, *mut c_void),
    preconditioner: bool,
) -> c_int {
    guard(|| {
        // SAFETY: as the caller promises.
        let mut state = unsafe { locked(operation, system)? };
        let ((rows, cols), kind) = (state.system.shape(), state.system.kind());
        let length = if preconditioner { cols } else { rows };
        // SAFETY: as the caller promises.
        let (from, to) = unsafe {
            (numbers("the vector", from, cols, kind)?, numbers_mut("the result", to, length, kind)?)
        };
        if preconditioner { state.system.precondition(from, to) } else { state.system.product(from, to) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_system_product(
    system: *mut LacSystem,
    x: *const c_void,
    y: *mut c_void,
) -> c_int {
    // SAFETY: as the header asks of the caller.
    unsafe { apply("lac_system_product", system, (x, y), false) }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_system_precondition(
    system: *mut LacSystem,
    r: *const c_void,
    z: *mut c_void,
) -> c_int {
    // SAFETY: as the header asks of the caller.
    unsafe { apply("lac_system_precondition", system, (r, z), true) }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_system_text(
    system: *mut LacSystem,
    what: *const c_char,
    json: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> c_int {
    guard(|| {
        // SAFETY: as the header asks of the caller, here and below.
        let (state, what) = unsafe { (locked("lac_system_text", system)?, text("what", what)?) };
        let sentences = |list: &[String]| array(list.iter().map(|sentence| string(sentence)));
        let found = match what.unwrap_or("") {
            "choices" => sentences(&state.system.choices()),
            "notes" => sentences(&state.last.notes),
            "history" => array(state.last.history.iter().map(|residual| number(*residual))),
            "setup" => {
                let part = |(name, time): &(&str, std::time::Duration)| {
                    format!("{{\"part\": {}, \"seconds\": {}}}", string(name), number(time.as_secs_f64()))
                };
                array(state.system.setup().iter().map(part))
            }
            other => {
                let message = format!("expected choices, notes, history or setup, got `{other}`");
                return Err(wrong("what", message));
            }
        };
        // SAFETY: see above.
        unsafe { hand_over(&found, json, capacity, length) };
        Ok(())
    })
}
