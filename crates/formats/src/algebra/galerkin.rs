//! `C = R A P`, the coarse matrix of Galerkin's method, without `A P` as a matrix.
use super::accumulate::Accumulator;
use super::product::{Sizes, check_factors, check_sizes_of, ranks, refill, sizes};
use super::rows::{build_rows_with, sort_order};
use super::slots::Slots;
use super::workers::shared;
use crate::Csr;
use lacuna_core::{Result, Scalar};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Mutex;

const OPERATION: &str = "Galerkin product";
/// Rows of a block of `A P`, as a power of two.
const SHIFT: u32 = 12;

/// `R A P`: an entry is `Σ r_Ii (A P)_iJ` over increasing `i`, where `(A P)_iJ` is a sum over increasing columns of `A`.
///
/// * Cost: one pass over the products of entries of `A P` and of `R (A P)`. Memory while it runs: `A P` with its columns,
///   unsorted, and a number for each column of `P` on each thread.
///
/// # Errors
/// As [`super::product`].
pub fn galerkin<T: Scalar>(r: &Csr<T>, a: &Csr<T>, p: &Csr<T>) -> Result<Csr<T>> {
    Ok(planned(r, a, p, false)?.1)
}

/// Patterns and orders of a Galerkin product, for new values on the patterns of its factors.
pub struct GalerkinPlan {
    /// Of the factors and the product.
    sizes: [Sizes; 4],
    blocks: Vec<Layout>,
    runs: Vec<(Range<usize>, Slots)>,
}

/// The rows of a block of `A P`: where each starts, and where products go.
struct Layout {
    rows: Range<usize>,
    starts: Vec<u32>,
    slots: Slots,
}

/// A block of `A P`: where its rows start, and the values, their columns where these are needed.
struct Block<T> {
    starts: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<T>,
}

impl<T> Block<T> {
    /// A row of the matrix that is in the block.
    #[inline(always)]
    fn row(&self, i: usize) -> (&[u32], &[T]) {
        let k = i & ((1 << SHIFT) - 1);
        let own = self.starts[k] as usize..self.starts[k + 1] as usize;
        (&self.columns[own.clone()], &self.values[own])
    }
}

impl GalerkinPlan {
    /// `R A P` with its plan, which takes two bytes for every product of two entries.
    ///
    /// # Errors
    /// As [`galerkin`].
    pub fn new<T: Scalar>(r: &Csr<T>, a: &Csr<T>, p: &Csr<T>) -> Result<(Self, Csr<T>)> {
        planned(r, a, p, true)
    }

    /// `C ← R A P` for factors on the patterns of the plan; `C` is the product of the plan, whose values are replaced.
    ///
    /// # Errors
    /// As [`super::ProductPlan::multiply`].
    pub fn multiply<T: Scalar>(&self, r: &Csr<T>, a: &Csr<T>, p: &Csr<T>, c: &mut Csr<T>) -> Result<()> {
        check_sizes_of(OPERATION, &self.sizes, &[sizes(r), sizes(a), sizes(p), sizes(c)])?;
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
        let values: Vec<Vec<T>> = self.blocks.par_iter().map(numbers).collect();
        refill(OPERATION, c, &self.runs, |slots, rows| {
            let mut slots = slots.reader();
            for (row, sums) in rows {
                for (i, v) in r.row_entries(row) {
                    let (block, k) = (i >> SHIFT, i & ((1 << SHIFT) - 1));
                    let starts = &self.blocks[block].starts;
                    let own = &values[block][starts[k] as usize..starts[k + 1] as usize];
                    slots.scatter(v, own, sums);
                }
            }
        })
    }

    /// Bytes of the plan.
    pub fn bytes(&self) -> usize {
        let blocks = self.blocks.iter().map(|b| b.slots.bytes() + size_of_val(&b.starts[..]));
        blocks.sum::<usize>() + self.runs.iter().map(|(_, slots)| slots.bytes()).sum::<usize>()
    }
}

/// `A P` in blocks, with the slots where they are asked for.
fn blocks<T: Scalar>(a: &Csr<T>, p: &Csr<T>, keep: bool) -> Vec<(Block<T>, Option<Slots>)> {
    let make = |row: &mut Accumulator<T>, block: usize| {
        let rows = block << SHIFT..((block + 1) << SHIFT).min(a.rows());
        let of_row = |i: usize| a.row_slices(i).0.iter().map(|&k| p.row_slices(k as usize).0.len());
        let products = rows.clone().flat_map(of_row).sum();
        let mut made = Block {
            starts: Vec::with_capacity(rows.len() + 1),
            columns: Vec::with_capacity(products),
            values: Vec::with_capacity(products),
        };
        let (mut slots, mut longest) = (Vec::with_capacity(if keep { products } else { 0 }), 0);
        made.starts.push(0);
        for i in rows {
            row.clear();
            row.add(a.row_entries(i).map(|(k, v)| (v, p.row_slices(k))), &mut slots, keep);
            longest = longest.max(row.columns().len());
            made.columns.extend_from_slice(row.columns());
            made.values.extend_from_slice(row.values());
            made.starts.push(made.columns.len() as u32);
        }
        (made, keep.then(|| Slots::new(slots, longest)))
    };
    let count = a.rows().div_ceil(1 << SHIFT);
    shared((0..count).collect(), || Accumulator::new(p.cols()), make)
}

fn planned<T: Scalar>(r: &Csr<T>, a: &Csr<T>, p: &Csr<T>, keep: bool) -> Result<(GalerkinPlan, Csr<T>)> {
    check_factors(OPERATION, r, a)?;
    check_factors(OPERATION, a, p)?;
    let (blocks, layouts): (Vec<_>, Vec<_>) = blocks(a, p, keep).into_iter().unzip();
    let runs = r.row_shares();
    let kept = Mutex::new(Vec::new());
    let fill = |row: &mut Accumulator<T>, rows: Range<usize>, out: &mut super::RowWriter<T>| {
        let (mut slots, mut longest, mut order, mut rank) = (Vec::new(), 0, Vec::new(), Vec::new());
        for i in rows.clone() {
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
        if keep && let Ok(mut kept) = kept.lock() {
            kept.push((rows, Slots::new(slots, longest)));
        }
    };
    let c = build_rows_with(OPERATION, r.rows(), p.cols(), runs, || Accumulator::new(p.cols()), fill)?;
    let mut runs = kept.into_inner().unwrap_or_default();
    runs.sort_by_key(|(rows, _)| rows.start);
    let layout = |(block, (made, slots)): (usize, (Block<T>, Option<Slots>))| {
        let rows = block << SHIFT..((block + 1) << SHIFT).min(a.rows());
        slots.map(|slots| Layout { rows, starts: made.starts, slots })
    };
    let blocks = blocks.into_iter().zip(layouts).enumerate().filter_map(layout).collect();
    Ok((GalerkinPlan { sizes: [sizes(r), sizes(a), sizes(p), sizes(&c)], blocks, runs }, c))
}
