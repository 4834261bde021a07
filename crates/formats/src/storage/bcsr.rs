//! Compressed rows of small dense blocks.
use crate::Csr;
use crate::build::cut::cut;
use crate::parallel;
use crate::storage::checks::check_sizes;
use crate::storage::csr::lanes;
use crate::storage::pattern::PatternRef;
use lacuna_engine::{Argument, Error, Format, Result, Scalar};

/// Block sizes with kernels.
pub const BLOCK_SIZES: [usize; 7] = [2, 3, 4, 5, 6, 7, 8];
/// The largest of them.
const MOST: usize = BLOCK_SIZES[BLOCK_SIZES.len() - 1];
/// Block rows converted per task.
const RUN: usize = 256;

/// A sparse matrix in compressed rows of dense square blocks, with one column index per block.
///
/// A block is stored column by column: its entry at row `r` and column `c` is at `c b + r` of its `b²`
/// places. A row sum runs along the blocks of its block row and the columns of each, with one fused
/// multiply-add per column; block `k` of a block row belongs to lane `k mod W`, and lanes are summed by
/// halving.
///
/// Reference: Buatois et al. 2009, section 4.1 (BCRS).
#[derive(Clone, Debug, PartialEq)]
pub struct Bcsr<T> {
    rows: usize,
    cols: usize,
    nnz: usize,
    block: usize,
    row_ptr: Vec<u32>,
    col_idx: Vec<u32>,
    values: Vec<T>,
    lanes: usize,
}

impl<T: Scalar> Bcsr<T> {
    /// The same matrix in blocks of `block` rows and columns.
    ///
    /// # Errors
    /// [`Error::Argument`] for a block size that is not in [`BLOCK_SIZES`]; [`Error::Unsupported`] if rows or
    /// columns are not a multiple of it; [`Error::OutOfMemory`].
    pub fn from_csr(a: &Csr<T>, block: usize) -> Result<Self> {
        const OPERATION: &str = "Bcsr::from_csr";
        if !BLOCK_SIZES.contains(&block) {
            let message = format!("expected 2 to {MOST}, got {block}");
            return Err(Error::Argument { what: "block size".into(), message });
        }
        let (rows, cols, nnz) = (a.rows(), a.cols(), a.nnz());
        if !rows.is_multiple_of(block) || !cols.is_multiple_of(block) {
            let message = format!("{rows} rows and {cols} columns are not multiples of {block}; keep csr");
            return Err(Error::Unsupported { operation: OPERATION.into(), message });
        }
        let block_rows = rows / block;
        let count = |i| match whole_blocks(PatternRef::of(a), i, [block; 2]) {
            Some(own) => own.len() / block,
            None => columns(PatternRef::of(a), i, block).count(),
        };
        let counts = parallel::collect(block_rows, RUN, |i| count(i) as u32);
        let mut row_ptr = Vec::with_capacity(block_rows + 1);
        row_ptr.push(0);
        let mut blocks = 0usize;
        for count in &counts {
            blocks += *count as usize;
            row_ptr.push(blocks.min(u32::MAX as usize) as u32);
        }
        check_sizes(OPERATION, rows, cols, blocks.saturating_mul(block * block))?;
        let mut col_idx = lacuna_engine::pages::zeroed::<u32>(OPERATION, blocks)?;
        let mut values = lacuna_engine::pages::zeroed::<T>(OPERATION, blocks * block * block)?;
        let runs = || parallel::ranges(block_rows, RUN);
        let blocks_of = || runs().map(|run| (row_ptr[run.end] - row_ptr[run.start]) as usize);
        let parts = cut(&mut col_idx, blocks_of())
            .into_iter()
            .zip(cut(&mut values, blocks_of().map(|count| count * block * block)));
        parallel::for_each(runs().zip(parts), |(block_rows, (c, v))| {
            let start = row_ptr[block_rows.start] as usize;
            for i in block_rows {
                let range = row_ptr[i] as usize - start..row_ptr[i + 1] as usize - start;
                let own = &mut c[range.clone()];
                if let Some(whole) = whole_blocks(PatternRef::of(a), i, [block; 2]) {
                    own.iter_mut()
                        .zip(whole.iter().step_by(block))
                        .for_each(|(at, c)| *at = c / block as u32);
                    let cells = &mut v[range.start * block * block..range.end * block * block];
                    for r in 0..block {
                        let (_, values) = a.row_slices(i * block + r);
                        cells[r..].iter_mut().step_by(block).zip(values).for_each(|(to, v)| *to = *v);
                    }
                    continue;
                }
                own.iter_mut()
                    .zip(columns(PatternRef::of(a), i, block))
                    .for_each(|(at, column)| *at = column);
                for r in 0..block {
                    let mut k = 0;
                    for (j, value) in a.row_entries(i * block + r) {
                        while (own[k] as usize) < j / block {
                            k += 1;
                        }
                        v[(range.start + k) * block * block + j % block * block + r] = value;
                    }
                }
            }
        });
        let filled = counts.iter().filter(|&&count| count > 0).count();
        Ok(Bcsr { rows, cols, nnz, block, row_ptr, col_idx, values, lanes: lanes(blocks * block, filled) })
    }

    /// Rows and columns of a block.
    pub fn block(&self) -> usize {
        self.block
    }
    /// The start of each block row in [`Bcsr::col_idx`], and the end of the last.
    pub fn row_ptr(&self) -> &[u32] {
        &self.row_ptr
    }
    /// The block column of each block.
    pub fn col_idx(&self) -> &[u32] {
        &self.col_idx
    }
    /// The blocks, each column by column.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Bytes of `blocks` blocks.
    pub(crate) fn footprint(rows: usize, block: usize, blocks: usize) -> usize {
        blocks.saturating_mul(block * block * size_of::<T>() + 4) + 4 * (rows / block + 1)
    }
}

/// The columns of a block row, if there are any, its rows have the same ones and these fill blocks.
pub(crate) fn whole_blocks(
    a: PatternRef<'_>,
    block_row: usize,
    [rows, columns]: [usize; 2],
) -> Option<&[u32]> {
    let row = |r: usize| a.row(block_row * rows + r);
    let (first, last) = (row(0), columns as u32 - 1);
    let fills =
        |block: &[u32]| block[0].is_multiple_of(columns as u32) && block[columns - 1] - block[0] == last;
    let all_fill =
        !first.is_empty() && first.len().is_multiple_of(columns) && first.chunks_exact(columns).all(fills);
    (all_fill && (1..rows).all(|r| row(r) == first)).then_some(first)
}

/// The block columns of a block row that hold an entry, in increasing order.
pub(crate) fn columns(a: PatternRef<'_>, block_row: usize, block: usize) -> impl Iterator<Item = u32> + '_ {
    let mut rows: [&[u32]; MOST] = std::array::from_fn(|r| match r < block {
        true => a.row(block_row * block + r),
        false => &[],
    });
    std::iter::from_fn(move || {
        let next = rows.iter().filter_map(|row| row.first()).min()? / block as u32;
        for row in &mut rows {
            let past = row.iter().take_while(|&&c| c / block as u32 == next).count();
            *row = &row[past..];
        }
        Some(next)
    })
}

impl<T: Scalar> Format<T> for Bcsr<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn nnz(&self) -> usize {
        self.nnz
    }

    fn kernel(&self) -> &'static str {
        "bcsr"
    }

    fn arguments(&self) -> Vec<Argument<'_, T>> {
        vec![
            Argument::Size(self.block as u32),
            Argument::Indices(&self.row_ptr),
            Argument::Indices(&self.col_idx),
            Argument::Values(&self.values),
        ]
    }

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn row(&self, i: usize, x: &[T]) -> T {
        let b = self.block;
        let (block_row, r) = (i / b, i % b);
        let first = self.row_ptr[block_row] as usize;
        let mut sums = vec![T::zero(); self.lanes];
        for k in first..self.row_ptr[block_row + 1] as usize {
            let column = self.col_idx[k] as usize * b;
            for c in 0..b {
                let lane = &mut sums[(k - first) % self.lanes];
                *lane = self.values[k * b * b + c * b + r].fma(x[column + c], *lane);
            }
        }
        let mut half = self.lanes / 2;
        while half > 0 {
            for j in 0..half {
                let upper = sums[j + half];
                sums[j] += upper;
            }
            half /= 2;
        }
        sums[0]
    }
}
