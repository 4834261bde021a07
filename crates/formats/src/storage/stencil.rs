//! Coefficients on a grid that are the same at all points, or differ at its ends, without a stored matrix.
use crate::Csr;
use crate::algebra::fill_rows;
use crate::parallel;
use crate::storage::checks::{check_sizes, in_words};
use lacuna_engine::{Argument, Error, Format, Result, Scalar};
use std::ops::Range;

/// Maximum number of neighbours of a point.
pub const MOST_NEIGHBOURS: usize = 64;
/// Positions of points with coefficients of their own, where these depend on the position: first, inner and last
/// along each axis.
pub const POSITIONS: usize = 27;
/// Minimum number of rows per thread.
const GRAIN: usize = 8192;
/// Groups of four words before the neighbours.
const HEAD: usize = 2;

/// The position of a point of a grid, below [`POSITIONS`], x fastest: along each axis 0 for the first point, 2 for
/// the last of several, 1 for those between.
#[inline(always)]
pub fn position(at: [usize; 3], size: [usize; 3]) -> usize {
    let along = |k: usize| if at[k] == 0 { 0 } else { 1 + usize::from(at[k] + 1 == size[k]) };
    along(0) + 3 * (along(1) + 3 * along(2))
}

/// A matrix with the same neighbours at every point of a grid, and the same coefficients.
///
/// Points are numbered with x fastest. Row `i` has an entry for each neighbour that is on the grid, and the
/// coefficient depends only on the neighbour, or on it and on the [`position`] of the point
/// ([`Stencil::by_position`]): a product reads `x` and writes `y`, and nothing else. A row sum
/// runs over the neighbours by increasing distance `column − row`, with one fused multiply-add each, skipping
/// those outside the grid: the order of [`crate::Dia`], and of [`Csr`] with one lane.
///
/// ```
/// use lacuna_formats::Stencil;
/// use lacuna_io::Spec;
///
/// let a = Spec::parse("gen:poisson2d:300x200")?.build::<f64>()?;
/// let stencil = Stencil::from_csr(&a)?;
/// assert_eq!((stencil.size(), stencil.coefficients()), ([300, 200, 1], &[-1.0, -1.0, 4.0, -1.0, -1.0][..]));
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Stencil<T> {
    nnz: usize,
    /// The size of the grid and the number of neighbours; the number of coefficients of a position if each has its
    /// own, otherwise 0; then, for each neighbour, the steps in x, y and z, and its distance.
    words: Vec<[i32; 4]>,
    coefficients: Vec<T>,
}

/// Why a matrix is not a stencil.
struct Unsuited(String);

impl<T: Scalar> Stencil<T> {
    /// The same matrix as coefficients on a one-, two- or three-dimensional grid, which is detected.
    ///
    /// Coefficients must be bitwise equal, some row must have all neighbours, and the neighbours must lie
    /// within half of the grid's size of their point.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the reason if the matrix has no such form.
    pub fn from_csr(a: &Csr<T>) -> Result<Self> {
        const OPERATION: &str = "Stencil::from_csr";
        check_sizes(OPERATION, a.rows(), a.cols(), a.nnz())?;
        Self::find(a).map_err(|Unsuited(why)| {
            let message = format!("{why}; keep csr ({})", in_words(a.bytes()));
            Error::Unsupported { operation: OPERATION.into(), message }
        })
    }

    fn find(a: &Csr<T>) -> Result<Self, Unsuited> {
        let n = a.rows();
        if n != a.cols() || n > i32::MAX as usize {
            return Err(Unsuited(format!("{n} rows and {} columns are no points of a grid", a.cols())));
        }
        let length = |i: usize| a.row_ptr()[i + 1] - a.row_ptr()[i];
        let by_length = |&i: &usize| (length(i), std::cmp::Reverse(i));
        let longest = parallel::map(parallel::ranges(n, GRAIN), |part| part.max_by_key(by_length));
        let longest = longest.into_iter().flatten().max_by_key(by_length).unwrap_or(0);
        let (columns, coefficients) = a.row_slices(longest);
        if columns.len() > MOST_NEIGHBOURS {
            return Err(Unsuited(format!(
                "row {longest} (counted from 0) has {} entries, {MOST_NEIGHBOURS} at most are kept",
                columns.len()
            )));
        }
        let offsets: Vec<i64> = columns.iter().map(|&j| i64::from(j) - longest as i64).collect();
        let Some(size) = grid(a, &offsets) else {
            return Err(Unsuited("its diagonals are those of no grid".into()));
        };
        let words = words(size, 0, offsets.iter().map(|&offset| neighbour(offset, size)));
        let stencil = Stencil { nnz: a.nnz(), words, coefficients: coefficients.to_vec() };
        let different = parallel::map(a.row_shares(), |share| stencil.differs(a, share));
        match different.into_iter().flatten().min() {
            None => Ok(stencil),
            Some(row) => {
                let [x, y, z] = size;
                let which =
                    format!("row {row} (counted from 0) differs from row {longest} on a grid of {x}x{y}x{z}");
                Err(Unsuited(which + " by more than the grid's end"))
            }
        }
    }

    /// With coefficients that depend on the [`position`] of a point: `coefficients[p][k]` is that of the neighbour
    /// `steps[k]` of a point at position `p`, for [`POSITIONS`] positions, whatever it is where the neighbour is off
    /// the grid.
    ///
    /// # Errors
    /// [`Error::Argument`] for no points, a step along an axis other than -1, 0 and 1, two equal steps, or a number
    /// of coefficients other than that of the steps; [`Error::Structure`] for more points than 32-bit indices count.
    pub fn by_position(size: [usize; 3], steps: &[[i32; 3]], coefficients: &[Vec<T>]) -> Result<Self> {
        const OPERATION: &str = "Stencil::by_position";
        let refused = |message: String| Err(Error::Argument { what: OPERATION.into(), message });
        let n = size.iter().try_fold(1usize, |n, side| n.checked_mul(*side)).unwrap_or(usize::MAX);
        check_sizes(OPERATION, n, n, n)?;
        if n == 0 || n > i32::MAX as usize {
            return refused(format!("expected 1 to {} points, got {n}", i32::MAX));
        }
        if let Some(steps) = steps.iter().find(|steps| steps.iter().any(|step| step.abs() > 1)) {
            return refused(format!("expected steps of -1, 0 and 1, got {steps:?}"));
        }
        if coefficients.len() != POSITIONS || coefficients.iter().any(|of| of.len() != steps.len()) {
            let got: Vec<usize> = coefficients.iter().map(Vec::len).collect();
            return refused(format!(
                "expected {} coefficients for each of {POSITIONS} positions, got {got:?}",
                steps.len()
            ));
        }
        let [nx, ny] = [size[0] as i64, size[1] as i64];
        let distance = |[x, y, z]: [i32; 3]| i64::from(x) + nx * (i64::from(y) + ny * i64::from(z));
        // A step along an axis of one point leads off the grid.
        let mut order: Vec<usize> =
            (0..steps.len()).filter(|&k| (0..3).all(|axis| steps[k][axis] == 0 || size[axis] > 1)).collect();
        by_distance(&mut order, &|k| distance(steps[k]), steps);
        if let Some(pair) = order.windows(2).find(|pair| steps[pair[0]] == steps[pair[1]]) {
            return refused(format!("expected different steps, got {:?} twice", steps[pair[0]]));
        }
        let of = |k: &usize| {
            let [x, y, z] = steps[*k];
            [x, y, z, distance(steps[*k]) as i32]
        };
        let words = words(size, order.len(), order.iter().map(of));
        let coefficients = coefficients.iter().flat_map(|of| order.iter().map(|&k| of[k])).collect();
        let mut stencil = Stencil { nnz: 0, words, coefficients };
        let count = |to: &[i32; 4]| -> usize {
            (0..3).map(|axis| size[axis].saturating_sub(to[axis].unsigned_abs() as usize)).product()
        };
        stencil.nnz = stencil.neighbours().iter().map(count).sum();
        check_sizes(OPERATION, n, n, stencil.nnz)?;
        Ok(stencil)
    }

    /// As compressed rows.
    ///
    /// # Errors
    /// [`Error::Entry`] for a coefficient that is not finite; [`Error::OutOfMemory`].
    pub fn to_csr(&self) -> Result<Csr<T>> {
        let n = self.shape().0;
        let length = |i: usize| self.around(i).count();
        fill_rows("Stencil::to_csr", n, n, length, |i, columns, values| {
            for ((j, c), (column, value)) in self.around(i).zip(columns.iter_mut().zip(values)) {
                (*column, *value) = (j as u32, c);
            }
        })
    }

    /// Points in x, y and z.
    pub fn size(&self) -> [usize; 3] {
        let [x, y, z, _] = self.words[0];
        [x, y, z].map(|side| side as usize)
    }

    /// The steps to each neighbour in x, y and z, and its distance `column − row`, in increasing order of
    /// distance.
    pub fn neighbours(&self) -> &[[i32; 4]] {
        &self.words[HEAD..]
    }

    /// The coefficient of each neighbour; one after the other for all positions if they depend on it.
    pub fn coefficients(&self) -> &[T] {
        &self.coefficients
    }

    /// Whether coefficients depend on the position of a point.
    pub fn has_positions(&self) -> bool {
        self.words[1][0] != 0
    }

    /// The coefficient of each neighbour of a point at a position.
    pub fn coefficients_at(&self, position: usize) -> &[T] {
        let of = self.words[1][0] as usize;
        &self.coefficients[of * position..][..self.neighbours().len()]
    }

    /// An upper bound on the sums of moduli of a row and of a column, and so on the 1-, 2- and maximum norm: the sum
    /// of the largest coefficient of each neighbour.
    pub fn norm_bound(&self) -> f64 {
        let count = self.neighbours().len();
        let of = |k: usize| self.coefficients.iter().skip(k).step_by(count).map(|c| c.modulus());
        (0..count).map(|k| of(k).fold(0.0, f64::max)).sum()
    }

    /// The neighbours of a point that lie on the grid, with their coefficients.
    fn around(&self, i: usize) -> impl Iterator<Item = (usize, T)> + '_ {
        let [nx, ny, nz] = self.size();
        let point = [i % nx, i / nx % ny, i / nx / ny];
        let inside = move |&(steps, _): &(&[i32; 4], &T)| {
            let axes = point.into_iter().zip([nx, ny, nz]).zip(steps);
            axes.into_iter()
                .all(|((at, side), step)| (0..side as i64).contains(&(at as i64 + i64::from(*step))))
        };
        let coefficients = self.coefficients_at(position(point, self.size()));
        let all = self.neighbours().iter().zip(coefficients).filter(inside);
        all.map(move |([.., offset], c)| ((i as i64 + i64::from(*offset)) as usize, *c))
    }

    /// The first of the rows that differs from the stencil.
    fn differs(&self, a: &Csr<T>, rows: Range<usize>) -> Option<usize> {
        let [nx, ny, nz] = self.size();
        let [low, high] = self.reach();
        let mut i = rows.start;
        while i < rows.end {
            let (first, line) = (i % nx, i / nx);
            let n = (nx - first).min(rows.end - i);
            let whole = (low[1]..ny - high[1].min(ny)).contains(&(line % ny))
                && (low[2]..nz - high[2].min(nz)).contains(&(line / ny));
            for (x, i) in (first..first + n).zip(i..) {
                let (columns, values) = a.row_slices(i);
                let same = if whole && x >= low[0] && x + high[0] < nx {
                    let at = |offset: i32| (i as u32).wrapping_add_signed(offset);
                    let places = columns.iter().zip(self.neighbours());
                    columns.len() == self.coefficients.len()
                        && places.fold(true, |same, (j, [.., offset])| same & (*j == at(*offset)))
                        && values
                            .iter()
                            .zip(&self.coefficients)
                            .fold(true, |same, (v, c)| same & equal(*v, *c))
                } else {
                    let same = |(own, (j, c)): ((usize, T), (usize, T))| own.0 == j && equal(own.1, c);
                    columns.len() == self.around(i).count() && a.row_entries(i).zip(self.around(i)).all(same)
                };
                if !same {
                    return Some(i);
                }
            }
            i += n;
        }
        None
    }

    /// Maximum steps of neighbours down and up each axis.
    pub fn reach(&self) -> [[usize; 3]; 2] {
        let far = |axis: usize, sign: i32| {
            self.neighbours().iter().map(|steps| (sign * steps[axis]).max(0) as usize).max().unwrap_or(0)
        };
        [-1, 1].map(|sign| std::array::from_fn(|axis| far(axis, sign)))
    }
}

/// Sorts steps by the distance of the points that they lead to.
fn by_distance(order: &mut [usize], distance: &dyn Fn(usize) -> i64, steps: &[[i32; 3]]) {
    order.sort_by_key(|&k| (distance(k), steps[k]));
}

/// The words of a stencil on a grid: those of its neighbours after the head.
fn words(
    size: [usize; 3],
    of_position: usize,
    neighbours: impl ExactSizeIterator<Item = [i32; 4]>,
) -> Vec<[i32; 4]> {
    let [x, y, z] = size.map(|side| side as i32);
    let head = [[x, y, z, neighbours.len() as i32], [of_position as i32, 0, 0, 0]];
    head.into_iter().chain(neighbours).collect()
}

/// Whether two coefficients have the same bits.
fn equal<T: Scalar>(a: T, b: T) -> bool {
    bytemuck::bytes_of(&a) == bytemuck::bytes_of(&b)
}

/// The size of a grid with these neighbours, inferred from where the matrix has them, if there may be one.
fn grid<T: Scalar>(a: &Csr<T>, offsets: &[i64]) -> Option<[usize; 3]> {
    let (n, mut size, mut unit) = (a.rows(), [1; 3], 1);
    for (axis, side) in size.iter_mut().enumerate() {
        let left = n / unit.max(1);
        *side = if axis == 2 { left } else { side_of(a, offsets, unit, left)? };
        unit *= *side;
        if *side == 0 || !n.is_multiple_of(unit) {
            return None;
        }
    }
    Some(size)
}

/// Number of points along an axis with neighbours `unit` apart, at most `left`.
fn side_of<T: Scalar>(a: &Csr<T>, offsets: &[i64], unit: usize, left: usize) -> Option<usize> {
    let has = |offset: i64| offsets.contains(&offset);
    let first = |lacks: &(dyn Fn(usize) -> bool + Sync)| {
        parallel::find_first(left, GRAIN, |k| k > 0 && lacks(k)).unwrap_or(left)
    };
    if has(-(unit as i64)) {
        return Some(first(&|k| a.get(k * unit, (k - 1) * unit).is_none()));
    }
    if has(unit as i64) {
        return Some(first(&|k| a.get((k - 1) * unit, k * unit).is_none()));
    }
    match offsets.iter().map(|o| o.unsigned_abs() as usize).filter(|&o| o > unit).min() {
        None => Some(left),
        Some(next) => next.is_multiple_of(unit).then_some(next / unit),
    }
}

/// The steps to the neighbour at this distance, and the distance.
fn neighbour(offset: i64, [nx, ny, nz]: [usize; 3]) -> [i32; 4] {
    // The nearest line or plane; of two equally near ones, the closer to the point.
    let split = |distance: i64, side: usize, single: bool| {
        let side = side as i64;
        let whole = if single { 0 } else { (2 * distance.abs() + side - 1) / (2 * side) * distance.signum() };
        (distance - whole * side, whole)
    };
    let (dx, lines) = split(offset, nx, ny * nz == 1);
    let (dy, dz) = split(lines, ny, nz == 1);
    [dx, dy, dz, offset].map(|step| step as i32)
}

impl<T: Scalar> Format<T> for Stencil<T> {
    fn shape(&self) -> (usize, usize) {
        let n = self.size().into_iter().product();
        (n, n)
    }

    fn nnz(&self) -> usize {
        self.nnz
    }

    fn kernel(&self) -> &'static str {
        "stencil"
    }

    fn arguments(&self) -> Vec<Argument<'_, T>> {
        vec![Argument::Offsets(bytemuck::cast_slice(&self.words)), Argument::Values(&self.coefficients)]
    }

    fn row(&self, i: usize, x: &[T]) -> T {
        self.around(i).fold(T::zero(), |sum, (j, c)| c.fma(x[j], sum))
    }
}
