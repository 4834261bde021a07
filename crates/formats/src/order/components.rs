//! Block triangular form.
use crate::order::matching::matched;
use crate::storage::pattern::PatternRef;
use crate::{Csr, Permutation};
use lacuna_engine::Scalar;
use std::ops::Range;

/// A column that was not reached, and one whose block is known.
const NEW: u32 = u32::MAX;
const DONE: u32 = u32::MAX - 1;

/// Orders of the rows and columns of a square matrix that make it block triangular, with the smallest blocks.
///
/// Row `k` of the new order is row `rows[k]` of the old one and column `k` column `columns[k]`; no entry on the
/// diagonal is zero. Block `b` begins at `borders[b]` and ends before `borders[b + 1]`. The form is block *lower*
/// triangular: entry (`rows[k]`, `columns[l]`) is zero where the block of `l` comes after that of `k`. Read by
/// columns, as the transposed matrix whose column `k` is row `rows[k]`, it is block upper triangular.
///
/// In each block the columns stay in their order, so that a matrix of one block with a nonzero diagonal stays as
/// it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTriangular {
    /// The old row of each new one.
    pub rows: Vec<u32>,
    /// The old column of each new one.
    pub columns: Vec<u32>,
    /// Where blocks begin, and the number of rows.
    pub borders: Vec<usize>,
}

impl BlockTriangular {
    /// The rows, and columns, of each block in the new order.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = Range<usize>> + '_ {
        self.borders.windows(2).map(|ends| ends[0]..ends[1])
    }
}

/// Block triangular form of a square matrix. An order of the rows that leaves no zero on the diagonal may be given,
/// such as that of [`heaviest_diagonal`](crate::heaviest_diagonal): its rows and columns then stay matched. `None`
/// stands for that of [`matching`](crate::matching), which keeps a diagonal without zeros. The blocks are the same
/// for any such order.
///
/// Returns `None` if there is no diagonal without zeros, which makes the matrix singular for any values of its
/// entries; also if the given order has another length or leaves a zero on the diagonal, and for a matrix that is
/// not square. Stored zeros are no entries.
///
/// ```
/// use lacuna_formats::{Triplets, block_triangular};
///
/// let mut a = Triplets::new(3, 3);
/// [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 2)].into_iter().for_each(|(i, j)| a.push(i, j, 1.0));
/// let form = block_triangular(&a.to_csr()?, None).expect("a nonzero diagonal");
/// assert_eq!((&form.rows[..], &form.borders[..]), (&[0, 2, 1][..], &[0, 2, 3][..]));
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
///
/// Reference: Tarjan 1972, doi:10.1137/0201010: strongly connected components, here without recursion, of the graph
/// in which each column leads to the columns of the row matched with it. Time and memory are linear in the
/// entries once rows are matched.
pub fn block_triangular<T: Scalar>(a: &Csr<T>, order: Option<&Permutation>) -> Option<BlockTriangular> {
    let nonzero: Vec<bool> = a.values().iter().map(|v| *v != T::zero()).collect();
    triangular(PatternRef::of(a), &nonzero, order)
}

/// [`block_triangular`] by the entries that are not zero.
pub(crate) fn triangular(
    a: PatternRef<'_>,
    nonzero: &[bool],
    order: Option<&Permutation>,
) -> Option<BlockTriangular> {
    if a.rows != a.cols {
        return None;
    }
    let matched_here;
    let row_of = match order {
        Some(order) => {
            let on_diagonal =
                |(j, &i): (usize, &u32)| a.find(i as usize, j).is_some_and(|entry| nonzero[entry]);
            if order.len() != a.rows || !order.order().iter().enumerate().all(on_diagonal) {
                return None;
            }
            order.order()
        }
        None => {
            let mut row_of = vec![0; a.rows];
            for (i, j) in matched(a, nonzero).into_iter().enumerate() {
                row_of[j? as usize] = i as u32;
            }
            matched_here = row_of;
            &matched_here
        }
    };
    let (block_of, borders) = components(a, nonzero, row_of);
    // Columns go to the first place of their block that is left.
    let (mut places, mut rows, mut columns) = (borders.clone(), vec![0; a.rows], vec![0; a.rows]);
    for (j, &block) in block_of.iter().enumerate() {
        let place = &mut places[block as usize];
        (rows[*place], columns[*place]) = (row_of[j], j as u32);
        *place += 1;
    }
    Some(BlockTriangular { rows, columns, borders })
}

/// The strongly connected component of each column, and the borders of components laid one after another. What a
/// component leads to comes before it.
fn components(a: PatternRef<'_>, nonzero: &[bool], row_of: &[u32]) -> (Vec<u32>, Vec<usize>) {
    let n = a.cols;
    let mut search = Search { index: vec![NEW; n], low: vec![0; n], next: vec![0; n], ..Search::default() };
    let (mut block_of, mut borders, mut path) = (vec![0; n], vec![0], Vec::new());
    for root in 0..n {
        if search.index[root] != NEW {
            continue;
        }
        search.enter(root, a.row_ptr[row_of[root] as usize]);
        path.push(root);
        while let Some(&column) = path.last() {
            let end = a.row_ptr[row_of[column] as usize + 1];
            if let Some(deeper) = search.step(column, end, a.col_idx, nonzero) {
                search.enter(deeper, a.row_ptr[row_of[deeper] as usize]);
                path.push(deeper);
                continue;
            }
            path.pop();
            let low = search.low[column];
            if let Some(&before) = path.last() {
                search.low[before] = search.low[before].min(low);
            }
            if low == search.index[column] {
                let first = search.open.iter().rposition(|&open| open as usize == column).unwrap_or(0);
                let block = borders.len() as u32 - 1;
                borders.push(borders[block as usize] + search.open.len() - first);
                for member in search.open.drain(first..) {
                    block_of[member as usize] = block;
                    search.index[member as usize] = DONE;
                }
            }
        }
    }
    (block_of, borders)
}

/// A depth-first search among columns.
#[derive(Default)]
struct Search {
    /// The number of each column in the order of visits, [`NEW`] before and [`DONE`] once its block is known.
    index: Vec<u32>,
    /// The least number that the search found to be reached from each column.
    low: Vec<u32>,
    /// The entry that is examined next, for each column.
    next: Vec<u32>,
    /// Columns visited whose block is not known.
    open: Vec<u32>,
    visited: u32,
}

impl Search {
    fn enter(&mut self, column: usize, first: u32) {
        (self.index[column], self.low[column], self.next[column]) = (self.visited, self.visited, first);
        self.visited += 1;
        self.open.push(column as u32);
    }

    /// A new column that the given one leads to, by its entries up to `end` that were not examined.
    fn step(&mut self, column: usize, end: u32, columns: &[u32], nonzero: &[bool]) -> Option<usize> {
        while self.next[column] < end {
            let entry = self.next[column] as usize;
            self.next[column] += 1;
            let to = columns[entry] as usize;
            match self.index[to] {
                _ if !nonzero[entry] => {}
                NEW => return Some(to),
                index => self.low[column] = self.low[column].min(index),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockTriangular, block_triangular};
    use crate::{Csr, Permutation, Triplets, heaviest_diagonal, matching};
    use proptest::prelude::*;

    fn matrix(n: usize, entries: &[(usize, usize, i32)]) -> Csr<f64> {
        let mut triplets = Triplets::new(n, n);
        entries.iter().filter(|_| n > 0).for_each(|&(i, j, v)| triplets.push(i % n, j % n, v as f64));
        triplets.to_csr().unwrap()
    }

    fn is_nonzero(a: &Csr<f64>, i: u32, j: u32) -> bool {
        a.get(i as usize, j as usize).is_some_and(|v| v != 0.0)
    }

    /// The block of each new row.
    fn block_of(form: &BlockTriangular) -> Vec<usize> {
        form.blocks().enumerate().flat_map(|(block, rows)| rows.map(move |_| block)).collect()
    }

    /// Which new columns lead to which, over any number of entries.
    fn closure(a: &Csr<f64>, form: &BlockTriangular) -> Vec<Vec<bool>> {
        let row = |k: &u32| form.columns.iter().map(|&j| is_nonzero(a, *k, j)).collect();
        let mut leads: Vec<Vec<bool>> = form.rows.iter().map(row).collect();
        let n = leads.len();
        for via in 0..n {
            for k in 0..n {
                for l in 0..n {
                    leads[k][l] |= leads[k][via] && leads[via][l];
                }
            }
        }
        leads
    }

    /// The rows and columns of each block, in an order that does not depend on that of the blocks.
    fn sets(form: &BlockTriangular) -> Vec<[Vec<u32>; 2]> {
        let sorted = |of: &[u32]| {
            let mut of = of.to_vec();
            of.sort_unstable();
            of
        };
        let mut sets: Vec<_> = form
            .blocks()
            .map(|block| [&form.rows, &form.columns].map(|of| sorted(&of[block.clone()])))
            .collect();
        sets.sort();
        sets
    }

    proptest! {
        #[test]
        fn no_entry_is_on_the_wrong_side_and_no_block_is_too_large(
            n in 0usize..13, shift in 0usize..13, full in any::<bool>(),
            entries in prop::collection::vec((0usize..13, 0usize..13, -1i32..2), 0..40),
        ) {
            let diagonal = (0..n).filter(|_| full).map(|i| (i, i + shift, 5));
            let a = matrix(n, &entries.iter().copied().chain(diagonal).collect::<Vec<_>>());
            let Some(form) = block_triangular(&a, None) else {
                prop_assert!(matching(&a).contains(&None));
                return Ok(());
            };
            prop_assert!([&form.rows, &form.columns].iter().all(|of| Permutation::new(of.to_vec()).is_ok()));
            prop_assert_eq!((form.rows.len(), form.borders[0], form.borders.last()), (n, 0, Some(&n)));
            let (blocks, leads) = (block_of(&form), closure(&a, &form));
            for k in 0..n {
                prop_assert!(is_nonzero(&a, form.rows[k], form.columns[k]));
                for l in 0..n {
                    prop_assert!(blocks[l] <= blocks[k] || !is_nonzero(&a, form.rows[k], form.columns[l]));
                    prop_assert_eq!(blocks[k] == blocks[l], k == l || leads[k][l] && leads[l][k]);
                }
            }
            for block in form.blocks() {
                prop_assert!(form.columns[block].is_sorted());
            }
            let heaviest = heaviest_diagonal(&a).unwrap();
            let other = block_triangular(&a, Some(&heaviest)).unwrap();
            let matched = other.columns.iter().map(|&j| heaviest.order()[j as usize]);
            prop_assert!(matched.eq(other.rows.iter().copied()));
            prop_assert_eq!(sets(&form), sets(&other));
        }
    }

    #[test]
    fn orders_that_do_not_fit_and_matrices_without_a_diagonal_are_refused() {
        let a = matrix(2, &[(0, 0, 1), (0, 1, 0), (1, 0, 1), (1, 1, 1)]);
        let form = |order: &[u32]| block_triangular(&a, Some(&Permutation::new(order.to_vec()).unwrap()));
        assert_eq!(form(&[0, 1]), block_triangular(&a, None));
        assert_eq!((form(&[1, 0]), form(&[0])), (None, None));
        assert_eq!(block_triangular(&matrix(2, &[(0, 0, 1), (1, 0, 1)]), None), None);
        assert_eq!(block_triangular(&Triplets::<f64>::new(1, 2).to_csr().unwrap(), None), None);
    }

    #[test]
    fn long_chains_need_no_stack() {
        let n = 200_000;
        let mut chain: Vec<_> = (0..n).flat_map(|i| [(i, i, 1), (i, (i + 1).min(n - 1), 1)]).collect();
        let form = block_triangular(&matrix(n, &chain), None).unwrap();
        assert!(form.borders.iter().copied().eq(0..=n) && form.rows.iter().copied().eq((0..n as u32).rev()));
        chain.push((n - 1, 0, 1));
        let form = block_triangular(&matrix(n, &chain), None).unwrap();
        assert!(form.borders == [0, n] && form.columns.iter().copied().eq(0..n as u32));
        // Without a diagonal each row moves once.
        let cycle: Vec<_> = (0..n).map(|i| (i, (i + 1) % n, 1)).collect();
        assert_eq!(block_triangular(&matrix(n, &cycle), None).unwrap().blocks().len(), n);
    }
}
