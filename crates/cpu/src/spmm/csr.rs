//! `Y ← A X` for compressed sparse rows: 12 bytes an entry in `f64` for all columns together.
use crate::simd::lanes::halved;
use crate::simd::prefetch::prefetch;
use crate::spmm::SpmmRows;
use lacuna_engine::{Format, Scalar};
use lacuna_formats::Csr;

/// Prefetch distance, in entries.
const AHEAD: usize = 512;

/// Whether the sums of a row, for all lanes and columns, stay in registers, and no row is summed in pieces.
pub(crate) fn pays<T: Scalar>(a: &Csr<T>) -> bool {
    a.lanes() <= 4 && !a.has_long_rows()
}

impl<T: Scalar> SpmmRows<T> for Csr<T> {
    const TOGETHER: usize = 4;

    #[inline(always)]
    unsafe fn rows<const K: usize>(&self, x: [*const T; K], y: [*mut T; K], start: usize, end: usize) {
        // SAFETY: as the caller promises.
        unsafe {
            match self.lanes() {
                1 => lanes::<T, 1, K>(self, x, y, start, end),
                2 => lanes::<T, 2, K>(self, x, y, start, end),
                _ => lanes::<T, 4, K>(self, x, y, start, end),
            }
        }
    }
}

#[inline(always)]
unsafe fn lanes<T: Scalar, const W: usize, const K: usize>(
    a: &Csr<T>,
    x: [*const T; K],
    y: [*mut T; K],
    start: usize,
    end: usize,
) {
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
            let term = |k: usize, w: usize, sums: &mut [[T; W]; K]| {
                let (value, column) = (*values.add(k), *col_idx.add(k) as usize);
                for (sums, x) in sums.iter_mut().zip(x) {
                    sums[w] = value.fma(*x.add(column), sums[w]);
                }
            };
            while k + W <= last {
                (0..W).for_each(|w| term(k + w, w, &mut sums));
                k += W;
            }
            (k..last).enumerate().for_each(|(w, k)| term(k, w, &mut sums));
            for (y, sums) in y.into_iter().zip(sums) {
                *y.add(i) = halved(sums);
            }
            k = last;
        }
    }
}
