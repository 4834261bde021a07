//! `Y ← A X` for compressed sparse rows: 12 bytes an entry in `f64` for all columns together.
use crate::simd::lanes::halved;
use crate::simd::prefetch::prefetch;
use crate::spmm::{Columns, pointers};
use lacuna_engine::{Format, Scalar};
use lacuna_formats::Csr;

/// Prefetch distance, in entries.
const AHEAD: usize = 512;

/// Whether the sums of a row, for all lanes and columns, stay in registers, and no row is summed in pieces.
pub(crate) fn pays<T: Scalar>(a: &Csr<T>) -> bool {
    a.lanes() <= 4 && !a.has_long_rows()
}

impl<T: Scalar> Columns<T> for Csr<T> {
    const TOGETHER: usize = 4;

    #[inline(always)]
    fn rows<const K: usize>(&self, x: [&[T]; K], y: [&mut [T]; K], start: usize) {
        match self.lanes() {
            1 => lanes::<T, 1, K>(self, x, y, start),
            2 => lanes::<T, 2, K>(self, x, y, start),
            _ => lanes::<T, 4, K>(self, x, y, start),
        }
    }
}

#[inline(always)]
fn lanes<T: Scalar, const W: usize, const K: usize>(
    a: &Csr<T>,
    x: [&[T]; K],
    y: [&mut [T]; K],
    start: usize,
) {
    let (x, y, end) = pointers(a, x, y, start);
    assert!(end < a.row_ptr().len(), "rows of the matrix");
    let (row_ptr, col_idx, values) = (a.row_ptr().as_ptr(), a.col_idx().as_ptr(), a.values().as_ptr());
    // SAFETY: a validated matrix: row pointers are in range and every column is below the number of columns.
    unsafe {
        let mut k = *row_ptr.add(start) as usize;
        for i in start..end {
            let last = *row_ptr.add(i + 1) as usize;
            for k in (k..last).step_by(64 / size_of::<T>()) {
                prefetch(values.wrapping_add(k + AHEAD));
                prefetch(col_idx.wrapping_add(k + AHEAD));
            }
            let mut sums = [[T::zero(); W]; K];
            while k + W <= last {
                for w in 0..W {
                    add(*values.add(k + w), *col_idx.add(k + w), x, w, &mut sums);
                }
                k += W;
            }
            for (w, k) in (k..last).enumerate() {
                add(*values.add(k), *col_idx.add(k), x, w, &mut sums);
            }
            for (y, sums) in y.into_iter().zip(sums) {
                *y.wrapping_add(i) = halved(sums);
            }
            k = last;
        }
    }
}

/// Adds the products of an entry to lane `w`.
///
/// # Safety
/// Each `x` must have the column.
#[inline(always)]
unsafe fn add<T: Scalar, const W: usize, const K: usize>(
    value: T,
    column: u32,
    x: [*const T; K],
    w: usize,
    sums: &mut [[T; W]; K],
) {
    for (sums, x) in sums.iter_mut().zip(x) {
        // SAFETY: as the caller promises.
        sums[w] = value.fma(unsafe { *x.add(column as usize) }, sums[w]);
    }
}
