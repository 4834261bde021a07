//! A sparse sum of sparse rows.
use super::cells::{Cell, add_product};
use lacuna_engine::Scalar;

/// Columns with cells, found by column. Whether a column is already present is handled without a branch,
/// which would be unpredictable, and does not depend on other columns.
pub(super) struct Accumulator<T, const R: usize = 1, const C: usize = 1> {
    /// For each column, the last sum that contained it and its position there: `sum << 32 | place`.
    known: Vec<u64>,
    /// The number of the current sum, from 1.
    sum: u32,
    /// One more than the maximum number of columns; the element after those in use holds an arbitrary column.
    columns: Vec<u32>,
    /// The cells of these columns; the one after those in use is 0.
    cells: Vec<Cell<T, R, C>>,
    len: usize,
}

impl<T: Scalar, const R: usize, const C: usize> Accumulator<T, R, C> {
    pub(super) fn new(cols: usize) -> Self {
        let (known, columns) = (bytemuck::zeroed_vec(cols), bytemuck::zeroed_vec(cols + 1));
        Accumulator { known, sum: 1, columns, cells: bytemuck::zeroed_vec(cols + 1), len: 0 }
    }
    pub(super) fn clear(&mut self) {
        if self.sum == u32::MAX {
            self.known.fill(0);
            self.sum = 0;
        }
        self.sum += 1;
        self.len = 0;
        self.cells[0] = [[T::zero(); C]; R];
    }
    /// In insertion order.
    pub(super) fn columns(&self) -> &[u32] {
        &self.columns[..self.len]
    }
    /// The cell of each of [`Accumulator::columns`].
    pub(super) fn cells(&self) -> &[Cell<T, R, C>] {
        &self.cells[..self.len]
    }
    /// Adds a factor times a row for each of the terms; records the positions of their columns if `keep`
    /// holds.
    ///
    /// A separate function: inlined among other loops, the compiler keeps its state in memory.
    ///
    /// # Panics
    /// If a column is out of range.
    #[inline(never)]
    pub(super) fn add<'a, const K: usize>(
        &mut self,
        terms: impl Iterator<Item = (&'a Cell<T, R, K>, (&'a [u32], &'a [Cell<T, K, C>]))>,
        slots: &mut Vec<u32>,
        keep: bool,
    ) where
        T: 'a,
    {
        let (known, columns, cells) = (&mut self.known[..], &mut self.columns[..], &mut self.cells[..]);
        let (sum, mut len) = (u64::from(self.sum) << 32, self.len);
        for (factor, row) in terms {
            let first = slots.len();
            if keep {
                slots.resize(first + row.0.len(), 0);
            }
            let mut places = slots[first..].iter_mut();
            for (&column, cell) in row.0.iter().zip(row.1) {
                let last = known[column as usize];
                let here = last & !0xffff_ffff == sum;
                let at = if here { last as u32 as usize } else { len };
                known[column as usize] = sum | at as u64;
                // SAFETY: `at` is a place of this sum or the next free one. A sum has no more places than
                // there are columns, of which each takes one at most, and both arrays are longer by one.
                unsafe {
                    *columns.get_unchecked_mut(len) = column;
                    add_product(cells.get_unchecked_mut(at), factor, cell);
                    len += usize::from(!here);
                    *cells.get_unchecked_mut(len) = [[T::zero(); C]; R];
                }
                if keep && let Some(place) = places.next() {
                    *place = at as u32;
                }
            }
        }
        self.len = len;
    }

    /// Records the columns of some rows.
    ///
    /// # Panics
    /// As [`Accumulator::add`].
    #[inline(never)]
    pub(super) fn touch<'a>(&mut self, rows: impl Iterator<Item = &'a [u32]>) {
        let (known, columns) = (&mut self.known[..], &mut self.columns[..]);
        let (sum, mut len) = (u64::from(self.sum) << 32, self.len);
        for &column in rows.flatten() {
            let here = known[column as usize] == sum;
            known[column as usize] = sum;
            columns[len] = column;
            len += usize::from(!here);
        }
        self.len = len;
    }
}
