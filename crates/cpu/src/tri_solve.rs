//! `x ← A⁻¹ b` for triangular matrices, with the same bits in every order: independent parts on one thread
//! each; otherwise row by row on one thread if there are few threads; otherwise wide levels on all threads
//! and runs of narrow ones on the first.
use crate::run::barrier::Barrier;
use lacuna_engine::{Each, Family, Format, Matrix, Result, Scalar, Triangle, catching};
use lacuna_formats::Triangular;
use pulp::{Arch, Simd, WithSimd};
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

/// Minimum number of entries of a level that threads share: one thread solves them in a few times the cost of
/// a barrier.
const SHARED: usize = 2048;
/// Maximum number of threads for which one thread in memory order is faster, if the number of levels is so
/// large that each scatters its rows.
const FEW: usize = 2;
const MANY_LEVELS: usize = 64;
/// Maximum size of the largest independent part, relative to a thread's equal share of the rows.
const UNEVEN: f64 = 1.5;

/// A triangular matrix in the form that the kernel takes.
#[derive(Clone)]
pub(crate) enum Solved<T: Scalar> {
    Triangular(Arc<Triangular<T>>, Arc<Schedule>),
    /// Any other format with this number of rows, by its own triangle. Its code may do anything that safe code can.
    Other(Arc<dyn Format<T>>, usize),
}

/// The [`Family`] of matrices for solves.
#[derive(Clone)]
pub(crate) enum Solves {}

impl Family for Solves {
    type Of<T: Scalar> = Solved<T>;
}

/// A matrix for solves of any number type.
pub(crate) type AnySolved = Each<Solves>;

/// How the threads divide a solve.
pub(crate) enum Schedule {
    /// Rows in their own order, split into independent ranges, one for each thread.
    Rows(Vec<Range<usize>>),
    /// Levels.
    Stages(Vec<Stage>),
}

/// Places that are solved without a barrier in between.
pub(crate) struct Stage {
    places: Range<usize>,
    /// Whether all threads solve a part of them.
    shared: bool,
}

impl<T: Scalar> Solved<T> {
    /// `None` if the format stores no triangle.
    ///
    /// # Errors
    /// As [`Format::prepare`].
    pub(crate) fn new(format: &Arc<dyn Format<T>>, handle: Matrix, threads: usize) -> Result<Option<Self>> {
        let any: Arc<dyn Any + Send + Sync> = format.clone();
        let Ok(own) = any.downcast::<Triangular<T>>() else {
            let solved = || format.triangle().map(|_| Solved::Other(format.clone(), handle.rows));
            return catching(|| format.prepare().map(|()| solved()));
        };
        let n = own.shape().0;
        let parts = independent(&own, threads);
        let largest = parts.iter().map(Range::len).max().unwrap_or(0);
        let even = largest as f64 * threads as f64 <= UNEVEN * n as f64;
        let scattered = own.depth() > MANY_LEVELS && !own.is_by_level();
        let plan = match () {
            () if even => Schedule::Rows(parts),
            () if threads <= FEW && scattered => Schedule::Rows(std::iter::once(0..n).collect()),
            () => {
                own.prepare()?;
                let Some(triangle) = own.triangle() else { return Ok(None) };
                Schedule::Stages(stages(&triangle))
            }
        };
        Ok(Some(Solved::Triangular(own, Arc::new(plan))))
    }

    /// Whether it runs code of the caller's, which may panic.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self, Solved::Other(..))
    }

    /// The rows of a range, and others of the same independent blocks; all rows for a format of another crate.
    ///
    /// # Safety
    /// As [`Solved::share`], with elements of `b` for these rows alone.
    pub(crate) unsafe fn rows(&self, arch: Arch, vectors: [*mut T; 2], rows: Range<usize>) {
        match self {
            Solved::Triangular(a, _) if rows.len() < a.shape().0 => {
                for places in a.blocks_of(rows) {
                    // SAFETY: as the caller promises; these rows depend on each other alone, and are in a valid order.
                    unsafe { solve(arch, &Task::new(a.in_order(), vectors, places)) };
                }
            }
            // SAFETY: as the caller promises; one thread meets nobody.
            _ => _ = unsafe { self.share(arch, vectors, (0, 1), &Barrier::new(1)) },
        }
    }

    /// A thread's share of the solve, with a barrier between stages. Returns the caller's requests.
    ///
    /// # Safety
    /// `b` and `x` must be two vectors as long as the matrix has rows, which other threads access only
    /// through the same call; if there is more than one thread, all threads of the barrier must make the
    /// call.
    pub(crate) unsafe fn share(
        &self,
        arch: Arch,
        [b, x]: [*mut T; 2],
        (me, threads): (usize, usize),
        barrier: &Barrier,
    ) -> u8 {
        let a = match self {
            Solved::Triangular(a, plan) => (a, &**plan),
            Solved::Other(a, n) if me == 0 => {
                // SAFETY: two vectors of this length, which no other thread accesses before the next barrier.
                let (b, x) =
                    unsafe { (std::slice::from_raw_parts(b, *n), std::slice::from_raw_parts_mut(x, *n)) };
                a.triangle()
                    .expect("the triangle that the format had when the solve was planned")
                    .solve(b, x);
                return 0;
            }
            Solved::Other(..) => return 0,
        };
        match a.1 {
            Schedule::Rows(parts) => {
                let rows = a.0.in_order();
                for (at, places) in parts.iter().enumerate() {
                    if at % threads == me {
                        // SAFETY: these rows depend on no other part, and are in a valid order.
                        unsafe { solve(arch, &Task::new(rows, [b, x], places.clone())) };
                    }
                }
                0
            }
            // The caller is alone, at least for a while.
            Schedule::Stages(_) if threads == 1 => {
                // SAFETY: as the caller promises, with all rows in order.
                unsafe { solve(arch, &Task::new(a.0.in_order(), [b, x], 0..a.0.shape().0)) };
                0
            }
            Schedule::Stages(stages) => {
                let Some(triangle) = a.0.triangle() else { return 0 };
                let mut wishes = 0;
                for (k, stage) in stages.iter().enumerate() {
                    let (start, count) = (stage.places.start, stage.places.len());
                    let at = |t: usize| start + count * t / threads;
                    let own = match stage.shared {
                        true => at(me)..at(me + 1),
                        false if me == 0 => stage.places.clone(),
                        false => 0..0,
                    };
                    // SAFETY: places of one level, or of several by one thread; earlier ones were finished
                    // before the last barrier.
                    unsafe { solve(arch, &Task::new(triangle, [b, x], own)) };
                    if k + 1 < stages.len() {
                        wishes |= barrier.wait();
                    }
                }
                wishes
            }
        }
    }
}

/// At most `threads` ranges of rows in their own order, none of which depends on another, with about the same
/// number of entries if possible. A single range if the rows cannot be split.
fn independent<T: Scalar>(a: &Triangular<T>, threads: usize) -> Vec<Range<usize>> {
    let (n, row_ptr) = (a.shape().0, a.in_order().row_ptr);
    let share = a.nnz() / threads.max(1);
    let (mut parts, mut start) = (Vec::new(), 0);
    for &first in a.blocks() {
        let taken = (row_ptr[first] - row_ptr[start]) as usize;
        if taken >= share && start < first && first < n && parts.len() + 1 < threads {
            parts.push(start..first);
            start = first;
        }
    }
    parts.push(start..n);
    parts
}

/// Wide levels, and runs of narrow ones between them.
fn stages<T: Scalar>(triangle: &Triangle<'_, T>) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for level in 0..triangle.depth() {
        let places = triangle.level(level);
        let entries = triangle.row_ptr[places.end] - triangle.row_ptr[places.start];
        let shared = entries as usize >= SHARED;
        match stages.last_mut().filter(|last| !last.shared && !shared) {
            Some(last) => last.places.end = places.end,
            None => stages.push(Stage { places, shared }),
        }
    }
    stages
}

/// The places to solve.
struct Task<'a, T: Scalar> {
    row_ptr: &'a [u32],
    columns: *const u32,
    values: *const T,
    b: *const T,
    x: *mut T,
    places: Range<usize>,
}

impl<'a, T: Scalar> Task<'a, T> {
    fn new(triangle: Triangle<'a, T>, [b, x]: [*mut T; 2], places: Range<usize>) -> Self {
        let Triangle { row_ptr, columns, values, .. } = triangle;
        Task { row_ptr, columns: columns.as_ptr(), values: values.as_ptr(), b, x, places }
    }
}

/// Solves the places with the best instructions available.
///
/// # Safety
/// The matrix must be valid, with vectors as long as it has rows; all rows that the places depend on must be
/// solved, and no other thread may access what they write.
#[inline(never)]
unsafe fn solve<T: Scalar>(arch: Arch, task: &Task<'_, T>) {
    arch.dispatch(Inlined(task));
}

struct Inlined<'a, T: Scalar>(&'a Task<'a, T>);

impl<T: Scalar> WithSimd for Inlined<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Task { row_ptr, columns, values, b, x, ref places } = *self.0;
        let Some(first) = row_ptr.get(places.start) else { return };
        let mut k = *first as usize;
        for place in places.clone() {
            let end = row_ptr[place + 1] as usize - 1;
            // SAFETY: a valid matrix, whose places have entries with columns below its rows, and vectors of
            // that length, as `solve` promises.
            unsafe {
                let row = *columns.add(end) as usize;
                let mut sum = *b.add(row);
                while k < end {
                    sum = (-*values.add(k)).fma(*x.add(*columns.add(k) as usize), sum);
                    k += 1;
                }
                *x.add(row) = sum * *values.add(end);
            }
            k = end + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Schedule, Solved, independent};
    use lacuna_engine::{Format, Matrix, NumberType};
    use lacuna_formats::{Csr, Half, Triangular, Triplets};
    use lacuna_io::Spec;
    use std::sync::Arc;

    const ROWS: usize = 210;

    /// Independent blocks, each a grid.
    fn blocks(count: usize) -> Csr<f64> {
        let grid = Spec::parse("gen:poisson2d:70x3").unwrap().build::<f64>().unwrap();
        let mut triplets = Triplets::new(ROWS * count, ROWS * count);
        for block in 0..count {
            grid.entries().for_each(|(i, j, v)| triplets.push(ROWS * block + i, ROWS * block + j, v));
        }
        triplets.to_csr().unwrap()
    }

    #[test]
    fn parts_that_need_nothing_of_each_other_are_a_thread_each() {
        for half in [Half::Lower, Half::Upper] {
            let a = Triangular::part(&blocks(6), half, None, None).unwrap();
            let parts = independent(&a, 3);
            assert_eq!(parts, [0..2 * ROWS, 2 * ROWS..4 * ROWS, 4 * ROWS..6 * ROWS], "{half:?}");
            assert_eq!(independent(&a, 1).first(), Some(&(0..6 * ROWS)));
            let whole = Triangular::part(&blocks(1), half, None, None).unwrap();
            assert_eq!(independent(&whole, 3).first(), Some(&(0..ROWS)), "{half:?}");
        }
    }

    #[test]
    fn many_threads_take_levels_and_few_take_rows() {
        let plan = |a: Csr<f64>, threads: usize| {
            let n = a.rows();
            let a: Arc<dyn Format<f64>> = Arc::new(Triangular::part(&a, Half::Lower, None, None).unwrap());
            match Solved::new(&a, Matrix::of(NumberType::F64, 0, 0, n, n, 0, 0), threads).unwrap() {
                Some(Solved::Triangular(_, plan)) => matches!(*plan, Schedule::Rows(_)),
                _ => panic!("no plan"),
            }
        };
        assert!(plan(blocks(1), 1) && plan(blocks(1), 2) && plan(blocks(8), 8));
        assert!(!plan(blocks(1), 4));
        // Ordered by colours, there are few levels, and they are in memory order.
        let grid = Spec::parse("gen:poisson2d:10x10").unwrap().build::<f64>().unwrap();
        let (colours, _) = lacuna_formats::by_colours(&grid);
        assert!(!plan(grid.permuted(&colours).unwrap(), 2));
    }
}
