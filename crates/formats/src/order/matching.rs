//! A maximum matching of rows and columns.
use crate::Csr;
use crate::storage::pattern::PatternRef;
use lacuna_engine::Scalar;

const NONE: u32 = u32::MAX;

/// For each row the column it is matched with by a nonzero entry, in a matching of maximum size. If some row
/// of a square matrix is unmatched, the matrix is singular for any values of the entries.
///
/// Reference: Pothen and Fan 1990, doi:10.1145/98267.98287: depth-first search from all unmatched rows, with
/// each row looking for a free column first; a round visits each row once.
pub fn matching<T: Scalar>(a: &Csr<T>) -> Vec<Option<u32>> {
    let nonzero: Vec<bool> = a.values().iter().map(|v| *v != T::zero()).collect();
    matched(PatternRef::of(a), &nonzero)
}

/// [`matching`] by the entries that are not zero.
pub(crate) fn matched(a: PatternRef<'_>, nonzero: &[bool]) -> Vec<Option<u32>> {
    // Diagonal entries first, so that a diagonal without zeros is the matching.
    let own = |i: usize| if a.find(i, i).is_some_and(|k| nonzero[k]) { i as u32 } else { NONE };
    completed(a, nonzero, (0..a.rows).map(own).collect())
}

/// A matching of maximum size by the entries that are not zero, in which all rows and columns are matched that
/// are so in the given one: for each row its column, `u32::MAX` if none.
pub(crate) fn completed(a: PatternRef<'_>, nonzero: &[bool], column_of: Vec<u32>) -> Vec<Option<u32>> {
    let mut row_of = vec![NONE; a.cols];
    for (i, &j) in column_of.iter().enumerate().filter(|(_, j)| **j != NONE) {
        row_of[j as usize] = i as u32;
    }
    let mut search = Search {
        row_ptr: a.row_ptr,
        columns: a.col_idx,
        nonzero,
        row_of,
        column_of,
        ahead: a.row_ptr.to_vec(),
        visited: vec![0; a.rows],
        round: 0,
    };
    let mut left: Vec<usize> = (0..a.rows).filter(|&i| search.column_of[i] == NONE).collect();
    loop {
        search.round += 1;
        let before = left.len();
        left.retain(|&i| !search.augment(i));
        if left.len() == before || left.is_empty() {
            break;
        }
    }
    search.column_of.into_iter().map(|j| (j != NONE).then_some(j)).collect()
}

struct Search<'a> {
    row_ptr: &'a [u32],
    columns: &'a [u32],
    nonzero: &'a [bool],
    row_of: Vec<u32>,
    column_of: Vec<u32>,
    /// For each row, the first entry whose column may still be free.
    ahead: Vec<u32>,
    /// The last round in which each row was visited.
    visited: Vec<u32>,
    round: u32,
}

impl Search<'_> {
    fn join(&mut self, row: usize, column: u32) {
        self.row_of[column as usize] = row as u32;
        self.column_of[row] = column;
    }

    /// A free column of the row, among those not examined yet.
    fn free(&mut self, row: usize) -> Option<u32> {
        while self.ahead[row] < self.row_ptr[row + 1] {
            let k = self.ahead[row] as usize;
            self.ahead[row] += 1;
            if self.nonzero[k] && self.row_of[self.columns[k] as usize] == NONE {
                return Some(self.columns[k]);
            }
        }
        None
    }

    /// Matches an unmatched row if a path through rows not visited in this round leads to a free column.
    fn augment(&mut self, start: usize) -> bool {
        self.visited[start] = self.round;
        // Rows of the path, each with the next entry to examine.
        let mut path = vec![(start, self.row_ptr[start] as usize)];
        while let Some((row, next)) = path.last_mut() {
            let row = *row;
            if let Some(column) = self.free(row) {
                // Each row of the path takes the column through which the path left it.
                self.join(row, column);
                path.pop();
                for (row, next) in path.into_iter().rev() {
                    self.join(row, self.columns[next - 1]);
                }
                return true;
            }
            if *next == self.row_ptr[row + 1] as usize {
                path.pop();
                continue;
            }
            let k = *next;
            *next += 1;
            let other = self.row_of[self.columns[k] as usize];
            if self.nonzero[k] && other != NONE && self.visited[other as usize] != self.round {
                self.visited[other as usize] = self.round;
                path.push((other as usize, self.row_ptr[other as usize] as usize));
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::{NONE, completed, matching};
    use crate::storage::pattern::PatternRef;
    use crate::{Csr, Triplets};
    use proptest::prelude::*;

    fn pattern(rows: usize, cols: usize, entries: &[(usize, usize)]) -> Csr<f64> {
        let mut triplets = Triplets::new(rows, cols);
        entries.iter().for_each(|&(i, j)| triplets.push(i % rows, j % cols, 1.0));
        triplets.to_csr().unwrap()
    }

    /// The size of a maximum matching by exhaustive search.
    fn largest(a: &Csr<f64>, row: usize, taken: &mut Vec<bool>) -> usize {
        if row == a.rows() {
            return 0;
        }
        let mut best = largest(a, row + 1, taken);
        for (j, _) in a.row_entries(row) {
            if !taken[j] {
                taken[j] = true;
                best = best.max(1 + largest(a, row + 1, taken));
                taken[j] = false;
            }
        }
        best
    }

    proptest! {
        #[test]
        fn it_is_a_matching_and_none_is_larger(
            rows in 1usize..7, cols in 1usize..7, entries in prop::collection::vec((0usize..7, 0usize..7), 0..20),
        ) {
            let a = pattern(rows, cols, &entries);
            let found = matching(&a);
            let mut taken = vec![false; cols];
            for (i, j) in found.iter().enumerate().filter_map(|(i, j)| j.map(|j| (i, j as usize))) {
                prop_assert!(a.get(i, j).is_some() && !taken[j]);
                taken[j] = true;
            }
            let count = found.iter().flatten().count();
            prop_assert_eq!(count, largest(&a, 0, &mut vec![false; cols]));
        }

        #[test]
        fn a_completed_matching_keeps_its_rows_and_columns(
            rows in 1usize..7, cols in 1usize..7, entries in prop::collection::vec((0usize..7, 0usize..7), 0..20),
        ) {
            let a = pattern(rows, cols, &entries);
            let mut given = vec![NONE; rows];
            for (i, j, _) in a.entries() {
                if i % 2 == 0 && !given.contains(&(j as u32)) {
                    given[i] = j as u32;
                }
            }
            let found = completed(PatternRef::of(&a), &vec![true; a.nnz()], given.clone());
            for (i, &j) in given.iter().enumerate().filter(|(_, j)| **j != NONE) {
                prop_assert!(found[i].is_some() && found.contains(&Some(j)));
            }
            prop_assert_eq!(found.iter().flatten().count(), matching(&a).iter().flatten().count());
        }
    }

    #[test]
    fn a_diagonal_without_zeros_is_taken_and_stored_zeros_are_not() {
        let a = pattern(3, 3, &[(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)]);
        assert_eq!(matching(&a), [Some(0), Some(1), Some(2)]);
        let a = a.with_values(vec![1.0, 1.0, 1.0, 0.0, 0.0]).unwrap();
        assert_eq!(matching(&a), [Some(1), Some(0), None]);
    }
}
