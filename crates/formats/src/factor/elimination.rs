//! LU factorisation column by column: elimination, the choice of the pivot, and dropping.
use super::ilut::{IlutOptions, OPERATION};
use crate::Csr;
use crate::algebra::build_rows;
use lacuna_engine::{Double, Error, Result};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The columns of a factor, appended one by one.
pub(super) struct FactorColumns<T> {
    ends: Vec<usize>,
    rows: Vec<u32>,
    values: Vec<T>,
}

impl<T: Double> FactorColumns<T> {
    fn new() -> Self {
        FactorColumns { ends: vec![0], rows: Vec::new(), values: Vec::new() }
    }
    /// Makes room for more entries.
    fn reserve(&mut self, entries: usize) -> Result<()> {
        let reserved = self.rows.try_reserve(entries).is_ok() && self.values.try_reserve(entries).is_ok();
        reserved.then_some(()).ok_or_else(|| Error::OutOfMemory {
            operation: OPERATION.into(),
            device: "the host".into(),
            requested: ((self.rows.len() + entries) * (size_of::<u32>() + size_of::<T>())) as u64,
            available: None,
        })
    }

    /// Converts to rows, renumbered by `name`.
    pub(super) fn transposed(self, n: usize, name: impl Fn(u32) -> u32 + Sync) -> Result<Csr<T>> {
        let runs = std::iter::once(0..n).collect();
        let columns = build_rows(OPERATION, n, n, runs, |run, out| {
            let mut named = Vec::new();
            for column in run {
                let own = self.ends[column]..self.ends[column + 1];
                named.clear();
                named.extend(self.rows[own.clone()].iter().map(|&row| name(row)));
                out.row(&named, &self.values[own]);
            }
        })?;
        Ok(columns.transpose())
    }
}

/// No step.
const NONE: u32 = u32::MAX;

/// The current column, and the factors so far.
pub(super) struct Elimination<T> {
    /// The column by rows of the matrix, and which of them are in use.
    x: Vec<T>,
    used: Vec<bool>,
    /// The rows in use that have not been eliminated.
    open: Vec<u32>,
    /// The steps in use whose rows have been eliminated, the first one on top.
    heap: BinaryHeap<Reverse<u32>>,
    /// Entries of `U`, as step and value.
    above: Vec<(u32, T)>,
    /// Entries that may be kept, by decreasing modulus.
    ranked: Vec<(f64, bool, u32)>,
    pub(super) lower: FactorColumns<T>,
    pub(super) upper: FactorColumns<T>,
    /// The row of each step, the step of each row.
    pub(super) rows: Vec<u32>,
    pub(super) place: Vec<u32>,
    /// All rows below it have been eliminated.
    first_open: u32,
    pub(super) replaced: Vec<u32>,
}

impl<T: Double> Elimination<T> {
    pub(super) fn new(n: usize) -> Self {
        Elimination {
            x: vec![T::zero(); n],
            used: vec![false; n],
            open: Vec::new(),
            heap: BinaryHeap::new(),
            above: Vec::new(),
            ranked: Vec::new(),
            lower: FactorColumns::new(),
            upper: FactorColumns::new(),
            rows: Vec::with_capacity(n),
            place: vec![NONE; n],
            first_open: 0,
            replaced: Vec::new(),
        }
    }

    /// Entries of both factors so far.
    pub(super) fn entries(&self) -> usize {
        self.lower.values.len() + self.upper.values.len()
    }

    fn take(&mut self, row: u32) {
        if !std::mem::replace(&mut self.used[row as usize], true) {
            match self.place[row as usize] {
                NONE => self.open.push(row),
                step => self.heap.push(Reverse(step)),
            }
        }
    }

    pub(super) fn load(&mut self, rows: &[u32], values: &[T]) {
        self.open.clear();
        self.heap.clear();
        self.above.clear();
        for (&row, &value) in rows.iter().zip(values) {
            self.take(row);
            self.x[row as usize] = value;
        }
    }

    /// Eliminates the rows of the previous steps, in order; entries of `U` no larger than `least` are dropped
    /// first.
    pub(super) fn eliminate(&mut self, least: f64) {
        while let Some(Reverse(step)) = self.heap.pop() {
            let row = self.rows[step as usize] as usize;
            let u = std::mem::replace(&mut self.x[row], T::zero());
            self.used[row] = false;
            if u == T::zero() || u.modulus() <= least {
                continue;
            }
            self.above.push((step, u));
            for k in self.lower.ends[step as usize]..self.lower.ends[step as usize + 1] {
                let below = self.lower.rows[k];
                self.take(below);
                self.x[below as usize] -= self.lower.values[k] * u;
            }
        }
    }

    /// Chooses the pivot, and keeps the largest entries of the column.
    pub(super) fn finish(
        &mut self,
        step: usize,
        column: u32,
        options: &IlutOptions,
        largest: f64,
        room: usize,
    ) -> Result<()> {
        let modulus = |work: &Self, row: u32| work.x[row as usize].modulus();
        let mut best = (0.0, NONE);
        for &row in &self.open {
            let size = modulus(self, row);
            if size > best.0 || size == best.0 && size > 0.0 && row < best.1 {
                best = (size, row);
            }
        }
        let diagonal_open = self.place[column as usize] == NONE;
        if diagonal_open && self.used[column as usize] {
            let own = modulus(self, column);
            if own > 0.0 && own >= options.threshold * best.0 {
                best = (own, column);
            }
        }
        let tiny = T::EPSILON * largest;
        if !(best.0 > tiny && T::one().quotient(self.x[best.1 as usize]).finite()) {
            // No pivot: a value of the size of the drop tolerance is used.
            while self.place[self.first_open as usize] != NONE {
                self.first_open += 1;
            }
            let row = match best.1 {
                NONE if diagonal_open => column,
                NONE => self.first_open,
                row => row,
            };
            self.replaced.push(column);
            let size = if largest > 0.0 { options.drop.max(T::EPSILON.sqrt()) * largest } else { 1.0 };
            self.take(row);
            self.x[row as usize] = T::from_real(size);
            best = (size, row);
        }
        let (_, pivot_row) = best;
        let pivot = std::mem::replace(&mut self.x[pivot_row as usize], T::zero());
        self.used[pivot_row as usize] = false;
        self.place[pivot_row as usize] = step as u32;
        self.rows.push(pivot_row);
        self.ranked.clear();
        let by = pivot.modulus();
        for &row in &self.open {
            let size = modulus(self, row) / by;
            if self.used[row as usize] && size > options.drop {
                self.ranked.push((size, false, row));
            }
        }
        // Entries of `U` relative to the column's largest entry, like those of `L` relative to the pivot.
        let unit = if largest > 0.0 { largest } else { 1.0 };
        let above = self.above.iter().enumerate();
        self.ranked.extend(above.map(|(at, (_, u))| (u.modulus() / unit, true, at as u32)));
        if self.ranked.len() + 1 > room {
            let order = |a: &(f64, bool, u32), b: &(f64, bool, u32)| {
                b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2)))
            };
            let last = (room - 1).min(self.ranked.len());
            if last > 0 && last < self.ranked.len() {
                self.ranked.select_nth_unstable_by(last - 1, order);
            }
            self.ranked.truncate(last);
        }
        self.ranked.sort_unstable_by_key(|&(_, above, at)| (above, at));
        let inverse = T::one().quotient(pivot);
        self.lower.reserve(self.ranked.len())?;
        self.upper.reserve(self.ranked.len() + 1)?;
        for &(_, of_upper, at) in &self.ranked {
            if of_upper {
                let (step, u) = self.above[at as usize];
                self.upper.rows.push(step);
                self.upper.values.push(u);
            } else {
                self.lower.rows.push(at);
                self.lower.values.push(self.x[at as usize] * inverse);
            }
        }
        self.upper.rows.push(step as u32);
        self.upper.values.push(pivot);
        self.lower.ends.push(self.lower.rows.len());
        self.upper.ends.push(self.upper.rows.len());
        for &row in &self.open {
            (self.x[row as usize], self.used[row as usize]) = (T::zero(), false);
        }
        Ok(())
    }
}
