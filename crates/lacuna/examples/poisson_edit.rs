//! A piece of one picture cloned into another without a seam (Pérez, Gangnet and Blake 2003). Inside the piece, differences between
//! neighbouring pixels are those of the source; on its edge, the colours are those of the target. That is a Poisson equation with three
//! right-hand sides, red, green and blue: `Prepared::solve_columns`. Single precision is enough.
//!
//! `cargo run --release --example poisson_edit [FILE]` draws the source, the piece pasted, and the piece cloned.
mod picture;
use lacuna::prelude::*;
use picture::{Colour, Picture, mix};

/// Pixels along a side.
const N: usize = 464;
/// Centre of the piece in the source, its shift to the right and up in pixels, and its radii.
const CENTRE: [f64; 2] = [0.50, 0.44];
const MOVED: [usize; 2] = [46, 74];
const RADII: [f64; 2] = [0.24, 0.265];

/// A balloon in a pale sky.
fn balloon(x: f64, y: f64) -> Colour {
    let sky = mix([0.43, 0.52, 0.64], [0.66, 0.68, 0.72], y + 0.06 * (7.0 * x + 3.0 * (4.0 * y).sin()).sin());
    let (dx, dy) = (x - 0.5, y - 0.38);
    // Round at the top, narrowing to the basket below.
    let half =
        if dy < 0.0 { (0.034 - dy * dy).max(0.0).sqrt() } else { 0.1844 * (1.0 - (dy / 0.29).powf(1.6)) };
    if dy < 0.225 && dx.abs() < half {
        let across = dx / half;
        let gore = ((across.asin() / std::f64::consts::PI + 0.5) * 8.0) as usize;
        let cloth =
            [[0.86, 0.24, 0.20], [0.97, 0.93, 0.85], [0.95, 0.70, 0.22], [0.97, 0.93, 0.85]][gore % 4];
        return mix(
            cloth,
            [0.25, 0.12, 0.2],
            0.45 * (0.5 + 0.5 * across).powi(2) + 0.25 * (dy + 0.1).max(0.0),
        );
    }
    let basket = (0.255..0.295).contains(&dy) && dx.abs() < 0.025;
    let rope = (0.2..0.255).contains(&dy) && (dx.abs() - 0.02).abs() < 0.0035;
    if basket || rope { [0.36, 0.24, 0.16] } else { sky }
}

/// Mountains and a lake at dusk.
fn dusk(x: f64, y: f64) -> Colour {
    let ridge = |base: f64, height: f64, k: f64| {
        base - height * ((k * x).sin() * 0.5 + (2.3 * k * x + 1.0).sin() * 0.3 + (5.1 * k * x).sin() * 0.12)
    };
    let shore = 0.80;
    let mirrored = if y > shore { shore - 1.4 * (y - shore) } else { y };
    let sky = match mirrored {
        t if t < 0.4 => mix([0.11, 0.14, 0.34], [0.42, 0.27, 0.50], t / 0.4),
        t => mix([0.42, 0.27, 0.50], [0.98, 0.62, 0.38], ((t - 0.4) / 0.32).min(1.0)),
    };
    let land = match mirrored {
        t if t > ridge(0.74, 0.05, 9.0) => [0.13, 0.10, 0.20],
        t if t > ridge(0.64, 0.09, 5.0) => mix([0.30, 0.20, 0.38], [0.62, 0.38, 0.42], (t - 0.55) / 0.2),
        _ => sky,
    };
    let ripple = 0.5 + 0.5 * (260.0 * (y - shore).max(0.0).sqrt() + 5.0 * (9.0 * x).sin()).sin();
    if y > shore { mix(land, [0.10, 0.10, 0.22], 0.35 + 0.12 * ripple) } else { land }
}

/// The pixels of a picture, each the mean of nine samples.
fn pixels(picture: impl Fn(f64, f64) -> Colour) -> Array2<Colour> {
    let place = |third: usize| (third as f64 + 0.5) / (3 * N) as f64;
    Array2::from_shape_fn((N, N), |(row, column)| {
        let colours = (0..9).map(|k| picture(place(3 * column + k % 3), place(3 * row + k / 3)));
        colours.fold([0.0; 3], |sum, colour| [0, 1, 2].map(|c| sum[c] + colour[c] / 9.0))
    })
}

pub(crate) fn draw() -> Result<Picture> {
    let (source, target) = (pixels(balloon), pixels(dusk));
    let from = |[row, column]: [usize; 2]| source[[row + MOVED[1], column - MOVED[0]]];
    let inside = |[row, column]: [usize; 2]| {
        let x = (column as f64 + 0.5 - MOVED[0] as f64) / N as f64 - CENTRE[0];
        let y = (row as f64 + 0.5 + MOVED[1] as f64) / N as f64 - CENTRE[1];
        (x / RADII[0]).hypot(y / RADII[1]) < 1.0
    };
    let all = (0..N * N).map(|k| [k / N, k % N]);
    let piece: Vec<_> = all.filter(|pixel| inside(*pixel)).collect();
    let mut unknown = Array2::from_elem((N, N), None);
    piece.iter().enumerate().for_each(|(i, pixel)| unknown[*pixel] = Some(i));

    let mut t = Triplets::new(piece.len(), piece.len());
    let mut b = Array2::<f32>::zeros((piece.len(), 3));
    for (i, [row, column]) in piece.iter().copied().enumerate() {
        t.push(i, i, 4.0);
        for other in [[row - 1, column], [row + 1, column], [row, column - 1], [row, column + 1]] {
            let (here, there) = (from([row, column]), from(other));
            (0..3).for_each(|c| b[[i, c]] += (here[c] - there[c]) as f32);
            match unknown[other] {
                Some(j) => t.push(i, j, -1.0),
                None => (0..3).for_each(|c| b[[i, c]] += target[other][c] as f32),
            }
        }
    }
    let mut x = Array2::zeros(b.raw_dim());
    let mut system = LinearSystem::new(t.to_csr()?).prepare()?;
    let outcomes = system.solve_columns(b.view(), x.view_mut())?;
    println!("poisson_edit: {} unknowns, 3 right-hand sides, {}", piece.len(), system.method().name);
    for (name, outcome) in ["red", "green", "blue"].iter().zip(&outcomes) {
        println!("{name:5} {} iterations, {:.1?}, {}", outcome.iterations, outcome.time, outcome.reason);
    }

    let (mut pasted, mut cloned) = (target.clone(), target);
    for (pixel, x) in piece.iter().zip(x.rows()) {
        pasted[*pixel] = from(*pixel);
        cloned[*pixel] = [0, 1, 2].map(|c| f64::from(x[c]).clamp(0.0, 1.0));
    }
    let mut picture = Picture::new(720, 240);
    for (k, shown) in [source.clone(), pasted, cloned].iter().enumerate() {
        let pixel = |t: f64| ((t * N as f64) as usize).min(N - 1);
        let area = [4.0 + 240.0 * k as f64, 4.0, 232.0, 232.0];
        picture.paint(area, |x, y| Some(shown[[pixel(y), pixel(x)]]));
    }
    Ok(picture)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    picture::save("poisson_edit", &draw()?)
}
