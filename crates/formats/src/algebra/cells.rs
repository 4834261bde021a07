//! Matrices as matrices of small dense cells. An entry of an ordinary matrix is a cell of one number.
use crate::Csr;
use crate::parallel;
use crate::storage::bcsr::whole_blocks;
use crate::storage::pattern::PatternRef;
use lacuna_engine::Scalar;
use std::ops::Range;

/// `R` rows of `C` numbers.
pub(super) type Cell<T, const R: usize, const C: usize> = [[T; C]; R];

/// Rows of cells that one [`Part`] holds, as a power of two.
const SHIFT: u32 = 10;

/// `sum += a b`. Each entry is a sum over increasing columns of `a`.
#[inline(always)]
pub(super) fn add_product<T: Scalar, const R: usize, const K: usize, const C: usize>(
    sum: &mut Cell<T, R, C>,
    a: &Cell<T, R, K>,
    b: &Cell<T, K, C>,
) {
    for (row, a) in sum.iter_mut().zip(a) {
        // A copy, which stays in registers.
        let mut sums = *row;
        for (a, b) in a.iter().zip(b) {
            sums.iter_mut().zip(b).for_each(|(sum, b)| *sum += *a * *b);
        }
        *row = sums;
    }
}

/// A row of a matrix whose entries are its cells.
#[inline(always)]
pub(super) fn entry_row<T: Scalar, const R: usize, const C: usize>(
    a: &Csr<T>,
    i: usize,
) -> (&[u32], &[Cell<T, R, C>]) {
    debug_assert_eq!(R * C, 1);
    let (columns, values) = a.row_slices(i);
    (columns, values.as_chunks::<C>().0.as_chunks::<R>().0)
}

/// Numbers as cells of one number each.
#[inline(always)]
pub(super) fn one_each<T, const R: usize, const C: usize>(values: &mut [T]) -> &mut [Cell<T, R, C>] {
    debug_assert_eq!(R * C, 1);
    values.as_chunks_mut::<C>().0.as_chunks_mut::<R>().0
}

/// A matrix whose rows of cells are read in order, each once.
pub(super) struct CellRows<'a, T, const R: usize, const C: usize> {
    a: &'a Csr<T>,
    columns: Vec<u32>,
    cells: Vec<Cell<T, R, C>>,
}

impl<'a, T: Scalar, const R: usize, const C: usize> CellRows<'a, T, R, C> {
    pub(super) fn new(a: &'a Csr<T>) -> Self {
        CellRows { a, columns: Vec::new(), cells: Vec::new() }
    }

    /// The columns of a row of cells, in increasing order, and the cells. Entries that are not stored are 0.
    #[inline]
    pub(super) fn row(&mut self, i: usize) -> (&[u32], &[Cell<T, R, C>]) {
        if R * C == 1 {
            return entry_row(self.a, i);
        }
        self.columns.clear();
        self.cells.clear();
        let mut rows: [_; R] = std::array::from_fn(|r| self.a.row_slices(i * R + r));
        if let Some(whole) = whole_blocks(PatternRef::of(self.a), i, [R, C]) {
            self.columns.extend(whole.iter().step_by(C).map(|j| j / C as u32));
            let values = rows.map(|(_, values)| values.as_chunks::<C>().0);
            self.cells.extend((0..self.columns.len()).map(|k| values.map(|row| row[k])));
            return (&self.columns, &self.cells);
        }
        while let Some(first) = rows.iter().filter_map(|(columns, _)| columns.first()).min() {
            let column = first / C as u32;
            let mut cell = [[T::zero(); C]; R];
            for (cell, (columns, values)) in cell.iter_mut().zip(&mut rows) {
                let own = columns.iter().take_while(|j| **j / C as u32 == column).count();
                for (j, v) in columns[..own].iter().zip(*values) {
                    cell[*j as usize % C] = *v;
                }
                (*columns, *values) = (&columns[own..], &values[own..]);
            }
            self.columns.push(column);
            self.cells.push(cell);
        }
        (&self.columns, &self.cells)
    }
}

/// Consecutive rows of cells: where each starts, columns and cells. Empty until it is computed.
pub(super) struct Part<T, const R: usize, const C: usize> {
    pub(super) starts: Vec<u32>,
    pub(super) columns: Vec<u32>,
    pub(super) cells: Vec<Cell<T, R, C>>,
}

impl<T, const R: usize, const C: usize> Default for Part<T, R, C> {
    fn default() -> Self {
        Part { starts: Vec::new(), columns: Vec::new(), cells: Vec::new() }
    }
}

impl<T: Scalar, const R: usize, const C: usize> Part<T, R, C> {
    pub(super) fn clear(&mut self) {
        self.starts.clear();
        self.columns.clear();
        self.cells.clear();
        self.starts.push(0);
    }
    pub(super) fn push(&mut self, (columns, cells): (&[u32], &[Cell<T, R, C>])) {
        self.columns.extend_from_slice(columns);
        self.cells.extend_from_slice(cells);
        self.starts.push(self.columns.len() as u32);
    }
    /// A row, by its place in the part.
    #[inline(always)]
    pub(super) fn row(&self, k: usize) -> (&[u32], &[Cell<T, R, C>]) {
        let own = self.starts[k] as usize..self.starts[k + 1] as usize;
        (&self.columns[own.clone()], &self.cells[own])
    }
}

/// A matrix whose rows of cells are read in any order, often.
pub(super) enum Cells<'a, T, const R: usize, const C: usize> {
    /// Its entries are the cells.
    Entries(&'a Csr<T>),
    Parts(Vec<Part<T, R, C>>),
}

impl<'a, T: Scalar, const R: usize, const C: usize> Cells<'a, T, R, C> {
    pub(super) fn new(a: &'a Csr<T>) -> Self {
        if R * C == 1 {
            return Cells::Entries(a);
        }
        let part = |rows: Range<usize>| {
            let (mut from, mut part) = (CellRows::new(a), Part::default());
            part.clear();
            rows.for_each(|i| part.push(from.row(i)));
            part
        };
        Cells::Parts(parallel::map(parallel::ranges(a.rows() / R, 1 << SHIFT), part))
    }

    #[inline(always)]
    pub(super) fn row(&self, i: usize) -> (&[u32], &[Cell<T, R, C>]) {
        match self {
            Cells::Entries(a) => entry_row(a, i),
            Cells::Parts(parts) => parts[i >> SHIFT].row(i & ((1 << SHIFT) - 1)),
        }
    }
}
