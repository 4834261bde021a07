//! A column ordering that keeps the factors of an LU factorisation sparse for any choice of pivot rows.
use crate::{Csr, Permutation};
use lacuna_engine::Scalar;
use lacuna_engine::compiled_here;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A row with more entries than this factor times the square root of the number of columns is ignored: it
/// couples almost all of them.
const DENSE: f64 = 10.0;

/// Columns by approximate minimum degree in the pattern of `AᵀA`, which bounds that of the factors for any
/// choice of pivots. That pattern is not formed: each row is a set of mutually coupled columns, and
/// eliminating a column joins all its sets. Columns in the same sets are merged and eliminated together. Ties
/// go to the smaller column.
///
/// Reference: Davis, Gilbert, Larimore and Ng 2004, doi:10.1145/1024074.1024079.
pub fn column_order<T: Scalar>(a: &Csr<T>) -> Permutation {
    compiled_here!(T, |a: &Csr<T>| -> Permutation {
        let mut sets = Sets::new(a);
        let n = a.cols();
        let mut queue: BinaryHeap<Reverse<(u32, u32)>> =
            (0..n as u32).map(|j| Reverse((sets.degree(j), j))).collect();
        let mut degree: Vec<u32> = (0..n as u32).map(|j| sets.degree(j)).collect();
        let mut order = Vec::with_capacity(n);
        while let Some(Reverse((d, column))) = queue.pop() {
            if sets.weight[column as usize] == 0 || d != degree[column as usize] {
                continue;
            }
            sets.eliminate(column, &mut order, |k, new| {
                if degree[k as usize] != new {
                    degree[k as usize] = new;
                    queue.push(Reverse((new, k)));
                }
            });
        }
        Permutation::known(order)
    })(a)
}

/// The columns of each set, and the sets of each column.
struct Sets {
    /// Joined sets are empty. Sets may still list columns that were eliminated or merged.
    columns: Vec<Vec<u32>>,
    of_column: Vec<Vec<u32>>,
    /// Number of columns that each column represents; 0 for eliminated or merged ones.
    weight: Vec<u32>,
    /// The columns that each column represents, as a linked list.
    next: Vec<u32>,
    last: Vec<u32>,
    /// Number of columns of each set, weighted by what they represent.
    size: Vec<u32>,
    /// The same without those in the set being formed, and the column for which it was last computed.
    outside: Vec<u32>,
    counted: Vec<u32>,
    mark: Vec<u32>,
    left: u32,
}

const NONE: u32 = u32::MAX;

impl Sets {
    fn new<T: Scalar>(a: &Csr<T>) -> Self {
        let (rows, n) = (a.rows(), a.cols());
        let dense = (DENSE * (n as f64).sqrt()).max(16.0) as usize;
        let columns: Vec<Vec<u32>> = (0..rows)
            .map(|i| a.row_slices(i).0)
            .map(|row| if row.len() <= dense { row.to_vec() } else { Vec::new() })
            .collect();
        let mut of_column: Vec<Vec<u32>> = vec![Vec::new(); n];
        for (set, columns) in columns.iter().enumerate() {
            columns.iter().for_each(|&j| of_column[j as usize].push(set as u32));
        }
        Sets {
            size: columns.iter().map(|set| set.len() as u32).collect(),
            columns,
            of_column,
            weight: vec![1; n],
            next: vec![NONE; n],
            last: (0..n as u32).collect(),
            outside: vec![0; rows],
            counted: vec![NONE; rows],
            mark: vec![NONE; n],
            left: n as u32,
        }
    }

    /// An upper bound of the number of columns coupled with a column.
    fn degree(&self, j: u32) -> u32 {
        let others = |&set: &u32| u64::from(self.size[set as usize].saturating_sub(1));
        let sum: u64 = self.of_column[j as usize].iter().map(others).sum();
        sum.min(u64::from(self.left)) as u32
    }

    /// Appends a column, and those it represents, to the order.
    fn put(&mut self, column: u32, order: &mut Vec<u32>) {
        self.left -= std::mem::take(&mut self.weight[column as usize]);
        let mut at = column;
        while at != NONE {
            order.push(at);
            at = self.next[at as usize];
        }
    }

    /// Eliminates a column: its sets are joined, and the degrees of their columns are updated.
    fn eliminate(&mut self, column: u32, order: &mut Vec<u32>, mut changed: impl FnMut(u32, u32)) {
        self.put(column, order);
        let joined = std::mem::take(&mut self.of_column[column as usize]);
        let Some(&into) = joined.first() else { return };
        let mut union = Vec::new();
        for &set in &joined {
            self.size[set as usize] = 0;
            for k in std::mem::take(&mut self.columns[set as usize]) {
                let there = self.weight[k as usize] > 0;
                if there && std::mem::replace(&mut self.mark[k as usize], column) != column {
                    union.push(k);
                }
            }
        }
        for &k in &union {
            let own = &mut self.of_column[k as usize];
            own.retain(|&set| self.size[set as usize] > 0);
            for &set in own.iter() {
                let s = set as usize;
                if std::mem::replace(&mut self.counted[s], column) != column {
                    self.outside[s] = self.size[s];
                }
                self.outside[s] -= self.weight[k as usize];
            }
        }
        // A subset of the new set is redundant; a column in no other set can be eliminated at once.
        let mut kept = Vec::with_capacity(union.len());
        for k in union {
            let own = &mut self.of_column[k as usize];
            own.retain(|&set| {
                let inside = self.outside[set as usize] == 0;
                if inside && self.size[set as usize] > 0 {
                    self.size[set as usize] = 0;
                    self.columns[set as usize] = Vec::new();
                }
                !inside
            });
            match own.is_empty() {
                true => self.put(k, order),
                false => {
                    own.push(into);
                    kept.push(k);
                }
            }
        }
        self.merge(&mut kept);
        let all: u32 = kept.iter().map(|&k| self.weight[k as usize]).sum();
        for &k in &kept {
            let own = &self.of_column[k as usize];
            let others: u64 =
                own.iter().filter(|&&set| set != into).map(|&s| u64::from(self.outside[s as usize])).sum();
            let new = others + u64::from(all - self.weight[k as usize]);
            changed(k, new.min(u64::from(self.left)) as u32);
        }
        self.size[into as usize] = all;
        self.columns[into as usize] = kept;
    }

    /// Merges columns that are in the same sets. Sets are listed in order of creation, which is the same for
    /// all columns.
    fn merge(&mut self, columns: &mut Vec<u32>) {
        let hash = |sets: &[u32]| {
            sets.iter().fold(0u64, |h, &s| (h ^ u64::from(s)).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        };
        let mut hashed: Vec<(u64, u32)> =
            columns.iter().map(|&k| (hash(&self.of_column[k as usize]), k)).collect();
        hashed.sort_unstable();
        for at in 0..hashed.len() {
            let (h, k) = hashed[at];
            if self.weight[k as usize] == 0 {
                continue;
            }
            for &(_, other) in hashed[at + 1..].iter().take_while(|(g, _)| *g == h) {
                let (a, b) = (k as usize, other as usize);
                if self.weight[b] > 0 && self.of_column[a] == self.of_column[b] {
                    self.weight[a] += std::mem::take(&mut self.weight[b]);
                    self.next[self.last[a] as usize] = other;
                    self.last[a] = self.last[b];
                    self.of_column[b] = Vec::new();
                }
            }
        }
        columns.retain(|&k| self.weight[k as usize] > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::column_order;
    use crate::{Csr, Spec, Triplets};

    /// Number of entries of the factor of `AᵀA` for a column order.
    fn fill(a: &Csr<f64>, order: &[u32]) -> usize {
        let n = a.cols();
        let mut place = vec![0; n];
        order.iter().enumerate().for_each(|(at, &j)| place[j as usize] = at);
        let mut below: Vec<std::collections::BTreeSet<usize>> = vec![Default::default(); n];
        for i in 0..a.rows() {
            let row: Vec<usize> = a.row_slices(i).0.iter().map(|&j| place[j as usize]).collect();
            row.iter().for_each(|&j| below[j].extend(row.iter().filter(|&&k| k > j)));
        }
        let mut entries = n;
        for j in 0..n {
            let own = std::mem::take(&mut below[j]);
            entries += own.len();
            if let Some(&parent) = own.first() {
                below[parent].extend(own.into_iter().filter(|&k| k > parent));
            }
        }
        entries
    }

    #[test]
    fn fill_is_far_below_that_of_the_natural_order() {
        for (name, part) in [("gen:poisson2d:30x30", 0.7), ("gen:random:400:5:7", 0.8)] {
            let a = Spec::parse(name).unwrap().build::<f64>().unwrap();
            let natural: Vec<u32> = (0..a.cols() as u32).collect();
            let order = column_order(&a);
            let (own, other) = (fill(&a, order.order()), fill(&a, &natural));
            assert!((own as f64) < part * other as f64, "{name}: {own} of {other}");
        }
    }

    #[test]
    fn empty_rows_and_columns_and_dense_rows_have_their_place() {
        let mut triplets = Triplets::new(300, 300);
        (0..300).for_each(|j| triplets.push(0, j, 1.0));
        (1..299).for_each(|i| triplets.push(i, i, 1.0));
        let a: Csr<f64> = triplets.to_csr().unwrap();
        let mut order = column_order(&a).order().to_vec();
        order.sort_unstable();
        assert!(order.iter().enumerate().all(|(i, &j)| i as u32 == j));
    }
}
