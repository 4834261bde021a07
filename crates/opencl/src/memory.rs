//! Device memory: buffers, and one arena from which vectors and matrices are allocated.
use crate::driver::{Buffer, Driver, Status};
use lacuna_engine::arena::Runs;
use lacuna_engine::{Error, Result};

/// Alignment of everything in the arena, in bytes: its unit.
const ALIGN: usize = 256;
/// Initial size of the arena, in bytes.
const FIRST: usize = 1 << 20;

impl Driver {
    /// A buffer, or an out-of-memory error with the requested and the available bytes: the device's largest
    /// buffer, or less if this backend holds the rest. Some drivers allocate only on first use, so the first
    /// bytes are written.
    pub(crate) fn buffer(&self, bytes: usize, operation: &str) -> Result<Buffer> {
        if bytes as u64 > self.device.memory {
            return Err(self.exhausted(bytes as u64, operation));
        }
        let used = |buffer: Buffer| self.queue.fill(&buffer, 0, bytes.min(16), &[0]).map(|()| buffer);
        self.context.buffer(bytes).and_then(used).map_err(|status| self.refused(status, bytes, operation))
    }
    fn refused(&self, status: Status, bytes: usize, operation: &str) -> Error {
        match status.is_out_of_memory() {
            true => self.exhausted(bytes as u64, operation),
            false => self.fail(operation)(status),
        }
    }
    /// A buffer with these bytes.
    pub(crate) fn filled(&self, bytes: &[u8], operation: &str) -> Result<Buffer> {
        let buffer = self.buffer(bytes.len(), operation)?;
        let written = self.queue.write(&buffer, 0, bytes);
        written.map(|()| buffer).map_err(|status| self.refused(status, bytes.len(), operation))
    }
    /// A buffer of zeros.
    pub(crate) fn zeros(&self, bytes: usize, operation: &str) -> Result<Buffer> {
        let bytes = bytes.max(16).next_multiple_of(16);
        let buffer = self.buffer(bytes, operation)?;
        let filled = self.queue.fill(&buffer, 0, bytes, &[0; 4]);
        filled.map(|()| buffer).map_err(|status| self.refused(status, bytes, operation))
    }
    /// The error for a request that does not fit.
    pub(crate) fn exhausted(&self, requested: u64, operation: &str) -> Error {
        Error::OutOfMemory {
            operation: operation.into(),
            device: self.device.name.clone(),
            requested,
            available: Some(
                self.device.memory.saturating_sub(self.context.held()).min(self.device.largest_buffer),
            ),
        }
    }
}

/// A part of the arena, in its units.
#[derive(Debug)]
pub(crate) struct Place {
    first: u32,
    count: u32,
}

impl Place {
    /// The byte where it begins.
    pub(crate) fn offset(&self) -> usize {
        self.first as usize * ALIGN
    }
}

/// Bytes that an array of so many bytes takes.
pub(crate) fn padded(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(ALIGN)
}

/// One buffer, parts of which are allocated and freed in any order. It grows, and what is in it keeps its place.
#[derive(Default)]
pub(crate) struct Arena {
    buffer: Option<Buffer>,
    /// In bytes.
    capacity: usize,
    runs: Runs,
}

impl Arena {
    /// The buffer, once something was allocated.
    pub(crate) fn buffer(&self) -> Option<&Buffer> {
        self.buffer.as_ref()
    }

    /// Allocates a part of so many bytes. The second result is whether the buffer was replaced.
    pub(crate) fn take(&mut self, driver: &Driver, bytes: usize, operation: &str) -> Result<(Place, bool)> {
        let exhausted = || driver.exhausted(bytes as u64, operation);
        let used = self.runs.end() as usize * ALIGN;
        let count =
            padded(bytes).and_then(|bytes| u32::try_from(bytes / ALIGN).ok()).ok_or_else(exhausted)?;
        let first = if count == 0 { 0 } else { self.runs.take(count, 1).ok_or_else(exhausted)? };
        let place = Place { first, count };
        match self.grow(driver, place.offset() + count as usize * ALIGN, used, operation) {
            Ok(replaced) => Ok((place, replaced)),
            Err(error) => {
                self.give(place);
                Err(error)
            }
        }
    }

    /// Grows to `end` bytes, of which `used` are copied; whether the buffer was replaced.
    fn grow(&mut self, driver: &Driver, end: usize, used: usize, operation: &str) -> Result<bool> {
        if end <= self.capacity && self.buffer.is_some() {
            return Ok(false);
        }
        let generous = end.max(self.capacity.saturating_mul(2)).max(FIRST);
        let (capacity, buffer) = match driver.buffer(generous, operation) {
            Ok(buffer) => (generous, buffer),
            Err(_) => (end, driver.buffer(end, operation)?),
        };
        if let Some(old) = &self.buffer {
            driver
                .queue
                .copy((old, 0), (&buffer, 0), used.min(self.capacity))
                .map_err(driver.fail(operation))?;
        }
        (self.buffer, self.capacity) = (Some(buffer), capacity);
        Ok(true)
    }

    /// Frees a part.
    pub(crate) fn give(&mut self, place: Place) {
        if place.count > 0 {
            self.runs.give(place.first, place.count);
        }
    }
}
