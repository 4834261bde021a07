//! Threads do not survive a fork: code that needs them checks here first.
use crate::{Error, Result};
use std::sync::OnceLock;

/// The first process that called [`check_process`].
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Fails in a process that was forked from one that had already called this: its pools have no threads, and
/// work submitted to them would never finish. A child process that is the first to call may proceed.
///
/// # Errors
/// [`Error::Device`].
pub fn check_process(operation: &str) -> Result<()> {
    let (this, first) = (std::process::id(), *PROCESS.get_or_init(std::process::id));
    if this == first {
        return Ok(());
    }
    Err(Error::Device {
        device: "cpu".into(),
        operation: operation.into(),
        message: format!(
            "process {this} was forked from process {first}, whose threads it does not have; fork before the first use, or \
             start the child with exec"
        ),
    })
}
