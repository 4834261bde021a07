//! Writing to standard output and error, where the reader may go away at any time.
use crate::failure::{Failure, Result};
use std::io::{self, Write};
use std::path::Path;

/// Prints text to standard output. A reader that has gone away is not an error.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::writing("standard output", error))
        }
        _ => Ok(()),
    }
}

/// Prints a line to standard error, if anyone listens.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Writes JSON to a file, or to standard output for `-`.
fn json(value: &serde_json::Value, path: &str) -> Result<()> {
    let text = format!("{value:#}\n");
    match path {
        "-" => print(&text),
        path => std::fs::write(path, text).map_err(|e| Failure::writing(path, e)),
    }
}

/// Tells a result: as text unless that is not wanted, on standard error where standard output takes the JSON, and as JSON
/// where that is asked for.
pub(crate) fn tell(
    quiet: bool,
    path: Option<&str>,
    text: impl FnOnce() -> String,
    value: impl FnOnce() -> serde_json::Value,
) -> Result<()> {
    match path {
        _ if quiet => {}
        Some("-") => note(text().trim_end()),
        _ => print(&text())?,
    }
    path.map_or(Ok(()), |path| json(&value(), path))
}

/// Refuses a place where no file can be made, before any work is done for it.
pub(crate) fn check_place(option: &str, path: &str) -> Result<()> {
    let place = Path::new(path);
    if path == "-" {
        return Ok(());
    }
    if path.is_empty() || place.is_dir() {
        return Err(Failure::Usage(format!("{option} {path}: expected the name of a file")));
    }
    match place.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) if !folder.is_dir() => {
            Err(Failure::Usage(format!("{option} {path}: there is no folder {}", folder.display())))
        }
        _ => Ok(()),
    }
}
