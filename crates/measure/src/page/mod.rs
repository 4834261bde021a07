//! A page with all results: plots as inline SVG, and tables; self-contained and without scripts.
mod chart;
mod histories;
mod ratios;
mod results;
mod sizes;
mod tables;

pub use results::Results;

use crate::Machine;
use crate::failure::Result;
use crate::figure::escaped;
use crate::record::{Entry, Line, distinct};

const STYLE: &str = include_str!("style.css");

/// Writes the page of these results, to standard output for `-`.
pub fn write(path: &str, lines: &[Line]) -> Result<()> {
    crate::out::save(path, &html(lines))
}

fn html(lines: &[Line]) -> String {
    let devices = Results::new(lines, None);
    let mut body = heading(lines) + &tables::devices(&devices);
    for suite in suites(lines) {
        let results = Results::new(lines, suite.as_deref());
        if let Some(name) = &suite {
            body += &format!("<h1>{}</h1>\n", escaped(name));
        }
        body.extend(notes(lines, suite.as_deref()).map(note));
        body += &tables::winners(&results);
        body += &sizes::html(&results);
        body += &ratios::html(&results);
        body += &histories::html(&results);
        body += &tables::systems(&results);
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>Lacuna: what wins here</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>Lacuna: backends, formats and methods compared</h1>\n{body}</body>\n</html>\n"
    )
}

/// A note; one of several lines is a table of text.
fn note(text: &str) -> String {
    match text.contains('\n') {
        true => format!(
            "<div class=\"scroll\"><pre>{}</pre></div>\n",
            text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
        ),
        false => format!("<p>{}</p>\n", escaped(text)),
    }
}

/// The suites in order of appearance; `None` for cases outside any suite.
pub fn suites(lines: &[Line]) -> Vec<Option<String>> {
    distinct(lines.iter().filter_map(|line| match &line.entry {
        Entry::Case(case) => Some(case.suite.clone()),
        Entry::Note(note) => Some(Some(note.suite.clone())),
        _ => None,
    }))
}

/// The notes about a suite.
pub fn notes<'a>(lines: &'a [Line], suite: Option<&'a str>) -> impl Iterator<Item = &'a str> {
    lines.iter().filter_map(move |line| match &line.entry {
        Entry::Note(note) if Some(note.suite.as_str()) == suite => Some(note.text.as_str()),
        _ => None,
    })
}

/// The origins of the results: machines, each with its commands.
pub fn origins(lines: &[Line]) -> Vec<(Machine, Vec<&str>)> {
    let machines = lines.iter().map(|line| &line.machine).filter(|m| !m.command.is_empty());
    machines.fold(Vec::new(), |mut list, machine| {
        let (command, facts) =
            (machine.command.as_str(), Machine { command: String::new(), ..machine.clone() });
        match list.iter_mut().find(|origin: &&mut (Machine, Vec<&str>)| origin.0 == facts) {
            Some((_, commands)) if commands.contains(&command) => {}
            Some((_, commands)) => commands.push(command),
            None => list.push((facts, vec![command])),
        }
        list
    })
}

fn heading(lines: &[Line]) -> String {
    let line = |(m, commands): &(Machine, Vec<&str>)| {
        let [date, machine, version, compiler] =
            [&m.date, &m.machine, &m.version, &m.compiler].map(|text| escaped(text));
        let list: Vec<_> = commands.iter().map(|c| format!("<code>{}</code>", escaped(c))).collect();
        let list = match list.len() {
            0..=2 => format!("<p>{}</p>", list.join("<br>\n")),
            n => format!("<details><summary>{n} commands</summary><p>{}</p></details>", list.join("<br>\n")),
        };
        let commit =
            if m.commit.is_empty() { String::new() } else { format!(", commit {}", escaped(&m.commit)) };
        format!("<p>{date}, {machine}. Lacuna {version}{commit}, {compiler}.</p>\n{list}\n")
    };
    origins(lines).iter().map(line).collect()
}
