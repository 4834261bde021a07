//! Cells: numbers on the device that the host sets and reads individually.
use super::Memory;
use crate::driver::{Buffer, Context, Queue};
use lacuna_engine::{Cell, Cells, Error, Result, Scalar, next_serial};
use std::collections::BTreeMap;
use std::ops::Range;

/// Maximum runs of cells in flight to the device.
const SENT: usize = 256;

/// The cells of one number type.
#[derive(Default)]
pub(super) struct CellFile {
    pub(super) buffer: Option<Buffer>,
    capacity: usize,
    pub(super) serials: Vec<u32>,
    /// Cells that are 0 but not yet cleared on the device.
    zero: Range<usize>,
    /// Values not yet on the device, in runs, by first cell.
    pending: BTreeMap<usize, Vec<u8>>,
    /// Values in flight to the device.
    sent: Vec<Vec<u8>>,
}

impl CellFile {
    /// Drops the cells from `count` on.
    pub(super) fn truncate(&mut self, count: usize) {
        self.serials.truncate(count);
        let end = self.zero.end.min(count);
        self.zero = self.zero.start.min(end)..end;
        self.pending.split_off(&count);
    }
}

impl Memory {
    /// A run of cells, all zero.
    pub(crate) fn cells<T: Scalar>(
        &mut self,
        context: &Context,
        queue: &Queue,
        count: usize,
    ) -> Result<Cells<T>> {
        let operation = format!("{count} cells");
        let size = size_of::<T>();
        let file = &self.cells[T::KIND as usize];
        let first = file.serials.len();
        let end = first.checked_add(count).filter(|end| u32::try_from(*end).is_ok());
        let capacity = end.and_then(usize::checked_next_power_of_two).unwrap_or(usize::MAX).max(1024);
        let Some(end) = end.filter(|_| capacity.checked_mul(size).is_some()) else {
            return Err(Error::OutOfMemory {
                operation,
                device: self.device.clone(),
                requested: (count as u64).saturating_mul(size as u64),
                available: Some(self.total),
            });
        };
        if end > file.capacity || file.buffer.is_none() {
            let buffer = self.buffer(context, queue, capacity * size, &operation)?;
            if let Some(old) = &file.buffer {
                queue.copy(old, &buffer, first * size).map_err(self.fail(&operation))?;
            }
            let file = &mut self.cells[T::KIND as usize];
            (file.buffer, file.capacity) = (Some(buffer), capacity);
            self.generation += 1;
        }
        self.mirror = None;
        let file = &mut self.cells[T::KIND as usize];
        let serial = next_serial();
        file.serials.resize(end, serial);
        let start = if file.zero.start == file.zero.end { first } else { file.zero.start };
        file.zero = start..end;
        Ok(Cells::new(first as u32, count as u32, serial))
    }

    /// Keeps a copy of the cells on the device, valid until something may change them.
    pub(crate) fn mirror<T: Scalar>(&mut self, cells: Range<u32>, bytes: &[u8]) {
        self.mirror = Some((T::KIND, cells.start as usize, bytes[..cells.len() * size_of::<T>()].to_vec()));
    }

    /// Sends what the host has set to the device, before anything there may read or change cells.
    pub(crate) fn settle<T: Scalar>(&mut self, queue: &Queue) -> Result<()> {
        let fail = self.fail("cells");
        self.mirror = None;
        let file = &mut self.cells[T::KIND as usize];
        let zero = std::mem::replace(&mut file.zero, 0..0);
        if let Some(buffer) = &file.buffer
            && zero.start < zero.end
        {
            let size = size_of::<T>();
            queue.fill(buffer, zero.start * size, (zero.end - zero.start) * size, &[0; 4]).map_err(&fail)?;
        }
        let size = size_of::<T>();
        let mut runs: Vec<(usize, Vec<u8>)> = Vec::new();
        for (cell, value) in std::mem::take(&mut file.pending) {
            match runs.last_mut() {
                Some((first, run)) if *first + run.len() / size == cell => run.extend(value),
                _ => runs.push((cell, value)),
            }
        }
        if file.sent.len() + runs.len() > SENT {
            queue.finish().map_err(&fail)?;
            file.sent.clear();
        }
        for (cell, run) in runs {
            if let Some(buffer) = &file.buffer {
                file.sent.push(run);
                let run = &file.sent[file.sent.len() - 1];
                // SAFETY: `sent` keeps the bytes until the queue has been waited for.
                unsafe { queue.write_later(buffer, cell * size, run) }.map_err(&fail)?;
            }
        }
        Ok(())
    }

    pub(crate) fn check_cell<T: Scalar>(&self, cell: Cell<T>, operation: &str) -> Result<()> {
        match self.cells[T::KIND as usize].serials.get(cell.index as usize) {
            Some(serial) if *serial == cell.serial => Ok(()),
            _ => Err(Error::Stale { operation: operation.into(), what: "cell" }),
        }
    }

    /// Number of cells.
    pub(crate) fn cell_count<T: Scalar>(&self) -> usize {
        self.cells[T::KIND as usize].serials.len()
    }

    pub(crate) fn write<T: Scalar>(&mut self, queue: &Queue, cell: Cell<T>, value: T) -> Result<()> {
        self.check_cell(cell, "write")?;
        if let Some((kind, first, bytes)) = &mut self.mirror
            && *kind == T::KIND
        {
            // The mirror stays valid for the other cells.
            let at = (cell.index as usize).wrapping_sub(*first).wrapping_mul(size_of::<T>());
            if let Some(place) = bytes.get_mut(at..at.saturating_add(size_of::<T>())) {
                place.copy_from_slice(bytemuck::bytes_of(&value));
            }
        }
        let file = &mut self.cells[T::KIND as usize];
        file.pending.insert(cell.index as usize, bytemuck::bytes_of(&value).to_vec());
        if file.pending.len() > SENT { self.settle::<T>(queue) } else { Ok(()) }
    }

    pub(crate) fn read<T: Scalar>(&mut self, queue: &Queue, cells: &[Cell<T>]) -> Result<Vec<T>> {
        cells.iter().try_for_each(|cell| self.check_cell(*cell, "read"))?;
        let low = cells.iter().map(|c| c.index as usize).min().unwrap_or(0);
        let high = cells.iter().map(|c| c.index as usize + 1).max().unwrap_or(0);
        if let Some((kind, first, bytes)) = &self.mirror
            && *kind == T::KIND
            && low >= *first
            && (high - first) * size_of::<T>() <= bytes.len()
        {
            let numbers = |c: &Cell<T>| {
                bytemuck::pod_read_unaligned(
                    &bytes[(c.index as usize - first) * size_of::<T>()..][..size_of::<T>()],
                )
            };
            return Ok(cells.iter().map(numbers).collect());
        }
        let values = self.read_range::<T>(queue, low..high)?;
        Ok(cells.iter().map(|c| values[c.index as usize - low]).collect())
    }

    pub(crate) fn read_range<T: Scalar>(&mut self, queue: &Queue, range: Range<usize>) -> Result<Vec<T>> {
        self.settle::<T>(queue)?;
        let mut values = vec![T::zero(); range.len()];
        if let Some(buffer) = &self.cells[T::KIND as usize].buffer {
            let to = bytemuck::cast_slice_mut(&mut values);
            queue.read(buffer, range.start * size_of::<T>(), to).map_err(self.fail("read"))?;
        }
        Ok(values)
    }

    pub(crate) fn write_all<T: Scalar>(&mut self, queue: &Queue, values: &[T]) -> Result<()> {
        self.settle::<T>(queue)?;
        match &self.cells[T::KIND as usize].buffer {
            Some(buffer) => queue.write(buffer, 0, bytemuck::cast_slice(values)).map_err(self.fail("write")),
            None => Ok(()),
        }
    }

    /// The cells of a number type, created if needed.
    pub(crate) fn cell_buffer<T: Scalar>(&mut self, context: &Context, queue: &Queue) -> Result<&Buffer> {
        if self.cells[T::KIND as usize].buffer.is_none() {
            self.cells::<T>(context, queue, 0)?;
        }
        let buffer = self.cells[T::KIND as usize].buffer.as_ref();
        buffer.ok_or_else(|| Error::Stale { operation: "cells".into(), what: "cell" })
    }
}
