//! A pool of device memory: returned buffers are reused, so that later solves allocate nothing.
use crate::driver::{Address, Driver};
use lacuna_engine::{Error, Result};
use std::collections::BTreeMap;

/// Alignment of buffers, and of the vectors within a basis, in bytes.
pub(crate) const ALIGNMENT: usize = 256;

/// A buffer in device memory, to be returned to its pool.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) address: Address,
    pub(crate) bytes: usize,
}

/// Free memory by size.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: BTreeMap<usize, Vec<Address>>,
    /// Allocations that the driver has made so far.
    pub(crate) allocations: usize,
}

impl Pool {
    /// A buffer of at least that many bytes, with undefined contents.
    pub(crate) fn take(&mut self, driver: &Driver, bytes: usize, operation: &str) -> Result<Buffer> {
        let wanted =
            bytes.max(1).checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX & !(ALIGNMENT - 1));
        let most = wanted.saturating_add(wanted / 4).saturating_add(1 << 12);
        if let Some((&size, list)) = self.free.range_mut(wanted..=most).next()
            && let Some(address) = list.pop()
        {
            if list.is_empty() {
                self.free.remove(&size);
            }
            return Ok(Buffer { address, bytes: size });
        }
        self.allocations += 1;
        if let Some(address) = driver.allocate(wanted)? {
            return Ok(Buffer { address, bytes: wanted });
        }
        self.clear(driver);
        match driver.allocate(wanted)? {
            Some(address) => Ok(Buffer { address, bytes: wanted }),
            None => Err(Error::OutOfMemory {
                operation: operation.into(),
                device: driver.limits.name.clone(),
                requested: wanted as u64,
                available: driver.free_bytes(),
            }),
        }
    }

    /// A buffer of zeros.
    pub(crate) fn take_zeroed(&mut self, driver: &Driver, bytes: usize, operation: &str) -> Result<Buffer> {
        let buffer = self.take(driver, bytes, operation)?;
        match driver.zero(buffer.address, buffer.bytes) {
            Ok(()) => Ok(buffer),
            Err(error) => {
                self.give(buffer);
                Err(error)
            }
        }
    }

    /// Returns a buffer. Queued work may still use it: later work is ordered after it in the stream.
    pub(crate) fn give(&mut self, buffer: Buffer) {
        self.free.entry(buffer.bytes).or_default().push(buffer.address);
    }

    /// Whether there is no unused memory.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.is_empty()
    }

    /// Returns all unused memory to the driver.
    pub(crate) fn clear(&mut self, driver: &Driver) {
        for address in std::mem::take(&mut self.free).into_values().flatten() {
            driver.free(address);
        }
    }
}
