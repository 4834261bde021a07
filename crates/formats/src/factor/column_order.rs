//! Column orders that keep the factors of an LU factorisation sparse.
use crate::interrupt;
use crate::storage::pattern::PatternRef;
use crate::{Csr, Permutation};
use lacuna_engine::{Error, Result, Scalar, memory, pages};

const OPERATION: &str = "ordering columns";
/// A row with more entries than this factor times the square root of the number of columns is ignored: it
/// couples almost all of them. A column with so many is eliminated last.
const DENSE: f64 = 10.0;
/// No column.
const NONE: u32 = u32::MAX;

/// Columns by approximate minimum degree in the pattern of `AᵀA`, which bounds that of the factors for any
/// choice of pivots. That pattern is not formed: each row is a set of mutually coupled columns, and
/// eliminating a column joins all its sets. Columns in the same sets are merged and eliminated together. Ties
/// go to the column whose degree changed last.
///
/// # Errors
/// [`Error::OutOfMemory`]; those of [`interrupt::check`].
///
/// Reference: Davis, Gilbert, Larimore and Ng 2004, doi:10.1145/1024074.1024079.
pub fn column_order<T: Scalar>(a: &Csr<T>) -> Result<Permutation> {
    let a = PatternRef::of(a);
    by_degree(Sets::rows(a)?, dense_columns(a)?, a.cols)
}

/// Columns by approximate minimum degree in the pattern of `A + Aᵀ`, which is that of the factors if all
/// pivots are on the diagonal. As [`column_order`], with the two columns of each entry
/// off the diagonal as sets. Entries beyond the largest leading square are ignored.
///
/// # Errors
/// [`Error::OutOfMemory`]; those of [`interrupt::check`].
///
/// Reference: Amestoy, Davis and Duff 1996, doi:10.1137/S0895479894278952.
pub fn diagonal_order<T: Scalar>(a: &Csr<T>) -> Result<Permutation> {
    let a = PatternRef::of(a);
    by_degree(Sets::pairs(a)?, dense_columns(a)?, a.cols)
}

/// An array of equal elements.
fn filled(value: u32, n: usize) -> Result<Vec<u32>> {
    let mut array: Vec<u32> = pages::zeroed(OPERATION, n)?;
    array.fill(value);
    Ok(array)
}

/// An empty array with space for `n` elements.
fn reserved<T>(n: usize) -> Result<Vec<T>> {
    let mut array = Vec::new();
    array.try_reserve_exact(n).map_err(|_| out_of_memory::<T>(n))?;
    Ok(array)
}

/// The error for an array of `n` elements.
fn out_of_memory<T>(n: usize) -> Error {
    Error::OutOfMemory {
        operation: OPERATION.into(),
        device: "the host".into(),
        requested: (n as u64).saturating_mul(size_of::<T>() as u64),
        available: None,
    }
}

/// Columns with too many entries to be eliminated among the others.
fn dense_columns(a: PatternRef<'_>) -> Result<Vec<u32>> {
    let (mut counts, most) = (filled(0, a.cols)?, most_entries(a.rows));
    a.col_idx.iter().for_each(|&j| counts[j as usize] += 1);
    let is_dense = |j: &u32| counts[*j as usize] as usize > most;
    let columns = (0..a.cols as u32).filter(is_dense);
    let mut dense = reserved(columns.clone().count())?;
    dense.extend(columns);
    Ok(dense)
}

fn by_degree(mut sets: Sets, dense: Vec<u32>, n: usize) -> Result<Permutation> {
    sets.leave_out(&dense);
    interrupt::check()?;
    let mut degree = reserved(n)?;
    degree.extend((0..n as u32).map(|j| sets.degree(j)));
    let mut queue = Queue::new(degree)?;
    dense.iter().for_each(|&column| queue.remove(column));
    let mut order = reserved(n)?;
    let mut steps = 0..;
    while let Some(column) = queue.pop() {
        steps.next().map_or(Ok(()), interrupt::check_at)?;
        sets.eliminate(column, &mut order, &mut queue)?;
    }
    order.extend(dense);
    Ok(Permutation::known(order))
}

/// The columns that are left, in lists by degree.
struct Queue {
    degree: Vec<u32>,
    /// The first column of each degree.
    first: Vec<u32>,
    /// The columns before and after each one in its list.
    before: Vec<u32>,
    after: Vec<u32>,
    /// No column has a smaller degree.
    least: usize,
}

impl Queue {
    fn new(degree: Vec<u32>) -> Result<Self> {
        let n = degree.len();
        let (first, before, after) = (filled(NONE, n + 1)?, filled(NONE, n)?, filled(NONE, n)?);
        let mut queue = Queue { degree, first, before, after, least: 0 };
        (0..n as u32).rev().for_each(|column| queue.put(column));
        queue.least = 0;
        Ok(queue)
    }

    fn put(&mut self, column: u32) {
        let degree = self.degree[column as usize] as usize;
        let follower = std::mem::replace(&mut self.first[degree], column);
        (self.before[column as usize], self.after[column as usize]) = (NONE, follower);
        if follower != NONE {
            self.before[follower as usize] = column;
        }
        self.least = self.least.min(degree);
    }

    fn remove(&mut self, column: u32) {
        let (before, after) = (self.before[column as usize], self.after[column as usize]);
        match before {
            NONE => self.first[self.degree[column as usize] as usize] = after,
            before => self.after[before as usize] = after,
        }
        if after != NONE {
            self.before[after as usize] = before;
        }
    }

    fn change(&mut self, column: u32, degree: u32) {
        if self.degree[column as usize] != degree {
            self.remove(column);
            self.degree[column as usize] = degree;
            self.put(column);
        }
    }

    /// Removes a column of the smallest degree.
    fn pop(&mut self) -> Option<u32> {
        self.least += self.first[self.least..].iter().position(|&column| column != NONE)?;
        let column = self.first[self.least];
        self.remove(column);
        Some(column)
    }
}

/// Maximum number of entries of a row that is not ignored.
fn most_entries(n: usize) -> usize {
    (DENSE * (n as f64).sqrt()).max(16.0) as usize
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

impl Sets {
    /// Takes columns out of all sets.
    fn leave_out(&mut self, columns: &[u32]) {
        for &column in columns {
            for set in std::mem::take(&mut self.of_column[column as usize]) {
                self.columns[set as usize].retain(|&other| other != column);
                self.size[set as usize] -= 1;
            }
        }
    }

    /// The columns of each row.
    fn rows(a: PatternRef<'_>) -> Result<Self> {
        let most = most_entries(a.cols);
        let rows = (0..a.rows).map(|i| a.row(i));
        let rows = rows.map(|row| if row.len() <= most { row } else { &[] });
        let entries = rows.clone().map(<[u32]>::len).sum();
        Self::of(rows, [a.rows, a.cols], entries)
    }

    /// The row and the column of each entry off the diagonal, once for an entry and its mirror image.
    fn pairs(a: PatternRef<'_>) -> Result<Self> {
        let (most, n) = (most_entries(a.cols), a.rows.min(a.cols) as u32);
        let row = |i: u32| Some(a.row(i as usize)).filter(|row| row.len() <= most).unwrap_or(&[]);
        let is_first = |i: u32, j: u32| i < j || i > j && row(j).binary_search(&i).is_err();
        let own = |i: u32| row(i).iter().filter(move |&&j| j < n && is_first(i, j)).map(move |&j| [i, j]);
        let pairs = (0..n).flat_map(own);
        let count = pairs.clone().count();
        Self::of(pairs, [count, a.cols], 2 * count)
    }

    /// `rows` sets of `n` columns, with so many `entries` in all.
    fn of<S: AsRef<[u32]>>(
        sets: impl Iterator<Item = S>,
        [rows, n]: [usize; 2],
        entries: usize,
    ) -> Result<Self> {
        let bytes = (rows + n) * size_of::<Vec<u32>>() + 2 * entries * size_of::<u32>();
        memory::check(OPERATION, bytes as u64)?;
        let (mut columns, mut of_column): (Vec<Vec<u32>>, Vec<Vec<u32>>) = (reserved(rows)?, reserved(n)?);
        let (mut size, mut counts) = (reserved(rows)?, filled(0, n)?);
        for (at, set) in sets.enumerate() {
            interrupt::check_at(at)?;
            let set = set.as_ref();
            let mut own = reserved(set.len())?;
            own.extend_from_slice(set);
            set.iter().for_each(|&j| counts[j as usize] += 1);
            size.push(set.len() as u32);
            columns.push(own);
        }
        for (j, &count) in counts.iter().enumerate() {
            interrupt::check_at(j)?;
            of_column.push(reserved(count as usize)?);
        }
        interrupt::check()?;
        for (set, columns) in columns.iter().enumerate() {
            columns.iter().for_each(|&j| of_column[j as usize].push(set as u32));
        }
        let mut last = reserved(n)?;
        last.extend(0..n as u32);
        Ok(Sets {
            columns,
            of_column,
            weight: filled(1, n)?,
            next: filled(NONE, n)?,
            last,
            size,
            outside: filled(0, rows)?,
            counted: filled(NONE, rows)?,
            mark: filled(NONE, n)?,
            left: n as u32,
        })
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
    fn eliminate(&mut self, column: u32, order: &mut Vec<u32>, queue: &mut Queue) -> Result<()> {
        self.put(column, order);
        let joined = std::mem::take(&mut self.of_column[column as usize]);
        let Some(&into) = joined.first() else { return Ok(()) };
        let mut union = Vec::new();
        for &set in &joined {
            self.size[set as usize] = 0;
            let columns = std::mem::take(&mut self.columns[set as usize]);
            union.try_reserve(columns.len()).map_err(|_| out_of_memory::<u32>(columns.len()))?;
            for k in columns {
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
        let mut kept = reserved(union.len())?;
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
                true => {
                    queue.remove(k);
                    self.put(k, order);
                }
                false => {
                    // In the place of a joined set.
                    own.push(into);
                    kept.push(k);
                }
            }
        }
        self.merge(&mut kept, queue)?;
        let all: u32 = kept.iter().map(|&k| self.weight[k as usize]).sum();
        for &k in &kept {
            let own = &self.of_column[k as usize];
            let others: u64 =
                own.iter().filter(|&&set| set != into).map(|&s| u64::from(self.outside[s as usize])).sum();
            let new = others + u64::from(all - self.weight[k as usize]);
            queue.change(k, new.min(u64::from(self.left)) as u32);
        }
        self.size[into as usize] = all;
        self.columns[into as usize] = kept;
        Ok(())
    }

    /// Merges columns that are in the same sets. Sets are listed in order of creation, which is the same for
    /// all columns.
    fn merge(&mut self, columns: &mut Vec<u32>, queue: &mut Queue) -> Result<()> {
        let hash = |sets: &[u32]| {
            sets.iter().fold(0u64, |h, &s| (h ^ u64::from(s)).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        };
        let mut hashed: Vec<(u64, u32)> = reserved(columns.len())?;
        hashed.extend(columns.iter().map(|&k| (hash(&self.of_column[k as usize]), k)));
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
                    queue.remove(other);
                }
            }
        }
        columns.retain(|&k| self.weight[k as usize] > 0);
        Ok(())
    }
}
