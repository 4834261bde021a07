//! `Y ← A X`: several columns at a time, so that a row's entries are loaded once for them; each column has
//! the same sums as `y ← A x`.
pub(crate) mod bcsr;
pub(crate) mod csr;
pub(crate) mod dia;
pub(crate) mod sell;

use crate::spmv::Stored;
use lacuna_engine::Scalar;

/// A format whose rows can be multiplied with `K` columns at a time.
pub(crate) trait SpmmRows<T: Scalar> {
    /// Maximum number of columns at a time, 2 or 4; further columns read the entries of the rows from cache.
    const TOGETHER: usize;
    /// `y[j][i] ← (A x[j])[i]` for the rows `start..end` and every `j`.
    ///
    /// # Safety
    /// Each `x` must be valid for the columns of the matrix and each `y` for its rows, without overlap with
    /// any `x`; the rows must exist and `start` must begin a segment. Columns may be equal.
    unsafe fn rows<const K: usize>(&self, x: [*const T; K], y: [*mut T; K], start: usize, end: usize);
}

impl<T: Scalar> Stored<T> {
    /// Whether there is a kernel for this many columns at once; otherwise they are multiplied one by one.
    pub(crate) fn takes_columns(&self, columns: u32) -> bool {
        columns > 1
            && match self {
                Stored::Csr(a) => csr::pays(a),
                Stored::Dia(_) | Stored::Sell(_) => true,
                Stored::Bcsr(a) => bcsr::pays(a),
                _ => false,
            }
    }

    /// `y[j][i] ← (A x[j])[i]` for the rows `start..end`, whole segments except for the last, and every `j`;
    /// does nothing unless [`Stored::takes_columns`] holds.
    ///
    /// # Safety
    /// As [`SpmmRows::rows`].
    #[inline(always)]
    pub(crate) unsafe fn columns(&self, x: &[*mut T], y: &[*mut T], start: usize, end: usize) {
        // SAFETY: as the caller promises.
        unsafe {
            match self {
                Stored::Csr(a) => together(&**a, x, y, start, end),
                Stored::Dia(a) => together(&**a, x, y, start, end),
                Stored::Sell(a) => together(&**a, x, y, start, end),
                Stored::Bcsr(a) => together(&**a, x, y, start, end),
                _ => {}
            }
        }
    }
}

/// Multiplies columns in groups; the last column fills up an incomplete group.
#[inline(always)]
unsafe fn together<T: Scalar, A: SpmmRows<T>>(a: &A, x: &[*mut T], y: &[*mut T], start: usize, end: usize) {
    for (x, y) in x.chunks(A::TOGETHER).zip(y.chunks(A::TOGETHER)) {
        // SAFETY: as the caller promises.
        unsafe {
            if A::TOGETHER == 2 || x.len() <= 2 {
                group::<T, A, 2>(a, x, y, start, end);
            } else {
                group::<T, A, 4>(a, x, y, start, end);
            }
        }
    }
}

#[inline(always)]
unsafe fn group<T: Scalar, A: SpmmRows<T>, const K: usize>(
    a: &A,
    x: &[*mut T],
    y: &[*mut T],
    start: usize,
    end: usize,
) {
    let of = |columns: &[*mut T]| std::array::from_fn::<_, K, _>(|j| columns[j.min(columns.len() - 1)]);
    // SAFETY: as the caller promises.
    unsafe { a.rows::<K>(of(x).map(|x| x.cast_const()), of(y), start, end) }
}
