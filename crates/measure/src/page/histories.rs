//! Residuals over the iterations.
use super::chart::{Chart, Point, Scale, Series, legend};
use super::results::Results;
use crate::record::{Bits, Case, distinct};

pub(super) fn html(results: &Results<'_>) -> String {
    let solves = |c: &&&Case| c.measured.as_ref().is_some_and(|m| m.history.len() > 1);
    let ways = distinct(results.cases.iter().filter(solves).map(|c| c.way()));
    if ways.is_empty() {
        return String::new();
    }
    let names: Vec<_> = ways.iter().cloned().enumerate().collect();
    let mut charts = String::new();
    for system in results.systems() {
        let cases = results.of(system);
        for stop in distinct(cases.iter().map(|c| c.stop.as_str())) {
            let of: Vec<&Case> = cases.iter().copied().filter(|c| c.stop == stop).collect();
            let series = ways.iter().enumerate().filter_map(|(style, way)| {
                let case = of.iter().find(|c| c.way() == *way && solves(c))?;
                let m = case.measured.as_ref()?;
                let points = m.history.iter().enumerate().map(|(k, &y)| {
                    let x = (k as u64 * m.history_stride) as f64;
                    Point { x, y, words: format!("{way}: {y:.2e} at iteration {x}") }
                });
                Some(Series { style, dashed: false, points: points.collect() })
            });
            let subtitle = format!("{}, {stop}; {}", system.number, agreement(&of));
            let title = system.title();
            let (x, y) = (("iteration", Scale::Linear), "relative residual ‖r‖/‖b‖");
            let (series, marks) = (series.collect(), Vec::new());
            charts += &Chart { title, subtitle, x, y, series, marks }.html();
        }
    }
    format!(
        "<h2>Convergence</h2>\n<p>The residual by each method's own recurrence.</p>\n{}<div class=\"grid\">\n{charts}</div>\n",
        legend(&names)
    )
}

/// Whether the curves of all backends agree.
fn agreement(cases: &[&Case]) -> &'static str {
    let bits: Vec<Bits> = cases.iter().filter(|c| c.measured.is_some()).map(|c| Bits::of(c, cases)).collect();
    match () {
        () if bits.contains(&Bits::Differ) => "backends differ",
        () if bits.contains(&Bits::Equal) => "the same bits on every backend",
        () => "not done by two backends",
    }
}
