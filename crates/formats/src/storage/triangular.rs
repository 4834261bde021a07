//! Triangular matrices stored for solves.
use crate::Csr;
use lacuna_engine::{Argument, Error, Format, Result, Scalar, Triangle, compiled_here, pages};

const OPERATION: &str = "Triangular";

/// The part of a matrix to solve with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The diagonal and the entries left of it, solved from the first row on.
    Lower,
    /// The diagonal and the entries right of it, solved from the last row on.
    Upper,
}

/// A triangular matrix with the levels of its rows: the level of a row follows the highest level of the rows
/// it depends on. Rows of a level may be solved concurrently; the order of each row's sum is fixed, so that
/// any schedule gives the same bits (see [`Triangle`]).
///
/// Storage is 12 bytes per entry in `f64`, including the diagonal, and 4 per row. Its product is that of the
/// triangular matrix, although the diagonal is stored as reciprocals.
///
/// Reference: Saad 2003, Iterative Methods for Sparse Linear Systems, section 11.6.3,
/// doi:10.1137/1.9780898718003.
#[derive(Clone, Debug, PartialEq)]
pub struct Triangular<T> {
    row_ptr: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<T>,
    levels: Vec<u32>,
    /// The place of each row.
    places: Vec<u32>,
    /// The place of each row in sequential solve order.
    sequence: Vec<u32>,
}

impl<T: Scalar> Triangular<T> {
    /// A part of a square matrix; the rest is ignored. `reciprocals` are those of the diagonal, if it is not
    /// the matrix's own. With `names`, row and column `i` of the matrix are element `names[i]` of the
    /// vectors, each used once.
    ///
    /// # Errors
    /// [`Error::Shape`] unless square; [`Error::Length`] for wrong lengths; [`Error::Entry`] if the matrix's
    /// own diagonal has no finite reciprocal, or a given one is not finite; [`Error::Structure`] for names
    /// that are not a permutation; [`Error::OutOfMemory`].
    pub fn part(a: &Csr<T>, side: Half, reciprocals: Option<&[T]>, names: Option<&[u32]>) -> Result<Self> {
        compiled_here!(T, |a: &Csr<T>,
                           side: Half,
                           reciprocals: Option<&[T]>,
                           names: Option<&[u32]>|
         -> Result<Triangular<T>> {
            let n = a.rows();
            if n != a.cols() {
                let (expected, got) = ("a square matrix".into(), (n, a.cols()));
                return Err(Error::Shape { operation: OPERATION.into(), expected, got });
            }
            if let Some(given) = reciprocals {
                Error::check_length(OPERATION, "the reciprocals", n, given.len())?;
            }
            if let Some(names) = names {
                Error::check_length(OPERATION, "the names", n, names.len())?;
                crate::Permutation::new(names.to_vec())?;
            }
            let name = |i: usize| names.map_or(i as u32, |names| names[i]);
            // Columns increase, so that a part is a contiguous range of a row's entries.
            let run = |i: usize| {
                let columns = a.row_slices(i).0;
                let first = a.row_ptr()[i] as usize;
                match side {
                    Half::Lower => first..first + columns.partition_point(|&j| (j as usize) < i),
                    Half::Upper => {
                        first + columns.partition_point(|&j| j as usize <= i)..first + columns.len()
                    }
                }
            };
            let turn = |k: usize| if side == Half::Lower { k } else { n - 1 - k };
            let mut level = vec![0u32; n];
            let mut sizes: Vec<u32> = Vec::new();
            let mut nnz = n;
            for k in 0..n {
                let i = turn(k);
                let needs = &a.col_idx()[run(i)];
                nnz += needs.len();
                let own = needs.iter().map(|&j| level[j as usize] + 1).max().unwrap_or(0);
                level[i] = own;
                if own as usize == sizes.len() {
                    sizes.push(0);
                }
                sizes[own as usize] += 1;
            }
            crate::storage::checks::check_sizes(OPERATION, n, n, nnz)?;
            let mut levels = Vec::with_capacity(sizes.len() + 1);
            levels.push(0);
            levels.extend(sizes.iter().scan(0, |end, size| {
                *end += size;
                Some(*end)
            }));
            // The rows of a level in solve order.
            let mut next = levels.clone();
            let (mut places, mut order, mut sequence) = (vec![0u32; n], vec![0u32; n], Vec::with_capacity(n));
            for k in 0..n {
                let i = turn(k);
                let place = &mut next[level[i] as usize];
                (places[name(i) as usize], order[*place as usize]) = (*place, i as u32);
                sequence.push(*place);
                *place += 1;
            }
            let mut row_ptr = Vec::with_capacity(n + 1);
            row_ptr.push(0);
            let mut columns = pages::zeroed::<u32>(OPERATION, nnz)?;
            let mut values = pages::zeroed::<T>(OPERATION, nnz)?;
            let mut at = 0;
            for &i in &order {
                let i = i as usize;
                let own = run(i);
                for (&j, &v) in a.col_idx()[own.clone()].iter().zip(&a.values()[own]) {
                    (columns[at], values[at]) = (name(j as usize), v);
                    at += 1;
                }
                let reciprocal = match reciprocals {
                    Some(given) => given[i],
                    None => T::one().quotient(a.get(i, i).unwrap_or(T::zero())),
                };
                if !reciprocal.finite() || reciprocal == T::zero() {
                    let row = name(i) as usize;
                    let message = format!("the reciprocal of the diagonal entry is {reciprocal:e}");
                    return Err(Error::Entry { operation: OPERATION.into(), row, column: row, message });
                }
                (columns[at], values[at]) = (name(i), reciprocal);
                at += 1;
                row_ptr.push(at as u32);
            }
            Ok(Triangular { row_ptr, columns, values, levels, places, sequence })
        })(a, side, reciprocals, names)
    }

    /// The places in the order of the triangle itself: the row order for a lower one without names. It is
    /// also a valid solve order, and accesses vectors in memory order.
    pub fn sequence(&self) -> &[u32] {
        &self.sequence
    }

    /// Number of levels; 0 without rows.
    pub fn depth(&self) -> usize {
        self.levels.len() - 1
    }
}

impl<T: Scalar> Format<T> for Triangular<T> {
    fn shape(&self) -> (usize, usize) {
        (self.places.len(), self.places.len())
    }
    fn nnz(&self) -> usize {
        self.values.len()
    }
    fn kernel(&self) -> &'static str {
        "triangular"
    }
    fn arguments(&self) -> Vec<Argument<'_, T>> {
        vec![
            Argument::Indices(&self.row_ptr),
            Argument::Indices(&self.columns),
            Argument::Values(&self.values),
            Argument::Indices(&self.levels),
        ]
    }
    fn row(&self, i: usize, x: &[T]) -> T {
        let place = self.places[i] as usize;
        let own = self.row_ptr[place] as usize..self.row_ptr[place + 1] as usize - 1;
        let diagonal = x[i].quotient(self.values[own.end]);
        let entries = self.columns[own.clone()].iter().zip(&self.values[own]);
        entries.fold(diagonal, |sum, (&j, &v)| v.fma(x[j as usize], sum))
    }
    fn triangle(&self) -> Option<Triangle<'_, T>> {
        let Triangular { row_ptr, columns, values, levels, .. } = self;
        Some(Triangle { row_ptr, columns, values, levels })
    }
}

#[cfg(test)]
mod tests {
    use super::{Half, Triangular};
    use crate::{Csr, Triplets};
    use lacuna_engine::{Error, Format};

    fn matrix(n: usize, entries: &[(usize, usize, f64)]) -> Csr<f64> {
        let mut triplets = Triplets::new(n, n);
        entries.iter().for_each(|&(i, j, v)| triplets.push(i, j, v));
        triplets.to_csr().unwrap()
    }

    /// Rows 1 and 2 depend on row 0, row 3 on rows 1 and 2; row 4 is independent.
    fn diamond() -> Csr<f64> {
        let entries = [(1, 0, 2.0), (2, 0, -1.0), (3, 1, 4.0), (3, 2, 8.0), (0, 3, 9.0), (2, 4, 7.0)];
        let diagonal = (0..5).map(|i| (i, i, f64::powi(2.0, i as i32)));
        matrix(5, &entries.into_iter().chain(diagonal).collect::<Vec<_>>())
    }

    #[test]
    fn levels_are_as_few_as_can_be_and_solves_invert_products() {
        let a = diamond();
        for (side, levels) in [(Half::Lower, vec![0, 2, 4, 5]), (Half::Upper, vec![0, 3, 5])] {
            let t = Triangular::part(&a, side, None, None).unwrap();
            let triangle = t.triangle().unwrap();
            assert_eq!(triangle.levels, levels, "{side:?}");
            let x = [3.0, -1.0, 0.5, 2.0, 1.0];
            let b: Vec<f64> = (0..5).map(|i| t.row(i, &x)).collect();
            let mut solved = [f64::NAN; 5];
            triangle.solve(&b, &mut solved);
            assert_eq!(solved, x, "{side:?}");
        }
    }

    #[test]
    fn names_are_where_rows_are_in_the_vectors() {
        let (a, names) = (diamond(), [3u32, 0, 4, 1, 2]);
        let plain = Triangular::part(&a, Half::Lower, Some(&[1.0; 5]), None).unwrap();
        let named = Triangular::part(&a, Half::Lower, Some(&[1.0; 5]), Some(&names)).unwrap();
        let b = [1.0, 2.0, 3.0, 4.0, 5.0];
        let mut turned = [0.0; 5];
        (0..5).for_each(|i| turned[names[i] as usize] = b[i]);
        let (mut x, mut y) = ([0.0; 5], [0.0; 5]);
        plain.triangle().unwrap().solve(&b, &mut x);
        named.triangle().unwrap().solve(&turned, &mut y);
        (0..5).for_each(|i| assert_eq!(x[i], y[names[i] as usize], "{i}"));
        assert_eq!(x, [1.0, 0.0, 4.0, -28.0, 5.0]);
    }

    #[test]
    fn what_cannot_be_solved_with_is_refused() {
        let a = matrix(3, &[(0, 0, 1.0), (1, 0, 1.0), (2, 2, 1.0)]);
        let refused = Triangular::part(&a, Half::Lower, None, Some(&[2, 1, 0]));
        assert!(matches!(refused, Err(Error::Entry { row: 1, column: 1, .. })), "{refused:?}");
        let refused = Triangular::part(&a, Half::Lower, Some(&[1.0; 3]), Some(&[0, 0, 1]));
        assert!(matches!(refused, Err(Error::Structure { .. })), "{refused:?}");
        assert!(Triangular::part(&a, Half::Lower, Some(&[1.0; 2]), None).is_err());
        let none = Triangular::part(&matrix(0, &[]), Half::Upper, None, None).unwrap();
        assert_eq!((none.depth(), none.shape()), (0, (0, 0)));
    }
}
