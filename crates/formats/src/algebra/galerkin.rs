//! `C = R A P`, the coarse matrix of a Galerkin method, without storing `A P` as a matrix.
use super::RowWriter;
use super::accumulate::Accumulator;
use super::product::{Sizes, check_factors, check_sizes_of, ranks, refill, sizes};
use super::rows::{joined, sort_order, written};
use super::slots::Slots;
use crate::Csr;
use crate::parallel::{self, Lent, Pool, map_with};
use lacuna_engine::{Result, Scalar, compiled_here};
use std::ops::Range;
use std::sync::Mutex;

const OPERATION: &str = "Galerkin product";
/// Rows of a block of `A P`, as a power of two.
const SHIFT: u32 = 12;
/// Entries of `R` in a run of rows.
const RUN: usize = 1 << 16;

/// `R A P`: an entry is `Σ r_Ii (A P)_iJ` over increasing `i`, where `(A P)_iJ` is a sum over increasing
/// columns of `A`.
///
/// * Cost: one pass over the products of entries of `A P` and of `R (A P)`. Working memory: the rows of `A P`
///   that the current rows of `R` need, and one number per column of `P` on each thread.
///
/// # Errors
/// As [`super::product`].
pub fn galerkin<T: Scalar>(r: &Csr<T>, a: &Csr<T>, p: &Csr<T>) -> Result<Csr<T>> {
    compiled_here!(T, |r: &Csr<T>, a: &Csr<T>, p: &Csr<T>| -> Result<Csr<T>> {
        Ok(planned(r, a, p, false)?.1)
    })(r, a, p)
}

/// Patterns and summation order of a Galerkin product, for new values on the same patterns.
pub struct GalerkinPlan {
    /// Sizes of the factors and the product.
    sizes: [Sizes; 4],
    blocks: Vec<Layout>,
    runs: Vec<(Range<usize>, Slots)>,
}

/// The layout of a block of `A P`: the start of each row, and the destinations of products.
struct Layout {
    rows: Range<usize>,
    starts: Vec<u32>,
    slots: Slots,
}

/// A block of `A P`: the starts of its rows, their columns and values; empty until it is computed.
struct Block<T> {
    starts: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<T>,
}

impl<T> Default for Block<T> {
    fn default() -> Self {
        Block { starts: Vec::new(), columns: Vec::new(), values: Vec::new() }
    }
}

impl<T> Block<T> {
    /// A row of the matrix within the block.
    #[inline(always)]
    fn row(&self, i: usize) -> (&[u32], &[T]) {
        let k = i & ((1 << SHIFT) - 1);
        let own = self.starts[k] as usize..self.starts[k + 1] as usize;
        (&self.columns[own.clone()], &self.values[own])
    }
}

impl GalerkinPlan {
    /// `R A P` with its plan, which takes two bytes per product of two entries.
    ///
    /// # Errors
    /// As [`galerkin`].
    pub fn new<T: Scalar>(r: &Csr<T>, a: &Csr<T>, p: &Csr<T>) -> Result<(Self, Csr<T>)> {
        compiled_here!(T, |r: &Csr<T>, a: &Csr<T>, p: &Csr<T>| -> Result<(GalerkinPlan, Csr<T>)> {
            planned(r, a, p, true)
        })(r, a, p)
    }

    /// `C ← R A P` for factors with the patterns of the plan; `C` is the product of the plan, whose values
    /// are replaced.
    ///
    /// # Errors
    /// As [`super::ProductPlan::multiply`].
    pub fn multiply<T: Scalar>(&self, r: &Csr<T>, a: &Csr<T>, p: &Csr<T>, c: &mut Csr<T>) -> Result<()> {
        compiled_here!(T, |plan: &GalerkinPlan,
                           r: &Csr<T>,
                           a: &Csr<T>,
                           p: &Csr<T>,
                           c: &mut Csr<T>|
         -> Result<()> {
            check_sizes_of(OPERATION, &plan.sizes, &[sizes(r), sizes(a), sizes(p), sizes(c)])?;
            let numbers = |layout: &Layout| {
                let mut values = vec![T::zero(); layout.starts.last().map_or(0, |&end| end as usize)];
                let mut slots = layout.slots.reader();
                for (i, start) in layout.rows.clone().zip(&layout.starts) {
                    let sums = &mut values[*start as usize..];
                    for (k, v) in a.row_entries(i) {
                        slots.scatter(v, p.row_slices(k).1, sums);
                    }
                }
                values
            };
            let values: Vec<Vec<T>> = parallel::map(&plan.blocks, numbers);
            refill(OPERATION, c, &plan.runs, |slots, rows| {
                let mut slots = slots.reader();
                for (row, sums) in rows {
                    for (i, v) in r.row_entries(row) {
                        let (block, k) = (i >> SHIFT, i & ((1 << SHIFT) - 1));
                        let starts = &plan.blocks[block].starts;
                        let own = &values[block][starts[k] as usize..starts[k + 1] as usize];
                        slots.scatter(v, own, sums);
                    }
                }
            })
        })(self, r, a, p, c)
    }

    /// Bytes of the plan.
    pub fn bytes(&self) -> usize {
        let blocks = self.blocks.iter().map(|b| b.slots.bytes() + size_of_val(&b.starts[..]));
        blocks.sum::<usize>() + self.runs.iter().map(|(_, slots)| slots.bytes()).sum::<usize>()
    }
}

/// Computes a block of `A P`, and its slots if requested.
fn fill_block<T: Scalar>(
    row: &mut Accumulator<T>,
    made: &mut Block<T>,
    rows: Range<usize>,
    (a, p): (&Csr<T>, &Csr<T>),
    keep: bool,
) -> Option<Slots> {
    made.starts.clear();
    made.columns.clear();
    made.values.clear();
    let (mut slots, mut longest) = (Vec::new(), 0);
    made.starts.push(0);
    for i in rows {
        row.clear();
        row.add(a.row_entries(i).map(|(k, v)| (v, p.row_slices(k))), &mut slots, keep);
        longest = longest.max(row.columns().len());
        made.columns.extend_from_slice(row.columns());
        made.values.extend_from_slice(row.values());
        made.starts.push(made.columns.len() as u32);
    }
    keep.then(|| Slots::new(slots, longest))
}

/// Rows split into runs of about [`RUN`] entries.
fn runs<T: Scalar>(r: &Csr<T>) -> Vec<Range<usize>> {
    let (mut runs, mut start) = (Vec::new(), 0);
    for i in 0..r.rows() {
        if (r.row_ptr()[i + 1] - r.row_ptr()[start]) as usize >= RUN {
            runs.push(start..i + 1);
            start = i + 1;
        }
    }
    runs.push(start..r.rows());
    runs
}

/// The blocks that the rows of a run use.
fn blocks_of<T: Scalar>(r: &Csr<T>, run: &Range<usize>) -> Range<usize> {
    let block = |column: Option<&u32>| column.map(|&k| k as usize >> SHIFT);
    let first = run.clone().filter_map(|i| block(r.row_slices(i).0.first())).min();
    let last = run.clone().filter_map(|i| block(r.row_slices(i).0.last())).max();
    first.zip(last).map_or(0..0, |(first, last)| first..last + 1)
}

/// Processes the rows of `R` several runs at a time. The blocks of `A P` that these need are computed before
/// them, and freed after the last run that uses them: on matrices whose rows couple close neighbours, few
/// blocks are in memory at a time.
fn planned<T: Scalar>(r: &Csr<T>, a: &Csr<T>, p: &Csr<T>, keep: bool) -> Result<(GalerkinPlan, Csr<T>)> {
    check_factors(OPERATION, r, a)?;
    check_factors(OPERATION, a, p)?;
    let rows_of = |block: usize| block << SHIFT..((block + 1) << SHIFT).min(a.rows());
    let count = a.rows().div_ceil(1 << SHIFT);
    let runs = runs(r);
    let needed: Vec<Range<usize>> = parallel::map(&runs, |run| blocks_of(r, run));
    let accumulators = Pool::new(|| Accumulator::<T>::new(p.cols()));
    let mut blocks: Vec<Block<T>> = (0..count).map(|_| Block::default()).collect();
    let mut layouts: Vec<Option<Layout>> = (0..count).map(|_| None).collect();
    let (mut spare, mut kept, mut rows) = (Vec::<Block<T>>::new(), Vec::new(), Vec::new());
    let together = 2 * rayon::current_num_threads();
    for first in (0..runs.len()).step_by(together) {
        let end = (first + together).min(runs.len());
        let (window, needed_now) = (&runs[first..end], &needed[first..end]);
        let wanted = needed_now.iter().cloned().flatten();
        let mut wanted: Vec<usize> = wanted.filter(|&block| blocks[block].starts.is_empty()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let tasks = wanted.into_iter().map(|block| (block, spare.pop().unwrap_or_default()));
        let make = |row: &mut Lent<'_, Accumulator<T>>, (block, mut made): (usize, Block<T>)| {
            let slots = fill_block(row, &mut made, rows_of(block), (a, p), keep);
            (block, made, slots)
        };
        for (block, made, slots) in map_with(tasks, || accumulators.take(), make) {
            layouts[block] =
                slots.map(|slots| Layout { rows: rows_of(block), starts: made.starts.clone(), slots });
            blocks[block] = made;
        }
        let own = Mutex::new(Vec::new());
        let fill = |row: &mut Lent<'_, Accumulator<T>>, run: Range<usize>, out: &mut RowWriter<T>| {
            let (mut slots, mut longest, mut order, mut rank) = (Vec::new(), 0, Vec::new(), Vec::new());
            for i in run.clone() {
                row.clear();
                let first = slots.len();
                row.add(r.row_entries(i).map(|(k, v)| (v, blocks[k >> SHIFT].row(k))), &mut slots, keep);
                longest = longest.max(row.columns().len());
                if keep {
                    sort_order(row.columns(), &mut order);
                    ranks(&order, &mut rank);
                    slots[first..].iter_mut().for_each(|slot| *slot = rank[*slot as usize]);
                }
                out.row(row.columns(), row.values());
            }
            if keep && let Ok(mut own) = own.lock() {
                own.push((run, Slots::new(slots, longest)));
            }
        };
        rows.extend(written(OPERATION, p.cols(), window.to_vec(), || accumulators.take(), fill)?);
        let mut own = own.into_inner().unwrap_or_default();
        own.sort_by_key(|(run, _): &(Range<usize>, Slots)| run.start);
        kept.extend(own);
        let later = needed[end..].iter().filter(|blocks| !blocks.is_empty());
        let first_later = later.map(|blocks| blocks.start).min().unwrap_or(count);
        for block in blocks[..first_later].iter_mut().filter(|block| !block.starts.is_empty()) {
            spare.push(std::mem::take(block));
        }
    }
    let c = joined(OPERATION, r.rows(), p.cols(), rows)?;
    // Rows of `A P` that `R` does not use are in no layout.
    let empty = |(block, layout): (usize, Option<Layout>)| {
        layout.unwrap_or_else(|| Layout {
            rows: block..block,
            starts: Vec::new(),
            slots: Slots::new(Vec::new(), 0),
        })
    };
    let blocks = layouts.into_iter().enumerate().map(empty).collect();
    Ok((GalerkinPlan { sizes: [sizes(r), sizes(a), sizes(p), sizes(&c)], blocks, runs: kept }, c))
}
