//! A table of fused passes over vectors, compared with loops written by hand.
use super::grid::Grid;
use lacuna_measure::page::Results;
use lacuna_measure::quantity::{micros, thousands};
use lacuna_measure::record::{BY_HAND, Case};

/// A row for each pass and length on each backend.
pub(super) fn table(results: &Results<'_>) -> String {
    let headings = [
        "pass",
        ">elements",
        "type",
        "backend",
        ">µs",
        ">bytes an element",
        ">GB/s",
        ">of copy",
        ">over a loop by hand",
    ];
    let mut grid = Grid::new(headings.map(String::from).to_vec());
    let by_hand = |case: &Case| {
        let same = |c: &&&Case| c.backend == BY_HAND && c.method == case.method && c.system == case.system;
        results.cases.iter().find(same).and_then(|c| c.measured.as_ref()).map(|m| m.each())
    };
    for case in results.cases.iter().filter(|c| c.stop == "passes" && c.backend != BY_HAND) {
        let Some(m) = &case.measured else { continue };
        let hand = by_hand(case).filter(|_| case.backend == "cpu");
        grid.row(vec![
            case.way(),
            thousands(case.system.n as u64),
            case.system.number.clone(),
            results.label(case),
            micros(m.each()),
            (m.bytes / case.system.n.max(1) as u64).to_string(),
            format!("{:.1}", m.rate() / 1e9),
            format!("{:.2}", m.rate() / case.copy),
            hand.map_or("-".into(), |hand| format!("{:.2}", m.each() / hand)),
        ]);
    }
    grid.text()
}
