//! A table of products in each format.
use super::grid::Grid;
use crate::choices::{Choice, choices, fastest};
use lacuna_measure::page::Results;
use lacuna_measure::quantity::{micros, thousands};
use lacuna_measure::record::{Case, PRODUCTS, SystemKey, distinct};

/// A row for each system and backend: in each format the time of a product and the bytes moved per row; the
/// fastest format; and the format that `auto` takes, with its time relative to the fastest, if the results
/// report it.
pub(super) fn table(results: &Results<'_>) -> String {
    let products = |c: &&&Case| c.stop == PRODUCTS && c.measured.is_some();
    let formats = distinct(results.cases.iter().filter(products).map(|c| c.format.as_str()));
    let labels = distinct(results.cases.iter().filter(products).map(|c| results.label(c)));
    let mut headings: Vec<String> = ["system", ">rows", ">entries", "type"].map(String::from).to_vec();
    headings.extend((labels.len() > 1).then(|| "backend".into()));
    headings.extend(formats.iter().map(|f| format!(">{f}: µs, bytes a row")));
    headings.push(">fastest, of copy".into());
    let chosen = results.cases.iter().filter(products).any(|c| c.auto.is_some());
    headings.extend(chosen.then(|| ">`auto`, of the fastest".into()));
    let mut grid = Grid::new(headings);
    for system in results.systems() {
        let of = results.of(system);
        for label in &labels {
            let of: Vec<&Case> =
                of.iter().filter(products).filter(|c| results.label(c) == *label).copied().collect();
            let Some(best) = fastest(&of) else { continue };
            let mut cells = vec![
                system.title(),
                thousands(system.n as u64),
                thousands(system.nnz as u64),
                system.number.clone(),
            ];
            cells.extend((labels.len() > 1).then(|| label.clone()));
            cells.extend(formats.iter().map(|format| {
                let measured = of.iter().find(|c| c.format == *format).and_then(|c| c.measured.as_ref());
                measured.map_or("-".into(), |m| {
                    let each = format!("{}, {:.0}", micros(m.each()), m.bytes as f64 / system.n as f64);
                    if *format == best.format { format!("**{each}**") } else { each }
                })
            }));
            let of_copy = best.measured.as_ref().map_or(f64::NAN, |m| m.rate() / best.copy);
            cells.push(format!("{} {of_copy:.2}", best.format));
            cells.extend(chosen.then(|| Choice::among(&of).map_or("-".into(), |choice| choice.brief())));
            grid.row(cells);
        }
    }
    format!("{}\n{}{}", grid.text(), costs(results, &formats, &labels), choices(results))
}

/// The time per byte of each format relative to csr, over all systems: the minimum and the maximum.
fn costs(results: &Results<'_>, formats: &[&str], labels: &[String]) -> String {
    let mut text = String::new();
    for label in labels {
        let mut ranges = Vec::new();
        for format in formats.iter().filter(|format| **format != "csr") {
            let of = |format: &str, system: &SystemKey| {
                let is = |c: &&&Case| c.format == format && c.system == *system && results.label(c) == *label;
                let m = results.cases.iter().filter(|c| c.stop == PRODUCTS).find(is)?.measured.as_ref()?;
                Some(m.each() / m.bytes as f64)
            };
            let ratios = results.systems().into_iter().filter_map(|s| Some(of(format, s)? / of("csr", s)?));
            let (low, high) =
                ratios.fold((f64::INFINITY, 0.0f64), |(low, high), r| (low.min(r), high.max(r)));
            if high > 0.0 {
                ranges.push(format!("{format} {low:.2} to {high:.2}"));
            }
        }
        if !ranges.is_empty() {
            text += &format!("- time of a byte next to one of csr, {label}: {}\n", ranges.join(", "));
        }
    }
    text
}
