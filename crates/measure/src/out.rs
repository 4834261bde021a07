//! Writing to standard output and error, whose reader may close at any time.
use crate::failure::{Failure, Result};
use crate::input::STANDARD;
use lacuna::backend::text::{printable, printable_json, shown_name};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Prints text to standard output, with control characters and invisible ones escaped. A closed reader is not
/// an error.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(printable(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::writing("standard output", error))
        }
        _ => Ok(()),
    }
}

/// Prints a line to standard error, ignoring failures.
pub fn note(line: &str) {
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
pub fn stream(write: impl FnOnce(&mut dyn Write) -> lacuna::Result<()>) -> Result<()> {
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

/// An option, or the name of an argument, and the path given for it.
pub type Given<'a> = (&'a str, Option<&'a str>);

/// Rejects outputs that cannot be written, and those that would overwrite one another or an input, before any work
/// is done for them.
pub fn check_outputs(outputs: &[Given<'_>], inputs: &[Given<'_>]) -> Result<()> {
    let (written, mut read) = (placed(outputs), placed(inputs));
    read.retain(|(_, path, _)| *path == STANDARD || Path::new(path).exists());
    for (k, (option, path, place)) in written.iter().enumerate() {
        check_place(option, path)?;
        let shown = shown_name(path);
        if *path == STANDARD || place.is_none() {
            continue;
        }
        if let Some((input, ..)) = read.iter().find(|(.., other)| other == place) {
            let message = format!("{option} {shown}: it is {input} too, which would be overwritten");
            return Err(Failure::Usage(message + "; expected another file"));
        }
        let earlier = written[..k].iter().find(|(_, name, other)| *name != STANDARD && other == place);
        if let Some((first, name, _)) = earlier {
            let name = shown_name(name);
            let message = format!("{first} {name} and {option} {shown}: expected two different files");
            return Err(Failure::Usage(message));
        }
    }
    check_standard(outputs)
}

/// The paths that were given, with their places.
fn placed<'a>(given: &[Given<'a>]) -> Vec<(&'a str, &'a str, Option<Place>)> {
    let paths = given.iter().filter_map(|&(option, path)| Some((option, path?)));
    paths.map(|(option, path)| (option, path, Place::of(path))).collect()
}

/// Where a file is, whatever it is called.
#[derive(PartialEq)]
enum Place {
    /// A file by its device and inode numbers.
    #[cfg(unix)]
    File(u64, u64),
    /// A file by its folder and its name: one that is not there yet.
    Path(PathBuf),
}

impl Place {
    /// `None` for a terminal, a pipe or a device.
    fn of(path: &str) -> Option<Self> {
        match std::fs::metadata(if path == STANDARD { "/dev/stdin" } else { path }) {
            Ok(about) if !about.is_file() => None,
            #[cfg(unix)]
            Ok(about) => {
                use std::os::unix::fs::MetadataExt;
                Some(Place::File(about.dev(), about.ino()))
            }
            #[cfg(not(unix))]
            Ok(_) => std::fs::canonicalize(path).ok().map(Place::Path),
            Err(_) => {
                let path = Path::new(path);
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = std::fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
                Some(Place::Path(folder.join(path.file_name()?)))
            }
        }
    }
}

/// Rejects two outputs that would both go to standard output.
fn check_standard(outputs: &[Given<'_>]) -> Result<()> {
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
pub fn report(
    quiet: bool,
    path: Option<&str>,
    text: impl FnOnce() -> String,
    value: impl FnOnce() -> serde_json::Value,
) -> Result<()> {
    report_aside(quiet, false, path, text, value)
}

/// The same, with the text on standard error also if standard output carries other data (`aside`).
pub fn report_aside(
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

/// Options whose files are text, written plain.
const TEXT: [&str; 5] = ["--json", "--html", "--markdown", "--plot", "--histogram"];

/// Rejects a path where no file can be created, and for text a name that promises compression.
fn check_place(option: &str, path: &str) -> Result<()> {
    let (place, shown) = (Path::new(path), shown_name(path));
    let end = place.extension().unwrap_or_default().to_ascii_lowercase();
    if TEXT.contains(&option) && ["gz", "bz2", "xz", "zst"].iter().any(|packing| end == *packing) {
        let end = end.display();
        let message =
            format!("{option} {shown}: text is written plain, expected a name that does not end in .{end}");
        return Err(Failure::Usage(message));
    }
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
