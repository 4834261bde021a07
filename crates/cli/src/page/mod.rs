//! A page with everything that was measured: plots as inline SVG, tables, nothing from elsewhere and no script.
mod chart;
mod histories;
mod ratios;
mod results;
mod sizes;
mod tables;

use results::Results;

use crate::failure::{Failure, Result};
use crate::plot::figure::escaped;
use crate::record::Line;
use results::distinct;

const STYLE: &str = include_str!("style.css");

/// Writes the page of these results.
pub(crate) fn write(path: &str, lines: &[Line]) -> Result<()> {
    std::fs::write(path, html(lines)).map_err(|e| Failure::writing(path, e))
}

fn html(lines: &[Line]) -> String {
    let results = Results::new(lines);
    let parts = [
        origin(lines),
        tables::devices(&results),
        tables::winners(&results),
        sizes::html(&results),
        ratios::html(&results),
        histories::html(&results),
        tables::systems(&results),
    ];
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>Lacuna: what wins here</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>Lacuna: backends, formats and methods compared</h1>\n{}</body>\n</html>\n",
        parts.concat()
    )
}

/// Where the results come from.
fn origin(lines: &[Line]) -> String {
    let machines = distinct(lines.iter().map(|line| &line.machine).filter(|m| !m.command.is_empty()));
    let line = |m: &&crate::measure::Machine| {
        let [date, machine, version, compiler, command] =
            [&m.date, &m.machine, &m.version, &m.compiler, &m.command].map(|t| escaped(t));
        format!("<p>{date}, {machine}. Lacuna {version}, {compiler}.<br><code>{command}</code></p>\n")
    };
    machines.iter().map(line).collect()
}
