//! The printed tables of a comparison.
use crate::quantity::{duration, relative};
use crate::record::{Bits, Case, Entry, Line, cases, distinct, not_solved};
use std::fmt::Write;

/// The backends with their devices, and the reasons why some are missing.
pub(super) fn devices(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        let Entry::Device(device) = &line.entry else { continue };
        let words = match (&device.why, &device.device, device.copy) {
            (None, Some(name), Some(copy)) => format!("{name}, copies {:.1} GB/s", copy / 1e9),
            (why, ..) => format!("not here: {}", why.as_deref().unwrap_or_default()),
        };
        let _ = writeln!(text, "{:8}  {words}", device.backend);
    }
    text
}

/// A row for every case of a system.
pub(super) fn system(lines: &[Line]) -> String {
    let all: Vec<&Case> = cases(lines).collect();
    let Some(first) = all.first() else { return String::new() };
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_system(&mut text, first, &all);
    text
}

fn write_system(text: &mut String, first: &Case, all: &[&Case]) -> std::fmt::Result {
    let stops = distinct(all.iter().map(|case| case.stop.as_str())).join("; ");
    let given = distinct(all.iter().filter_map(|case| case.given.as_deref())).join("; ");
    let given = if given.is_empty() { given } else { format!("; {given}") };
    writeln!(text, "\n{}; {stops}{given}", first.system.describe())?;
    let missed = all.iter().filter(|case| case.missed().is_some()).count();
    let widest = |least: usize, of: fn(&Case) -> String| {
        all.iter().map(|case| of(case).chars().count()).max().unwrap_or(0).max(least)
    };
    let (ways, formats) = (widest(18, Case::way), widest(6, |case| case.format.clone()));
    writeln!(
        text,
        "  {:ways$} {:formats$} {:7} {:>10} {:>10} {:>6} {:>9} {:>9} {:>8} {:>7} {:>6} {:>10} {:>10}  bits",
        "method",
        "format",
        "backend",
        "us/iter",
        "with setup",
        "spread",
        "setup",
        "transfers",
        "GB/s",
        "of copy",
        "iters",
        "last",
        "residual"
    )?;
    for case in all {
        let (method, format, backend) = (case.way(), &case.format, &case.backend);
        write!(text, "  {method:ways$} {format:formats$} {backend:7} ")?;
        let Some(m) = &case.measured else {
            writeln!(text, "no: {}", case.why.as_deref().unwrap_or_default())?;
            continue;
        };
        let micros = |seconds: Option<f64>| seconds.map_or("-".into(), |s| format!("{:.2}", s * 1e6));
        let time = |t: Option<crate::Timing>| t.map_or("-".into(), |t| duration(t.median));
        let said = match case.missed() {
            Some(outcome) => format!("  NOT SOLVED: {outcome}"),
            None if is_fastest(case, all) => "  <- fastest".into(),
            None => String::new(),
        };
        writeln!(
            text,
            "{:>10} {:>10} {:>4.1} % {:>9} {:>9} {:>8.1} {:>7.2} {:>6} {:>10} {:>10}  {}{said}",
            micros(Some(m.each())),
            micros(m.each_fresh()),
            m.again.spread() * 100.0,
            time(m.setup),
            time(m.transfers),
            m.rate() / 1e9,
            m.rate() / case.copy,
            m.iterations,
            m.residual.map_or("-".into(), relative),
            m.true_residual.map_or("-".into(), relative),
            Bits::of(case, all).word(),
        )?;
    }
    match missed {
        0 => Ok(()),
        count => writeln!(text, "  {}", not_solved(count)),
    }
}

/// Whether no other case of the same method that solved the system has a shorter time for a whole solve.
fn is_fastest(case: &Case, all: &[&Case]) -> bool {
    let time = |c: &Case| c.measured.as_ref().map_or(f64::INFINITY, |m| m.again.median);
    let rivals = || all.iter().filter(|c| c.way() == case.way() && c.missed().is_none());
    rivals().count() > 1 && rivals().all(|c| time(case) <= time(c))
}
