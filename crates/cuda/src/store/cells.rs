//! The cells: on the device, and as the host last knew them.
use super::Store;
use crate::driver::{Address, Driver};
use crate::memory::Buffer;
use lacuna_engine::{Cell, Cells, Error, Op, Result, Scalar, next_serial};
use std::ops::Range;

/// Initial capacity of the cells of a number type.
const CELLS: usize = 4096;

/// Cells of one number type: on the device, and as the host last knew them.
pub(super) struct CellFile<T> {
    pub(super) host: Vec<T>,
    pub(super) serials: Vec<u32>,
    /// Indices that the host has changed and not yet uploaded.
    pub(super) changed: Range<usize>,
    /// Indices that the device may have changed since the host last read them.
    pub(super) stale: Range<usize>,
    pub(super) buffer: Option<Buffer>,
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

impl Store {
    pub(super) fn file<T: Scalar>(&self) -> &CellFile<T> {
        let file = self.cells[T::KIND as usize].downcast_ref();
        file.expect("the file of a kind holds numbers of that kind")
    }
    pub(super) fn file_mut<T: Scalar>(&mut self) -> &mut CellFile<T> {
        let file = self.cells[T::KIND as usize].downcast_mut();
        file.expect("the file of a kind holds numbers of that kind")
    }

    pub(crate) fn new_cells<T: Scalar>(&mut self, driver: &Driver, count: usize) -> Result<Cells<T>> {
        let serial = next_serial();
        let file = self.file_mut::<T>();
        let first = file.host.len();
        let fits = first.checked_add(count).is_some_and(|end| u32::try_from(end).is_ok());
        if !fits || file.host.try_reserve(count).is_err() || file.serials.try_reserve(count).is_err() {
            return Err(Error::OutOfMemory {
                operation: format!("{count} cells"),
                device: driver.limits.name.clone(),
                requested: (count as u64).saturating_mul(size_of::<T>() as u64),
                available: None,
            });
        }
        file.host.resize(first + count, T::zero());
        file.serials.resize(first + count, serial);
        file.changed = union(&file.changed, first..first + count);
        Ok(Cells::new(first as u32, count as u32, serial))
    }
    pub(crate) fn check_cell<T: Scalar>(&self, cell: Cell<T>, operation: &str) -> Result<()> {
        match self.file::<T>().serials.get(cell.index as usize) {
            Some(serial) if *serial == cell.serial => Ok(()),
            _ => Err(Error::Stale { operation: operation.into(), what: "cell" }),
        }
    }
    /// Fails unless every cell that an operation names is live.
    pub(crate) fn check_cells_of<T: Scalar>(&self, op: &Op<T>) -> Result<()> {
        let name = &op.sweep.name;
        op.cells().try_for_each(|cell| self.check_cell(cell, name))
    }
    /// The serials of the cells in use, to check whether the cells of a program are live.
    pub(crate) fn cell_serials<T: Scalar>(&self) -> &[u32] {
        &self.file::<T>().serials
    }
    /// Sets a cell; the device sees it when the next program starts.
    pub(crate) fn write<T: Scalar>(&mut self, driver: &Driver, cell: Cell<T>, value: T) -> Result<()> {
        self.check_cell(cell, "write")?;
        let at = cell.index as usize;
        if !self.file::<T>().stale.is_empty() {
            self.host_cells::<T>(driver)?;
        }
        let file = self.file_mut::<T>();
        file.host[at] = value;
        file.changed = union(&file.changed, at..at + 1);
        Ok(())
    }
    /// The cells as they are once the stream is empty.
    pub(crate) fn host_cells<T: Scalar>(&mut self, driver: &Driver) -> Result<&mut Vec<T>> {
        let file = self.file_mut::<T>();
        let stale = std::mem::replace(&mut file.stale, 0..0);
        if !stale.is_empty()
            && let Some(buffer) = &file.buffer
        {
            let from = buffer.address + (stale.start * size_of::<T>()) as u64;
            if let Err(error) = driver.download(from, &mut file.host[stale.clone()], "reading cells") {
                file.stale = stale;
                return Err(error);
            }
        }
        Ok(&mut file.host)
    }
    /// The cells on the device, up to date.
    pub(crate) fn device_cells<T: Scalar>(&mut self, driver: &Driver) -> Result<Address> {
        let address = self.device_room::<T>(driver)?;
        let file = self.file_mut::<T>();
        let changed = std::mem::replace(&mut file.changed, 0..0);
        let to = address + (changed.start * size_of::<T>()) as u64;
        driver.upload(&file.host[changed], to, "writing cells")?;
        Ok(address)
    }
    /// The cells on the device, and the range still to be uploaded, if it is at most `most` cells within
    /// `range`; otherwise uploads them and returns an empty range.
    pub(crate) fn device_cells_but<T: Scalar>(
        &mut self,
        driver: &Driver,
        range: &Range<usize>,
        most: usize,
    ) -> Result<(Address, Range<usize>)> {
        let address = self.device_room::<T>(driver)?;
        let changed = self.file::<T>().changed.clone();
        if changed.len() <= most && range.start <= changed.start && changed.end <= range.end {
            self.file_mut::<T>().changed = 0..0;
            return Ok((address, changed));
        }
        Ok((self.device_cells::<T>(driver)?, 0..0))
    }
    /// The cells as the host last knew them.
    pub(crate) fn known_cells<T: Scalar>(&self) -> &[T] {
        &self.file::<T>().host
    }
    /// Records the device's values of the cells from `first` on.
    pub(crate) fn learn<T: Scalar>(&mut self, first: usize, values: &[T]) {
        let file = self.file_mut::<T>();
        let range = first..first + values.len();
        file.host[range.clone()].copy_from_slice(values);
        if range.start <= file.stale.start && file.stale.end <= range.end {
            file.stale = 0..0;
        }
    }
    /// Reserves memory for the cells on the device.
    fn device_room<T: Scalar>(&mut self, driver: &Driver) -> Result<Address> {
        let room = self.file::<T>().buffer.as_ref().map_or(0, |b| b.bytes / size_of::<T>());
        let count = self.file::<T>().host.len();
        if room < count.max(1) {
            self.host_cells::<T>(driver)?;
            let bytes = (2 * count).max(CELLS) * size_of::<T>();
            let buffer = self.pool.take_zeroed(driver, bytes, "cells")?;
            let old = self.file_mut::<T>().buffer.replace(buffer);
            old.into_iter().for_each(|b| self.pool.give(b));
            self.file_mut::<T>().changed = 0..count;
        }
        Ok(self.file::<T>().buffer.as_ref().map_or(0, |buffer| buffer.address))
    }
    /// Records that the device changes these cells.
    pub(crate) fn device_changes<T: Scalar>(&mut self, cells: Range<usize>) {
        let file = self.file_mut::<T>();
        file.stale = union(&file.stale, cells);
    }
    /// Records that the host changed cells of [`Store::host_cells`].
    pub(crate) fn host_changed<T: Scalar>(&mut self) {
        let file = self.file_mut::<T>();
        file.changed = 0..file.host.len();
    }
}
