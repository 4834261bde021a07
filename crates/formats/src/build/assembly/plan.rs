//! The destination of each value of an assembly, so that new values take one pass.
use crate::Csr;
use crate::build::cut::{cut, lengths};
use crate::parallel;
use crate::storage::checks::check_sizes;
use lacuna_engine::{Error, Result, Scalar, compiled_here, pages};
use std::ops::Range;

/// Rows per task; entries per task.
const ROWS: usize = 4096;
const GRAIN: usize = 16_384;

/// The pattern of a matrix assembled from values, and the values that each entry is the sum of.
///
/// A value is identified by its position in the sequence of all values. An entry is the sum of its values in
/// sequence order, so that the bits are those of [`Triplets::to_csr`](crate::Triplets::to_csr), with any
/// number of threads.
///
/// ```
/// use lacuna_formats::AssemblyPlan;
///
/// let plan = AssemblyPlan::new(2, 2, &[(0, 0), (1, 1), (0, 0), (0, 1)])?;
/// let a = plan.matrix(&[1.0, 2.0, 0.5, 4.0])?;
/// assert_eq!((a.nnz(), a.get(0, 0)), (3, Some(1.5)));
/// let mut values = [0.0; 3];
/// plan.sum(&[2.0, 2.0, 1.0, 4.0], &mut values)?;
/// assert_eq!(values, [3.0, 4.0, 2.0]);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AssemblyPlan {
    rows: usize,
    cols: usize,
    /// Number of values in the sequence.
    len: usize,
    row_ptr: Vec<u32>,
    col_idx: Vec<u32>,
    /// The start of the sources of each entry, and the end of the last.
    starts: Vec<u32>,
    sources: Vec<u32>,
}

impl AssemblyPlan {
    /// The plan for values at these rows and columns; several values may be at the same place. A place whose
    /// row or column is [`FIXED`](crate::FIXED) is omitted.
    ///
    /// # Errors
    /// [`Error::Entry`] for a place outside the matrix, [`Error::Structure`] for too many rows, columns or
    /// places for 32-bit indices, [`Error::OutOfMemory`].
    pub fn new(rows: usize, cols: usize, places: &[(u32, u32)]) -> Result<Self> {
        const OPERATION: &str = "AssemblyPlan::new";
        check_sizes(OPERATION, rows, cols, places.len())?;
        let takes_part = |place: &(u32, u32)| place.0 != u32::MAX && place.1 != u32::MAX;
        let outside =
            |place: &(u32, u32)| takes_part(place) && (place.0 as usize >= rows || place.1 as usize >= cols);
        if let Some(k) = parallel::find_first(places.len(), GRAIN, |k| outside(&places[k])) {
            let (row, column) = (places[k].0 as usize, places[k].1 as usize);
            let message = format!("value {k} lies outside the {rows}x{cols} matrix");
            return Err(Error::Entry { operation: OPERATION.into(), row, column, message });
        }
        let mut starts = pages::zeroed::<u32>(OPERATION, rows + 1)?;
        let taking_part = || places.iter().zip(0u64..).filter(|(place, _)| takes_part(place));
        taking_part().for_each(|((i, _), _)| starts[*i as usize + 1] += 1);
        (0..rows).for_each(|i| starts[i + 1] += starts[i]);
        let mut next = starts.clone();
        let mut keys = pages::zeroed::<u64>(OPERATION, starts[rows] as usize)?;
        for ((i, j), k) in taking_part() {
            let at = &mut next[*i as usize];
            keys[*at as usize] = key(*j, k);
            *at += 1;
        }
        let of_row = |i: usize, out: &mut Vec<u64>| {
            out.extend_from_slice(&keys[starts[i] as usize..starts[i + 1] as usize]);
        };
        Self::of_rows(OPERATION, [rows, cols, places.len()], of_row)
    }

    /// The plan whose row `i` has the [`key`]s appended by `of_row(i)`.
    pub(super) fn of_rows(
        operation: &str,
        [rows, cols, len]: [usize; 3],
        of_row: impl Fn(usize, &mut Vec<u64>) + Sync,
    ) -> Result<Self> {
        let written = parallel::map(parallel::ranges(rows, ROWS), |rows| Run::new(rows, &of_row));
        let entries = written.iter().map(|run| run.columns.len()).sum();
        let used = written.iter().map(|run| run.sources.len()).sum();
        check_sizes(operation, rows, cols, used)?;
        let mut row_ptr = pages::zeroed::<u32>(operation, rows + 1)?;
        let mut col_idx = pages::zeroed::<u32>(operation, entries)?;
        let mut starts = pages::zeroed::<u32>(operation, entries + 1)?;
        let mut sources = pages::zeroed::<u32>(operation, used)?;
        let of_entries = || written.iter().map(|run| run.columns.len());
        let own_ends = cut(&mut row_ptr[1..], written.iter().map(|run| run.ends.len()));
        let own_columns = cut(&mut col_idx, of_entries());
        let own_starts = cut(&mut starts[1..], of_entries());
        let own_sources = cut(&mut sources, written.iter().map(|run| run.sources.len()));
        let mut before = (0, 0);
        let offsets = written.iter().map(|run| {
            let (entries, sources) = (run.columns.len() as u32, run.sources.len() as u32);
            let at = before;
            before = (before.0 + entries, before.1 + sources);
            at
        });
        let arrays = own_ends.into_iter().zip(own_columns).zip(own_starts).zip(own_sources);
        let tasks = arrays.zip(&written).zip(offsets);
        parallel::for_each(tasks, |(((((ends, columns), starts), sources), run), at)| {
            ends.iter_mut().zip(&run.ends).for_each(|(to, end)| *to = at.0 + end);
            columns.copy_from_slice(&run.columns);
            starts.iter_mut().zip(&run.starts).for_each(|(to, end)| *to = at.1 + end);
            sources.copy_from_slice(&run.sources);
        });
        Ok(AssemblyPlan { rows, cols, len, row_ptr, col_idx, starts, sources })
    }

    /// Number of values, including omitted ones.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Number of entries of the matrix.
    pub fn nnz(&self) -> usize {
        self.col_idx.len()
    }
    /// Bytes of the plan.
    pub fn bytes(&self) -> usize {
        [&self.row_ptr, &self.col_idx, &self.starts, &self.sources]
            .map(|all| size_of_val(&all[..]))
            .iter()
            .sum()
    }

    /// The matrix assembled from these values. Runs on the current rayon pool.
    ///
    /// # Errors
    /// [`Error::Length`] unless there are [`AssemblyPlan::len`] values, [`Error::Entry`] for a sum that is
    /// not finite, [`Error::OutOfMemory`].
    pub fn matrix<T: Scalar>(&self, values: &[T]) -> Result<Csr<T>> {
        let mut sums = pages::zeroed::<T>("AssemblyPlan::matrix", self.nnz())?;
        self.sum(values, &mut sums)?;
        crate::storage::checks::check_finite("AssemblyPlan::matrix", &self.row_ptr, &self.col_idx, &sums)?;
        Ok(Csr::assembled(self.rows, self.cols, self.row_ptr.clone(), self.col_idx.clone(), sums))
    }

    /// The entries of the matrix assembled from these values, in the order of [`Csr::values`], as taken by
    /// [`Csr::set_values`] and `Prepared::update_values`, which check that they are finite. Runs on the
    /// current rayon pool.
    ///
    /// # Errors
    /// [`Error::Length`] unless there are [`AssemblyPlan::len`] values and [`AssemblyPlan::nnz`] places for
    /// entries.
    pub fn sum<T: Scalar>(&self, values: &[T], to: &mut [T]) -> Result<()> {
        Error::check_length("AssemblyPlan::sum", "values", self.len, values.len())?;
        Error::check_length("AssemblyPlan::sum", "entries", self.nnz(), to.len())?;
        compiled_here!(T, |plan: &AssemblyPlan, values: &[T], to: &mut [T]| -> () {
            parallel::for_each(to.chunks_mut(GRAIN).enumerate(), |(share, to)| {
                let starts = &plan.starts[share * GRAIN..=share * GRAIN + to.len()];
                for (to, ends) in to.iter_mut().zip(starts.windows(2)) {
                    let sources = &plan.sources[ends[0] as usize..ends[1] as usize];
                    let mut sources = sources.iter().map(|&k| values[k as usize]);
                    let first = sources.next().unwrap_or_else(T::zero);
                    *to = sources.fold(first, |sum, v| sum + v);
                }
            });
        })(self, values, to);
        Ok(())
    }
}

/// A value at column `j`: sorted by column, then by its position in the sequence.
pub(super) fn key(j: u32, place: u64) -> u64 {
    u64::from(j) << 32 | place
}

/// The pattern of a run of rows, with offsets relative to its start.
struct Run {
    ends: Vec<u32>,
    columns: Vec<u32>,
    /// The end of the sources of each entry.
    starts: Vec<u32>,
    sources: Vec<u32>,
}

impl Run {
    fn new(rows: Range<usize>, of_row: &(impl Fn(usize, &mut Vec<u64>) + Sync)) -> Self {
        let ends = Vec::with_capacity(rows.len());
        let mut run = Run { ends, columns: Vec::new(), starts: Vec::new(), sources: Vec::new() };
        let mut keys = Vec::new();
        for i in rows {
            keys.clear();
            of_row(i, &mut keys);
            keys.sort_unstable();
            for same in keys.chunk_by(|a, b| a >> 32 == b >> 32) {
                run.columns.push((same[0] >> 32) as u32);
                run.sources.extend(same.iter().map(|key| *key as u32));
                run.starts.push(run.sources.len() as u32);
            }
            run.ends.push(run.columns.len() as u32);
        }
        run
    }
}

/// The length of the longest list, given the ends of the lists.
pub(super) fn longest(ends: &[u32]) -> usize {
    lengths(ends).max().unwrap_or(0)
}
