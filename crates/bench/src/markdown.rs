//! The results in Markdown, for documents.
use crate::choices::choices;
use lacuna_measure::Machine;
use lacuna_measure::page::{Results, notes, origins, suites};
use lacuna_measure::quantity::{micros, thousands};
use lacuna_measure::record::{Bits, Case, Line, Peer, distinct};
use std::fmt::Write;

/// The origin of the results, and a table for each suite. The commit is for lines that do not report theirs.
pub(crate) fn markdown(lines: &[Line], commit: Option<&str>) -> String {
    let mut text = origin(lines, commit);
    // Writing to a string cannot fail.
    let _ = write(&mut text, lines);
    text
}

/// The date, the machines and the commands.
pub(crate) fn origin(lines: &[Line], commit: Option<&str>) -> String {
    let paragraph = |(m, commands): (Machine, Vec<&str>)| {
        let more = match commands.len() {
            1 => String::new(),
            n => format!(" and {} more like it", n - 1),
        };
        let commit = if m.commit.is_empty() { commit } else { Some(m.commit.as_str()) };
        let commit = commit.map_or(String::new(), |commit| format!(", commit {commit}"));
        let [date, machine, version, compiler] = [&m.date, &m.machine, &m.version, &m.compiler];
        format!("{date}, {machine}, Lacuna {version}{commit}, {compiler}: `{}`{more}\n\n", commands[0])
    };
    origins(lines).into_iter().map(paragraph).collect()
}

fn write(text: &mut String, lines: &[Line]) -> std::fmt::Result {
    for suite in suites(lines) {
        let results = Results::new(lines, suite.as_deref());
        if let Some(suite) = &suite {
            writeln!(text, "### {suite}\n")?;
        }
        for note in notes(lines, suite.as_deref()) {
            writeln!(text, "{note}\n")?;
        }
        table(text, &results)?;
    }
    Ok(())
}

fn table(text: &mut String, results: &Results<'_>) -> std::fmt::Result {
    let with_peers = !results.peers.is_empty();
    let on_device = results.peers.iter().any(|p| p.on_device_us.is_some());
    let peers = match (with_peers, on_device) {
        (false, _) => "",
        (true, false) => PEERS[0],
        (true, true) => PEERS[1],
    };
    writeln!(
        text,
        "| system | n | type | method | format | backend | µs/iteration | with set-up | spread | GB/s | of copy | bits |{peers}"
    )?;
    let columns: String =
        peers.split_terminator('|').map(|c| if c.contains("peer") { "---|" } else { "--:|" }).collect();
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
            text.push_str(&beside(case, results));
        }
        if on_device {
            text.push_str(&beside_on_device(case, results));
        }
        writeln!(text)?;
    }
    writeln!(text)?;
    let choices = choices(results);
    if !choices.is_empty() {
        writeln!(text, "{choices}")?;
    }
    left_out(text, results)
}

/// Cases that were not measured, one line for each reason.
fn left_out(text: &mut String, results: &Results<'_>) -> std::fmt::Result {
    let whys = distinct(results.cases.iter().filter_map(|c| c.why.as_deref()));
    for why in &whys {
        let of = results.cases.iter().filter(|c| c.why.as_deref() == Some(why));
        let what = of.map(|c| format!("{} {} {}", c.system.title(), c.way(), c.format));
        writeln!(text, "- not measured: {}: {why}", distinct(what).join(", "))?;
    }
    if whys.is_empty() { Ok(()) } else { writeln!(text) }
}

/// Columns about peers: with transfers to and from a device, and without.
const PEERS: [&str; 2] = [
    " best peer | µs | ratio | ratio, set-up too |",
    " best peer | µs | ratio | ratio, set-up too | on the device, µs | best peer there | µs | ratio |",
];

/// The fastest peer on the same system, and our time divided by its time.
fn beside(case: &Case, results: &Results<'_>) -> String {
    let best = |time: fn(&Peer) -> f64| fastest(case, results, move |p| Some(time(p)));
    let (Some((peer, again)), Some((_, fresh)), Some(m)) =
        (best(|p| p.again_us), best(|p| p.fresh_us), &case.measured)
    else {
        return " | | | |".into();
    };
    let ours = m.each_fresh().map_or("-".into(), |ours| format!("{:.2}", ours / fresh));
    format!(" {} | {} | {:.2} | {ours} |", peer.label(), micros(again), m.each() / again)
}

/// The same with `b` and `x` on the device.
fn beside_on_device(case: &Case, results: &Results<'_>) -> String {
    let best = fastest(case, results, |p| p.on_device_us);
    let ours = case.measured.as_ref().and_then(|m| m.each_on_device());
    match (best, ours) {
        (Some((peer, theirs)), Some(ours)) => {
            let [us, theirs_us] = [ours, theirs].map(micros);
            format!(" {us} | {} | {theirs_us} | {:.2} |", peer.label(), ours / theirs)
        }
        _ => " | | | |".into(),
    }
}

/// The peer with the shortest time, and that time in seconds.
fn fastest<'a>(
    case: &Case,
    results: &Results<'a>,
    time: impl Fn(&Peer) -> Option<f64>,
) -> Option<(&'a Peer, f64)> {
    let times = results.peers_of(case).filter_map(|p| Some((p, time(p)? * 1e-6)));
    times.min_by(|a, b| a.1.total_cmp(&b.1))
}
