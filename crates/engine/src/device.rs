//! A device as people hold it: typed primitives in front of a backend, and memory that is freed when it is dropped.
mod outside;
mod owned;

use crate::{
    Algebra, Backend, Basis, Cell, Cells, CompressedRows, Cost, DeviceInfo, Each, Error, Finish, Format,
    FormatRefs, Graph, History, LinOp, Matrix, Number, NumberType, Pass, Process, Products, Program,
    Recorder, Resource, Result, Run, Scalar, SparseArrays, Vector, Workers, next_serial,
};
use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

pub use outside::Outside;
pub use owned::{InUse, Lease, Owned, Plan};

/// An open backend. Cloning it is cheap: all clones are the same device, which closes when the last of them and
/// of what was made on it goes.
///
/// Whatever is made on a device is freed when it is dropped, in any order and from any thread, and can then be allocated
/// again at once. Calls from several threads wait for each other. A call from within a function that the device is
/// calling, such as a host operator or `watch`, is an error. So is a call in a process that was forked from the one where it was
/// opened; devices that are opened there work.
///
/// ```
/// use lacuna_engine::{Device, Pass, Reference};
///
/// let dev = Device::new(Reference::new());
/// let (x, y, sums) = (dev.vector::<f64>(3)?, dev.vector::<f64>(3)?, dev.cells::<f64>(1)?);
/// dev.upload(&[1.0, 2.0, 3.0], *x)?;
/// dev.upload(&[1.0; 3], *y)?;
/// let sum = sums.at(0);
/// dev.multi_axpy_dot(Pass::new("add").set(*y, *x + *y).dot(sum, *y, *y))?; // one sweep
/// assert_eq!(dev.read(&[sum])?, [29.0]);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone)]
pub struct Device(Arc<Shared>);

struct Shared {
    backend: Mutex<Box<dyn Backend>>,
    /// What was dropped and is not freed yet.
    dropped: Mutex<Vec<Resource>>,
    /// Leases of vectors, runs of cells, matrices and plans.
    leases: [AtomicUsize; 4],
    info: DeviceInfo,
    workers: Option<Arc<dyn Workers>>,
    number: u32,
    process: Process,
}

thread_local! {
    /// The devices that this thread is using.
    static IN_USE: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// A backend that nobody else uses meanwhile.
struct Locked<'a> {
    backend: MutexGuard<'a, Box<dyn Backend>>,
    number: u32,
}

impl<'a> Locked<'a> {
    /// Marks the device as in use by this thread.
    fn new(backend: MutexGuard<'a, Box<dyn Backend>>, number: u32) -> Self {
        let _ = IN_USE.try_with(|used| used.borrow_mut().push(number));
        Locked { backend, number }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let _ = IN_USE.try_with(|used| used.borrow_mut().retain(|number| *number != self.number));
    }
}

/// Whether this thread is using a device. At its end, when what it kept is dropped, it uses none.
fn in_use_here(number: u32) -> bool {
    IN_USE.try_with(|used| used.borrow().contains(&number)).unwrap_or(false)
}

/// The devices that a thread was using when it made this, for the threads that run a caller's code in its place, as the rows of
/// a format. If that code calls such a device, it would wait for a thread that waits for it; within [`Caller::run`] it is told
/// that the device is [busy](Error::Busy).
pub struct Caller(Vec<u32>);

impl Caller {
    /// Of this thread.
    pub fn here() -> Self {
        Caller(IN_USE.try_with(|used| used.borrow().clone()).unwrap_or_default())
    }
    /// Runs code in the place of the thread that made this.
    pub fn run<R>(&self, code: impl FnOnce() -> R) -> R {
        /// Leaves what this thread used before.
        struct Back(usize);
        impl Drop for Back {
            fn drop(&mut self) {
                let _ = IN_USE.try_with(|used| used.borrow_mut().truncate(self.0));
            }
        }
        let lent = IN_USE.try_with(|used| {
            let mut used = used.borrow_mut();
            let back = Back(used.len());
            used.extend(&self.0);
            back
        });
        let done = code();
        drop(lent);
        done
    }
}

impl Deref for Locked<'_> {
    type Target = dyn Backend;
    fn deref(&self) -> &Self::Target {
        &**self.backend
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut **self.backend
    }
}

impl Shared {
    /// Waits for other threads, then frees what was dropped.
    fn lock(&self, operation: &str) -> Result<Locked<'_>> {
        if in_use_here(self.number) {
            let message = format!(
                "`{}` is running the function that makes this call, or this thread took up a task of rayon's while a call to it \
                 waited; make the call before or after the run, or on a thread of your own",
                self.info.name
            );
            return Err(Error::Busy { operation: operation.into(), message });
        }
        self.process.check(operation)?;
        let backend = self.backend.lock().unwrap_or_else(PoisonError::into_inner);
        let mut locked = Locked::new(backend, self.number);
        self.sweep(&mut *locked);
        Ok(locked)
    }
    fn sweep(&self, backend: &mut dyn Backend) {
        // What is freed may own something in turn.
        let next = || self.dropped.lock().unwrap_or_else(PoisonError::into_inner).pop();
        while let Some(what) = next() {
            backend.free(what);
        }
    }
    /// Frees at once what was dropped, unless the device is in use: then its user does.
    fn discard(&self, what: Resource) {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner).push(what);
        if in_use_here(self.number) || self.process != Process::this() {
            return;
        }
        let backend = match self.backend.try_lock() {
            Ok(backend) => backend,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        self.sweep(&mut *Locked::new(backend, self.number));
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.0.info.backend).field(&self.0.info.name).finish()
    }
}

impl PartialEq for Device {
    /// Whether they are the same open device.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A device that may have been closed: see [`Device::downgrade`].
#[derive(Clone)]
pub struct WeakDevice(Weak<Shared>);

impl WeakDevice {
    /// The device, if it is still open.
    pub fn upgrade(&self) -> Option<Device> {
        self.0.upgrade().map(Device)
    }
}

impl<B: Backend> From<B> for Device {
    fn from(backend: B) -> Self {
        Device::new(backend)
    }
}

impl Device {
    /// A device on a backend.
    pub fn new(backend: impl Backend) -> Self {
        Self::from_box(Box::new(backend))
    }
    /// A device on a backend.
    pub fn from_box(backend: Box<dyn Backend>) -> Self {
        let (info, workers) = (backend.info(), backend.workers());
        Device(Arc::new(Shared {
            backend: Mutex::new(backend),
            dropped: Mutex::default(),
            leases: Default::default(),
            info,
            workers,
            number: next_serial(),
            process: Process::this(),
        }))
    }

    /// The device, without keeping it open.
    pub fn downgrade(&self) -> WeakDevice {
        WeakDevice(Arc::downgrade(&self.0))
    }
    /// What the device is.
    pub fn info(&self) -> &DeviceInfo {
        &self.0.info
    }
    /// What is allocated and not dropped, by all who hold the device.
    pub fn in_use(&self) -> InUse {
        let [vectors, cells, matrices, plans] =
            [0, 1, 2, 3].map(|i| self.0.leases[i].load(Ordering::Relaxed));
        InUse { vectors, cells, matrices, plans }
    }
    /// The threads that it computes on: see [`Backend::workers`].
    pub fn workers(&self) -> Option<Arc<dyn Workers>> {
        self.0.workers.clone()
    }
    /// The process that it was opened in.
    pub fn process(&self) -> Process {
        self.0.process
    }
    /// The formats with kernels on this device, with their costs: see [`Backend::formats`].
    ///
    /// # Errors
    /// [`Error::Busy`], as from every call that a function makes which the device is running.
    pub fn formats(&self, rows: usize, bytes: usize) -> Result<&'static [Cost]> {
        Ok(self.0.lock("costs of formats")?.formats(rows, bytes))
    }
    /// Calls `f` with the backend, if it is a `B`: for what one backend has and others have not.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if it is another backend; [`Error::Busy`].
    pub fn with<B: Backend, R>(&self, f: impl FnOnce(&mut B) -> R) -> Result<R> {
        let mut backend = self.0.lock("a call of a backend's own")?;
        let any: &mut dyn Any = &mut *backend;
        match any.downcast_mut() {
            Some(backend) => Ok(f(backend)),
            None => Err(Error::Unsupported {
                operation: format!("a call of `{}`", std::any::type_name::<B>()),
                message: format!("the device is on the backend `{}`", self.0.info.backend),
            }),
        }
    }

    // Memory.
    /// A vector of `n` zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], device failures.
    pub fn vector<T: Scalar>(&self, n: usize) -> Result<Owned<Vector<T>>> {
        Ok(self.vector_of(T::KIND, n)?.map(Vector::typed))
    }
    pub(crate) fn vector_of(&self, kind: NumberType, n: usize) -> Result<Owned<Vector>> {
        let mut backend = self.0.lock("a vector")?;
        let basis = backend.vectors(kind, n, 1, false)?;
        let vector = Owned::new(self, basis.column(0), Resource::Vectors(basis));
        let cleared = backend.clear(*vector);
        drop(backend);
        cleared.map(|()| vector)
    }
    /// `columns` vectors of `n` elements each, with unspecified contents until they are written.
    ///
    /// # Errors
    /// As [`Device::vector`].
    pub fn basis<T: Scalar>(&self, n: usize, columns: usize) -> Result<Owned<Basis<T>>> {
        Ok(self.basis_of(T::KIND, n, columns, false)?.map(Basis::typed))
    }
    /// The same in [`Scalar::Narrow`]: see [`Vector`].
    ///
    /// # Errors
    /// As [`Device::vector`].
    pub fn narrow_basis<T: Scalar>(&self, n: usize, columns: usize) -> Result<Owned<Basis<T>>> {
        Ok(self.basis_of(T::KIND, n, columns, T::HAS_NARROW)?.map(Basis::typed))
    }
    pub(crate) fn basis_of(
        &self,
        kind: NumberType,
        n: usize,
        columns: usize,
        narrow: bool,
    ) -> Result<Owned<Basis>> {
        let basis = self.0.lock("a basis")?.vectors(kind, n, columns, narrow)?;
        Ok(Owned::new(self, basis, Resource::Vectors(basis)))
    }
    /// A run of zero cells.
    ///
    /// # Errors
    /// As [`Device::vector`].
    pub fn cells<T: Scalar>(&self, count: usize) -> Result<Owned<Cells<T>>> {
        Ok(self.cells_of(T::KIND, count)?.map(Cells::typed))
    }
    pub(crate) fn cells_of(&self, kind: NumberType, count: usize) -> Result<Owned<Cells>> {
        let cells = self.0.lock("cells")?.cells(kind, count)?;
        Ok(Owned::new(self, cells, Resource::Cells(cells)))
    }
    /// A matrix.
    ///
    /// # Errors
    /// As [`Device::vector`]; [`Error::Unsupported`] for a format that the device has no way to multiply with.
    pub fn matrix<T: Scalar>(&self, a: Arc<dyn Format<T>>) -> Result<Owned<Matrix<T>>> {
        let matrix = self.0.lock("a matrix")?.matrix(T::each(a))?;
        Ok(Owned::new(self, matrix.typed(), Resource::Matrix(matrix)))
    }
    /// Gives a matrix new values on the same pattern: see [`crate::check_pattern`].
    ///
    /// # Errors
    /// [`Error::Structure`] for another pattern; [`Error::Unsupported`] if the backend takes none.
    pub fn set_matrix<T: Scalar>(&self, a: Matrix<T>, to: Arc<dyn Format<T>>) -> Result<()> {
        self.0.lock("new values of a matrix")?.set_matrix(a.untyped(), T::each(to))
    }

    // Transfer.
    /// Copies a host slice into a vector of the same length.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Stale`], device failures.
    pub fn upload<T: Scalar>(&self, from: &[T], to: Vector<T>) -> Result<()> {
        Error::check_length("upload", "the host slice", to.len, from.len())?;
        self.upload_bytes(bytemuck::cast_slice(from), to.untyped())
    }
    pub(crate) fn upload_bytes(&self, from: &[u8], to: Vector) -> Result<()> {
        self.0.lock("upload")?.upload(from, to)
    }
    /// Sets a vector to zero.
    ///
    /// # Errors
    /// As [`Device::upload`].
    pub fn clear<T: Scalar>(&self, v: Vector<T>) -> Result<()> {
        self.0.lock("clear")?.clear(v.untyped())
    }
    /// Copies a vector into a host slice of the same length.
    ///
    /// # Errors
    /// As [`Device::upload`].
    pub fn download<T: Scalar>(&self, from: Vector<T>, to: &mut [T]) -> Result<()> {
        Error::check_length("download", "the host slice", from.len, to.len())?;
        self.0.lock("download")?.download(from.untyped(), bytemuck::cast_slice_mut(to))
    }
    /// Copies numbers that lie elsewhere in the device's memory: see [`Backend::copy_in`].
    ///
    /// # Errors
    /// As there; [`Error::Length`] for another number of bytes than the vector has.
    pub fn copy_in<T: Scalar>(&self, from: Outside, to: Vector<T>) -> Result<()> {
        let operation = "copy from the device's memory";
        let address = from.of::<T>(operation, to.len)?;
        // SAFETY: who made `from` promised that memory; the length was checked.
        unsafe { self.0.lock(operation)?.copy_in(address, to.untyped()) }
    }
    /// Copies a vector elsewhere in the device's memory: see [`Backend::copy_out`].
    ///
    /// # Errors
    /// As [`Device::copy_in`].
    pub fn copy_out<T: Scalar>(&self, from: Vector<T>, to: Outside) -> Result<()> {
        let operation = "copy to the device's memory";
        let address = to.of::<T>(operation, from.len)?;
        // SAFETY: as above.
        unsafe { self.0.lock(operation)?.copy_out(from.untyped(), address) }
    }
    /// Copies a vector into another one with elements of the same type: of the same number type, or a narrow vector of `T` into one of
    /// [`Scalar::Narrow`], or back. So programs of two number types work on the same numbers.
    ///
    /// # Errors
    /// [`Error::Length`]; [`Error::Argument`] for elements of another type; [`Error::Stale`], device failures.
    pub fn copy<T: Scalar, U: Scalar>(&self, from: Vector<T>, to: Vector<U>) -> Result<()> {
        self.0.lock("copy")?.copy(from.untyped(), to.untyped())
    }
    /// Sets a cell.
    ///
    /// # Errors
    /// [`Error::Stale`], device failures.
    pub fn write<T: Scalar>(&self, cell: Cell<T>, value: T) -> Result<()> {
        self.write_number(cell.untyped(), Number::new(value))
    }
    pub(crate) fn write_number(&self, cell: Cell, value: Number) -> Result<()> {
        self.0.lock("write")?.write(cell, value)
    }
    /// Sets the cells of a run, in order.
    ///
    /// # Errors
    /// [`Error::Length`] for another number of values; as [`Device::write`].
    pub fn write_run<T: Scalar>(&self, cells: Cells<T>, values: &[T]) -> Result<()> {
        Error::check_length("write", "the values", cells.count as usize, values.len())?;
        self.0.lock("write")?.write_run(cells.untyped(), bytemuck::cast_slice(values))
    }
    /// Waits for the queue and returns the cells of a run.
    ///
    /// # Errors
    /// As [`Device::write`].
    pub fn read_run<T: Scalar>(&self, cells: Cells<T>) -> Result<Vec<T>> {
        self.read(&(0..cells.count as usize).map(|i| cells.at(i)).collect::<Vec<_>>())
    }
    /// Waits for the queue and returns the cells.
    ///
    /// # Errors
    /// As [`Device::write`].
    pub fn read<T: Scalar>(&self, cells: &[Cell<T>]) -> Result<Vec<T>> {
        let untyped: Vec<Cell> = cells.iter().map(|cell| cell.untyped()).collect();
        if untyped.iter().any(|cell| cell.kind != T::KIND) {
            return Err(Error::Stale { operation: "read".into(), what: "cell" });
        }
        let mut values = vec![T::zero(); cells.len()];
        self.0.lock("read")?.read(&untyped, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    // Programs.
    /// Checks a program and prepares it; every error of a program is reported here.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Unsupported`]; failures of compilers and devices.
    pub fn plan(&self, program: Program) -> Result<Plan> {
        let id = self.0.lock(program.name)?.plan(&program)?;
        Ok(Plan::new(self, id, program))
    }
    /// Runs a program until it stops.
    ///
    /// # Errors
    /// [`Error::Stale`] if the plan is of another device, or if something that the program uses was freed; device failures.
    pub fn execute(&self, plan: &mut Plan, run: Run<'_>) -> Result<Finish> {
        if *plan.device() != *self {
            return Err(Error::Stale { operation: plan.program().name.into(), what: "plan" });
        }
        plan.execute(run)
    }

    // Sparse algebra.
    /// The product of matrices in `csr`: see [`Backend::sparse_product`].
    ///
    /// # Errors
    /// As [`Backend::sparse_product`].
    pub fn sparse_product<T: Scalar>(&self, factors: &[&dyn Format<T>]) -> Result<Option<CompressedRows<T>>> {
        let factors: Vec<Each<FormatRefs<'_>>> = factors.iter().map(|a| T::each(*a)).collect();
        Ok(self.sparse_product_of_each(&factors)?.and_then(Each::take))
    }
    /// As [`Device::sparse_product`], for a number type known at run time.
    ///
    /// # Errors
    /// As there.
    pub fn sparse_product_of_each(&self, factors: &[Each<FormatRefs<'_>>]) -> Result<Option<Each<Products>>> {
        self.0.lock("a product of matrices")?.sparse_product(factors)
    }
    /// An independent set of a graph: see [`Backend::distance_two_set`].
    ///
    /// # Errors
    /// As [`Backend::distance_two_set`].
    pub fn distance_two_set(&self, graph: Graph<'_>, priorities: &[u64]) -> Result<Option<Vec<u32>>> {
        self.0.lock("an independent set")?.distance_two_set(graph, priorities)
    }
    /// Whether sparse algebra on large matrices is worth the way to the device and back.
    ///
    /// # Errors
    /// [`Error::Busy`].
    pub fn has_fast_sparse_algebra(&self) -> Result<bool> {
        Ok(self.0.lock("sparse algebra")?.has_fast_sparse_algebra())
    }
    /// Sparse algebra that stays on the device, see [`Backend::algebra`]; `None` if the host has to do it, because the device has
    /// none or its memory is too small.
    ///
    /// # Errors
    /// Those of the work but for [`Error::OutOfMemory`]; [`Error::Busy`].
    pub fn algebra<R>(
        &self,
        kind: NumberType,
        work: impl FnOnce(&mut dyn Algebra) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        let mut backend = self.0.lock("sparse algebra")?;
        let Some(mut algebra) = backend.algebra(kind) else { return Ok(None) };
        match work(&mut *algebra) {
            Err(Error::OutOfMemory { .. }) => Ok(None),
            done => done,
        }
    }
    /// A matrix with arrays that are on the device: see [`Algebra::matrix`]. `None` as for [`Device::algebra`].
    ///
    /// # Errors
    /// As there.
    pub fn matrix_of<T: Scalar>(&self, a: &SparseArrays) -> Result<Option<Owned<Matrix<T>>>> {
        let made = self.algebra(T::KIND, |algebra| algebra.matrix(a).map(Some))?;
        Ok(made.map(|matrix| Owned::new(self, matrix.typed(), Resource::Matrix(matrix))))
    }
    /// Frees the memory that sparse algebra keeps from one call to the next.
    pub fn finish_sparse_algebra(&self) {
        if let Ok(mut backend) = self.0.lock("the end of sparse algebra") {
            backend.finish_sparse_algebra();
        }
    }

    // Fused primitives, one call at a time: each is recorded, checked, prepared and run. A program spares that.
    /// Runs a pass.
    ///
    /// # Errors
    /// Of the pass; as [`Device::plan`] and [`Device::execute`].
    pub fn multi_axpy_dot<T: Scalar>(&self, pass: Pass<T>) -> Result<()> {
        self.once(|k| k.multi_axpy_dot(pass))
    }
    /// `y ← A x`, then the pass.
    ///
    /// # Errors
    /// As [`Device::multi_axpy_dot`].
    pub fn spmv_dot<T: Scalar>(
        &self,
        a: &dyn LinOp<T>,
        x: Vector<T>,
        y: Vector<T>,
        pass: Pass<T>,
    ) -> Result<()> {
        self.once(|k| k.spmv_dot(a, x, y, pass))
    }
    /// `Y ← A X` for all columns of `x`; `y` has the same number of columns and shares none with `x`.
    ///
    /// # Errors
    /// As [`Device::multi_axpy_dot`].
    pub fn spmm<T: Scalar>(&self, a: &dyn LinOp<T>, x: Basis<T>, y: Basis<T>) -> Result<()> {
        self.once(|k| k.spmm(a, x, y))
    }
    /// `x ← A⁻¹ b` with a triangular matrix stored for solves (see [`crate::Triangle`]), then the pass.
    ///
    /// # Errors
    /// As [`Device::multi_axpy_dot`].
    pub fn tri_solve<T: Scalar>(
        &self,
        a: Matrix<T>,
        b: Vector<T>,
        x: Vector<T>,
        pass: Pass<T>,
    ) -> Result<()> {
        self.once(|k| k.tri_solve(a, b, x, pass))
    }
    /// `h ← Vᴴ w`.
    ///
    /// # Errors
    /// As [`Device::multi_axpy_dot`].
    pub fn basis_dot<T: Scalar>(&self, v: Basis<T>, w: Vector<T>, h: Cells<T>) -> Result<()> {
        self.once(|k| k.basis_dot(v, w, h))
    }
    /// `w ← w − V h`, then the pass.
    ///
    /// # Errors
    /// As [`Device::multi_axpy_dot`].
    pub fn basis_axpy<T: Scalar>(&self, v: Basis<T>, h: Cells<T>, w: Vector<T>, pass: Pass<T>) -> Result<()> {
        self.once(|k| k.basis_axpy(v, h, w, pass))
    }
    /// `G ← Vᴴ W`: see [`Recorder::basis_gram`].
    ///
    /// # Errors
    /// As [`Device::multi_axpy_dot`].
    pub fn basis_gram<T: Scalar>(&self, v: Basis<T>, w: Basis<T>, g: Cells<T>) -> Result<()> {
        self.once(|k| k.basis_gram(v, w, g))
    }
    /// `X ← V C`: see [`Recorder::basis_combine`].
    ///
    /// # Errors
    /// As [`Device::multi_axpy_dot`].
    pub fn basis_combine<T: Scalar>(&self, v: Basis<T>, c: Cells<T>, x: Basis<T>) -> Result<()> {
        self.once(|k| k.basis_combine(v, c, x))
    }

    /// Records, checks and runs a few operations once.
    fn once<T: Scalar>(&self, body: impl FnOnce(&mut Recorder<'_, T>)) -> Result<()> {
        let mut recorder = Recorder::new(self, "once");
        body(&mut recorder);
        let mut plan = self.plan(recorder.finish()?)?;
        plan.execute(Run { limit: u64::MAX - 1, history: &mut History::off(), watch: None }).map(drop)
    }
}
