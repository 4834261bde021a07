//! The positions of the entries of a matrix.
use lacuna::formats;
use lacuna::{Csr, Scalar};
use lacuna_measure::axis::counts;
use lacuna_measure::figure::{Anchor, Figure, INK, shortened};
use lacuna_measure::quantity::thousands;

/// The longer side of the picture, the minimum of the shorter side, and the cells along the longer one.
const SIDE: f64 = 520.0;
const NARROW: f64 = 40.0;
const CELLS: usize = 260;
/// Margins: left, top, right, bottom.
const MARGINS: [f64; 4] = [96.0, 124.0, 40.0, 64.0];
const LEAST_WIDTH: f64 = 480.0;
const TITLE: f64 = 17.0;
const LABEL: f64 = 14.0;
const NUMBER: f64 = 13.0;
/// Shades from few entries in a cell to many: one hue, so that lightness alone matters.
const SHADES: [&str; 4] = ["#8fc1e3", "#4a98c9", "#1764ab", "#08306b"];

/// Draws the entries of a matrix; counts them in cells if the matrix is larger than the picture.
pub(crate) fn spy<T: Scalar>(name: &str, a: &Csr<T>) -> Figure {
    let (rows, cols) = (a.rows(), a.cols());
    let longer = rows.max(cols).max(1) as f64;
    let side = |n: usize| (SIDE * n as f64 / longer).max(NARROW);
    let (width, height) = (side(cols), side(rows));
    let cells = |n: usize, length: f64| n.min(((CELLS as f64 * length / SIDE) as usize).max(1));
    let (across, down) = (cells(cols, width), cells(rows, height));
    let counted = formats::spy(a, across, down);
    let most = counted.iter().copied().max().unwrap_or(0);

    let [left, top, right, bottom] = MARGINS;
    let mut figure = Figure::new((left + width + right).max(LEAST_WIDTH), top + height + bottom);
    figure.text([left, 28.0], Anchor::Start, TITLE, INK, &shortened(name, 42));
    let [r, c, nnz] = [rows, cols, a.nnz()].map(|n| thousands(n as u64));
    figure.text([left, 52.0], Anchor::Start, LABEL, INK, &format!("{r} × {c}, {nnz} entries"));

    let cell = [width / across.max(1) as f64, height / down.max(1) as f64];
    for (level, shade) in SHADES.into_iter().enumerate() {
        let mut path = String::new();
        for (y, line) in counted.chunks(across.max(1)).enumerate() {
            let mut x = 0;
            for run in line.chunk_by(|a, b| shade_of(*a, most) == shade_of(*b, most)) {
                if shade_of(run[0], most) == Some(level) {
                    let (x, y) = (left + x as f64 * cell[0], top + y as f64 * cell[1]);
                    let length = run.len() as f64 * cell[0];
                    path += &format!("M{x:.2} {y:.2}h{length:.2}v{:.2}h-{length:.2}z", cell[1]);
                }
                x += run.len();
            }
        }
        if !path.is_empty() {
            figure.draw(format_args!(r#"<path d="{path}" fill="{shade}"/>"#));
        }
    }
    figure.draw(format_args!(
        r#"<rect x="{left}" y="{top}" width="{width:.1}" height="{height:.1}" fill="none" stroke="{INK}"/>"#
    ));
    let ticks = |n: usize, length: f64, pixels: f64| counts(n as u64, ((length / pixels) as u64).clamp(1, 8));
    for column in ticks(cols, width, 90.0) {
        let at = left + width * column as f64 / cols.max(1) as f64;
        figure.line([at, top], [at, top - 6.0], INK, "");
        figure.text([at, top - 11.0], Anchor::Middle, NUMBER, INK, &thousands(column));
    }
    for row in ticks(rows, height, 50.0) {
        let at = top + height * row as f64 / rows.max(1) as f64;
        figure.line([left - 6.0, at], [left, at], INK, "");
        figure.text([left - 10.0, at + 4.5], Anchor::End, NUMBER, INK, &thousands(row));
    }
    figure.upright([20.0, top + height / 2.0], LABEL, "row");
    figure.text([left + width / 2.0, top - 36.0], Anchor::Middle, LABEL, INK, "column");
    legend(&mut figure, most, across < cols || down < rows, top + height + 36.0);
    figure
}

/// The shade of a cell by the logarithm of its count; `None` for an empty cell.
fn shade_of(count: u32, most: u32) -> Option<usize> {
    match (count, most) {
        (0, _) => None,
        (_, 0 | 1) => Some(SHADES.len() - 1),
        (count, most) => {
            let part = f64::from(count).ln() / f64::from(most).ln();
            Some(((part * SHADES.len() as f64) as usize).min(SHADES.len() - 1))
        }
    }
}

/// The legend of the shades, needed if cells hold more than one entry.
fn legend(figure: &mut Figure, most: u32, counted: bool, y: f64) {
    if !counted || most < 2 {
        return;
    }
    let start = MARGINS[0] + 144.0;
    figure.text([start - 8.0, y + 5.0], Anchor::End, NUMBER, INK, "entries in a cell: 1");
    for (k, shade) in SHADES.into_iter().enumerate() {
        let x = start + 30.0 * k as f64;
        figure.draw(format_args!(
            r#"<rect x="{x:.1}" y="{:.1}" width="30" height="14" fill="{shade}"/>"#,
            y - 7.0
        ));
    }
    let end = start + 30.0 * SHADES.len() as f64 + 8.0;
    figure.text([end, y + 5.0], Anchor::Start, NUMBER, INK, &thousands(most.into()));
}
