//! Threads do not survive a fork: what needs them asks here first.
use crate::{Error, Result};
use std::sync::OnceLock;

/// The process that asked first.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Fails in a process that was forked from one that had already asked: its pools have no threads, and work given to them would
/// never end. A child that is the first to ask may go on.
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
