//! Eigenvalues, one beside the other, and the residuals of the search.
use crate::spectra::Spectrum;
use lacuna::Complex64;
use lacuna::eigen::GeneralOutcome;
use lacuna_measure::axis::{counts, decades, power_of_ten};
use lacuna_measure::figure::{Anchor, BLUE, Figure, GRID, INK, ORANGE, shortened};
use lacuna_measure::quantity::thousands;

/// The size of the drawing, and the two areas in it: left, top, right, bottom.
const SIZE: [f64; 2] = [920.0, 440.0];
const VALUES: [f64; 4] = [96.0, 84.0, 440.0, 372.0];
const HISTORY: [f64; 4] = [556.0, 84.0, 890.0, 372.0];
/// Text sizes of a title, of labels, and of numbers.
const TITLE: f64 = 17.0;
const LABEL: f64 = 14.0;
const NUMBER: f64 = 13.0;
/// The largest number of points of a curve.
const POINTS: usize = 400;

/// Draws the values on the left; on the right the largest residual over its tolerance, by iteration or cycle.
pub(crate) fn spectrum(found: &Spectrum) -> Figure {
    let mut figure = Figure::new(SIZE[0], SIZE[1]);
    let title =
        format!("{}: {} {} eigenvalues", shortened(&found.matrix, 40), found.values.len(), found.which());
    figure.text([VALUES[0], 28.0], Anchor::Start, TITLE, INK, &title);
    let reason = found.outcome.reason.name().replace('_', " ");
    let said = format!("{reason}, {}", found.outcome.complete);
    figure.text([VALUES[0], 52.0], Anchor::Start, LABEL, INK, &shortened(&said, 90));
    values(&mut figure, found);
    history(&mut figure, &found.outcome.history);
    figure
}

/// Draws values in the complex plane on the left; on the right as [`spectrum`].
pub(crate) fn plane(title: &str, values: &[Complex64], outcome: &GeneralOutcome) -> Figure {
    let mut figure = Figure::new(SIZE[0], SIZE[1]);
    figure.text([VALUES[0], 28.0], Anchor::Start, TITLE, INK, &shortened(title, 80));
    let reason = outcome.reason.name().replace('_', " ");
    figure.text([VALUES[0], 52.0], Anchor::Start, LABEL, INK, &reason);
    let [left, top, right, bottom] = VALUES;
    // One scale for both axes.
    let bounds = |part: fn(&Complex64) -> f64| {
        let least = values.iter().map(part).fold(f64::INFINITY, f64::min);
        (least, values.iter().map(part).fold(f64::NEG_INFINITY, f64::max))
    };
    let [(west, east), (south, north)] = [bounds(|v| v.re), bounds(|v| v.im)];
    let spread = ((east - west) / (right - left)).max((north - south) / (bottom - top));
    let scale = if spread > 0.0 { 1.12 * spread } else { 1.0 / (right - left) };
    let x = |re: f64| 0.5 * (left + right) + (re - 0.5 * (west + east)) / scale;
    let y = |im: f64| 0.5 * (top + bottom) - (im - 0.5 * (south + north)) / scale;
    for part in 0..=4 {
        let at = f64::from(part) / 4.0;
        let (across, up) = (left + at * (right - left), bottom - at * (bottom - top));
        figure.line([across, top], [across, bottom], GRID, "");
        figure.line([left, up], [right, up], GRID, "");
        let re = 0.5 * (west + east) + (across - 0.5 * (left + right)) * scale;
        let im = 0.5 * (south + north) + (0.5 * (top + bottom) - up) * scale;
        figure.text([across, bottom + 23.0], Anchor::Middle, NUMBER, INK, &format!("{re:.3}"));
        figure.text([left - 9.0, up + 4.5], Anchor::End, NUMBER, INK, &format!("{im:.3}"));
    }
    for (value, met) in values.iter().zip(&outcome.converged) {
        let (across, up) = (x(value.re), y(value.im));
        let colour = if *met { BLUE } else { ORANGE };
        figure.line([across - 5.0, up], [across + 5.0, up], colour, "stroke-width=\"2\"");
        figure.line([across, up - 5.0], [across, up + 5.0], colour, "stroke-width=\"2\"");
    }
    figure.text([0.5 * (left + right), bottom + 48.0], Anchor::Middle, LABEL, INK, "real part");
    figure.text([left, top - 12.0], Anchor::Start, LABEL, INK, "imaginary part");
    history(&mut figure, &outcome.history);
    figure
}

fn values(figure: &mut Figure, found: &Spectrum) {
    let [left, top, right, bottom] = VALUES;
    let low = found.values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = found.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // What differs by no more than the values are known to is drawn as equal.
    let uncertain = 4.0 * found.outcome.bounds.iter().copied().filter(|b| b.is_finite()).fold(0.0, f64::max);
    let size = low.abs().max(high.abs());
    let room = match high - low > uncertain {
        true => 0.06 * (high - low),
        false if size > uncertain => 0.05 * size,
        false => 1.0,
    };
    let (low, high) = (low - room, high + room);
    let count = found.values.len();
    let x = |j: usize| left + (right - left) * (j as f64 + 0.5) / count as f64;
    let y = |v: f64| bottom - (bottom - top) * (v - low) / (high - low);
    for part in 0..=4 {
        let v = low + (high - low) * f64::from(part) / 4.0;
        figure.line([left, y(v)], [right, y(v)], GRID, "");
        figure.text([left - 9.0, y(v) + 4.5], Anchor::End, NUMBER, INK, &format!("{v:.4}"));
    }
    for (j, v) in found.values.iter().enumerate() {
        let colour = if found.outcome.converged[j] { BLUE } else { ORANGE };
        let half = (0.3 * (right - left) / count as f64).clamp(1.5, 14.0);
        figure.line([x(j) - half, y(*v)], [x(j) + half, y(*v)], colour, "stroke-width=\"3\"");
    }
    for j in counts(count as u64, 8).into_iter().filter(|j| *j > 0) {
        figure.text([x(j as usize - 1), bottom + 23.0], Anchor::Middle, NUMBER, INK, &thousands(j));
    }
    figure.text([0.5 * (left + right), bottom + 48.0], Anchor::Middle, LABEL, INK, "eigenvalue");
}

fn history(figure: &mut Figure, history: &[f64]) {
    let [left, top, right, bottom] = HISTORY;
    let logs: Vec<(usize, f64)> = history
        .iter()
        .enumerate()
        .filter(|(_, v)| **v > 0.0 && v.is_finite())
        .map(|(i, v)| (i, v.log10()))
        .collect();
    let (low, high) = logs.iter().fold((-1.0f64, 1.0f64), |(low, high), (_, v)| (low.min(*v), high.max(*v)));
    let (low, high) = (low.floor().max(-30.0) as i32, high.ceil().min(30.0) as i32);
    let last = history.len().saturating_sub(1).max(1);
    let x = |i: usize| left + (right - left) * i as f64 / last as f64;
    let y = |v: f64| bottom - (bottom - top) * ((v - f64::from(low)) / f64::from(high - low)).clamp(0.0, 1.0);
    for decade in decades(low, high, 8) {
        let at = y(decade.into());
        figure.line([left, at], [right, at], GRID, "");
        figure.text([left - 9.0, at + 4.5], Anchor::End, NUMBER, INK, &power_of_ten(decade));
    }
    figure.line([left, y(0.0)], [right, y(0.0)], ORANGE, "stroke-dasharray=\"6 4\"");
    let every = logs.len().div_ceil(POINTS).max(1);
    let points: Vec<[f64; 2]> = logs.iter().step_by(every).map(|(i, v)| [x(*i), y(*v)]).collect();
    for pair in points.windows(2) {
        figure.line(pair[0], pair[1], BLUE, "stroke-width=\"2\"");
    }
    for count in counts(last as u64, 6) {
        figure.text([x(count as usize), bottom + 23.0], Anchor::Middle, NUMBER, INK, &thousands(count));
    }
    figure.text([0.5 * (left + right), bottom + 48.0], Anchor::Middle, LABEL, INK, "iteration or cycle");
    figure.text([left, top - 12.0], Anchor::Start, LABEL, INK, "largest residual over its tolerance");
}
