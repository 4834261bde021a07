//! The same in Markdown, for documents that keep figures.
use super::results::{Results, micros};
use crate::record::{Bits, Case, Line, Peer};
use crate::report::thousands;
use std::fmt::Write;

/// The backends, and a table for each suite and number type.
pub(crate) fn markdown(lines: &[Line]) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut text, lines);
    text
}

fn write(text: &mut String, lines: &[Line]) -> std::fmt::Result {
    for (m, commands) in super::origins(lines) {
        let more = match commands.len() {
            1 => String::new(),
            n => format!(" and {} more like it", n - 1),
        };
        let (date, machine, version, compiler) = (m.date, m.machine, m.version, m.compiler);
        writeln!(text, "{date}, {machine}, Lacuna {version}, {compiler}: `{}`{more}\n", commands[0])?;
    }
    for suite in super::suites(lines) {
        let results = Results::new(lines, suite.as_deref());
        if let Some(suite) = &suite {
            writeln!(text, "### {suite}\n")?;
        }
        for note in super::notes(lines, suite.as_deref()) {
            writeln!(text, "{note}\n")?;
        }
        table(text, &results)?;
    }
    Ok(())
}

fn table(text: &mut String, results: &Results<'_>) -> std::fmt::Result {
    let with_peers = !results.peers.is_empty();
    let peers = if with_peers { " best peer | µs | ratio | ratio, set-up too |" } else { "" };
    writeln!(
        text,
        "| system | n | type | method | format | backend | µs/iteration | with set-up | spread | GB/s | of copy | bits |{peers}"
    )?;
    let columns = if with_peers { "---|--:|--:|--:|" } else { "" };
    writeln!(text, "|---|--:|---|---|---|---|--:|--:|--:|--:|--:|---|{columns}")?;
    for case in &results.cases {
        let Some(m) = &case.measured else { continue };
        let system = &case.system;
        write!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {:.1} % | {:.1} | {:.2} | {} |",
            system.title(),
            thousands(system.n as u64),
            system.number,
            case.way(),
            case.format,
            results.label(case),
            micros(m.each()),
            m.each_fresh().map_or("-".into(), micros),
            100.0 * m.again.spread(),
            m.rate() / 1e9,
            m.rate() / case.copy,
            Bits::of(case, &results.cases).word(),
        )?;
        if with_peers {
            write!(text, "{}", beside(case, results))?;
        }
        writeln!(text)?;
    }
    writeln!(text)
}

/// The fastest peer on the same system, and ours over theirs.
fn beside(case: &Case, results: &Results<'_>) -> String {
    let best = |time: fn(&Peer) -> f64| {
        results.peers_of(case).min_by(|a, b| time(a).total_cmp(&time(b))).map(|p| (p, time(p) * 1e-6))
    };
    let (Some((peer, again)), Some((_, fresh)), Some(m)) =
        (best(|p| p.again_us), best(|p| p.fresh_us), &case.measured)
    else {
        return " | | | |".into();
    };
    let ours = m.each_fresh().map_or("-".into(), |ours| format!("{:.2}", ours / fresh));
    format!(" {} ({}) | {} | {:.2} | {ours} |", peer.peer, peer.threads, micros(again), m.each() / again)
}
