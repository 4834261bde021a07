//! Line charts with units, small enough for a phone, and for several side by side.
use crate::axis::{counts, decades, power_of_ten};
use crate::figure::{Anchor, Figure, escaped};
use crate::quantity::thousands;

/// The size of the drawing, and the plot area in it: left, top, right, bottom.
const SIZE: [f64; 2] = [400.0, 300.0];
const AREA: [f64; 4] = [52.0, 10.0, 388.0, 252.0];
const NUMBER: f64 = 13.0;
const INK: &str = "var(--ink)";
const QUIET: &str = "var(--quiet)";
const GRID: &str = "var(--grid)";
/// The number of colours, and of markers.
const COLOURS: usize = 7;
const MARKERS: usize = 6;

/// The scale of an axis.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scale {
    Linear,
    Log,
}

pub(super) struct Chart<'a> {
    pub(super) title: String,
    pub(super) subtitle: String,
    pub(super) x: (&'a str, Scale),
    /// On a logarithmic scale.
    pub(super) y: &'a str,
    pub(super) series: Vec<Series>,
    /// Positions along the x axis marked by a dashed line.
    pub(super) marks: Vec<f64>,
}

pub(super) struct Series {
    /// Its index in the legend.
    pub(super) style: usize,
    /// Distinguishes it from other series of the same style.
    pub(super) dashed: bool,
    pub(super) points: Vec<Point>,
}

pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    /// Shown as a tooltip.
    pub(super) words: String,
}

/// The colour for an index of the legend.
pub(super) fn colour(style: usize) -> String {
    format!("var(--s{})", style % COLOURS)
}

impl Chart<'_> {
    /// A figure for a page, or an empty string if there is nothing to draw.
    pub(super) fn html(&self) -> String {
        let points = || self.series.iter().flat_map(|s| &s.points).filter(|p| p.y > 0.0 && p.y.is_finite());
        if points().next().is_none() {
            return String::new();
        }
        let low = points().map(|p| p.y).fold(f64::INFINITY, f64::min).log10();
        let high = points().map(|p| p.y).fold(0.0, f64::max).log10();
        let (low, high) = widened(low, high);
        let left = points().map(|p| p.x).fold(f64::INFINITY, f64::min);
        let right = points().map(|p| p.x).fold(0.0, f64::max);
        let along = |x: f64| if self.x.1 == Scale::Log { x.log10() } else { x };
        let (from, to) = match self.x.1 {
            Scale::Log => widened(left.log10(), right.log10()),
            Scale::Linear => (0.0, right.max(1.0)),
        };
        let place = |x: f64, y: f64| {
            let [left, top, right, bottom] = AREA;
            let across = left + (right - left) * (along(x) - from) / (to - from);
            [across, bottom - (bottom - top) * (y.log10() - low) / (high - low)]
        };
        let mut figure = Figure::new(SIZE[0], SIZE[1]);
        self.axes(&mut figure, (from, to), (low, high), &place);
        for series in &self.series {
            draw(&mut figure, series, &place);
        }
        let (title, subtitle) = (escaped(&self.title), escaped(&self.subtitle));
        let label = format!("{}, {}: {} over {}", self.title, self.subtitle, self.y, self.x.0);
        format!(
            "<figure><figcaption>{title}<span>{subtitle}</span></figcaption>\n{}</figure>\n",
            figure.inline(&label)
        )
    }

    fn axes(
        &self,
        figure: &mut Figure,
        (from, to): (f64, f64),
        (low, high): (f64, f64),
        place: &dyn Fn(f64, f64) -> [f64; 2],
    ) {
        let [left, top, right, bottom] = AREA;
        for value in ticks(low, high) {
            let [_, y] = place(1.0, value);
            figure.line([left, y], [right, y], GRID, "");
            figure.text([left - 6.0, y + 4.5], Anchor::End, NUMBER, QUIET, &number(value));
        }
        let places = match self.x.1 {
            Scale::Log => ticks(from, to),
            Scale::Linear => counts(to as u64, 6).into_iter().map(|k| k as f64).collect(),
        };
        for value in places {
            let [x, _] = place(value, 1.0);
            figure.line([x, top], [x, bottom], GRID, "");
            let text = match self.x.1 {
                Scale::Log => number(value),
                Scale::Linear => thousands(value as u64),
            };
            figure.text([x, bottom + 18.0], Anchor::Middle, NUMBER, QUIET, &text);
        }
        for mark in &self.marks {
            let [x, _] = place(*mark, 1.0);
            figure.line([x, top], [x, bottom], QUIET, r#"stroke-width="1.5" stroke-dasharray="2 4""#);
        }
        figure.line([left, bottom], [right, bottom], INK, "");
        figure.line([left, top], [left, bottom], INK, "");
        figure.text([(left + right) / 2.0, SIZE[1] - 8.0], Anchor::Middle, NUMBER, INK, self.x.0);
        let middle = (top + bottom) / 2.0;
        figure.draw(format_args!(
            r#"<text transform="translate(13 {middle:.1}) rotate(-90)" font-size="{NUMBER}" text-anchor="middle" fill="{INK}">{}</text>"#,
            escaped(self.y)
        ));
    }
}

/// A range of logarithms with a margin, at least a third of a decade wide.
fn widened(low: f64, high: f64) -> (f64, f64) {
    let room = (0.06 * (high - low)).max(0.17);
    (low - room, high + room)
}

/// Round numbers between two powers of ten: decades; if these are few, also twice and five times each.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.floor() as i32, high.ceil() as i32);
    let inside = |v: &f64| v.log10() >= low - 1e-9 && v.log10() <= high + 1e-9;
    let steps: &[f64] = if high - low < 1.7 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    decades(first, last, 8)
        .into_iter()
        .flat_map(|k| steps.iter().map(move |s| s * 10f64.powi(k)))
        .filter(inside)
        .collect()
}

/// A round number in short form.
fn number(value: f64) -> String {
    let decade = value.log10().round();
    match value {
        v if (0.01..1.0).contains(&v) => format!("{v:.2}").trim_end_matches('0').into(),
        v if (1.0..1e4).contains(&v) => format!("{v:.0}"),
        v if (v.log10() - decade).abs() < 1e-9 => power_of_ten(decade as i32),
        v => {
            let decade = v.log10().floor();
            format!("{:.0}·{}", v / 10f64.powf(decade), power_of_ten(decade as i32))
        }
    }
}

fn draw(figure: &mut Figure, series: &Series, place: &dyn Fn(f64, f64) -> [f64; 2]) {
    let shown: Vec<_> = series.points.iter().filter(|p| p.y > 0.0 && p.y.is_finite()).collect();
    let colour = colour(series.style);
    let line: Vec<String> =
        shown.iter().map(|p| place(p.x, p.y)).map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
    figure.draw(format_args!(
        r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"{}/>"#,
        line.join(" "),
        dash(series)
    ));
    // If there are many points, only some have markers, so that overlapping lines can be told apart.
    let every = shown.len().div_ceil(12).max(1);
    for point in shown.iter().skip(series.style % every).step_by(every) {
        let [x, y] = place(point.x, point.y);
        let fill = if series.dashed { "var(--panel)" } else { &colour };
        figure.draw(format_args!(
            r#"<path d="{}" fill="{fill}" stroke="{colour}" stroke-width="1.5"><title>{}</title></path>"#,
            marker(series.style, x, y),
            escaped(&point.words)
        ));
    }
}

fn dash(series: &Series) -> &'static str {
    match (series.dashed, series.style < COLOURS) {
        (true, _) => r#" stroke-dasharray="5 4""#,
        (false, true) => "",
        (false, false) => r#" stroke-dasharray="9 3""#,
    }
}

/// The outline of a marker: circle, square, triangle, diamond, inverted triangle, plus.
fn marker(style: usize, x: f64, y: f64) -> String {
    match style % MARKERS {
        0 => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", x - 4.0),
        1 => format!("M{:.1} {:.1}h7.2v7.2h-7.2z", x - 3.6, y - 3.6),
        2 => format!("M{x:.1} {:.1}l4.6 8h-9.2z", y - 4.8),
        3 => format!("M{x:.1} {:.1}l4.8 4.8l-4.8 4.8l-4.8-4.8z", y - 4.8),
        4 => format!("M{x:.1} {:.1}l4.6-8h-9.2z", y + 4.8),
        _ => format!("M{:.1} {:.1}h3v3h3v3h-3v3h-3v-3h-3v-3h3z", x - 1.5, y - 4.5),
    }
}

/// The legend of the styles.
pub(super) fn legend(names: &[(usize, String)]) -> String {
    let items = names.iter().map(|(style, name)| {
        let (colour, series) = (colour(*style), Series { style: *style, dashed: false, points: Vec::new() });
        let line = format!(
            r#"<line x1="1" y1="8" x2="35" y2="8" stroke="{colour}" stroke-width="2"{}/>"#,
            dash(&series)
        );
        let mark = format!(r#"<path d="{}" fill="{colour}"/>"#, marker(*style, 18.0, 8.0));
        let name = escaped(name);
        format!("<li><svg viewBox=\"0 0 36 16\" aria-hidden=\"true\">{line}{mark}</svg>{name}</li>\n")
    });
    format!("<ul class=\"legend\">\n{}</ul>\n", items.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::{number, ticks};

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(0.1, 1.1), [2.0, 5.0, 10.0]);
        assert_eq!(ticks(-0.2, 3.1), [1.0, 10.0, 100.0, 1000.0]);
        assert!(ticks(-16.0, 3.0).len() <= 11);
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.05, 0.2, 1.0, 50.0, 5000.0, 1e4, 2e5, 1e-8].map(number);
        assert_eq!(texts, ["0.05", "0.2", "1", "50", "5000", "10⁴", "2·10⁵", "10⁻⁸"]);
    }
}
