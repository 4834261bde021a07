//! Can one hear the shape of a drum? These two drums sound alike (Gordon, Webb and Wolpert 1992): seven triangles each, put together in
//! different ways. The finite differences of both have the same eigenvalues, too.
//!
//! `cargo run --release --example drum [FILE]` draws the first six modes of both.
mod picture;
use lacuna::eigen::EigenProblem;
use lacuna::prelude::*;
use picture::{BALANCE, Picture};
use std::collections::HashMap;
use std::time::Instant;

/// Points of the grid along the short side of a triangle.
const STEPS: i32 = 64;
const MODES: usize = 6;
/// The side of a panel of the picture, and the distance of panels.
const SIDE: f64 = 104.0;
const GAP: f64 = 8.0;

/// The two drums: halves of unit squares, by the left lower corner of the square and the corner that is cut off: (0, 0), (1, 0), (0, 1)
/// or (1, 1). Each is the mirror image of another in a common side.
const DRUMS: [[[i32; 3]; 7]; 2] = [
    [[0, 0, 3], [0, 0, 0], [0, 1, 2], [0, 1, 1], [0, 2, 3], [-1, 2, 2], [1, 0, 1]],
    [[0, 0, 3], [0, 0, 0], [-1, 0, 2], [-1, -1, 0], [0, 1, 2], [-1, -1, 3], [1, 0, 1]],
];
/// Points around one that can move, all of which belong to the drum.
const AROUND: [[f64; 2]; 8] =
    [[3., 1.], [1., 3.], [-1., 3.], [-3., 1.], [-3., -1.], [-1., -3.], [1., -3.], [3., -1.]];

/// Whether a point, in steps, belongs to half a square.
fn lies_in([x, y, cut]: [i32; 3], at: [f64; 2]) -> bool {
    let [u, v] = [at[0] / f64::from(STEPS) - f64::from(x), at[1] / f64::from(STEPS) - f64::from(y)];
    let here = [u + v >= 1.0, v >= u, v <= u, u + v <= 1.0][cut as usize];
    here && [u, v].iter().all(|w| (0.0..=1.0).contains(w))
}

/// The drum as a grid of points that can move: all around them belongs to it.
struct Drum {
    points: HashMap<[i32; 2], usize>,
    /// The corner with the least coordinates, and the longer side, in steps.
    corner: [i32; 2],
    side: i32,
}

impl Drum {
    fn new(halves: &[[i32; 3]; 7]) -> Self {
        let least = [0, 1].map(|axis| halves.iter().map(|half| half[axis]).min().unwrap_or(0) * STEPS);
        let most = [0, 1].map(|axis| halves.iter().map(|half| half[axis] + 1).max().unwrap_or(0) * STEPS);
        let mut points = HashMap::new();
        for (x, y) in (least[0]..most[0]).flat_map(|x| (least[1]..most[1]).map(move |y| (x, y))) {
            let inside = |[dx, dy]: [f64; 2]| {
                let at = [f64::from(x) + 0.1 * dx, f64::from(y) + 0.1 * dy];
                halves.iter().any(|half| lies_in(*half, at))
            };
            if AROUND.into_iter().all(inside) {
                points.insert([x, y], points.len());
            }
        }
        Drum { points, corner: least, side: (most[0] - least[0]).max(most[1] - least[1]) }
    }

    /// −Δ by differences of five points, fixed at the border; lengths in short sides of a triangle.
    fn matrix(&self) -> Result<Csr<f64>> {
        let n = self.points.len();
        let (mut t, scale) = (Triplets::with_capacity(n, n, 5 * n), f64::from(STEPS * STEPS));
        for ([x, y], &i) in &self.points {
            t.push(i, i, 4.0 * scale);
            for beside in [[x - 1, *y], [x + 1, *y], [*x, y - 1], [*x, y + 1]] {
                if let Some(&j) = self.points.get(&beside) {
                    t.push(i, j, -scale);
                }
            }
        }
        t.to_csr()
    }
}

pub(crate) fn draw() -> Result<Picture> {
    let mut picture = Picture::new(680, 260);
    let mut spectra = Vec::new();
    for (row, halves) in DRUMS.iter().enumerate() {
        let drum = Drum::new(halves);
        let start = Instant::now();
        let found = EigenProblem::new(drum.matrix()?).count(MODES).solve(&default_device()?)?;
        println!(
            "drum {row}: {} points, {}, {:.0?}",
            drum.points.len(),
            found.outcome.complete,
            start.elapsed()
        );
        for (j, mode) in found.vectors.iter().enumerate() {
            let most = mode.iter().fold(0.0f64, |most, v| most.max(v.abs()));
            let left = 12.0 + (SIDE + GAP) * j as f64;
            let top = 12.0 + (SIDE + 20.0) * row as f64;
            let colour = |u: f64, v: f64| {
                let [x, y] = [u, 1.0 - v].map(|at| (at * f64::from(drum.side)).round() as i32);
                let at = drum.points.get(&[drum.corner[0] + x, drum.corner[1] + y])?;
                Some(BALANCE.at(0.5 + 0.5 * mode[*at] / most))
            };
            picture.paint([left, top, SIDE, SIDE], colour);
            picture.text(
                [left + 0.5 * SIDE, top + SIDE + 12.0],
                0.5,
                &format!("{:.3}", found.values[j].sqrt()),
                [0.2; 3],
            );
        }
        spectra.push(found.values);
    }
    for (one, other) in spectra[0].iter().zip(&spectra[1]) {
        println!("{one:.10} {other:.10}");
    }
    Ok(picture)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    picture::save("drum", &draw()?)
}
