//! The speed of the product in each format.
use crate::speeds::Speeds;
use lacuna_measure::figure::{Anchor, BLUE, Figure, GRID, INK, ORANGE, shortened};

/// The width of the drawing, and the height without its bars.
const WIDTH: f64 = 800.0;
const HEAD: f64 = 84.0;
const FOOT: f64 = 56.0;
/// The height of a bar's row, and where bars start and end.
const STEP: f64 = 36.0;
const LEFT: f64 = 86.0;
const RIGHT: f64 = 540.0;
const TITLE: f64 = 17.0;
const LABEL: f64 = 14.0;
const NUMBER: f64 = 13.0;

/// A bar for each format, of length proportional to its GB/s; the triad bandwidth as a dashed line; GFLOP/s
/// next to each bar.
pub(crate) fn speeds(s: &Speeds) -> Figure {
    let bottom = HEAD + STEP * s.rows.len() as f64;
    let mut figure = Figure::new(WIDTH, bottom + FOOT);
    let title = format!("y = A x, {}, {}", shortened(&s.matrix, 40), s.kind.name());
    figure.text([LEFT, 28.0], Anchor::Start, TITLE, INK, &title);
    let device = format!("{}: {}", s.device.backend, shortened(&s.device.name, 50));
    figure.text([LEFT, 50.0], Anchor::Start, LABEL, INK, &device);

    let most = s.rows.iter().map(|row| row.rate()).fold(s.triad, f64::max) / 1e9;
    let x = |rate: f64| LEFT + (RIGHT - LEFT) * rate / most;
    let step = round_step(most / 5.0);
    for k in 0..=(most / step) as u32 {
        let rate = f64::from(k) * step;
        figure.line([x(rate), HEAD - 8.0], [x(rate), bottom], GRID, "");
        figure.text([x(rate), bottom + 20.0], Anchor::Middle, NUMBER, INK, &format!("{rate}"));
    }
    let middle = [(LEFT + RIGHT) / 2.0, bottom + 44.0];
    figure.text(middle, Anchor::Middle, LABEL, INK, "GB/s, matrix and vectors counted once");
    for (k, row) in s.rows.iter().enumerate() {
        let top = HEAD + STEP * k as f64;
        let rate = row.rate() / 1e9;
        figure.text([LEFT - 9.0, top + 19.0], Anchor::End, LABEL, INK, &row.label());
        figure.draw(format_args!(
            r#"<rect x="{LEFT}" y="{:.1}" width="{:.1}" height="{:.1}" fill="{BLUE}"/>"#,
            top + 3.0,
            x(rate) - LEFT,
            STEP - 12.0
        ));
        let words = format!("{:.2} GFLOP/s, {:.2} of the triad", s.flops(row) / 1e9, row.rate() / s.triad);
        figure.text([RIGHT + 12.0, top + 19.0], Anchor::Start, NUMBER, INK, &words);
    }
    let triad = x(s.triad / 1e9);
    figure.line([triad, HEAD - 8.0], [triad, bottom], ORANGE, r#"stroke-width="1.8" stroke-dasharray="7 5""#);
    let words = format!("triad {:.1} GB/s", s.triad / 1e9);
    figure.text([triad, HEAD - 14.0], Anchor::End, NUMBER, ORANGE, &words);
    figure
}

/// The smallest of 1, 2, 5, 10, … that is not below a number.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|f| f * power).find(|step| *step >= least).unwrap_or(10.0 * power)
}
