//! Removes the noise of a scanned surface. The points `x` minimise `‖x − y‖² + λ ‖L x‖²`, where `y` are the scanned points and `L x`
//! is the distance of each point from the mean of its neighbours: `(1 + λ LᵀL) x = y` for three coordinates, `Prepared::solve_columns`.
//!
//! `cargo run --release --example smooth [FILE]` draws the surface before and after.
mod picture;
use lacuna::prelude::*;
use picture::{Colour, Mesh, Picture};
use std::f64::consts::TAU;

/// Points along the knot and around it.
const ALONG: usize = 420;
const AROUND: usize = 48;
const LAMBDA: f64 = 250.0;
const NOISE: f64 = 0.035;
const CLAY: Colour = [0.80, 0.62, 0.47];

/// Pseudo-random numbers from −1 to 1.
fn noise(seed: u64) -> f64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ z >> 31) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// The centre line of a trefoil knot, for `t` from 0 to 1.
fn knot(t: f64) -> [f64; 3] {
    let t = TAU * t;
    [t.sin() + 2.0 * (2.0 * t).sin(), t.cos() - 2.0 * (2.0 * t).cos(), -1.2 * (3.0 * t).sin()]
        .map(|c| c / 3.0)
}

/// A point on the tube around the knot.
fn tube(t: f64, s: f64) -> [f64; 3] {
    let ([a, c, b], angle) = ([t - 1e-4, t, t + 1e-4].map(knot), TAU * s);
    let along = [0, 1, 2].map(|k| b[k] - a[k]);
    // Two directions normal to the line, one of them horizontal.
    let flat = along[0].hypot(along[1]);
    let across = [-along[1] / flat, along[0] / flat, 0.0];
    let length = flat.hypot(along[2]);
    let up = [-along[0] * along[2] / flat / length, -along[1] * along[2] / flat / length, flat / length];
    let radius = 0.24 + 0.02 * (12.0 * TAU * t).cos();
    [0, 1, 2].map(|k| c[k] + radius * (angle.cos() * across[k] + angle.sin() * up[k]))
}

pub(crate) fn draw() -> Result<Picture> {
    let mut mesh = Mesh::grid([ALONG, AROUND], [true, true], tube);
    let n = mesh.points.len();
    let normals = mesh.normals();
    for (i, point) in mesh.points.iter_mut().enumerate() {
        let away = NOISE * noise(i as u64 + 1);
        *point = [0, 1, 2].map(|c| point[c] + away * normals[i][c]);
    }

    // Rows of L: a point minus the mean of its neighbours.
    let mut edges = Triplets::new(n, n);
    for [a, b, c] in mesh.triangles.iter().copied() {
        edges.extend([(a, b, 1.0), (b, c, 1.0), (c, a, 1.0)]);
    }
    let edges = edges.to_csr()?;
    let mut t = Triplets::new(n, n);
    for i in 0..n {
        t.push(i, i, 1.0);
        let neighbours = edges.row_entries(i);
        let part = -1.0 / neighbours.len() as f64;
        let row: Vec<_> = neighbours.map(|(j, _)| (j, part)).chain([(i, 1.0)]).collect();
        for ((j, u), (k, v)) in row.iter().flat_map(|p| row.iter().map(move |q| (p, q))) {
            t.push(*j, *k, LAMBDA * u * v);
        }
    }
    let b = Array2::from_shape_fn((n, 3), |(i, c)| mesh.points[i][c]);
    let mut x = b.clone();
    let mut system = LinearSystem::new(t.to_csr()?).prepare()?;
    let outcomes = system.solve_columns(b.view(), x.view_mut())?;
    println!("smooth: {n} points, 3 right-hand sides, {}", system.preconditioner().name);
    for (name, outcome) in ["x", "y", "z"].iter().zip(&outcomes) {
        println!("{name} {} iterations, {:.1?}, {}", outcome.iterations, outcome.time, outcome.reason);
    }

    let mut picture = Picture::new(500, 244);
    picture.mesh([125.0, 113.0], 94.0, &mesh, |_, _| CLAY);
    mesh.points = x.rows().into_iter().map(|row| [row[0], row[1], row[2]]).collect();
    picture.mesh([375.0, 113.0], 94.0, &mesh, |_, _| CLAY);
    Ok(picture)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    picture::save("smooth", &draw()?)
}
