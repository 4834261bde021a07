//! Value of an up-and-out call option: the right to buy a share, which lapses if the price reaches a barrier.
//! Solves the Black–Scholes equation backwards from expiry with implicit steps of one day, all with one
//! prepared matrix.
//!
//! `cargo run --release --example black_scholes [FILE]` draws the value over time, in months, and the price of the share.
mod picture;
use lacuna::ndarray::s;
use lacuna::prelude::*;
use picture::{Picture, VIRIDIS};
use std::time::{Duration, Instant};

/// Unknowns: prices between 0 and the barrier.
const N: usize = 700;
const BARRIER: f64 = 140.0;
const STRIKE: f64 = 100.0;
/// Interest rate and volatility per year.
const RATE: f64 = 0.03;
const VOLATILITY: f64 = 0.25;
/// Trading days, 252 a year.
const DAYS: usize = 504;

fn price(i: usize) -> f64 {
    BARRIER * (i + 1) as f64 / (N + 1) as f64
}

pub(crate) fn draw() -> Result<Picture> {
    // ∂V/∂t + σ²S²/2 ∂²V/∂S² + r S ∂V/∂S − r V = 0, backwards in time; V = 0 at a price of 0 and at the barrier.
    let (ds, dt) = (price(0), 1.0 / 252.0);
    let mut t = Triplets::new(N, N);
    for i in 0..N {
        let diffusion = 0.5 * (VOLATILITY * price(i) / ds).powi(2);
        let drift = 0.5 * RATE * price(i) / ds;
        t.push(i, i, 1.0 + dt * (2.0 * diffusion + RATE));
        if i > 0 {
            t.push(i, i - 1, -dt * (diffusion - drift));
        }
        if i + 1 < N {
            t.push(i, i + 1, -dt * (diffusion + drift));
        }
    }
    let mut value = Array1::from_shape_fn(N, |i| (price(i) - STRIKE).max(0.0));
    let mut surface = Array2::zeros((N, DAYS + 1));

    let start = Instant::now();
    let mut system = LinearSystem::new(t.to_csr()?).prepare()?;
    let (mut iterations, mut time) = (0, Duration::ZERO);
    for day in (0..=DAYS).rev() {
        surface.column_mut(day).assign(&value.slice(s![..;-1]));
        let b = value.clone();
        let outcome = system.solve_into(&b, &mut value)?;
        assert!(outcome.converged(), "{}", outcome.reason);
        (iterations, time) = (iterations + outcome.iterations, time + outcome.time);
    }
    println!("black_scholes: {N} prices, {DAYS} steps, {}", system.preconditioner().name);
    println!("{iterations} iterations, {time:.1?} of {:.1?} in all", start.elapsed());

    // Colours follow the square root of the value, since only one corner has large values.
    const SHOWN: f64 = 60.0;
    let mut picture = Picture::new(720, 400);
    let levels = [0.25_f64, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0].map(f64::sqrt);
    let rows = (N as f64 * (1.0 - SHOWN / BARRIER)) as usize;
    let shown = surface.slice(s![..rows, ..]).mapv(|value| value.max(0.0).sqrt());
    let [left, top, width, height] = [40.0, 8.0, 664.0, 364.0];
    picture.field([left, top, width, height], &shown, VIRIDIS, [0.0, 40f64.sqrt()], &levels);
    for share in [60, 80, 100, 120, 140] {
        let y = top + height * (BARRIER - f64::from(share)) / (BARRIER - SHOWN);
        picture.line(&[[left - 5.0, y], [left, y]], 1.0, [0.3; 3]);
        picture.text([left - 9.0, y + 4.0], 1.0, &format!("{share}"), [0.3; 3]);
    }
    for month in (0..=24).step_by(6) {
        let x = left + width * f64::from(month) / 24.0;
        picture.line(&[[x, top + height], [x, top + height + 5.0]], 1.0, [0.3; 3]);
        picture.text([x, top + height + 20.0], 0.5, &format!("{month}"), [0.3; 3]);
    }
    Ok(picture)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    picture::save("black_scholes", &draw()?)
}
