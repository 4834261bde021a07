//! Flattens a curved surface and keeps angles as well as possible: least-squares conformal maps (Lévy and
//! others 2002). With `U = u + i v` at the points, a triangle keeps its angles if `Σ W U = 0`, where `W` are
//! its edges as complex numbers. Two points are fixed; the others minimise the sum of squares over all
//! triangles. The matrix has more rows than columns, so `LinearSystem` chooses `lsmr`.
//!
//! `cargo run --release --example lscm [FILE]` draws a checkerboard on the surface, and the flat map.
mod picture;
use lacuna::prelude::*;
use picture::{Colour, Mesh, Picture};

/// Points along a side of the grid.
const N: usize = 64;
/// Squares of the checkerboard across the map.
const SQUARES: f64 = 18.0;
const PAINT: [Colour; 2] = [[0.16, 0.42, 0.50], [0.96, 0.90, 0.78]];

/// A ball with bumps, open below, by `s` and `t` from 0 to 1: the square becomes a disc, the disc a ball.
fn ball(s: f64, t: f64) -> [f64; 3] {
    let (s, t) = (2.0 * s - 1.0, 2.0 * t - 1.0);
    let (p, q) = (t * (1.0 - s * s / 2.0).sqrt(), s * (1.0 - t * t / 2.0).sqrt());
    let from_top = 2.1 * p.hypot(q);
    let around = q.atan2(p);
    let [x, y, z] = [from_top.sin() * around.cos(), from_top.sin() * around.sin(), from_top.cos()];
    let radius =
        1.0 + 0.13 * (3.5 * x + 1.0).sin() * (3.0 * y - 0.4).cos() + 0.10 * (5.0 * y + 3.0 * z).sin();
    // Tilted towards the viewer.
    let [x, y, z] = [x, y, z].map(|c| radius * c);
    let (sin, cos) = 0.75_f64.sin_cos();
    [x, cos * y + sin * z, cos * z - sin * y]
}

/// The edges opposite the corners of a triangle, as complex numbers in its plane, divided by the root of twice its area.
fn edges(corners: [[f64; 3]; 3]) -> [Complex64; 3] {
    let [a, b, c] = corners.map(Array1::from_iter);
    let (ab, ac) = (&b - &a, &c - &a);
    let length = ab.dot(&ab).sqrt();
    let along = ab.dot(&ac) / length;
    let up = (ac.dot(&ac) - along * along).sqrt();
    let flat = [Complex64::ZERO, Complex64::new(length, 0.0), Complex64::new(along, up)];
    let root = (length * up).sqrt();
    [(flat[2] - flat[1]) / root, (flat[0] - flat[2]) / root, (flat[1] - flat[0]) / root]
}

pub(crate) fn draw() -> Result<Picture> {
    let mesh = Mesh::grid([N, N], [false, false], ball);
    let (points, triangles) = (mesh.points.len(), mesh.triangles.len());
    // The midpoints of the left and the right side are fixed; the others are unknown.
    let mut equations = Assembly::least_squares(points);
    equations.fix(N / 2 * N, Complex64::ZERO);
    equations.fix(N / 2 * N + N - 1, Complex64::ONE);
    for triangle in &mesh.triangles {
        let weights = edges(triangle.map(|k| mesh.points[k]));
        equations.row(triangle.iter().copied().zip(weights), Complex64::ZERO);
    }
    let angles = equations.assemble()?;
    let stop = Stop::default().rtol(1e-6);
    let mut system = LinearSystem::new(angles.matrix().clone()).stop(stop).prepare()?;
    let (x, outcome) = system.solve(angles.b())?;
    println!("lscm: {triangles} equations, {} complex unknowns, {}", x.len(), system.method().name);
    println!("{} iterations, {:.0?}, {}", outcome.iterations, outcome.time, outcome.reason);

    let map = angles.full(&x.to_vec())?;
    let painted = |triangle: [usize; 3], weights: [f64; 3]| {
        let at: Complex64 = (0..3).map(|k| map[triangle[k]] * weights[k]).sum();
        let square = (at.re * SQUARES).floor() + (at.im * SQUARES).floor();
        PAINT[square.rem_euclid(2.0) as usize]
    };
    let mut picture = Picture::new(720, 360);
    picture.mesh([184.0, 186.0], 142.0, &mesh, painted);

    let [low, high] = [f64::min, f64::max].map(|end| {
        let ends = map.iter().map(|at| [at.re, at.im]);
        ends.reduce(|a, b| [end(a[0], b[0]), end(a[1], b[1])]).unwrap_or_default()
    });
    let scale = 324.0 / (high[0] - low[0]).max(high[1] - low[1]);
    let centre = [540.0 - scale * (low[0] + high[0]) / 2.0, 180.0 + scale * (low[1] + high[1]) / 2.0];
    let flat: Vec<_> = map.iter().map(|at| [centre[0] + scale * at.re, centre[1] - scale * at.im]).collect();
    for triangle in &mesh.triangles {
        picture.triangle(triangle.map(|k| flat[k]), |weights| painted(*triangle, weights));
    }
    Ok(picture)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    picture::save("lscm", &draw()?)
}
