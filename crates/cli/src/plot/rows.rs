//! How many rows have how many entries.
use crate::info::Lengths;
use lacuna_measure::axis::counts;
use lacuna_measure::figure::{Anchor, BLUE, Figure, GRID, INK, shortened};
use lacuna_measure::quantity::thousands;

/// The size of the drawing and the plot area in it: left, top, right, bottom.
const SIZE: [f64; 2] = [760.0, 440.0];
const AREA: [f64; 4] = [96.0, 70.0, 730.0, 372.0];
const TITLE: f64 = 17.0;
const LABEL: f64 = 14.0;
const NUMBER: f64 = 13.0;

/// A bar for each class of lengths.
pub(crate) fn rows(name: &str, lengths: &Lengths) -> Figure {
    let [left, top, right, bottom] = AREA;
    let longest = lengths.classes.last().map_or(1, |class| class[1]).max(1);
    let most = lengths.classes.iter().map(|class| class[2]).max().unwrap_or(1).max(1);
    let x = |length: usize| left + (right - left) * length as f64 / (longest + 1) as f64;
    let y = |count: usize| bottom - (bottom - top) * count as f64 / most as f64;
    let mut figure = Figure::new(SIZE[0], SIZE[1]);
    figure.text([left, 28.0], Anchor::Start, TITLE, INK, &shortened(name, 60));
    let all: usize = lengths.classes.iter().map(|class| class[2]).sum();
    let subtitle = format!("{} rows by their number of entries", thousands(all as u64));
    figure.text([left, 52.0], Anchor::Start, LABEL, INK, &subtitle);
    for count in counts(most as u64, 6) {
        let at = y(count as usize);
        figure.line([left, at], [right, at], GRID, "");
        figure.text([left - 9.0, at + 4.5], Anchor::End, NUMBER, INK, &thousands(count));
    }
    for length in counts(longest as u64, 8) {
        let at = x(length as usize);
        figure.line([at, bottom], [at, bottom + 6.0], INK, "");
        figure.text([at, bottom + 23.0], Anchor::Middle, NUMBER, INK, &thousands(length));
    }
    for &[first, last, count] in lengths.classes.iter().filter(|class| class[2] > 0) {
        let (from, to) = (x(first), x(last + 1));
        figure.draw(format_args!(
            r#"<rect x="{from:.1}" y="{:.1}" width="{:.1}" height="{:.1}" fill="{BLUE}"/>"#,
            y(count),
            (to - from).max(1.0),
            bottom - y(count)
        ));
    }
    figure.line([left, bottom], [right, bottom], INK, "");
    figure.line([left, top], [left, bottom], INK, "");
    figure.text([(left + right) / 2.0, SIZE[1] - 16.0], Anchor::Middle, LABEL, INK, "entries in a row");
    figure.upright([24.0, (top + bottom) / 2.0], LABEL, "rows");
    figure
}
