//! Tar archives in the layout of SuiteSparse: `NAME/NAME.mtx` or `NAME/NAME.rb`, together with the right-hand
//! side `NAME/NAME_b.mtx` and other files.
//!
//! An archive is read once, from start to end, so that it may come from a pipe. Small members that may turn
//! out to be the requested one are kept. After a member the rest is read too, and the right-hand side in it
//! kept: a compressed archive has its check sum at its end.
use super::unpack::Stream;
use lacuna_engine::text::shown_name;
use lacuna_engine::{Error, Result};
use std::io::{self, Cursor, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum total bytes of members kept.
const KEPT: u64 = 1 << 30;
/// Maximum number of members listed in an error.
const LISTED: usize = 8;
/// Block size that members are padded to.
const BLOCK: u64 = 512;
/// Maximum number of bytes between files: a compressed archive may name a file by gigabytes of zeros.
const MOST_BETWEEN: u64 = 4 << 20;

/// What to read from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A matrix: in an archive, the member named like its folder or like the archive, or the only one.
    Matrix,
    /// A vector: in an archive, the member whose name ends in `_b`, or the only one.
    Vector,
}

/// Whether a file begins like a tar archive: with a header whose checksum is correct.
pub(super) fn is_tar(head: &[u8]) -> bool {
    let Some(header) = head.get(..BLOCK as usize) else { return false };
    let field = String::from_utf8_lossy(&header[148..156]);
    let Ok(stored) = u64::from_str_radix(field.trim_matches([' ', '\0']), 8) else { return false };
    let sum = |bytes: &[u8]| bytes.iter().map(|&b| u64::from(b)).sum::<u64>();
    header[0] != 0 && stored == sum(&header[..148]) + 8 * u64::from(b' ') + sum(&header[156..])
}

/// An archive positioned between two members, or within one.
pub(super) struct Archive<'r> {
    source: Stream<'r>,
    /// Unread bytes of the member.
    left: u64,
    /// Bytes after them up to the next header.
    padding: u64,
    kept: Vec<(String, Vec<u8>)>,
    /// How many more bytes may be kept.
    room: u64,
    /// The right-hand side, if it is too large to be kept; the archive is then positioned at its start.
    pending: Option<String>,
}

/// An archive whose matrix has been found.
pub(crate) struct Beside<'r> {
    archive: Arc<Mutex<Archive<'r>>>,
    /// The name of the archive.
    name: String,
    /// The matrix's name without its extension.
    stem: Arc<str>,
}

/// A member that was found, and its archive.
pub(super) struct Found<'r> {
    pub(super) name: String,
    pub(super) text: Stream<'r>,
    pub(super) beside: Beside<'r>,
}

/// Finds the requested member in an archive named `name`. The outer error is a read error; the inner one
/// describes what was found instead.
pub(super) fn find<'r>(
    source: Stream<'r>,
    name: &str,
    wanted: Wanted,
) -> io::Result<Result<Found<'r>, String>> {
    let mut archive = Archive { source, left: 0, padding: 0, kept: Vec::new(), room: KEPT, pending: None };
    let (own, mut others) = (archive_stem(name), Vec::new());
    while let Some(path) = archive.next()? {
        let Some((folder, stem)) = matrix_name(&path) else {
            others.push(path);
            continue;
        };
        let is_matrix = folder == Some(stem) || own == stem;
        let fits = match wanted {
            Wanted::Matrix => is_matrix,
            Wanted::Vector => stem.ends_with("_b"),
        };
        if fits {
            let archive = Arc::new(Mutex::new(archive));
            let beside = Beside { archive, name: name.into(), stem: stem.into() };
            return Ok(Ok(Found { text: Box::new(beside.member()), name: path, beside }));
        }
        if archive.left <= archive.room {
            archive.keep(path)?;
        } else if wanted == Wanted::Matrix {
            return Ok(Err(format!(
                "the archive holds {} beside other matrices, and none that is called as its folder; unpack it first",
                shown_name(&path)
            )));
        }
    }
    archive.drain()?;
    Ok(only(archive, name, others))
}

/// The only possible member of an archive that was read to its end.
fn only<'r>(mut archive: Archive<'r>, name: &str, others: Vec<String>) -> Result<Found<'r>, String> {
    let list = |names: &[&str]| {
        let more = if names.len() > LISTED { ", …" } else { "" };
        let listed: Vec<_> = names.iter().take(LISTED).map(|name| shown_name(name)).collect();
        listed.join(", ") + more
    };
    let stems: Vec<&str> =
        archive.kept.iter().filter_map(|(path, _)| matrix_name(path)).map(|(_, stem)| stem).collect();
    // `NAME_b`, `NAME_x` or `NAME_coord` belong to `NAME`.
    let belongs = |stem: &str| {
        stems.iter().any(|other| stem.strip_prefix(other).is_some_and(|rest| rest.starts_with('_')))
    };
    let candidates: Vec<usize> = (0..stems.len()).filter(|&k| !belongs(stems[k])).collect();
    let stem = match candidates[..] {
        [k] => stems[k].into(),
        [] => {
            let names: Vec<&str> = others.iter().map(String::as_str).collect();
            let holds = if names.is_empty() { "no file at all".into() } else { list(&names) };
            return Err(format!("no member of the archive ends in .mtx or .rb; it holds {holds}"));
        }
        _ => {
            let names: Vec<&str> = candidates.iter().map(|&k| archive.kept[k].0.as_str()).collect();
            return Err(format!("several members may be meant: {}; unpack the archive first", list(&names)));
        }
    };
    let (member, text) = archive.kept.remove(candidates[0]);
    let beside = Beside { archive: Arc::new(Mutex::new(archive)), name: name.into(), stem };
    Ok(Found { name: member, text: Box::new(Cursor::new(text)), beside })
}

impl<'r> Beside<'r> {
    /// The right-hand side for the matrix that errors call `name`, and its own name for errors.
    pub(super) fn named_right_hand_side(&self, name: &str) -> Result<Option<(String, Stream<'r>)>> {
        let failed = |source| Error::Io { operation: "reading".into(), path: name.into(), source };
        let found = self.right_hand_side().map_err(failed)?;
        Ok(found.map(|(member, stream)| (format!("{}:{}", self.name, shown_name(&member)), stream)))
    }

    /// The right-hand side of the matrix, `NAME_b`, with its name.
    fn right_hand_side(&self) -> io::Result<Option<(String, Stream<'r>)>> {
        let mut archive = lock(&self.archive);
        archive.finish(&self.stem)?;
        if let Some(path) = archive.pending.take() {
            return Ok(Some((path, Box::new(self.member()))));
        }
        Ok(archive.kept.iter().position(|(path, _)| is_right_hand_side(path, &self.stem)).map(|k| {
            let (path, text) = archive.kept.remove(k);
            (path, Box::new(Cursor::new(text)) as Stream<'r>)
        }))
    }

    /// The member at which the archive is positioned.
    fn member(&self) -> Member<'r> {
        Member { archive: self.archive.clone(), stem: self.stem.clone(), ended: false }
    }
}

/// Whether a member is `NAME_b` for the matrix `NAME`.
fn is_right_hand_side(path: &str, stem: &str) -> bool {
    matrix_name(path).and_then(|(_, own)| own.strip_prefix(stem)).is_some_and(|rest| rest == "_b")
}

/// The folder of a matrix file, and its name without extension.
fn matrix_name(path: &str) -> Option<(Option<&str>, &str)> {
    let mut parts = path.rsplit('/');
    let file = parts.next()?;
    let end = |file: &str, end: &str| {
        let at = file.len().checked_sub(end.len())?;
        (file.is_char_boundary(at) && file[at..].eq_ignore_ascii_case(end)).then_some(at)
    };
    let plain = [".gz", ".bz2", ".xz"].iter().find_map(|e| end(file, e)).map_or(file, |at| &file[..at]);
    let stem = &plain[..[".mtx", ".rb"].iter().find_map(|e| end(plain, e))?];
    // macOS archives a file's metadata as a second file with this prefix.
    (!file.starts_with("._")).then(|| (parts.next(), stem))
}

/// The name of an archive without folder and extensions.
fn archive_stem(name: &str) -> &str {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    file.split('.').next().unwrap_or(file)
}

impl Archive<'_> {
    /// Advances to the next file and returns its name; its bytes can then be read.
    fn next(&mut self) -> io::Result<Option<String>> {
        self.pass(self.left + self.padding)?;
        (self.left, self.padding) = (0, 0);
        let mut source = self.source.by_ref().take(MOST_BETWEEN);
        let found = next_file(&mut source);
        if found.is_err() && source.limit() == 0 {
            let message = format!("more than {} MiB of names and headers before a file", MOST_BETWEEN >> 20);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(found?.map(|(path, size)| {
            (self.left, self.padding) = (size, size.next_multiple_of(BLOCK) - size);
            path
        }))
    }

    /// Keeps the current member.
    fn keep(&mut self, path: String) -> io::Result<()> {
        self.room -= self.left;
        let mut text = Vec::new();
        self.read_to_end(&mut text)?;
        self.kept.push((path, text));
        Ok(())
    }

    /// Reads to the end, keeping the right-hand side of the matrix `stem`; stops at it if it is too large.
    fn finish(&mut self, stem: &str) -> io::Result<()> {
        if self.pending.is_some() {
            return Ok(());
        }
        while let Some(path) = self.next()? {
            match is_right_hand_side(&path, stem) {
                true if self.left <= self.room => self.keep(path)?,
                true => {
                    self.pending = Some(path);
                    return Ok(());
                }
                false => {}
            }
        }
        self.drain()
    }

    /// Reads what follows the last member.
    fn drain(&mut self) -> io::Result<()> {
        io::copy(&mut self.source, &mut io::sink()).map(|_| ())
    }

    fn pass(&mut self, bytes: u64) -> io::Result<()> {
        let passed = io::copy(&mut self.source.by_ref().take(bytes), &mut io::sink())?;
        if passed < bytes { Err(self.cut_short()) } else { Ok(()) }
    }

    fn cut_short(&self) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, "the archive ends within a member")
    }
}

/// The name and the size of the next file.
fn next_file(source: &mut impl Read) -> io::Result<Option<(String, u64)>> {
    for entry in tar::Archive::new(source).entries()? {
        let entry = entry?;
        if entry.header().entry_type().is_file() {
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            return Ok(Some((path, entry.size())));
        }
    }
    Ok(None)
}

/// The bytes of the member.
impl Read for Archive<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.source.by_ref().take(self.left).read(buffer)?;
        if n == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(self.cut_short());
        }
        self.left -= n as u64;
        Ok(n)
    }
}

/// The bytes of the member of a shared archive, which is read to its end after them.
struct Member<'r> {
    archive: Arc<Mutex<Archive<'r>>>,
    /// The matrix of the archive.
    stem: Arc<str>,
    ended: bool,
}

impl Read for Member<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended || buffer.is_empty() {
            return Ok(0);
        }
        let mut archive = lock(&self.archive);
        let n = archive.read(buffer)?;
        if n == 0 {
            self.ended = true;
            archive.finish(&self.stem)?;
        }
        Ok(n)
    }
}

fn lock<'a, 'r>(archive: &'a Mutex<Archive<'r>>) -> MutexGuard<'a, Archive<'r>> {
    archive.lock().unwrap_or_else(PoisonError::into_inner)
}
