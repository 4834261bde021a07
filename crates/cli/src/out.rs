//! Writing to standard output and error, whose reader may close at any time.
use crate::failure::{Failure, Result};
use crate::input::STANDARD;
use lacuna::backend::text::{printable, printable_json, shown_name};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Prints text to standard output, with control characters and invisible ones escaped. A closed reader is not
/// an error.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(printable(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::writing("standard output", error))
        }
        _ => Ok(()),
    }
}

/// Prints a line to standard error, ignoring failures.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable(line));
}

/// Prints text; to standard error if standard output carries something else.
pub fn say(aside: bool, text: &str) -> Result<()> {
    if !aside {
        return print(text);
    }
    note(text.trim_end_matches('\n'));
    Ok(())
}

/// Writes a matrix or a vector to standard output.
pub(crate) fn stream(write: impl FnOnce(&mut dyn Write) -> lacuna::Result<()>) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    write(&mut out)?;
    out.flush().map_err(|e| Failure::writing("standard output", e))
}

/// Writes text to a file, or to standard output for `-`.
pub fn save(path: &str, text: &str) -> Result<()> {
    match path {
        STANDARD => print(text),
        path => std::fs::write(path, text).map_err(|e| Failure::writing(path, e)),
    }
}

/// Rejects two outputs that would both go to standard output.
pub fn check_standard(outputs: &[(&str, Option<&str>)]) -> Result<()> {
    let there: Vec<_> =
        outputs.iter().filter(|(_, path)| *path == Some(STANDARD)).map(|(option, _)| *option).collect();
    match there[..] {
        [first, second, ..] => {
            let message = format!("{first} - and {second} -: only one of them can go to standard output");
            Err(Failure::Usage(message))
        }
        _ => Ok(()),
    }
}

/// Reports a result: as text unless suppressed, on standard error if standard output carries the JSON; and as
/// JSON if requested.
pub(crate) fn report(
    quiet: bool,
    path: Option<&str>,
    text: impl FnOnce() -> String,
    value: impl FnOnce() -> serde_json::Value,
) -> Result<()> {
    report_aside(quiet, false, path, text, value)
}

/// The same, with the text on standard error also if standard output carries other data (`aside`).
pub(crate) fn report_aside(
    quiet: bool,
    aside: bool,
    path: Option<&str>,
    text: impl FnOnce() -> String,
    value: impl FnOnce() -> serde_json::Value,
) -> Result<()> {
    if !quiet {
        say(aside || path == Some(STANDARD), &text())?;
    }
    path.map_or(Ok(()), |path| save(path, &printable_json(&format!("{:#}\n", value()))))
}

/// Rejects a path where no text can be written, before any work is done for it: where no file can be created,
/// and a name that promises compression.
pub fn check_place(option: &str, path: &str) -> Result<()> {
    check_folder(option, path)?;
    let end = Path::new(path).extension().unwrap_or_default().to_ascii_lowercase();
    if ["gz", "bz2", "xz", "zst"].iter().any(|packing| end == *packing) {
        let (shown, end) = (shown_name(path), end.display());
        let message =
            format!("{option} {shown}: text is written plain, expected a name that does not end in .{end}");
        return Err(Failure::Usage(message));
    }
    Ok(())
}

/// Rejects a path where no file can be created.
pub(crate) fn check_folder(option: &str, path: &str) -> Result<()> {
    let (place, shown) = (Path::new(path), shown_name(path));
    if path == STANDARD {
        return Ok(());
    }
    if path.is_empty() || place.is_dir() {
        return Err(Failure::Usage(format!("{option} {shown}: expected the name of a file")));
    }
    match place.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) if !folder.is_dir() => {
            let folder = folder.display().to_string();
            Err(Failure::Usage(format!("{option} {shown}: there is no folder {}", shown_name(&folder))))
        }
        _ => Ok(()),
    }
}
