//! A plate of two materials, heated on its left side. The conductivity decreases as the temperature rises, so
//! the matrix changes with every implicit time step but keeps its pattern: `Assembled::update` sorts nothing,
//! and `Prepared::update_values` reuses the prepared system.
//!
//! `cargo run --release --example heat [FILE]` draws the temperature after 3, 12 and 60 steps, with isolines a tenth apart.
mod picture;
use lacuna::prelude::*;
use picture::{INFERNO, Picture};
use std::time::{Duration, Instant};

/// Cells along a side of the plate, which has length 1.
const N: usize = 116;
const DT: f64 = 0.01;
const SHOWN: [usize; 3] = [3, 12, 60];
/// Loss to the surrounding air, which has temperature 0.
const COOLING: f64 = 0.25;

/// Whether a point lies in one of the discs of the second material, which conducts 30 times less.
fn in_disc(x: f64, y: f64) -> bool {
    let discs = [[0.30, 0.26, 0.15], [0.68, 0.30, 0.11], [0.40, 0.70, 0.17], [0.77, 0.72, 0.13]];
    discs.iter().any(|[cx, cy, r]| (x - cx).hypot(y - cy) < *r)
}

fn conductivity(cell: usize, temperature: f64) -> f64 {
    let [x, y] = [cell % N, cell / N].map(|k| (k as f64 + 0.5) / N as f64);
    (if in_disc(x, y) { 0.03 } else { 1.0 }) / (1.0 + 0.8 * temperature)
}

/// An implicit step `(1/dt + cooling) u − ∇·(k ∇u) = u_old / dt` in finite volumes, with the heat from the left side.
fn step(plate: &mut Assembly<f64>, old: &Array1<f64>) {
    let k: Vec<f64> = old.iter().enumerate().map(|(cell, u)| conductivity(cell, *u)).collect();
    let per_area = (N * N) as f64;
    plate.begin();
    for i in 0..N * N {
        plate.add(i, i, 1.0 / DT + COOLING);
        plate.add_b(i, old[i] / DT);
        let right = (i % N + 1 < N).then_some(i + 1);
        let below = (i + N < N * N).then_some(i + N);
        for j in [right, below].into_iter().flatten() {
            plate.couple(i, j, per_area * 2.0 * k[i] * k[j] / (k[i] + k[j]));
        }
        if i % N == 0 {
            let flow = per_area * 2.0 * k[i];
            plate.add(i, i, flow);
            plate.add_b(i, flow);
        }
    }
}

pub(crate) fn draw() -> Result<Picture> {
    let mut picture = Picture::new(720, 240);
    let (mut u, mut plate) = (Array1::zeros(N * N), Assembly::square(N * N));
    step(&mut plate, &u);
    let mut assembled = plate.assemble()?;
    let mut system = LinearSystem::new(assembled.matrix().clone()).preconditioner("amg").prepare()?;
    let (mut iterations, mut time, start) = (0, Duration::ZERO, Instant::now());
    for n in 1..=SHOWN[2] {
        step(&mut plate, &u);
        assembled.update(&plate)?;
        system.update_values(assembled.matrix().values())?;
        let outcome = system.solve_into(assembled.b(), &mut u)?;
        assert!(outcome.converged(), "{}", outcome.reason);
        (iterations, time) = (iterations + outcome.iterations, time + outcome.time);
        if let Some(k) = SHOWN.iter().position(|shown| *shown == n) {
            draw_plate(&mut picture, 4.0 + 240.0 * k as f64, &u);
        }
    }
    println!("heat: {} unknowns, {} steps, {}", N * N, SHOWN[2], system.preconditioner().name);
    println!("{iterations} iterations, {time:.1?} of {:.1?} with assembly and set-up", start.elapsed());
    Ok(picture)
}

fn draw_plate(picture: &mut Picture, left: f64, u: &Array1<f64>) {
    let values = Array2::from_shape_fn((N, N), |(row, column)| u[row * N + column]);
    let levels: Vec<f64> = (1..10).map(|k| 0.1 * f64::from(k)).collect();
    let area = [left, 4.0, 232.0, 232.0];
    picture.field(area, &values, INFERNO, [0.0, 1.0], &levels);
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    picture::save("heat", &draw()?)
}
