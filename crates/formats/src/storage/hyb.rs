//! ELLPACK with the remainder in coordinates (HYB), and coordinates alone (COO).
use crate::Csr;
use crate::build::cut::{cut, lengths};
use crate::parallel;
use crate::storage::checks::check_sizes;
use crate::storage::hyb_layout::{HybLayout, widest};
use crate::storage::sell::{SLICE, fill_lane, slices_of};
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::{AlignedVec, Argument, Format, MAX_LANES, Result, Scalar, row_sum};
use std::ops::Range;

/// A sparse matrix whose first `K` entries of each row are in slices of 32 rows, with all others in
/// coordinates: HYB; with `K = 0`, COO.
///
/// `K` is the largest number of entries that at least a third of the rows have, and at least 4096 of them (or
/// all). If a row has more than 64 coordinates, they are split into up to 128 pieces, which need no row index
/// and are summed before the product, so that no row delays the others.
///
/// A row sum runs along the row's places in its slice, padding included as in [`crate::Sell`], then along its
/// coordinates, with one fused multiply-add each. If these are in pieces, 32 lanes take the entries of each
/// piece in turn and are summed by halving; the pieces' sums are added in order, and their total is added to
/// that of the slice.
///
/// Reference: Bell and Garland 2008, sections 2.3 and 2.4.
///
/// ```
/// use lacuna_formats::Hyb;
/// use lacuna_io::Spec;
///
/// let a = Spec::parse("gen:power-law:20000")?.build::<f64>()?;
/// let hyb = Hyb::from_csr(&a)?;
/// assert!(hyb.width() > 0 && Hyb::coo(&a)?.width() == 0);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Hyb<T> {
    rows: usize,
    cols: usize,
    nnz: usize,
    width: usize,
    layout: HybLayout<'static>,
    /// The row of each coordinate outside pieces.
    row_idx: Vec<u32>,
    /// For the places of slices, then coordinates, then pieces.
    col_idx: Vec<u32>,
    values: AlignedVec<T>,
    kernel: &'static str,
}

impl<T: Scalar> Hyb<T> {
    /// The same matrix in slices and coordinates.
    ///
    /// # Errors
    /// [`lacuna_engine::Error::Structure`] for too many places for 32-bit indices,
    /// [`lacuna_engine::Error::OutOfMemory`].
    pub fn from_csr(a: &Csr<T>) -> Result<Self> {
        Self::filled(a, "Hyb::from_csr", "hyb", widest(a))
    }

    /// The same with the first `width` entries of each row in slices.
    ///
    /// # Errors
    /// As [`Hyb::from_csr`].
    pub fn with_width(a: &Csr<T>, width: usize) -> Result<Self> {
        Self::filled(a, "Hyb::with_width", "hyb", width.min(a.cols()))
    }

    /// The same matrix in coordinates.
    ///
    /// # Errors
    /// As [`Hyb::from_csr`].
    pub fn coo(a: &Csr<T>) -> Result<Self> {
        Self::filled(a, "Hyb::coo", "coo", 0)
    }

    fn filled(a: &Csr<T>, operation: &str, kernel: &'static str, width: usize) -> Result<Self> {
        let layout = HybLayout::new(a, width);
        let [ell, short, long] = layout.places;
        check_sizes(operation, a.rows(), a.cols(), ell + short + long)?;
        let mut row_idx = lacuna_engine::pages::zeroed::<u32>(operation, short)?;
        let mut col_idx = lacuna_engine::pages::zeroed::<u32>(operation, ell + short + long)?;
        let mut values = AlignedVec::<T>::zeroed(operation, ell + short + long)?;
        let (ell_columns, columns) = col_idx.split_at_mut(ell);
        let (ell_values, entries) = values.split_at_mut(ell);
        let slices = slices_of(layout.slice_ptr(), ell_columns, ell_values);
        parallel::for_each(slices.into_iter().enumerate(), |(s, (columns, entries))| {
            for l in 0..SLICE {
                let (c, v) = a.row_slices(s * SLICE + l);
                let first = width.min(c.len());
                fill_lane(columns, entries, l, (&c[..first], &v[..first]));
            }
        });
        let (short_columns, long_columns) = columns.split_at_mut(short);
        let (short_entries, long_entries) = entries.split_at_mut(short);
        let rest_of = |row: &u32| a.row_slices(*row as usize).0.len() - width;
        let rests = || layout.long_rows().iter().map(rest_of);
        let long_parts = cut(long_columns, rests()).into_iter().zip(cut(long_entries, rests()));
        parallel::for_each(layout.long_rows().iter().zip(long_parts), |(&row, (columns, entries))| {
            let (c, v) = a.row_slices(row as usize);
            columns.copy_from_slice(&c[width..]);
            entries.copy_from_slice(&v[width..]);
        });
        let counts = || lengths(layout.segment_ptr());
        let entry_parts = cut(short_columns, counts()).into_iter().zip(cut(short_entries, counts()));
        let tasks = cut(&mut row_idx, counts()).into_iter().zip(entry_parts);
        parallel::for_each(tasks.enumerate(), |(s, (r, (c, v)))| {
            let mut at = 0;
            for row in s * SEGMENT..((s + 1) * SEGMENT).min(a.rows()) {
                let (columns, entries) = a.row_slices(row);
                let rest = columns.len().saturating_sub(width);
                if HybLayout::is_short(rest) {
                    let own = at..at + rest;
                    r[own.clone()].fill(row as u32);
                    c[own.clone()].copy_from_slice(&columns[columns.len() - rest..]);
                    v[own].copy_from_slice(&entries[entries.len() - rest..]);
                    at += rest;
                }
            }
        });
        let (rows, cols, nnz) = (a.rows(), a.cols(), a.nnz());
        Ok(Hyb { rows, cols, nnz, width, layout, row_idx, col_idx, values, kernel })
    }

    /// Bytes of the matrix as HYB and as COO, and the places of each.
    pub(crate) fn footprints(a: &Csr<T>) -> [(usize, usize); 2] {
        [widest(a), 0].map(|width| {
            let layout = HybLayout::new(a, width);
            let [ell, short, long] = layout.places;
            let places = ell + short + long;
            (4 * layout.words().len() + 4 * short + places * (4 + size_of::<T>()), places)
        })
    }

    /// Maximum number of entries of a row in its slice, `K`.
    pub fn width(&self) -> usize {
        self.width
    }
    /// The offsets of the slices, of the coordinates of each segment, and of the pieces.
    pub fn layout(&self) -> &HybLayout<'_> {
        &self.layout
    }
    /// The row of each coordinate outside pieces.
    pub fn row_idx(&self) -> &[u32] {
        &self.row_idx
    }
    /// The column of each place: of slices, coordinates and pieces, in this order.
    pub fn col_idx(&self) -> &[u32] {
        &self.col_idx
    }
    /// The value of each place, in the same order.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    fn along(&self, places: Range<usize>, x: &[T], sum: T) -> T {
        let entries = self.values[places.clone()].iter().zip(&self.col_idx[places]);
        entries.fold(sum, |sum, (v, &c)| v.fma(x[c as usize], sum))
    }
}

impl<T: Scalar> Format<T> for Hyb<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn nnz(&self) -> usize {
        self.nnz
    }

    fn kernel(&self) -> &'static str {
        self.kernel
    }

    fn arguments(&self) -> Vec<Argument<'_, T>> {
        vec![
            Argument::Indices(self.layout.words()),
            Argument::Indices(&self.row_idx),
            Argument::Indices(&self.col_idx),
            Argument::Values(&self.values),
        ]
    }

    fn partial_sums(&self) -> usize {
        self.layout.pieces()
    }

    fn row(&self, i: usize, x: &[T]) -> T {
        let (layout, segment) = (&self.layout, i / SEGMENT);
        let (s, l) = (i / SLICE, i % SLICE);
        let in_slice = layout.slice_ptr()[s] as usize..layout.slice_ptr()[s + 1] as usize;
        let sum = in_slice
            .map(|c| c * SLICE + l)
            .fold(T::zero(), |sum, at| self.values[at].fma(x[self.col_idx[at] as usize], sum));
        if let Ok(long) = layout.long_rows().binary_search(&(i as u32)) {
            let pieces = layout.long_ptr()[long] as usize..layout.long_ptr()[long + 1] as usize;
            let of_piece = |q: usize| {
                let places = layout.piece_ptr()[q] as usize..layout.piece_ptr()[q + 1] as usize;
                row_sum(MAX_LANES, places.map(|k| (self.values[k], x[self.col_idx[k] as usize])))
            };
            return pieces.map(of_piece).reduce(|sum, piece| sum + piece).map_or(sum, |rest| sum + rest);
        }
        let first = layout.places[0];
        let [from, to] = [segment, segment + 1].map(|s| layout.segment_ptr()[s] as usize - first);
        let rows = &self.row_idx[from..to];
        let own = rows.partition_point(|&r| (r as usize) < i)..rows.partition_point(|&r| r as usize <= i);
        self.along(first + from + own.start..first + from + own.end, x, sum)
    }
}
