//! One front: a dense matrix of which the first rows and columns are eliminated.
use super::{Front, Tree};
use crate::Number;
use crate::columns::Columns;
use crate::failure::{filled, out_of_memory, with_room};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_unit_lower_triangular_in_place;
use faer::{Accum, MatMut, MatRef, Par};
use lacuna_engine::Result;
use lacuna_formats::parallel::for_each;

/// Fronts of fewer rows are eliminated by plain loops.
const SMALL: usize = 48;
/// Columns that are eliminated together in others.
const PANEL: usize = 48;
/// Columns of the rest that are updated together, always the same: so the bits do not depend on who does it.
const TILE: usize = 256;
/// Operations of a panel from which tiles are shared among threads.
const SHARED: usize = 1_000_000;
/// The diagonal entry is the pivot if it is at least this part of the largest of its column.
const DIAGONAL: f64 = 0.1;

/// What a thread needs to make fronts.
pub(super) struct Workspace<W> {
    /// The place in the front of each row of the block.
    local: Vec<u32>,
    front: Vec<W>,
}

/// A block as fronts read it.
pub(super) struct Source<'a, W> {
    pub(super) columns: &'a Columns<W>,
    pub(super) rows: &'a Columns<W>,
    pub(super) start: usize,
    /// Pivots below this are replaced by it.
    pub(super) tiny: f64,
}

/// A front that is done, the square matrix that it passes on, and how many pivots were replaced.
pub(super) type Done<W> = (Front<W>, Vec<W>, usize);

impl<W: Number> Workspace<W> {
    pub(super) fn new(n: usize) -> Result<Self> {
        Ok(Workspace { local: filled(0, n)?, front: Vec::new() })
    }

    /// Makes a front of what its children, in their order, pass on.
    pub(super) fn front<'c>(
        &mut self,
        tree: &Tree,
        source: &Source<'_, W>,
        k: usize,
        children: impl Iterator<Item = (usize, &'c [W])>,
        share: bool,
    ) -> Result<Done<W>> {
        self.assemble(tree, source, k)?;
        for (child, passed) in children {
            self.add(tree, child, passed, k);
        }
        let (own, passed) = (tree.own(k).len(), tree.passed(k).len());
        let all = own + passed;
        let mut exchanged: Vec<u32> = (0..own as u32).collect();
        let replaced = match all < SMALL {
            true => eliminate(&mut self.front, all, 0..own, own, all, source.tiny, &mut exchanged),
            false => eliminate_by_panels(&mut self.front, all, own, source.tiny, &mut exchanged, share),
        };
        let columns = copied(&self.front[..all * own])?;
        let (mut beside, mut rest) = (with_room(own * passed)?, with_room(passed * passed)?);
        for column in self.front[all * own..].chunks_exact(all) {
            beside.extend_from_slice(&column[..own]);
            rest.extend_from_slice(&column[own..]);
        }
        Ok((Front { columns, beside, exchanged }, rest, replaced))
    }

    /// The entries of the matrix in a front of zeros.
    fn assemble(&mut self, tree: &Tree, source: &Source<'_, W>, k: usize) -> Result<()> {
        let own = tree.own(k);
        let passed = tree.passed(k);
        let all = own.len() + passed.len();
        own.clone().chain(passed.iter().map(|row| *row as usize)).enumerate().for_each(|(at, row)| {
            self.local[row] = at as u32;
        });
        self.front.clear();
        self.front.try_reserve(all * all).map_err(|_| out_of_memory((all * all * size_of::<W>()) as u64))?;
        self.front.resize(all * all, W::zero());
        let (first, end) = (source.start + own.start, source.start + own.end);
        for (at, step) in (first..end).enumerate() {
            for (row, v) in source.columns.entries(step).filter(|(row, _)| *row >= first) {
                self.front[at * all + self.local[row - source.start] as usize] = v;
            }
            for (column, v) in source.rows.entries(step).filter(|(column, _)| *column >= end) {
                // Columns of later blocks are no part of this one.
                if column - source.start < self.local.len() {
                    self.front[self.local[column - source.start] as usize * all + at] = v;
                }
            }
        }
        Ok(())
    }

    /// Adds what a child passes on.
    fn add(&mut self, tree: &Tree, child: usize, passed: &[W], k: usize) {
        let rows = tree.passed(child);
        let all = tree.own(k).len() + tree.passed(k).len();
        for (&column, values) in rows.iter().zip(passed.chunks_exact(rows.len().max(1))) {
            let at = self.local[column as usize] as usize * all;
            let to = &mut self.front[at..at + all];
            for (&row, &v) in rows.iter().zip(values) {
                to[self.local[row as usize] as usize] += v;
            }
        }
    }
}

fn copied<W: Copy>(from: &[W]) -> Result<Vec<W>> {
    let mut to = with_room(from.len())?;
    to.extend_from_slice(from);
    Ok(to)
}

/// Eliminates the columns `steps` of a front of so many rows, of which the first `own` may be exchanged, in the columns up to `end`.
/// Returns how many pivots were replaced.
fn eliminate<W: Number>(
    front: &mut [W],
    rows: usize,
    steps: std::ops::Range<usize>,
    own: usize,
    end: usize,
    tiny: f64,
    exchanged: &mut [u32],
) -> usize {
    let mut replaced = 0;
    for j in steps {
        let column = &front[j * rows..(j + 1) * rows];
        let (mut at, mut largest) = (j, -1.0);
        for (i, v) in column.iter().enumerate().take(own).skip(j) {
            let size = v.size();
            if size > largest {
                (at, largest) = (i, size);
            }
        }
        if at != j && column[j].size() < DIAGONAL * largest {
            exchanged.swap(at, j);
            front.chunks_exact_mut(rows).for_each(|column| column.swap(at, j));
        }
        let (head, tail) = front.split_at_mut((j + 1) * rows);
        let column = &mut head[j * rows..];
        let mut pivot = column[j];
        if pivot.size() <= tiny || !pivot.finite() {
            pivot = W::from_real(if pivot.re() < 0.0 { -tiny } else { tiny });
            column[j] = pivot;
            replaced += 1;
        }
        let inverse = W::one().quotient(pivot);
        let below = &mut column[j + 1..];
        below.iter_mut().for_each(|v| *v *= inverse);
        for column in tail.chunks_exact_mut(rows).take(end - j - 1) {
            let factor = column[j];
            if factor != W::zero() {
                column[j + 1..].iter_mut().zip(&*below).for_each(|(v, l)| *v -= *l * factor);
            }
        }
    }
    replaced
}

/// [`eliminate`] for all columns of a large front: those of a panel first, then their product with the rest at once.
fn eliminate_by_panels<W: Number>(
    front: &mut [W],
    rows: usize,
    own: usize,
    tiny: f64,
    exchanged: &mut [u32],
    share: bool,
) -> usize {
    let mut replaced = 0;
    for first in (0..own).step_by(PANEL) {
        let end = (first + PANEL).min(own);
        replaced += eliminate(front, rows, first..end, own, end, tiny, exchanged);
        let (head, rest) = front.split_at_mut(end * rows);
        let head = MatRef::from_column_major_slice(head, rows, end);
        let diagonal = head.submatrix(first, first, end - first, end - first);
        let below = head.submatrix(end, first, rows - end, end - first);
        let update = |tile: &mut [W]| {
            let columns = tile.len() / rows;
            let tile = MatMut::from_column_major_slice_mut(tile, rows, columns);
            let (above, below_tile) = tile.split_at_row_mut(end);
            let mut above = above.subrows_mut(first, end - first);
            solve_unit_lower_triangular_in_place(diagonal, above.as_mut(), Par::Seq);
            matmul(below_tile, Accum::Add, below, above.as_ref(), -W::one(), Par::Seq);
        };
        let work = 2 * rest.len() * (end - first);
        let tiles = rest.chunks_mut(TILE * rows);
        match share && work > SHARED {
            true => for_each(tiles, update),
            false => tiles.for_each(update),
        }
    }
    replaced
}
