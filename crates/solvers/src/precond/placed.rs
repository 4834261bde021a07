//! The interface of a preconditioner: parts made on the host, handles on a device, operations recorded with
//! these.
use super::PRECONDITIONERS;
use super::Setup;
use super::algebra::OnDevice;
use crate::name_of;
use lacuna_engine::{
    Basis, Cell, Device, Error, Format, Lease, LinOp, Matrix, Owned, Pass, Recorder, Result, Scalar, Vector,
};
use lacuna_formats::Csr;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// `z ← M r` with `M ≈ A⁻¹`, for every backend.
///
/// It works in three steps. [`Preconditioner::set_up`] runs on the host and returns the vectors and matrices
/// that `M` needs. [`Placed::new`] puts these on a device. [`Preconditioner::apply`] records the operations of
/// `M` with their handles, each time a method asks for it; it **must** make `z` complete before `then` runs,
/// **must not** change `r`, and **should** hand `then` to the operation that writes `z`.
///
/// ```
/// use lacuna_engine::{Pass, Recorder, Result, Scalar, Vector};
/// use lacuna_formats::Csr;
/// use lacuna_solvers::{Handles, Parts, Preconditioner, Setup, inverse_diagonal};
///
/// /// `M = 2 D⁻¹ − D⁻¹ A D⁻¹`: two Jacobi sweeps from zero.
/// struct TwoSweeps;
///
/// impl<T: Scalar> Preconditioner<T> for TwoSweeps {
///     fn set_up(&mut self, a: &Csr<T>, _: &mut Setup<'_>) -> Result<Parts<T>> {
///         Ok(Parts::new().vector(inverse_diagonal(a)?).scratch(a.rows()).scratch(a.rows()))
///     }
///     fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
///         let ([d], [s, t]) = (on.vectors(), on.scratch());
///         k.multi_axpy_dot(Pass::new("first").set(s, d * r));
///         k.spmv_dot(&on.a(), s, t, Pass::new("second").set(z, s + d * r - d * t).then(then));
///     }
/// }
/// ```
pub trait Preconditioner<T: Scalar>: Send {
    /// Its name in reports.
    fn name(&self) -> Cow<'static, str> {
        "own".into()
    }
    /// Whether it takes a matrix that is not square, as a preconditioner from the right of a least-squares
    /// method. `M` is square then, with as many rows as the matrix has columns. Provided: no.
    fn accepts_any_shape(&self) -> bool {
        false
    }
    /// The operator that it is, if it needs no matrix: see [`Given`](crate::Given). Provided: none.
    fn operator(&self) -> Option<&dyn LinOp<T>> {
        None
    }
    /// Sets up on the host. Data that depends only on the pattern of the matrix **may** be stored in `self` and used if
    /// [`Setup::is_update`]: the values are then new ones on the pattern of the last set-up, and the parts **must** have the same
    /// sizes as before. A set-up that takes long **should** call [`Setup::check`] now and then.
    ///
    /// # Errors
    /// If the preconditioner rejects the matrix, and the error names the place; [`Error::Cancelled`]; device failures. The next
    /// set-up **must** work after any of them.
    fn set_up(&mut self, a: &Csr<T>, setup: &mut Setup<'_>) -> Result<Parts<T>>;
    /// Whether a set-up for new values keeps what was chosen by the values before, such as the places of entries or the levels of a
    /// hierarchy, which may suit the new ones less. A solve that breaks off sets it up from nothing then. Provided: no.
    fn keeps_choices(&self) -> bool {
        false
    }
    /// Seconds that [`Preconditioner::set_up`] is expected to take, if that can be counted at a small part of
    /// the cost, and in a part of the seconds `within` which it is wanted: more than these need not be told exactly. What was found
    /// is kept for the set-up of the same matrix.
    ///
    /// # Errors
    /// Those of the set-up that are known already.
    fn expected_setup(&mut self, a: &Csr<T>, within: f64) -> Result<Option<f64>> {
        let _ = (a, within);
        Ok(None)
    }
    /// Records `z ← M r`, then `then`. `r` and `z` have as many elements as the matrix has columns, and
    /// differ.
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>);
    /// Whether [`Preconditioner::apply_columns`] has operations of its own. Provided: no.
    fn takes_columns(&self) -> bool {
        false
    }
    /// Records `Z ← M R` for several columns, with `work` in place of the work vectors: a basis for each, with as many columns.
    /// **Must** give the same bits as one [`Preconditioner::apply`] per column. Provided: that.
    fn apply_columns(
        &self,
        k: &mut Recorder<'_, T>,
        on: &Handles<T>,
        work: &[Basis<T>],
        [r, z]: [Basis<T>; 2],
    ) {
        let _ = work;
        (0..r.columns).for_each(|j| self.apply(k, on, r.column(j), z.column(j), Pass::nothing()));
    }
    /// `d` if `M r = d ∘ r`, so that a method can multiply where it reads `r`: see [`LinOp::diagonal`]. Provided: none.
    fn diagonal(&self, on: &Handles<T>) -> Option<Vector<T>> {
        let _ = on;
        None
    }
    /// Whether `M` is Hermitian for every matrix that is accepted.
    fn is_hermitian(&self) -> bool {
        false
    }
    /// Whether some vectors have the narrower type, whose range the numbers then have to be in. Provided: no.
    fn is_narrow(&self) -> bool {
        false
    }
    /// Whether on the host an application takes longer than a product with the matrix, so that another format of
    /// the matrix than `csr` saves less than it costs to make. Provided: no.
    fn outweighs_product(&self) -> bool {
        false
    }
    /// Whether [`Preconditioner::apply_adjoint`] is supported: before the set-up for every matrix that is
    /// accepted, after it for that matrix. Provided: if `M` is Hermitian.
    fn knows_adjoint(&self) -> bool {
        self.is_hermitian()
    }
    /// Records `z ← Mᴴ r`, then `then`. Provided: applies a Hermitian `M`, fails otherwise.
    fn apply_adjoint(
        &self,
        k: &mut Recorder<'_, T>,
        on: &Handles<T>,
        r: Vector<T>,
        z: Vector<T>,
        then: Pass<T>,
    ) {
        if self.is_hermitian() {
            return self.apply(k, on, r, z, then);
        }
        let message = "it has no adjoint; `jacobi` has one, and so have those with the option `adjoint=yes` \
                       without a polynomial; most methods need none";
        super::adjoint::refuse(k, &self.name(), message);
    }
}

/// The type that a vector is stored in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Full,
    Narrow,
}

/// The numbers of a vector of the parts.
enum Numbers<T: Scalar> {
    Here(Vec<T>),
    /// On the device already.
    There(Owned<Vector<T>>),
    /// On the device since an earlier set-up, with new values.
    Kept,
}

/// A matrix of the parts: the same.
enum Stored<T: Scalar> {
    Here(Arc<dyn Format<T>>),
    There(Owned<Matrix<T>>),
    Kept,
}

/// The data of a preconditioner for a device, made on the host or on that device.
#[must_use = "the data of a preconditioner is what its set-up returns"]
pub struct Parts<T: Scalar> {
    vectors: Vec<(Numbers<T>, Width)>,
    numbers: Vec<T>,
    matrices: Vec<Stored<T>>,
    scratch: Vec<(usize, Width)>,
    report: Vec<(&'static str, String)>,
}

impl<T: Scalar> Default for Parts<T> {
    fn default() -> Self {
        Parts {
            vectors: Vec::new(),
            numbers: Vec::new(),
            matrices: Vec::new(),
            scratch: Vec::new(),
            report: Vec::new(),
        }
    }
}

impl<T: Scalar> Parts<T> {
    /// No parts.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds a vector with these numbers.
    pub fn vector(mut self, numbers: Vec<T>) -> Self {
        self.vectors.push((Numbers::Here(numbers), Width::Full));
        self
    }
    /// Adds a number, which is kept in a cell.
    pub fn number(mut self, number: T) -> Self {
        self.numbers.push(number);
        self
    }
    /// Adds a vector with these numbers, stored in [`Scalar::Narrow`].
    pub fn narrow_vector(mut self, numbers: Vec<T>) -> Self {
        self.vectors.push((Numbers::Here(numbers), Width::Narrow));
        self
    }
    /// Adds to the report of a preconditioner with matrices what they take, and the time of the set-up unless it is there.
    fn finish_report(&mut self, took: Duration) {
        if self.matrices.is_empty() {
            return;
        }
        self.report.push(("storage", format!("{:.2} MB", self.bytes() as f64 / 1e6)));
        if self.report.iter().all(|(what, _)| *what != "set-up") {
            self.report.push(("set-up", format!("{:.4} s", took.as_secs_f64())));
        }
    }
    /// Adds a matrix, of any shape and in any format that the backend supports; `csr` always works.
    pub fn matrix(self, a: impl Format<T>) -> Self {
        self.shared_matrix(Arc::new(a))
    }
    /// Adds a matrix whose format is chosen at run time, as made by [`lacuna_formats::convert`].
    pub fn shared_matrix(mut self, a: Arc<dyn Format<T>>) -> Self {
        self.matrices.push(Stored::Here(a));
        self
    }
    /// Adds a vector that is on the device already; `None` for that of an earlier set-up, which has new values.
    pub(super) fn vector_there(mut self, vector: Option<Owned<Vector<T>>>) -> Self {
        self.vectors.push((vector.map_or(Numbers::Kept, Numbers::There), Width::Full));
        self
    }
    /// The same for a matrix.
    pub(super) fn matrix_there(mut self, a: Option<Owned<Matrix<T>>>) -> Self {
        self.matrices.push(a.map_or(Stored::Kept, Stored::There));
        self
    }
    /// Adds a work vector of `n` elements.
    pub fn scratch(mut self, n: usize) -> Self {
        self.scratch.push((n, Width::Full));
        self
    }
    /// Adds a work vector of `n` elements, stored in [`Scalar::Narrow`].
    pub fn narrow_scratch(mut self, n: usize) -> Self {
        self.scratch.push((n, Width::Narrow));
        self
    }
    /// Adds a line to the report, such as fill, levels or shifts.
    pub fn report(mut self, what: &'static str, value: impl ToString) -> Self {
        self.report.push((what, value.to_string()));
        self
    }
    /// Bytes of the vectors and matrices.
    pub fn bytes(&self) -> usize {
        let element = |width: Width| match width {
            Width::Full => size_of::<T>(),
            Width::Narrow => size_of::<T::Narrow>(),
        };
        let length = |numbers: &Numbers<T>| match numbers {
            Numbers::Here(numbers) => numbers.len(),
            Numbers::There(vector) => vector.len,
            Numbers::Kept => 0,
        };
        let of_matrix = |a: &Stored<T>| match a {
            Stored::Here(a) => a.bytes(),
            Stored::There(a) => a.bytes,
            Stored::Kept => 0,
        };
        let vectors = self.vectors.iter().map(|(v, width)| length(v) * element(*width)).sum::<usize>();
        vectors + self.matrices.iter().map(of_matrix).sum::<usize>()
    }
}

/// The data of a preconditioner on a device.
pub struct Handles<T> {
    a: Matrix<T>,
    vectors: Vec<Vector<T>>,
    numbers: Vec<Cell<T>>,
    matrices: Vec<Matrix<T>>,
    scratch: Vec<Vector<T>>,
}

/// The first `N` handles.
fn first<H: Copy, const N: usize>(handles: &[H], what: &str) -> [H; N] {
    assert!(N <= handles.len(), "asked for {N} {what}, set up with {}", handles.len());
    std::array::from_fn(|i| handles[i])
}

impl<T: Scalar> Handles<T> {
    /// The matrix of the system, in the format of the system.
    pub fn a(&self) -> Matrix<T> {
        self.a
    }
    /// The first `N` vectors of the parts.
    ///
    /// # Panics
    /// If there are fewer, which is a bug in the calling preconditioner. The same holds for matrices and work
    /// vectors.
    pub fn vectors<const N: usize>(&self) -> [Vector<T>; N] {
        first(&self.vectors, "vectors")
    }
    /// The first `N` matrices of the parts.
    ///
    /// # Panics
    /// As [`Handles::vectors`].
    pub fn matrices<const N: usize>(&self) -> [Matrix<T>; N] {
        first(&self.matrices, "matrices")
    }
    /// All vectors of the parts.
    pub fn all_vectors(&self) -> &[Vector<T>] {
        &self.vectors
    }
    /// All numbers of the parts.
    pub fn all_numbers(&self) -> &[Cell<T>] {
        &self.numbers
    }
    /// All matrices of the parts.
    pub fn all_matrices(&self) -> &[Matrix<T>] {
        &self.matrices
    }
    /// All work vectors.
    pub fn all_scratch(&self) -> &[Vector<T>] {
        &self.scratch
    }
    /// The first `N` work vectors.
    ///
    /// # Panics
    /// As [`Handles::vectors`].
    pub fn scratch<const N: usize>(&self) -> [Vector<T>; N] {
        first(&self.scratch, "scratch vectors")
    }
}

/// Memory on a device, which is freed when this is dropped.
struct Allocations<'d> {
    device: &'d Device,
    leases: Vec<Arc<Lease>>,
}

impl Allocations<'_> {
    /// The handle of what was made, which is kept.
    fn keep<H>(&mut self, made: Owned<H>) -> H {
        let (handle, lease) = made.into_parts();
        self.leases.push(lease);
        handle
    }
    fn vector<T: Scalar>(&mut self, n: usize, width: Width) -> Result<Vector<T>> {
        Ok(match width {
            Width::Full => self.keep(self.device.vector(n)?),
            Width::Narrow => self.keep(self.device.narrow_basis(n, 1)?).column(0),
        })
    }
    fn numbers<T: Scalar>(&mut self, numbers: &[T]) -> Result<Vec<Cell<T>>> {
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let cells = self.keep(self.device.cells(numbers.len())?);
        let written =
            |(i, number): (usize, &T)| self.device.write(cells.at(i), *number).map(|()| cells.at(i));
        numbers.iter().enumerate().map(written).collect()
    }
}

/// Copies of the matrix for which every set-up finds room before it begins: two factors, and one in another order.
const COPIES: usize = 3;

/// The parts of a preconditioner, with sparse algebra on a device unless the caller has given another.
fn made<T: Scalar>(
    dev: &Device,
    kind: &mut dyn Preconditioner<T>,
    (host, a): (&Csr<T>, Matrix<T>),
    setup: &mut Setup<'_>,
) -> Result<Parts<T>> {
    let start = Instant::now();
    let mut algebra = OnDevice { device: dev, matrix: a.untyped() };
    let setup = &mut setup.or_algebra(&mut algebra);
    setup.check()?;
    let operation = format!("preconditioner `{}`", kind.name());
    setup.check_room(&operation, host, COPIES)?;
    let mut parts = setup.interruptible(|setup| kind.set_up(host, setup))?;
    setup.check_memory(&operation, parts.bytes() as u64)?;
    parts.finish_report(start.elapsed());
    Ok(parts)
}

/// Puts parts on a device, beside the matrix that they are for.
fn put<T: Scalar>(dev: &Device, parts: Parts<T>, a: Matrix<T>) -> Result<(Handles<T>, Vec<Arc<Lease>>)> {
    let Parts { vectors, numbers, matrices, scratch, .. } = parts;
    let mut memory = Allocations { device: dev, leases: Vec::new() };
    let vectors = vectors.into_iter().map(|(numbers, width)| match numbers {
        Numbers::Here(numbers) => {
            let vector = memory.vector(numbers.len(), width)?;
            dev.upload(&numbers, vector).map(|()| vector)
        }
        Numbers::There(vector) => Ok(memory.keep(vector)),
        Numbers::Kept => Err(lost()),
    });
    let vectors = vectors.collect::<Result<_>>()?;
    let numbers = memory.numbers(&numbers)?;
    let matrices = matrices.into_iter().map(|a| match a {
        Stored::Here(a) => Ok(memory.keep(dev.matrix(a)?)),
        Stored::There(a) => Ok(memory.keep(a)),
        Stored::Kept => Err(lost()),
    });
    let matrices = matrices.collect::<Result<_>>()?;
    let scratch = scratch.into_iter().map(|(n, width)| memory.vector(n, width));
    let scratch = scratch.collect::<Result<_>>()?;
    Ok((Handles { a, vectors, numbers, matrices, scratch }, memory.leases))
}

/// What was made for new values has no place in a set-up from nothing.
fn lost() -> Error {
    Error::Stale { operation: "a preconditioner on a device".into(), what: "part" }
}

/// A preconditioner on a device: an operator. What it takes there is freed when it and all programs that use it are dropped.
pub struct Placed<T: Scalar> {
    device: Device,
    kind: Box<dyn Preconditioner<T>>,
    on: Handles<T>,
    memory: Arc<Vec<Arc<Lease>>>,
    bytes: usize,
    report: Vec<(&'static str, String)>,
    /// Work vectors for several columns, made when they are first asked for.
    wide: Mutex<Option<Wide<T>>>,
}

/// Bases in the place of work vectors.
struct Wide<T> {
    work: Vec<Basis<T>>,
    columns: usize,
    memory: Arc<Vec<Arc<Lease>>>,
}

impl<T: Scalar> Wide<T> {
    /// As many columns for each work vector.
    fn new(dev: &Device, scratch: &[Vector<T>], columns: usize) -> Result<Self> {
        let mut memory = Allocations { device: dev, leases: Vec::new() };
        let basis = |v: &Vector<T>| Ok(memory.keep(dev.basis(v.len, columns)?));
        let work = scratch.iter().map(basis).collect::<Result<_>>()?;
        Ok(Wide { work, columns, memory: Arc::new(memory.leases) })
    }
}

/// Listed preconditioners that are not Hermitian for a Hermitian matrix.
const UNSYMMETRIC: [&str; 3] = ["sor", "spai", "ilut"];

impl<T: Scalar> Placed<T> {
    /// Whether it is one of those that are not Hermitian for a Hermitian matrix, or one of the caller's that does not say that it is.
    pub(crate) fn may_be_unsymmetric(&self) -> bool {
        let name = self.kind.name();
        let is_listed = PRECONDITIONERS.iter().any(|info| info.name == name_of(&name));
        !self.kind.is_hermitian() && (!is_listed || UNSYMMETRIC.contains(&name_of(&name)))
    }

    /// See [`Preconditioner::keeps_choices`].
    pub(crate) fn keeps_choices(&self) -> bool {
        self.kind.keeps_choices()
    }

    /// Sets up a preconditioner for a matrix, and places it on the device of the matrix.
    ///
    /// # Errors
    /// [`Error::Shape`] unless the matrix is square or the preconditioner accepts any shape ([`Preconditioner::accepts_any_shape`]);
    /// errors of the set-up, among them [`Error::Cancelled`]; device failures.
    pub fn new(
        dev: &Device,
        mut kind: Box<dyn Preconditioner<T>>,
        host: &Csr<T>,
        a: Matrix<T>,
        mut setup: Setup<'_>,
    ) -> Result<Self> {
        if host.rows() != host.cols() && !kind.accepts_any_shape() {
            let operation = format!("preconditioner `{}`", kind.name());
            return Err(Error::Shape {
                operation,
                expected: "a square matrix (column-scaling takes any)".into(),
                got: (host.rows(), host.cols()),
            });
        }
        let parts = made(dev, &mut *kind, (host, a), &mut setup)?;
        let (bytes, report) = (parts.bytes(), parts.report.clone());
        let (on, memory) = put(dev, parts, a)?;
        let memory = Arc::new(memory);
        Ok(Placed { device: dev.clone(), kind, on, memory, bytes, report, wide: Mutex::default() })
    }

    /// Sets up from nothing for other values, which may make parts of other sizes. What was recorded with it has to be recorded
    /// again. On an error the parts stay.
    ///
    /// # Errors
    /// As [`Placed::new`].
    pub(crate) fn set_up_anew(&mut self, host: &Csr<T>, mut setup: Setup<'_>) -> Result<()> {
        let parts = made(&self.device, &mut *self.kind, (host, self.on.a), &mut setup)?;
        let (bytes, report) = (parts.bytes(), parts.report.clone());
        let (on, memory) = put(&self.device, parts, self.on.a)?;
        (self.on, self.memory, self.bytes, self.report) = (on, Arc::new(memory), bytes, report);
        self.wide = Mutex::default();
        Ok(())
    }

    /// Sets up for new values on the same pattern, in the memory already allocated. Plans that use it stay
    /// valid. If the set-up is cancelled, the former values stay.
    ///
    /// # Errors
    /// Errors of the set-up, among them [`Error::Cancelled`]; [`Error::Length`] and [`Error::Structure`] if its parts have other sizes than
    /// before; device failures.
    pub fn update(&mut self, host: &Csr<T>, setup: Setup<'_>) -> Result<()> {
        let dev = &self.device;
        let parts = made(dev, &mut *self.kind, (host, self.on.a), &mut setup.for_new_values())?;
        let Parts { vectors, numbers, matrices, report, .. } = parts;
        let operation = format!("new values of preconditioner `{}`", self.kind.name());
        Error::check_length(&operation, "its vectors", self.on.vectors.len(), vectors.len())?;
        Error::check_length(&operation, "its numbers", self.on.numbers.len(), numbers.len())?;
        Error::check_length(&operation, "its matrices", self.on.matrices.len(), matrices.len())?;
        self.on.vectors.iter().zip(&vectors).try_for_each(|(to, (from, _))| match from {
            Numbers::Here(from) => dev.upload(from, *to),
            Numbers::There(from) => dev.copy(**from, *to),
            Numbers::Kept => Ok(()),
        })?;
        self.on.numbers.iter().zip(&numbers).try_for_each(|(cell, number)| dev.write(*cell, *number))?;
        self.on.matrices.iter().zip(matrices).try_for_each(|(to, from)| match from {
            Stored::Here(from) => dev.set_matrix(*to, from),
            Stored::There(_) => Err(lost()),
            Stored::Kept => Ok(()),
        })?;
        self.report = report;
        Ok(())
    }

    /// Switches to another matrix of the same shape on the device. Operations recorded from now on use that
    /// one.
    pub fn set_matrix(&mut self, a: Matrix<T>) {
        self.on.a = a;
    }

    /// Its name.
    pub fn name(&self) -> Cow<'static, str> {
        self.kind.name()
    }
    /// Bytes of its vectors and matrices on the device, excluding those of the system.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Its report on the set-up, as pairs of name and value.
    pub fn report(&self) -> &[(&'static str, String)] {
        &self.report
    }
}

impl<T: Scalar> LinOp<T> for Placed<T> {
    fn shape(&self) -> (usize, usize) {
        (self.on.a.cols, self.on.a.cols)
    }
    fn keep(&self, k: &mut Recorder<'_, T>) {
        k.keep(&self.memory);
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.keep(k);
        self.kind.apply(k, &self.on, x, y, then);
    }
    fn diagonal(&self) -> Option<Vector<T>> {
        self.kind.diagonal(&self.on)
    }
    fn apply_columns(&self, k: &mut Recorder<'_, T>, x: Basis<T>, y: Basis<T>) {
        if x.columns < 2 || !self.kind.takes_columns() {
            return (0..x.columns).for_each(|j| self.apply(k, x.column(j), y.column(j), Pass::nothing()));
        }
        let mut wide = self.wide.lock().unwrap_or_else(PoisonError::into_inner);
        if wide.as_ref().is_none_or(|wide| wide.columns < x.columns) {
            match Wide::new(&self.device, &self.on.scratch, x.columns) {
                Ok(made) => *wide = Some(made),
                Err(error) => return k.fail(error),
            }
        }
        if let Some(Wide { work, memory, .. }) = &*wide {
            self.keep(k);
            k.keep(memory);
            let work: Vec<Basis<T>> = work.iter().map(|work| work.take(x.columns)).collect();
            self.kind.apply_columns(k, &self.on, &work, [x, y]);
        }
    }
    fn apply_adjoint(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.keep(k);
        self.kind.apply_adjoint(k, &self.on, x, y, then);
    }
}
