//! Draws a graph from its edges alone, and cuts it in two: by the eigenvectors of its Laplacian `L = D − A` with the second and the third
//! smallest eigenvalue (Fiedler 1973, Hall 1970). The sign of the second vector says to which part a point belongs.
//!
//! `cargo run --release --example spectral [FILE]` draws the graph where its points were, and where the eigenvectors put them.
mod picture;
use lacuna::eigen::EigenProblem;
use lacuna::prelude::*;
use picture::{LINES, Picture, Point};
use std::collections::BTreeMap;
use std::time::Instant;

/// Points along the picture.
const STEPS: i32 = 90;
/// Discs of the shape, and those that are cut out of it: centre and radius.
const DISCS: [[f64; 3]; 3] = [[0.27, 0.58, 0.26], [0.68, 0.36, 0.29], [0.72, 0.8, 0.17]];
const HOLES: [[f64; 3]; 3] = [[0.24, 0.6, 0.11], [0.6, 0.3, 0.09], [0.82, 0.46, 0.07]];

/// Whether a point belongs to the shape.
fn belongs(x: f64, y: f64) -> bool {
    let within = |[cx, cy, radius]: [f64; 3]| (x - cx).hypot(y - cy) <= radius;
    DISCS.into_iter().any(within) && !HOLES.into_iter().any(within)
}

pub(crate) fn draw() -> Result<Picture> {
    let mut points: BTreeMap<[i32; 2], usize> = BTreeMap::new();
    let mut places: Vec<Point> = Vec::new();
    for (i, j) in (0..STEPS).flat_map(|i| (0..STEPS).map(move |j| (i, j))) {
        let [x, y] = [i, j].map(|k| f64::from(k) / f64::from(STEPS - 1));
        if belongs(x, y) {
            points.insert([i, j], places.len());
            places.push([x, y]);
        }
    }
    // Edges to the right, down, and along one diagonal.
    let mut edges = Vec::new();
    for ([i, j], from) in &points {
        let beside = [[i + 1, *j], [*i, j + 1], [i + 1, j + 1]];
        edges.extend(beside.iter().filter_map(|at| points.get(at)).map(|to| [*from, *to]));
    }
    let mut laplacian = Triplets::<f64>::new(places.len(), places.len());
    for [a, b] in edges.iter().copied() {
        laplacian.extend([(a, a, 1.0), (b, b, 1.0), (a, b, -1.0), (b, a, -1.0)]);
    }
    let start = Instant::now();
    let found = EigenProblem::new(laplacian.to_csr()?).count(3).solve(&default_device()?)?;
    let [second, third] = [&found.vectors[1], &found.vectors[2]];
    let cut = edges.iter().filter(|[a, b]| second[*a].is_sign_negative() != second[*b].is_sign_negative());
    println!("spectral: {} points, {} edges, {}", places.len(), edges.len(), found.outcome.complete);
    println!("{:.2e} and {:.2e}, {:.0?}", found.values[1], found.values[2], start.elapsed());
    println!("the cut goes through {} edges", cut.count());

    // Both drawings fill a square.
    let most = |vector: &[f64]| vector.iter().fold(0.0f64, |most, v| most.max(v.abs()));
    let scales = [most(second), most(third)];
    let drawn = |k: usize| [0.5 + 0.48 * second[k] / scales[0], 0.5 + 0.48 * third[k] / scales[1]];
    let mut picture = Picture::new(700, 350);
    for (left, place) in [(0.0, &(|k: usize| places[k]) as &dyn Fn(usize) -> Point), (350.0, &drawn)] {
        for [a, b] in &edges {
            let part = [*a, *b].map(|k| second[k].is_sign_negative());
            let colour = if part[0] == part[1] { LINES[usize::from(part[0])] } else { [0.0; 3] };
            let ends = [*a, *b].map(|k| place(k).map(|c| 15.0 + 320.0 * c));
            let width = if part[0] == part[1] { 0.7 } else { 2.0 };
            picture.line(&ends.map(|[x, y]| [left + x, y]), width, colour);
        }
    }
    Ok(picture)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    picture::save("spectral", &draw()?)
}
