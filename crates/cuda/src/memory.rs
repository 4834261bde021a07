//! A pool of device memory: freed buffers are reused, so that later solves allocate nothing.
use crate::driver::{Address, Driver};
use lacuna_engine::{Error, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Alignment of buffers, and of the vectors within a basis, in bytes.
pub(crate) const ALIGNMENT: usize = 256;
/// Bytes that a pool may hold in any case; otherwise at most twice the bytes that were ever in use at once.
const SPARE: usize = 256 << 20;

/// A buffer in device memory, which goes back to its pool when it is dropped. Queued work may still use it: later work is
/// ordered after it in the stream.
pub(crate) struct Buffer {
    pub(crate) address: Address,
    pub(crate) bytes: usize,
    home: Pool,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut pool = self.home.lock();
        pool.unused.entry(self.bytes).or_default().push(self.address);
        pool.in_use -= self.bytes;
    }
}

/// Device memory for one stream. Clones are the same pool.
#[derive(Clone, Default)]
pub(crate) struct Pool(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    /// Unused memory by size.
    unused: BTreeMap<usize, Vec<Address>>,
    /// Bytes, unused ones included.
    bytes: usize,
    in_use: usize,
    /// The most bytes in use so far.
    peak: usize,
    /// Allocations that the driver has made so far.
    allocations: usize,
}

impl Held {
    /// Unused memory of at least `wanted` bytes, but not much more.
    fn reuse(&mut self, wanted: usize) -> Option<(Address, usize)> {
        let most = wanted.saturating_add(wanted / 4).saturating_add(1 << 12);
        let (&bytes, list) = self.unused.range_mut(wanted..=most).next()?;
        let address = list.pop()?;
        if list.is_empty() {
            self.unused.remove(&bytes);
        }
        Some((address, bytes))
    }

    /// New memory. Unused memory is returned to the driver first if there is much of it, or if nothing else is left.
    fn allocate(&mut self, driver: &Driver, wanted: usize) -> Result<Option<(Address, usize)>> {
        let peak = self.peak.max(self.in_use.saturating_add(wanted));
        if self.bytes.saturating_add(wanted) > peak.saturating_mul(2).max(SPARE) {
            self.clear(driver);
        }
        let mut address = driver.allocate(wanted)?;
        if address.is_none() && self.clear(driver) {
            address = driver.allocate(wanted)?;
        }
        let Some(address) = address else { return Ok(None) };
        self.bytes += wanted;
        self.allocations += 1;
        Ok(Some((address, wanted)))
    }

    fn clear(&mut self, driver: &Driver) -> bool {
        let unused = std::mem::take(&mut self.unused);
        if unused.is_empty() {
            return false;
        }
        // Queued work may still use it. A failure is that of the work, which its next wait reports.
        let _ = driver.wait("freeing memory");
        for (bytes, list) in unused {
            self.bytes -= bytes * list.len();
            list.into_iter().for_each(|address| driver.free(address));
        }
        true
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of at least that many bytes, with undefined contents.
    pub(crate) fn take(&self, driver: &Driver, bytes: usize, operation: &str) -> Result<Buffer> {
        let wanted =
            bytes.max(1).checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX & !(ALIGNMENT - 1));
        let mut held = self.lock();
        let found = match held.reuse(wanted) {
            Some(found) => Some(found),
            None => held.allocate(driver, wanted)?,
        };
        let (address, bytes) = found.ok_or_else(|| Error::OutOfMemory {
            operation: operation.into(),
            device: driver.limits.name.clone(),
            requested: wanted as u64,
            available: driver.free_bytes(),
        })?;
        held.in_use += bytes;
        held.peak = held.peak.max(held.in_use);
        Ok(Buffer { address, bytes, home: self.clone() })
    }
    /// A buffer of zeros.
    pub(crate) fn zeroed(&self, driver: &Driver, bytes: usize, operation: &str) -> Result<Buffer> {
        let buffer = self.take(driver, bytes, operation)?;
        driver.zero(buffer.address, bytes).map(|()| buffer)
    }
    /// A buffer that begins with these bytes.
    pub(crate) fn filled(&self, driver: &Driver, bytes: &[u8], operation: &str) -> Result<Buffer> {
        let buffer = self.take(driver, bytes.len(), operation)?;
        driver.upload(bytes, buffer.address, operation).map(|()| buffer)
    }

    /// Returns all unused memory to the driver; whether there was any.
    pub(crate) fn clear(&self, driver: &Driver) -> bool {
        self.lock().clear(driver)
    }
    /// Allocations that the driver has made so far.
    pub(crate) fn allocations(&self) -> usize {
        self.lock().allocations
    }
    /// Bytes of buffers that somebody holds.
    pub(crate) fn in_use(&self) -> usize {
        self.lock().in_use
    }
}
