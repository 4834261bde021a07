//! The bookkeeping of a backend's memory: which slots, cells, matrices and plans are in use, and what is behind them.
//!
//! Everything is found by number and serial, and is freed in any order. What was freed is reused first.
use crate::{Basis, Cell, Cells, Error, NumberType, Result, Vector, next_serial};
use std::collections::BTreeMap;

/// Numbers in use, taken and given back in runs.
#[derive(Debug, Default)]
pub struct Runs {
    /// Free runs below the end: first number and length. No two of them touch.
    free: BTreeMap<u32, u32>,
    end: u32,
}

impl Runs {
    /// One past the highest number that was ever taken.
    pub fn end(&self) -> u32 {
        self.end
    }
    /// The lowest run of `count` free numbers in a gap of at least `gap`, or at the end; `None` beyond 2^32.
    pub fn take(&mut self, count: u32, gap: u32) -> Option<u32> {
        let fits = self.free.iter().find(|(_, length)| **length >= gap.max(count)).map(|(first, _)| *first);
        let Some(first) = fits else {
            let last = self.free.last_key_value().filter(|(first, length)| **first + **length == self.end);
            let first = last.map_or(self.end, |(first, _)| *first);
            self.end = first.checked_add(count)?;
            self.free.remove(&first);
            return Some(first);
        };
        let length = self.free.remove(&first)?;
        if length > count {
            self.free.insert(first + count, length - count);
        }
        Some(first)
    }
    /// Frees a run that was taken, or a part of one.
    pub fn give(&mut self, first: u32, count: u32) {
        let (mut first, mut count) = (first, count);
        if let Some((&before, &length)) = self.free.range(..first).next_back()
            && before + length == first
        {
            self.free.remove(&before);
            (first, count) = (before, length + count);
        }
        if let Some(length) = self.free.remove(&(first + count)) {
            count += length;
        }
        self.free.insert(first, count);
    }
}

/// Some vectors of one length that were allocated together.
pub struct Block<B> {
    /// The handle of all of them.
    pub basis: Basis,
    /// Where they are.
    pub buffer: B,
}

/// Vectors by slot, each in the block it was allocated with.
pub struct Blocks<B> {
    blocks: Table<Block<B>>,
    /// The block of each slot.
    slots: Vec<u32>,
    runs: Runs,
}

impl<B> Default for Blocks<B> {
    fn default() -> Self {
        Blocks { blocks: Table::default(), slots: Vec::new(), runs: Runs::default() }
    }
}

/// The block of a free slot.
const NONE: u32 = u32::MAX;

impl<B> Blocks<B> {
    /// Whether there are slots for as many vectors.
    pub fn has_room(&mut self, columns: usize) -> bool {
        let end = (self.runs.end as usize).checked_add(columns);
        end.is_some_and(|end| end < NONE as usize) && self.slots.try_reserve(columns).is_ok()
    }
    /// Adds a block of `columns` vectors of `n` elements: see [`Blocks::has_room`].
    pub fn add(&mut self, kind: NumberType, n: usize, columns: usize, narrow: bool, buffer: B) -> Basis {
        let count = columns as u32;
        if count == 0 {
            return Basis::of(kind, 0, next_serial(), n, 0, narrow);
        }
        let first = self.runs.take(count, 1).unwrap_or(0);
        let basis = Basis::of(kind, first, 0, n, columns, narrow);
        let (index, serial) = self.blocks.add(Block { basis, buffer });
        let basis = Basis { serial, ..basis };
        if let Some(block) = self.blocks.get_mut(index, serial) {
            block.basis = basis;
        }
        let end = first as usize + columns;
        self.slots.resize(self.slots.len().max(end), NONE);
        self.slots[first as usize..end].fill(index);
        basis
    }
    /// The block of a vector that is live, and the number of its column.
    pub fn get(&self, v: Vector) -> Option<(&Block<B>, usize)> {
        let block = self.blocks.get(*self.slots.get(v.slot as usize)?, v.serial)?;
        let Basis { first, len, narrow, kind, .. } = block.basis;
        let same = (len, narrow, kind) == (v.len, v.narrow, v.kind);
        same.then(|| (block, (v.slot - first) as usize))
    }
    /// The same.
    pub fn get_mut(&mut self, v: Vector) -> Option<(&mut Block<B>, usize)> {
        let index = self.slots.get(v.slot as usize).copied();
        self.get(v)?;
        let block = self.blocks.get_mut(index?, v.serial)?;
        let first = block.basis.first;
        Some((block, (v.slot - first) as usize))
    }
    /// Removes a block and returns its buffer, if it is live.
    pub fn remove(&mut self, basis: Basis) -> Option<B> {
        if basis.columns == 0 {
            return None;
        }
        let index = *self.slots.get(basis.first as usize)?;
        if self.blocks.get(index, basis.serial).is_none_or(|block| block.basis != basis) {
            return None;
        }
        let block = self.blocks.remove(index, basis.serial)?;
        self.slots[basis.first as usize..basis.first as usize + basis.columns].fill(NONE);
        self.runs.give(basis.first, basis.columns as u32);
        Some(block.buffer)
    }
    /// All blocks.
    pub fn iter(&self) -> impl Iterator<Item = &Block<B>> {
        self.blocks.iter()
    }
    /// All blocks.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Block<B>> {
        self.blocks.iter_mut()
    }
    /// Number of slots, free ones included.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }
    /// Removes all blocks and returns their buffers.
    pub fn drain(&mut self) -> Vec<B> {
        let all = std::mem::take(self);
        all.blocks.items.into_iter().flatten().map(|(_, block)| block.buffer).collect()
    }
}

/// Gaps between cells are reused from this size on: the cells of a program are best close to each other.
const GAP: u32 = 4096;

/// The serials of the cells of one number type; 0 for free ones.
#[derive(Debug, Default)]
pub struct Serials {
    serials: Vec<u32>,
    runs: Runs,
}

impl Serials {
    /// The handle of `count` cells that were free; `None` without room.
    pub fn take(&mut self, kind: NumberType, count: usize) -> Option<Cells> {
        let serial = next_serial();
        let count = u32::try_from(count).ok()?;
        if count == 0 {
            return Some(Cells::of(kind, 0, 0, serial));
        }
        self.serials.try_reserve(count as usize).ok()?;
        let first = self.runs.take(count, GAP)?;
        let end = first as usize + count as usize;
        self.serials.resize(self.serials.len().max(end), 0);
        self.serials[first as usize..end].fill(serial);
        Some(Cells::of(kind, first, count, serial))
    }
    /// Frees cells, unless they were freed before. Returns whether it did.
    pub fn give(&mut self, cells: Cells) -> bool {
        let range = cells.first as usize..cells.first as usize + cells.count as usize;
        let live = |serials: &[u32]| {
            cells.serial != 0 && !serials.is_empty() && serials.iter().all(|serial| *serial == cells.serial)
        };
        let Some(serials) = self.serials.get_mut(range).filter(|serials| live(serials)) else { return false };
        serials.fill(0);
        self.runs.give(cells.first, cells.count);
        true
    }
    /// Number of cells, free ones included.
    pub fn len(&self) -> usize {
        self.serials.len()
    }
    /// Whether there have never been any cells.
    pub fn is_empty(&self) -> bool {
        self.serials.is_empty()
    }
    /// Whether a cell is live.
    pub fn has(&self, cell: Cell) -> bool {
        cell.serial != 0 && self.serials.get(cell.index as usize) == Some(&cell.serial)
    }
    /// Fails unless a cell is live.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn check(&self, cell: Cell, operation: &str) -> Result<()> {
        let stale = || Error::Stale { operation: operation.into(), what: "cell" };
        if self.has(cell) { Ok(()) } else { Err(stale()) }
    }
}

/// Things by number, each with a serial that no other thing has had.
pub struct Table<P> {
    items: Vec<Option<(u32, P)>>,
    free: Vec<u32>,
}

impl<P> Default for Table<P> {
    fn default() -> Self {
        Table { items: Vec::new(), free: Vec::new() }
    }
}

impl<P> Table<P> {
    /// Adds a thing; returns its number and serial.
    pub fn add(&mut self, item: P) -> (u32, u32) {
        let serial = next_serial();
        let index = self.free.pop().unwrap_or_else(|| {
            self.items.push(None);
            self.items.len() as u32 - 1
        });
        self.items[index as usize] = Some((serial, item));
        (index, serial)
    }
    /// The thing, if it is there.
    pub fn get(&self, index: u32, serial: u32) -> Option<&P> {
        let item = self.items.get(index as usize)?.as_ref();
        item.filter(|(own, _)| *own == serial).map(|(_, item)| item)
    }
    /// The thing, if it is there.
    pub fn get_mut(&mut self, index: u32, serial: u32) -> Option<&mut P> {
        let item = self.items.get_mut(index as usize)?.as_mut();
        item.filter(|(own, _)| *own == serial).map(|(_, item)| item)
    }
    /// Removes a thing, if it is there.
    pub fn remove(&mut self, index: u32, serial: u32) -> Option<P> {
        self.get(index, serial)?;
        self.free.push(index);
        self.items[index as usize].take().map(|(_, item)| item)
    }
    /// All things.
    pub fn iter(&self) -> impl Iterator<Item = &P> {
        self.items.iter().flatten().map(|(_, item)| item)
    }
    /// All things.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut P> {
        self.items.iter_mut().flatten().map(|(_, item)| item)
    }
    /// Removes all things.
    pub fn drain(&mut self) -> Vec<P> {
        self.free.clear();
        std::mem::take(&mut self.items).into_iter().flatten().map(|(_, item)| item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_were_given_back_are_taken_again() {
        let mut runs = Runs::default();
        let taken: Vec<u32> = (0..8).map(|_| runs.take(10, 1).unwrap()).collect();
        assert_eq!(taken, [0, 10, 20, 30, 40, 50, 60, 70]);
        for at in [20, 40, 30] {
            runs.give(at, 10);
        }
        assert_eq!(runs.free.iter().collect::<Vec<_>>(), [(&20, &30)]);
        assert_eq!((runs.take(25, 1), runs.take(6, 1), runs.take(5, 1)), (Some(20), Some(80), Some(45)));
        runs.give(80, 6);
        assert_eq!(runs.take(9, 1), Some(80), "a gap at the end grows");
        assert_eq!(runs.end, 89);
    }

    #[test]
    fn random_blocks_never_share_a_slot_and_leave_nothing_behind() {
        let mut blocks = Blocks::default();
        let (mut live, mut state) = (Vec::new(), 7u64);
        for round in 0..10_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if live.len() < 8 && state >> 60 < 9 {
                live.push(blocks.add(NumberType::F64, round, 1 + (state >> 40) as usize % 30, false, round));
            } else if !live.is_empty() {
                let gone = live.swap_remove((state >> 33) as usize % live.len());
                assert_eq!(blocks.remove(gone), Some(gone.len));
                assert_eq!(blocks.remove(gone), None);
                assert!(blocks.get(gone.column(0)).is_none());
            }
            for basis in &live {
                let last = basis.column(basis.columns - 1);
                let (block, column) = blocks.get(last).unwrap();
                assert_eq!((block.buffer, column), (basis.len, basis.columns - 1));
            }
        }
        assert!(blocks.slots() < 8 * 30 * 4, "{}", blocks.slots());
    }

    #[test]
    fn cells_are_given_back_once() {
        let mut serials = Serials::default();
        let [a, b] = [5, 7].map(|count| serials.take(NumberType::F32, count).unwrap());
        assert!(
            serials.has(a.at(4))
                && serials.has(b.at(0))
                && !serials.has(Cell { serial: a.serial, ..b.at(0) })
        );
        assert!(serials.give(a) && !serials.give(a) && !serials.has(a.at(0)) && serials.has(b.at(6)));
    }
}
