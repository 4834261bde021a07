//! Ctrl-C.
use crate::failure::INTERRUPTED;
use std::sync::atomic::{AtomicU8, Ordering};

/// 0: Ctrl-C ends the process. 1: it cancels the current work. 2: it has cancelled it.
static INTERRUPT: AtomicU8 = AtomicU8::new(0);

/// Whether Ctrl-C was pressed since [`cancel_on_interrupt`].
pub fn interrupted() -> bool {
    INTERRUPT.load(Ordering::Relaxed) == 2
}

/// From now on Ctrl-C cancels the current work; a second one ends the process.
pub fn cancel_on_interrupt() {
    INTERRUPT.store(1, Ordering::Relaxed);
    // If no handler can be set, Ctrl-C ends the process as usual.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPT.compare_exchange(1, 2, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            std::process::exit(INTERRUPTED.into());
        }
    });
}

/// From now on Ctrl-C ends the process.
pub fn solved() {
    INTERRUPT.store(0, Ordering::Relaxed);
}
