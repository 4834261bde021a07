//! A Luneburg lens, with refractive index `√(2 − r²)`, turns the waves of a point source on its rim into plane waves.
//! Solves the Helmholtz equation in complex numbers; a layer around the picture absorbs the waves that leave.
//!
//! `cargo run --release --example waves [FILE]` draws the real part of the field.
mod picture;
use lacuna::prelude::*;
use picture::{BALANCE, Picture};
use std::f64::consts::TAU;
use std::time::Instant;

/// Cells of the picture, and width of the absorbing border around it.
const NX: usize = 264;
const NY: usize = 144;
const BORDER: usize = 16;
/// Wavelength outside the lens, in cells.
const WAVELENGTH: f64 = 12.0;
/// Centre and radius of the lens, in cells.
const LENS: [f64; 3] = [86.0, 71.5, 52.0];

/// The square of the refractive index at a cell.
fn index_squared(x: f64, y: f64) -> f64 {
    let r = (x - LENS[0]).hypot(y - LENS[1]) / LENS[2];
    (2.0 - r * r).max(1.0)
}

/// Relative depth in the border, from 0 to 1, along an axis of `n` cells.
fn depth(cell: f64, n: usize) -> f64 {
    let outside = (-cell).max(cell - (n - 1) as f64).max(0.0);
    (outside / BORDER as f64).min(1.0)
}

/// Complex stretching of lengths in the border: a perfectly matched layer (Berenger 1994).
fn stretch(cell: f64, n: usize) -> Complex64 {
    Complex64::new(1.0, 2.5 * depth(cell, n).powi(2))
}

pub(crate) fn draw() -> Result<Picture> {
    let (columns, rows) = (NX + 2 * BORDER, NY + 2 * BORDER);
    let wave_number = TAU / WAVELENGTH;
    let mut t = Triplets::with_capacity(columns * rows, columns * rows, 5 * columns * rows);
    for i in 0..columns * rows {
        let [x, y] = [i % columns, i / columns].map(|k| k as f64 - BORDER as f64);
        // −∂/∂x (sy/sx ∂u/∂x) − ∂/∂y (sx/sy ∂u/∂y) − k² n² sx sy u.
        let (sx, sy) = (stretch(x, NX), stretch(y, NY));
        t.push(i, i, -sx * sy * (wave_number * wave_number * index_squared(x, y)));
        let right = (i % columns + 1 < columns).then(|| (i + 1, sy / stretch(x + 0.5, NX)));
        let below = (i + columns < columns * rows).then(|| (i + columns, sx / stretch(y + 0.5, NY)));
        for (j, flow) in [right, below].into_iter().flatten() {
            t.extend([(i, i, flow), (j, j, flow), (i, j, -flow), (j, i, -flow)]);
        }
    }
    let a = t.to_csr()?;
    let mut b = Array1::zeros(a.rows());
    let source = [LENS[0] - LENS[2], LENS[1]];
    b[(source[1] as usize + BORDER) * columns + source[0] as usize + BORDER] = Complex64::new(1.0, 0.0);

    // Iterative methods converge slowly on wave problems, and a complete factorisation is cheap in two
    // dimensions.
    let start = Instant::now();
    let mut system = LinearSystem::new(a).method("direct").prepare()?;
    let factored = start.elapsed();
    let (u, outcome) = system.solve(&b)?;
    println!("waves: {} complex unknowns, factored in {factored:.0?}", columns * rows);
    println!("{} iteration, {:.0?}, {}", outcome.iterations, outcome.time, outcome.reason);

    let mut picture = Picture::new(440, 240);
    let field =
        Array2::from_shape_fn((NY, NX), |(row, column)| u[(row + BORDER) * columns + column + BORDER].re);
    picture.field([0.0, 0.0, 440.0, 240.0], &field, BALANCE, [-0.12, 0.12], &[]);
    let rim = (0..=120).map(|k| (TAU * f64::from(k) / 120.0).sin_cos());
    let rim: Vec<_> = rim.map(|(sin, cos)| [LENS[0] + LENS[2] * cos, LENS[1] + LENS[2] * sin]).collect();
    let rim: Vec<_> = rim.iter().map(|at| at.map(|cell| 440.0 / NX as f64 * (cell + 0.5))).collect();
    picture.line(&rim, 1.2, [0.15; 3]);
    Ok(picture)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    picture::save("waves", &draw()?)
}
