//! Rows and columns in another order.
use crate::Csr;
use crate::parallel;
use lacuna_engine::{Error, Result, Scalar, compiled_here};

/// Minimum number of elements per thread.
const GRAIN: usize = 4096;
const OPERATION: &str = "Csr::permuted";

/// An order of `n` rows: row `i` of the new order is row `order[i]` of the old one.
///
/// ```
/// use lacuna_formats::Permutation;
///
/// let turned = Permutation::new(vec![2, 0, 1])?;
/// let mut new = [0; 3];
/// turned.gather(&[10, 11, 12], &mut new)?;
/// assert_eq!(new, [12, 10, 11]);
/// assert!(Permutation::new(vec![0, 0]).is_err());
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    order: Vec<u32>,
}

impl Permutation {
    /// A permutation of the given order.
    ///
    /// # Errors
    /// [`Error::Structure`] where a row is out of range or comes twice.
    pub fn new(order: Vec<u32>) -> Result<Self> {
        let mut seen = vec![false; order.len()];
        for (i, &old) in order.iter().enumerate() {
            let message = match seen.get_mut(old as usize) {
                Some(seen) if !*seen => {
                    *seen = true;
                    continue;
                }
                Some(_) => format!("row {old} comes a second time at place {i}"),
                None => format!("row {old} at place {i} is out of range, there are {}", order.len()),
            };
            return Err(Error::Structure { operation: "Permutation::new".into(), message });
        }
        Ok(Permutation { order })
    }

    /// A permutation of an order known to be valid.
    pub(crate) fn known(order: Vec<u32>) -> Self {
        debug_assert!(Self::new(order.clone()).is_ok());
        Permutation { order }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.order.len()
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
    /// The old row of each new one.
    pub fn order(&self) -> &[u32] {
        &self.order
    }
    /// The new row of each old one.
    pub fn inverse(&self) -> Vec<u32> {
        let mut inverse = vec![0; self.order.len()];
        self.order.iter().enumerate().for_each(|(new, &old)| inverse[old as usize] = new as u32);
        inverse
    }

    /// `new[i] ← old[order[i]]`: from the old order into the new one.
    ///
    /// # Errors
    /// [`Error::Length`] unless both have the length of the permutation.
    pub fn gather<V: Copy + Send + Sync>(&self, old: &[V], new: &mut [V]) -> Result<()> {
        Error::check_length("Permutation::gather", "the old vector", self.len(), old.len())?;
        Error::check_length("Permutation::gather", "the new vector", self.len(), new.len())?;
        parallel::for_each(new.chunks_mut(GRAIN).zip(self.order.chunks(GRAIN)), |(new, order)| {
            new.iter_mut().zip(order).for_each(|(new, &at)| *new = old[at as usize]);
        });
        Ok(())
    }

    /// `old[order[i]] ← new[i]`: back into the old order.
    ///
    /// # Errors
    /// [`Error::Length`] unless both have the length of the permutation.
    pub fn scatter<V: Copy>(&self, new: &[V], old: &mut [V]) -> Result<()> {
        Error::check_length("Permutation::scatter", "the new vector", self.len(), new.len())?;
        Error::check_length("Permutation::scatter", "the old vector", self.len(), old.len())?;
        new.iter().zip(&self.order).for_each(|(&new, &at)| old[at as usize] = new);
        Ok(())
    }
}

impl<T: Scalar> Csr<T> {
    /// `P A Pᵀ`: rows and columns in the given order.
    ///
    /// # Errors
    /// [`Error::Shape`] if the matrix is not square, [`Error::Length`] if the permutation has a different
    /// length.
    pub fn permuted(&self, p: &Permutation) -> Result<Self> {
        if self.rows() != self.cols() {
            let (expected, got) = ("a square matrix".into(), (self.rows(), self.cols()));
            return Err(Error::Shape { operation: OPERATION.into(), expected, got });
        }
        self.rearranged(Some(p), Some(p))
    }

    /// `P A Qᵀ`: rows in one order and columns in another; `None` leaves them as they are.
    ///
    /// # Errors
    /// [`Error::Length`] if a permutation has a different length.
    pub fn rearranged(&self, rows: Option<&Permutation>, columns: Option<&Permutation>) -> Result<Self> {
        compiled_here!(T, |a: &Csr<T>,
                           of_rows: Option<&Permutation>,
                           of_columns: Option<&Permutation>|
         -> Result<Csr<T>> {
            let (rows, cols) = (a.rows(), a.cols());
            let (p, q) = (of_rows.map_or(rows, Permutation::len), of_columns.map_or(cols, Permutation::len));
            Error::check_length(OPERATION, "the permutation of the rows", rows, p)?;
            Error::check_length(OPERATION, "the permutation of the columns", cols, q)?;
            let to = of_columns.map(Permutation::inverse);
            let from = |new: usize| of_rows.map_or(new, |p| p.order[new] as usize);
            let mut row_ptr = Vec::with_capacity(rows + 1);
            row_ptr.push(0);
            row_ptr.extend((0..rows).scan(0, |end, new| {
                *end += a.row_slices(from(new)).0.len() as u32;
                Some(*end)
            }));
            let mut col_idx = lacuna_engine::pages::zeroed::<u32>(OPERATION, a.nnz())?;
            let mut values = lacuna_engine::pages::zeroed::<T>(OPERATION, a.nnz())?;
            let mut tasks = Vec::new();
            let (mut c_left, mut v_left) = (&mut col_idx[..], &mut values[..]);
            for run in parallel::ranges(rows, GRAIN) {
                let (c, v);
                (c, c_left) = c_left.split_at_mut((row_ptr[run.end] - row_ptr[run.start]) as usize);
                (v, v_left) = v_left.split_at_mut((row_ptr[run.end] - row_ptr[run.start]) as usize);
                tasks.push((run, c, v));
            }
            parallel::for_each(tasks, |(rows, c, v)| {
                let (mut at, mut row) = (0, Vec::new());
                for new in rows {
                    row.clear();
                    let name = |j: usize| to.as_ref().map_or(j as u32, |to| to[j]);
                    row.extend(a.row_entries(from(new)).map(|(j, v)| (name(j), v)));
                    row.sort_unstable_by_key(|&(j, _)| j);
                    for &(j, value) in &row {
                        (c[at], v[at]) = (j, value);
                        at += 1;
                    }
                }
            });
            Ok(Csr::<T>::assembled(rows, cols, row_ptr, col_idx, values))
        })(self, rows, columns)
    }
}
