//! Where each row and column of a matrix stands when it is factored, and by how much it is scaled.
use crate::columns::Columns;
use crate::cost::Count;
use crate::failure::{failed, filled, unsupported};
use crate::hermitian::LARGE;
use crate::order::{Order, order};
use crate::{Number, size};
use lacuna_engine::Result;
use lacuna_formats::{Csr, Permutation, ScaledDiagonal, block_triangular, interrupt, scaled_diagonal};
use std::mem;

/// A diagonal entry below this part of the largest of its row, and of the largest of its column, is weak.
const WEAK: f64 = 0.01;
/// Entries of rows and columns that are scaled by the weights of former values stay below.
const FAR_ABOVE: f64 = 1024.0;
const NONE: u32 = u32::MAX;

/// The order and the scales of a matrix. What is factored is its transpose, whose columns are the rows that are stored; it is block
/// upper triangular in this order.
#[derive(Clone, Debug)]
pub(crate) struct Arrangement {
    /// The row and the column of the matrix at each place.
    pub(crate) rows: Vec<u32>,
    pub(crate) columns: Vec<u32>,
    /// The places where blocks begin, and the end.
    pub(crate) borders: Vec<usize>,
    /// What each block costs without exchanges of rows.
    pub(crate) counts: Vec<Count>,
    /// Exponents of the powers of two by which rows and columns of the matrix are multiplied.
    pub(crate) row_scales: Vec<i32>,
    pub(crate) column_scales: Vec<i32>,
    /// Whether the diagonal is the heaviest, and the scales are those that belong to it.
    is_weighted: bool,
}

impl Arrangement {
    /// With rows and columns scaled by their largest entries, and a diagonal without zeros. None, as for all that make one, if an order
    /// takes too large a part of the seconds that factors may take.
    pub(crate) fn structural<W: Number>(a: &Csr<W>, within: f64) -> Result<Option<Self>> {
        let (rows, columns) = scales(a);
        Arrangement::with(a, None, (rows, columns), within)
    }

    /// With the heaviest diagonal, scaled to one.
    pub(crate) fn weighted<W: Number>(a: &Csr<W>, within: f64) -> Result<Option<Self>> {
        let ScaledDiagonal { order, rows, columns } = scaled_diagonal(a).ok_or_else(unmatched)?;
        Arrangement::with(a, Some(&order), (rows, columns), within)
    }

    fn with<W: Number>(
        a: &Csr<W>,
        matched: Option<&Permutation>,
        (row_scales, column_scales): (Vec<i32>, Vec<i32>),
        within: f64,
    ) -> Result<Option<Self>> {
        interrupt::check()?;
        let blocks = block_triangular(a, matched).ok_or_else(unmatched)?;
        interrupt::check()?;
        let (mut rows, mut columns, borders) = (blocks.rows, blocks.columns, blocks.borders);
        let mut counts = Vec::with_capacity(borders.len());
        let mut local = Local::new(a.cols())?;
        for w in borders.windows(2) {
            let places = w[0]..w[1];
            let count = local.order(a, &mut rows[places.clone()], &mut columns[places], within)?;
            let Some(count) = count else { return Ok(None) };
            counts.push(count);
        }
        let is_weighted = matched.is_some();
        Ok(Some(Arrangement { rows, columns, borders, counts, row_scales, column_scales, is_weighted }))
    }

    /// Finds the scales for other values on the same pattern.
    ///
    /// # Errors
    /// If the diagonal was the heaviest of the former values and other entries are far above it now.
    pub(crate) fn rescale<W: Number>(&mut self, a: &Csr<W>) -> Result<()> {
        if !self.is_weighted {
            (self.row_scales, self.column_scales) = scales(a);
            return Ok(());
        }
        let scaled = |(i, j, v): (usize, usize, W)| {
            size(v.scale_by_power_of_two(self.row_scales[i] + self.column_scales[j]))
        };
        match a.entries().any(|entry| scaled(entry) > FAR_ABOVE) {
            true => Err(failed("entries far above the diagonal that was heaviest before")),
            false => Ok(()),
        }
    }

    /// The transpose of a matrix with its rows and columns in their places, and scaled.
    ///
    /// # Errors
    /// If the values have an entry on the wrong side of the blocks.
    pub(crate) fn columns<W: Number>(&self, a: &Csr<W>) -> Result<Columns<W>> {
        let mut place = filled(0, a.cols())?;
        self.columns.iter().enumerate().for_each(|(k, &j)| place[j as usize] = k as u32);
        let mut made = Columns::with_room(a.rows(), a.nnz())?;
        for w in self.borders.windows(2) {
            for &row in &self.rows[w[0]..w[1]] {
                let by = self.row_scales[row as usize];
                let (indices, values) = a.row_slices(row as usize);
                for (&j, v) in indices.iter().zip(values) {
                    let to = place[j as usize];
                    if to as usize >= w[1] {
                        // A stored zero may become an entry with new values.
                        match *v == W::zero() {
                            true => continue,
                            false => return Err(failed("an entry outside the blocks of the former values")),
                        }
                    }
                    let by = by + self.column_scales[j as usize];
                    made.push(to, v.scale_by_power_of_two(by));
                }
                made.end_column();
            }
        }
        Ok(made)
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = (std::ops::Range<usize>, Count)> + '_ {
        self.borders.windows(2).map(|w| w[0]..w[1]).zip(self.counts.iter().copied())
    }
}

fn unmatched() -> lacuna_engine::Error {
    unsupported("the matrix is structurally singular")
}

/// Orders of blocks, with working memory.
struct Local {
    place: Vec<u32>,
    ptr: Vec<u32>,
    rows: Vec<u32>,
}

impl Local {
    fn new(columns: usize) -> Result<Self> {
        Ok(Local { place: filled(NONE, columns)?, ptr: Vec::new(), rows: Vec::new() })
    }

    /// Orders the rows and columns of a block.
    fn order<W: Number>(
        &mut self,
        a: &Csr<W>,
        rows: &mut [u32],
        columns: &mut [u32],
        within: f64,
    ) -> Result<Option<Count>> {
        let n = rows.len();
        if n <= 2 {
            return Ok(Some(Count::dense(n)));
        }
        columns.iter().enumerate().for_each(|(k, &j)| self.place[j as usize] = k as u32);
        self.ptr.clear();
        self.rows.clear();
        self.ptr.push(0);
        for &row in &*rows {
            let inside = a.row_slices(row as usize).0.iter().map(|&j| self.place[j as usize]);
            self.rows.extend(inside.filter(|&k| k != NONE));
            self.ptr.push(self.rows.len() as u32);
        }
        columns.iter().for_each(|&j| self.place[j as usize] = NONE);
        let (ptr, inside) = (mem::take(&mut self.ptr), mem::take(&mut self.rows));
        let ordered = move || (order(n, &ptr, &inside, within), ptr, inside);
        let (found, ptr, inside) = interrupt::aside(n >= LARGE, ordered)?;
        (self.ptr, self.rows) = (ptr, inside);
        let Some(Order { order, count }) = found? else { return Ok(None) };
        for places in [rows, columns] {
            let former = places.to_vec();
            places.iter_mut().zip(&order).for_each(|(to, &k)| *to = former[k as usize]);
        }
        Ok(Some(count))
    }
}

/// Exponents that bring the largest entry of each row to one, and then that of each column to at most one.
fn scales<W: Number>(a: &Csr<W>) -> (Vec<i32>, Vec<i32>) {
    let rows = row_scales(a);
    let mut columns = vec![0.0f64; a.cols()];
    for (i, j, v) in a.entries() {
        columns[j] = columns[j].max(size(v.scale_by_power_of_two(rows[i])));
    }
    (rows, columns.into_iter().map(exponent).collect())
}

/// Exponents that bring the largest entry of each row to one.
pub(crate) fn row_scales<W: Number>(a: &Csr<W>) -> Vec<i32> {
    let largest = |i: usize| a.row_slices(i).1.iter().map(|v| size(*v)).fold(0.0, f64::max);
    (0..a.rows()).map(|i| exponent(largest(i))).collect()
}

/// The exponent of the power of two that brings a number near one.
fn exponent(largest: f64) -> i32 {
    match largest > 0.0 && largest.is_finite() {
        true => -(((largest.to_bits() >> 52) as i32) - 1022),
        false => 0,
    }
}

/// Whether some diagonal entry is weak.
pub(crate) fn is_weak<W: Number>(a: &Csr<W>) -> bool {
    let mut columns = vec![0.0f64; a.cols()];
    a.entries().for_each(|(_, j, v)| columns[j] = columns[j].max(size(v)));
    (0..a.rows()).any(|i| {
        let (indices, values) = a.row_slices(i);
        let largest = values.iter().map(|v| size(*v)).fold(0.0, f64::max);
        let own = indices.binary_search(&(i as u32)).map_or(0.0, |k| size(values[k]));
        own < WEAK * largest.min(columns[i])
    })
}
