//! Cells: on the device, and as the host last knew them.
use crate::driver::{Address, Driver};
use crate::memory::{Buffer, Pool};
use bytemuck::{cast_slice, cast_slice_mut};
use lacuna_engine::arena::Serials;
use lacuna_engine::{Cell, Cells, Error, Number, NumberType, Result, Scalar};
use std::ops::Range;

/// Initial capacity of the cells of a number type.
const CELLS: usize = 4096;

/// The cells of one number type.
///
/// At most one of the two ranges is not empty: the host fetches what the device may have changed before it changes a cell.
pub(crate) struct CellFile {
    kind: NumberType,
    serials: Serials,
    /// The values as the host last knew them.
    host: Vec<u64>,
    /// Cells that the host has changed and not yet uploaded, and others between them.
    changed: Range<usize>,
    /// Cells that the device may have changed since the host last read them.
    stale: Range<usize>,
    buffer: Option<Buffer>,
}

fn union(a: &Range<usize>, b: Range<usize>) -> Range<usize> {
    if a.is_empty() {
        b
    } else if b.is_empty() {
        a.clone()
    } else {
        a.start.min(b.start)..a.end.max(b.end)
    }
}

impl CellFile {
    pub(super) fn new(kind: NumberType) -> Self {
        let (serials, host) = (Serials::default(), Vec::new());
        CellFile { kind, serials, host, changed: 0..0, stale: 0..0, buffer: None }
    }

    fn bytes(&self, cells: &Range<usize>) -> Range<usize> {
        cells.start * self.kind.size()..cells.end * self.kind.size()
    }
    /// Cells as the host last knew them.
    pub(crate) fn known(&self, cells: &Range<usize>) -> &[u8] {
        &cast_slice(&self.host)[self.bytes(cells)]
    }
    fn known_mut(&mut self, cells: &Range<usize>) -> &mut [u8] {
        let bytes = self.bytes(cells);
        &mut cast_slice_mut(&mut self.host)[bytes]
    }
    /// Number of cells, free ones included.
    pub(crate) fn len(&self) -> usize {
        self.serials.len()
    }
    pub(crate) fn check(&self, cell: Cell, operation: &str) -> Result<()> {
        self.serials.check(cell, operation)
    }

    /// A run of zero cells.
    pub(crate) fn take(&mut self, driver: &Driver, count: usize) -> Result<Cells> {
        self.refresh(driver)?;
        let words = count.saturating_mul(self.kind.size()).div_ceil(size_of::<u64>());
        let has_room = self.host.try_reserve(words).is_ok();
        let cells = if has_room { self.serials.take(self.kind, count) } else { None };
        let cells = cells.ok_or_else(|| Error::OutOfMemory {
            operation: format!("{count} cells"),
            device: driver.limits.name.clone(),
            requested: (count as u64).saturating_mul(self.kind.size() as u64),
            available: None,
        })?;
        self.host.resize((self.len() * self.kind.size()).div_ceil(size_of::<u64>()), 0);
        let range = cells.first as usize..cells.first as usize + count;
        self.known_mut(&range).fill(0);
        self.changed = union(&self.changed, range);
        Ok(cells)
    }
    /// Frees a run of cells, if it is live.
    pub(super) fn give(&mut self, cells: Cells) {
        self.serials.give(cells);
    }
    /// Sets a cell; the device sees it when the next program starts.
    pub(crate) fn write(&mut self, driver: &Driver, cell: Cell, value: Number) -> Result<()> {
        self.check(cell, "write")?;
        if value.kind() != self.kind {
            return Err(Error::Stale { operation: "write".into(), what: "cell of this number type" });
        }
        self.refresh(driver)?;
        let at = cell.index as usize..cell.index as usize + 1;
        self.known_mut(&at).copy_from_slice(value.bytes());
        self.changed = union(&self.changed, at);
        Ok(())
    }

    /// Waits for the stream and fetches what the device has changed, if it may have changed any.
    pub(crate) fn refresh(&mut self, driver: &Driver) -> Result<()> {
        if let (Some(buffer), false) = (&self.buffer, self.stale.is_empty()) {
            let bytes = self.bytes(&self.stale);
            let from = buffer.address + bytes.start as u64;
            driver.download(from, &mut cast_slice_mut(&mut self.host)[bytes], "reading cells")?;
        }
        self.stale = 0..0;
        Ok(())
    }
    /// The cells on the device, up to date.
    pub(crate) fn on_device(&mut self, driver: &Driver, pool: &Pool) -> Result<Address> {
        self.on_device_but(driver, pool, &(0..0), 0).map(|(address, _)| address)
    }
    /// The cells on the device, and the range that still has to be passed to it: at most `most` cells within `range`.
    pub(crate) fn on_device_but(
        &mut self,
        driver: &Driver,
        pool: &Pool,
        range: &Range<usize>,
        most: usize,
    ) -> Result<(Address, Range<usize>)> {
        let address = self.reserve(driver, pool)?;
        let changed = self.changed.clone();
        if changed.len() <= most && range.start <= changed.start && changed.end <= range.end {
            return Ok((address, changed));
        }
        let to = address + self.bytes(&changed).start as u64;
        driver.upload(self.known(&changed), to, "writing cells")?;
        self.changed = 0..0;
        Ok((address, 0..0))
    }
    /// Reserves memory for all cells on the device.
    fn reserve(&mut self, driver: &Driver, pool: &Pool) -> Result<Address> {
        let (count, size) = (self.len(), self.kind.size());
        match &self.buffer {
            Some(buffer) if buffer.bytes >= count * size => Ok(buffer.address),
            _ => {
                self.refresh(driver)?;
                let buffer = pool.zeroed(driver, (2 * count).max(CELLS) * size, "cells")?;
                let address = buffer.address;
                self.buffer = Some(buffer);
                self.changed = 0..count;
                Ok(address)
            }
        }
    }
    /// Records that work is queued which has all changes of the host and changes these cells.
    pub(crate) fn device_changes(&mut self, cells: &Range<usize>) {
        self.changed = 0..0;
        self.stale = union(&self.stale, cells.clone());
    }
    /// Records that work is queued which has all changes of the host and changes none.
    pub(crate) fn device_has_all(&mut self) {
        self.changed = 0..0;
    }
    /// Records the device's values of the cells of a range, once the stream is empty.
    pub(crate) fn learn(&mut self, range: &Range<usize>, values: &[u8]) {
        self.known_mut(range).copy_from_slice(values);
        if range.start <= self.stale.start && self.stale.end <= range.end {
            self.stale = 0..0;
        }
    }

    /// All cells, once the stream is empty.
    pub(crate) fn numbers<T: Scalar>(&mut self, driver: &Driver) -> Result<Vec<T>> {
        self.refresh(driver)?;
        Ok(cast_slice(self.known(&(0..self.len()))).to_vec())
    }
    /// Sets all cells.
    pub(crate) fn set_numbers<T: Scalar>(&mut self, numbers: &[T]) {
        let all = 0..self.len();
        self.known_mut(&all).copy_from_slice(cast_slice(numbers));
        self.changed = all;
    }
}
