//! How an elastic plate with a hole vibrates in its plane, held on its left side: `K u = ω² M u` by linear finite elements.
//!
//! `cargo run --release --example modes [FILE]` draws the twelve slowest modes, with ω below each: the colour is how far a point moves.
mod picture;
use lacuna::eigen::EigenProblem;
use lacuna::prelude::*;
use picture::{Picture, VIRIDIS};
use std::f64::consts::TAU;
use std::time::Instant;

/// Points around the hole, and from the hole to the rim.
const AROUND: usize = 120;
const OUT: usize = 22;
/// Half the width and the height of the plate, and the radius of the hole.
const HALF: [f64; 2] = [1.5, 1.0];
const HOLE: f64 = 0.4;
/// Poisson's ratio; Young's modulus and the density are 1.
const NU: f64 = 0.3;
const MODES: usize = 12;

/// A point of the plate between the hole and the rim, which has points in its corners.
fn point(around: usize, out: usize) -> [f64; 2] {
    let (sin, cos) = (TAU * around as f64 / AROUND as f64).sin_cos();
    let s = out as f64 / (OUT - 1) as f64;
    let rim = 1.0 / cos.abs().max(sin.abs());
    [0, 1].map(|c| {
        let direction = [cos, sin][c];
        (1.0 - s) * HOLE * direction + s * (HALF[c] * rim * direction).clamp(-HALF[c], HALF[c])
    })
}

/// Stiffness in plane stress and mass of a triangle, for x and y of its corners in turn.
fn element(corners: [[f64; 2]; 3]) -> ([[f64; 6]; 6], [[f64; 6]; 6]) {
    let [a, b, c] = corners;
    let twice = (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1]);
    // The gradients of the three shape functions.
    let gradient = |p: [f64; 2], q: [f64; 2]| [(p[1] - q[1]) / twice, (q[0] - p[0]) / twice];
    let gradients = [gradient(b, c), gradient(c, a), gradient(a, b)];
    // Strains of each unknown: along x, along y, shear.
    let strain = |k: usize| match (gradients[k / 2], k % 2) {
        ([x, y], 0) => [x, 0.0, y],
        ([x, y], _) => [0.0, y, x],
    };
    let stiff = 1.0 / (1.0 - NU * NU);
    let stress = |[x, y, shear]: [f64; 3]| {
        [stiff * (x + NU * y), stiff * (NU * x + y), stiff * 0.5 * (1.0 - NU) * shear]
    };
    let area = 0.5 * twice;
    let (mut k, mut m) = ([[0.0; 6]; 6], [[0.0; 6]; 6]);
    for (i, j) in (0..6).flat_map(|i| (0..6).map(move |j| (i, j))) {
        let (low, high) = (i.min(j), i.max(j));
        k[i][j] = area * strain(low).iter().zip(stress(strain(high))).map(|(e, s)| e * s).sum::<f64>();
        if i % 2 == j % 2 {
            m[i][j] = if i == j { area / 6.0 } else { area / 12.0 };
        }
    }
    (k, m)
}

pub(crate) fn draw() -> Result<Picture> {
    let points: Vec<_> = (0..OUT).flat_map(|out| (0..AROUND).map(move |i| point(i, out))).collect();
    let triangles: Vec<[usize; 3]> = (0..OUT - 1)
        .flat_map(|out| (0..AROUND).map(move |i| [out * AROUND + i, out * AROUND + (i + 1) % AROUND]))
        .flat_map(|[p, q]| [[p, p + AROUND, q + AROUND], [p, q + AROUND, q]])
        .collect();
    // The unknowns of each point; those on the left side are held.
    let mut n = 0;
    let unknowns: Vec<Option<usize>> =
        points.iter().map(|[x, _]| (*x > -HALF[0] + 1e-9).then(|| (n += 2, n - 2).1)).collect();
    let (mut k, mut m) = (Triplets::new(n, n), Triplets::new(n, n));
    for triangle in &triangles {
        let (stiffness, mass) = element(triangle.map(|p| points[p]));
        let rows = [0, 1, 2, 3, 4, 5].map(|i| unknowns[triangle[i / 2]].map(|first| first + i % 2));
        for (i, j) in (0..6).flat_map(|i| (0..6).map(move |j| (i, j))) {
            if let (Some(row), Some(column)) = (rows[i], rows[j]) {
                k.push(row, column, stiffness[i][j]);
                m.push(row, column, mass[i][j]);
            }
        }
    }
    let start = Instant::now();
    let found = EigenProblem::new(k.to_csr()?).mass(m.to_csr()?).count(MODES).solve(&default_device()?)?;
    println!("modes: {n} unknowns, {}, {:.0?}", found.outcome.complete, start.elapsed());
    found.values.iter().for_each(|value| println!("{:.6}", value.sqrt()));

    let mut picture = Picture::new(720, 444);
    for (j, mode) in found.vectors.iter().enumerate() {
        let move_of = |p: usize| unknowns[p].map_or([0.0; 2], |first| [mode[first], mode[first + 1]]);
        let most = (0..points.len()).map(move_of).map(|[x, y]| x.hypot(y)).fold(0.0, f64::max);
        let centre = [90.0 + 180.0 * (j % 4) as f64, 64.0 + 146.0 * (j / 4) as f64];
        let moved = |p: usize| {
            let ([x, y], [u, v]) = (points[p], move_of(p).map(|u| 0.3 * u / most));
            [centre[0] + 46.0 * (x + u), centre[1] - 46.0 * (y + v)]
        };
        for triangle in &triangles {
            let far = triangle.map(|p| move_of(p)[0].hypot(move_of(p)[1]) / most);
            picture.triangle(triangle.map(moved), |weights| {
                VIRIDIS.at((0..3).map(|c| weights[c] * far[c]).sum())
            });
        }
        let label = format!("{:.3}", found.values[j].sqrt());
        picture.text([centre[0], centre[1] + 76.0], 0.5, &label, [0.2; 3]);
    }
    Ok(picture)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    picture::save("modes", &draw()?)
}
