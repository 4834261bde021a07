//! Assembly of a matrix from entries in any order.
use crate::Csr;
use crate::build::assemble::{Entry, assemble, pieces};
use crate::storage::checks::check_sizes;
use lacuna_engine::{Error, Result, Scalar};

/// Parts shorter than this are merged.
const SMALL: usize = 4096;

/// Entries `(row, column, value)` in any order, with repeated ones to be summed, as a finite element code
/// produces them.
///
/// Threads assemble their own parts and [`append`](Triplets::append) them. Repeated entries are summed in
/// insertion order, so the same sequence always gives the same bits, with any number of threads.
///
/// ```
/// use lacuna_formats::Triplets;
///
/// let mut t = Triplets::new(2, 2);
/// t.push(1, 1, 3.0);
/// t.push(0, 0, 1.0);
/// t.push(1, 1, 0.5);
/// let a = t.to_csr()?;
/// assert_eq!((a.row_ptr(), a.col_idx(), a.values()), (&[0, 1, 2][..], &[0, 1][..], &[1.0, 3.5][..]));
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "triplets do nothing until they are made a matrix"]
pub struct Triplets<T> {
    rows: usize,
    cols: usize,
    parts: Vec<Vec<Entry<T>>>,
    /// The first entry outside the matrix.
    outside: Option<(usize, usize)>,
}

impl<T: Scalar> Triplets<T> {
    /// An empty matrix of `rows` rows and `cols` columns.
    pub fn new(rows: usize, cols: usize) -> Self {
        Self { rows, cols, parts: vec![Vec::new()], outside: None }
    }

    /// As [`Triplets::new`], with capacity for `entries`.
    pub fn with_capacity(rows: usize, cols: usize, entries: usize) -> Self {
        Self { parts: vec![Vec::with_capacity(entries)], ..Self::new(rows, cols) }
    }

    /// Entries known to lie inside the matrix, given in parts.
    pub(crate) fn from_parts(rows: usize, cols: usize, parts: Vec<Vec<Entry<T>>>) -> Self {
        Self { rows, cols, parts, outside: None }
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the matrix.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of entries pushed so far; repeated ones count separately.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Vec::len).sum()
    }

    /// Whether nothing has been pushed.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(Vec::is_empty)
    }

    /// The entries `(row, column, value)` in insertion order, without any outside the matrix.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize, T)> + '_ {
        self.parts.iter().flatten().map(|&(i, j, v)| (i as usize, j as usize, v))
    }

    /// Adds `value` at row `i` and column `j`. An entry outside the matrix makes [`Triplets::to_csr`] fail.
    #[inline]
    pub fn push(&mut self, i: usize, j: usize, value: T) {
        match (u32::try_from(i), u32::try_from(j), self.parts.last_mut()) {
            (Ok(row), Ok(column), Some(part)) if i < self.rows && j < self.cols => {
                part.push((row, column, value))
            }
            _ => {
                self.outside.get_or_insert((i, j));
            }
        }
    }

    /// Adds the entries of `other` after this one's; large parts are not copied.
    ///
    /// # Errors
    /// When the shapes differ.
    pub fn append(&mut self, other: Self) -> Result<()> {
        if (self.rows, self.cols) != (other.rows, other.cols) {
            return Err(Error::Shape {
                operation: "Triplets::append".into(),
                expected: format!("a {}x{} matrix", self.rows, self.cols),
                got: (other.rows, other.cols),
            });
        }
        for part in other.parts {
            match self.parts.last_mut() {
                Some(last) if last.len() < SMALL || part.len() < SMALL => last.extend_from_slice(&part),
                _ => self.parts.push(part),
            }
        }
        self.outside = self.outside.or(other.outside);
        Ok(())
    }

    /// The matrix: entries sorted, repeated ones summed in insertion order. Runs on the current rayon pool.
    ///
    /// # Errors
    /// When an entry lies outside the matrix, a sum is not finite, or the number of rows, columns or pushed
    /// entries exceeds `u32::MAX`.
    pub fn to_csr(&self) -> Result<Csr<T>> {
        const OPERATION: &str = "Triplets::to_csr";
        self.check(OPERATION)?;
        let pieces = self.parts.iter().flat_map(|part| pieces(part)).collect();
        assemble(OPERATION, self.rows, self.cols, pieces)
    }

    /// Fails if there are too many entries, or one outside the matrix.
    pub(crate) fn check(&self, operation: &str) -> Result<()> {
        check_sizes(operation, self.rows, self.cols, self.len())?;
        match self.outside {
            Some((row, column)) => Err(Error::Entry {
                operation: operation.into(),
                row,
                column,
                message: format!("lies outside the {}x{} matrix", self.rows, self.cols),
            }),
            None => Ok(()),
        }
    }
}

impl<T: Scalar> Extend<(usize, usize, T)> for Triplets<T> {
    fn extend<I: IntoIterator<Item = (usize, usize, T)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(i, j, value)| self.push(i, j, value));
    }
}

/// A matrix as large as its entries need; for one that ends with empty rows or columns, [`Triplets::new`] and
/// [`Triplets::extend`].
impl<T: Scalar> FromIterator<(usize, usize, T)> for Triplets<T> {
    fn from_iter<I: IntoIterator<Item = (usize, usize, T)>>(entries: I) -> Self {
        let mut all = Triplets::new(0, 0);
        for (i, j, value) in entries {
            (all.rows, all.cols) = (all.rows.max(i.saturating_add(1)), all.cols.max(j.saturating_add(1)));
            all.push(i, j, value);
        }
        all
    }
}
