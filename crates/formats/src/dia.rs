//! Diagonals.
use crate::Csr;
use crate::csr::check_sizes;
use crate::padding::is_too_much;
use lacuna_core::{Argument, Error, Format, Lines, Result, Scalar};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Blocks of rows that one task converts.
const BLOCKS: usize = 64;
/// Rows of a diagonal that lie together: so few that their sums stay in registers.
pub const DIA_ROWS: usize = 64;

/// A sparse matrix in diagonals: no column index at all.
///
/// All places of a diagonal are stored, zeros too, 64 rows at a time: the value at row `64 s + r` on the `k`-th of `d`
/// diagonals is at `(s d + k) 64 + r`, so that a product reads one stream from end to end. Places outside the matrix are
/// zero and take no part. A row sum goes over the diagonals by increasing offset, one fused multiply-add each.
///
/// Reference: Bell and Garland 2008, section 2.1; Jost et al. 2009.
///
/// ```
/// use lacuna_formats::{Csr, Dia};
///
/// let a = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![4.0, -1.0, 4.0])?;
/// assert_eq!(Dia::from_csr(&a)?.offsets(), [0, 1]);
/// # Ok::<(), lacuna_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dia<T> {
    rows: usize,
    cols: usize,
    nnz: usize,
    offsets: Vec<i32>,
    values: Lines<T>,
}

impl<T: Scalar> Dia<T> {
    /// The same matrix in diagonals.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the diagonals would hold more than four places for each entry, with how much memory
    /// that would take; [`Error::OutOfMemory`].
    pub fn from_csr(a: &Csr<T>) -> Result<Self> {
        let (rows, cols, nnz) = (a.rows(), a.cols(), a.nnz());
        let offsets = diagonals(a);
        let places = rows.div_ceil(DIA_ROWS).saturating_mul(DIA_ROWS).saturating_mul(offsets.len());
        if is_too_much(places, nnz) || offsets.iter().any(|&o| i32::try_from(o).is_err()) {
            return Err(Error::Unsupported {
                operation: "Dia::from_csr".into(),
                message: format!(
                    "{} diagonals are in use, which would take {} MB for {nnz} entries ({} MB in csr); keep csr",
                    offsets.len(),
                    places.saturating_mul(size_of::<T>()) / 1_000_000,
                    a.bytes() / 1_000_000,
                ),
            });
        }
        check_sizes("Dia::from_csr", rows, cols, nnz)?;
        let offsets: Vec<i32> = offsets.into_iter().map(|o| o as i32).collect();
        let mut values = Lines::<T>::zeroed("Dia::from_csr", places)?;
        if !offsets.is_empty() {
            let blocks = values.par_chunks_mut(DIA_ROWS * offsets.len()).enumerate();
            blocks.with_min_len(BLOCKS).for_each(|(s, block)| {
                for r in 0..DIA_ROWS.min(rows - s * DIA_ROWS) {
                    let i = s * DIA_ROWS + r;
                    let mut k = 0;
                    for (j, v) in a.row_entries(i) {
                        while (offsets[k] as i64) < j as i64 - i as i64 {
                            k += 1;
                        }
                        block[k * DIA_ROWS + r] = v;
                    }
                }
            });
        }
        Ok(Dia { rows, cols, nnz, offsets, values })
    }

    /// `column − row` of each diagonal, increasing.
    pub fn offsets(&self) -> &[i32] {
        &self.offsets
    }

    /// All places: see [`Dia`] for their order.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Bytes that `diagonals` diagonals of a matrix of so many rows take.
    pub(crate) fn footprint(rows: usize, diagonals: usize) -> usize {
        rows.next_multiple_of(DIA_ROWS).saturating_mul(diagonals).saturating_mul(size_of::<T>())
            + 4 * diagonals
    }

    /// Whether so many places are refused.
    pub(crate) fn refuses(rows: usize, diagonals: usize, nnz: usize) -> bool {
        is_too_much(rows.next_multiple_of(DIA_ROWS).saturating_mul(diagonals), nnz)
    }
}

impl<T: Scalar> Format<T> for Dia<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn nnz(&self) -> usize {
        self.nnz
    }

    fn kernel(&self) -> &'static str {
        "dia"
    }

    fn arguments(&self) -> Vec<Argument<'_, T>> {
        vec![
            Argument::Size(self.offsets.len() as u32),
            Argument::Size(self.cols as u32),
            Argument::Offsets(&self.offsets),
            Argument::Values(&self.values),
        ]
    }

    fn row(&self, i: usize, x: &[T]) -> T {
        let first = i / DIA_ROWS * DIA_ROWS * self.offsets.len() + i % DIA_ROWS;
        let mut sum = T::zero();
        for (k, &offset) in self.offsets.iter().enumerate() {
            let column = i as i64 + i64::from(offset);
            if (0..self.cols as i64).contains(&column) {
                sum = self.values[first + k * DIA_ROWS].fma(x[column as usize], sum);
            }
        }
        sum
    }
}

/// `column − row` of every diagonal that holds an entry, increasing.
fn diagonals<T: Scalar>(a: &Csr<T>) -> Vec<i64> {
    let rows = a.rows();
    let seen: Vec<AtomicU64> = (0..(rows + a.cols()).div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
    a.row_shares().into_par_iter().for_each(|share| {
        for i in share {
            for &j in a.row_slices(i).0 {
                let d = j as usize + rows - i;
                let bit = 1 << (d % 64);
                if seen[d / 64].load(Ordering::Relaxed) & bit == 0 {
                    seen[d / 64].fetch_or(bit, Ordering::Relaxed);
                }
            }
        }
    });
    let bits = |(w, word): (usize, &AtomicU64)| {
        let word = word.load(Ordering::Relaxed);
        (0..64).filter(move |b| word >> b & 1 == 1).map(move |b| (w * 64 + b) as i64 - rows as i64)
    };
    seen.iter().enumerate().flat_map(bits).collect()
}
