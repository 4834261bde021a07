//! `C = A B` of sparse matrices, row by row (Gustavson 1978, doi:10.1145/355791.355796).
use super::accumulate::Accumulator;
use super::cells::{entry_row, one_each};
use super::pattern::SharedPattern;
use super::rows::sort_order;
use super::slots::Slots;
use crate::Csr;
use crate::build::cut::{cut, to_ends};
use crate::parallel::{self, map_with};
use crate::storage::checks::{check_sizes, not_finite};
use lacuna_engine::{Error, Result, Scalar, compiled_here, pages};
use std::ops::Range;

const OPERATION: &str = "sparse product";
/// Approximate number of products of entries in a run of rows.
const RUN: usize = 1 << 15;

/// `A B`. Entries that cancel to zero stay stored.
///
/// * Cost: two passes over the products of entries, one of them to count the entries of the result. Memory:
///   the result, and one number per column of `B` on each thread.
///
/// ```
/// use lacuna_formats::algebra::product;
/// use lacuna_io::Spec;
///
/// let a = Spec::parse("gen:poisson1d:9")?.build::<f64>()?;
/// assert_eq!(product(&a, &a)?.get(4, 2), Some(1.0));
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] unless `A` has as many columns as `B` has rows, [`Error::Entry`] if a sum is not finite,
/// [`Error::Structure`] if the result has too many entries for 32-bit indices, [`Error::OutOfMemory`].
pub fn product<T: Scalar>(a: &Csr<T>, b: &Csr<T>) -> Result<Csr<T>> {
    compiled_here!(T, |a: &Csr<T>, b: &Csr<T>| -> Result<Csr<T>> { Ok(planned(a, b, false)?.0) })(a, b)
}

/// SharedPattern and summation order of a product, for new values on the same patterns.
pub struct ProductPlan {
    /// Those of the factors and the product.
    patterns: [SharedPattern; 3],
    runs: Runs,
}

impl ProductPlan {
    /// `A B` with its plan, which takes two bytes per product of two entries.
    ///
    /// # Errors
    /// As [`product`].
    pub fn new<T: Scalar>(a: &Csr<T>, b: &Csr<T>) -> Result<(Self, Csr<T>)> {
        compiled_here!(T, |a: &Csr<T>, b: &Csr<T>| -> Result<(ProductPlan, Csr<T>)> {
            let (c, runs) = planned(a, b, true)?;
            Ok((ProductPlan { patterns: [a, b, &c].map(SharedPattern::of), runs }, c))
        })(a, b)
    }

    /// `C ← A B` for `A` and `B` with the patterns of the plan; `C` is the product of the plan, whose values
    /// are replaced.
    ///
    /// # Errors
    /// [`Error::Structure`] if a factor or `C` has another pattern than in the plan; [`Error::Entry`] if a sum
    /// is not finite, in which case the values of `C` are unusable.
    pub fn multiply<T: Scalar>(&self, a: &Csr<T>, b: &Csr<T>, c: &mut Csr<T>) -> Result<()> {
        compiled_here!(T, |plan: &ProductPlan, a: &Csr<T>, b: &Csr<T>, c: &mut Csr<T>| -> Result<()> {
            for ((kept, name), m) in plan.patterns.iter().zip(["A", "B", "C"]).zip([a, b, &*c]) {
                kept.check(OPERATION, name, m)?;
            }
            let fill = |slots: &Slots, rows: RowsMut<'_, T>| {
                let mut slots = slots.reader();
                for (i, sums) in rows {
                    for (k, v) in a.row_entries(i) {
                        slots.scatter::<T, 1, 1, 1>(&[[v]], entry_row(b, k).1, one_each(sums));
                    }
                }
            };
            let (row_ptr, col_idx, values) = c.parts_mut();
            let tasks = refills(row_ptr, values, &plan.runs);
            let wrong = parallel::map(tasks, |task| refill_run(row_ptr, task, fill));
            check_refilled(OPERATION, row_ptr, col_idx, wrong)
        })(self, a, b, c)
    }

    /// Bytes of the plan.
    pub fn bytes(&self) -> usize {
        self.runs.iter().map(|(_, slots)| slots.bytes()).sum()
    }
}

/// Fails unless `a` has as many columns as `b` has rows.
pub(super) fn check_factors<T: Scalar>(operation: &str, a: &Csr<T>, b: &Csr<T>) -> Result<()> {
    if a.cols() == b.rows() {
        return Ok(());
    }
    let expected = format!("a right factor of {} rows", a.cols());
    Err(Error::Shape { operation: operation.into(), expected, got: (b.rows(), b.cols()) })
}

/// The values of a run of rows, initially zero.
pub(super) struct RowsMut<'a, T> {
    rows: Range<usize>,
    row_ptr: &'a [u32],
    rest: &'a mut [T],
}

impl<'a, T> RowsMut<'a, T> {
    /// The next rows, by the first of them, which are at least one.
    #[inline]
    pub(super) fn next_rows(&mut self, count: usize) -> Option<(usize, &'a mut [T])> {
        let i = self.rows.next()?;
        self.rows.start += count - 1;
        let entries = (self.row_ptr[i + count] - self.row_ptr[i]) as usize;
        let (own, rest) = std::mem::take(&mut self.rest).split_at_mut(entries);
        self.rest = rest;
        Some((i, own))
    }
}

impl<'a, T> Iterator for RowsMut<'a, T> {
    type Item = (usize, &'a mut [T]);
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.next_rows(1)
    }
}

/// A run of rows whose values are replaced: the rows, what is kept of the run, its first entry and its values.
pub(super) type Refill<'a, T, K> = (Range<usize>, &'a K, usize, &'a mut [T]);

/// The values of a matrix, split among runs of its rows.
pub(super) fn refills<'a, T, K>(
    row_ptr: &[u32],
    values: &'a mut [T],
    runs: &'a [(Range<usize>, K)],
) -> impl Iterator<Item = Refill<'a, T, K>> {
    let firsts: Vec<_> = runs.iter().map(|(rows, _)| row_ptr[rows.start] as usize).collect();
    let lengths = runs.iter().map(|(rows, _)| (row_ptr[rows.end] - row_ptr[rows.start]) as usize);
    let parts = runs.iter().zip(firsts).zip(cut(values, lengths));
    parts.map(|(((rows, kept), first), own)| (rows.clone(), kept, first, own))
}

/// Replaces the values of a run by the sums that `fill` accumulates in its rows. Returns the first that is not
/// finite, by its entry.
pub(super) fn refill_run<T: Scalar, K>(
    row_ptr: &[u32],
    (rows, kept, first, own): Refill<'_, T, K>,
    fill: impl Fn(&K, RowsMut<'_, T>),
) -> Option<(usize, T)> {
    own.fill(T::zero());
    fill(kept, RowsMut { rows, row_ptr, rest: &mut *own });
    own.iter().position(|v| !v.finite()).map(|at| (first + at, own[at]))
}

/// Fails for the first value that is not finite, by its entry.
pub(super) fn check_refilled<T: Scalar>(
    operation: &str,
    row_ptr: &[u32],
    col_idx: &[u32],
    wrong: Vec<Option<(usize, T)>>,
) -> Result<()> {
    match wrong.into_iter().flatten().min_by_key(|(at, _)| *at) {
        None => Ok(()),
        Some((at, value)) => {
            let row = row_ptr.partition_point(|&p| p as usize <= at) - 1;
            Err(not_finite(operation, row, col_idx[at] as usize, value))
        }
    }
}

/// Rows split into runs of about [`RUN`] products each.
fn runs<T: Scalar>(a: &Csr<T>, b: &Csr<T>) -> Vec<Range<usize>> {
    let (mut runs, mut start, mut work) = (Vec::new(), 0, 0);
    for i in 0..a.rows() {
        work += 1 + a.row_slices(i).0.iter().map(|&k| b.row_slices(k as usize).0.len()).sum::<usize>();
        if work >= RUN {
            runs.push(start..i + 1);
            (start, work) = (i + 1, 0);
        }
    }
    runs.push(start..a.rows());
    runs
}

/// Runs of rows, each with its slots.
type Runs = Vec<(Range<usize>, Slots)>;

/// `A B`, and the slots of each run of rows if requested.
fn planned<T: Scalar>(a: &Csr<T>, b: &Csr<T>, keep: bool) -> Result<(Csr<T>, Runs)> {
    check_factors(OPERATION, a, b)?;
    let (rows, cols) = (a.rows(), b.cols());
    let runs = runs(a, b);
    let mut row_ptr = pages::zeroed::<u32>(OPERATION, rows + 1)?;
    let counts = cut(&mut row_ptr[1..], runs.iter().map(Range::len));
    let tasks = runs.iter().cloned().zip(counts);
    let count = |row: &mut Accumulator<T>, (run, counts): (Range<usize>, &mut [u32])| {
        let count = |(i, count): (usize, &mut u32)| {
            row.clear();
            row.touch(a.row_slices(i).0.iter().map(|&k| b.row_slices(k as usize).0));
            *count = row.columns().len() as u32;
            row.columns().len()
        };
        run.zip(counts).map(count).sum::<usize>()
    };
    let counts = map_with(tasks, || Accumulator::new(cols), count);
    let total = counts.iter().sum();
    check_sizes(OPERATION, rows, cols, total)?;
    to_ends(&mut row_ptr);
    let mut col_idx = pages::zeroed::<u32>(OPERATION, total)?;
    let mut values = pages::zeroed::<T>(OPERATION, total)?;
    let entries = || runs.iter().map(|run| (row_ptr[run.end] - row_ptr[run.start]) as usize);
    let tasks =
        runs.iter().cloned().zip(cut(&mut col_idx, entries()).into_iter().zip(cut(&mut values, entries())));
    let init = || (Accumulator::<T>::new(cols), Vec::new(), Vec::new());
    let fill = |(row, order, rank): &mut (Accumulator<T>, Vec<u64>, Vec<u32>), task: Task<'_, T>| {
        let (run, (mut columns, mut values)) = task;
        let (mut slots, mut longest) = (Vec::new(), 0);
        for i in run.clone() {
            row.clear();
            let first = slots.len();
            let (terms, factors) = entry_row(a, i);
            let terms = terms.iter().zip(factors).map(|(k, v)| (v, entry_row(b, *k as usize)));
            row.add::<1>(terms, &mut slots, keep);
            let count = row.columns().len();
            let (own_columns, rest_columns) = std::mem::take(&mut columns).split_at_mut(count);
            let (own_values, rest_values) = std::mem::take(&mut values).split_at_mut(count);
            (columns, values, longest) = (rest_columns, rest_values, longest.max(count));
            let sums = row.cells().as_flattened().as_flattened();
            if let Some(at) = sums.iter().position(|v| !v.finite()) {
                return Err(not_finite(OPERATION, i, row.columns()[at] as usize, sums[at]));
            }
            sort_order(row.columns(), order);
            for (k, key) in order.iter().enumerate() {
                own_columns[k] = (key >> 32) as u32;
                own_values[k] = sums[*key as u32 as usize];
            }
            if keep {
                ranks(order, rank);
                slots[first..].iter_mut().for_each(|slot| *slot = rank[*slot as usize]);
            }
        }
        Ok((run, Slots::new(slots, longest)))
    };
    let kept = map_with(tasks, init, fill).into_iter().collect::<Result<_>>()?;
    Ok((Csr::assembled(rows, cols, row_ptr, col_idx, values), kept))
}

/// The columns and the values of a run of rows.
type Task<'a, T> = (Range<usize>, (&'a mut [u32], &'a mut [T]));

/// The position of each place of a row in an order of [`sort_order`].
pub(super) fn ranks(order: &[u64], rank: &mut Vec<u32>) {
    rank.resize(order.len(), 0);
    order.iter().zip(0..).for_each(|(key, k)| rank[*key as u32 as usize] = k);
}
