//! Compressed rows with two-byte columns, and with values in half the bytes if that is exact.
use crate::Csr;
use crate::parallel;
use crate::storage::checks::in_words;
use lacuna_engine::{Argument, Error, Format, MAX_LANES, Result, Scalar, is_long, pages};

/// Number of columns that two bytes distinguish.
const REACH: u32 = 1 << 16;
/// Minimum number of rows or entries per thread.
const GRAIN: usize = 8192;

/// [`Csr`] with each column as a 16-bit distance from the first column of its row, and with values in half
/// the bytes (`f32` under `f64`) if all of them are exactly representable there.
///
/// Lanes and the order of a row sum are those of [`Csr`], and so are the bits: a value is widened before
/// multiplication.
///
/// ```
/// use lacuna_formats::Packed;
/// use lacuna_io::Spec;
///
/// let a = Spec::parse("gen:poisson2d:300x200")?.build::<f64>()?;
/// assert!(Packed::from_csr(&a)?.is_narrow());
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Packed<T: Scalar> {
    rows: usize,
    cols: usize,
    lanes: usize,
    /// The start of each row and the end of the last; then the first column of each row.
    words: Vec<u32>,
    distances: Vec<u16>,
    values: Values<T>,
}

/// The values of all entries.
#[derive(Clone, Debug, PartialEq)]
pub enum Values<T: Scalar> {
    /// In full width.
    Full(Vec<T>),
    /// In half the bytes.
    Narrow(Vec<T::Narrow>),
}

impl<T: Scalar> Packed<T> {
    /// The same matrix with packed columns, and with narrow values if that is exact.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if a row spans more columns than 16 bits distinguish, [`Error::OutOfMemory`].
    pub fn from_csr(a: &Csr<T>) -> Result<Self> {
        Self::pack(a, "Packed::from_csr", is_exact(a))
    }

    /// The matrix with packed columns and every value rounded to half its bytes.
    ///
    /// # Errors
    /// As [`Packed::from_csr`]; [`Error::Entry`] for a value too large or too small for that,
    /// [`Error::Unsupported`] if there is no narrower type.
    pub fn rounded(a: &Csr<T>) -> Result<Self> {
        const OPERATION: &str = "Packed::rounded";
        let narrow = T::Narrow::KIND.name();
        if saved::<T>() == 0 {
            let message = format!("values are {narrow} already; use packed");
            return Err(Error::Unsupported { operation: OPERATION.into(), message });
        }
        let fits = |part: f64| {
            let rounded = T::Narrow::from_real(part).re().abs();
            part == 0.0 || (T::Narrow::TINY..=T::Narrow::MAX).contains(&rounded)
        };
        let values = a.values();
        match parallel::find_first(values.len(), GRAIN, |k| !(fits(values[k].re()) && fits(values[k].im()))) {
            Some(k) => {
                let (row, column) = a.place(k);
                let message = format!("{} is beyond the range of {narrow}", a.values()[k]);
                Err(Error::Entry { operation: OPERATION.into(), row, column, message })
            }
            None => Self::pack(a, OPERATION, true),
        }
    }

    fn pack(a: &Csr<T>, operation: &str, narrow: bool) -> Result<Self> {
        if let Some((row, obstacle)) = first_obstacle(a) {
            let columns = a.row_slices(row).0;
            let message = match obstacle {
                Obstacle::Far => format!(
                    "row {row} (counted from 0) reaches from column {} to {}, and 16 bits distinguish {REACH} columns; keep csr ({})",
                    columns[0],
                    columns[columns.len() - 1],
                    in_words(a.bytes())
                ),
                Obstacle::Long => format!(
                    "row {row} (counted from 0) has {} entries, far more than others, and packed rows are not cut into pieces; keep csr",
                    columns.len()
                ),
            };
            return Err(Error::Unsupported { operation: operation.into(), message });
        }
        let rows = a.rows();
        let mut words = pages::zeroed::<u32>(operation, 2 * rows + 1)?;
        let (row_ptr, firsts) = words.split_at_mut(rows + 1);
        row_ptr.copy_from_slice(a.row_ptr());
        let mut distances = pages::zeroed::<u16>(operation, a.nnz())?;
        let shares = a.row_shares();
        let of_rows = crate::build::cut::cut(firsts, shares.iter().map(ExactSizeIterator::len));
        let entries = shares.iter().map(|share| (a.row_ptr()[share.end] - a.row_ptr()[share.start]) as usize);
        let parts = of_rows.into_iter().zip(crate::build::cut::cut(&mut distances, entries));
        parallel::for_each(shares.iter().cloned().zip(parts), |(share, (firsts, mut distances))| {
            for (i, to) in share.zip(firsts) {
                let columns = a.row_slices(i).0;
                *to = columns.first().copied().unwrap_or(0);
                let own;
                (own, distances) = distances.split_at_mut(columns.len());
                own.iter_mut().zip(columns).for_each(|(d, column)| *d = (column - *to) as u16);
            }
        });
        let values = if narrow {
            let mut narrow = pages::zeroed::<T::Narrow>(operation, a.nnz())?;
            parallel::for_each(narrow.chunks_mut(GRAIN).zip(a.values().chunks(GRAIN)), |(to, v)| {
                to.iter_mut().zip(v).for_each(|(to, v)| *to = T::Narrow::from_parts(v.re(), v.im()));
            });
            Values::Narrow(narrow)
        } else {
            let mut full = pages::zeroed::<T>(operation, a.nnz())?;
            parallel::for_each(full.chunks_mut(GRAIN).zip(a.values().chunks(GRAIN)), |(to, v)| {
                to.copy_from_slice(v);
            });
            Values::Full(full)
        };
        Ok(Packed { rows, cols: a.cols(), lanes: a.lanes(), words, distances, values })
    }

    /// Bytes of the matrix, or why it is refused.
    pub(crate) fn footprint(a: &Csr<T>) -> Result<usize, &'static str> {
        match first_obstacle(a) {
            Some((_, Obstacle::Far)) => Err("rows reach over too many columns for 16 bits"),
            Some((_, Obstacle::Long)) => Err("a row is far longer than others"),
            None => Ok(bytes(a, if is_exact(a) { saved::<T>() } else { 0 })),
        }
    }

    /// Bytes with rounded values.
    pub(crate) fn rounded_footprint(a: &Csr<T>) -> usize {
        bytes(a, saved::<T>())
    }

    /// Whether values are stored in half their bytes.
    pub fn is_narrow(&self) -> bool {
        matches!(self.values, Values::Narrow(_))
    }
    /// The start of each row in [`Packed::distances`], and the end of the last.
    pub fn row_ptr(&self) -> &[u32] {
        &self.words[..self.rows + 1]
    }
    /// The first column of each row; 0 for an empty row.
    pub fn first_columns(&self) -> &[u32] {
        &self.words[self.rows + 1..]
    }
    /// The distance of each entry's column from the first column of its row.
    pub fn distances(&self) -> &[u16] {
        &self.distances
    }
    /// The value of each entry.
    pub fn values(&self) -> &Values<T> {
        &self.values
    }
}

/// Why a row cannot be packed.
enum Obstacle {
    /// It spans more columns than two bytes distinguish.
    Far,
    /// Compressed rows treat it separately as a long row.
    Long,
}

/// The first row that cannot be packed, and the reason.
fn first_obstacle<T: Scalar>(a: &Csr<T>) -> Option<(usize, Obstacle)> {
    let narrow = a.cols() <= REACH as usize;
    let of_row = |row: usize| match a.row_slices(row).0 {
        [first, .., last] if !narrow && last - first >= REACH => Some(Obstacle::Far),
        columns => is_long(a.lanes(), columns.len()).then_some(Obstacle::Long),
    };
    let row = parallel::find_first(a.rows(), GRAIN, |row| of_row(row).is_some())?;
    of_row(row).map(|obstacle| (row, obstacle))
}

/// Bytes saved by a narrow value.
const fn saved<T: Scalar>() -> usize {
    size_of::<T>() - size_of::<T::Narrow>()
}

/// Bytes of the matrix if each value takes `saved` fewer bytes.
fn bytes<T: Scalar>(a: &Csr<T>, saved: usize) -> usize {
    a.nnz() * (2 + size_of::<T>() - saved) + 4 * (2 * a.rows() + 1)
}

/// Whether every value is exact in half its bytes.
fn is_exact<T: Scalar>(a: &Csr<T>) -> bool {
    let same = |v: &T| widened::<T>(T::Narrow::from_parts(v.re(), v.im())) == *v;
    let differ = |values: &[T]| !values.iter().fold(true, |all, v| all & same(v));
    let chunks: Vec<_> = a.values().chunks(GRAIN).collect();
    saved::<T>() > 0 && parallel::find_first(chunks.len(), 1, |k| differ(chunks[k])).is_none()
}

/// A narrow value widened for multiplication.
#[inline(always)]
pub fn widened<T: Scalar>(v: T::Narrow) -> T {
    T::from_parts(v.re(), v.im())
}

impl<T: Scalar> Format<T> for Packed<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn nnz(&self) -> usize {
        self.distances.len()
    }

    fn kernel(&self) -> &'static str {
        "packed"
    }

    fn arguments(&self) -> Vec<Argument<'_, T>> {
        vec![
            Argument::Size(u32::from(self.is_narrow())),
            Argument::Indices(&self.words),
            Argument::Short(&self.distances),
            match &self.values {
                Values::Full(values) => Argument::Values(values),
                Values::Narrow(values) => Argument::Narrow(values),
            },
        ]
    }

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn row(&self, i: usize, x: &[T]) -> T {
        let mut sums = [T::zero(); MAX_LANES];
        let first = self.first_columns()[i] as usize;
        let entries = self.row_ptr()[i] as usize..self.row_ptr()[i + 1] as usize;
        for (k, at) in entries.enumerate() {
            let value = match &self.values {
                Values::Full(values) => values[at],
                Values::Narrow(values) => widened(values[at]),
            };
            let sum = &mut sums[k % self.lanes];
            *sum = value.fma(x[first + self.distances[at] as usize], *sum);
        }
        let mut half = self.lanes / 2;
        while half > 0 {
            (0..half).for_each(|j| {
                let upper = sums[j + half];
                sums[j] += upper;
            });
            half /= 2;
        }
        sums[0]
    }
}
