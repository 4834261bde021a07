//! `Y ← A X`: several columns at a time while the entries of a row are at hand, each with the sums of `y ← A x`.
use crate::product::Stored;
use crate::spmm_csr;
use lacuna_core::{Format, Scalar};

/// The most columns that a kernel takes together.
const TOGETHER: usize = 8;

/// A format whose rows are multiplied with `K` columns at a time.
pub(crate) trait Columns<T: Scalar> {
    /// `y[j][i] ← (A x[j])[i]` for the rows `start..end` and every `j`.
    ///
    /// # Safety
    /// Each `x` must be valid for the columns of the matrix and each `y` for its rows, none of which an `x` holds; the rows must
    /// exist and `start` begin a segment. Columns may be the same.
    unsafe fn rows<const K: usize>(&self, x: [*const T; K], y: [*mut T; K], start: usize, end: usize);
}

impl<T: Scalar> Stored<T> {
    /// `y[j][i] ← (A x[j])[i]` for the rows `start..end`, whole segments but for the last, and every `j`. Formats without a kernel
    /// take one column after the other, from the second on with what the cache kept of these rows.
    ///
    /// # Safety
    /// As [`Stored::rows`] for each column; the partial sums of column `j` begin at `sums + j · partial_sums`.
    #[inline(always)]
    pub(crate) unsafe fn columns(
        &self,
        x: &[*mut T],
        y: &[*mut T],
        sums: *const T,
        start: usize,
        end: usize,
    ) {
        // SAFETY: as the caller promises.
        unsafe {
            match self {
                Stored::Csr(a) if spmm_csr::pays(a) => together(self, &**a, x, y, start, end),
                Stored::Dia(a) => together(self, &**a, x, y, start, end),
                Stored::Sell(a) => together(self, &**a, x, y, start, end),
                _ => {
                    let sums_each = if let Stored::Hyb(a) = self { a.partial_sums() } else { 0 };
                    for (j, (x, y)) in x.iter().zip(y).enumerate() {
                        self.rows(*x, *y, sums.wrapping_add(j * sums_each), start, end);
                    }
                }
            }
        }
    }
}

/// Groups of columns, the last column standing in for those that a kernel takes beyond the last.
#[inline(always)]
unsafe fn together<T: Scalar, A: Columns<T>>(
    stored: &Stored<T>,
    a: &A,
    x: &[*mut T],
    y: &[*mut T],
    start: usize,
    end: usize,
) {
    for (x, y) in x.chunks(TOGETHER).zip(y.chunks(TOGETHER)) {
        // SAFETY: as the caller promises.
        unsafe {
            match x.len() {
                1 => stored.rows(x[0], y[0], std::ptr::null(), start, end),
                2 => group::<T, A, 2>(a, x, y, start, end),
                3 | 4 => group::<T, A, 4>(a, x, y, start, end),
                _ => group::<T, A, TOGETHER>(a, x, y, start, end),
            }
        }
    }
}

#[inline(always)]
unsafe fn group<T: Scalar, A: Columns<T>, const K: usize>(
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
