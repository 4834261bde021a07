//! LU column by column (Gilbert and Peierls 1988, doi:10.1137/0909058), with pruned searches (Eisenstat and Liu 1993,
//! doi:10.1137/0914015).
use crate::Number;
use crate::columns::Columns;
use crate::cost::{Cost, Limits};
use crate::failure::{filled, singular};
use lacuna_engine::Result;
use std::ops::Range;

/// A diagonal entry is the pivot if it is at least this part of the largest of its column.
const DIAGONAL: f64 = 1e-3;
/// Operations between two checks whether to go on.
const BETWEEN_CHECKS: f64 = 1e7;
const NONE: u32 = u32::MAX;

/// Factors of the diagonal blocks: `L` with unit diagonal and `U`, each without its diagonal, and the pivots.
pub(crate) struct Sparse<W> {
    pub(crate) l: Columns<W>,
    pub(crate) u: Columns<W>,
    pub(crate) pivots: Vec<W>,
    /// The entries above the blocks.
    pub(crate) above: Columns<W>,
    /// The step at which the row at each place is eliminated.
    pub(crate) step_of: Vec<u32>,
}

/// An elimination column by column; it is given its blocks one by one.
pub(crate) struct Elimination<'a, W> {
    a: &'a Columns<W>,
    limits: &'a Limits,
    check: &'a mut dyn FnMut() -> Result<()>,
    made: Sparse<W>,
    /// The row at the place of which is eliminated at each step.
    place_of: Vec<u32>,
    /// Where the part of a column of `L` ends that a search has to look at.
    pruned: Vec<usize>,
    /// The column, by places.
    x: Vec<W>,
    /// The step, plus one, that last met a place.
    met: Vec<u32>,
    /// Rows preferred as pivots: by step, and the other way round.
    wanted: Vec<u32>,
    wanted_at: Vec<u32>,
    /// Steps that a column needs, the last `count` of them in the order of elimination.
    needed: Vec<u32>,
    path: Vec<(u32, usize)>,
    operations: f64,
    checked: f64,
}

impl<'a, W: Number> Elimination<'a, W> {
    pub(crate) fn new(
        a: &'a Columns<W>,
        limits: &'a Limits,
        check: &'a mut dyn FnMut() -> Result<()>,
    ) -> Result<Self> {
        let (n, entries) = (a.len(), a.rows.len());
        let places: Vec<u32> = (0..n as u32).collect();
        Ok(Elimination {
            a,
            limits,
            check,
            made: Sparse {
                l: Columns::with_room(n, entries)?,
                u: Columns::with_room(n, entries)?,
                pivots: filled(W::one(), n)?,
                above: Columns::with_room(n, 0)?,
                step_of: filled(NONE, n)?,
            },
            place_of: places.clone(),
            pruned: filled(usize::MAX, n)?,
            x: filled(W::zero(), n)?,
            met: filled(0, n)?,
            wanted: places.clone(),
            wanted_at: places,
            needed: filled(0, n)?,
            path: Vec::new(),
            operations: 0.0,
            checked: 0.0,
        })
    }

    /// A block that is factored otherwise: its rows stay in their places.
    pub(crate) fn skip(&mut self, block: Range<usize>) -> Result<()> {
        for k in block.clone() {
            self.made.step_of[k] = k as u32;
            self.take_above(k, block.start)?;
            self.made.l.end_column();
            self.made.u.end_column();
        }
        Ok(())
    }

    /// Factors the next block.
    pub(crate) fn block(&mut self, block: Range<usize>) -> Result<()> {
        if block.len() == 1 {
            return self.single(block.start);
        }
        let first = self.made.l.rows.len();
        for k in block.clone() {
            let needed = self.reach(k, &block)?;
            self.take_above(k, block.start)?;
            self.eliminate(k, needed, &block)?;
            let row = self.pivot(k)?;
            self.prune(k, row);
            self.look_up()?;
        }
        let step_of = &self.made.step_of;
        self.made.l.rows[first..].iter_mut().for_each(|row| *row = step_of[*row as usize]);
        Ok(())
    }

    pub(crate) fn finish(self) -> Sparse<W> {
        self.made
    }

    fn single(&mut self, k: usize) -> Result<()> {
        let pivot = self.a.entries(k).find(|(place, _)| *place == k).map_or(W::zero(), |(_, v)| v);
        if pivot == W::zero() || !pivot.finite() {
            return Err(singular());
        }
        self.take_above(k, k)?;
        (self.made.pivots[k], self.made.step_of[k]) = (pivot, k as u32);
        self.made.l.end_column();
        self.made.u.end_column();
        Ok(())
    }

    /// Keeps the entries of column `k` above the block that begins at `start`.
    fn take_above(&mut self, k: usize, start: usize) -> Result<()> {
        let above = &mut self.made.above;
        if start > 0 {
            above.grow(self.a.column(k).0.len())?;
            for (place, v) in self.a.entries(k).filter(|(place, _)| *place < start) {
                above.push(self.made.step_of[place], v);
            }
        }
        above.end_column();
        Ok(())
    }

    /// Finds the places of column `k`: rows without a pivot go to `L`, steps to the end of `needed` in an order in which each comes
    /// after those that it needs. Returns how many.
    fn reach(&mut self, k: usize, block: &Range<usize>) -> Result<usize> {
        let stamp = k as u32 + 1;
        let (l, step_of, met) = (&mut self.made.l, &self.made.step_of, &mut self.met);
        l.grow(block.end - k)?;
        let mut top = block.len();
        for &place in self.a.column(k).0.iter().filter(|place| **place as usize >= block.start) {
            if met[place as usize] == stamp {
                continue;
            }
            met[place as usize] = stamp;
            let step = step_of[place as usize];
            if step == NONE {
                l.rows.push(place);
                continue;
            }
            let from = |step: u32| match self.pruned[step as usize] {
                usize::MAX => l_end(&l.ptr, step),
                end => end,
            };
            self.path.clear();
            self.path.push((step, from(step)));
            while let Some((step, next)) = self.path.last_mut() {
                if *next == l.ptr[*step as usize] {
                    top -= 1;
                    self.needed[top] = *step;
                    self.path.pop();
                    continue;
                }
                *next -= 1;
                let row = l.rows[*next];
                if met[row as usize] == stamp {
                    continue;
                }
                met[row as usize] = stamp;
                match step_of[row as usize] {
                    NONE => l.rows.push(row),
                    other => self.path.push((other, from(other))),
                }
            }
        }
        Ok(block.len() - top)
    }

    /// Eliminates the column that was reached.
    fn eliminate(&mut self, k: usize, needed: usize, block: &Range<usize>) -> Result<()> {
        for (place, v) in self.a.entries(k).filter(|(place, _)| *place >= block.start) {
            self.x[place] = v;
        }
        self.made.u.grow(needed)?;
        for &step in &self.needed[block.len() - needed..block.len()] {
            let row = self.place_of[step as usize] as usize;
            let v = std::mem::take(&mut self.x[row]);
            self.made.u.push(step, v);
            let (rows, values) = self.made.l.column(step as usize);
            self.operations += 2.0 * rows.len() as f64;
            for (&row, &l) in rows.iter().zip(values) {
                self.x[row as usize] -= l * v;
            }
        }
        self.made.u.end_column();
        Ok(())
    }

    /// Chooses the pivot of column `k` and divides by it. Returns its place.
    fn pivot(&mut self, k: usize) -> Result<u32> {
        let first = self.made.l.ptr[k];
        let l = &mut self.made.l;
        let wanted = self.wanted[k];
        let (mut largest, mut at, mut diagonal) = (0.0, usize::MAX, usize::MAX);
        for q in first..l.rows.len() {
            let row = l.rows[q];
            let v = std::mem::take(&mut self.x[row as usize]);
            l.values.push(v);
            let size = v.size();
            // A NaN is never chosen, and is found below.
            if size > largest {
                (largest, at) = (size, q);
            }
            if row == wanted {
                diagonal = q;
            }
        }
        if at == usize::MAX || !largest.is_finite() {
            return Err(singular());
        }
        if diagonal != usize::MAX && l.values[diagonal].size() >= DIAGONAL * largest {
            at = diagonal;
        }
        let (row, pivot) = (l.rows.swap_remove(at), l.values.swap_remove(at));
        self.operations += (l.rows.len() - first) as f64;
        l.values[first..].iter_mut().for_each(|v| *v = v.quotient(pivot));
        if row != wanted {
            // The row that was wanted here takes the place of the one that came instead.
            let other = self.wanted_at[row as usize];
            (self.wanted[other as usize], self.wanted_at[wanted as usize]) = (wanted, other);
        }
        self.made.pivots[k] = pivot;
        self.made.step_of[row as usize] = k as u32;
        self.place_of[k] = row;
        self.made.l.end_column();
        Ok(row)
    }

    /// Searches need not look at what lies below row `row` in the columns of `L` that column `k` needs, if they have that row.
    fn prune(&mut self, k: usize, row: u32) {
        let l = &mut self.made.l;
        for &step in self.made.u.column(k).0 {
            let step = step as usize;
            let range = l.ptr[step]..l.ptr[step + 1];
            if self.pruned[step] != usize::MAX || !l.rows[range.clone()].contains(&row) {
                continue;
            }
            let (mut kept, mut end) = (range.start, range.end);
            while kept < end {
                if self.made.step_of[l.rows[kept] as usize] != NONE {
                    kept += 1;
                } else {
                    end -= 1;
                    l.rows.swap(kept, end);
                    l.values.swap(kept, end);
                }
            }
            self.pruned[step] = end;
        }
    }

    /// Ends the work at its limits, or if nobody wants it any more.
    fn look_up(&mut self) -> Result<()> {
        if self.operations - self.checked < BETWEEN_CHECKS {
            return Ok(());
        }
        self.checked = self.operations;
        let entries = (self.made.l.rows.len() + self.made.u.rows.len()) as f64;
        let bytes = entries * (size_of::<W>() + size_of::<u32>()) as f64;
        self.limits.check(&Cost { entries, operations: self.operations, bytes, seconds: 0.0 })?;
        (self.check)()
    }
}

fn l_end(ptr: &[usize], step: u32) -> usize {
    ptr[step as usize + 1]
}

impl<W: Number> Sparse<W> {
    /// Factors a matrix of the same pattern with the same pivots. `by_fronts` tells which blocks are factored otherwise. Returns whether
    /// all pivots are large enough; if not, the factors are lost.
    pub(crate) fn renew(
        &mut self,
        a: &Columns<W>,
        blocks: impl Iterator<Item = (Range<usize>, bool)>,
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<bool> {
        let mut x = filled(W::zero(), a.len())?;
        let (mut operations, mut checked) = (0.0, 0.0);
        for (block, by_fronts) in blocks {
            for k in block.clone() {
                if block.start > 0 {
                    let above = self.above.values[self.above.ptr[k]..].iter_mut();
                    let entries = a.entries(k).filter(|(place, _)| *place < block.start);
                    above.zip(entries).for_each(|(to, (_, v))| *to = v);
                }
                if by_fronts {
                    continue;
                }
                a.entries(k)
                    .filter(|(place, _)| *place >= block.start)
                    .for_each(|(place, v)| x[self.step_of[place] as usize] = v);
                operations += self.eliminate_again(k, &mut x);
                if !self.divide_again(k, &mut x) {
                    return Ok(false);
                }
                if operations - checked > BETWEEN_CHECKS {
                    checked = operations;
                    check()?;
                }
            }
        }
        Ok(true)
    }

    /// Finds the entries of column `k` of `U`, and leaves those of `L` before their division in `x`. Returns the operations.
    fn eliminate_again(&mut self, k: usize, x: &mut [W]) -> f64 {
        let mut operations = 0.0;
        for at in self.u.ptr[k]..self.u.ptr[k + 1] {
            let step = self.u.rows[at] as usize;
            let v = std::mem::take(&mut x[step]);
            self.u.values[at] = v;
            let (rows, values) = self.l.column(step);
            operations += 2.0 * rows.len() as f64;
            rows.iter().zip(values).for_each(|(row, l)| x[*row as usize] -= *l * v);
        }
        operations
    }

    /// Divides column `k` of `L` by its pivot, if that may be the pivot.
    fn divide_again(&mut self, k: usize, x: &mut [W]) -> bool {
        let pivot = std::mem::take(&mut x[k]);
        let range = self.l.ptr[k]..self.l.ptr[k + 1];
        let mut largest = pivot.size();
        for at in range.clone() {
            let v = std::mem::take(&mut x[self.l.rows[at] as usize]);
            largest = largest.max(v.size());
            self.l.values[at] = v;
        }
        self.l.values[range].iter_mut().for_each(|v| *v = v.quotient(pivot));
        self.pivots[k] = pivot;
        pivot.size() > 0.0 && pivot.finite() && pivot.size() >= DIAGONAL * largest
    }

    /// `x ← A⁻¹ x` for a block.
    pub(crate) fn solve(&self, block: Range<usize>, x: &mut [W]) {
        if block.len() > 1 {
            self.l.forward(block.clone(), x);
        }
        for k in block.rev() {
            x[k] = x[k].quotient(self.pivots[k]);
            let v = x[k];
            if v != W::zero() {
                self.u.entries(k).for_each(|(i, u)| x[i] -= u * v);
            }
        }
    }

    /// `x ← A⁻ᵀ x` for a block.
    pub(crate) fn solve_transposed(&self, block: Range<usize>, x: &mut [W]) {
        for k in block.clone() {
            x[k] = (x[k] - self.u.dot(k, x)).quotient(self.pivots[k]);
        }
        if block.len() > 1 {
            for k in block.rev() {
                x[k] -= self.l.dot(k, x);
            }
        }
    }
}
