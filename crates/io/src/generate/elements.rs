//! Linear finite elements: the Poisson problem on a perturbed triangle mesh, elasticity on tetrahedra.
use super::noise::signed;
use lacuna_engine::{Result, Scalar};
use lacuna_formats::Csr;
use lacuna_formats::build::from_rows;

/// The mesh is the same in every run.
const MESH_SEED: u64 = 0x5EED;
/// Maximum displacement of an inner node along each axis, in cell widths. Triangles stay positively oriented
/// below ¼.
const PERTURBATION: f64 = 0.2;

/// Stiffness of linear triangles on the unit square, Dirichlet: `m`² inner nodes of a mesh of (`m` + 1)²
/// cells, each cut along its rising diagonal, with inner nodes moved at random. Symmetric positive definite,
/// up to 7 entries per row.
pub(super) fn poisson_p1<T: Scalar>(operation: &str, m: usize) -> Result<Csr<T>> {
    from_rows(operation, m * m, |i, row| {
        around(m, i, |j, a, b, twice_area| {
            let stiffness = (a[0] * b[0] + a[1] * b[1]) / (2.0 * twice_area);
            row.push((j as u32, T::from_real(stiffness)));
        });
    })
}

/// `k` diffusing species on the same mesh, each driven by the gradients of all: `−∇·(D ∇u)` with `D` = 1 / (1 + |a − b|) for
/// species a and b. `k` unknowns at each of `m`² nodes, dense blocks. Symmetric positive definite.
pub(super) fn cross_diffusion<T: Scalar>(operation: &str, m: usize, k: usize) -> Result<Csr<T>> {
    from_rows(operation, k * m * m, |i, row| {
        around(m, i / k, |j, a, b, twice_area| {
            let stiffness = (a[0] * b[0] + a[1] * b[1]) / (2.0 * twice_area);
            let with = |other: usize| stiffness / (1.0 + (i % k).abs_diff(other) as f64);
            row.extend((0..k).map(|other| ((j * k + other) as u32, T::from_real(with(other)))));
        });
    })
}

/// Linear elasticity of a plate in plane strain on the same mesh, clamped along its border: 2 unknowns at each of `m`² nodes, dense
/// 2x2 blocks. Symmetric positive definite.
pub(super) fn elasticity2d<T: Scalar>(operation: &str, m: usize) -> Result<Csr<T>> {
    let lambda = YOUNG * RATIO / ((1.0 + RATIO) * (1.0 - 2.0 * RATIO));
    let mu = YOUNG / (2.0 * (1.0 + RATIO));
    from_rows(operation, 2 * m * m, |i, row| {
        let component = i % 2;
        around(m, i / 2, |j, a, b, twice_area| {
            // The gradient of a node's linear function is the opposite edge, turned, over twice the area.
            let (g, h) = ([-a[1], a[0]], [-b[1], b[0]]);
            let product = g[0] * h[0] + g[1] * h[1];
            row.extend((0..2).map(|other| {
                let shear = if component == other { mu * product } else { 0.0 };
                let coupling = lambda * (g[component] * h[other]) + mu * (g[other] * h[component]);
                ((2 * j + other) as u32, T::from_real((coupling + shear) / (2.0 * twice_area)))
            }));
        });
    })
}

/// Goes over the triangles around inner node `i` of the mesh: for each corner that is an inner node its number, the edges opposite to
/// node `i` and to the corner, and twice the area.
fn around(m: usize, i: usize, mut visit: impl FnMut(usize, [f64; 2], [f64; 2], f64)) {
    // Lengths in cell widths: the stiffness of a triangle does not depend on its size.
    let node = |x: usize, y: usize| {
        let inner = (1..=m).contains(&x) && (1..=m).contains(&y);
        let moved = if inner { PERTURBATION } else { 0.0 };
        let id = (y * (m + 2) + x) as u64;
        [x as f64 + moved * signed(MESH_SEED, id, 0), y as f64 + moved * signed(MESH_SEED, id, 1)]
    };
    // Both triangles of a cell, by the offsets of their corners from its lower left one, counter-clockwise.
    const TRIANGLES: [[(usize, usize); 3]; 2] = [[(0, 0), (1, 0), (1, 1)], [(0, 0), (1, 1), (0, 1)]];
    let (x, y) = (i % m + 1, i / m + 1);
    for (cell_x, cell_y) in [(x - 1, y - 1), (x, y - 1), (x - 1, y), (x, y)] {
        for corners in TRIANGLES {
            let at = corners.map(|(dx, dy)| (cell_x + dx, cell_y + dy));
            let Some(own) = at.iter().position(|&n| n == (x, y)) else { continue };
            let p = at.map(|(x, y)| node(x, y));
            // Edge k is opposite corner k.
            let edge = |k: usize| {
                let (from, to) = (p[(k + 1) % 3], p[(k + 2) % 3]);
                [to[0] - from[0], to[1] - from[1]]
            };
            let (e1, e2) = (edge(1), edge(2));
            let twice_area = e1[0] * e2[1] - e1[1] * e2[0];
            for (k, &(x, y)) in at.iter().enumerate() {
                if (1..=m).contains(&x) && (1..=m).contains(&y) {
                    visit((y - 1) * m + x - 1, edge(own), edge(k), twice_area);
                }
            }
        }
    }
}

/// Young's modulus of the cube.
const YOUNG: f64 = 1.0;
/// Poisson's ratio of the cube.
const RATIO: f64 = 0.3;

/// A 3x3 block that couples two nodes.
type Block = [[f64; 3]; 3];

/// Stiffness of a unit cube cut into six tetrahedra around its main diagonal, by pairs of corners (bit `k` of
/// a corner is its coordinate along axis `k`).
fn cube_stiffness() -> [[Block; 8]; 8] {
    let lambda = YOUNG * RATIO / ((1.0 + RATIO) * (1.0 - 2.0 * RATIO));
    let mu = YOUNG / (2.0 * (1.0 + RATIO));
    let volume = 1.0 / 6.0;
    let mut cube = [[[[0.0; 3]; 3]; 8]; 8];
    for path in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        // The corners of the tetrahedron follow a walk along the axes in this order: its linear functions are
        // 1 − x₀, x₀ − x₁, x₁ − x₂ and x₂ with coordinates in the order of the walk.
        let mut corners = [0usize; 4];
        let mut gradients = [[0.0; 3]; 4];
        for (k, &axis) in path.iter().enumerate() {
            corners[k + 1] = corners[k] | 1 << axis;
            gradients[k][axis] = -1.0;
            gradients[k + 1][axis] = 1.0;
        }
        for (&a, g) in corners.iter().zip(&gradients) {
            for (&b, h) in corners.iter().zip(&gradients) {
                let product = g[0] * h[0] + g[1] * h[1] + g[2] * h[2];
                for i in 0..3 {
                    for j in 0..3 {
                        let shear = if i == j { mu * product } else { 0.0 };
                        let coupling = lambda * (g[i] * h[j]) + mu * (g[j] * h[i]);
                        cube[a][b][i][j] += volume * (coupling + shear);
                    }
                }
            }
        }
    }
    cube
}

/// Linear elasticity of a cube of `m`³ cells of six linear tetrahedra each, clamped at the bottom: 3 unknowns
/// at each of `m`(`m` + 1)² nodes, numbered node by node, x fastest. Symmetric positive definite, dense 3x3
/// blocks, 45 entries in an inner row.
pub(super) fn elasticity3d<T: Scalar>(operation: &str, m: usize) -> Result<Csr<T>> {
    let cube = cube_stiffness();
    let side = m + 1;
    from_rows(operation, 3 * side * side * m, |i, row| {
        let (node, component) = (i / 3, i % 3);
        let here = [node % side, node / side % side, node / side / side + 1];
        // Nodes share a tetrahedron unless two axes between them point in opposite directions.
        for z in 0..3 {
            for y in 0..3 {
                for x in 0..3 {
                    let steps = [x, y, z];
                    if steps.contains(&0) && steps.contains(&2) {
                        continue;
                    }
                    let there: [usize; 3] = std::array::from_fn(|k| (here[k] + steps[k]).wrapping_sub(1));
                    if there.iter().any(|&k| k > m) || there[2] == 0 {
                        continue;
                    }
                    let block = coupling(&cube, here, there, m);
                    let first = 3 * (((there[2] - 1) * side + there[1]) * side + there[0]);
                    row.extend((0..3).map(|j| ((first + j) as u32, T::from_real(block[component][j]))));
                }
            }
        }
    })
}

/// The block of two neighbouring nodes: the sum over the cubes that contain both as corners.
fn coupling(cube: &[[Block; 8]; 8], here: [usize; 3], there: [usize; 3], m: usize) -> Block {
    let mut sum = [[0.0; 3]; 3];
    for (corner, blocks) in cube.iter().enumerate() {
        // The cube in which this node is the corner `corner`, and the corner of the other node in it.
        let (mut other, mut inside) = (0, true);
        for axis in 0..3 {
            let origin = here[axis].wrapping_sub(corner >> axis & 1);
            let step = there[axis].wrapping_sub(origin);
            inside &= origin < m && step < 2;
            other |= (step & 1) << axis;
        }
        if inside {
            for (sum, k) in sum.iter_mut().flatten().zip(blocks[other].iter().flatten()) {
                *sum += k;
            }
        }
    }
    sum
}
