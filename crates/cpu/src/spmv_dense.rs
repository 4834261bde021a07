//! `y ← A x` for a matrix with all its places: 8 bytes each in `f64`, and x from cache.
use crate::lanes::halved;
use crate::prefetch::prefetch;
use lacuna_core::{Format, Scalar};
use lacuna_formats::Dense;

/// Places between what is computed and what is asked for from memory.
const AHEAD: usize = 512;

/// `y[i] ← (A x)[i]` for the rows `start..end`.
///
/// # Safety
/// `x` must be valid for the columns of `a` and `y` for its rows; the rows must exist.
#[inline(always)]
pub(crate) unsafe fn rows<T: Scalar>(a: &Dense<T>, x: *const T, y: *mut T, start: usize, end: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        match a.lanes() {
            1 => lanes::<T, 1>(a, x, y, start, end),
            2 => lanes::<T, 2>(a, x, y, start, end),
            4 => lanes::<T, 4>(a, x, y, start, end),
            8 => lanes::<T, 8>(a, x, y, start, end),
            16 => lanes::<T, 16>(a, x, y, start, end),
            _ => lanes::<T, 32>(a, x, y, start, end),
        }
    }
}

#[inline(always)]
unsafe fn lanes<T: Scalar, const W: usize>(a: &Dense<T>, x: *const T, y: *mut T, start: usize, end: usize) {
    let cols = a.shape().1;
    for i in start..end {
        let values = a.values()[i * cols..].as_ptr();
        let (mut k, mut sums) = (0, [T::zero(); W]);
        // SAFETY: places of a row and columns.
        unsafe {
            while k + W <= cols {
                for line in (0..W * size_of::<T>()).step_by(64) {
                    prefetch(values.wrapping_add(k + AHEAD).wrapping_byte_add(line));
                }
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum = (*values.add(k + j)).fma(*x.add(k + j), *sum);
                }
                k += W;
            }
            for (sum, k) in sums.iter_mut().zip(k..cols) {
                *sum = (*values.add(k)).fma(*x.add(k), *sum);
            }
        }
        // SAFETY: a row that exists.
        unsafe { *y.add(i) = halved(sums) };
    }
}
