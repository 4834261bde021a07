//! Drawing for the examples: colour maps with isolines, lines, triangles and labels. Pictures are drawn large and
//! averaged, which smooths all edges.
#![allow(dead_code, unused_imports)] // each example uses a part of it
mod colours;
mod mesh;
mod text;

pub(crate) use colours::{BALANCE, Colour, GREY, INFERNO, LINES, Map, VIRIDIS, mix};
use lacuna::prelude::*;
pub(crate) use mesh::Mesh;
use std::error::Error;

/// Drawn pixels per unit of length. The gallery averages all of them, a file half of them, along each axis.
const SCALE: usize = 4;

/// A point: x to the right, y down.
pub(crate) type Point = [f64; 2];

/// A rectangle: left, top, width, height.
pub(crate) type Area = [f64; 4];

pub(crate) struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<Colour>,
}

/// Writes the picture to the file named by the first argument, or to `NAME.png`.
pub(crate) fn save(name: &str, picture: &Picture) -> std::result::Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or(format!("{name}.png"));
    std::fs::write(&path, picture.png()?)?;
    println!("picture: {path}");
    Ok(())
}

impl Picture {
    pub(crate) fn new(width: usize, height: usize) -> Self {
        Picture { width, height, pixels: vec![[1.0; 3]; width * height * SCALE * SCALE] }
    }

    /// Sets every pixel of `area` to the `colour` at its relative position, from 0 to 1.
    pub(crate) fn paint(&mut self, [x, y, w, h]: Area, colour: impl Fn(f64, f64) -> Option<Colour>) {
        self.each([[x, y], [x + w, y + h]], |px, py| colour((px - x) / w, (py - y) / h));
    }

    /// Values as colours of `map`, whose ends are `range`, with isolines at `levels`. The first row is on top.
    pub(crate) fn field(
        &mut self,
        area: Area,
        values: &Array2<f64>,
        map: Map,
        range: [f64; 2],
        levels: &[f64],
    ) {
        let step = [1.0 / (area[2] * SCALE as f64), 1.0 / (area[3] * SCALE as f64)];
        self.paint(area, |x, y| {
            let v = sample(values, x, y);
            let colour = map.at((v - range[0]) / (range[1] - range[0]));
            // The distance to an isoline, in drawn pixels, is the difference in value divided by the slope.
            let across = sample(values, x + step[0], y) - sample(values, x - step[0], y);
            let down = sample(values, x, y + step[1]) - sample(values, x, y - step[1]);
            let slope = across.hypot(down) / 2.0;
            let on_line = levels.iter().any(|level| (v - level).abs() < 0.5 * SCALE as f64 * slope);
            Some(if on_line { mix(colour, map.line, 0.5) } else { colour })
        });
    }

    /// A line through `points`.
    pub(crate) fn line(&mut self, points: &[Point], width: f64, colour: Colour) {
        let r = width / 2.0;
        for ends in points.windows(2) {
            let (p, q) = (ends[0], ends[1]);
            let along = [q[0] - p[0], q[1] - p[1]];
            let square = (along[0] * along[0] + along[1] * along[1]).max(1e-12);
            let low = [p[0].min(q[0]) - r, p[1].min(q[1]) - r];
            let high = [p[0].max(q[0]) + r, p[1].max(q[1]) + r];
            self.each([low, high], |x, y| {
                let t = ((x - p[0]) * along[0] + (y - p[1]) * along[1]) / square;
                let t = t.clamp(0.0, 1.0);
                let distance = (x - p[0] - t * along[0]).hypot(y - p[1] - t * along[1]);
                (distance <= r).then_some(colour)
            });
        }
    }

    /// A triangle. `colour` takes barycentric coordinates.
    pub(crate) fn triangle(&mut self, [a, b, c]: [Point; 3], colour: impl Fn([f64; 3]) -> Colour) {
        let cross =
            |p: Point, q: Point, r: Point| (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]);
        let area = cross(a, b, c);
        let low = [a[0].min(b[0]).min(c[0]), a[1].min(b[1]).min(c[1])];
        let high = [a[0].max(b[0]).max(c[0]), a[1].max(b[1]).max(c[1])];
        self.each([low, high], |x, y| {
            let p = [x, y];
            let weights = [cross(p, b, c) / area, cross(p, c, a) / area, cross(p, a, b) / area];
            weights.iter().all(|w| *w >= 0.0).then(|| colour(weights))
        });
    }

    /// Lower-case letters and digits. `at` is on the baseline: the left end for `align` 0, the middle for
    /// 0.5, the right end for 1.
    pub(crate) fn text(&mut self, at: Point, align: f64, words: &str, colour: Colour) {
        let left = at[0] - align * text::width(words);
        text::strokes([left, at[1]], words).iter().for_each(|stroke| self.line(stroke, 1.2, colour));
    }

    /// A PNG file with two pixels per unit of length.
    pub(crate) fn png(&self) -> std::result::Result<Vec<u8>, png::EncodingError> {
        self.encode(SCALE / 2, 255.0, png::AdaptiveFilterType::Adaptive)
    }

    /// A small PNG file for the gallery: one pixel per unit of length, with `shades` of red, green and blue
    /// in addition to black.
    pub(crate) fn small_png(&self, shades: f64) -> std::result::Result<Vec<u8>, png::EncodingError> {
        self.encode(SCALE, shades, png::AdaptiveFilterType::NonAdaptive)
    }

    /// Averages `size` by `size` drawn pixels.
    fn encode(
        &self,
        size: usize,
        shades: f64,
        filter: png::AdaptiveFilterType,
    ) -> std::result::Result<Vec<u8>, png::EncodingError> {
        let [width, height] = [self.width, self.height].map(|length| length * SCALE / size);
        let byte = |sum: f64| ((sum / (size * size) as f64 * shades).round() * 255.0 / shades).round() as u8;
        let mut data = Vec::with_capacity(width * height * 3);
        for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
            let rows = (0..size).map(|row| (y * size + row) * self.width * SCALE + x * size);
            let drawn = rows.flat_map(|start| &self.pixels[start..start + size]);
            let sum = drawn.fold([0.0; 3], |sum, pixel| [0, 1, 2].map(|c| sum[c] + pixel[c]));
            data.extend(sum.map(byte));
        }
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(if size == SCALE {
            png::Compression::Best
        } else {
            png::Compression::Default
        });
        encoder.set_filter(png::FilterType::NoFilter);
        encoder.set_adaptive_filter(filter);
        encoder.write_header()?.write_image_data(&data)?;
        Ok(bytes)
    }

    /// Sets the drawn pixels between two corners to `colour`, unless that is `None`.
    fn each(&mut self, [low, high]: [Point; 2], colour: impl Fn(f64, f64) -> Option<Colour>) {
        let scale = SCALE as f64;
        let first = |v: f64| (v * scale).floor().max(0.0) as usize;
        let last = |v: f64, size: usize| ((v * scale).ceil().max(0.0) as usize).min(size * SCALE);
        for row in first(low[1])..last(high[1], self.height) {
            for column in first(low[0])..last(high[0], self.width) {
                let at = [(column as f64 + 0.5) / scale, (row as f64 + 0.5) / scale];
                if let Some(colour) = colour(at[0], at[1]) {
                    self.pixels[row * self.width * SCALE + column] = colour;
                }
            }
        }
    }
}

/// The value at `x`, `y` from 0 to 1, by bilinear interpolation between the centres of cells.
pub(crate) fn sample(values: &Array2<f64>, x: f64, y: f64) -> f64 {
    let place = |t: f64, n: usize| {
        let t = (t * n as f64 - 0.5).clamp(0.0, (n - 1) as f64);
        let low = (t as usize).min(n.saturating_sub(2));
        (low, (low + 1).min(n - 1), t - low as f64)
    };
    let (rows, columns) = values.dim();
    let ((j, below, v), (i, right, u)) = (place(y, rows), place(x, columns));
    let between = |row: usize| values[[row, i]] * (1.0 - u) + values[[row, right]] * u;
    between(j) * (1.0 - v) + between(below) * v
}
