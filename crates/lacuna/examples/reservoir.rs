//! Pressure in a layer of rock with log-normal permeability. Water flows from wells on the left to wells on the right.
//! Conjugate gradients with four preconditioners, compared by their iterations.
//!
//! `cargo run --release --example reservoir [FILE]` draws the permeability with streamlines, the pressure, and the residuals.
mod picture;
use lacuna::prelude::*;
use picture::{GREY, LINES, Picture, VIRIDIS, sample};
use std::f64::consts::TAU;
use std::time::Instant;

const NX: usize = 200;
const NY: usize = 100;
/// Positions of the drawings of the permeability and the pressure.
const LEFT: [f64; 4] = [4.0, 4.0, 340.0, 170.0];
const RIGHT: [f64; 4] = [352.0, 4.0, 340.0, 170.0];

/// Quasi-random numbers from 0 to 1, a Weyl sequence for each `k`.
fn uniform(n: usize, k: i32) -> f64 {
    (0.5 + n as f64 * 1.220_744_084_605_759_5_f64.powi(-k)).fract()
}

/// The decimal logarithm of the permeability: a nearly normal sum of random waves, longer along the layer
/// than across it. Its standard deviation is 0.8.
fn log_permeability() -> Array2<f64> {
    const WAVES: usize = 160;
    let waves: Vec<[f64; 3]> = (0..WAVES)
        .map(|n| {
            let (length, angle) = ((1.0 - uniform(n, 1)).ln().abs().sqrt(), TAU * uniform(n, 2));
            [length * angle.cos() / 11.0, length * angle.sin() / 4.0, TAU * uniform(n, 3)]
        })
        .collect();
    Array2::from_shape_fn((NY, NX), |(j, i)| {
        let wave = |[p, q, phase]: &[f64; 3]| (p * i as f64 + q * j as f64 + phase).cos();
        0.8 * (2.0 / WAVES as f64).sqrt() * waves.iter().map(wave).sum::<f64>()
    })
}

/// Finite volumes. The pressure is 1 on the left and 0 on the right; the other sides are closed.
fn assemble(log_k: &Array2<f64>) -> Result<Assembled<f64>> {
    let k: Vec<f64> = log_k.iter().map(|log| 10f64.powf(*log)).collect();
    let mut layer = Assembly::square(NX * NY);
    for i in 0..NX * NY {
        let right = (i % NX + 1 < NX).then_some(i + 1);
        let below = (i + NX < NX * NY).then_some(i + NX);
        for j in [right, below].into_iter().flatten() {
            layer.couple(i, j, 2.0 * k[i] * k[j] / (k[i] + k[j]));
        }
    }
    for row in 0..NY {
        let (left, right) = (row * NX, row * NX + NX - 1);
        layer.add(left, left, 2.0 * k[left]);
        layer.add(right, right, 2.0 * k[right]);
        layer.add_b(left, 2.0 * k[left]);
    }
    layer.assemble()
}

pub(crate) fn draw() -> Result<Picture> {
    let mut picture = Picture::new(696, 396);
    let log_k = log_permeability();
    let layer = assemble(&log_k)?;
    println!("reservoir: {} unknowns, conjugate gradients to a residual of 1e-8", layer.b().len());

    // Both axes are logarithmic; iteration 0 is drawn at 0.5.
    let place = |iteration: f64, residual: f64| {
        let decades = (iteration.max(0.5) * 2.0).log10();
        [56.0 + 170.0 * decades, 206.0 + 150.0 * residual.log10() / -9.0]
    };
    for x in [0.0, 1.0, 10.0, 100.0, 1000.0] {
        picture.line(&[place(x, 10.0), place(x, 1e-9)], 0.6, [0.85; 3]);
        picture.text([place(x, 1.0)[0], 376.0], 0.5, &format!("{x}"), [0.35; 3]);
    }
    picture.text([336.0, 390.0], 0.5, "iterations", [0.35; 3]);
    for exponent in [0, -2, -4, -6, -8] {
        let y = 10f64.powi(exponent);
        picture.line(&[place(0.0, y), place(1e3, y)], 0.6, [0.85; 3]);
        picture.text([48.0, place(1.0, y)[1] + 4.0], 1.0, &format!("1e{exponent}"), [0.35; 3]);
    }

    let mut pressure = Array1::zeros(NX * NY);
    for (name, colour) in ["jacobi", "ic0", "amg", "direct"].into_iter().zip(LINES) {
        let start = Instant::now();
        let system = LinearSystem::new(layer.matrix().clone()).method("cg").preconditioner(name);
        let (x, outcome) = system.prepare()?.solve(layer.b())?;
        println!("{name:6} {:4} iterations, {:.1?}, {}", outcome.iterations, start.elapsed(), outcome.reason);
        let history = outcome.history.iter().zip(0..);
        let curve: Vec<_> = history.map(|(r, n)| place(f64::from(n), r.max(1e-9))).collect();
        picture.line(&curve, 1.6, colour);
        let [x_end, y_end] = curve[curve.len() - 1];
        picture.text([x_end + 8.0, y_end + 2.0], 0.0, name, colour);
        pressure = x;
    }

    picture.field(LEFT, &log_k, GREY, [-2.0, 2.0], &[]);
    let pressure = pressure.into_shape_with_order((NY, NX)).expect("a value for each cell");
    let levels: Vec<f64> = (1..12).map(|k| f64::from(k) / 12.0).collect();
    picture.field(RIGHT, &pressure, VIRIDIS, [0.0, 1.0], &levels);
    (0..16).for_each(|k| stream(&mut picture, &pressure, [0.0, (f64::from(k) + 0.5) / 16.0]));
    Ok(picture)
}

/// Draws a streamline on the permeability.
fn stream(picture: &mut Picture, pressure: &Array2<f64>, mut at: [f64; 2]) {
    let [dx, dy] = [1.0 / NX as f64, 1.0 / NY as f64];
    let mut path = Vec::new();
    while at[0] < 1.0 && path.len() < 4 * NX {
        path.push([LEFT[0] + LEFT[2] * at[0], LEFT[1] + LEFT[3] * at[1]]);
        let [x, y] = at;
        let [u, v] = [[dx, 0.0], [0.0, dy]]
            .map(|[p, q]| sample(pressure, x - p, y - q) - sample(pressure, x + p, y + q));
        at = [x + dx * u / u.hypot(v), y + dy * v / u.hypot(v)];
    }
    picture.line(&path, 1.0, [0.05, 0.60, 0.90]);
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    picture::save("reservoir", &draw()?)
}
