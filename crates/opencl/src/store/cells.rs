//! Cells: numbers on the device that the host sets and reads individually.
use super::{Store, stale};
use crate::driver::{Buffer, Driver};
use lacuna_engine::arena::Serials;
use lacuna_engine::{Cell, Cells, Number, NumberType, Result};
use std::collections::BTreeMap;
use std::ops::Range;

/// Maximum runs of cells in flight to the device.
const SENT: usize = 256;
/// Cells that lie within so many of each other are read together.
const NEAR: usize = 1024;

/// The cells of one number type.
#[derive(Default)]
pub(super) struct CellFile {
    buffer: Option<Buffer>,
    capacity: usize,
    serials: Serials,
    /// Cells that are 0 but not yet cleared on the device.
    zero: Vec<Range<usize>>,
    /// Values not yet on the device, by cell.
    pending: BTreeMap<usize, Number>,
    /// Values in flight to the device.
    sent: Vec<Vec<u8>>,
}

fn range(cells: Cells) -> Range<usize> {
    cells.first as usize..cells.first as usize + cells.count as usize
}

impl CellFile {
    /// Frees cells, and forgets the values on their way to them.
    pub(super) fn free(&mut self, cells: Cells) {
        if self.serials.give(cells) {
            let (of, pending) = (range(cells), &mut self.pending);
            let mut others = pending.split_off(&of.start);
            pending.append(&mut others.split_off(&of.end));
        }
    }
    /// Notes that cells are 0.
    fn clear(&mut self, cells: Range<usize>) {
        match self.zero.last_mut() {
            Some(last) if cells.start <= last.end && last.start <= cells.end => {
                *last = last.start.min(cells.start)..last.end.max(cells.end);
            }
            _ if cells.is_empty() => {}
            _ => self.zero.push(cells),
        }
    }
    /// Values on their way, in runs of consecutive cells.
    fn runs(&mut self) -> Vec<(usize, Vec<u8>)> {
        let mut runs: Vec<(usize, Vec<u8>)> = Vec::new();
        for (cell, value) in std::mem::take(&mut self.pending) {
            let bytes = value.bytes();
            match runs.last_mut() {
                Some((first, run)) if *first + run.len() / bytes.len() == cell => run.extend(bytes),
                _ => runs.push((cell, bytes.to_vec())),
            }
        }
        runs
    }
}

impl Store {
    /// A run of cells, all zero.
    pub(crate) fn cells(&mut self, driver: &Driver, kind: NumberType, count: usize) -> Result<Cells> {
        let (operation, size) = (format!("{count} cells"), kind.size());
        let exhausted = || driver.exhausted((count as u64).saturating_mul(size as u64), &operation);
        if count as u64 > driver.device.memory / size as u64 {
            return Err(exhausted());
        }
        let file = self.cells.entry(kind).or_default();
        let cells = file.serials.take(kind, count).ok_or_else(exhausted)?;
        let end = range(cells).end;
        if end > file.capacity || file.buffer.is_none() {
            let (old, capacity) = (file.capacity * size, end.next_power_of_two().max(1024));
            let new = driver.buffer(capacity.saturating_mul(size), &operation).and_then(|new| {
                let copied =
                    file.buffer.as_ref().map_or(Ok(()), |from| driver.queue.copy((from, 0), (&new, 0), old));
                copied.map(|()| new).map_err(driver.fail(&operation))
            });
            match new {
                Ok(new) => (file.buffer, file.capacity) = (Some(new), capacity),
                Err(error) => {
                    file.serials.give(cells);
                    return Err(error);
                }
            }
            self.generation += 1;
        }
        self.mirror = None;
        let file = self.cells.entry(kind).or_default();
        file.clear(range(cells));
        if file.zero.len() > SENT {
            self.settle(driver, kind)?;
        }
        Ok(cells)
    }

    /// Keeps a copy of the cells on the device, valid until something may change them.
    pub(crate) fn mirror(&mut self, kind: NumberType, cells: Range<u32>, bytes: &[u8]) {
        self.mirror = Some((kind, cells.start as usize, bytes[..cells.len() * kind.size()].to_vec()));
    }

    /// Sends what the host has set to the device, before anything there may read or change cells.
    pub(crate) fn settle(&mut self, driver: &Driver, kind: NumberType) -> Result<()> {
        let (fail, size) = (driver.fail("cells"), kind.size());
        self.mirror = None;
        let file = self.cells.entry(kind).or_default();
        let Some(buffer) = &file.buffer else { return Ok(()) };
        for zero in std::mem::take(&mut file.zero) {
            driver.queue.fill(buffer, zero.start * size, zero.len() * size, &[0; 4]).map_err(&fail)?;
        }
        let runs = file.runs();
        if file.sent.len() + runs.len() > SENT {
            driver.queue.finish().map_err(&fail)?;
            file.sent.clear();
        }
        let Some(buffer) = &file.buffer else { return Ok(()) };
        for (cell, run) in runs {
            file.sent.push(run);
            let run = &file.sent[file.sent.len() - 1];
            // SAFETY: `sent` keeps the bytes until the queue has been waited for.
            unsafe { driver.queue.write_later(buffer, cell * size, run) }.map_err(&fail)?;
        }
        Ok(())
    }

    pub(crate) fn check_cell(&self, cell: Cell, operation: &str) -> Result<()> {
        let file = self.cells.get(&cell.kind).ok_or_else(|| stale(operation, "cell"))?;
        file.serials.check(cell, operation)
    }

    pub(crate) fn write(&mut self, driver: &Driver, cell: Cell, value: Number) -> Result<()> {
        self.check_cell(cell, "write")?;
        if value.kind() != cell.kind {
            return Err(stale("write", "cell of this number type"));
        }
        let index = cell.index as usize;
        if let Some((kind, first, bytes)) = &mut self.mirror
            && *kind == cell.kind
        {
            // The mirror stays valid for the other cells.
            let at = index.wrapping_sub(*first).wrapping_mul(kind.size());
            if let Some(place) = bytes.get_mut(at..at.saturating_add(kind.size())) {
                place.copy_from_slice(value.bytes());
            }
        }
        let file = self.cells.entry(cell.kind).or_default();
        file.pending.insert(index, value);
        if file.pending.len() > SENT { self.settle(driver, cell.kind) } else { Ok(()) }
    }

    /// Waits for the queue and copies cells of one number type, one after the other.
    pub(crate) fn read(&mut self, driver: &Driver, cells: &[Cell], to: &mut [u8]) -> Result<()> {
        let Some(kind) = cells.first().map(|cell| cell.kind) else { return Ok(()) };
        cells.iter().try_for_each(|cell| self.check_cell(Cell { kind, ..*cell }, "read"))?;
        let size = kind.size();
        lacuna_engine::Error::check_length("read", "the bytes", cells.len() * size, to.len())?;
        let low = cells.iter().map(|c| c.index as usize).min().unwrap_or(0);
        let high = cells.iter().map(|c| c.index as usize + 1).max().unwrap_or(0);
        let pick = |to: &mut [u8], from: &[u8], first: usize| {
            for (to, cell) in to.chunks_exact_mut(size).zip(cells) {
                to.copy_from_slice(&from[(cell.index as usize - first) * size..][..size]);
            }
        };
        if let Some((of, first, bytes)) = &self.mirror
            && *of == kind
            && low >= *first
            && (high - first) * size <= bytes.len()
        {
            pick(to, bytes, *first);
            return Ok(());
        }
        if high - low <= cells.len() + NEAR {
            let mut bytes = vec![0; (high - low) * size];
            self.read_range(driver, kind, low, &mut bytes)?;
            pick(to, &bytes, low);
            return Ok(());
        }
        let mut each = to.chunks_exact_mut(size).zip(cells);
        each.try_for_each(|(to, cell)| self.read_range(driver, kind, cell.index as usize, to))
    }

    /// Waits for the queue and copies the bytes of cells from `first` on.
    pub(crate) fn read_range(
        &mut self,
        driver: &Driver,
        kind: NumberType,
        first: usize,
        to: &mut [u8],
    ) -> Result<()> {
        self.settle(driver, kind)?;
        let Some(buffer) = self.cell_buffer(kind) else { return Ok(()) };
        driver.queue.read(buffer, first * kind.size(), to).map_err(driver.fail("read"))
    }

    /// Sets the bytes of cells from `first` on.
    pub(crate) fn write_range(
        &mut self,
        driver: &Driver,
        kind: NumberType,
        first: usize,
        from: &[u8],
    ) -> Result<()> {
        self.settle(driver, kind)?;
        let Some(buffer) = self.cell_buffer(kind) else { return Ok(()) };
        driver.queue.write(buffer, first * kind.size(), from).map_err(driver.fail("write"))
    }

    /// The cells of a number type on the device.
    pub(super) fn cell_buffer(&self, kind: NumberType) -> Option<&Buffer> {
        self.cells.get(&kind).and_then(|file| file.buffer.as_ref())
    }
}
