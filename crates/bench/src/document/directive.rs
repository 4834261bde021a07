//! The comment that describes a table.
use lacuna_measure::Machine;
use lacuna_measure::failure::Result;
use lacuna_measure::record::{self, Case, Entry, Line, Peer};
use std::path::Path;

/// The case properties by which a table can select.
const FILTERS: [&str; 8] = ["backend", "format", "matrix", "method", "precond", "suite", "type", "units"];

/// The kind of a table, its files, and options with their values.
pub(super) struct Directive {
    pub(super) kind: String,
    files: Vec<String>,
    options: Vec<(String, Vec<String>)>,
}

impl Directive {
    pub(super) fn parse(words: &str) -> Result<Self, String> {
        let mut words = words.split_whitespace();
        let kind = words.next().unwrap_or_default().to_string();
        let (options, files): (Vec<_>, Vec<_>) = words.partition(|word| word.contains('='));
        let pair = |word: &str| {
            let (key, values) = word.split_once('=').unwrap_or((word, ""));
            if key != "commit" && !FILTERS.contains(&key) {
                return Err(format!("expected commit or one of {}, got `{key}`", FILTERS.join(", ")));
            }
            Ok((key.to_string(), values.split(',').map(String::from).collect()))
        };
        let options = options.into_iter().map(pair).collect::<Result<_, String>>()?;
        Ok(Directive { kind, files: files.into_iter().map(String::from).collect(), options })
    }

    /// The first value of an option.
    pub(super) fn first(&self, key: &str) -> Option<&str> {
        self.options.iter().find(|(name, _)| name == key)?.1.first().map(String::as_str)
    }

    /// The lines of the files, without the cases that are filtered out.
    pub(super) fn lines(&self, folder: &Path) -> Result<Vec<Line>> {
        let mut lines = Vec::new();
        for file in &self.files {
            lines.extend(with_machines(record::read(&folder.join(file).to_string_lossy())?));
        }
        lines.retain(|line| match &line.entry {
            Entry::Case(case) => self.matches(case),
            Entry::Device(_) => self.kind == "all",
            Entry::Peer(peer) => self.matches_peer(peer),
            Entry::Note(_) => true,
        });
        Ok(lines)
    }

    /// Whether a peer has one of the selected formats, if it reports a format.
    fn matches_peer(&self, peer: &Peer) -> bool {
        let wanted = self.options.iter().find(|(key, _)| key == "format");
        wanted.zip(peer.format.as_ref()).is_none_or(|((_, formats), format)| formats.contains(format))
    }

    /// Whether a case matches every option: matrices and suites by prefix, anything else exactly.
    fn matches(&self, case: &Case) -> bool {
        self.options.iter().all(|(key, values)| {
            let is = |value: &str| values.iter().any(|v| v == value);
            let begins = |value: &str| values.iter().any(|v| value.starts_with(v.as_str()));
            match key.as_str() {
                "backend" => is(&case.backend),
                "format" => is(&case.format),
                "matrix" => begins(case.system.matrix.trim_start_matches("gen:")),
                "method" => is(&case.method),
                "precond" => is(&case.precond),
                "suite" => begins(case.suite.as_deref().unwrap_or_default()),
                "type" => is(&case.system.number),
                "units" => is(&case.units.to_string()),
                _ => true,
            }
        })
    }
}

/// Repeats the machine and the command of a run, which a file may give on its first line only, in the cases
/// that follow: a filter may drop the first line.
fn with_machines(mut lines: Vec<Line>) -> Vec<Line> {
    let mut run = Machine::default();
    for line in &mut lines {
        if !line.machine.command.is_empty() {
            run = line.machine.clone();
        } else if matches!(line.entry, Entry::Case(_)) {
            line.machine = run.clone();
        }
    }
    lines
}
