//! A matching of rows and columns with large entries.
use crate::order::matching::matched;
use crate::storage::pattern::PatternRef;
use crate::{Csr, Permutation};
use lacuna_engine::Scalar;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

const NONE: u32 = u32::MAX;
/// Entries examined in searches, per entry of the matrix; rows left then are matched whatever their entries.
const MOST_EXAMINED: usize = 100;

/// The order of the rows of a square matrix that puts large entries on the diagonal: of all orders with a
/// diagonal without zeros, one whose diagonal has the largest product of moduli. `None` if there is no such
/// order, which makes the matrix singular for any values of its entries, and for a matrix that is not square.
///
/// If the search examines more than a hundred times the entries of the matrix, what is left of the diagonal has
/// no zeros but may not be the largest.
///
/// ```
/// use lacuna_formats::{Triplets, heaviest_diagonal};
///
/// let mut a = Triplets::new(2, 2);
/// [(0, 0, 1.0), (0, 1, 8.0), (1, 0, 5.0), (1, 1, 2.0)].into_iter().for_each(|(i, j, v)| a.push(i, j, v));
/// let order = heaviest_diagonal(&a.to_csr()?).expect("a nonzero diagonal");
/// assert_eq!(order.order(), [1, 0]);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
///
/// Reference: Duff and Koster 2001, doi:10.1137/S0895479899358443: shortest augmenting paths, with entry `(i, j)`
/// at the distance `log(max_k |a_ik| / |a_ij|)`.
pub fn heaviest_diagonal<T: Scalar>(a: &Csr<T>) -> Option<Permutation> {
    within(PatternRef::of(a), costs(a), MOST_EXAMINED * a.nnz())
}

/// The distance of each entry; infinite for a stored zero.
fn costs<T: Scalar>(a: &Csr<T>) -> Vec<f64> {
    let mut costs = Vec::with_capacity(a.nnz());
    for i in 0..a.rows() {
        let values = a.row_slices(i).1;
        let largest = libm::log(values.iter().map(|v| v.modulus()).fold(0.0, f64::max));
        costs.extend(values.iter().map(|v| match v.modulus() {
            0.0 => f64::INFINITY,
            modulus => (largest - libm::log(modulus)).max(0.0),
        }));
    }
    costs
}

/// [`heaviest_diagonal`] by searches that examine that many entries; then any diagonal without zeros.
fn within(a: PatternRef<'_>, costs: Vec<f64>, most: usize) -> Option<Permutation> {
    if a.rows != a.cols {
        return None;
    }
    let mut search = Search::new(a, costs);
    search.begin();
    let left: Vec<u32> = (0..a.rows as u32).filter(|&i| search.column_of[i as usize] == NONE).collect();
    for &row in &left {
        if search.examined > most {
            return search.any();
        }
        if !search.augment(row) {
            return None;
        }
    }
    Some(Permutation::known(search.row_of))
}

/// A column at a distance from the row where a search began; the nearest is the greatest.
#[derive(PartialEq)]
struct Near {
    distance: f64,
    column: u32,
}

impl Eq for Near {}

impl Ord for Near {
    fn cmp(&self, other: &Self) -> Ordering {
        other.distance.total_cmp(&self.distance).then(other.column.cmp(&self.column))
    }
}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

struct Search<'a> {
    a: PatternRef<'a>,
    costs: Vec<f64>,
    /// Dual variables: no cost is below the sum of those of its row and column, and matched ones equal it.
    of_rows: Vec<f64>,
    of_columns: Vec<f64>,
    row_of: Vec<u32>,
    column_of: Vec<u32>,
    /// Of the columns seen in a search: the distance, and the row that it is reached from.
    distance: Vec<f64>,
    from: Vec<u32>,
    seen: Vec<u32>,
    nearest: BinaryHeap<Near>,
    examined: usize,
}

impl<'a> Search<'a> {
    fn new(a: PatternRef<'a>, costs: Vec<f64>) -> Self {
        let (n, m) = (a.rows, a.cols);
        Search {
            a,
            costs,
            of_rows: vec![f64::INFINITY; n],
            of_columns: vec![f64::INFINITY; m],
            row_of: vec![NONE; m],
            column_of: vec![NONE; n],
            distance: vec![f64::INFINITY; m],
            from: vec![NONE; m],
            seen: Vec::new(),
            nearest: BinaryHeap::new(),
            examined: 0,
        }
    }

    /// The columns of a row with the costs of their entries.
    fn entries(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + use<'a, '_> {
        let start = self.a.row_ptr[row] as usize;
        let columns = self.a.row(row);
        columns.iter().zip(&self.costs[start..]).map(|(&j, &cost)| (j as usize, cost))
    }

    /// The largest dual variables that the smallest costs allow, and rows matched with what is then tight.
    fn begin(&mut self) {
        let n = self.a.rows;
        for i in 0..n {
            for (k, &j) in self.a.row(i).iter().enumerate() {
                let cost = self.costs[self.a.row_ptr[i] as usize + k];
                let least = &mut self.of_columns[j as usize];
                *least = least.min(cost);
            }
        }
        self.of_columns.iter_mut().filter(|v| v.is_infinite()).for_each(|v| *v = 0.0);
        for i in 0..n {
            let least =
                self.entries(i).map(|(j, cost)| cost - self.of_columns[j]).fold(f64::INFINITY, f64::min);
            self.of_rows[i] = if least.is_finite() { least } else { 0.0 };
            let own = self.of_rows[i];
            let free = |&(j, cost): &(usize, f64)| self.row_of[j] == NONE && cost - self.of_columns[j] <= own;
            // A diagonal entry first, so that a good order stays.
            let tight = self.entries(i).filter(free).max_by_key(|&(j, _)| j == i);
            if let Some((j, _)) = tight {
                (self.row_of[j], self.column_of[i]) = (i as u32, j as u32);
            }
        }
    }

    /// Matches one more row, along the shortest path to a free column. Returns whether there is one.
    fn augment(&mut self, start: u32) -> bool {
        let (mut row, mut walked) = (start as usize, 0.0);
        let end = loop {
            self.examined += self.a.row(row).len();
            self.relax(row, walked);
            let next = loop {
                match self.nearest.pop() {
                    Some(Near { distance, column }) if distance > self.distance[column as usize] => {}
                    other => break other,
                }
            };
            let Some(Near { distance, column }) = next else { break None };
            walked = distance;
            match self.row_of[column as usize] {
                NONE => break Some(column),
                other => row = other as usize,
            }
        };
        if let Some(end) = end {
            self.update_duals(start as usize, walked);
            self.follow_back(start, end);
        }
        for column in self.seen.drain(..) {
            self.distance[column as usize] = f64::INFINITY;
        }
        self.nearest.clear();
        end.is_some()
    }

    /// Distances of the columns of a row that is reached after `walked`.
    fn relax(&mut self, row: usize, walked: f64) {
        let start = self.a.row_ptr[row] as usize;
        for (k, &column) in self.a.row(row).iter().enumerate() {
            let j = column as usize;
            let reduced = (self.costs[start + k] - self.of_rows[row] - self.of_columns[j]).max(0.0);
            let distance = walked + reduced;
            if distance < self.distance[j] {
                if self.distance[j].is_infinite() {
                    self.seen.push(column);
                }
                (self.distance[j], self.from[j]) = (distance, row as u32);
                self.nearest.push(Near { distance, column });
            }
        }
    }

    /// Keeps the costs at or above the dual variables once the path, of length `walked`, is matched.
    fn update_duals(&mut self, start: usize, walked: f64) {
        self.of_rows[start] += walked;
        for &column in &self.seen {
            let j = column as usize;
            let short = walked - self.distance[j];
            if short > 0.0 {
                self.of_columns[j] -= short;
                if self.row_of[j] != NONE {
                    self.of_rows[self.row_of[j] as usize] += short;
                }
            }
        }
    }

    /// Each row of the path takes the column that it leads to.
    fn follow_back(&mut self, start: u32, end: u32) {
        let mut column = end;
        loop {
            let row = self.from[column as usize];
            let former = self.column_of[row as usize];
            (self.column_of[row as usize], self.row_of[column as usize]) = (column, row);
            if row == start {
                break;
            }
            column = former;
        }
    }

    /// An order with any diagonal without zeros.
    fn any(&self) -> Option<Permutation> {
        let mut row_of = vec![NONE; self.a.cols];
        let nonzero: Vec<bool> = self.costs.iter().map(|cost| cost.is_finite()).collect();
        for (i, j) in matched(self.a, &nonzero).into_iter().enumerate() {
            row_of[j? as usize] = i as u32;
        }
        Some(Permutation::known(row_of))
    }
}

#[cfg(test)]
mod tests {
    use super::{costs, heaviest_diagonal, within};
    use crate::storage::pattern::PatternRef;
    use crate::{Csr, Triplets};
    use proptest::prelude::*;

    /// The largest product of a diagonal over all orders of the rows.
    fn largest(a: &Csr<f64>, row: usize, taken: &mut Vec<bool>) -> f64 {
        if row == a.rows() {
            return 1.0;
        }
        let mut best = 0.0f64;
        for (j, v) in a.row_entries(row) {
            if !taken[j] && v != 0.0 {
                taken[j] = true;
                best = best.max(v.abs() * largest(a, row + 1, taken));
                taken[j] = false;
            }
        }
        best
    }

    proptest! {
        #[test]
        fn no_diagonal_has_a_larger_product(
            n in 1usize..7, entries in prop::collection::vec((0usize..7, 0usize..7, -20i32..21), 0..30),
        ) {
            let mut triplets = Triplets::new(n, n);
            entries.iter().for_each(|&(i, j, e)| triplets.push(i % n, j % n, 1.5f64.powi(e)));
            let a = triplets.to_csr().unwrap();
            let best = largest(&a, 0, &mut vec![false; n]);
            match heaviest_diagonal(&a) {
                None => prop_assert_eq!(best, 0.0),
                Some(order) => {
                    let diagonal = order.order().iter().enumerate().map(|(j, &i)| a.get(i as usize, j).unwrap());
                    let product: f64 = diagonal.map(f64::abs).product();
                    prop_assert!((product / best - 1.0).abs() < 1e-9, "{} {}", product, best);
                }
            }
        }
    }

    #[test]
    fn a_search_that_takes_too_long_ends_with_some_diagonal() {
        let n = 40;
        let mut triplets = Triplets::new(n, n);
        for i in 0..n {
            (0..5).for_each(|k| triplets.push(i, (i * 7 + k * k) % n, 1.0 + ((i * 13 + k * 29) % 31) as f64));
        }
        let a = triplets.to_csr().unwrap();
        let orders = [0, usize::MAX].map(|most| within(PatternRef::of(&a), costs(&a), most).unwrap());
        let products = orders.each_ref().map(|order| {
            let diagonal = order.order().iter().enumerate().map(|(j, &i)| a.get(i as usize, j).unwrap());
            diagonal.map(f64::ln).sum::<f64>()
        });
        assert!(products[0] < products[1], "{products:?}");
    }

    #[test]
    fn a_stored_zero_is_no_entry_and_a_dominant_diagonal_stays() {
        let mut triplets = Triplets::new(2, 2);
        [(0, 0, 0.0), (0, 1, 1.0), (1, 1, 1.0)].into_iter().for_each(|(i, j, v)| triplets.push(i, j, v));
        assert_eq!(heaviest_diagonal(&triplets.to_csr().unwrap()), None);
        let mut dominant = Triplets::new(400, 400);
        for i in 0..400 {
            [(i, 4.0), ((i + 1) % 400, -1.5), ((i + 20) % 400, -1.0)]
                .into_iter()
                .for_each(|(j, v)| dominant.push(i, j, v));
        }
        let order = heaviest_diagonal(&dominant.to_csr().unwrap()).unwrap();
        assert!(order.order().iter().enumerate().all(|(i, &row)| i == row as usize));
    }
}
