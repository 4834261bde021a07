//! Properties of a matrix that determine the choice of method, preconditioner and format.
use crate::Csr;
use crate::choose::mirror::{self, Mirror};
use crate::parallel;
use crate::storage::pattern::PatternRef;
use lacuna_engine::Scalar;
use lacuna_engine::compiled_here;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A block size is suggested if its blocks are at least this full: then one index per block saves more bytes
/// than the zeros cost.
const WORTHWHILE_FILL: f64 = 0.8;

/// Rows with fewer entries are scanned linearly rather than by binary search.
const SHORT: usize = 32;

/// Properties of the structure and values of a matrix.
///
/// Symmetry, dominance and the sign of the diagonal are `false` for a matrix that is not square.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Structure {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Stored entries.
    pub nnz: usize,
    /// Entries of the shortest row.
    pub row_min: usize,
    /// Mean entries of a row.
    pub row_mean: f64,
    /// Entries of the longest row.
    pub row_max: usize,
    /// Standard deviation of the entries of a row.
    pub row_std: f64,
    /// Fraction of rows whose length a four-entry history predictor gets wrong, over up to 131072 rows;
    /// estimates branch mispredictions at row ends.
    pub surprising_rows: f64,
    /// Rows without an entry.
    pub empty_rows: usize,
    /// Largest distance `i − j` of an entry below the diagonal.
    pub lower_bandwidth: usize,
    /// Largest distance `j − i` of an entry above the diagonal.
    pub upper_bandwidth: usize,
    /// Diagonals that hold an entry.
    pub diagonals: usize,
    /// Diagonal entries that are zero or not stored.
    pub zero_diagonal: usize,
    /// The first row whose diagonal entry is zero or not stored.
    pub first_zero_diagonal: Option<usize>,
    /// Whether entry `(j, i)` is stored wherever `(i, j)` is.
    pub pattern_symmetric: bool,
    /// Whether the matrix equals its transpose.
    pub symmetric: bool,
    /// Whether the matrix equals its conjugate transpose.
    pub hermitian: bool,
    /// Whether the matrix equals the negative of its transpose.
    pub skew_symmetric: bool,
    /// Whether every diagonal entry is real and positive: necessary for a positive definite matrix.
    pub diagonal_positive: bool,
    /// Whether in every row the diagonal entry is at least as large as the sum of all others, by modulus.
    pub diagonally_dominant: bool,
    /// Whether every diagonal entry is real and negative: necessary for a negative definite matrix.
    pub diagonal_negative: bool,
    /// The smallest ratio, over all rows, of the modulus of the diagonal entry to the sum of the moduli of
    /// the others; infinite if no row has others.
    pub weakest_diagonal: f64,
    /// `‖A‖_∞`, the largest row sum of moduli.
    pub norm_inf: f64,
    /// Fraction of block places that hold an entry, over blocks with at least one, by block size; above 49152
    /// rows, from an eighth of them. Sizes 2, 3 and 4, and those from 5 to 8 that divide rows and columns, if
    /// the 2x2 blocks and those in the first rows are full enough.
    pub block_fill: Vec<(usize, f64)>,
}

impl Structure {
    /// The structure of `−A`.
    pub fn negated(self) -> Self {
        let (diagonal_positive, diagonal_negative) = (self.diagonal_negative, self.diagonal_positive);
        Structure { diagonal_positive, diagonal_negative, ..self }
    }

    /// Analyses `a` on the current rayon pool, in one pass. Symmetry is detected by sums of hashes; a false
    /// positive has probability 2^-64.
    pub fn of<T: Scalar>(a: &Csr<T>) -> Self {
        compiled_here!(T, |a: &Csr<T>| -> Structure {
            let (rows, cols, nnz) = (a.rows(), a.cols(), a.nnz());
            let seen: Vec<AtomicU64> = (0..(rows + cols).div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
            let mirrors = rows == cols && mirror::is_likely(PatternRef::of(a));
            let parts = parallel::map(a.row_shares(), |share| Facts::of(a, share, &seen, mirrors));
            let facts = parts.into_iter().fold(Facts::nothing(rows == cols), Facts::and);
            let mirrored = mirrors && facts.below == facts.above;
            let row_mean = nnz as f64 / rows.max(1) as f64;
            let mean_square = facts.row_squares as f64 / rows.max(1) as f64;
            Structure {
                rows,
                cols,
                nnz,
                row_min: if rows == 0 { 0 } else { facts.row_min },
                row_mean,
                row_max: facts.row_max,
                row_std: (mean_square - row_mean * row_mean).max(0.0).sqrt(),
                surprising_rows: crate::choose::lengths::surprising(a.row_ptr()),
                empty_rows: facts.empty_rows,
                lower_bandwidth: facts.lower,
                upper_bandwidth: facts.upper,
                diagonals: seen.iter().map(|w| w.load(Ordering::Relaxed).count_ones() as usize).sum(),
                zero_diagonal: facts.zero_diagonal,
                first_zero_diagonal: facts.first_zero_diagonal,
                pattern_symmetric: mirrored && facts.mirror.of_pattern(),
                symmetric: mirrored && facts.mirror.is_symmetric(),
                hermitian: mirrored && facts.mirror.is_hermitian(),
                skew_symmetric: mirrored && facts.mirror.is_skew(),
                diagonal_positive: facts.diagonal_positive,
                diagonally_dominant: facts.diagonally_dominant,
                diagonal_negative: facts.diagonal_negative,
                weakest_diagonal: facts.weakest_diagonal,
                norm_inf: facts.norm_inf,
                block_fill: crate::choose::blocks::fills(PatternRef::of(a)),
            }
        })(a)
    }

    /// Largest distance of an entry from the diagonal.
    pub fn bandwidth(&self) -> usize {
        self.lower_bandwidth.max(self.upper_bandwidth)
    }

    /// The largest worthwhile block size, if there is one.
    pub fn block_size(&self) -> Option<usize> {
        worthwhile(&self.block_fill, (self.rows, self.cols))
    }

    /// The same of a matrix, without the rest of its structure.
    pub fn block_size_of<T: Scalar>(a: &Csr<T>) -> Option<usize> {
        worthwhile(&crate::choose::blocks::fills(PatternRef::of(a)), (a.rows(), a.cols()))
    }
}

/// The largest block size that divides a shape and is worthwhile by the fill of blocks of each size.
fn worthwhile(fills: &[(usize, f64)], (rows, cols): (usize, usize)) -> Option<usize> {
    let fits = |size: &usize| rows.is_multiple_of(*size) && cols.is_multiple_of(*size);
    let filled = fills.iter().filter(|(_, fill)| *fill >= WORTHWHILE_FILL);
    filled.map(|(size, _)| *size).filter(fits).max()
}

/// The properties of a run of rows, and how two runs combine.
struct Facts {
    row_min: usize,
    row_max: usize,
    row_squares: u128,
    empty_rows: usize,
    lower: usize,
    upper: usize,
    zero_diagonal: usize,
    first_zero_diagonal: Option<usize>,
    /// Entries below and above the diagonal.
    below: usize,
    above: usize,
    mirror: Mirror,
    diagonal_positive: bool,
    diagonally_dominant: bool,
    diagonal_negative: bool,
    weakest_diagonal: f64,
    norm_inf: f64,
}

impl Facts {
    /// For no rows.
    fn nothing(square: bool) -> Self {
        Self {
            row_min: usize::MAX,
            row_max: 0,
            row_squares: 0,
            empty_rows: 0,
            lower: 0,
            upper: 0,
            zero_diagonal: 0,
            first_zero_diagonal: None,
            below: 0,
            above: 0,
            mirror: Mirror::default(),
            diagonal_positive: square,
            diagonally_dominant: square,
            diagonal_negative: square,
            weakest_diagonal: f64::INFINITY,
            norm_inf: 0.0,
        }
    }

    /// For the rows `share`, then the rows of `after`.
    fn and(self, after: Self) -> Self {
        Self {
            row_min: self.row_min.min(after.row_min),
            row_max: self.row_max.max(after.row_max),
            row_squares: self.row_squares + after.row_squares,
            empty_rows: self.empty_rows + after.empty_rows,
            lower: self.lower.max(after.lower),
            upper: self.upper.max(after.upper),
            zero_diagonal: self.zero_diagonal + after.zero_diagonal,
            first_zero_diagonal: self.first_zero_diagonal.or(after.first_zero_diagonal),
            below: self.below + after.below,
            above: self.above + after.above,
            mirror: self.mirror.and(after.mirror),
            diagonal_positive: self.diagonal_positive && after.diagonal_positive,
            diagonally_dominant: self.diagonally_dominant && after.diagonally_dominant,
            diagonal_negative: self.diagonal_negative && after.diagonal_negative,
            weakest_diagonal: self.weakest_diagonal.min(after.weakest_diagonal),
            norm_inf: self.norm_inf.max(after.norm_inf),
        }
    }

    /// For the rows `share`; marks their diagonals in `seen`.
    fn of<T: Scalar>(a: &Csr<T>, share: Range<usize>, seen: &[AtomicU64], mirrors: bool) -> Self {
        let size = |v: &T| if T::KIND.is_complex() { v.modulus() } else { v.re().abs() };
        let square = a.rows() == a.cols();
        let mut facts = Self::nothing(square);
        let mut before: &[u32] = &[];
        for i in share {
            let (columns, values) = a.row_slices(i);
            let length = columns.len();
            facts.row_min = facts.row_min.min(length);
            facts.row_max = facts.row_max.max(length);
            facts.row_squares += (length * length) as u128;
            facts.empty_rows += usize::from(length == 0);
            if let ([first, .., last] | [first @ last], _) = (columns, values) {
                facts.lower = facts.lower.max(i.saturating_sub(*first as usize));
                facts.upper = facts.upper.max((*last as usize).saturating_sub(i));
            }
            // A row on the same diagonals as the previous one marks no new ones.
            let moved = before.iter().zip(columns).fold(true, |same, (b, c)| same & (b + 1 == *c));
            if !moved || before.len() != length {
                columns.iter().for_each(|&j| mark(seen, j as usize + a.rows() - i));
            }
            before = columns;
            let below = match length {
                ..SHORT => columns.iter().map(|&j| usize::from((j as usize) < i)).sum(),
                _ => columns.partition_point(|&j| (j as usize) < i),
            };
            let above = below + usize::from(columns.get(below) == Some(&(i as u32)));
            let diagonal = if above > below { values[below] } else { T::zero() };
            let before_diagonal = values[..below].iter().fold(0.0, |sum, v| sum + size(v));
            let others = values[above..].iter().fold(before_diagonal, |sum, v| sum + size(v));
            facts.below += below;
            facts.above += length - above;
            if mirrors {
                let [lower, upper] = [0..below, above..length].map(|k| (&columns[k.clone()], &values[k]));
                facts.mirror.row(i, lower, diagonal, upper);
            }
            if i < a.cols() && diagonal == T::zero() {
                facts.zero_diagonal += 1;
                facts.first_zero_diagonal.get_or_insert(i);
            }
            facts.diagonal_positive &= diagonal.re() > 0.0 && diagonal.im() == 0.0;
            facts.diagonal_negative &= diagonal.re() < 0.0 && diagonal.im() == 0.0;
            facts.diagonally_dominant &= size(&diagonal) >= others;
            if others > 0.0 {
                facts.weakest_diagonal = facts.weakest_diagonal.min(size(&diagonal) / others);
            }
            facts.norm_inf = facts.norm_inf.max(others + size(&diagonal));
        }
        facts
    }
}

/// Marks a diagonal as seen.
fn mark(seen: &[AtomicU64], diagonal: usize) {
    let (word, bit) = (&seen[diagonal / 64], 1 << (diagonal % 64));
    if word.load(Ordering::Relaxed) & bit == 0 {
        word.fetch_or(bit, Ordering::Relaxed);
    }
}

/// Number of entries in each cell of a picture of the matrix, `width` cells wide and `height` high, row by
/// row from the top.
pub fn spy<T: Scalar>(a: &Csr<T>, width: usize, height: usize) -> Vec<u32> {
    compiled_here!(T, |a: &Csr<T>, width: usize, height: usize| -> Vec<u32> {
        let mut cells = vec![0u32; width.saturating_mul(height)];
        if cells.is_empty() {
            return cells;
        }
        let first_row = |y: usize| (y as u128 * a.rows() as u128).div_ceil(height as u128) as usize;
        parallel::for_each(cells.chunks_mut(width).enumerate(), |(y, line)| {
            for i in first_row(y)..first_row(y + 1) {
                for (j, _) in a.row_entries(i) {
                    line[(j as u64 * width as u64 / a.cols() as u64) as usize] += 1;
                }
            }
        });
        cells
    })(a, width, height)
}
