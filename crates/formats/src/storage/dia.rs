//! Diagonals.
use crate::Csr;
use crate::parallel;
use crate::storage::checks::{check_sizes, in_words};
use crate::storage::padding::is_too_much;
use bytemuck::bytes_of;
use lacuna_engine::{AlignedVec, Argument, Error, Format, Result, Scalar};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Blocks of rows converted per task, and their rows.
const BLOCKS: usize = 64;
const BLOCK: usize = BLOCKS * DIA_ROWS;
/// Consecutive rows of a diagonal: few enough that their sums stay in registers.
pub const DIA_ROWS: usize = 64;

/// A sparse matrix stored by diagonals: no column indices.
///
/// All places of a diagonal are stored, including zeros: the value at row `64 s + r` on the `k`-th diagonal
/// is at [`start`](Dia::starts)`[k] + s` [`step`](Dia::step)` + r`. Places outside the matrix are ignored. A
/// row sum runs over the diagonals by increasing offset, with one fused multiply-add each.
///
/// * [`Dia::from_csr`]: 64 rows of all `d` diagonals together, `start[k] = 64 k` and `step = 64 d`, so that a
///   product reads a single stream.
/// * [`Dia::symmetric`]: the diagonal `o` columns above the main one equals the one `o` rows below it. It is
///   stored once, diagonal by diagonal, with `step = 64`: half the bytes for the same bits.
///
/// Reference: Bell and Garland 2008, section 2.1; Jost et al. 2009.
///
/// ```
/// use lacuna_formats::{Csr, Dia};
///
/// let a = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![4.0, -1.0, 4.0])?;
/// assert_eq!(Dia::from_csr(&a)?.offsets(), [0, 1]);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dia<T> {
    rows: usize,
    cols: usize,
    nnz: usize,
    /// For `d` diagonals the `d` offsets, the `d` starts, and the step.
    table: Vec<i32>,
    values: AlignedVec<T>,
}

impl<T: Scalar> Dia<T> {
    /// The same matrix in diagonals.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the diagonals would have more than four places per entry, with the memory
    /// that would take; [`Error::OutOfMemory`].
    pub fn from_csr(a: &Csr<T>) -> Result<Self> {
        let operation = "Dia::from_csr";
        let (rows, cols, nnz) = (a.rows(), a.cols(), a.nnz());
        let offsets = offsets_of(operation, a)?;
        let mut values = AlignedVec::<T>::zeroed(operation, places(rows, offsets.len()))?;
        if !offsets.is_empty() {
            let blocks = values.chunks_mut(DIA_ROWS * offsets.len()).enumerate();
            parallel::for_each(blocks, |(s, block)| {
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
        let starts: Vec<_> = (0..offsets.len()).map(|k| (k * DIA_ROWS) as i32).collect();
        let table = [&offsets[..], &starts, &[(DIA_ROWS * offsets.len()) as i32]].concat();
        Ok(Dia { rows, cols, nnz, table, values })
    }

    /// The same symmetric matrix, each pair of diagonals stored once.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the matrix is not bitwise equal to its transpose, or takes 2^31 places or
    /// more; otherwise as [`Dia::from_csr`].
    pub fn symmetric(a: &Csr<T>) -> Result<Self> {
        let operation = "Dia::symmetric";
        let (rows, cols, nnz) = (a.rows(), a.cols(), a.nnz());
        let refused = |message| Error::Unsupported { operation: operation.into(), message };
        let offsets = offsets_of(operation, a)?;
        let kept = &offsets[offsets.partition_point(|&o| o < 0)..];
        let stride = stride(rows);
        let places = stride.saturating_mul(kept.len());
        if i32::try_from(places).is_err() {
            return Err(refused(format!("expected fewer than 2^31 places, got {places}; take dia")));
        }
        let mut values = AlignedVec::<T>::zeroed(operation, places)?;
        let mut blocks: Vec<Vec<&mut [T]>> = vec![];
        blocks.resize_with(stride.div_ceil(BLOCK), || Vec::with_capacity(kept.len()));
        for diagonal in values.chunks_mut(stride) {
            blocks.iter_mut().zip(diagonal.chunks_mut(BLOCK)).for_each(|(block, part)| block.push(part));
        }
        parallel::for_each(blocks.into_iter().enumerate(), |(s, mut block)| {
            for i in s * BLOCK..((s + 1) * BLOCK).min(rows) {
                let mut k = 0;
                for (j, v) in a.row_entries(i).filter(|(j, _)| *j >= i) {
                    while (kept[k] as usize) < j - i {
                        k += 1;
                    }
                    block[k][i - s * BLOCK] = v;
                }
            }
        });
        let images = |i: usize| -> Option<[usize; 2]> {
            let mut counts = [0; 2];
            for (j, v) in a.row_entries(i).filter(|(j, v)| *j != i && *v != T::zero()) {
                counts[usize::from(j > i)] += 1;
                if j < i {
                    let image = values[kept.binary_search(&((i - j) as i32)).ok()? * stride + j];
                    (bytes_of(&image) == bytes_of(&v)).then_some(())?;
                }
            }
            Some(counts)
        };
        let add = |[a, b]: [usize; 2], [c, d]: [usize; 2]| Some([a + c, b + d]);
        let of_part = |mut part: Range<usize>| part.try_fold([0; 2], |sum, i| add(sum, images(i)?));
        let parts = parallel::map(parallel::ranges(rows, BLOCK), of_part);
        let counts = parts.into_iter().try_fold([0; 2], |sum, part| add(sum, part?));
        let is_symmetric = rows == cols && counts.is_some_and(|[below, above]| below == above);
        let start = |&o: &i32| Some((kept.binary_search(&o.abs()).ok()? * stride) as i32 + o.min(0));
        let starts: Option<Vec<_>> = offsets.iter().map(start).collect();
        let Some(starts) = starts.filter(|_| is_symmetric) else {
            return Err(refused("expected a matrix that is its own transpose; take dia".into()));
        };
        Ok(Dia { rows, cols, nnz, table: [&offsets[..], &starts, &[DIA_ROWS as i32]].concat(), values })
    }

    /// `column − row` of each diagonal, in increasing order.
    pub fn offsets(&self) -> &[i32] {
        &self.table[..self.diagonals()]
    }

    /// The start of each diagonal among the places: see [`Dia`]. Negative if the first rows have no place.
    pub fn starts(&self) -> &[i32] {
        &self.table[self.diagonals()..2 * self.diagonals()]
    }

    /// Number of places from 64 rows of a diagonal to the next 64.
    pub fn step(&self) -> usize {
        self.table[2 * self.diagonals()] as usize
    }

    /// All places: see [`Dia`] for their order.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    fn diagonals(&self) -> usize {
        self.table.len() / 2
    }

    /// Bytes of `diagonals` diagonals of a matrix with `rows` rows.
    pub(crate) fn footprint(rows: usize, diagonals: usize) -> usize {
        places(rows, diagonals).saturating_mul(size_of::<T>()) + 8 * diagonals + 4
    }
    /// The same for a symmetric matrix.
    pub(crate) fn symmetric_footprint(rows: usize, diagonals: usize) -> usize {
        stride(rows).saturating_mul(diagonals.div_ceil(2)).saturating_mul(size_of::<T>()) + 8 * diagonals + 4
    }

    /// Whether there are too many places per entry.
    pub(crate) fn refuses(rows: usize, diagonals: usize, nnz: usize) -> bool {
        is_too_much(places(rows, diagonals), nnz)
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
            Argument::Size(self.diagonals() as u32),
            Argument::Size(self.cols as u32),
            Argument::Offsets(&self.table),
            Argument::Values(&self.values),
        ]
    }

    fn row(&self, i: usize, x: &[T]) -> T {
        let first = (i / DIA_ROWS * self.step() + i % DIA_ROWS) as i64;
        let mut sum = T::zero();
        for (&offset, &start) in self.offsets().iter().zip(self.starts()) {
            let column = i as i64 + i64::from(offset);
            if (0..self.cols as i64).contains(&column) {
                sum = self.values[(first + i64::from(start)) as usize].fma(x[column as usize], sum);
            }
        }
        sum
    }
}

/// Number of places of `diagonals` diagonals, 64 rows at a time.
fn places(rows: usize, diagonals: usize) -> usize {
    rows.next_multiple_of(DIA_ROWS).saturating_mul(diagonals)
}

/// Number of places of one diagonal stored contiguously: an odd number of blocks, so that equal rows of
/// different diagonals do not map to the same cache sets.
fn stride(rows: usize) -> usize {
    (rows.div_ceil(DIA_ROWS) | 1) * DIA_ROWS
}

/// The offsets of the diagonals in use, in increasing order.
fn offsets_of<T: Scalar>(operation: &str, a: &Csr<T>) -> Result<Vec<i32>> {
    let offsets = diagonals(a);
    // Offsets and places of a block must fit in the integers of the kernels.
    let fits = |number: i64| i32::try_from(number).is_ok();
    if Dia::<T>::refuses(a.rows(), offsets.len(), a.nnz())
        || !offsets.iter().all(|&o| fits(o))
        || !fits((DIA_ROWS * offsets.len()) as i64)
    {
        return Err(Error::Unsupported {
            operation: operation.into(),
            message: format!(
                "{} diagonals are in use, which would take {} for {} entries ({} in csr); keep csr",
                offsets.len(),
                in_words(places(a.rows(), offsets.len()).saturating_mul(size_of::<T>())),
                a.nnz(),
                in_words(a.bytes()),
            ),
        });
    }
    check_sizes(operation, a.rows(), a.cols(), a.nnz())?;
    Ok(offsets.into_iter().map(|o| o as i32).collect())
}

/// `column − row` of every diagonal that holds an entry, in increasing order.
fn diagonals<T: Scalar>(a: &Csr<T>) -> Vec<i64> {
    let rows = a.rows();
    let seen: Vec<AtomicU64> = (0..(rows + a.cols()).div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
    parallel::for_each(a.row_shares(), |share| {
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
