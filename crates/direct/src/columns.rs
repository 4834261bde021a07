//! Compressed columns, in which factors are made.
use crate::Number;
use crate::failure::{filled, grow, with_room};
use lacuna_engine::Result;

/// Columns of a matrix or a factor. The rows of a column are in no particular order.
#[derive(Clone, Debug)]
pub(crate) struct Columns<W> {
    pub(crate) ptr: Vec<usize>,
    pub(crate) rows: Vec<u32>,
    pub(crate) values: Vec<W>,
}

impl<W: Number> Columns<W> {
    /// No columns yet, with room for so many and for so many entries.
    pub(crate) fn with_room(columns: usize, entries: usize) -> Result<Self> {
        let mut ptr = with_room(columns + 1)?;
        ptr.push(0);
        Ok(Columns { ptr, rows: with_room(entries)?, values: with_room(entries)? })
    }

    #[inline]
    pub(crate) fn push(&mut self, row: u32, value: W) {
        self.rows.push(row);
        self.values.push(value);
    }

    /// Room for more entries.
    pub(crate) fn grow(&mut self, more: usize) -> Result<()> {
        grow(&mut self.rows, more)?;
        grow(&mut self.values, more)
    }

    /// Ends the column whose entries were pushed.
    pub(crate) fn end_column(&mut self) {
        self.ptr.push(self.rows.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ptr.len() - 1
    }

    #[inline]
    pub(crate) fn column(&self, j: usize) -> (&[u32], &[W]) {
        let range = self.ptr[j]..self.ptr[j + 1];
        (&self.rows[range.clone()], &self.values[range])
    }

    #[inline]
    pub(crate) fn entries(&self, j: usize) -> impl Iterator<Item = (usize, W)> + '_ {
        let (rows, values) = self.column(j);
        rows.iter().zip(values).map(|(&i, &v)| (i as usize, v))
    }

    /// The transpose of a square matrix.
    pub(crate) fn transposed(&self) -> Result<Self> {
        let n = self.len();
        let mut ptr = filled(0, n + 1)?;
        self.rows.iter().for_each(|&i| ptr[i as usize + 1] += 1);
        (0..n).for_each(|k| ptr[k + 1] += ptr[k]);
        let mut next = ptr.clone();
        let mut rows = filled(0, self.rows.len())?;
        let mut values = filled(W::zero(), self.rows.len())?;
        for j in 0..n {
            for (i, v) in self.entries(j) {
                (rows[next[i]], values[next[i]]) = (j as u32, v);
                next[i] += 1;
            }
        }
        Ok(Columns { ptr, rows, values })
    }

    /// `x ← (I + L)⁻¹ x` for columns `L` below the diagonal of a unit lower triangle, from `range`.
    pub(crate) fn forward(&self, range: std::ops::Range<usize>, x: &mut [W]) {
        for k in range {
            let v = x[k];
            if v != W::zero() {
                self.entries(k).for_each(|(i, l)| x[i] -= l * v);
            }
        }
    }

    /// The sum of the entries of column `k` times `x`.
    #[inline]
    pub(crate) fn dot(&self, k: usize, x: &[W]) -> W {
        self.entries(k).fold(W::zero(), |sum, (i, v)| sum + v * x[i])
    }
}
