//! What a storage format of a sparse matrix tells a backend.
use crate::{Error, Result, Scalar};
use std::any::Any;

/// One array or number of a format, in the order its kernels take them.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a, T: Scalar> {
    /// A number passed by value.
    Size(u32),
    /// Indices or offsets.
    Indices(&'a [u32]),
    /// Signed offsets (diagonals, packed columns).
    Offsets(&'a [i32]),
    /// Distances that two bytes hold.
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

/// A sparse matrix in one storage format, validated: every index it holds is in range and stays so.
///
/// A backend keeps a kernel for each format by [`Format::kernel`], or by its type, since every format is [`Any`]; the CPU
/// runs a format it has no kernel for through [`Format::row`]. A product of several columns **must** give each the bits of a
/// product of its own; a backend **may** take one after the other, as every one does in formats without a kernel for several.
pub trait Format<T: Scalar>: Any + Send + Sync {
    /// Rows and columns.
    fn shape(&self) -> (usize, usize);
    /// Stored entries, padding not counted.
    fn nnz(&self) -> usize;
    /// The stem of this format's kernels: `csr` for `spmv_csr_f64` in `kernels-cuda/spmv_csr.cu` and
    /// `kernels-opencl/spmv_csr.cl`.
    fn kernel(&self) -> &'static str;
    /// What the kernels take before `x` and `y`, in order.
    fn arguments(&self) -> Vec<Argument<'_, T>>;
    /// Lanes of a row sum, a power of two: lane `j` takes the entries `j`, `j + W`, … of a row with fused
    /// multiply-add in order from 0, and lanes are summed by halving. It belongs to the matrix, not to the device. A format
    /// may cut its long rows into pieces: see [`is_long`].
    fn lanes(&self) -> usize {
        1
    }
    /// Whether some rows are summed in pieces: see [`is_long`].
    fn has_long_rows(&self) -> bool {
        false
    }
    /// Partial sums that kernels compute ahead of the rows: those of the pieces that long rows are cut into. A backend keeps
    /// room for them with the matrix, behind the arguments.
    fn partial_sums(&self) -> usize {
        0
    }
    /// `(A x)[i]`, in the canonical order: what every kernel must agree with to the bit.
    ///
    /// # Panics
    /// May panic where `i` is not a row or `x` is shorter than the columns.
    fn row(&self, i: usize, x: &[T]) -> T;
    /// The matrix as triangular solves take it, where it is one that is stored for them.
    fn triangle(&self) -> Option<crate::Triangle<'_, T>> {
        None
    }
    /// Bytes of all arrays.
    fn bytes(&self) -> usize {
        self.arguments().iter().map(Argument::bytes).sum()
    }
}

/// Fails unless a matrix differs from another by its values alone: the same format, shape, pattern and layout.
///
/// # Errors
/// [`Error::Structure`] with what differs.
pub fn check_pattern<T: Scalar>(old: &dyn Format<T>, new: &dyn Format<T>) -> Result<()> {
    let differs = |what: &str| {
        let message =
            format!("{what} differs from that of the matrix that is there; prepare the system anew");
        Err(Error::Structure { operation: "new values of a matrix".into(), message })
    };
    if old.kernel() != new.kernel() || old.lanes() != new.lanes() {
        return differs("the format");
    }
    if old.shape() != new.shape() || old.nnz() != new.nnz() {
        return differs("the shape or the number of entries");
    }
    let (old, new) = (old.arguments(), new.arguments());
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

/// The most lanes a row sum has.
pub const MAX_LANES: usize = 32;
/// Entries of a lane beyond which a row is long.
pub const LONG_LANE: usize = 64;
/// Entries of a piece of a long row, where these are no more than [`MOST_PIECES`].
pub const PIECE: usize = 512;
/// Pieces of a row at the most.
pub const MOST_PIECES: usize = 128;

/// Whether a row of so many entries is long in a matrix of so many lanes. Formats that keep long rows apart cut one into pieces
/// of [`piece_of`] entries; each is summed by [`MAX_LANES`] lanes and halving, and the sums of the pieces are added in
/// order, so that no lane's chain of additions holds up all other rows.
#[inline(always)]
pub fn is_long(lanes: usize, entries: usize) -> bool {
    entries > LONG_LANE * lanes
}

/// Entries of each piece of a long row but the last.
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
