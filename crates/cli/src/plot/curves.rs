//! Residuals of several solves over each other, with a legend.
use lacuna_measure::axis::{counts, decades, power_of_ten};
use lacuna_measure::figure::{Anchor, BLUE, Figure, GRID, INK, ORANGE, shortened};
use lacuna_measure::quantity::{duration, thousands};

/// The size of the drawing and the plot area in it: left, top, right, bottom.
const SIZE: [f64; 2] = [960.0, 520.0];
const AREA: [f64; 4] = [86.0, 70.0, 640.0, 452.0];
const TITLE: f64 = 17.0;
const LABEL: f64 = 14.0;
const NUMBER: f64 = 13.0;
/// The height of a line of the legend, and the characters that one holds.
const STEP: f64 = 22.0;
const NAME: usize = 32;
/// Colours of Okabe and Ito; further curves repeat them with dashes.
const COLOURS: [&str; 6] = [BLUE, ORANGE, "#009e73", "#cc79a7", "#56b4e9", "#e69f00"];
const DASHES: [&str; 3] = ["", r#"stroke-dasharray="7 4""#, r#"stroke-dasharray="2 3""#];
/// The largest number of points of a curve, and of decades of residuals and of seconds shown.
const POINTS: usize = 400;
const MOST_DECADES: i32 = 20;
const MOST_OF_TIME: i32 = 5;
/// The largest decade shown.
const MOST_UP: f64 = 4.0;

/// The name of the vertical axis of most.
pub(crate) const RESIDUAL: &str = "relative residual  ‖r‖ / ‖b‖";

/// What the curves go over.
pub(crate) enum Over {
    /// Seconds, on a logarithmic scale.
    Time,
    /// Numbers, on a logarithmic scale.
    Size,
    Iterations,
}

/// Curves on a vertical logarithmic scale: relative residuals, times, errors.
pub(crate) struct Curves {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) over: Over,
    /// The name of the horizontal axis, and of the vertical one.
    pub(crate) along: &'static str,
    pub(crate) up: &'static str,
    /// A tolerance, drawn as a dashed line.
    pub(crate) target: Option<f64>,
    /// The name of each, and its points.
    pub(crate) curves: Vec<(String, Vec<(f64, f64)>)>,
}

impl Curves {
    pub(crate) fn draw(&self) -> Figure {
        let linear = matches!(self.over, Over::Iterations);
        let shown = |&(t, r): &(f64, f64)| r.is_finite() && r > 0.0 && (t > 0.0 || linear);
        let place = |(t, r): (f64, f64)| (if linear { t } else { t.log10() }, r.log10());
        let curves: Vec<(&str, Vec<(f64, f64)>)> = self
            .curves
            .iter()
            .map(|(name, points)| {
                (name.as_str(), points.iter().copied().filter(shown).map(place).collect::<Vec<_>>())
            })
            .filter(|(_, points)| points.len() > 1)
            .collect();
        let all = || curves.iter().flat_map(|(_, points)| points);
        let (latest, earliest) =
            all().fold((f64::MIN, f64::MAX), |(late, early), (t, _)| (late.max(*t), early.min(*t)));
        let latest = if latest > f64::MIN { latest } else { 1.0 };
        let (from, to) = match self.over {
            Over::Iterations => (0.0, latest.max(1.0)),
            Over::Time | Over::Size => {
                let last = latest.ceil() as i32;
                let most = if matches!(self.over, Over::Time) { MOST_OF_TIME } else { MOST_DECADES };
                ((earliest.floor() as i32).clamp(last - most, last - 1).into(), last.into())
            }
        };
        let target = self.target.filter(|t| *t > 0.0).map(f64::log10);
        // Residuals begin at 1; other measures anywhere.
        let begin = match (&self.over, all().next()) {
            (Over::Size, Some((_, first))) => *first,
            _ => 0.0,
        };
        let values = all().map(|p| p.1).chain(target);
        let (low, high) = values.fold((begin, begin), |(l, h), r| (l.min(r), h.max(r)));
        let high = high.ceil().min(MOST_UP) as i32;
        let low = (low.floor() as i32).max(high - MOST_DECADES).min(high - 1);

        let [left, top, right, bottom] = AREA;
        let x = |t: f64| left + (right - left) * ((t - from) / (to - from)).clamp(0.0, 1.0);
        let y =
            |r: f64| bottom - (bottom - top) * ((r - f64::from(low)) / f64::from(high - low)).clamp(0.0, 1.0);
        let height = SIZE[1].max(top + 30.0 + STEP * curves.len() as f64);
        let mut figure = Figure::new(SIZE[0], height);
        figure.text([left, 28.0], Anchor::Start, TITLE, INK, &self.title);
        figure.text([left, 52.0], Anchor::Start, LABEL, INK, &self.subtitle);
        for decade in decades(low, high, 10) {
            let at = y(decade.into());
            figure.line([left, at], [right, at], GRID, "");
            figure.text([left - 9.0, at + 4.5], Anchor::End, NUMBER, INK, &power_of_ten(decade));
        }
        for (value, words) in self.ticks(from, to) {
            figure.line([x(value), top], [x(value), bottom], GRID, "");
            figure.text([x(value), bottom + 22.0], Anchor::Middle, NUMBER, INK, &words);
        }
        figure.line([left, bottom], [right, bottom], INK, "");
        figure.line([left, top], [left, bottom], INK, "");
        figure.text([(left + right) / 2.0, SIZE[1] - 22.0], Anchor::Middle, LABEL, INK, self.along);
        figure.upright([24.0, (top + bottom) / 2.0], LABEL, self.up);
        if let Some(target) = target {
            let dash = r#"stroke-width="1.4" stroke-dasharray="3 4""#;
            figure.line([left, y(target)], [right, y(target)], INK, dash);
        }
        for (k, (name, points)) in curves.iter().enumerate() {
            let placed = points.iter().map(|(t, r)| [x(*t), y(*r)]).collect::<Vec<_>>();
            curve(&mut figure, k, name, &placed);
        }
        figure
    }

    /// Places along the axis, and what is written there.
    fn ticks(&self, from: f64, to: f64) -> Vec<(f64, String)> {
        let time = |decade: i32| duration(10f64.powi(decade)).replace(".00", "").replace("0.0", "0");
        match self.over {
            Over::Time => (from as i32..=to as i32).map(|decade| (decade.into(), time(decade))).collect(),
            Over::Size => {
                (from as i32..=to as i32).map(|decade| (decade.into(), power_of_ten(decade))).collect()
            }
            Over::Iterations => counts(to as u64, 7).into_iter().map(|k| (k as f64, thousands(k))).collect(),
        }
    }
}

/// Draws one curve, and its line of the legend.
fn curve(figure: &mut Figure, k: usize, name: &str, points: &[[f64; 2]]) {
    let [_, top, right, _] = AREA;
    let (colour, dash) = (COLOURS[k % COLOURS.len()], DASHES[(k / COLOURS.len()).min(2)]);
    let step = points.len().div_ceil(POINTS).max(1);
    let kept = points.iter().step_by(step).chain(points.last());
    let drawn: String = kept.map(|[x, y]| format!("{x:.1},{y:.1} ")).collect();
    figure.draw(format_args!(
        r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2" {dash} stroke-linejoin="round"/>"#,
        drawn.trim_end()
    ));
    if let Some([x, y]) = points.last() {
        figure.draw(format_args!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.6" fill="{colour}"/>"#));
    }
    let at = top + 10.0 + STEP * k as f64;
    figure.line([right + 20.0, at], [right + 48.0, at], colour, &format!(r#"stroke-width="2.4" {dash}"#));
    figure.text([right + 56.0, at + 4.5], Anchor::Start, NUMBER, INK, &shortened(name, NAME));
}
