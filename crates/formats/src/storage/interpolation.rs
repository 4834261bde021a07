//! Linear interpolation from a coarser grid, and its transpose, without a stored matrix.
use crate::Csr;
use crate::algebra::fill_rows;
use crate::storage::checks::check_sizes;
use lacuna_engine::{Argument, Error, Format, Result, Scalar};
use std::marker::PhantomData;

/// Points of an axis that a point of another grid reads: at most three, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taps {
    /// The first.
    pub first: usize,
    /// How many.
    pub count: usize,
    /// Bit `k` says that the `k`-th has weight ½; the others have 1.
    pub halves: u32,
}

impl Taps {
    /// The weight of the `k`-th.
    #[inline(always)]
    pub fn weight(&self, k: usize) -> f64 {
        if self.halves >> k & 1 == 1 { 0.5 } else { 1.0 }
    }
}

/// A grid and a coarser one, and the direction of a transfer between them. Coarse points are the points
/// 1, 3, 5, … along each coarsened axis, x is fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grids {
    to: [usize; 3],
    from: [usize; 3],
    coarsened: [bool; 3],
    restricts: bool,
}

impl Grids {
    /// As [`Format::arguments`] of [`Interpolation`] gives them; `None` for other words.
    pub fn read(words: &[i32]) -> Option<Self> {
        let &[tx, ty, tz, restricts, fx, fy, fz, coarsened] = words else { return None };
        let size = |size: [i32; 3]| size.map(|side| side as usize);
        Some(Grids {
            to: size([tx, ty, tz]),
            from: size([fx, fy, fz]),
            coarsened: [0, 1, 2].map(|axis| coarsened >> axis & 1 == 1),
            restricts: restricts == 1,
        })
    }

    /// The points of the grid of the result.
    pub fn to(&self) -> [usize; 3] {
        self.to
    }

    /// The points of the grid of the operand.
    pub fn from(&self) -> [usize; 3] {
        self.from
    }

    /// Whether the result is on the coarser grid.
    pub fn restricts(&self) -> bool {
        self.restricts
    }

    /// Whether an axis is coarsened.
    pub fn is_coarsened(&self, axis: usize) -> bool {
        self.coarsened[axis]
    }

    /// The points of an axis that the point `at` reads.
    #[inline(always)]
    pub fn taps(&self, axis: usize, at: usize) -> Taps {
        match (self.coarsened[axis], self.restricts) {
            (false, _) => Taps { first: at, count: 1, halves: 0 },
            (true, true) => {
                Taps { first: 2 * at, count: 2 + usize::from(2 * at + 2 < self.from[axis]), halves: 0b101 }
            }
            (true, false) if at % 2 == 1 => Taps { first: at / 2, count: 1, halves: 0 },
            // The value beyond the ends is zero.
            (true, false) => {
                let first = (at / 2).saturating_sub(1);
                Taps { first, count: (at / 2 + 1).min(self.from[axis]) - first, halves: 0b11 }
            }
        }
    }

    /// The taps of a row along each axis.
    fn of_row(&self, row: usize) -> [Taps; 3] {
        let [nx, ny, _] = self.to;
        let at = [row % nx, row / nx % ny, row / nx / ny];
        [0, 1, 2].map(|axis| self.taps(axis, at[axis]))
    }

    /// The number of entries of a row.
    pub fn length(&self, row: usize) -> usize {
        self.of_row(row).iter().map(|taps| taps.count).product()
    }

    /// Calls `take` with column and weight of each entry of a row, in order.
    pub fn each(&self, row: usize, mut take: impl FnMut(usize, f64)) {
        let [x, y, z] = self.of_row(row);
        for k in 0..z.count {
            for j in 0..y.count {
                let line = (y.first + j + self.from[1] * (z.first + k)) * self.from[0];
                for i in 0..x.count {
                    take(line + x.first + i, x.weight(i) * y.weight(j) * z.weight(k));
                }
            }
        }
    }

    /// The number of entries of all rows along an axis.
    fn along(&self, axis: usize) -> usize {
        let [to, from] = [self.to[axis], self.from[axis]];
        let (fine, coarse) = if self.restricts { (from, to) } else { (to, from) };
        if self.coarsened[axis] { 3 * coarse - usize::from(fine.is_multiple_of(2)) } else { to }
    }
}

/// Linear interpolation along some axes of a grid, or its transpose.
///
/// The coarser grid has the points 1, 3, 5, … along each coarsened axis. A point between two coarse ones gets half
/// of each; a point at an end with one coarse neighbour gets half of that, as if the value beyond were zero. The
/// weights along several axes multiply. A row sum runs over the entries by increasing column, with one fused
/// multiply-add each.
///
/// ```
/// use lacuna_engine::Format;
/// use lacuna_formats::Interpolation;
///
/// let p = Interpolation::<f64>::prolongation([4, 1, 1], [true, false, false])?;
/// assert_eq!(p.shape(), (4, 2));
/// assert_eq!([0, 1, 2, 3].map(|i| p.row(i, &[2.0, 6.0])), [1.0, 2.0, 4.0, 6.0]);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Interpolation<T> {
    grids: Grids,
    nnz: usize,
    words: [i32; 8],
    numbers: PhantomData<T>,
}

impl<T: Scalar> Interpolation<T> {
    /// From the coarser grid to one of `size` points: a row for each point, a column for each coarse one.
    ///
    /// # Errors
    /// [`Error::Argument`] if an axis has no points or a coarsened one a single point, or for more than 2³¹ − 1
    /// points; [`Error::Structure`] for more weights than 32-bit indices count.
    pub fn prolongation(size: [usize; 3], coarsened: [bool; 3]) -> Result<Self> {
        Self::between("Interpolation::prolongation", size, coarsened, false)
    }

    /// From a grid of `size` points to the coarser one: the transpose of [`Interpolation::prolongation`].
    ///
    /// # Errors
    /// As [`Interpolation::prolongation`].
    pub fn restriction(size: [usize; 3], coarsened: [bool; 3]) -> Result<Self> {
        Self::between("Interpolation::restriction", size, coarsened, true)
    }

    fn between(operation: &str, fine: [usize; 3], coarsened: [bool; 3], restricts: bool) -> Result<Self> {
        if (0..3).any(|axis| fine[axis] < 1 + usize::from(coarsened[axis])) {
            let message = format!(
                "expected a point along each axis and two along those coarsened, got {fine:?} and {coarsened:?}"
            );
            return Err(Error::Argument { what: operation.into(), message });
        }
        let points = |size: [usize; 3]| size.iter().try_fold(1usize, |n, side| n.checked_mul(*side));
        let n = points(fine).unwrap_or(usize::MAX);
        check_sizes(operation, n, n, n)?;
        if n > i32::MAX as usize {
            let message = format!("expected at most {} points, got {n}", i32::MAX);
            return Err(Error::Argument { what: operation.into(), message });
        }
        let coarse = [0, 1, 2].map(|axis| fine[axis] >> u32::from(coarsened[axis]));
        let (to, from) = if restricts { (coarse, fine) } else { (fine, coarse) };
        let grids = Grids { to, from, coarsened, restricts };
        let nnz = (0..3).try_fold(1usize, |nnz, axis| nnz.checked_mul(grids.along(axis)));
        let nnz = nnz.unwrap_or(usize::MAX);
        check_sizes(operation, n, n, nnz)?;
        let [tx, ty, tz] = to.map(|side| side as i32);
        let [fx, fy, fz] = from.map(|side| side as i32);
        let axes = (0..3).map(|axis| i32::from(coarsened[axis]) << axis).sum();
        let words = [tx, ty, tz, i32::from(restricts), fx, fy, fz, axes];
        Ok(Interpolation { grids, nnz, words, numbers: PhantomData })
    }

    /// As compressed rows.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn to_csr(&self) -> Result<Csr<T>> {
        let (rows, cols) = self.shape();
        let length = |i: usize| self.grids.length(i);
        fill_rows("Interpolation::to_csr", rows, cols, length, |i, columns, values| {
            let mut places = columns.iter_mut().zip(values);
            self.grids.each(i, |j, weight| {
                if let Some((column, value)) = places.next() {
                    (*column, *value) = (j as u32, T::from_real(weight));
                }
            });
        })
    }

    /// The grids, and the direction.
    pub fn grids(&self) -> Grids {
        self.grids
    }
}

impl<T: Scalar> Format<T> for Interpolation<T> {
    fn shape(&self) -> (usize, usize) {
        let points = |size: [usize; 3]| size.into_iter().product();
        (points(self.grids.to), points(self.grids.from))
    }

    fn nnz(&self) -> usize {
        self.nnz
    }

    fn kernel(&self) -> &'static str {
        "interpolation"
    }

    fn arguments(&self) -> Vec<Argument<'_, T>> {
        vec![Argument::Offsets(&self.words)]
    }

    fn row(&self, i: usize, x: &[T]) -> T {
        let mut sum = T::zero();
        self.grids.each(i, |column, weight| sum = T::from_real(weight).fma(x[column], sum));
        sum
    }
}
