//! A table that compares backends on the same systems.
use super::grid::Grid;
use lacuna_measure::Measured;
use lacuna_measure::page::Results;
use lacuna_measure::quantity::{bytes, micros, thousands};
use lacuna_measure::record::{Bits, Case, distinct};

/// A row for each system and method: each backend with its fastest format.
pub(super) fn table(results: &Results<'_>) -> String {
    let labels = distinct(results.cases.iter().filter(|c| c.measured.is_some()).map(|c| results.label(c)));
    let mut headings: Vec<String> =
        ["system", ">n", "method", "format", ">moved an iteration"].map(String::from).to_vec();
    let carried =
        |label: &&String| results.cases.iter().any(|c| results.label(c) == **label && on_device(c).is_some());
    let devices: Vec<_> = labels.iter().filter(carried).collect();
    headings.extend(labels.iter().map(|label| format!(">{label}, µs")));
    headings.extend(devices.iter().map(|label| format!(">{label}, on the device")));
    headings.extend(labels.iter().map(|label| format!(">{label}, of copy")));
    let compared = labels.len() > 1;
    headings.extend(["fastest", "bits"].map(String::from).into_iter().filter(|_| compared));
    let mut grid = Grid::new(headings);
    for system in results.systems() {
        let of = results.of(system);
        for (way, stop) in distinct(of.iter().map(|c| (c.way(), c.stop.as_str()))) {
            let mut cases: Vec<(&Case, &Measured)> = of
                .iter()
                .filter(|c| c.way() == way && c.stop == stop)
                .filter_map(|c| Some((*c, c.measured.as_deref()?)))
                .collect();
            cases.sort_by(|a, b| a.1.each().total_cmp(&b.1.each()));
            let Some((fastest, m)) = cases.first() else { continue };
            let each: Vec<_> =
                labels.iter().map(|l| cases.iter().find(|(c, _)| results.label(c) == *l).copied()).collect();
            let formats = distinct(each.iter().flatten().map(|(c, _)| c.format.as_str()));
            let mut cells = vec![
                system.title(),
                thousands(system.n as u64),
                way,
                formats.join(", "),
                bytes(m.bytes / m.iterations.max(1)),
            ];
            let cell = |text: Option<String>| text.unwrap_or("-".into());
            cells.extend(each.iter().map(|at| cell(at.map(|(_, m)| micros(m.each())))));
            cells.extend(
                labels
                    .iter()
                    .zip(&each)
                    .filter(|(label, _)| devices.contains(label))
                    .map(|(_, at)| cell(at.and_then(|(c, _)| on_device(c)).map(micros))),
            );
            cells.extend(each.iter().map(|at| cell(at.map(|(c, m)| format!("{:.2}", m.rate() / c.copy)))));
            if compared {
                cells.extend([results.label(fastest), Bits::of(fastest, &of).word().into()]);
            }
            grid.row(cells);
        }
    }
    grid.text()
}

/// The time with data already on the device, for a backend that needs transfers.
fn on_device(case: &Case) -> Option<f64> {
    (case.backend != "cpu").then_some(case.measured.as_ref()?.each_on_device()).flatten()
}
