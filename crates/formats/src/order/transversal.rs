//! A matching of rows and columns with large entries.
use crate::order::assignment::{NONE, Search};
use crate::order::logarithm::log2;
use crate::storage::pattern::PatternRef;
use crate::{Csr, Permutation};
use lacuna_engine::Scalar;

/// Entries examined in searches, per entry of the matrix; rows left then are matched whatever their entries.
const MOST_EXAMINED: usize = 100;

/// The order of the rows of a square matrix that puts large entries on the diagonal: of all orders with a
/// diagonal without zeros, one whose diagonal has the largest product of moduli, but for a factor of less than
/// `1 + 2^-33` per row, since logarithms are rounded. `None` if there is no such order, which makes the matrix
/// singular for any values of its entries, and for a matrix that is not square.
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
/// at the distance `-log |a_ij|`, after paths of two steps through the entries at the least distance.
pub fn heaviest_diagonal<T: Scalar>(a: &Csr<T>) -> Option<Permutation> {
    scaled_diagonal(a).map(|found| found.order)
}

/// An order of the rows, and powers of two that scale a matrix such that none of its entries is much larger than
/// those on the diagonal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaledDiagonal {
    /// The order of the rows, as [`heaviest_diagonal`] returns it: the row matched with each column.
    pub order: Permutation,
    /// The exponent of two for each row, in the old order.
    pub rows: Vec<i32>,
    /// The exponent of two for each column.
    pub columns: Vec<i32>,
}

/// [`heaviest_diagonal`] with scales: no entry of `2^r A 2^c` has a modulus above 2, and those that the order puts
/// on the diagonal have one between 1/2 and 2. The two exponents of an entry should be added before it is
/// multiplied, since either power alone may be out of range. (Exponents beyond ±2^18 have rounding errors, which
/// may exceed the bounds by a relative 2^-33.)
///
/// If the search ends early, as described there, no entry is above 2 either, but some on the diagonal may be below
/// 1/2.
///
/// ```
/// use lacuna_formats::{Triplets, scaled_diagonal};
///
/// let mut a = Triplets::new(2, 2);
/// [(0, 0, 1e-9), (0, 1, 8e9), (1, 0, 5e3), (1, 1, 2e9)].into_iter().for_each(|(i, j, v)| a.push(i, j, v));
/// let a = a.to_csr()?;
/// let found = scaled_diagonal(&a).expect("a nonzero diagonal");
/// for (i, j, v) in a.entries() {
///     let scaled = v * 2f64.powi(found.rows[i] + found.columns[j]);
///     assert!(scaled <= 2.0 && (found.order.order()[j] as usize != i || scaled >= 0.5));
/// }
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
///
/// Reference: Duff and Koster 2001, doi:10.1137/S0895479899358443: the scales are the dual variables of the matching.
pub fn scaled_diagonal<T: Scalar>(a: &Csr<T>) -> Option<ScaledDiagonal> {
    within(PatternRef::of(a), moduli(a), MOST_EXAMINED * a.nnz())
}

fn moduli<T: Scalar>(a: &Csr<T>) -> Vec<f64> {
    a.values().iter().map(|v| v.modulus()).collect()
}

/// [`scaled_diagonal`] by searches that examine that many entries; then any diagonal without zeros.
fn within(a: PatternRef<'_>, mut moduli: Vec<f64>, most: usize) -> Option<ScaledDiagonal> {
    if a.rows != a.cols {
        return None;
    }
    moduli.iter_mut().for_each(|v| *v = -log2(*v));
    let mut search = Search::new(a, &moduli);
    search.match_tight();
    for row in 0..a.rows {
        if search.column_of[row] == NONE {
            if search.examined > most {
                search.complete()?;
                break;
            }
            if !search.augment(row) {
                return None;
            }
        }
    }
    // A sum is above that of the dual variables by less than 1, and below it by less than 1.
    let rows = search.of_rows.iter().map(|v| v.floor() as i32).collect();
    let columns = search.of_columns.iter().map(|v| v.ceil() as i32).collect();
    Some(ScaledDiagonal { order: Permutation::known(search.row_of), rows, columns })
}

#[cfg(test)]
mod tests {
    use super::{heaviest_diagonal, moduli, within};
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

        #[test]
        fn scaled_entries_are_at_most_2_and_the_matched_ones_at_least_a_half(
            n in 1usize..30, shift in 0usize..30, mantissas in prop::collection::vec(1.0f64..2.0, 30),
            entries in prop::collection::vec((0usize..30, 0usize..30, 1.0f64..2.0, -530i32..480), 0..120),
        ) {
            let mut triplets = Triplets::new(n, n);
            (0..n).for_each(|i| triplets.push(i, (i + shift) % n, mantissas[i]));
            entries.iter().for_each(|&(i, j, m, e)| triplets.push(i % n, j % n, m * 2f64.powi(2 * e)));
            let a = triplets.to_csr().unwrap();
            for most in [0, usize::MAX] {
                let found = within(PatternRef::of(&a), moduli(&a), most).unwrap();
                for (i, j, v) in a.entries() {
                    let scaled = libm::scalbn(v.abs(), found.rows[i] + found.columns[j]);
                    let matched = found.order.order()[j] as usize == i;
                    prop_assert!(scaled <= 2.0, "{scaled}");
                    prop_assert!(most == 0 || !matched || scaled >= 0.5, "{scaled}");
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
        let orders = [0, usize::MAX].map(|most| within(PatternRef::of(&a), moduli(&a), most).unwrap().order);
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
        // Row 0 takes a column from row 3, which has another, and not from rows 1 and 2.
        let mut equal = Triplets::new(4, 4);
        [(0, 1), (0, 3), (1, 1), (1, 2), (2, 1), (2, 2), (3, 0), (3, 3)]
            .into_iter()
            .for_each(|(i, j)| equal.push(i, j, 0.3));
        assert_eq!(heaviest_diagonal(&equal.to_csr().unwrap()).unwrap().order(), [3, 1, 2, 0]);
    }

    #[test]
    fn there_is_an_order_of_no_rows_and_none_of_a_matrix_that_is_not_square() {
        assert!(heaviest_diagonal(&Triplets::<f64>::new(0, 0).to_csr().unwrap()).unwrap().is_empty());
        assert_eq!(heaviest_diagonal(&Triplets::<f64>::new(0, 1).to_csr().unwrap()), None);
    }
}
