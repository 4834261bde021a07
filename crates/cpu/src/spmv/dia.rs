//! `y ← A x` for diagonals: 8 bytes a place in `f64`, with x from cache.
use lacuna_engine::{Format, Scalar};
use lacuna_formats::{DIA_ROWS, Dia};

/// Offsets and starts of diagonals.
pub(crate) type Table<'a> = (&'a [i32], &'a [i32]);

/// `y[i] ← (A x)[i]` for the rows `start..end`.
///
/// # Safety
/// `x` must be valid for the columns of `a` and `y` for its rows, without overlap; the rows must exist and
/// `start` must begin a segment.
#[inline(always)]
pub(crate) unsafe fn rows<T: Scalar>(a: &Dia<T>, x: *const T, y: *mut T, start: usize, end: usize) {
    let (offsets, starts, cols) = (a.offsets(), a.starts(), a.shape().1 as i64);
    for first in (start..end).step_by(DIA_ROWS) {
        let n = (end - first).min(DIA_ROWS);
        let values = places_of(a, first);
        // SAFETY: rows that exist; columns are in range, checked here for all diagonals or in `at_border` for
        // each.
        unsafe {
            if is_inside(offsets, first, n, cols) {
                y.add(first).cast::<[T; DIA_ROWS]>().write_unaligned(inside(
                    (offsets, starts),
                    values,
                    x.wrapping_add(first),
                ));
            } else {
                at_border((offsets, starts), values, x, y.add(first), (first, n), cols);
            }
        }
    }
}

/// The places of the block that begins at row `first`, as if the diagonals began there.
#[inline(always)]
pub(crate) fn places_of<T: Scalar>(a: &Dia<T>, first: usize) -> *const T {
    a.values().as_ptr().wrapping_add(first / DIA_ROWS * a.step())
}

/// Whether a block of `n` rows from `first` is complete and lies entirely within the matrix.
#[inline(always)]
pub(crate) fn is_inside(offsets: &[i32], first: usize, n: usize, cols: i64) -> bool {
    let (lowest, highest) = match offsets {
        [] => (0, 0),
        [first, ..] => (i64::from(*first), i64::from(offsets[offsets.len() - 1])),
    };
    n == DIA_ROWS && first as i64 + lowest >= 0 && (first + n) as i64 + highest <= cols
}

/// The rows of a block that lies entirely within the matrix. `x` points at the element of the first row.
#[inline(always)]
unsafe fn inside<T: Scalar>((offsets, starts): Table<'_>, values: *const T, x: *const T) -> [T; DIA_ROWS] {
    let mut sums = [T::zero(); DIA_ROWS];
    for (&offset, &start) in offsets.iter().zip(starts) {
        let (values, x) = (values.wrapping_offset(start as isize), x.wrapping_offset(offset as isize));
        // SAFETY: as the caller has checked.
        unsafe {
            for (l, sum) in sums.iter_mut().enumerate() {
                *sum = (*values.add(l)).fma(*x.add(l), *sum);
            }
        }
    }
    sums
}

/// A block of `n` rows from `first` that lies partly outside the matrix.
///
/// # Safety
/// `x` must be valid for the columns of the matrix, `y` for the rows of the block and `values` for its
/// places.
#[inline(always)]
pub(crate) unsafe fn at_border<T: Scalar>(
    (offsets, starts): Table<'_>,
    values: *const T,
    x: *const T,
    y: *mut T,
    (first, n): (usize, usize),
    cols: i64,
) {
    // SAFETY: rows and columns are clipped to the matrix.
    unsafe {
        std::slice::from_raw_parts_mut(y, n).fill(T::zero());
        for (&offset, &start) in offsets.iter().zip(starts) {
            let values = values.wrapping_offset(start as isize);
            let column = first as i64 + i64::from(offset);
            let from = (-column).clamp(0, n as i64) as usize;
            let to = (cols - column).clamp(from as i64, n as i64) as usize;
            for i in from..to {
                let x = *x.offset((column + i as i64) as isize);
                *y.add(i) = (*values.add(i)).fma(x, *y.add(i));
            }
        }
    }
}
