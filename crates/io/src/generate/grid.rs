//! Finite differences on regular grids: Poisson, convection-diffusion, Helmholtz, Markov chains.
//!
//! Points are numbered with x fastest; boundaries hold no unknowns unless noted.
use lacuna_engine::{Result, Scalar};
use lacuna_formats::Csr;
use lacuna_formats::build::from_rows;

/// Points in x, y and z.
pub(super) type Size = [usize; 3];

/// The coordinates of point `i`.
fn point(i: usize, [nx, ny, _]: Size) -> Size {
    [i % nx, i / nx % ny, i / nx / ny]
}

/// The point one step from `p` along `axis`, and whether it is on the grid.
fn step(i: usize, p: Size, size: Size, axis: usize, up: bool) -> Option<usize> {
    let stride: usize = size[..axis].iter().product();
    match up {
        true => (p[axis] + 1 < size[axis]).then(|| i + stride),
        false => (p[axis] > 0).then(|| i - stride),
    }
}

/// The points of a grid, and the neighbours along the axes of all points together.
pub(super) fn star(size: Size) -> [u128; 2] {
    let sides = size.map(|side| side as u128);
    let points: u128 = sides.iter().product();
    [points, sides.iter().map(|side| 2 * (points - points / side)).sum()]
}

/// `−Δ` with Dirichlet boundaries, times h²: −1 for each neighbour, and on the diagonal the number of
/// neighbours of an inner point. With `corners`, all neighbours in the surrounding box (9 and 27 points),
/// otherwise only those along the axes.
pub(super) fn poisson<T: Scalar>(
    operation: &str,
    size: Size,
    dimensions: usize,
    corners: bool,
) -> Result<Csr<T>> {
    let neighbours = if corners { 3usize.pow(dimensions as u32) - 1 } else { 2 * dimensions };
    let (diagonal, other) = (T::from_real(neighbours as f64), T::from_real(-1.0));
    let [nx, ny, nz] = size;
    let near = |p: usize, n: usize| p.saturating_sub(1)..(p + 2).min(n);
    from_rows(operation, nx * ny * nz, |i, row| {
        let [x, y, z] = point(i, size);
        for v in near(z, nz) {
            for w in near(y, ny) {
                let line = (v * ny + w) * nx;
                if corners || (v == z && w == y) {
                    row.extend(near(x, nx).map(|u| ((line + u) as u32, other)));
                } else if v == z || w == y {
                    row.push(((line + x) as u32, other));
                }
            }
        }
        let own = row.partition_point(|e| (e.0 as usize) < i);
        row[own].1 = diagonal;
    })
}

/// `−Δu + Pe w·∇u` on the cube `(−1, 1)ᵈ`, Dirichlet, first-order upwind, times the squared step in x: an
/// M-matrix. The wind rotates around the centre of each plane, `w = (2y(1 − x²), −2x(1 − y²))`, and rises
/// with speed ½ in three dimensions.
pub(super) fn convection<T: Scalar>(
    operation: &str,
    size: Size,
    dimensions: usize,
    peclet: f64,
) -> Result<Csr<T>> {
    let width = size.map(|n| 2.0 / (n as f64 + 1.0));
    from_rows(operation, size.iter().product(), |i, row| {
        let p = point(i, size);
        let at = |axis: usize| (p[axis] as f64 + 1.0) * width[axis] - 1.0;
        let (x, y) = (at(0), at(1));
        let wind = [2.0 * y * (1.0 - x * x), -2.0 * x * (1.0 - y * y), 0.5];
        let mut diagonal = 0.0;
        for axis in 0..dimensions {
            let ratio = width[0] / width[axis];
            let diffusion = ratio * ratio;
            let convection = peclet * wind[axis] * width[0] * ratio;
            for up in [false, true] {
                let carried = if up { -convection } else { convection };
                let weight = diffusion + carried.max(0.0);
                diagonal += weight;
                if let Some(j) = step(i, p, size, axis, up) {
                    row.push((j as u32, T::from_real(-weight)));
                }
            }
        }
        row.push((i as u32, T::from_real(diagonal)));
    })
}

/// Relative damping of `k²`.
const DAMPING: f64 = 0.02;

/// `−Δu − k²(1 + 0.02i)u` times h², with radiating boundaries on every side (`∂u/∂n = iku`, first order):
/// complex symmetric, not Hermitian. The longer side has length 1.
pub(super) fn helmholtz<T: Scalar>(operation: &str, size: Size, wave_number: f64) -> Result<Csr<T>> {
    let kh = wave_number / (size[0].max(size[1]) as f64 + 1.0);
    from_rows(operation, size[0] * size[1], |i, row| {
        let p = point(i, size);
        let (mut re, mut im) = (4.0 - kh * kh, -DAMPING * kh * kh);
        for axis in 0..2 {
            for up in [false, true] {
                match step(i, p, size, axis, up) {
                    Some(j) => row.push((j as u32, T::from_real(-1.0))),
                    // The ghost point outside is (1 + ikh) times this one.
                    None => (re, im) = (re - 1.0, im - kh),
                }
            }
        }
        row.push((i as u32, T::from_parts(re, im)));
    })
}

/// Two populations of at most `nx − 1` and `ny − 1`, one birth or death at a time, with crowding reducing
/// births: the transition matrix `P` (rows sum to 1, four entries per row, no diagonal), or `I − d P` for a
/// discount `d`.
pub(super) fn markov<T: Scalar>(operation: &str, size: Size, discount: Option<f64>) -> Result<Csr<T>> {
    from_rows(operation, size[0] * size[1], |i, row| {
        let p = point(i, size);
        let mut moves = [(0u32, 0.0); 4];
        let mut known = 0;
        for axis in 0..2 {
            let filled = p[axis] as f64 / size[axis] as f64;
            for (up, rate) in [(false, 0.25 + filled), (true, 1.25 - 0.75 * filled + 0.5 * axis as f64)] {
                if let Some(j) = step(i, p, size, axis, up) {
                    moves[known] = (j as u32, rate);
                    known += 1;
                }
            }
        }
        let moves = &moves[..known];
        let total: f64 = moves.iter().map(|m| m.1).sum();
        let factor = discount.map_or(1.0, |d| -d);
        row.extend(moves.iter().map(|&(j, rate)| (j, T::from_real(factor * (rate / total)))));
        if discount.is_some() {
            row.push((i as u32, T::one()));
        }
    })
}

/// Two populations with a sum below `m`, one birth or death at a time, with crowding reducing births, for the
/// largest triangle of at most `states` states: the transition matrix, whose rows sum to 1. Four entries per
/// row, fewer along the sides, one on the diagonal if there is no room for a birth. States are numbered line
/// by line, the longest first.
pub(super) fn epidemic<T: Scalar>(operation: &str, states: usize) -> Result<Csr<T>> {
    let below = |states: usize| ((8 * states as u64 + 1).isqrt() as usize - 1) / 2;
    let m = below(states);
    let first = |y: usize| y * m - y * y.saturating_sub(1) / 2;
    from_rows(operation, first(m), |i, row| {
        // Counted from the last state, lines have 1, 2, … states.
        let y = m - 1 - below(first(m) - 1 - i);
        let x = i - first(y);
        let crowd = (x + y) as f64 / m as f64;
        let (death, birth) = (0.25 + crowd, 1.25 - crowd);
        let moves = match x + y + 1 < m {
            true => [(i + 1, birth), (first(y + 1) + x, birth)],
            false => [(i, birth), (i, 0.0)],
        };
        let back = [(y > 0).then(|| (first(y - 1) + x, death)), (x > 0).then(|| (i - 1, death))];
        let moves = || back.into_iter().flatten().chain(moves).filter(|m| m.1 > 0.0);
        let total: f64 = moves().map(|m| m.1).sum();
        row.extend(moves().map(|(j, rate)| (j as u32, T::from_real(rate / total))));
    })
}
