//! Reading: header first, then blocks of lines by all threads, then the matrix.
use super::blocks::Blocks;
use super::entries::{Parsed, parse, place};
use super::header::{Field, Header, HeaderLines, Layout};
use super::scan::Fault;
use crate::Csr;
use crate::assemble::{Entry, assemble};
use flate2::read::MultiGzDecoder;
use lacuna_core::{Error, Result, Scalar};
use rayon::prelude::*;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Rows or columns that may be claimed without entries to show for them; beyond, so many for each entry. A header
/// alone costs no more memory than this.
const FREE_ROWS: u64 = 1 << 26;
/// Rows or columns for each entry beyond [`FREE_ROWS`].
const ROWS_PER_ENTRY: u64 = 256;

/// How to read.
#[derive(Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// Called now and then with the bytes of the file read so far and all of them; from several threads, one at a
    /// time. The reading waits for it, and it must not run parallel work of its own on the same pool.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
}

impl std::fmt::Debug for ReadOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadOptions").field("progress", &self.progress.is_some()).finish()
    }
}

/// Reads the matrix in a Matrix Market file, compressed by gzip or not.
///
/// Repeated entries are summed in the order of the file; of an array only what is not zero is kept.
///
/// # Errors
/// When the file cannot be read, is not Matrix Market to the letter (the error has the line and column), promises
/// other entries than it has, or holds complex numbers and `T` is real.
pub fn read_matrix<T: Scalar>(path: impl AsRef<Path>, options: &ReadOptions<'_>) -> Result<Csr<T>> {
    let (name, file, total) = open(path.as_ref())?;
    matrix(Source { name, total, progress: options.progress }, file)
}

/// As [`read_matrix`], from the bytes of a file; errors call them `name`.
///
/// # Errors
/// As [`read_matrix`].
pub fn parse_matrix<T: Scalar>(name: &str, bytes: &[u8]) -> Result<Csr<T>> {
    matrix(Source::of_bytes(name, bytes), bytes)
}

/// Reads what a Matrix Market file says of itself, and no more: enough to choose a number type.
///
/// # Errors
/// When the file cannot be read or its first lines are not those of a Matrix Market file.
pub fn read_header(path: impl AsRef<Path>) -> Result<Header> {
    let (name, file, total) = open(path.as_ref())?;
    let source = Source { name, total, progress: None };
    Ok(source.start(file, &AtomicU64::new(0))?.header)
}

/// As [`read_header`], from the bytes of a file; errors call them `name`.
///
/// # Errors
/// As [`read_header`].
pub fn parse_header(name: &str, bytes: &[u8]) -> Result<Header> {
    Ok(Source::of_bytes(name, bytes).start(bytes, &AtomicU64::new(0))?.header)
}

/// Reads the vector in a Matrix Market file: an array or coordinate matrix of one column.
///
/// # Errors
/// As [`read_matrix`], and when there is not exactly one column.
pub fn read_vector<T: Scalar>(path: impl AsRef<Path>) -> Result<Vec<T>> {
    let (name, file, total) = open(path.as_ref())?;
    vector(Source { name, total, progress: None }, file)
}

/// As [`read_vector`], from the bytes of a file; errors call them `name`.
///
/// # Errors
/// As [`read_vector`].
pub fn parse_vector<T: Scalar>(name: &str, bytes: &[u8]) -> Result<Vec<T>> {
    vector(Source::of_bytes(name, bytes), bytes)
}

fn open(path: &Path) -> Result<(String, File, u64)> {
    let name = path.display().to_string();
    let failed = |source| Error::Io { operation: "opening".into(), path: name.clone(), source };
    let file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if about.is_dir() {
        return Err(failed(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder, not a file")));
    }
    Ok((name, file, about.len()))
}

fn matrix<T: Scalar>(source: Source<'_>, raw: impl Read + Send) -> Result<Csr<T>> {
    let operation = format!("reading {}", source.name);
    let (header, parts) = source.read::<T>(raw)?;
    let parts = match header.layout {
        Layout::Coordinate => parts.into_iter().map(|p| p.entries).collect(),
        Layout::Array => source.placed(&header, parts)?,
    };
    assemble(&operation, header.rows, header.cols, parts.into_iter().map(Cow::Owned).collect())
}

fn vector<T: Scalar>(source: Source<'_>, raw: impl Read + Send) -> Result<Vec<T>> {
    let operation = format!("reading {}", source.name);
    let (header, parts) = source.read::<T>(raw)?;
    if header.cols != 1 {
        return Err(Error::Shape {
            operation,
            expected: "a vector, that is one column".into(),
            got: (header.rows, header.cols),
        });
    }
    let entries = parts.into_iter().flat_map(|p| p.entries);
    if header.layout == Layout::Array {
        return Ok(entries.map(|(_, _, v)| v).collect());
    }
    let mut x = vec![T::zero(); header.rows];
    entries.for_each(|(i, _, v)| x[i as usize] += v);
    match x.iter().position(|v| !v.finite()) {
        None => Ok(x),
        Some(row) => Err(Error::Element {
            operation,
            what: "the sum of repeated entries".into(),
            row,
            message: "is not finite".into(),
        }),
    }
}

/// A text being read: its name, its bytes in the file, and whom to tell how far it is.
struct Source<'a> {
    name: String,
    total: u64,
    progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
}

/// A text whose header was read.
struct Started<R> {
    header: Header,
    /// Lines up to the sizes.
    lines: u64,
    /// Lines behind the sizes already taken from `blocks`.
    rest: Vec<u8>,
    blocks: Blocks<R>,
}

/// What the workers share: the text, and how many blocks were taken from it.
struct Feed<R> {
    started: Started<R>,
    taken: usize,
    failed: Option<io::Error>,
}

impl<R: Read> Feed<R> {
    /// The next block and its number.
    fn next(&mut self, block: &mut Vec<u8>) -> Option<usize> {
        if self.started.rest.is_empty() {
            match self.started.blocks.next(block) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(e) => {
                    self.failed = Some(e);
                    return None;
                }
            }
        } else {
            *block = std::mem::take(&mut self.started.rest);
        }
        self.taken += 1;
        Some(self.taken - 1)
    }
}

impl Source<'_> {
    fn of_bytes(name: &str, bytes: &[u8]) -> Self {
        Self { name: name.into(), total: bytes.len() as u64, progress: None }
    }

    fn io(&self, source: io::Error) -> Error {
        Error::Io { operation: "reading".into(), path: self.name.clone(), source }
    }

    /// The error at a line, counted from 1.
    fn parse_error(&self, line: u64, column: u64, message: String) -> Error {
        Error::Parse { source_name: self.name.clone(), line, column, message }
    }

    /// Reads the header.
    fn start<'r, R: Read + Send + 'r>(
        &self,
        raw: R,
        done: &'r AtomicU64,
    ) -> Result<Started<Box<dyn Read + Send + 'r>>> {
        let text = decompressed(Counted { inner: raw, done }).map_err(|e| self.io(e))?;
        let (mut blocks, mut block) = (Blocks::new(text), Vec::new());
        let (mut lines, mut head) = (0, HeaderLines::default());
        while blocks.next(&mut block).map_err(|e| self.io(e))? {
            let mut start = 0;
            while let Some(length) = block[start..].iter().position(|&b| b == b'\n') {
                let line = &block[start..start + length];
                lines += 1;
                start += length + 1;
                let header = head.line(line).map_err(|Fault { at, message }| {
                    self.parse_error(lines, at.map_or(0, |at| at as u64 + 1), message)
                })?;
                if let Some(header) = header {
                    block.drain(..start);
                    return Ok(Started { header, lines, rest: block, blocks });
                }
            }
        }
        let Fault { message, .. } = head.missing();
        Err(self.parse_error(lines.max(1), 0, message))
    }

    /// Reads header and entries, the entries in the order of the file.
    fn read<T: Scalar>(&self, raw: impl Read + Send) -> Result<(Header, Vec<Parsed<T>>)> {
        let done = AtomicU64::new(0);
        let started = self.start(raw, &done)?;
        let (header, mut lines) = (started.header.clone(), started.lines);
        self.check(&header, lines, T::KIND)?;

        let feed = Mutex::new(Feed { started, taken: 0, failed: None });
        let (found, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let parts = Mutex::new(Vec::new());
        let worker = || {
            let (mut block, mut room, mut own) = (Vec::new(), 0, Vec::new());
            while !stop.load(Ordering::Relaxed) {
                let number = {
                    let mut feed = feed.lock().unwrap_or_else(PoisonError::into_inner);
                    let Some(number) = feed.next(&mut block) else { break };
                    if let Some(progress) = self.progress {
                        progress(done.load(Ordering::Relaxed), self.total);
                    }
                    number
                };
                let parsed = parse::<T>(&block, &header, room);
                room = parsed.entries.len() + parsed.entries.len() / 32;
                let found = found.fetch_add(parsed.stored, Ordering::Relaxed) + parsed.stored;
                // Every block before this one is already taken, so the first error of the file will be known.
                if parsed.fault.is_some() || found > header.entries {
                    stop.store(true, Ordering::Relaxed);
                }
                own.push((number, parsed));
            }
            parts.lock().unwrap_or_else(PoisonError::into_inner).append(&mut own);
        };
        rayon::scope(|scope| (0..rayon::current_num_threads()).for_each(|_| scope.spawn(|_| worker())));

        let mut parts: Vec<(usize, Parsed<T>)> = parts.into_inner().unwrap_or_else(PoisonError::into_inner);
        parts.sort_by_key(|part| part.0);
        let mut stored = 0;
        for (_, part) in &mut parts {
            if stored + part.stored > header.entries {
                let line = lines + 1 + part.line_of(header.entries - stored);
                let message = format!("the header promises {} entries, here is one more", header.entries);
                return Err(self.parse_error(line, 0, message));
            }
            if let Some((line, column, message)) = part.fault.take() {
                return Err(self.parse_error(lines + 1 + line, column, message));
            }
            stored += part.stored;
            lines += part.lines;
        }
        let feed = feed.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(e) = feed.failed {
            return Err(self.io(e));
        }
        if stored < header.entries {
            let promised = header.entries;
            let message = format!("the header promises {promised} entries, the file ends after {stored}");
            return Err(self.parse_error(lines, 0, message));
        }
        if let Some(progress) = self.progress {
            progress(self.total, self.total);
        }
        Ok((header, parts.into_iter().map(|part| part.1).collect()))
    }

    /// What can be said of a header before its entries are read.
    fn check(&self, header: &Header, line: u64, kind: lacuna_core::Kind) -> Result<()> {
        if header.field == Field::Complex && !kind.is_complex() {
            return Err(Error::Unsupported {
                operation: format!("reading {}", self.name),
                message: format!("the file holds complex numbers, {} cannot; use c64 or c32", kind.name()),
            });
        }
        let most = FREE_ROWS.max(header.entries.saturating_mul(ROWS_PER_ENTRY));
        let side = header.rows.max(header.cols) as u64;
        if header.layout == Layout::Coordinate && side > most {
            let entries = header.entries;
            return Err(self.parse_error(
                line,
                0,
                format!("{side} rows or columns for {entries} entries: at most {most} are made room for"),
            ));
        }
        Ok(())
    }

    /// The entries of an array at their places.
    fn placed<T: Scalar>(&self, header: &Header, parts: Vec<Parsed<T>>) -> Result<Vec<Vec<Entry<T>>>> {
        let mut next = 0;
        let mut start = |part: &Parsed<T>| {
            next += part.stored;
            next - part.stored
        };
        let starts: Vec<u64> = parts.iter().map(&mut start).collect();
        parts
            .into_par_iter()
            .zip(starts)
            .map(|(part, first)| {
                place(header, first, part.entries).map_err(|(k, message)| Error::Structure {
                    operation: format!("reading {}", self.name),
                    message: format!("value {} of the array: {message}", first + k + 1),
                })
            })
            .collect::<Vec<_>>()
            .into_iter()
            .collect()
    }
}

/// Counts the bytes that are read.
struct Counted<'a, R> {
    inner: R,
    done: &'a AtomicU64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.done.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// The text of `raw`, which is compressed when it begins as gzip does.
fn decompressed<'r>(mut raw: impl Read + Send + 'r) -> io::Result<Box<dyn Read + Send + 'r>> {
    let mut magic = Vec::new();
    raw.by_ref().take(2).read_to_end(&mut magic)?;
    let compressed = magic == [0x1F, 0x8B];
    let whole = io::Cursor::new(magic).chain(raw);
    Ok(if compressed {
        Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(1 << 16, whole)))
    } else {
        Box::new(whole)
    })
}
