//! What the set-up of a preconditioner is given besides the matrix.
use super::algebra::{OnHost, SparseAlgebra, There};
use lacuna_engine::{Each, Error, FormatRefs, Result, Scalar, catching, memory};
use lacuna_formats::algebra::{RowWriter, build_rows_with};
use lacuna_formats::parallel::map_checked;
use lacuna_formats::{Csr, interrupt};
use std::cell::{Cell, RefCell};
use std::ops::{ControlFlow, Range};

/// Vectors for which [`Setup::check_room`] leaves room.
const VECTORS: usize = 8;

/// The progress of a running set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetupProgress {
    /// What is being made, such as `levels`; `parts` where nothing else is said.
    pub what: &'static str,
    /// How many of these are made.
    pub done: usize,
    /// Of how many, if that is known.
    pub of: Option<usize>,
}

/// Called from time to time during a set-up, on the thread that called it. Breaking cancels the set-up.
pub type SetupWatch<'a> = &'a mut dyn FnMut(SetupProgress) -> ControlFlow<()>;

/// The setting of one set-up of a [`Preconditioner`](crate::Preconditioner): how it is watched and cancelled, where it does sparse
/// algebra, how much memory it may take, and whether it is for new values.
///
/// A set-up runs on the threads of the device that it is for, or of the rayon pool that it is called from; [`Setup::map`] and [`Setup::rows`] run its tasks on all
/// of them, and end early if it is cancelled. Results do not depend on the number of threads, nor on being watched.
pub struct Setup<'a> {
    algebra: Option<&'a mut dyn SparseAlgebra>,
    on_host: OnHost,
    watch: Option<SetupWatch<'a>>,
    progress: SetupProgress,
    is_cancelled: bool,
    is_update: bool,
    memory: Option<u64>,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Setup {
            algebra: None,
            on_host: OnHost,
            watch: None,
            progress: SetupProgress { what: "parts", done: 0, of: None },
            is_cancelled: false,
            is_update: false,
            memory: None,
        }
    }
}

impl<'a> Setup<'a> {
    /// A set-up on the host that nobody watches.
    pub fn new() -> Self {
        Self::default()
    }
    /// Calls `watch` from time to time.
    pub fn watched(mut self, watch: SetupWatch<'a>) -> Self {
        self.watch = Some(watch);
        self
    }
    /// Does sparse algebra with `algebra`. [`Placed`](crate::Placed) uses its device if none is given.
    pub fn with_algebra(mut self, algebra: &'a mut dyn SparseAlgebra) -> Self {
        self.algebra = Some(algebra);
        self
    }
    /// Refuses what takes more than so many bytes.
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }
    /// For new values on the pattern of the last set-up.
    pub fn for_new_values(mut self) -> Self {
        self.is_update = true;
        self
    }
    /// The same with `algebra`, unless it has its own.
    pub(super) fn or_algebra<'b>(&'b mut self, algebra: &'b mut dyn SparseAlgebra) -> Setup<'b> {
        let algebra: &'b mut (dyn SparseAlgebra + 'b) = match &mut self.algebra {
            Some(own) => &mut **own,
            None => algebra,
        };
        let watch = self.watch.as_mut().map(|watch| &mut **watch as SetupWatch<'b>);
        let (is_update, memory) = (self.is_update, self.memory);
        Setup { algebra: Some(algebra), watch, is_update, memory, ..Setup::default() }
    }

    /// Whether it is for new values on the pattern of the last successful set-up, so that what depends on the pattern alone can be
    /// kept. A preconditioner that has kept nothing sets up anew.
    pub fn is_update(&self) -> bool {
        self.is_update
    }
    /// Sparse algebra for large matrices: of the device, if it is fast there.
    pub fn algebra(&mut self) -> &mut dyn SparseAlgebra {
        match &mut self.algebra {
            Some(algebra) => &mut **algebra,
            None => &mut self.on_host,
        }
    }

    /// A device that does the whole set-up for a matrix of so many entries: see [`SparseAlgebra::there`].
    pub fn there(&self, entries: usize) -> Option<There> {
        self.algebra.as_ref().and_then(|algebra| algebra.there(entries))
    }

    /// The product of matrices, from the last to the first, if a device is to do it: see [`SparseAlgebra::product`].
    ///
    /// # Errors
    /// As there.
    pub fn product<T: Scalar>(&mut self, factors: &[&Csr<T>]) -> Result<Option<Csr<T>>> {
        let factors: Vec<_> = factors.iter().map(|factor| T::each::<FormatRefs<'_>>(*factor)).collect();
        let Some(made) = self.algebra().product(&factors)?.and_then(Each::take::<T>) else { return Ok(None) };
        let (rows, cols) = made.shape;
        Csr::new(rows, cols, made.row_ptr, made.col_idx, made.values).map(Some)
    }

    /// Reports progress; to be called before and after whatever takes long.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the caller wants the set-up to end: it **must** return the error then, and leave `self` such that the
    /// next set-up works. [`Error::Function`] if the caller's function panics.
    pub fn progress(&mut self, what: &'static str, done: usize, of: Option<usize>) -> Result<()> {
        self.progress = SetupProgress { what, done, of };
        self.check()
    }
    /// Reports the same progress again: whether to go on.
    ///
    /// # Errors
    /// As [`Setup::progress`].
    pub fn check(&mut self) -> Result<()> {
        let progress = self.progress;
        if let Some(watch) = &mut self.watch
            && !self.is_cancelled
        {
            self.is_cancelled =
                catching(|| Ok(watch(progress).is_break())).inspect_err(|_| self.is_cancelled = true)?;
        }
        if self.is_cancelled {
            return Err(cancelled());
        }
        Ok(())
    }
    /// Does something that whoever watches may end within: [`interrupt::check`] asks as [`Setup::check`] does.
    pub(super) fn interruptible<R>(&mut self, work: impl FnOnce(&mut Setup<'_>) -> R) -> R {
        let Some(watch) = &mut self.watch else { return work(self) };
        let (watch, last) = (RefCell::new(&mut **watch), Cell::new(self.progress));
        let mut own = |progress| {
            last.set(progress);
            (watch.borrow_mut())(progress)
        };
        let mut check = || match catching(|| Ok((watch.borrow_mut())(last.get())))? {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(cancelled()),
        };
        let algebra = self.algebra.as_mut().map(|algebra| &mut **algebra as &mut dyn SparseAlgebra);
        let (is_update, memory) = (self.is_update, self.memory);
        let mut setup = Setup { algebra, watch: Some(&mut own), is_update, memory, ..Setup::default() };
        interrupt::checked(&mut check, || work(&mut setup))
    }
    /// Fails if so many bytes are more than the caller allows or the host has; to be called before large allocations.
    ///
    /// # Errors
    /// [`Error::Unsupported`] and [`Error::OutOfMemory`].
    pub fn check_memory(&self, what: &str, bytes: u64) -> Result<()> {
        if let Some(most) = self.memory.filter(|most| bytes > *most) {
            let message = format!("it would take {bytes} bytes; the limit is {most}");
            return Err(Error::Unsupported { operation: what.into(), message });
        }
        memory::probe(what, bytes)
    }

    /// Fails unless the host has room for so many copies of a matrix in double precision, and some vectors.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn check_room<T: Scalar>(&self, what: &str, a: &Csr<T>, copies: usize) -> Result<()> {
        let entries = copies.saturating_mul(a.nnz()).saturating_mul(size_of::<T::Wide>() + size_of::<u32>());
        let vectors = VECTORS * a.rows().max(a.cols()) * size_of::<T::Wide>();
        memory::probe(what, entries.saturating_add(vectors) as u64)
    }

    /// The results of `work` for each task, in task order, each by some thread. `init` makes working memory for a thread.
    ///
    /// # Errors
    /// As [`Setup::check`], which is called between tasks.
    pub fn map<I: Send, M: Send, R: Send>(
        &mut self,
        tasks: impl IntoIterator<Item = I>,
        init: impl Fn() -> M + Sync,
        work: impl Fn(&mut M, I) -> R + Sync,
    ) -> Result<Vec<R>> {
        match self.watch {
            Some(_) => map_checked(tasks, Some(&mut || self.check()), init, work),
            None => map_checked(tasks, None, init, work),
        }
    }
    /// The matrix whose rows `fill` writes, each of the given runs of rows by some thread: see [`build_rows_with`].
    ///
    /// # Errors
    /// As there; as [`Setup::check`], which is called between runs.
    pub fn rows<T: Scalar, M: Send>(
        &mut self,
        operation: &'static str,
        [rows, cols]: [usize; 2],
        runs: Vec<Range<usize>>,
        init: impl Fn() -> M + Sync,
        fill: impl Fn(&mut M, Range<usize>, &mut RowWriter<T>) + Sync,
    ) -> Result<Csr<T>> {
        match self.watch {
            Some(_) => build_rows_with(operation, rows, cols, runs, Some(&mut || self.check()), init, fill),
            None => build_rows_with(operation, rows, cols, runs, None, init, fill),
        }
    }
}

fn cancelled() -> Error {
    Error::Cancelled { operation: "set-up of a preconditioner".into() }
}

/// Does something that a watch may end: [`interrupt::check`] asks it, and so does the set-up that the work is to give it to.
///
/// # Errors
/// Those of the work.
pub fn interruptible<R>(
    watch: Option<SetupWatch<'_>>,
    work: impl FnOnce(Option<SetupWatch<'_>>) -> Result<R>,
) -> Result<R> {
    let Some(watch) = watch else { return work(None) };
    Setup::new()
        .watched(watch)
        .interruptible(|setup| work(setup.watch.as_mut().map(|watch| &mut **watch as SetupWatch<'_>)))
}
