//! `y ← A x` for linear interpolation between a grid and a coarser one: no matrix is read, only x.
use lacuna_engine::Scalar;
use lacuna_formats::{Grids, Interpolation, Taps};

/// Coarse points along a line whose sums stay in registers.
const WIDTH: usize = 16;
/// Maximum lines of the operand that a line of the result reads.
const LINES: usize = 9;

/// The lines of the operand that a line of the result reads, with the weight of each.
struct Lines<T> {
    count: usize,
    start: [usize; LINES],
    /// The weight, and half of it.
    weights: [[T; 2]; LINES],
}

impl<T: Scalar> Lines<T> {
    #[inline(always)]
    fn of(grids: &Grids, y: &Taps, z: &Taps) -> Self {
        let [nx, ny, _] = grids.from();
        let mut lines = Lines { count: 0, start: [0; LINES], weights: [[T::zero(); 2]; LINES] };
        for k in 0..z.count {
            for j in 0..y.count {
                let at = lines.count;
                lines.start[at] = nx * (y.first + j + ny * (z.first + k));
                let whole = y.weight(j) * z.weight(k);
                lines.weights[at] = [whole, 0.5 * whole].map(T::from_real);
                lines.count += 1;
            }
        }
        lines
    }

    /// The sum of the point `at` of a line.
    #[inline(always)]
    unsafe fn point(&self, x: *const T, taps: Taps) -> T {
        let mut sum = T::zero();
        for l in 0..self.count {
            for k in 0..taps.count {
                let c = self.weights[l][(taps.halves >> k & 1) as usize];
                // SAFETY: the taps are on the line.
                sum = unsafe { c.fma(*x.add(self.start[l] + taps.first + k), sum) };
            }
        }
        sum
    }

    /// The sums of `WIDTH` points that read a point each, `first` and those after it.
    #[inline(always)]
    unsafe fn copied(&self, x: *const T, first: usize) -> [T; WIDTH] {
        let mut sums = [T::zero(); WIDTH];
        for l in 0..self.count {
            // SAFETY: the points are on the line.
            let x = unsafe { x.add(self.start[l] + first) };
            for (k, sum) in sums.iter_mut().enumerate() {
                // SAFETY: as above.
                *sum = unsafe { self.weights[l][0].fma(*x.add(k), *sum) };
            }
        }
        sums
    }

    /// The sums of `WIDTH` pairs of points of the finer line: the point on the coarse point `first + k`, and the
    /// one after it.
    #[inline(always)]
    unsafe fn refined(&self, x: *const T, first: usize) -> [[T; 2]; WIDTH] {
        let (mut on, mut between) = ([T::zero(); WIDTH], [T::zero(); WIDTH]);
        for l in 0..self.count {
            let [whole, half] = self.weights[l];
            // SAFETY: the points are on the line.
            let x = unsafe { x.add(self.start[l] + first) };
            for k in 0..WIDTH {
                // SAFETY: as above.
                let [left, right] = unsafe { [*x.add(k), *x.add(k + 1)] };
                on[k] = whole.fma(left, on[k]);
                between[k] = half.fma(right, half.fma(left, between[k]));
            }
        }
        std::array::from_fn(|k| [on[k], between[k]])
    }

    /// The sums of `WIDTH` points of the coarser line, `first` and those after it, each of three finer points.
    #[inline(always)]
    unsafe fn coarsened(&self, x: *const T, first: usize) -> [T; WIDTH] {
        let mut sums = [T::zero(); WIDTH];
        for l in 0..self.count {
            let [whole, half] = self.weights[l];
            // SAFETY: the points are on the line.
            let x = unsafe { x.add(self.start[l] + 2 * first) };
            for (k, sum) in sums.iter_mut().enumerate() {
                // SAFETY: as above.
                let [a, b, c] = unsafe { [*x.add(2 * k), *x.add(2 * k + 1), *x.add(2 * k + 2)] };
                *sum = half.fma(c, whole.fma(b, half.fma(a, *sum)));
            }
        }
        sums
    }
}

/// `y[i] ← (A x)[i]` for the rows `start..end`.
///
/// # Safety
/// `x` must be valid for the columns of `a` and `y` for its rows, without overlap; the rows must exist.
#[inline(always)]
pub(crate) unsafe fn rows<T: Scalar>(a: &Interpolation<T>, x: *const T, y: *mut T, start: usize, end: usize) {
    let grids = a.grids();
    let [nx, ny, _] = grids.to();
    let mut i = start;
    while i < end {
        let (line, first) = (i / nx, i % nx);
        let lines = Lines::<T>::of(&grids, &grids.taps(1, line % ny), &grids.taps(2, line / ny));
        let last = (first + end - i).min(nx);
        let mut at = first;
        while at < last {
            // SAFETY: whole groups of points are on the line, and what they read is on the operand's.
            let done = unsafe {
                let y = y.add(i + at - first);
                if !grids.is_coarsened(0) && last - at >= WIDTH {
                    y.cast::<[T; WIDTH]>().write_unaligned(lines.copied(x, at));
                    WIDTH
                } else if !grids.is_coarsened(0) {
                    *y = lines.point(x, grids.taps(0, at));
                    1
                } else if grids.restricts() && last - at >= WIDTH && 2 * (at + WIDTH) < grids.from()[0] {
                    y.cast::<[T; WIDTH]>().write_unaligned(lines.coarsened(x, at));
                    WIDTH
                } else if !grids.restricts()
                    && at % 2 == 1
                    && last - at >= 2 * WIDTH
                    && at / 2 + WIDTH < grids.from()[0]
                {
                    y.cast::<[[T; 2]; WIDTH]>().write_unaligned(lines.refined(x, at / 2));
                    2 * WIDTH
                } else {
                    *y = lines.point(x, grids.taps(0, at));
                    1
                }
            };
            at += done;
        }
        i += last - first;
    }
}
