//! All results as tables of numbers.
use super::results::Results;
use crate::Timing;
use crate::figure::escaped;
use crate::quantity::{counted_units, micros, thousands};
use crate::record::{Bits, Case, SystemKey, distinct, not_solved};
use std::fmt::Write;

/// The backends and their devices.
pub(super) fn devices(results: &Results<'_>) -> String {
    let mut rows = String::new();
    for d in &results.devices {
        let (name, copy) = match (&d.why, &d.device, d.copy) {
            (None, Some(name), Some(copy)) => (escaped(name), format!("{:.1}", copy / 1e9)),
            (why, ..) => (format!("not here: {}", escaped(why.as_deref().unwrap_or_default())), "-".into()),
        };
        let details: Vec<_> = d.details.iter().map(|(what, value)| format!("{what} {value}")).collect();
        let _ = writeln!(
            rows,
            "<tr><td class=\"text\">{}</td><td class=\"words\">{name}</td><td>{copy}</td><td class=\"words\">{}</td></tr>",
            d.backend,
            escaped(&details.join(", "))
        );
    }
    format!(
        "<div class=\"scroll\"><table>\n<tr><th class=\"text\">backend</th><th class=\"text\">device</th>\
         <th>copy, GB/s</th><th class=\"text\">details</th></tr>\n{rows}</table></div>\n"
    )
}

/// The fastest backend for each system and method: a row for each system.
pub(super) fn winners(results: &Results<'_>) -> String {
    let ways = distinct(results.cases.iter().map(|c| (c.way(), c.stop.as_str())));
    let stops = distinct(ways.iter().map(|way| way.1));
    let head = ways.iter().map(|(way, stop)| {
        let stop = if stops.len() > 1 { format!("<small>{}</small>", escaped(stop)) } else { String::new() };
        format!("<th class=\"text\">{way}{stop}</th>")
    });
    let head: String = head.collect();
    let row = |system: &SystemKey| {
        let cases = results.of(system);
        let cells = ways.iter().map(|(way, stop)| {
            let of = cases.iter().copied().filter(|c| c.way() == *way && c.stop == *stop);
            winner(results, &of.collect::<Vec<_>>())
        });
        format!(
            "<tr><td class=\"text\">{}, {}<small>n = {}</small></td>{}</tr>\n",
            escaped(&system.title()),
            system.number,
            thousands(system.n as u64),
            cells.collect::<String>()
        )
    };
    let rows: String = results.systems().into_iter().map(row).collect();
    format!(
        "<h2>What wins here</h2>\n<p>The fastest backend with its fastest format, its time per iteration when solving again, \
         transfers included, and how many times as long the other backends take.</p>\n\
         <div class=\"scroll\"><table>\n<tr><th class=\"text\">system</th>{head}</tr>\n{rows}</table></div>\n"
    )
}

fn winner(results: &Results<'_>, cases: &[&Case]) -> String {
    let solved = cases.iter().filter(|c| c.missed().is_none());
    let mut measured: Vec<_> =
        solved.filter_map(|c| Some((results.label(c), c, c.measured.as_ref()?))).collect();
    measured.sort_by(|a, b| a.2.again.median.total_cmp(&b.2.again.median));
    let Some((label, case, m)) = measured.first() else {
        let missed = cases.iter().any(|c| c.missed().is_some());
        return format!("<td class=\"text\">{}</td>", if missed { "not solved" } else { "-" });
    };
    let others = distinct(measured.iter().map(|o| &o.0)).into_iter().filter(|o| *o != label);
    let factors = others.filter_map(|other| {
        let time = measured.iter().find(|o| o.0 == *other)?.2.again.median;
        Some(format!("{other} {:.2}×", time / m.again.median))
    });
    format!(
        "<td class=\"text\"><b>{}</b> {} {} µs<small>{}</small></td>",
        escaped(label),
        case.format,
        micros(m.each()),
        escaped(&factors.collect::<Vec<_>>().join(", "))
    )
}

/// A table for each system.
pub(super) fn systems(results: &Results<'_>) -> String {
    let mut html = String::from(
        "<h2>In figures</h2>\n<p>Medians over rounds in which all combinations take turns, with the quartiles. \
         <em>GB/s</em> counts what the iterations must move, each array once where it is needed, without transfers; \
         above <em>copy</em> means that caches hold it. <em>Bits</em>: whether <code>x</code> and every residual \
         are equal bit for bit on every backend.</p>\n",
    );
    for system in results.systems() {
        let cases = results.of(system);
        for stop in distinct(cases.iter().map(|c| c.stop.as_str())) {
            let of: Vec<&Case> = cases.iter().copied().filter(|c| c.stop == stop).collect();
            html += &table(results, system, stop, &of);
        }
    }
    html
}

const COLUMNS: [&str; 15] = [
    "method",
    "format",
    "backend",
    "µs per iteration",
    "quartiles",
    "with set-up",
    "on the device",
    "set-up, µs",
    "transfers, µs",
    "GB/s",
    "of copy",
    "iterations",
    "last residual",
    "true residual",
    "bits",
];

fn table(results: &Results<'_>, system: &SystemKey, stop: &str, cases: &[&Case]) -> String {
    let head: String = COLUMNS
        .iter()
        .enumerate()
        .map(|(k, name)| format!("<th{}>{name}</th>", if k < 3 { " class=\"text\"" } else { "" }))
        .collect();
    let mut rows = String::new();
    let mut shown = Vec::new();
    for case in cases {
        rows += &row(results, case, cases);
        let last = cases.iter().rfind(|c| c.way() == case.way());
        if last.is_some_and(|last| std::ptr::eq(*last, *case)) && !shown.contains(&case.way()) {
            shown.push(case.way());
            rows += &peers(results, case);
        }
    }
    let missed = match cases.iter().filter(|case| case.missed().is_some()).count() {
        0 => String::new(),
        count => format!("<p class=\"differ\">{}.</p>\n", not_solved(count)),
    };
    format!(
        "<h3>{}; {}</h3>\n<div class=\"scroll\"><table>\n<tr>{head}</tr>\n{rows}</table></div>\n{missed}",
        escaped(system.describe().trim_start_matches("gen:")),
        escaped(stop)
    )
}

fn row(results: &Results<'_>, case: &Case, all: &[&Case]) -> String {
    let texts = [case.way(), case.format.clone(), results.label(case)];
    let texts: String = texts.iter().map(|t| format!("<td class=\"text\">{}</td>", escaped(t))).collect();
    let Some(m) = &case.measured else {
        let why = escaped(case.why.as_deref().unwrap_or_default());
        return format!("<tr>{texts}<td class=\"words\" colspan=\"12\">no: {why}</td></tr>\n");
    };
    let iterations = m.iterations.max(1) as f64;
    let whole = |t: Option<Timing>| t.map_or("-".into(), |t| micros(t.median));
    let bits = Bits::of(case, all);
    let missed = case.missed();
    let best = missed.is_none()
        && all
            .iter()
            .filter(|c| c.way() == case.way() && c.missed().is_none())
            .filter_map(|c| c.measured.as_ref())
            .all(|other| m.again.median <= other.again.median);
    let cells = [
        micros(m.each()),
        format!("{}–{}", micros(m.again.low / iterations), micros(m.again.high / iterations)),
        m.each_fresh().map_or("-".into(), micros),
        m.each_on_device().map_or("-".into(), micros),
        whole(m.setup),
        whole(m.transfers),
        format!("{:.1}", m.rate() / 1e9),
        format!("{:.0} %", 100.0 * m.rate() / case.copy),
        thousands(m.iterations),
        m.residual.map_or("-".into(), |r| format!("{r:.2e}")),
        m.true_residual.map_or("-".into(), |r| format!("{r:.2e}"))
            + &missed
                .map_or(String::new(), |how| format!("<small class=\"differ\">not solved: {how}</small>")),
    ];
    let cells: String = cells.iter().map(|c| format!("<td>{c}</td>")).collect();
    let class = if best { " class=\"best\"" } else { "" };
    let differ = if bits == Bits::Differ { " class=\"differ\"" } else { "" };
    format!("<tr{class}>{texts}{cells}<td{differ}>{}</td></tr>\n", bits.word())
}

/// Rows of other libraries on the same system and method.
fn peers(results: &Results<'_>, case: &Case) -> String {
    let rows = results.peers_of(case).map(|p| {
        let on_device = p.on_device_us.map_or(String::new(), |us| micros(us * 1e-6));
        let residual = p.residual.map_or(String::new(), |r| format!("{r:.2e}"));
        format!(
            "<tr><td class=\"text\">{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td><td>{}</td><td></td>\
             <td>{}</td><td>{on_device}</td><td colspan=\"6\"></td><td>{residual}</td><td></td></tr>\n",
            escaped(&case.way()),
            escaped(p.format.as_deref().unwrap_or_default()),
            escaped(&p.threads.map_or(p.peer.clone(), |t| format!("{}, {}", p.peer, counted_units("cpu", t)))),
            micros(p.again_us * 1e-6),
            micros(p.fresh_us * 1e-6)
        )
    });
    rows.collect()
}
