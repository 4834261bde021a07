//! The residual over the iterations.
use crate::report::{Report, before};
use lacuna::Norm;
use lacuna_measure::axis::{counts, decades, power_of_ten};
use lacuna_measure::figure::{Anchor, BLUE, Figure, GRID, INK, ORANGE, shortened};
use lacuna_measure::quantity::{relative, thousands};

/// The size of the drawing and the plot area in it: left, top, right, bottom.
const SIZE: [f64; 2] = [760.0, 480.0];
const AREA: [f64; 4] = [86.0, 70.0, 730.0, 412.0];
/// Text sizes of a title, of labels, and of numbers.
const TITLE: f64 = 17.0;
const LABEL: f64 = 14.0;
const NUMBER: f64 = 13.0;
/// The largest number of columns into which iterations are grouped, and of decades shown.
const COLUMNS: usize = 640;
const MOST_DECADES: i32 = 40;

/// Draws the history of a solve on a logarithmic scale, with the tolerance as a dashed line.
pub(crate) fn convergence(report: &Report) -> Figure {
    let outcome = &report.outcome;
    let points: Vec<(u64, f64)> = (0..)
        .map(|k| k * outcome.history_stride)
        .zip(outcome.history.iter().copied())
        .filter(|(_, r)| r.is_finite() && *r > 0.0)
        .map(|(k, r)| (k, r.log10()))
        .collect();
    let of_residuals = report.stop.norm == Norm::Two;
    let target = Some(report.stop.rtol).filter(|t| of_residuals && *t > 0.0 && *t < 1e4).map(f64::log10);
    let inside = points.iter().map(|p| p.1).chain(target);
    let (low, high) = inside.fold((0.0f64, 0.0f64), |(low, high), r| (low.min(r), high.max(r)));
    let high = high.ceil() as i32;
    let low = ((low - 0.15).floor() as i32).max(high - MOST_DECADES).min(high - 1);
    let last = outcome.iterations.max(1);

    let [left, top, right, bottom] = AREA;
    let x = |k: u64| left + (right - left) * k as f64 / last as f64;
    let y = |r: f64| bottom - (bottom - top) * ((r - f64::from(low)) / f64::from(high - low)).clamp(0.0, 1.0);

    let mut figure = Figure::new(SIZE[0], SIZE[1]);
    let name = shortened(&report.matrix, 40);
    let title = format!("{name}, {}, {}", report.by, report.kind.name());
    figure.text([left, 28.0], Anchor::Start, TITLE, INK, &title);
    let iterations = thousands(outcome.iterations);
    let before =
        before(outcome).map_or(String::new(), |before| format!("; after {}", shortened(&before, 40)));
    let ended = format!(
        "{} after {iterations} iterations, true residual {}{before}",
        outcome.reason.name().replace('_', " "),
        relative(outcome.true_residual)
    );
    figure.text([left, 52.0], Anchor::Start, LABEL, INK, &ended);

    for decade in decades(low, high, 10) {
        let at = y(decade.into());
        figure.line([left, at], [right, at], GRID, "");
        figure.text([left - 9.0, at + 4.5], Anchor::End, NUMBER, INK, &power_of_ten(decade));
    }
    for count in counts(last, 8) {
        let at = x(count);
        figure.line([at, bottom], [at, bottom + 6.0], INK, "");
        figure.text([at, bottom + 23.0], Anchor::Middle, NUMBER, INK, &thousands(count));
    }
    figure.line([left, bottom], [right, bottom], INK, "");
    figure.line([left, top], [left, bottom], INK, "");
    figure.text([(left + right) / 2.0, SIZE[1] - 16.0], Anchor::Middle, LABEL, INK, "iteration");
    figure.upright([24.0, (top + bottom) / 2.0], LABEL, "relative residual  ‖r‖ / ‖b‖");

    if let Some(target) = target {
        let at = y(target);
        figure.line([left, at], [right, at], ORANGE, r#"stroke-width="1.8" stroke-dasharray="7 5""#);
        let words = format!("tolerance {:e}", report.stop.rtol);
        figure.text([left + 10.0, at - 7.0], Anchor::Start, NUMBER, ORANGE, &words);
    }
    let shown: Vec<_> = points.into_iter().filter(|p| p.1 >= f64::from(low)).collect();
    if shown.is_empty() {
        let middle = [(left + right) / 2.0, (top + bottom) / 2.0];
        figure.text(middle, Anchor::Middle, LABEL, INK, "the residual is 0, below any logarithmic scale");
    }
    curve(&mut figure, &shown, x, y);
    figure
}

/// Joins the points; if they are closer than pixels, draws the range of each column of pixels.
fn curve(figure: &mut Figure, points: &[(u64, f64)], x: impl Fn(u64) -> f64, y: impl Fn(f64) -> f64) {
    let run = points.len().div_ceil(COLUMNS).max(1);
    let mut drawn = String::new();
    for column in points.chunks(run) {
        let by_residual = |a: &&(u64, f64), b: &&(u64, f64)| a.1.total_cmp(&b.1);
        let ends = [
            column.first(),
            column.iter().min_by(by_residual),
            column.iter().max_by(by_residual),
            column.last(),
        ];
        let mut kept: Vec<_> = ends.into_iter().flatten().collect();
        kept.sort_by_key(|p| p.0);
        kept.dedup_by_key(|p| p.0);
        for (k, r) in kept {
            drawn += &format!("{:.1},{:.1} ", x(*k), y(*r));
        }
    }
    figure.draw(format_args!(
        r#"<polyline points="{}" fill="none" stroke="{BLUE}" stroke-width="2" stroke-linejoin="round" stroke-linecap="round"/>"#,
        drawn.trim_end()
    ));
    if points.len() <= 40 {
        for (k, r) in points {
            figure.draw(format_args!(
                r#"<circle cx="{:.1}" cy="{:.1}" r="3.2" fill="{BLUE}"/>"#,
                x(*k),
                y(*r)
            ));
        }
    }
}
