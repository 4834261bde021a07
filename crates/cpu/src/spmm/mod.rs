//! `Y ← A X`: several columns at a time, so that a row's entries are loaded once for them; each column has
//! the same sums as `y ← A x`.
pub(crate) mod bcsr;
pub(crate) mod csr;
pub(crate) mod dia;
pub(crate) mod sell;

use crate::run::rows::{Rows, Spare};
use crate::spmv::Stored;
use lacuna_engine::{Format, Scalar};

/// A format whose rows can be multiplied with `K` columns at a time.
pub(crate) trait Columns<T: Scalar> {
    /// Maximum number of columns at a time, 2 or 4; further columns read the entries of the rows from cache.
    const TOGETHER: usize;
    /// `y[j][i] ← (A x[j])[start + i]` for every `j` and each `i`, the same for all `j`; `start` must begin a
    /// segment.
    fn rows<const K: usize>(&self, x: [&[T]; K], y: [&mut [T]; K], start: usize);
}

/// The addresses of each `x`, as long as a row, and of row 0 of each `y`, and the end of the rows.
#[inline(always)]
fn pointers<T: Scalar, const K: usize>(
    a: &impl Format<T>,
    x: [&[T]; K],
    y: [&mut [T]; K],
    start: usize,
) -> ([*const T; K], [*mut T; K], usize) {
    let n = y[0].len();
    assert!(x.iter().all(|x| x.len() >= a.shape().1), "vectors as long as a row");
    assert!(y.iter().all(|y| y.len() == n), "the same rows of each column");
    (x.map(|x| x.as_ptr()), y.map(|y| y.as_mut_ptr().wrapping_sub(start)), start + n)
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

    /// The rows of a segment of the vectors from `y` on become the products with as many vectors from `x` on,
    /// `columns` of them; does nothing unless [`Stored::takes_columns`] holds.
    #[inline(always)]
    pub(crate) fn columns(&self, rows: &mut Rows<'_, T>, x: u32, y: u32, columns: u32, spare: &mut Spare<T>) {
        match self {
            Stored::Csr(a) => together(&**a, rows, x, y, columns, spare),
            Stored::Dia(a) => together(&**a, rows, x, y, columns, spare),
            Stored::Sell(a) => together(&**a, rows, x, y, columns, spare),
            Stored::Bcsr(a) => together(&**a, rows, x, y, columns, spare),
            _ => {}
        }
    }
}

/// Multiplies columns in groups; an incomplete group is filled up by the last column.
#[inline(always)]
fn together<T: Scalar, A: Columns<T> + Format<T>>(
    a: &A,
    rows: &mut Rows<'_, T>,
    x: u32,
    y: u32,
    columns: u32,
    spare: &mut Spare<T>,
) {
    for j in (0..columns).step_by(A::TOGETHER) {
        let count = (columns - j).min(A::TOGETHER as u32) as usize;
        if A::TOGETHER == 2 || count <= 2 {
            group::<T, A, 2>(a, rows, x + j, y + j, count, spare);
        } else {
            group::<T, A, 4>(a, rows, x + j, y + j, count, spare);
        }
    }
}

#[inline(always)]
fn group<T: Scalar, A: Columns<T> + Format<T>, const K: usize>(
    a: &A,
    rows: &mut Rows<'_, T>,
    x: u32,
    y: u32,
    count: usize,
    spare: &mut Spare<T>,
) {
    let (start, _) = rows.ends();
    let (x, y) = rows.product((x, a.shape().1), y, count, spare);
    a.rows::<K>(x, y, start);
}
