//! `y ← A x` for coefficients on a grid: no matrix is read, only x.
use lacuna_engine::{Format, Scalar};
use lacuna_formats::{Stencil, position};
use std::ops::Range;
use std::sync::Arc;

/// Points whose sums stay in registers; `FEW` when fewer than `MANY` are left.
const MANY: usize = 64;
const FEW: usize = 16;
/// The same where coefficients depend on the position.
const INNER: usize = 32;
const FEW_INNER: usize = 8;

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

/// A neighbour: its distance, its step along the line, the mask of that step unless it is 0, and its coefficient
/// in the middle of a line and at both ends.
struct Neighbour<T> {
    offset: isize,
    step: isize,
    mask: Option<usize>,
    coefficient: T,
    ends: [T; 2],
}

impl<T: Scalar> Lines<T> {
    pub(crate) fn new(stencil: Arc<Stencil<T>>) -> Self {
        let (size, mut reach) = (stencil.size(), stencil.reach());
        if stencil.has_positions() {
            reach = [[1; 3]; 2];
        }
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
        let nx = self.size[0];
        let of = |x: usize| self.stencil.coefficients_at(position([x, at(1), at(2)], self.size));
        let [first, middle, last] = [0, nx / 2, nx.saturating_sub(1)].map(of);
        let near = self.stencil.neighbours().iter().enumerate().filter(|(_, to)| on(to, 1) && on(to, 2));
        near.map(|(k, to)| Neighbour {
            offset: to[3] as isize,
            step: to[0] as isize,
            mask: steps.binary_search(&(to[0] as isize)).ok(),
            coefficient: middle[k],
            ends: [first[k], last[k]],
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
    let mut i = start;
    while i < end {
        let (last, near) = a.run(i);
        let last = last.min(end);
        // SAFETY: as the caller promises.
        unsafe {
            match a.stencil.has_positions() {
                true => line_by_line(a, near, x, y, i..last),
                false => over_lines(a, near, x, y, i..last),
            }
        }
        i = last;
    }
}

/// The points of several lines with the same neighbours, line by line: coefficients differ at the ends.
#[inline(always)]
unsafe fn line_by_line<T: Scalar>(
    a: &Lines<T>,
    near: &[Neighbour<T>],
    x: *const T,
    y: *mut T,
    points: Range<usize>,
) {
    let (nx, [low, high]) = (a.size[0], [0, 1].map(|end| a.reach[end][0]));
    let (mut i, mut at) = (points.start, points.start % nx);
    while i < points.end {
        let count = (nx - at).min(points.end - i);
        // Those whose neighbours along the line are all on it.
        let first = low.saturating_sub(at).min(count);
        let after = (nx - high).saturating_sub(at).clamp(first, count);
        // SAFETY: the points are on the line.
        unsafe {
            let (x, y) = (x.add(i), y.add(i));
            for k in (0..first).chain(after..count) {
                *y.add(k) = point(near, x.add(k), at + k, nx);
            }
            match after - first {
                INNER.. => inner::<T, INNER>(near, x, y, first..after),
                FEW_INNER.. => inner::<T, FEW_INNER>(near, x, y, first..after),
                _ => (first..after).for_each(|k| *y.add(k) = point(near, x.add(k), at + k, nx)),
            }
        }
        i += count;
        at = 0;
    }
}

/// At least `W` points of a line whose neighbours are all on the grid, `W` at a time; some of the last ones twice.
#[inline(always)]
unsafe fn inner<T: Scalar, const W: usize>(
    near: &[Neighbour<T>],
    x: *const T,
    y: *mut T,
    points: Range<usize>,
) {
    let mut k = points.start;
    while k < points.end {
        k = k.min(points.end - W);
        let mut sums = [T::zero(); W];
        for n in near {
            // SAFETY: neighbours on the grid.
            unsafe {
                let x = x.offset(n.offset).add(k);
                sums.iter_mut().enumerate().for_each(|(l, sum)| *sum = n.coefficient.fma(*x.add(l), *sum));
            }
        }
        // SAFETY: the points are on the line.
        unsafe { y.add(k).cast::<[T; W]>().write_unaligned(sums) };
        k += W;
    }
}

/// The points of several lines with the same neighbours and coefficients, whatever line they are on.
#[inline(always)]
unsafe fn over_lines<T: Scalar>(
    a: &Lines<T>,
    near: &[Neighbour<T>],
    x: *const T,
    y: *mut T,
    points: Range<usize>,
) {
    let (nx, all) = (a.size[0], a.stencil.shape().0 as isize);
    let ends = [near.first(), near.last()].map(|n| n.map_or(0, |n| n.offset));
    let (mut i, mut at) = (points.start, points.start % nx);
    while i < points.end {
        // All elements that are read are in `x`, whether used or not.
        let fits = |count: usize| i as isize + ends[0] >= 0 && (i + count) as isize + ends[1] <= all;
        // SAFETY: checked above.
        let done = unsafe {
            if points.end - i >= MANY && fits(MANY) {
                y.add(i).cast::<[T; MANY]>().write_unaligned(masked(a, near, x.add(i), at));
                MANY
            } else if fits(FEW) {
                let done = FEW.min(points.end - i);
                let sums: [T; FEW] = masked(a, near, x.add(i), at);
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

/// The sums of `W` points; `x` points at the first one, which is at position `at` of its line.
#[inline(always)]
unsafe fn masked<T: Scalar, const W: usize>(
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
            let c = match at {
                0 => n.ends[0],
                _ if at + 1 == nx => n.ends[1],
                _ => n.coefficient,
            };
            // SAFETY: a neighbour on the grid.
            sum = unsafe { c.fma(*x.offset(n.offset), sum) };
        }
    }
    sum
}
