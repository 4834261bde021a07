//! What a sparse matrix format provides to a backend.
use crate::{Each, Error, Family, Matrix, Result, Scalar, with_each};
use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

/// One array or number of a format, in the order its kernels take them.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a, T: Scalar> {
    /// A number passed by value.
    Size(u32),
    /// Indices or offsets.
    Indices(&'a [u32]),
    /// Signed offsets (diagonals, packed columns).
    Offsets(&'a [i32]),
    /// Distances that fit in two bytes.
    Short(&'a [u16]),
    /// Entries.
    Values(&'a [T]),
    /// Entries in the narrower type.
    Narrow(&'a [T::Narrow]),
}

impl<T: Scalar> Argument<'_, T> {
    /// Bytes of the array; 0 for a number.
    pub fn bytes(&self) -> usize {
        match self {
            Argument::Size(_) => 0,
            Argument::Indices(a) => size_of_val(*a),
            Argument::Offsets(a) => size_of_val(*a),
            Argument::Short(a) => size_of_val(*a),
            Argument::Values(a) => size_of_val(*a),
            Argument::Narrow(a) => size_of_val(*a),
        }
    }
}

/// A sparse matrix in one storage format, validated: every index it holds is in range and stays in range.
///
/// A backend selects a kernel by [`Format::kernel`], or by the type, since every format is [`Any`]; the CPU
/// runs a format without a kernel through [`Format::row`]. A product with several columns **must** give each
/// column the same bits as a product of its own; a backend **may** take the columns one by one, as every
/// backend does for formats without a kernel for several.
pub trait Format<T: Scalar>: Any + Send + Sync {
    /// Rows and columns.
    fn shape(&self) -> (usize, usize);
    /// Stored entries, without padding.
    fn nnz(&self) -> usize;
    /// The stem of this format's kernels: `csr` for `spmv_csr_f64` in `kernels-cuda/spmv_csr.cu` and
    /// `kernels-opencl/spmv_csr.cl`.
    fn kernel(&self) -> &'static str;
    /// Makes what [`Format::arguments`] and [`Format::triangle`] return, if a format makes it on demand. A
    /// backend that uses them calls this once before.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn prepare(&self) -> Result<()> {
        Ok(())
    }
    /// The kernel arguments before `x` and `y`, in order.
    fn arguments(&self) -> Vec<Argument<'_, T>>;
    /// The arrays that define the matrix, without those made on demand.
    fn stored(&self) -> Vec<Argument<'_, T>> {
        self.arguments()
    }
    /// Lanes of a row sum, a power of two: lane `j` accumulates the entries `j`, `j + W`, … of a row in order
    /// from 0 with fused multiply-add, and the lanes are summed by halving. It is a property of the matrix,
    /// not of the device. A format may split long rows into pieces: see [`is_long`].
    fn lanes(&self) -> usize {
        1
    }
    /// Whether some rows are summed in pieces: see [`is_long`].
    fn has_long_rows(&self) -> bool {
        false
    }
    /// Number of partial sums that kernels compute before the rows: those of the pieces of long rows. A
    /// backend allocates space for them with the matrix, after the arguments.
    fn partial_sums(&self) -> usize {
        0
    }
    /// `(A x)[i]`, in the canonical order: every kernel must agree with it bit for bit.
    ///
    /// # Panics
    /// May panic if `i` is not a row or `x` is shorter than the number of columns.
    fn row(&self, i: usize, x: &[T]) -> T;
    /// The matrix in the form that triangular solves take, if it is stored for them.
    fn triangle(&self) -> Option<crate::Triangle<'_, T>> {
        None
    }
    /// Bytes of the arrays that define the matrix.
    fn bytes(&self) -> usize {
        self.stored().iter().map(Argument::bytes).sum()
    }
}

/// The [`Family`] of matrices in some format.
pub enum Formats {}

impl Family for Formats {
    type Of<T: Scalar> = Arc<dyn Format<T>>;
}

/// A matrix in some format, of a number type known at run time.
pub type AnyFormat = Each<Formats>;

impl AnyFormat {
    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        with_each!(self, a => a.shape())
    }
    /// Stored entries, without padding.
    pub fn nnz(&self) -> usize {
        with_each!(self, a => a.nnz())
    }
    /// Bytes of the arrays that define the matrix.
    pub fn bytes(&self) -> usize {
        with_each!(self, a => a.bytes())
    }
    /// See [`Format::kernel`].
    pub fn kernel(&self) -> &'static str {
        with_each!(self, a => a.kernel())
    }
    /// See [`Format::lanes`].
    pub fn lanes(&self) -> usize {
        with_each!(self, a => a.lanes())
    }
    /// See [`Format::has_long_rows`].
    pub fn has_long_rows(&self) -> bool {
        with_each!(self, a => a.has_long_rows())
    }
    /// See [`Format::partial_sums`].
    pub fn partial_sums(&self) -> usize {
        with_each!(self, a => a.partial_sums())
    }
}

/// The [`Family`] of borrowed matrices in some format.
pub struct FormatRefs<'a>(PhantomData<&'a ()>);

impl<'a> Family for FormatRefs<'a> {
    type Of<T: Scalar> = &'a dyn Format<T>;
}

/// The [`Family`] of matrices that a device computed.
pub enum Products {}

impl Family for Products {
    type Of<T: Scalar> = CompressedRows<T>;
}

/// A matrix in compressed rows, computed by a device: see [`crate::Backend::sparse_product`].
#[derive(Clone, Debug, PartialEq)]
pub struct CompressedRows<T> {
    /// Rows and columns.
    pub shape: (usize, usize),
    /// Where each row begins, and the last one ends.
    pub row_ptr: Vec<u32>,
    /// The columns of a row increase.
    pub col_idx: Vec<u32>,
    /// One for each column.
    pub values: Vec<T>,
}

/// A graph of rows: each with its neighbours, among which it may be itself.
#[derive(Clone, Copy, Debug)]
pub struct Graph<'a> {
    /// Where the neighbours of each row begin, and those of the last end.
    pub row_ptr: &'a [u32],
    /// Numbers of rows.
    pub neighbours: &'a [u32],
}

/// Fails unless two matrices differ in their values only: same type, format, shape, pattern and layout; the first
/// is the one of a handle.
///
/// # Errors
/// [`Error::Structure`] with the difference.
pub fn check_pattern<T: Scalar>(old: &dyn Format<T>, handle: Matrix, new: &dyn Format<T>) -> Result<()> {
    let differs = |what: &str| {
        let message =
            format!("{what} differs from that of the matrix that is there; prepare the system anew");
        Err(Error::Structure { operation: "new values of a matrix".into(), message })
    };
    let types = [old, new].map(|format| (format as &dyn Any).type_id());
    if types[0] != types[1] || old.kernel() != new.kernel() || old.lanes() != new.lanes() {
        return differs("the format");
    }
    if (new.shape(), new.nnz()) != ((handle.rows, handle.cols), handle.nnz) {
        return differs("the shape or the number of entries");
    }
    let (old, new) = (old.stored(), new.stored());
    let same = |pair: (&Argument<'_, T>, &Argument<'_, T>)| match pair {
        (Argument::Size(a), Argument::Size(b)) => a == b,
        (Argument::Indices(a), Argument::Indices(b)) => a == b,
        (Argument::Offsets(a), Argument::Offsets(b)) => a == b,
        (Argument::Short(a), Argument::Short(b)) => a == b,
        (Argument::Values(a), Argument::Values(b)) => a.len() == b.len(),
        (Argument::Narrow(a), Argument::Narrow(b)) => a.len() == b.len(),
        _ => false,
    };
    if old.len() == new.len() && old.iter().zip(&new).all(same) { Ok(()) } else { differs("the pattern") }
}

/// Maximum number of lanes of a row sum.
pub const MAX_LANES: usize = 32;
/// Entries per lane above which a row is long.
pub const LONG_LANE: usize = 64;
/// Entries of a piece of a long row, if that gives at most [`MOST_PIECES`] pieces.
pub const PIECE: usize = 512;
/// Maximum number of pieces of a row.
pub const MOST_PIECES: usize = 128;

/// Whether a row of `entries` entries is long in a matrix of `lanes` lanes. Formats that treat long rows
/// separately split one into pieces of [`piece_of`] entries; each piece is summed by [`MAX_LANES`] lanes and
/// halving, and the sums of the pieces are added in order, so that one lane's chain of additions does not
/// hold up all other rows.
#[inline(always)]
pub fn is_long(lanes: usize, entries: usize) -> bool {
    entries > LONG_LANE * lanes
}

/// Entries of each piece of a long row except the last.
#[inline(always)]
pub fn piece_of(entries: usize) -> usize {
    PIECE.max(entries.div_ceil(MOST_PIECES))
}

/// The sum of one row in the canonical order: `lanes` partial sums by fused multiply-add, then halving.
///
/// `entries` are `(value, x at its column)` in the order stored.
pub fn row_sum<T: Scalar>(lanes: usize, entries: impl IntoIterator<Item = (T, T)>) -> T {
    let mut partial = vec![T::zero(); lanes.max(1)];
    for (k, (value, x)) in entries.into_iter().enumerate() {
        let lane = k % partial.len();
        partial[lane] = value.fma(x, partial[lane]);
    }
    while partial.len() > 1 {
        let half = partial.len() / 2;
        for j in 0..half {
            let upper = partial[j + half];
            partial[j] += upper;
        }
        partial.truncate(half);
    }
    partial[0]
}
