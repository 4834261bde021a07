//! Compressed sparse rows.
use crate::Triplets;
use crate::algebra::turned;
use crate::build::compressed;
use crate::parallel;
use crate::storage::checks::{check_finite, check_sizes, position};
use crate::storage::precision::converted;
use lacuna_engine::{
    Argument, Error, Format, MAX_LANES, Result, Scalar, compiled_here, is_long, pages, piece_of,
};
use std::alloc::{Layout, handle_alloc_error};
use std::sync::Arc;

/// Entries per row that justify another lane in the final halving.
const ENTRIES_PER_LANE: usize = 8;
/// Minimum number of elements per thread.
const GRAIN: usize = 8192;

/// A sparse matrix in compressed sparse rows: the columns and values of each row, row by row.
///
/// Always valid: columns of a row are in range and strictly increasing, and every value is finite. Rows,
/// columns and entries are each at most `u32::MAX`. A matrix may be empty (0x0), rectangular, and have empty
/// rows.
///
/// The number of lanes of a row sum suits an average row; a much longer row is summed in pieces, see
/// [`is_long`].
///
/// ```
/// use lacuna_formats::Csr;
///
/// let a = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![4.0, -1.0, 4.0])?;
/// let mut y = [0.0; 2];
/// a.product(&[1.0, 2.0], &mut y)?;
/// assert_eq!(y, [2.0, 8.0]);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Csr<T> {
    rows: usize,
    cols: usize,
    /// Shared by matrices with the same pattern, as the columns are.
    row_ptr: Arc<Vec<u32>>,
    col_idx: Arc<Vec<u32>>,
    values: Vec<T>,
    lanes: usize,
}

impl<T: Scalar> Csr<T> {
    /// The matrix whose row `i` has its columns and values at `row_ptr[i]..row_ptr[i + 1]` of `col_idx` and
    /// `values`.
    ///
    /// # Errors
    /// When a length does not match, `row_ptr` does not start at 0, is not nondecreasing or does not end at
    /// the number of entries, a column is out of range, the columns of a row are not strictly increasing, or
    /// a value is not finite. Each error names the row and column. [`Triplets`] takes entries that are
    /// unsorted or repeated.
    pub fn new(
        rows: usize,
        cols: usize,
        row_ptr: Vec<u32>,
        col_idx: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self> {
        compressed("Csr::new", rows, cols, row_ptr, col_idx, values)
    }

    /// A matrix from arrays already known to be valid.
    pub(crate) fn assembled(
        rows: usize,
        cols: usize,
        row_ptr: impl Into<Arc<Vec<u32>>>,
        col_idx: impl Into<Arc<Vec<u32>>>,
        values: Vec<T>,
    ) -> Self {
        let (row_ptr, col_idx) = (row_ptr.into(), col_idx.into());
        debug_assert_eq!(row_ptr.len(), rows + 1);
        debug_assert_eq!(row_ptr[rows] as usize, values.len());
        debug_assert_eq!(col_idx.len(), values.len());
        let filled = parallel::count(rows, GRAIN, |i| row_ptr[i + 1] > row_ptr[i]);
        let lanes = lanes(values.len(), filled);
        Self { rows, cols, row_ptr, col_idx, values, lanes }
    }

    /// The identity with `n` rows.
    ///
    /// # Errors
    /// When `n` exceeds `u32::MAX`.
    pub fn identity(n: usize) -> Result<Self> {
        check_sizes("Csr::identity", n, n, n)?;
        let (n_ptr, n_idx): (Vec<_>, Vec<_>) = ((0..=n as u32).collect(), (0..n as u32).collect());
        Ok(Self::assembled(n, n, n_ptr, n_idx, vec![T::one(); n]))
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Stored entries.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// The start of each row in [`Csr::col_idx`] and [`Csr::values`], and the end of the last.
    pub fn row_ptr(&self) -> &[u32] {
        &self.row_ptr
    }

    /// The column of each entry.
    pub fn col_idx(&self) -> &[u32] {
        &self.col_idx
    }

    /// The value of each entry.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Columns and values of row `i`; empty if there is no such row.
    #[inline]
    pub fn row_slices(&self, i: usize) -> (&[u32], &[T]) {
        if i >= self.rows {
            return (&[], &[]);
        }
        let range = self.row_ptr[i] as usize..self.row_ptr[i + 1] as usize;
        (&self.col_idx[range.clone()], &self.values[range])
    }

    /// The entries `(column, value)` of row `i` by increasing column; empty if there is no such row.
    pub fn row_entries(&self, i: usize) -> impl ExactSizeIterator<Item = (usize, T)> + '_ {
        let (columns, values) = self.row_slices(i);
        columns.iter().zip(values).map(|(&c, &v)| (c as usize, v))
    }

    /// All entries `(row, column, value)`, row by row.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize, T)> + '_ {
        (0..self.rows).flat_map(|i| self.row_entries(i).map(move |(j, v)| (i, j, v)))
    }

    /// The stored entry at row `i` and column `j`, if there is one.
    pub fn get(&self, i: usize, j: usize) -> Option<T> {
        let (columns, values) = self.row_slices(i);
        let k = columns.binary_search(&u32::try_from(j).ok()?).ok()?;
        Some(values[k])
    }

    /// The row pointers, the columns, and the values, mutable; new values must be finite.
    pub(crate) fn parts_mut(&mut self) -> (&[u32], &[u32], &mut [T]) {
        (&self.row_ptr, &self.col_idx, &mut self.values)
    }

    /// The row pointers and the columns, shared.
    pub(crate) fn shared_pattern(&self) -> (Arc<Vec<u32>>, Arc<Vec<u32>>) {
        (self.row_ptr.clone(), self.col_idx.clone())
    }

    /// Row and column of entry `k`.
    pub(crate) fn place(&self, k: usize) -> (usize, usize) {
        position(&self.row_ptr, &self.col_idx, k)
    }

    /// The diagonal, zero where no entry is stored; as long as the smaller dimension.
    pub fn diagonal(&self) -> Vec<T> {
        let n = self.rows.min(self.cols);
        let entry = |i| self.get(i, i).unwrap_or(T::zero());
        parallel::collect(n, GRAIN / 8, entry)
    }

    /// `y = A x`, row by row in the canonical order: the reference for every backend.
    ///
    /// # Errors
    /// When the length of `x` is not the number of columns or that of `y` not the number of rows.
    pub fn product(&self, x: &[T], y: &mut [T]) -> Result<()> {
        compiled_here!(T, |a: &Csr<T>, x: &[T], y: &mut [T]| -> Result<()> {
            Error::check_fits("Csr::product", a.shape(), "x", a.cols, x.len())?;
            Error::check_fits("Csr::product", a.shape(), "y", a.rows, y.len())?;
            y.iter_mut().enumerate().for_each(|(i, y)| *y = a.row(i, x));
            Ok(())
        })(self, x, y)
    }

    /// The transpose. Aborts if memory is exhausted, as any `Vec` does.
    pub fn transpose(&self) -> Self {
        turned(self, |v| v).unwrap_or_else(|_| handle_alloc_error(Layout::for_value(&*self.values)))
    }

    /// The conjugate transpose, as [`Csr::transpose`].
    pub fn adjoint(&self) -> Self {
        turned(self, T::conj).unwrap_or_else(|_| handle_alloc_error(Layout::for_value(&*self.values)))
    }

    /// A hash of the shape and indices: equal for two matrices only if they have the same structure, with
    /// near certainty.
    pub fn structure_hash(&self) -> u128 {
        compiled_here!(T, |a: &Csr<T>| -> u128 {
            // Runs are hashed separately, so that threads share the work and their number does not matter.
            let mix = |hash: u128, word: u64| {
                let low = (hash as u64 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let high = ((hash >> 64) as u64 ^ low.rotate_left(29)).wrapping_mul(0xd6e8_feb8_6659_fd93);
                (u128::from(high ^ word.rotate_left(32)) << 64) | u128::from(low ^ (high >> 32))
            };
            let run = |words: &[u32]| words.iter().fold(1, |hash, &word| mix(hash, word.into()));
            let of = |words: &[u32]| parallel::map(words.chunks(GRAIN), run);
            let sizes = [a.rows, a.cols, a.nnz()].map(|size| size as u128);
            let parts = sizes.into_iter().chain(of(&a.row_ptr)).chain(of(&a.col_idx));
            parts.fold(0, |hash, part| mix(mix(hash, part as u64), (part >> 64) as u64))
        })(self)
    }

    /// The same entries as triplets.
    pub fn to_triplets(&self) -> Triplets<T> {
        let share = |rows: std::ops::Range<usize>| {
            let entries = rows.flat_map(|i| self.row_entries(i).map(move |(j, v)| (i as u32, j as u32, v)));
            entries.collect()
        };
        let parts = parallel::map(self.row_shares(), share);
        Triplets::from_parts(self.rows, self.cols, parts)
    }

    /// Splits the rows into runs of roughly equal numbers of entries, one per task. They depend only on the
    /// matrix.
    pub fn row_shares(&self) -> Vec<std::ops::Range<usize>> {
        let shares = (self.nnz().max(self.rows) >> 14).clamp(1, 128).max(self.nnz().max(self.rows) >> 18);
        let cut = |k: usize| match k {
            0 => 0,
            k if k == shares => self.rows,
            k => {
                let work = |i: usize| self.row_ptr[i] as usize + i;
                let goal = (self.nnz() + self.rows) / shares * k;
                let (mut low, mut high) = (0, self.rows);
                while low < high {
                    let middle = low + (high - low) / 2;
                    if work(middle) < goal { low = middle + 1 } else { high = middle }
                }
                low
            }
        };
        (0..shares).map(|k| cut(k)..cut(k + 1)).collect()
    }

    /// The matrix with `f` applied to each entry, in any number type.
    ///
    /// # Errors
    /// When `f` of an entry is not finite.
    pub fn map<U: Scalar>(&self, f: impl Fn(T) -> U + Sync + Send) -> Result<Csr<U>> {
        self.with_values(parallel::collect(self.nnz(), GRAIN, |k| f(self.values[k])))
    }

    /// The matrix times the number `factor`.
    ///
    /// # Errors
    /// When an entry of the result is not finite.
    pub fn scaled(&self, factor: T) -> Result<Self> {
        self.map(|v| v * factor)
    }

    /// The matrix converted to another number type, each part rounded.
    ///
    /// # Errors
    /// When an entry is too large for `U`, or has an imaginary part and `U` is real.
    pub fn cast<U: Scalar>(&self) -> Result<Csr<U>> {
        if T::KIND.is_complex()
            && !U::KIND.is_complex()
            && let Some(k) = parallel::find_first(self.nnz(), GRAIN, |k| self.values[k].im() != 0.0)
        {
            let (row, column) = position(&self.row_ptr, &self.col_idx, k);
            return Err(Error::Entry {
                operation: "Csr::cast".into(),
                row,
                column,
                message: format!(
                    "{} has an imaginary part, which {} cannot hold; use a complex type",
                    self.values[k],
                    U::KIND.name()
                ),
            });
        }
        self.with_values(converted("Csr::cast", &self.values)?)
    }

    /// A matrix of the same structure with other values, given in the order of [`Csr::values`].
    ///
    /// # Errors
    /// When there are not [`Csr::nnz`] values or one is not finite.
    pub fn with_values<U: Scalar>(&self, values: Vec<U>) -> Result<Csr<U>> {
        const OPERATION: &str = "Csr::with_values";
        Error::check_length(OPERATION, "values", self.nnz(), values.len())?;
        check_finite(OPERATION, &self.row_ptr, &self.col_idx, &values)?;
        let (row_ptr, col_idx) = (self.row_ptr.clone(), self.col_idx.clone());
        Ok(Csr { rows: self.rows, cols: self.cols, row_ptr, col_idx, values, lanes: self.lanes })
    }

    /// The same matrix whose row sums take another number of lanes: 1 is a thread for each row of a GPU, 32 a warp. Sums, and so the bits of
    /// products, depend on it.
    ///
    /// # Errors
    /// [`Error::Argument`] unless it is a power of two up to 32; [`Error::OutOfMemory`].
    pub fn with_lanes(&self, lanes: usize) -> Result<Self> {
        if !lanes.is_power_of_two() || lanes > MAX_LANES {
            let message = format!("expected a power of two up to {MAX_LANES}, got {lanes}");
            return Err(Error::Argument { what: "lanes of a row".into(), message });
        }
        let mut values = pages::zeroed("Csr::with_lanes", self.nnz())?;
        values.copy_from_slice(&self.values);
        let (row_ptr, col_idx) = (self.row_ptr.clone(), self.col_idx.clone());
        Ok(Csr { rows: self.rows, cols: self.cols, row_ptr, col_idx, values, lanes })
    }

    /// A matrix of the same structure whose values are 0.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn zeroed(&self) -> Result<Csr<T>> {
        let values = pages::zeroed("Csr::zeroed", self.nnz())?;
        let (row_ptr, col_idx) = (self.row_ptr.clone(), self.col_idx.clone());
        Ok(Csr { rows: self.rows, cols: self.cols, row_ptr, col_idx, values, lanes: self.lanes })
    }

    /// The matrix with other values, in place of its own.
    pub(crate) fn having(mut self, values: Vec<T>) -> Result<Self> {
        const OPERATION: &str = "Csr::having";
        Error::check_length(OPERATION, "values", self.nnz(), values.len())?;
        check_finite(OPERATION, &self.row_ptr, &self.col_idx, &values)?;
        self.values = values;
        Ok(self)
    }

    /// Replaces the values, given in the order of [`Csr::values`], in place.
    ///
    /// # Errors
    /// When there are not [`Csr::nnz`] values or one is not finite; the matrix is then unchanged.
    pub fn set_values(&mut self, values: &[T]) -> Result<()> {
        const OPERATION: &str = "Csr::set_values";
        Error::check_length(OPERATION, "values", self.nnz(), values.len())?;
        check_finite(OPERATION, &self.row_ptr, &self.col_idx, values)?;
        self.values.copy_from_slice(values);
        Ok(())
    }

    /// Rows, columns and the arrays `row_ptr`, `col_idx` and `values`: the arguments of [`Csr::new`].
    pub fn into_parts(self) -> (usize, usize, Vec<u32>, Vec<u32>, Vec<T>) {
        let (rows, cols) = (self.rows, self.cols);
        let (row_ptr, col_idx, values) = self.into_arrays();
        (rows, cols, row_ptr, col_idx, values)
    }

    /// The arrays `row_ptr`, `col_idx` and `values`.
    pub fn into_arrays(self) -> (Vec<u32>, Vec<u32>, Vec<T>) {
        (Arc::unwrap_or_clone(self.row_ptr), Arc::unwrap_or_clone(self.col_idx), self.values)
    }
}

impl<T: Scalar> Format<T> for Csr<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn nnz(&self) -> usize {
        self.values.len()
    }

    fn kernel(&self) -> &'static str {
        "csr"
    }

    fn arguments(&self) -> Vec<Argument<'_, T>> {
        vec![
            Argument::Indices(&self.row_ptr),
            Argument::Indices(&self.col_idx),
            Argument::Values(&self.values),
        ]
    }

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn has_long_rows(&self) -> bool {
        has_long_rows(&self.row_ptr, self.lanes)
    }

    #[inline]
    fn row(&self, i: usize, x: &[T]) -> T {
        let (columns, values) = self.row_slices(i);
        if !is_long(self.lanes, columns.len()) {
            return by_lanes(self.lanes, columns, values, x);
        }
        let piece = piece_of(columns.len());
        let pieces = columns.chunks(piece).zip(values.chunks(piece));
        let sums = pieces.map(|(columns, values)| by_lanes(MAX_LANES, columns, values, x));
        sums.reduce(|sum, piece| sum + piece).unwrap_or_else(T::zero)
    }
}

/// Whether some rows are summed in pieces.
pub(crate) fn has_long_rows(row_ptr: &[u32], lanes: usize) -> bool {
    let length = |i: usize| (row_ptr[i + 1] - row_ptr[i]) as usize;
    parallel::find_first(row_ptr.len() - 1, GRAIN, |i| is_long(lanes, length(i))).is_some()
}

/// [`lacuna_engine::row_sum`] of the entries of a row.
#[inline]
fn by_lanes<T: Scalar>(lanes: usize, columns: &[u32], values: &[T], x: &[T]) -> T {
    let mut partial = [T::zero(); MAX_LANES];
    let partial = &mut partial[..lanes];
    for (columns, values) in columns.chunks(lanes).zip(values.chunks(lanes)) {
        for ((sum, &c), &v) in partial.iter_mut().zip(columns).zip(values) {
            *sum = v.fma(x[c as usize], *sum);
        }
    }
    let mut half = lanes / 2;
    while half > 0 {
        let (low, high) = partial.split_at_mut(half);
        low.iter_mut().zip(high).for_each(|(a, b)| *a += *b);
        half /= 2;
    }
    partial[0]
}

/// The largest power of two that gives every lane of an average non-empty row [`ENTRIES_PER_LANE`] entries.
pub(crate) fn lanes(entries: usize, filled_rows: usize) -> usize {
    let mut lanes = 1;
    while lanes < MAX_LANES && entries >= filled_rows.saturating_mul(2 * lanes * ENTRIES_PER_LANE).max(1) {
        lanes *= 2;
    }
    lanes
}
