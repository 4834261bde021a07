//! `Y ← A X` for diagonals: 8 bytes a place in `f64` for all columns together.
use crate::spmm::SpmmRows;
use crate::spmv::dia::{Table, at_border, is_inside, places_of};
use lacuna_engine::{Format, Scalar};
use lacuna_formats::{DIA_ROWS, Dia};

impl<T: Scalar> SpmmRows<T> for Dia<T> {
    const TOGETHER: usize = 2;

    #[inline(always)]
    unsafe fn rows<const K: usize>(&self, x: [*const T; K], y: [*mut T; K], start: usize, end: usize) {
        let (offsets, starts, cols) = (self.offsets(), self.starts(), self.shape().1 as i64);
        for first in (start..end).step_by(DIA_ROWS) {
            let n = (end - first).min(DIA_ROWS);
            let values = places_of(self, first);
            // SAFETY: rows that exist; columns are in range, checked here for all diagonals or in `at_border`
            // for each.
            unsafe {
                if is_inside(offsets, first, n, cols) {
                    let mut sums = [[T::zero(); DIA_ROWS]; K];
                    inside((offsets, starts), values, x.map(|x| x.wrapping_add(first)), &mut sums);
                    for (y, sums) in y.into_iter().zip(&sums) {
                        y.add(first).copy_from_nonoverlapping(sums.as_ptr(), DIA_ROWS);
                    }
                } else {
                    for (x, y) in x.into_iter().zip(y) {
                        at_border((offsets, starts), values, x, y.add(first), (first, n), cols);
                    }
                }
            }
        }
    }
}

/// The sums of a block that lies entirely within the matrix, in the first-level cache: the values are read in
/// storage order. Each `x` points at the element of the first row.
#[inline(always)]
unsafe fn inside<T: Scalar, const K: usize>(
    (offsets, starts): Table<'_>,
    values: *const T,
    x: [*const T; K],
    sums: &mut [[T; DIA_ROWS]; K],
) {
    for (&offset, &start) in offsets.iter().zip(starts) {
        // SAFETY: as the caller has checked.
        unsafe {
            let values = values.wrapping_offset(start as isize);
            for (x, sums) in x.into_iter().zip(&mut *sums) {
                let x = x.wrapping_offset(offset as isize);
                for (l, sum) in sums.iter_mut().enumerate() {
                    *sum = (*values.add(l)).fma(*x.add(l), *sum);
                }
            }
        }
    }
}
