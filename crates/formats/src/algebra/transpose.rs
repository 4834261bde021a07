//! Transposes with a map of their entries.
use super::pattern::SharedPattern;
use crate::Csr;
use crate::parallel;
use crate::storage::pattern::PatternRef;
use lacuna_engine::{Error, Result, Scalar, compiled_here, pages};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const OPERATION: &str = "sparse transpose";
/// Entries moved per task.
const GRAIN: usize = 1 << 14;
/// Columns counted per task.
const COLUMNS: usize = 1 << 11;

/// The pattern of a transpose, and the source of each of its entries.
pub struct TransposePlan {
    rows: usize,
    cols: usize,
    row_ptr: Arc<Vec<u32>>,
    col_idx: Arc<Vec<u32>>,
    from: Vec<u32>,
    /// That of the matrix, if the plan is for one.
    source: Option<SharedPattern>,
}

impl TransposePlan {
    /// The plan for the pattern of `a`.
    ///
    /// * Cost: two passes over the columns of `a`. Memory: the pattern and one number per entry; during
    ///   construction, one number per column on each thread.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn new<T: Scalar>(a: &Csr<T>) -> Result<Self> {
        let source = Some(SharedPattern::of(a));
        Ok(TransposePlan { source, ..TransposePlan::of(PatternRef::of(a))? })
    }

    /// The plan for a pattern without values: where the entries of each row begin and the last ones end, and their columns.
    ///
    /// # Errors
    /// [`Error::Structure`] for rows that do not follow each other up to the last entry, or a column that is not below `cols`;
    /// [`Error::OutOfMemory`].
    pub fn of_pattern(row_ptr: &[u32], col_idx: &[u32], cols: usize) -> Result<Self> {
        let structure = |message: String| Error::Structure { operation: OPERATION.into(), message };
        let increases = row_ptr.first() == Some(&0) && row_ptr.windows(2).all(|w| w[0] <= w[1]);
        if !increases || row_ptr.last().map(|&end| end as usize) != Some(col_idx.len()) {
            return Err(structure(format!(
                "expected rows from 0 up to entry {}, one after the other",
                col_idx.len()
            )));
        }
        if let Some(k) = parallel::find_first(col_idx.len(), GRAIN, |k| col_idx[k] as usize >= cols) {
            return Err(structure(format!(
                "expected columns below {cols}, got {} for entry {k}",
                col_idx[k]
            )));
        }
        TransposePlan::of(PatternRef { rows: row_ptr.len() - 1, cols, row_ptr, col_idx })
    }

    /// The plan for a valid pattern.
    pub(crate) fn of(a: PatternRef<'_>) -> Result<Self> {
        let PatternRef { rows: cols, cols: rows, col_idx, .. } = a;
        let runs = runs(a);
        // The number of entries of each run in each column, then the destination of the first one.
        let mut starts = parallel::map(&runs, |run| {
            let mut counts = vec![0u32; rows];
            col_idx[entries(a, run)].iter().for_each(|&j| counts[j as usize] += 1);
            counts
        });
        let mut ends = pages::zeroed::<u32>(OPERATION, rows + 1)?;
        places(&mut starts, &mut ends[1..]);
        // Each place is written once; atomics express that to the compiler at no cost.
        let [turned, from] = [(); 2].map(|()| pages::zeroed::<u32>(OPERATION, col_idx.len()));
        let (mut turned, mut from) = (turned?, from?);
        let (columns, sources) = (as_atomics(&mut turned), as_atomics(&mut from));
        parallel::for_each(runs.iter().zip(&mut starts), |(run, next)| {
            for i in run.clone() {
                for k in entries(a, &(i..i + 1)) {
                    let at = &mut next[col_idx[k] as usize];
                    columns[*at as usize].store(i as u32, Relaxed);
                    sources[*at as usize].store(k as u32, Relaxed);
                    *at += 1;
                }
            }
        });
        Ok(TransposePlan { rows, cols, row_ptr: ends.into(), col_idx: turned.into(), from, source: None })
    }

    /// The pattern of the transpose: the rows' first entries, and the columns of entries.
    pub fn pattern(&self) -> (&[u32], &[u32]) {
        (&self.row_ptr, &self.col_idx)
    }

    pub(crate) fn pattern_ref(&self) -> PatternRef<'_> {
        PatternRef { rows: self.rows, cols: self.cols, row_ptr: &self.row_ptr, col_idx: &self.col_idx }
    }

    /// The transpose of a matrix with the pattern of the plan.
    ///
    /// # Errors
    /// [`Error::Structure`] for a matrix of another pattern, [`Error::OutOfMemory`].
    pub fn transpose<T: Scalar>(&self, a: &Csr<T>) -> Result<Csr<T>> {
        compiled_here!(T, |plan: &TransposePlan, a: &Csr<T>| -> Result<Csr<T>> { plan.turned(a, |v| v) })(
            self, a,
        )
    }

    /// The conjugate transpose of a matrix with the pattern of the plan.
    ///
    /// # Errors
    /// As [`TransposePlan::transpose`].
    pub fn adjoint<T: Scalar>(&self, a: &Csr<T>) -> Result<Csr<T>> {
        compiled_here!(T, |plan: &TransposePlan, a: &Csr<T>| -> Result<Csr<T>> { plan.turned(a, T::conj) })(
            self, a,
        )
    }

    /// For each entry of the transpose, the index of its source in the matrix.
    pub fn from(&self) -> &[u32] {
        &self.from
    }

    fn turned<T: Scalar>(&self, a: &Csr<T>, f: impl Fn(T) -> T + Sync) -> Result<Csr<T>> {
        match &self.source {
            Some(pattern) => pattern.check(OPERATION, "a matrix", a)?,
            None => self.check(a)?,
        }
        let values = self.moved(a, f)?;
        let (row_ptr, col_idx) = (self.row_ptr.clone(), self.col_idx.clone());
        Ok(Csr::assembled(self.rows, self.cols, row_ptr, col_idx, values))
    }

    /// Fails unless a matrix has the pattern that the plan was made for without one.
    fn check<T: Scalar>(&self, a: &Csr<T>) -> Result<()> {
        let is_own = |i: usize| {
            let own = self.row_ptr[i] as usize..self.row_ptr[i + 1] as usize;
            own.into_iter().all(|k| a.place(self.from[k] as usize) == (self.col_idx[k] as usize, i))
        };
        let fits = (a.cols(), a.rows(), a.nnz()) == (self.rows, self.cols, self.from.len());
        if fits && parallel::find_first(self.rows, COLUMNS, |i| !is_own(i)).is_none() {
            return Ok(());
        }
        let message = format!(
            "expected a matrix of {} rows, {} columns and {} entries at the places of the plan, got {} rows, {} \
             columns and {} entries, or other places",
            self.cols,
            self.rows,
            self.from.len(),
            a.rows(),
            a.cols(),
            a.nnz()
        );
        Err(Error::Structure { operation: OPERATION.into(), message })
    }

    /// The values of a matrix with the pattern of the plan, in the order of the transpose.
    fn moved<T: Scalar>(&self, a: &Csr<T>, f: impl Fn(T) -> T + Sync) -> Result<Vec<T>> {
        let mut values = pages::zeroed::<T>(OPERATION, self.from.len())?;
        parallel::for_each(values.chunks_mut(GRAIN).zip(self.from.chunks(GRAIN)), |(values, from)| {
            values.iter_mut().zip(from).for_each(|(v, k)| *v = f(a.values()[*k as usize]));
        });
        Ok(values)
    }
}

/// The transpose with `f` applied to each value; `f` keeps finite values finite.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(crate) fn turned<T: Scalar>(a: &Csr<T>, f: impl Fn(T) -> T + Sync) -> Result<Csr<T>> {
    let plan = TransposePlan::new(a)?;
    let values = plan.moved(a, f)?;
    Ok(Csr::assembled(plan.rows, plan.cols, plan.row_ptr, plan.col_idx, values))
}

/// Replaces the numbers of entries of each run in each column by the places of the first ones, and finds where columns end.
fn places(counts: &mut [Vec<u32>], ends: &mut [u32]) {
    let units = counts.len() * ends.len();
    let mut chunks: Vec<_> = ends.chunks_mut(COLUMNS).map(|ends| (ends, Vec::new())).collect();
    for counts in counts {
        chunks.iter_mut().zip(counts.chunks_mut(COLUMNS)).for_each(|((_, all), own)| all.push(own));
    }
    let total = |(_, all): &(&mut [u32], Vec<&mut [u32]>)| all.iter().flat_map(|own| own.iter()).sum::<u32>();
    let totals = parallel::map_large(units, &chunks, total);
    let starts = totals.iter().scan(0, |next, total| Some(std::mem::replace(next, *next + total)));
    parallel::for_each_large(units, starts.zip(chunks), |(mut next, (ends, mut all))| {
        for (j, end) in ends.iter_mut().enumerate() {
            all.iter_mut().for_each(|own| next += std::mem::replace(&mut own[j], next));
            *end = next;
        }
    });
}

/// The entries of a run of rows.
fn entries(a: PatternRef<'_>, rows: &Range<usize>) -> Range<usize> {
    a.row_ptr[rows.start] as usize..a.row_ptr[rows.end] as usize
}

/// One run of rows per thread, since each run counts all columns; the result does not depend on the number of runs.
fn runs(a: PatternRef<'_>) -> Vec<Range<usize>> {
    let wanted = rayon::current_num_threads().min(a.nnz() / GRAIN).max(1);
    let start = |k: usize| a.row_ptr.partition_point(|&p| (p as usize) < a.nnz() / wanted * k).min(a.rows);
    let mut starts: Vec<usize> = (0..wanted).map(start).collect();
    starts[0] = 0;
    starts.push(a.rows);
    starts.windows(2).map(|w| w[0]..w[1]).collect()
}

/// The numbers as atomics.
fn as_atomics(numbers: &mut [u32]) -> &[AtomicU32] {
    // SAFETY: an `AtomicU32` has the size, alignment and bit validity of a `u32`, and the exclusive borrow
    // lasts as long as the result.
    unsafe { &*(std::ptr::from_mut(numbers) as *const [AtomicU32]) }
}
