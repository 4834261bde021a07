//! `y ← A x` for constant coefficients on a grid: no matrix is read, only x.
use lacuna_engine::{Format, Scalar};
use lacuna_formats::Stencil;
use std::sync::Arc;

/// Points whose sums stay in registers; `FEW` when fewer than `MANY` are left.
const MANY: usize = 64;
const FEW: usize = 16;

/// A stencil in the form that the kernel takes.
pub(crate) struct Lines<T> {
    pub(crate) stencil: Arc<Stencil<T>>,
    size: [usize; 3],
    reach: [[usize; 3]; 2],
    /// The neighbours that lie on the grid, for each class of lines: see [`Lines::class`].
    near: Vec<Vec<Neighbour<T>>>,
    /// For each step along a line, whether it stays on the line, point by point starting at `start`; the next
    /// line follows the last point.
    masks: Vec<Vec<u8>>,
    start: usize,
}

/// A neighbour: its distance, its step along the line, the mask of that step unless it is 0, and its
/// coefficient.
#[derive(Clone, Copy)]
struct Neighbour<T> {
    offset: isize,
    step: isize,
    mask: Option<usize>,
    coefficient: T,
}

impl<T: Scalar> Lines<T> {
    pub(crate) fn new(stencil: Arc<Stencil<T>>) -> Self {
        let (size, reach) = (stencil.size(), stencil.reach());
        let nx = size[0];
        // Masks vary only near the ends of a line; the middle of long lines is omitted.
        let ends = reach[0][0].max(reach[1][0]) + MANY;
        let (start, count) = if nx < 2 * ends { (0, nx + MANY) } else { (nx - ends, 2 * ends) };
        let mut steps: Vec<isize> = stencil.neighbours().iter().map(|to| to[0] as isize).collect();
        steps.sort_unstable();
        steps.dedup();
        steps.retain(|&step| step != 0);
        let stays = |step: isize, x: usize| u8::from((x % nx).wrapping_add_signed(step) < nx);
        let masks =
            steps.iter().map(|&step| (start..start + count).map(|x| stays(step, x)).collect()).collect();
        let mut lines = Lines { size, reach, near: Vec::new(), masks, start, stencil };
        let classes = [1, 2].map(|axis| reach[0][axis] + 1 + reach[1][axis]);
        lines.near = (0..classes[0] * classes[1])
            .map(|class| lines.near_of([class % classes[0], class / classes[0]], &steps))
            .collect();
        lines
    }

    /// The neighbours that lie on the grid, for lines of these classes along y and z.
    fn near_of(&self, classes: [usize; 2], steps: &[isize]) -> Vec<Neighbour<T>> {
        // A line of the class, if there is one.
        let at = |axis: usize| {
            let (class, low) = (classes[axis - 1], self.reach[0][axis]);
            if class <= low { class } else { (self.size[axis] + low).wrapping_sub(class) }
        };
        let on =
            |to: &[i32; 4], axis: usize| at(axis).wrapping_add_signed(to[axis] as isize) < self.size[axis];
        let all = self.stencil.neighbours().iter().zip(self.stencil.coefficients());
        let near = all.filter(|(to, _)| on(to, 1) && on(to, 2));
        near.map(|(to, &coefficient)| {
            let (step, offset) = (to[0] as isize, to[3] as isize);
            Neighbour { offset, step, mask: steps.binary_search(&step).ok(), coefficient }
        })
        .collect()
    }

    /// The class of a point along an axis, which determines its neighbours: how close it is to either end.
    #[inline(always)]
    fn class(&self, at: usize, axis: usize) -> usize {
        let (low, high, side) = (self.reach[0][axis], self.reach[1][axis], self.size[axis]);
        if at < low {
            at
        } else if at + high >= side {
            low + side - at
        } else {
            low
        }
    }

    /// The neighbours of point `i`, apart from the effect of the ends of its line, and the end of the run of
    /// points that share them.
    #[inline(always)]
    fn run(&self, i: usize) -> (usize, &[Neighbour<T>]) {
        let ([nx, ny, _], [low, high]) = (self.size, self.reach);
        let line = i / nx;
        let (y, z) = (line % ny, line / ny);
        let of_y = self.class(y, 1);
        let lines = if of_y == low[1] { ny - y - high[1] } else { 1 };
        ((line + lines) * nx, &self.near[self.class(z, 2) * (low[1] + 1 + high[1]) + of_y])
    }
}

/// `y[i] ← (A x)[i]` for the rows `start..end`.
///
/// # Safety
/// `x` must be valid for the columns of `a` and `y` for its rows, without overlap; the rows must exist.
#[inline(always)]
pub(crate) unsafe fn rows<T: Scalar>(a: &Lines<T>, x: *const T, y: *mut T, start: usize, end: usize) {
    let (nx, all) = (a.size[0], a.stencil.shape().0 as isize);
    let mut i = start;
    while i < end {
        let (last, near) = a.run(i);
        let last = last.min(end);
        let ends = [near.first(), near.last()].map(|n| n.map_or(0, |n| n.offset));
        let mut at = i % nx;
        while i < last {
            // All elements that are read are in `x`, whether used or not.
            let fits = |count: usize| i as isize + ends[0] >= 0 && (i + count) as isize + ends[1] <= all;
            // SAFETY: checked above.
            let done = unsafe {
                if last - i >= MANY && fits(MANY) {
                    y.add(i).cast::<[T; MANY]>().write_unaligned(points(a, near, x.add(i), at));
                    MANY
                } else if fits(FEW) {
                    let done = FEW.min(last - i);
                    let sums: [T; FEW] = points(a, near, x.add(i), at);
                    y.add(i).copy_from_nonoverlapping(sums.as_ptr(), done);
                    done
                } else {
                    *y.add(i) = point(near, x.add(i), at, nx);
                    1
                }
            };
            i += done;
            at += done;
            while at >= nx {
                at -= nx;
            }
        }
    }
}

/// The sums of `W` points; `x` points at the first one, which is at position `at` of its line.
#[inline(always)]
unsafe fn points<T: Scalar, const W: usize>(
    a: &Lines<T>,
    near: &[Neighbour<T>],
    x: *const T,
    at: usize,
) -> [T; W] {
    let mut sums = [T::zero(); W];
    let within = at >= a.reach[0][0] && at + W + a.reach[1][0] <= a.size[0];
    for n in near {
        let (c, x) = (n.coefficient, x.wrapping_offset(n.offset));
        // SAFETY: as the caller has checked; masks extend `MANY` points past every position of a line near
        // its ends.
        unsafe {
            match n.mask.filter(|_| !within) {
                None => sums.iter_mut().enumerate().for_each(|(l, sum)| *sum = c.fma(*x.add(l), *sum)),
                Some(mask) => {
                    let from = if at >= a.start { at - a.start } else { at + a.size[0] - a.start };
                    let mask = a.masks[mask].as_ptr().add(from);
                    for (l, sum) in sums.iter_mut().enumerate() {
                        let next = c.fma(*x.add(l), *sum);
                        *sum = if *mask.add(l) != 0 { next } else { *sum };
                    }
                }
            }
        }
    }
    sums
}

/// The sum of one point.
#[inline(always)]
unsafe fn point<T: Scalar>(near: &[Neighbour<T>], x: *const T, at: usize, nx: usize) -> T {
    let mut sum = T::zero();
    for n in near {
        if at.wrapping_add_signed(n.step) < nx {
            // SAFETY: a neighbour on the grid.
            sum = unsafe { n.coefficient.fma(*x.offset(n.offset), sum) };
        }
    }
    sum
}
