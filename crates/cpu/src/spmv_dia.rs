//! `y ← A x` for diagonals: 8 bytes a place in `f64`, and x from cache.
use lacuna_core::sum::SEGMENT;
use lacuna_core::{Format, Scalar};
use lacuna_formats::Dia;

/// Diagonals that share a sweep over a segment of `y`. Whole segments, without asking for memory ahead: runs of 64 rows, fewer
/// diagonals together and prefetching were each measured slower, in cache and out of it.
const TOGETHER: usize = 8;

/// `y[i] ← (A x)[i]` for the rows `start..end`.
///
/// # Safety
/// `x` must be valid for the columns of `a` and `y` for its rows, none of which `x` holds; the rows must exist and `start`
/// begin a segment.
#[inline(always)]
pub(crate) unsafe fn rows<T: Scalar>(a: &Dia<T>, x: *const T, y: *mut T, start: usize, end: usize) {
    let (offsets, cols) = (a.offsets(), a.shape().1 as i64);
    let (lowest, highest) = match offsets {
        [] => (0, 0),
        [first, ..] => (i64::from(*first), i64::from(offsets[offsets.len() - 1])),
    };
    let mut first = start;
    while first < end {
        let n = (end - first).min(SEGMENT);
        let values = a.values()[first * offsets.len()..].as_ptr();
        // SAFETY: a segment of rows that exist; columns are in range, checked here for all diagonals or there for each.
        unsafe {
            if first as i64 + lowest >= 0 && (first + n) as i64 + highest <= cols {
                inside(offsets, values, x.wrapping_add(first), y.add(first), n);
            } else {
                at_border(offsets, values, x, y.add(first), (first, n), cols);
            }
        }
        first += n;
    }
}

/// A segment all of whose places lie within the matrix. `x` points at the element of the first row.
#[inline(always)]
unsafe fn inside<T: Scalar>(offsets: &[i32], values: *const T, x: *const T, y: *mut T, n: usize) {
    // SAFETY: as the caller has checked.
    unsafe {
        if offsets.is_empty() {
            std::slice::from_raw_parts_mut(y, n).fill(T::zero());
        }
        for (g, group) in offsets.chunks(TOGETHER).enumerate() {
            let values = values.add(g * TOGETHER * SEGMENT);
            macro_rules! of_length {
                ($($count:literal)*) => {
                    match group.len() {
                        $($count if g == 0 => together::<T, $count, true>(group, values, x, y, n),
                          $count => together::<T, $count, false>(group, values, x, y, n),)*
                        _ => {}
                    }
                };
            }
            of_length!(1 2 3 4 5 6 7 8);
        }
    }
}

/// `K` diagonals: the first of the matrix, or added to what is there.
#[inline(always)]
unsafe fn together<T: Scalar, const K: usize, const FIRST: bool>(
    offsets: &[i32],
    values: *const T,
    x: *const T,
    y: *mut T,
    n: usize,
) {
    // SAFETY: as the caller has checked; `y` is not part of `x`.
    unsafe {
        let y = std::slice::from_raw_parts_mut(y, n);
        let a: [&[T]; K] = std::array::from_fn(|k| std::slice::from_raw_parts(values.add(k * SEGMENT), n));
        let x: [&[T]; K] =
            std::array::from_fn(|k| std::slice::from_raw_parts(x.wrapping_offset(offsets[k] as isize), n));
        for (i, y) in y.iter_mut().enumerate() {
            let mut sum = if FIRST { T::zero() } else { *y };
            for k in 0..K {
                sum = a[k].get_unchecked(i).fma(*x[k].get_unchecked(i), sum);
            }
            *y = sum;
        }
    }
}

/// A segment of `n` rows from `first` some of whose places lie outside the matrix.
#[inline(always)]
unsafe fn at_border<T: Scalar>(
    offsets: &[i32],
    values: *const T,
    x: *const T,
    y: *mut T,
    (first, n): (usize, usize),
    cols: i64,
) {
    // SAFETY: rows and columns are clipped to those that exist.
    unsafe {
        std::slice::from_raw_parts_mut(y, n).fill(T::zero());
        for (k, &offset) in offsets.iter().enumerate() {
            let column = first as i64 + i64::from(offset);
            let from = (-column).clamp(0, n as i64) as usize;
            let to = (cols - column).clamp(from as i64, n as i64) as usize;
            for i in from..to {
                let x = *x.offset((column + i as i64) as isize);
                *y.add(i) = (*values.add(k * SEGMENT + i)).fma(x, *y.add(i));
            }
        }
    }
}
