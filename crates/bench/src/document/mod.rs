//! Documents with tables made from results kept earlier. A table stands between two comments; the first one
//! describes it.
//!
//! ```text
//! <!-- table: KIND FILE... KEY=VALUE,... -->
//! <!-- end of table -->
//! ```
//!
//! Paths of files are relative to the document.
mod backends;
mod beside;
mod directive;
mod formats;
mod grid;
mod passes;

use crate::markdown::{markdown, origin};
use directive::Directive;
use lacuna::Error;
use lacuna_measure::failure::{Failure, Result};
use lacuna_measure::input::STANDARD;
use lacuna_measure::page::Results;
use lacuna_measure::record::Line;
use std::path::Path;

const BEGIN: &str = "<!-- table: ";
const END: &str = "<!-- end of table -->";

/// Updates the tables of a document, or only checks that each matches its results.
pub(crate) fn fill(path: &str, check: bool) -> Result<()> {
    if path == STANDARD {
        return Err(Failure::Usage(
            "--fill -: expected the name of a file, which is read and written".into(),
        ));
    }
    let old = std::fs::read_to_string(path).map_err(|source| Error::Io {
        operation: "reading".into(),
        path: path.into(),
        source,
    })?;
    let new = filled(path, &old)?;
    if old == new {
        return Ok(());
    }
    if check {
        let at = 1 + old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
        let message = "the table differs from its results";
        return Err(Failure::Usage(format!(
            "{path}, line {at}: {message}; `lacuna-bench report --fill {path}` updates it"
        )));
    }
    std::fs::write(path, new).map_err(|e| Failure::writing(path, e))
}

/// The text with its tables updated.
fn filled(path: &str, text: &str) -> Result<String> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let mut new = String::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        new += line;
        new.push('\n');
        let Some(words) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix("-->")) else {
            continue;
        };
        if !lines.any(|(_, line)| line == END) {
            return Err(Failure::Usage(format!("{path}, line {}: expected `{END}` below", at + 1)));
        }
        let refused = |message| Failure::Usage(format!("{path}, line {}: {message}", at + 1));
        let directive = Directive::parse(words).map_err(refused)?;
        let lines = directive.lines(folder)?;
        new += &format!("{}\n{END}\n", table(&directive, &lines).map_err(refused)?);
    }
    Ok(new)
}

/// The origin of the results, and the table.
fn table(directive: &Directive, lines: &[Line]) -> Result<String, String> {
    if directive.kind == "all" {
        return Ok(markdown(lines, directive.first("commit")).trim_end().to_string());
    }
    let suite = lacuna_measure::record::cases(lines).find_map(|case| case.suite.as_deref());
    let results = Results::new(lines, suite);
    let table = match directive.kind.as_str() {
        "beside" => beside::table(&results, beside::Ours::All),
        "best" => beside::table(&results, beside::Ours::Fastest),
        "backends" => backends::table(&results),
        "formats" => formats::table(&results),
        "passes" => passes::table(&results),
        kind => {
            return Err(format!("expected all, backends, beside, best, formats or passes, got `{kind}`"));
        }
    };
    if results.cases.is_empty() {
        return Err("there are no such results".into());
    }
    Ok(origin(lines, directive.first("commit")) + table.trim_end())
}
