//! Matrices of quadratic energies: Wathen's mass matrix, and the two obstacle problems of bounded quadratic programs.
use super::grid::Size;
use super::noise::unit;
use lacuna_engine::{Result, Scalar};
use lacuna_formats::Csr;
use lacuna_formats::build::from_rows;

/// The mass matrix of a square element with 8 nodes, times 45: entries among the corners and among the middles of the sides (`SAME`),
/// and between both, by the order of Wathen's nodes around the element.
const SAME: [[f64; 4]; 4] =
    [[6.0, -6.0, 2.0, -8.0], [-6.0, 32.0, -6.0, 20.0], [2.0, -6.0, 6.0, -6.0], [-8.0, 20.0, -6.0, 32.0]];
const OTHER: [[f64; 4]; 4] =
    [[3.0, -8.0, 2.0, -6.0], [-8.0, 16.0, -8.0, 20.0], [2.0, -8.0, 3.0, -8.0], [-6.0, 20.0, -8.0, 16.0]];

/// The entry of an element's matrix for two of its nodes.
fn element(a: usize, b: usize) -> f64 {
    let part = match (a / 4, b / 4) {
        (0, 0) | (1, 1) => SAME[a % 4][b % 4],
        (0, _) => OTHER[a % 4][b % 4],
        _ => OTHER[b % 4][a % 4],
    };
    part / 45.0
}

/// The numbers of the 8 nodes of element (`x`, `y`), in Wathen's order.
fn nodes(nx: usize, x: usize, y: usize) -> [usize; 8] {
    let line = 3 * nx + 2;
    let (low, high, middle) = (y * line + 2 * x, (y + 1) * line + 2 * x, y * line + 2 * nx + 1 + x);
    [high + 2, high + 1, high, middle, low, low + 1, low + 2, middle + 1]
}

/// Wathen's matrix: the mass matrix of `nx` × `ny` elements of 8 nodes, each of a random density below 100. Symmetric positive
/// definite, 3 `nx` `ny` + 2 `nx` + 2 `ny` + 1 rows of 8 to 21 entries. Wathen 1987, doi:10.1093/imanum/7.4.449.
pub(super) fn wathen<T: Scalar>(operation: &str, [nx, ny, _]: Size, seed: u64) -> Result<Csr<T>> {
    let line = 3 * nx + 2;
    from_rows(operation, wathen_rows([nx, ny, 1]), |i, row| {
        // A line of corners and middles, then one of the middles of the upright sides.
        let (y, at) = (i / line, i % line);
        let (columns, lines) = match at.checked_sub(2 * nx + 1) {
            Some(side) => (side.wrapping_sub(1)..side + 1, y..y + 1),
            None if at % 2 == 1 => (at / 2..at / 2 + 1, y.wrapping_sub(1)..y + 1),
            None => ((at / 2).wrapping_sub(1)..at / 2 + 1, y.wrapping_sub(1)..y + 1),
        };
        let both = |range: std::ops::Range<usize>| [range.start, range.end.wrapping_sub(1)];
        for y in distinct(both(lines)).filter(|&y| y < ny) {
            for x in distinct(both(columns.clone())).filter(|&x| x < nx) {
                let nodes = nodes(nx, x, y);
                let Some(own) = nodes.iter().position(|&node| node == i) else { continue };
                let density = 100.0 * unit(seed, x as u64, y as u64);
                let entry =
                    |(k, &node): (usize, &usize)| (node as u32, T::from_real(density * element(own, k)));
                row.extend(nodes.iter().enumerate().map(entry));
            }
        }
    })
}

/// Rows of [`wathen`].
pub(super) fn wathen_rows([nx, ny, _]: Size) -> usize {
    3 * nx * ny + 2 * nx + 2 * ny + 1
}

fn distinct([a, b]: [usize; 2]) -> impl Iterator<Item = usize> {
    std::iter::once(a).chain(Some(b).filter(|&b| b != a))
}

/// The membrane over an obstacle and the surface of least area.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Energy {
    /// Half the sum of the squared differences to the neighbours of each inner point.
    Obstacle,
    /// The same with weights `1 / √(1 + |∇u|²)` of the surface `u = x² − y²` on `(−1, 1)²`: the area, to second order.
    Surface,
}

impl Energy {
    /// What is added to the diagonal, which makes the matrix definite.
    fn shift(self) -> f64 {
        match self {
            Energy::Obstacle => 0.2,
            Energy::Surface => 0.1,
        }
    }

    /// The Hessian of the energy over a grid whose outermost points are unknowns too. A difference between two inner points counts
    /// twice, one between an inner and an outer point once, and outer points are not joined. Symmetric positive definite.
    pub(super) fn hessian<T: Scalar>(self, operation: &str, [nx, ny, _]: Size) -> Result<Csr<T>> {
        let inner = |x: usize, y: usize| x > 0 && y > 0 && x + 1 < nx && y + 1 < ny;
        from_rows(operation, nx * ny, |i, row| {
            let (x, y) = (i % nx, i / nx);
            let mut diagonal = self.shift();
            let near = [
                y.checked_sub(1).map(|y| (x, y)),
                x.checked_sub(1).map(|x| (x, y)),
                Some((x + 1, y)).filter(|p| p.0 < nx),
                Some((x, y + 1)).filter(|p| p.1 < ny),
            ];
            for (u, v) in near.into_iter().flatten() {
                let counted = f64::from(u8::from(inner(x, y)) + u8::from(inner(u, v)));
                if counted > 0.0 {
                    let weight = 0.5 * counted * self.weight([(x + u) as f64, (y + v) as f64], [nx, ny]);
                    diagonal += weight;
                    row.push(((v * nx + u) as u32, T::from_real(-weight)));
                }
            }
            row.push((i as u32, T::from_real(diagonal)));
        })
    }

    /// The weight of a difference, by twice the middle of its ends in steps of the grid.
    fn weight(self, twice: [f64; 2], sides: [usize; 2]) -> f64 {
        let [x, y] = std::array::from_fn(|k| twice[k] / (sides[k].max(2) - 1) as f64 - 1.0);
        match self {
            Energy::Obstacle => 1.0,
            Energy::Surface => 1.0 / (1.0 + 4.0 * x * x + 4.0 * y * y).sqrt(),
        }
    }
}
