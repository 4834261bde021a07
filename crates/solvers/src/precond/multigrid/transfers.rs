//! Transfers between a grid and a coarser one: linear interpolation along each coarsened axis, and its
//! transpose.
use lacuna_engine::{Result, Scalar};
use lacuna_formats::Csr;
use lacuna_formats::algebra::fill_rows;

/// The axes along which a grid is coarsened. Coarse points are the points 1, 3, 5, … along these.
pub(super) type Axes = [bool; 3];

/// At most three points with weights.
type Taps = ([(usize, f64); 3], usize);

/// Points of the coarser grid.
pub(super) fn coarse_size(size: [usize; 3], axes: Axes) -> [usize; 3] {
    [0, 1, 2].map(|k| if axes[k] { size[k] / 2 } else { size[k] })
}

/// The coarse points from which a point of an axis is interpolated.
fn from_coarse(i: usize, points: usize, coarsened: bool) -> Taps {
    match (coarsened, i % 2) {
        (false, _) => ([(i, 1.0); 3], 1),
        (true, 1) => ([(i / 2, 1.0); 3], 1),
        // The boundary value beyond the ends is zero.
        (true, _) if i == 0 => ([(0, 0.5); 3], 1),
        (true, _) if i / 2 == points / 2 => ([(i / 2 - 1, 0.5); 3], 1),
        (true, _) => ([(i / 2 - 1, 0.5), (i / 2, 0.5), (0, 0.0)], 2),
    }
}

/// The points of an axis that are interpolated from a coarse point.
fn from_fine(j: usize, points: usize, coarsened: bool) -> Taps {
    if !coarsened {
        return ([(j, 1.0); 3], 1);
    }
    let taps = [(2 * j, 0.5), (2 * j + 1, 1.0), (2 * j + 2, 0.5)];
    (taps, if 2 * j + 2 < points { 3 } else { 2 })
}

/// `P`: a row for each fine point, a column for each coarse point.
pub(super) fn prolongation<T: Scalar>(size: [usize; 3], axes: Axes) -> Result<Csr<T>> {
    let coarse = coarse_size(size, axes);
    tensor("prolongation", size, coarse, |k, i| from_coarse(i, size[k], axes[k]))
}

/// `R = Pᵀ`
pub(super) fn restriction<T: Scalar>(size: [usize; 3], axes: Axes) -> Result<Csr<T>> {
    let coarse = coarse_size(size, axes);
    tensor("restriction", coarse, size, |k, j| from_fine(j, size[k], axes[k]))
}

/// The matrix between two grids whose entries are products of the weights along each axis.
fn tensor<T: Scalar>(
    operation: &'static str,
    to: [usize; 3],
    from: [usize; 3],
    taps: impl Fn(usize, usize) -> Taps + Sync,
) -> Result<Csr<T>> {
    let [rows, cols] = [to, from].map(|size| size.iter().product::<usize>());
    let of_row = |i: usize| [taps(0, i % to[0]), taps(1, i / to[0] % to[1]), taps(2, i / to[0] / to[1])];
    let length = |i: usize| of_row(i).iter().map(|(_, count)| count).product();
    fill_rows(operation, rows, cols, length, |i, columns, values| {
        let [x, y, z] = of_row(i);
        let mut places = columns.iter_mut().zip(values);
        for (z, by_z) in &z.0[..z.1] {
            for (y, by_y) in &y.0[..y.1] {
                for (x, by_x) in &x.0[..x.1] {
                    if let Some((column, value)) = places.next() {
                        *column = (x + from[0] * (y + from[1] * z)) as u32;
                        *value = T::from_real(by_x * by_y * by_z);
                    }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{coarse_size, prolongation, restriction};

    #[test]
    fn restriction_is_the_transpose_of_prolongation() {
        for (size, axes) in
            [([7, 6, 5], [true; 3]), ([1, 9, 2], [false, true, true]), ([4, 3, 1], [true, false, false])]
        {
            let p = prolongation::<f64>(size, axes).unwrap();
            assert_eq!(restriction::<f64>(size, axes).unwrap(), p.transpose());
            assert_eq!(p.cols(), coarse_size(size, axes).iter().product::<usize>());
            // A constant is interpolated exactly, except that points with a coarse neighbour on one side only
            // get half of it.
            let ones = vec![1.0; p.cols()];
            let mut y = vec![0.0; p.rows()];
            p.product(&ones, &mut y).unwrap();
            for (i, y) in y.into_iter().enumerate() {
                let at = [i % size[0], i / size[0] % size[1], i / size[0] / size[1]];
                let ends =
                    (0..3).filter(|&k| axes[k] && at[k] % 2 == 0 && (at[k] == 0 || at[k] + 1 == size[k]));
                assert_eq!(y, 0.5f64.powi(ends.count() as i32), "{size:?} {at:?}");
            }
        }
    }
}
