//! Compares two backends on every matrix, in the manner of Rupp et al. 2016, Figure 9.
use super::chart::{colour, legend};
use super::results::Results;
use crate::figure::{Anchor, Figure, escaped, shortened};
use crate::quantity::micros;
use crate::record::{Case, SystemKey, distinct};

/// The width of the drawing; the heights of a bar, of the pair for a matrix with the name above, and of the
/// surroundings.
const WIDTH: f64 = 400.0;
const BAR: f64 = 20.0;
const STEP: f64 = 70.0;
const HEAD: f64 = 6.0;
const FOOT: f64 = 46.0;
const LEFT: f64 = 10.0;
const RIGHT: f64 = 380.0;
const NUMBER: f64 = 13.0;
/// Longer bars are cut off.
const MOST: f64 = 5.0;

/// A matrix and the times per iteration on both.
type Pair = (String, [f64; 2]);

pub(super) fn html(results: &Results<'_>) -> String {
    let present = results.cases.iter().filter(|c| c.measured.is_some());
    let backends = distinct(present.map(|c| c.backend.as_str()));
    let both = |a: &str, b: &str| backends.contains(&a) && backends.contains(&b);
    let pair = match backends[..] {
        _ if both("cuda", "opencl") => ["cuda", "opencl"],
        [a, b, ..] => [a, b],
        _ => return String::new(),
    };
    let [a, b] = pair;
    let mut html = format!("<h2>{} against {}</h2>\n", name(a), name(b));
    html += &missing(results, pair);
    html += "<p>The faster one is 1, the bar of the other as many times as long as it takes longer. Inside, the time of an \
             iteration when solving again, each with its fastest format. After Rupp et al. 2016, Figure 9.</p>\n";
    html += &legend(&[
        (results.style(&label(results, a)), a.into()),
        (results.style(&label(results, b)), b.into()),
    ]);
    html += "<div class=\"grid\">\n";
    let ways = distinct(results.cases.iter().map(|c| (c.way(), c.system.number.as_str(), c.stop.as_str())));
    for (way, number, stop) in ways {
        let of =
            |c: &&&Case| (c.way(), c.system.number.as_str(), c.stop.as_str()) == (way.clone(), number, stop);
        let cases: Vec<&Case> = results.cases.iter().filter(of).copied().collect();
        let systems = distinct(cases.iter().map(|c| &c.system));
        let pairs = systems.into_iter().filter_map(|system| {
            let times = pair.map(|backend| fastest(&cases, system, backend));
            times.iter().all(|t| t.is_finite()).then(|| (system.title(), times))
        });
        let pairs: Vec<Pair> = pairs.collect();
        if !pairs.is_empty() {
            let styles = pair.map(|backend| results.style(&label(results, backend)));
            let title = format!("{way}, {number}");
            html += &format!(
                "<figure><figcaption>{}<span>{}</span></figcaption>\n{}</figure>\n",
                escaped(&title),
                escaped(stop),
                draw(&pairs, styles).inline(&format!("{title}: {a} against {b} on each matrix"))
            );
        }
    }
    html + "</div>\n"
}

/// Seconds per iteration with the fastest format of a backend.
fn fastest(cases: &[&Case], system: &SystemKey, backend: &str) -> f64 {
    let of = cases.iter().filter(|c| c.system == *system && c.backend == backend);
    of.filter_map(|c| c.measured.as_ref()).map(|m| m.each()).fold(f64::INFINITY, f64::min)
}

fn label(results: &Results<'_>, backend: &str) -> String {
    results.cases.iter().find(|c| c.backend == backend).map_or(String::new(), |c| results.label(c))
}

fn name(backend: &str) -> &str {
    match backend {
        "cuda" => "CUDA",
        "opencl" => "OpenCL",
        "cpu" => "CPU",
        other => other,
    }
}

/// Explains why this is not CUDA against OpenCL, if it is not.
fn missing(results: &Results<'_>, pair: [&str; 2]) -> String {
    let absent = results.devices.iter().filter(|d| d.why.is_some() && !pair.contains(&d.backend.as_str()));
    let lines = absent.map(|d| {
        let why = escaped(d.why.as_deref().unwrap_or_default());
        format!("<p class=\"quiet\">{} is not here: {why}</p>\n", name(&d.backend))
    });
    lines.collect()
}

fn draw(pairs: &[Pair], styles: [usize; 2]) -> Figure {
    let bottom = HEAD + STEP * pairs.len() as f64;
    let mut figure = Figure::new(WIDTH, bottom + FOOT);
    let ratio = |times: &[f64; 2]| times[0].max(times[1]) / times[0].min(times[1]);
    let longest = pairs.iter().map(|(_, times)| ratio(times)).fold(1.2, f64::max).min(MOST);
    let x = |ratio: f64| LEFT + (RIGHT - LEFT) * ratio.min(longest) / longest;
    let step = if longest < 2.5 { 0.5 } else { 1.0 };
    for k in 0..=(longest / step) as u32 {
        let at = f64::from(k) * step;
        figure.line([x(at), HEAD], [x(at), bottom], "var(--grid)", "");
        figure.text([x(at), bottom + 17.0], Anchor::Middle, NUMBER, "var(--quiet)", &format!("{at}"));
    }
    let middle = [(LEFT + RIGHT) / 2.0, bottom + 37.0];
    figure.text(middle, Anchor::Middle, NUMBER, "var(--ink)", "time relative to the faster one");
    for (k, (matrix, times)) in pairs.iter().enumerate() {
        let top = HEAD + STEP * k as f64 + 20.0;
        let matrix = shortened(matrix, 44);
        figure.text([LEFT, top - 5.0], Anchor::Start, NUMBER, "var(--ink)", &matrix);
        for (j, (time, style)) in times.iter().zip(styles).enumerate() {
            let (top, ratio) = (top + (BAR + 2.0) * j as f64, time / times[0].min(times[1]));
            let width = x(ratio) - LEFT;
            figure.draw(format_args!(
                r#"<rect x="{LEFT}" y="{top:.1}" width="{width:.1}" height="{BAR}" fill="{}"/>"#,
                colour(style)
            ));
            let cut = if ratio > longest { format!(" ({ratio:.0} times, cut off)") } else { String::new() };
            let words = format!("{} µs{cut}", micros(*time));
            figure.draw(format_args!(
                r#"<text x="{:.1}" y="{:.1}" font-size="{NUMBER}" class="inside">{words}</text>"#,
                LEFT + 6.0,
                top + 14.5
            ));
        }
    }
    figure
}
