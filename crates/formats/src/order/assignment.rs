//! Rows matched with columns by entries whose costs have the least sum.
use crate::order::matching::completed;
use crate::storage::pattern::PatternRef;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(crate) const NONE: u32 = u32::MAX;

/// A matching of some rows with columns, by entries of least cost, and what shows that none costs less.
pub(crate) struct Search<'a> {
    a: PatternRef<'a>,
    /// The cost of each entry; infinite for a stored zero.
    costs: &'a [f64],
    /// Dual variables: no cost is below the sum of those of its row and column; an entry whose cost equals it is
    /// tight, and all matched ones are.
    pub(crate) of_rows: Vec<f64>,
    pub(crate) of_columns: Vec<f64>,
    pub(crate) row_of: Vec<u32>,
    pub(crate) column_of: Vec<u32>,
    /// Of the columns seen in a search: the distance, and the row that it is reached from.
    distance: Vec<f64>,
    from: Vec<u32>,
    seen: Vec<u32>,
    /// Columns seen whose rows were not: those as far as the last one, and the bits of the distances of others.
    level: Vec<u32>,
    nearest: BinaryHeap<Reverse<(u64, u32)>>,
    pub(crate) examined: usize,
}

impl<'a> Search<'a> {
    pub(crate) fn new(a: PatternRef<'a>, costs: &'a [f64]) -> Self {
        let n = a.rows;
        let (of_rows, of_columns) = duals(a, costs);
        Search {
            a,
            costs,
            of_rows,
            of_columns,
            row_of: vec![NONE; n],
            column_of: vec![NONE; n],
            distance: vec![f64::INFINITY; n],
            from: vec![NONE; n],
            seen: Vec::new(),
            level: Vec::new(),
            nearest: BinaryHeap::new(),
            examined: 0,
        }
    }

    fn join(&mut self, row: usize, column: usize) {
        (self.column_of[row], self.row_of[column]) = (column as u32, row as u32);
    }

    fn is_tight(&self, row: usize, entry: usize) -> bool {
        self.costs[entry] - self.of_rows[row] - self.of_columns[self.a.col_idx[entry] as usize] <= 0.0
    }

    /// Matches rows by tight entries: all on the diagonal, so that a good order stays, and then others, along
    /// paths of one or two steps.
    pub(crate) fn match_tight(&mut self) {
        let n = self.a.rows;
        for i in 0..n {
            if self.a.find(i, i).is_some_and(|k| self.is_tight(i, k)) {
                self.join(i, i);
            }
        }
        let mut ahead = self.a.row_ptr.to_vec();
        for i in (0..n).filter(|&i| self.column_of[i] == NONE).collect::<Vec<_>>() {
            if let Some(column) = self.free(i, &mut ahead) {
                self.join(i, column);
                continue;
            }
            for k in self.a.row_ptr[i] as usize..self.a.row_ptr[i + 1] as usize {
                if !self.is_tight(i, k) {
                    continue;
                }
                let column = self.a.col_idx[k] as usize;
                let other = self.row_of[column] as usize;
                if let Some(free) = self.free(other, &mut ahead) {
                    self.join(other, free);
                    self.join(i, column);
                    break;
                }
            }
        }
    }

    /// The column of a tight entry of the row that is free, among the entries not examined yet.
    fn free(&self, row: usize, ahead: &mut [u32]) -> Option<usize> {
        while ahead[row] < self.a.row_ptr[row + 1] {
            let k = ahead[row] as usize;
            ahead[row] += 1;
            let column = self.a.col_idx[k] as usize;
            if self.row_of[column] == NONE && self.is_tight(row, k) {
                return Some(column);
            }
        }
        None
    }

    /// Matches one more row, along the shortest path to a free column. Returns whether there is one.
    pub(crate) fn augment(&mut self, start: usize) -> bool {
        let (mut row, mut walked) = (start, 0.0);
        let (mut shortest, mut end) = (f64::INFINITY, NONE);
        loop {
            self.examined += self.a.row(row).len();
            let of_row = self.of_rows[row];
            for (j, cost) in entries(self.a, self.costs, row) {
                let distance = walked + (cost - of_row - self.of_columns[j]).max(0.0);
                // What is as far as the nearest free column is on no shorter path.
                if distance >= shortest || distance >= self.distance[j] {
                    continue;
                }
                if self.distance[j].is_infinite() {
                    self.seen.push(j as u32);
                }
                (self.distance[j], self.from[j]) = (distance, row as u32);
                if self.row_of[j] == NONE {
                    (shortest, end) = (distance, j as u32);
                } else if distance == walked {
                    self.level.push(j as u32);
                } else {
                    self.nearest.push(Reverse((distance.to_bits(), j as u32)));
                }
            }
            let Some((distance, column)) = self.next(walked, shortest) else { break };
            (walked, row) = (distance, self.row_of[column as usize] as usize);
        }
        if end != NONE {
            self.update_duals(start, shortest);
            self.follow_back(start, end as usize);
        }
        for column in self.seen.drain(..) {
            self.distance[column as usize] = f64::INFINITY;
        }
        self.level.clear();
        self.nearest.clear();
        end != NONE
    }

    /// The nearest column whose row was not reached, with its distance, if it is nearer than `shortest`.
    fn next(&mut self, walked: f64, shortest: f64) -> Option<(f64, u32)> {
        if walked >= shortest {
            return None;
        }
        if let Some(column) = self.level.pop() {
            return Some((walked, column));
        }
        while let Some(Reverse((bits, column))) = self.nearest.pop() {
            let distance = f64::from_bits(bits);
            if distance >= shortest {
                return None;
            }
            // A longer way to a column that was reached by a shorter one is left out.
            if distance <= self.distance[column as usize] {
                return Some((distance, column));
            }
        }
        None
    }

    /// Keeps the costs at or above the dual variables once the path, of length `shortest`, is matched.
    fn update_duals(&mut self, start: usize, shortest: f64) {
        self.of_rows[start] += shortest;
        for &column in &self.seen {
            let j = column as usize;
            let short = shortest - self.distance[j];
            if short > 0.0 {
                self.of_columns[j] -= short;
                self.of_rows[self.row_of[j] as usize] += short;
            }
        }
    }

    /// Each row of the path takes the column that it leads to.
    fn follow_back(&mut self, start: usize, end: usize) {
        let mut column = end;
        loop {
            let row = self.from[column] as usize;
            let former = self.column_of[row];
            self.join(row, column);
            if row == start {
                break;
            }
            column = former as usize;
        }
    }

    /// Matches the rows that are left, whatever their entries. `None` if some cannot be.
    pub(crate) fn complete(&mut self) -> Option<()> {
        let nonzero: Vec<bool> = self.costs.iter().map(|cost| cost.is_finite()).collect();
        let columns = completed(self.a, &nonzero, std::mem::take(&mut self.column_of));
        for (i, column) in columns.into_iter().enumerate() {
            self.row_of[column? as usize] = i as u32;
        }
        Some(())
    }
}

/// The columns of a row with the costs of their entries.
fn entries<'a>(
    a: PatternRef<'a>,
    costs: &'a [f64],
    row: usize,
) -> impl Iterator<Item = (usize, f64)> + use<'a> {
    let columns = a.row(row);
    columns.iter().zip(&costs[a.row_ptr[row] as usize..]).map(|(&j, &cost)| (j as usize, cost))
}

/// Dual variables of rows and columns: the least costs of rows, of columns less those, and again of rows.
fn duals(a: PatternRef<'_>, costs: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let finite = |least: f64| if least.is_finite() { least } else { 0.0 };
    let least = |i: usize| entries(a, costs, i).map(|(_, cost)| cost).fold(f64::INFINITY, f64::min);
    let mut of_rows: Vec<f64> = (0..a.rows).map(|i| finite(least(i))).collect();
    let mut of_columns = vec![f64::INFINITY; a.cols];
    for (i, of_row) in of_rows.iter().enumerate() {
        entries(a, costs, i).for_each(|(j, cost)| of_columns[j] = of_columns[j].min(cost - of_row));
    }
    of_columns.iter_mut().for_each(|v| *v = finite(*v));
    for (i, of_row) in of_rows.iter_mut().enumerate() {
        let left = entries(a, costs, i).map(|(j, cost)| cost - of_columns[j]);
        *of_row = finite(left.fold(f64::INFINITY, f64::min));
    }
    (of_rows, of_columns)
}
