//! The residuals of several trials over time.
use crate::searched::{Searched, way};
use lacuna_measure::axis::{decades, power_of_ten};
use lacuna_measure::figure::{Anchor, BLUE, Figure, GRID, INK, ORANGE, shortened};
use lacuna_measure::quantity::duration;

/// The size of the drawing and the plot area in it: left, top, right, bottom.
const SIZE: [f64; 2] = [960.0, 520.0];
const AREA: [f64; 4] = [86.0, 70.0, 700.0, 452.0];
const TITLE: f64 = 17.0;
const LABEL: f64 = 14.0;
const NUMBER: f64 = 13.0;
/// Colours of Okabe and Ito; further curves repeat them with dashes.
const COLOURS: [&str; 6] = [BLUE, ORANGE, "#009e73", "#cc79a7", "#56b4e9", "#e69f00"];
/// The largest number of points of a curve, and of decades of residuals and of seconds shown.
const POINTS: usize = 400;
const MOST_DECADES: i32 = 20;
const MOST_OF_TIME: i32 = 5;

/// A curve for each trial on logarithmic scales; it starts at the end of its set-up. The legend lists the
/// best first.
pub(crate) fn race(search: &Searched) -> Figure {
    let curves: Vec<(String, Vec<(f64, f64)>)> = search
        .trials
        .iter()
        .map(|trial| {
            let logarithms = trial.curve().into_iter().filter(|(t, r)| *t > 0.0 && r.is_finite() && *r > 0.0);
            let points: Vec<_> = logarithms.map(|(t, r)| (t.log10(), r.log10())).collect();
            (way(&trial.method, &trial.preconditioner), points)
        })
        .filter(|(_, points)| points.len() > 1)
        .collect();
    let all = || curves.iter().flat_map(|(_, points)| points);
    let (latest, earliest) =
        all().fold((f64::MIN, f64::MAX), |(late, early), (t, _)| (late.max(*t), early.min(*t)));
    let latest = if latest.is_finite() && latest > f64::MIN { latest } else { 0.0 };
    let last = latest.ceil() as i32;
    let first = (earliest.floor() as i32).clamp(last - MOST_OF_TIME, last - 1);
    let target = Some(search.stop.rtol).filter(|t| *t > 0.0).map(f64::log10);
    let (low, high) =
        all().map(|p| p.1).chain(target).fold((0.0f64, 0.0f64), |(l, h), r| (l.min(r), h.max(r)));
    let high = high.ceil().min(4.0) as i32;
    let low = (low.floor() as i32).max(high - MOST_DECADES).min(high - 1);

    let [left, top, right, bottom] = AREA;
    let x =
        |t: f64| left + (right - left) * ((t - f64::from(first)) / f64::from(last - first)).clamp(0.0, 1.0);
    let y = |r: f64| bottom - (bottom - top) * ((r - f64::from(low)) / f64::from(high - low)).clamp(0.0, 1.0);

    let mut figure = Figure::new(SIZE[0], SIZE[1]);
    let title = format!("{}, {}", shortened(&search.matrix, 50), search.kind.name());
    figure.text([left, 28.0], Anchor::Start, TITLE, INK, &title);
    let device = format!("{}: {}", search.device.backend, shortened(&search.device.name, 60));
    figure.text([left, 52.0], Anchor::Start, LABEL, INK, &device);
    for decade in decades(low, high, 10) {
        let at = y(decade.into());
        figure.line([left, at], [right, at], GRID, "");
        figure.text([left - 9.0, at + 4.5], Anchor::End, NUMBER, INK, &power_of_ten(decade));
    }
    for decade in first..=last {
        let at = x(decade.into());
        figure.line([at, top], [at, bottom], GRID, "");
        let words = duration(10f64.powi(decade)).replace(".00", "").replace("0.0", "0");
        figure.text([at, bottom + 22.0], Anchor::Middle, NUMBER, INK, &words);
    }
    figure.line([left, bottom], [right, bottom], INK, "");
    figure.line([left, top], [left, bottom], INK, "");
    let middle = [(left + right) / 2.0, SIZE[1] - 22.0];
    figure.text(middle, Anchor::Middle, LABEL, INK, "time since preparing began");
    figure.upright([24.0, (top + bottom) / 2.0], LABEL, "relative residual  ‖r‖ / ‖b‖");
    if let Some(target) = target {
        figure.line(
            [left, y(target)],
            [right, y(target)],
            INK,
            r#"stroke-width="1.4" stroke-dasharray="3 4""#,
        );
    }
    for (k, (name, points)) in curves.iter().enumerate() {
        let colour = COLOURS[k % COLOURS.len()];
        let dash = ["", r#"stroke-dasharray="7 4""#, r#"stroke-dasharray="2 3""#][(k / COLOURS.len()).min(2)];
        let step = points.len().div_ceil(POINTS);
        let kept = points.iter().step_by(step).chain(points.last());
        let drawn: String = kept.map(|(t, r)| format!("{:.1},{:.1} ", x(*t), y(*r))).collect();
        figure.draw(format_args!(
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2" {dash} stroke-linejoin="round"/>"#,
            drawn.trim_end()
        ));
        if let Some((t, r)) = points.last() {
            figure.draw(format_args!(
                r#"<circle cx="{:.1}" cy="{:.1}" r="3.6" fill="{colour}"/>"#,
                x(*t),
                y(*r)
            ));
        }
        let at = top + 10.0 + 22.0 * k as f64;
        figure.line([right + 20.0, at], [right + 48.0, at], colour, &format!(r#"stroke-width="2.4" {dash}"#));
        figure.text([right + 56.0, at + 4.5], Anchor::Start, NUMBER, INK, name);
    }
    figure
}
