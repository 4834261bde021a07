//! Sparse algebra that stays on a device: what the set-up of multigrid is made of, one operation after the other.
use crate::{Each, FormatRefs, Matrix, Products, Result, Vector};

/// An array in the memory of a device at work on a set-up. It is freed by [`Algebra::free`]; then the handle is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Array {
    /// Where the backend keeps it.
    pub slot: u32,
    /// Tells it from earlier ones in the same place.
    pub serial: u32,
}

/// A matrix in compressed rows on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparseArrays {
    /// Rows and columns.
    pub shape: (usize, usize),
    /// Stored entries.
    pub entries: usize,
    /// Where each row begins, and the last one ends.
    pub row_ptr: Array,
    /// The columns of a row increase.
    pub columns: Array,
    /// One for each column.
    pub values: Array,
}

impl SparseArrays {
    /// Its arrays.
    pub fn arrays(&self) -> [Array; 3] {
        [self.row_ptr, self.columns, self.values]
    }
}

/// What a look at the rows of a square matrix leaves on the device.
#[derive(Clone, Copy, Debug)]
pub struct RowArrays {
    /// `a_ii`, 0 where there is none.
    pub diagonal: Array,
    /// `1/√|a_ii|`, 0 where that is not finite: `f64`.
    pub scale: Array,
    /// The weights of SPAI(0), `conj(a_ii) / Σ_j |a_ij|²`, 0 where that is not finite.
    pub spai: Array,
    /// The strongest coupling `|a_ij| / √|a_ii a_jj|` of each row, 0 where there is none: `f64`.
    pub strongest: Array,
    /// Whether the sum of the couplings of a row is above ½: a byte each.
    pub strong_in_sum: Array,
}

impl RowArrays {
    /// All of them.
    pub fn arrays(&self) -> [Array; 5] {
        [self.diagonal, self.scale, self.spai, self.strongest, self.strong_in_sum]
    }
}

/// What a look at the rows of a square matrix tells.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// What is left on the device.
    pub rows: RowArrays,
    /// The weakest coupling of all; infinite where there is none.
    pub weakest: f64,
    /// `‖D⁻¹A‖∞`
    pub norm: f64,
    /// `‖W A‖∞` with the weights `W` of SPAI(0).
    pub spai_norm: f64,
    /// Whether `A = Aᴴ`, up to hash collisions.
    pub hermitian: bool,
    /// The first row whose diagonal entry is 0, missing or has no finite reciprocal.
    pub without_diagonal: Option<usize>,
    /// Rows whose strongest coupling is at least as strong as was asked.
    pub coupled: usize,
}

/// The strong couplings of a Hermitian matrix.
#[derive(Clone, Copy, Debug)]
pub struct StrongArrays {
    /// A byte for each entry, 1 if it is strong or on the diagonal; `None` where all are.
    pub marks: Option<Array>,
    /// The graph of the strong entries: where the neighbours of each row begin, and the neighbours, among which a row may be
    /// itself.
    pub graph: [Array; 2],
    /// Neighbours of all rows.
    pub edges: usize,
}

/// The filtered matrix `A_F` of a level: its strong entries, and a diagonal to which the others are added.
#[derive(Clone, Copy, Debug)]
pub struct FilteredArrays {
    /// See [`StrongArrays::marks`].
    pub marks: Option<Array>,
    /// Its diagonal.
    pub lumped: Array,
    /// What its rows are divided by.
    pub by: Array,
}

/// Lanczos' method on a device, in the inner product of a diagonal matrix.
#[derive(Clone, Copy, Debug)]
pub struct LanczosArrays {
    /// The current vector, the one before it, which takes the next, and the product.
    pub vectors: [Array; 3],
    /// The inverse of the diagonal matrix.
    pub inverse: Array,
}

/// Rows put together.
#[derive(Clone, Copy, Debug)]
pub struct AggregateArrays {
    /// The aggregate of each row; `u32::MAX` in none.
    pub labels: Array,
    /// How many there are.
    pub count: usize,
    /// Rows in none.
    pub isolated: usize,
}

/// The operations of a set-up on matrices of one number type in double precision, whose arrays stay on the device. Each has one result, the
/// bits of which are those of the host's: sums within a row go from entry to entry, sums over rows are canonical.
///
/// `Ok(None)` says that the host has to do the whole set-up: a row is too long, memory too small, or a number not
/// finite, for which the host knows the place.
pub trait Algebra {
    /// A matrix in `csr` of the host.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) for another format; device failures, as for all operations.
    fn upload(&mut self, a: Each<FormatRefs<'_>>) -> Result<Option<SparseArrays>>;
    /// The arrays of a matrix of the backend in `csr`; `None` for one in another format.
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn stored(&mut self, a: Matrix) -> Result<Option<SparseArrays>>;
    /// A matrix for the host.
    ///
    /// # Errors
    /// [`Error::Stale`](crate::Error::Stale) for an array that was freed, as for all operations; device failures.
    fn download(&mut self, a: &SparseArrays) -> Result<Each<Products>>;
    /// The first numbers of an array of `f64`.
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn reals(&mut self, from: Array, n: usize) -> Result<Vec<f64>>;
    /// Frees arrays; those that are not there are left out.
    fn free(&mut self, arrays: &[Array]);

    /// Looks at the rows of a square matrix; whether it is Hermitian is looked at only where that is not known.
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn look(&mut self, a: &SparseArrays, hermitian: Option<bool>, at_least: f64) -> Result<Look>;
    /// The strong couplings of a Hermitian matrix: those above a threshold, in a row where none is but all are in sum above half its
    /// strongest, and above the lower one of two rows. All where `all` is set.
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn strong(
        &mut self,
        a: &SparseArrays,
        rows: &RowArrays,
        threshold: f64,
        all: bool,
    ) -> Result<Option<StrongArrays>>;
    /// The filtered matrix, which takes a near-null vector, constant if there is none, to what the matrix takes it.
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn filtered(
        &mut self,
        a: &SparseArrays,
        rows: &RowArrays,
        marks: Option<Array>,
        near_null: Option<Array>,
    ) -> Result<FilteredArrays>;
    /// The whole matrix, each row divided by the inverse of its weight of SPAI(0).
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn smoothed(&mut self, a: &SparseArrays, rows: &RowArrays) -> Result<FilteredArrays>;

    /// Lanczos' method from a hashed vector `v`, with `v* D v`. `None` if `D` is not positive.
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn lanczos(&mut self, n: usize, by: Array) -> Result<Option<(LanczosArrays, f64)>>;
    /// `v* A_F v`
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn lanczos_energy(
        &mut self,
        a: &SparseArrays,
        matrix: &FilteredArrays,
        on: &LanczosArrays,
    ) -> Result<f64>;
    /// The next vector `w ← by D⁻¹ A_F v + own v + last w`, with `w* D w`; `w` and `v` change places.
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn lanczos_step(
        &mut self,
        n: usize,
        matrix: &FilteredArrays,
        on: &mut LanczosArrays,
        factors: [f64; 3],
    ) -> Result<f64>;

    /// Arnoldi's method, where Lanczos' cannot be: a hashed vector `w`, with `w* w`.
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn arnoldi(&mut self, n: usize) -> Result<(Array, f64)>;
    /// A new vector `w ← D⁻¹ A_F v`, 0 where that is not finite, with `u* w`: its real and imaginary part.
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn arnoldi_apply(
        &mut self,
        a: &SparseArrays,
        matrix: &FilteredArrays,
        v: Array,
        u: Array,
    ) -> Result<(Array, [f64; 2])>;
    /// `w ← w − c v`, with `u* w`; with `w* w` without `u`.
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn arnoldi_project(
        &mut self,
        n: usize,
        w: Array,
        c: [f64; 2],
        v: Array,
        u: Option<Array>,
    ) -> Result<[f64; 2]>;

    /// Greedy aggregates: a row none of whose neighbours is taken founds one with all of them, in the order of rows; what is left
    /// joins the neighbour that it is coupled with most strongly.
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn aggregates(
        &mut self,
        a: &SparseArrays,
        rows: &RowArrays,
        strong: &StrongArrays,
    ) -> Result<Option<AggregateArrays>>;
    /// The prolongator `(I − ω D⁻¹ A_F) T` with the near-null vector, constant if there is none, normalised on each aggregate as `T`;
    /// and the norms, the near-null vector of the next level.
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn prolongator(
        &mut self,
        a: &SparseArrays,
        matrix: &FilteredArrays,
        aggregates: &AggregateArrays,
        near_null: Option<Array>,
        omega: f64,
    ) -> Result<Option<(SparseArrays, Array)>>;
    /// The adjoint of a matrix.
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn adjoint(&mut self, a: &SparseArrays) -> Result<Option<SparseArrays>>;
    /// The product of matrices, from the last to the first: see [`Backend::sparse_product`](crate::Backend::sparse_product).
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn product(&mut self, factors: &[&SparseArrays]) -> Result<Option<SparseArrays>>;
    /// Gives rows of `R A P` that have only a diagonal entry, which is 0 but for rounding of values of precision `epsilon`, the
    /// size of what the entry is made of. Returns how many there are.
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn regular(
        &mut self,
        coarse: &SparseArrays,
        r: &SparseArrays,
        diagonal: Array,
        epsilon: f64,
    ) -> Result<usize>;
    /// The first `n` numbers of an array, multiplied.
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn scaled(&mut self, n: usize, from: Array, by: f64) -> Result<Array>;

    /// A matrix of the backend with these arrays, which are no handles any more: see [`Backend::matrix`](crate::Backend::matrix).
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn matrix(&mut self, a: &SparseArrays) -> Result<Matrix>;
    /// Gives a matrix that was made so other values on its pattern.
    ///
    /// # Errors
    /// As [`Algebra::download`]; [`Error::Structure`](crate::Error::Structure) for another shape or number of entries.
    fn set_matrix(&mut self, to: Matrix, from: &SparseArrays) -> Result<()>;
    /// Copies an array to a vector of as many numbers.
    ///
    /// # Errors
    /// As [`Algebra::download`].
    fn set_vector(&mut self, to: Vector, from: Array) -> Result<()>;
}
