//! `C = R A P`, the coarse matrix of a Galerkin method, without storing `A P` as a matrix.
use super::RowWriter;
use super::accumulate::Accumulator;
use super::cells::{Cell, CellRows, Cells, Part, one_each};
use super::pattern::SharedPattern;
use super::product::{RowsMut, check_factors, check_refilled, ranks, refill_run, refills};
use super::rows::{joined, sort_order, written};
use super::slots::Slots;
use super::window::Window;
use crate::Csr;
use crate::parallel::{self, Lent, Pool};
use lacuna_engine::{Complex64, Double, Result, compiled_here};
use std::ops::Range;
use std::sync::Mutex;

const OPERATION: &str = "Galerkin product";
/// Entries of `R` in a run of rows, for cells of one entry, at the least and at the most: few where a matrix is small,
/// so that there is a run for each thread.
const RUN: Range<usize> = 1 << 10..1 << 13;
/// Runs, and blocks of `A P`, unless these are too short or too long.
const RUNS: usize = 256;

/// Rows of cells in a block of `A P`, as a power of two, of `rows` rows of cells of `fine` rows: fewer where each is
/// larger, and where a matrix is small, so that there is a block for each thread.
fn shift(rows: usize, fine: usize) -> u32 {
    (rows / RUNS).max(1).ilog2().clamp(4, 12 - 2 * fine.ilog2())
}

/// `R A P`: an entry is `Σ r_Ii (A P)_iJ` over increasing `i`, where `(A P)_iJ` is a sum over increasing
/// columns of `A`.
///
/// * Cost: one pass over the products of entries of `A P` and of `R (A P)`. Working memory: the rows of `A P`
///   that the current rows of `R` need, and one number per column of `P` on each thread.
///
/// # Errors
/// As [`super::product`].
pub fn galerkin<T: Double>(r: &Csr<T>, a: &Csr<T>, p: &Csr<T>) -> Result<Csr<T>> {
    galerkin_by_cells(r, a, p, [1, 1])
}

/// [`galerkin`] for systems with several unknowns a node: `[fine, coarse]` unknowns, so that `A` consists of
/// cells of `fine × fine` entries, `P` of `fine × coarse` and `R` of `coarse × fine`. An index is looked up for
/// a cell, not for an entry. The result stores every entry of its cells; its numbers are those of [`galerkin`].
///
/// Cells of 2 × 2, 3 × 3, 6 × 6, 2 × 3 and 3 × 6 have code of their own. Others, and matrices that do not
/// consist of whole cells, are taken entry by entry.
///
/// # Errors
/// As [`super::product`].
pub fn galerkin_by_cells<T: Double>(r: &Csr<T>, a: &Csr<T>, p: &Csr<T>, cells: [usize; 2]) -> Result<Csr<T>> {
    compiled_here!(T: Double [f64, Complex64], |r: &Csr<T>, a: &Csr<T>, p: &Csr<T>, cells: [usize; 2]| -> Result<Csr<T>> {
        Ok(planned_by_cells([r, a, p], cells, false)?.1)
    })(r, a, p, cells)
}

/// Patterns and summation order of a Galerkin product, for new values on the same patterns.
pub struct GalerkinPlan {
    /// Rows and columns of a cell of `P`.
    cells: [usize; 2],
    /// Those of the factors and the product.
    patterns: [SharedPattern; 4],
    blocks: Vec<Layout>,
    runs: Vec<(Range<usize>, Slots)>,
}

/// The layout of a block of `A P`: the start of each row, and the destinations of products.
struct Layout {
    rows: Range<usize>,
    starts: Vec<u32>,
    slots: Slots,
}

/// Calls a function with the rows and columns of a cell of `P` as constants.
macro_rules! by_cells {
    ($cells:expr, $function:ident::<T>($($argument:expr),*)) => {
        match $cells {
            [2, 2] => $function::<T, 2, 2>($($argument),*),
            [3, 3] => $function::<T, 3, 3>($($argument),*),
            [6, 6] => $function::<T, 6, 6>($($argument),*),
            [2, 3] => $function::<T, 2, 3>($($argument),*),
            [3, 6] => $function::<T, 3, 6>($($argument),*),
            _ => $function::<T, 1, 1>($($argument),*),
        }
    };
}

impl GalerkinPlan {
    /// `R A P` with its plan, which takes two bytes per product of two entries.
    ///
    /// # Errors
    /// As [`galerkin`].
    pub fn new<T: Double>(r: &Csr<T>, a: &Csr<T>, p: &Csr<T>) -> Result<(Self, Csr<T>)> {
        GalerkinPlan::by_cells(r, a, p, [1, 1])
    }

    /// [`galerkin_by_cells`] with its plan, which takes two bytes per product of two cells.
    ///
    /// # Errors
    /// As [`galerkin`].
    pub fn by_cells<T: Double>(
        r: &Csr<T>,
        a: &Csr<T>,
        p: &Csr<T>,
        cells: [usize; 2],
    ) -> Result<(Self, Csr<T>)> {
        compiled_here!(T: Double [f64, Complex64], |r: &Csr<T>,
                           a: &Csr<T>,
                           p: &Csr<T>,
                           cells: [usize; 2]|
         -> Result<(GalerkinPlan, Csr<T>)> {
            planned_by_cells([r, a, p], cells, true)
        })(r, a, p, cells)
    }

    /// `C ← R A P` for factors with the patterns of the plan; `C` is the product of the plan, whose values
    /// are replaced.
    ///
    /// # Errors
    /// As [`super::ProductPlan::multiply`].
    pub fn multiply<T: Double>(&self, r: &Csr<T>, a: &Csr<T>, p: &Csr<T>, c: &mut Csr<T>) -> Result<()> {
        compiled_here!(T: Double [f64, Complex64], |plan: &GalerkinPlan,
                           r: &Csr<T>,
                           a: &Csr<T>,
                           p: &Csr<T>,
                           c: &mut Csr<T>|
         -> Result<()> {
            for ((kept, name), m) in plan.patterns.iter().zip(["R", "A", "P", "C"]).zip([r, a, p, &*c]) {
                kept.check(OPERATION, name, m)?;
            }
            by_cells!(plan.cells, repeated::<T>(plan, [r, a, p], c))
        })(self, r, a, p, c)
    }

    /// Bytes of the plan.
    pub fn bytes(&self) -> usize {
        let blocks = self.blocks.iter().map(|b| b.slots.bytes() + size_of_val(&b.starts[..]));
        blocks.sum::<usize>() + self.runs.iter().map(|(_, slots)| slots.bytes()).sum::<usize>()
    }
}

/// `C ← R A P` by a plan, with cells of `P` of `F × C` entries, several runs of rows at a time as in [`planned`].
fn repeated<T: Double, const F: usize, const C: usize>(
    plan: &GalerkinPlan,
    [r, a, p]: [&Csr<T>; 3],
    c: &mut Csr<T>,
) -> Result<()> {
    let (p, shift) = (Cells::<T, F, C>::new(p), shift(a.rows() / F, F));
    let fill_block = |(block, mut cells): (usize, Vec<Cell<T, F, C>>)| {
        let layout = &plan.blocks[block];
        cells.clear();
        cells.resize(layout.starts.last().map_or(0, |&end| end as usize), [[T::zero(); C]; F]);
        let (mut slots, mut a) = (layout.slots.reader(), CellRows::<T, F, F>::new(a));
        for (i, start) in layout.rows.clone().zip(&layout.starts) {
            let (columns, factors) = a.row(i);
            for (k, factor) in columns.iter().zip(factors) {
                slots.scatter(factor, p.row(*k as usize).1, &mut cells[*start as usize..]);
            }
        }
        (block, cells)
    };
    let needed = parallel::map(&plan.runs, |(rows, _)| {
        blocks_of::<T, F, C>(r, shift, &(rows.start / C..rows.end / C))
    });
    let (row_ptr, col_idx, values) = c.parts_mut();
    let mut tasks = refills(row_ptr, values, &plan.runs);
    let mut window = Window::new(&needed, plan.blocks.len());
    let mut wrong = Vec::new();
    while let Some(runs) = window.advance(fill_block) {
        let blocks = &window.blocks;
        let fill = |slots: &Slots, mut rows: RowsMut<'_, T>| {
            let (mut slots, mut r) = (slots.reader(), CellRows::<T, C, F>::new(r));
            let mut sums: Vec<Cell<T, C, C>> = Vec::new();
            while let Some((row, values)) = rows.next_rows(C) {
                let (columns, factors) = r.row(row / C);
                let mut add = |sums: &mut [Cell<T, C, C>]| {
                    for (i, factor) in columns.iter().zip(factors) {
                        let (block, k) = (*i as usize >> shift, *i as usize & ((1 << shift) - 1));
                        let starts = &plan.blocks[block].starts;
                        let own = starts[k] as usize..starts[k + 1] as usize;
                        let cells = blocks[block].as_deref().unwrap_or_default();
                        slots.scatter(factor, &cells[own], sums);
                    }
                };
                if C == 1 {
                    add(one_each(values));
                    continue;
                }
                sums.clear();
                sums.resize(values.len() / (C * C), [[T::zero(); C]; C]);
                add(&mut sums);
                for (k, row) in values.chunks_exact_mut(sums.len().max(1) * C).enumerate() {
                    row.chunks_exact_mut(C).zip(&sums).for_each(|(to, cell)| to.copy_from_slice(&cell[k]));
                }
            }
        };
        let runs = tasks.by_ref().take(runs.len());
        wrong.extend(parallel::map(runs, |task| refill_run(row_ptr, task, fill)));
    }
    check_refilled(OPERATION, row_ptr, col_idx, wrong)
}

/// Computes a block of `A P`, and its slots if requested.
fn fill_block<T: Double, const F: usize, const C: usize>(
    row: &mut Accumulator<T, F, C>,
    made: &mut Part<T, F, C>,
    rows: Range<usize>,
    (a, p): (&Csr<T>, &Cells<'_, T, F, C>),
    keep: bool,
) -> Option<Slots> {
    let (mut slots, mut longest) = (Vec::new(), 0);
    let mut a = CellRows::<T, F, F>::new(a);
    made.clear();
    for i in rows {
        row.clear();
        let (columns, factors) = a.row(i);
        let terms = columns.iter().zip(factors).map(|(k, factor)| (factor, p.row(*k as usize)));
        row.add(terms, &mut slots, keep);
        longest = longest.max(row.columns().len());
        made.push((row.columns(), row.cells()));
    }
    keep.then(|| Slots::new(slots, longest))
}

/// Rows of cells of `C` rows each, split into about [`RUNS`] runs within the bounds of [`RUN`], times `C`.
fn runs<T: Double, const C: usize>(r: &Csr<T>) -> Vec<Range<usize>> {
    let length = (r.nnz() / (RUNS * C)).clamp(RUN.start, RUN.end) * C;
    let (mut runs, mut start) = (Vec::new(), 0);
    for i in 0..r.rows() / C {
        if (r.row_ptr()[(i + 1) * C] - r.row_ptr()[start * C]) as usize >= length {
            runs.push(start..i + 1);
            start = i + 1;
        }
    }
    runs.push(start..r.rows() / C);
    runs
}

/// The blocks that the rows of a run use.
fn blocks_of<T: Double, const F: usize, const C: usize>(
    r: &Csr<T>,
    shift: u32,
    run: &Range<usize>,
) -> Range<usize> {
    let block = |column: Option<&u32>| column.map(|&k| (k as usize / F) >> shift);
    let rows = || (run.start * C..run.end * C).map(|i| r.row_slices(i).0);
    let first = rows().filter_map(|row| block(row.first())).min();
    let last = rows().filter_map(|row| block(row.last())).max();
    first.zip(last).map_or(0..0, |(first, last)| first..last + 1)
}

/// `R A P` with cells of `P` of a given size, if all matrices consist of whole cells.
fn planned_by_cells<T: Double>(
    [r, a, p]: [&Csr<T>; 3],
    [fine, coarse]: [usize; 2],
    keep: bool,
) -> Result<(GalerkinPlan, Csr<T>)> {
    check_factors(OPERATION, r, a)?;
    check_factors(OPERATION, a, p)?;
    let whole = |n: usize, cell: usize| cell > 0 && n.is_multiple_of(cell);
    let fits =
        whole(r.rows(), coarse) && whole(p.cols(), coarse) && whole(a.rows(), fine) && whole(a.cols(), fine);
    by_cells!(if fits { [fine, coarse] } else { [1, 1] }, planned::<T>([r, a, p], keep))
}

/// Processes the rows of `R` several runs at a time. Rows and columns are those of cells.
fn planned<T: Double, const F: usize, const C: usize>(
    [r, a, p]: [&Csr<T>; 3],
    keep: bool,
) -> Result<(GalerkinPlan, Csr<T>)> {
    let (factors, p_cols) = ([r, a, p], p.cols());
    let (rows, cols) = (a.rows() / F, p_cols / C);
    let (p, shift) = (&Cells::<T, F, C>::new(p), shift(rows, F));
    let rows_of = |block: usize| block << shift..((block + 1) << shift).min(rows);
    let count = rows.div_ceil(1 << shift);
    let runs = runs::<T, C>(r);
    let needed: Vec<Range<usize>> = parallel::map(&runs, |run| blocks_of::<T, F, C>(r, shift, run));
    let accumulators = Pool::new(|| Accumulator::<T, F, C>::new(cols));
    let accumulators_of_rows = Pool::new(|| Accumulator::<T, C, C>::new(cols));
    let layouts: Vec<Mutex<Option<Layout>>> = (0..count).map(|_| Mutex::default()).collect();
    let fill_block = |row: &mut Lent<'_, Accumulator<T, F, C>>, (block, mut made): (usize, Part<T, F, C>)| {
        let slots = fill_block(row, &mut made, rows_of(block), (a, p), keep);
        if let (Some(slots), Ok(mut layout)) = (slots, layouts[block].lock()) {
            *layout = Some(Layout { rows: rows_of(block), starts: made.starts.clone(), slots });
        }
        (block, made)
    };
    let (mut kept, mut written_rows) = (Vec::new(), Vec::new());
    let mut window = Window::new(&needed, count);
    while let Some(now) = window.advance_with(|| accumulators.take(), fill_block) {
        let blocks = &window.blocks;
        let own = Mutex::new(Vec::new());
        let fill = |row: &mut Lent<'_, Accumulator<T, C, C>>, run: Range<usize>, out: &mut RowWriter<T>| {
            let (mut slots, mut longest, mut order, mut rank) = (Vec::new(), 0, Vec::new(), Vec::new());
            let mut r = CellRows::<T, C, F>::new(r);
            let row_of = |k: usize| match &blocks[k >> shift] {
                Some(block) => block.row(k & ((1 << shift) - 1)),
                None => unreachable!("the blocks of a run are there"),
            };
            for i in run.start / C..run.end / C {
                row.clear();
                let first = slots.len();
                let (columns, factors) = r.row(i);
                let terms = columns.iter().zip(factors).map(|(k, factor)| (factor, row_of(*k as usize)));
                row.add(terms, &mut slots, keep);
                longest = longest.max(row.columns().len());
                if keep {
                    sort_order(row.columns(), &mut order);
                    ranks(&order, &mut rank);
                    slots[first..].iter_mut().for_each(|slot| *slot = rank[*slot as usize]);
                }
                out.cells(row.columns(), row.cells());
            }
            if keep && let Ok(mut own) = own.lock() {
                own.push((run, Slots::new(slots, longest)));
            }
        };
        let now = runs[now].iter().map(|run| run.start * C..run.end * C).collect();
        written_rows.extend(written(OPERATION, p_cols, now, None, || accumulators_of_rows.take(), fill)?);
        kept.extend(in_order(own.into_inner().unwrap_or_default()));
    }
    let c = joined(OPERATION, r.rows(), p_cols, written_rows)?;
    // Rows of `A P` that `R` does not use are in no layout.
    let empty = |(block, layout): (usize, Mutex<Option<Layout>>)| {
        layout.into_inner().ok().flatten().unwrap_or_else(|| Layout {
            rows: block..block,
            starts: Vec::new(),
            slots: Slots::new(Vec::new(), 0),
        })
    };
    let blocks = layouts.into_iter().enumerate().map(empty).collect();
    let [r, a, p] = factors;
    Ok((
        GalerkinPlan { cells: [F, C], patterns: [r, a, p, &c].map(SharedPattern::of), blocks, runs: kept },
        c,
    ))
}

/// Runs of rows in their order.
fn in_order(mut runs: Vec<(Range<usize>, Slots)>) -> Vec<(Range<usize>, Slots)> {
    runs.sort_unstable_by_key(|(run, _)| run.start);
    runs
}
