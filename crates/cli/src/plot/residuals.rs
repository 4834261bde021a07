//! The residuals of all solves of a comparison over their iterations.
use super::curves::{Curves, Over, RESIDUAL};
use lacuna_measure::figure::{Figure, shortened};
use lacuna_measure::record::{Case, distinct};

/// A curve for each solve; one for all backends and formats that took the same residuals.
pub(crate) fn residuals(cases: &[&Case], target: Option<f64>) -> Figure {
    let solves: Vec<&Case> =
        cases.iter().copied().filter(|c| c.measured.as_ref().is_some_and(|m| m.history.len() > 1)).collect();
    let systems = distinct(solves.iter().map(|c| &c.system));
    let [methods, preconds] = [
        distinct(solves.iter().map(|c| c.method.as_str())).len(),
        distinct(solves.iter().map(|c| c.precond.as_str())).len(),
    ];
    let [types, formats] = [
        distinct(systems.iter().map(|s| s.number.as_str())).len(),
        distinct(solves.iter().map(|c| c.format.as_str())).len(),
    ];
    let matrices = distinct(systems.iter().map(|s| s.title()));
    let mut curves: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for case in &solves {
        let Some(m) = &case.measured else { continue };
        let of = [
            (matrices.len() > 1).then(|| shortened(&case.system.title(), 16)),
            Some(if methods == 1 && preconds > 1 { case.precond.clone() } else { case.way() }),
            (types > 1).then(|| case.system.number.clone()),
            (formats > 1).then(|| case.format.clone()),
        ];
        let at = |(k, r): (usize, &f64)| ((k as u64 * m.history_stride) as f64, *r);
        let points: Vec<_> = m.history.iter().enumerate().map(at).collect();
        let name = of.into_iter().flatten().collect::<Vec<_>>().join(", ");
        match curves.iter().find(|curve| curve.0 == name) {
            None => curves.push((name, points)),
            Some((_, known)) if *known == points => {}
            Some(_) => curves.push((format!("{name}, {}", case.backend), points)),
        }
    }
    let title = match matrices.len() {
        1 if methods == 1 && preconds > 1 => {
            format!("{}, n = {}, {}", shortened(&matrices[0], 50), systems[0].n, solves[0].method)
        }
        1 => format!("{}, n = {}", shortened(&matrices[0], 60), systems[0].n),
        count => format!("{count} systems"),
    };
    let stops = distinct(solves.iter().map(|c| c.stop.as_str())).join("; ");
    let given = distinct(solves.iter().filter_map(|c| c.given.as_deref())).join("; ");
    let subtitle = if given.is_empty() { stops } else { format!("{stops}; {given}") };
    Curves { title, subtitle, over: Over::Iterations, along: "iteration", up: RESIDUAL, target, curves }
        .draw()
}
