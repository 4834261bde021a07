//! Reading: all threads parse blocks of lines after the header, then the matrix is assembled.
use super::entries::{Parsed, parse, place};
use super::header::{Field, Header, Layout, Symmetry};
use super::opened::{Opened, Unread};
use super::rounded::Rounding;
use crate::Wanted;
use lacuna_engine::{Error, Result, Scalar, compiled_here, memory, pages};
use lacuna_formats::Csr;
use lacuna_formats::build::{Entry, assemble};
use lacuna_formats::parallel;
use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maximum number of rows or columns that a header may claim without entries; above that, it is limited in
/// proportion to the entries. A header alone costs no more memory than this.
const FREE_ROWS: u64 = 1 << 26;
/// Maximum rows or columns per entry above [`FREE_ROWS`].
const ROWS_PER_ENTRY: u64 = 256;

/// Maximum number of rows or columns for a file with this many entries.
pub(crate) fn most_rows(entries: u64) -> u64 {
    FREE_ROWS.max(entries.saturating_mul(ROWS_PER_ENTRY))
}

/// Options for reading.
#[derive(Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// Called at intervals with the bytes of the file read so far and the total, 0 if unknown; from several
    /// threads, one at a time. Reading waits for it, and it must not run parallel work on the same pool.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// Called with notes about a file that was read, in words: numbers not representable in the number type.
    pub notes: Option<&'a (dyn Fn(&str) + Sync)>,
}

impl std::fmt::Debug for ReadOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (progress, notes) = (self.progress.is_some(), self.notes.is_some());
        f.debug_struct("ReadOptions").field("progress", &progress).field("notes", &notes).finish()
    }
}

/// Reads the matrix in a Matrix Market file, plain, compressed by gzip, bzip2 or xz, or in a tar archive.
///
/// Repeated entries are summed in file order; zeros of an array are dropped.
///
/// # Errors
/// When the file cannot be read, violates the Matrix Market format (the error has the line and column), has a
/// different number of entries than it declares, holds complex numbers and `T` is real, or its entries cannot
/// fit in memory.
pub fn read_matrix<T: Scalar>(path: impl AsRef<Path>, options: &ReadOptions<'_>) -> Result<Csr<T>> {
    Opened::open(path, Wanted::Matrix)?.matrix(options)
}

/// As [`read_matrix`], from the bytes of a file; errors call them `name`.
///
/// # Errors
/// As [`read_matrix`].
pub fn parse_matrix<T: Scalar>(name: &str, bytes: &[u8]) -> Result<Csr<T>> {
    of_bytes(name, bytes, Wanted::Matrix)?.matrix(&ReadOptions::default())
}

/// Reads only the header of a Matrix Market file: enough to choose a number type. Use [`Opened`] for sources
/// that cannot be opened twice.
///
/// # Errors
/// When the file cannot be read or its first lines are not a Matrix Market header.
pub fn read_header(path: impl AsRef<Path>) -> Result<Header> {
    Ok(Opened::open(path, Wanted::Matrix)?.into_header())
}

/// As [`read_header`], from the bytes of a file; errors call them `name`.
///
/// # Errors
/// As [`read_header`].
pub fn parse_header(name: &str, bytes: &[u8]) -> Result<Header> {
    Ok(of_bytes(name, bytes, Wanted::Matrix)?.into_header())
}

/// Reads the vector in a Matrix Market file: an array or coordinate matrix of one column.
///
/// # Errors
/// As [`read_matrix`], and when there is not exactly one column.
pub fn read_vector<T: Scalar>(path: impl AsRef<Path>) -> Result<Vec<T>> {
    Opened::open(path, Wanted::Vector)?.vector(&ReadOptions::default())
}

/// As [`read_vector`], from the bytes of a file; errors call them `name`.
///
/// # Errors
/// As [`read_vector`].
pub fn parse_vector<T: Scalar>(name: &str, bytes: &[u8]) -> Result<Vec<T>> {
    of_bytes(name, bytes, Wanted::Vector)?.vector(&ReadOptions::default())
}

fn of_bytes<'r>(name: &str, bytes: &'r [u8], wanted: Wanted) -> Result<Opened<'r>> {
    Opened::start(name, bytes, Some(bytes.len() as u64), wanted)
}

/// State shared by the workers: the text, and the number of blocks taken from it.
struct Feed<'r> {
    unread: Unread<'r>,
    taken: usize,
    failed: Option<io::Error>,
}

impl Feed<'_> {
    /// The next block and its number.
    fn next(&mut self, block: &mut Vec<u8>) -> Option<usize> {
        if self.unread.rest.is_empty() {
            match self.unread.blocks.next(block) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(e) => {
                    self.failed = Some(e);
                    return None;
                }
            }
        } else {
            *block = std::mem::take(&mut self.unread.rest);
        }
        self.taken += 1;
        Some(self.taken - 1)
    }
}

impl Opened<'_> {
    /// Reads the matrix after the header. Can be repeated only if the text was kept.
    ///
    /// # Errors
    /// As [`read_matrix`].
    pub fn matrix<T: Scalar>(&mut self, options: &ReadOptions<'_>) -> Result<Csr<T>> {
        compiled_here!(T, |file: &mut Opened<'_>, options: &ReadOptions<'_>| -> Result<Csr<T>> {
            let (header, parts) = file.read::<T>(options)?;
            let parts = file.placed(&header, parts)?.into_iter().map(Cow::Owned).collect();
            assemble(&file.operation(), header.rows, header.cols, parts)
        })(self, options)
    }

    /// Reads the vector after the header. Can be repeated only if the text was kept.
    ///
    /// # Errors
    /// As [`read_vector`].
    pub fn vector<T: Scalar>(&mut self, options: &ReadOptions<'_>) -> Result<Vec<T>> {
        compiled_here!(T, |file: &mut Opened<'_>, options: &ReadOptions<'_>| -> Result<Vec<T>> {
            let operation = file.operation();
            if file.header().cols != 1 {
                let (expected, header) = ("a vector, that is one column".into(), file.header());
                return Err(Error::Shape { operation, expected, got: (header.rows, header.cols) });
            }
            let (header, parts) = file.read::<T>(options)?;
            if header.layout == Layout::Array && header.symmetry == Symmetry::General {
                return Ok(parts.into_iter().flat_map(|p| p.entries).map(|(_, _, v)| v).collect());
            }
            let mut x = pages::zeroed::<T>(&operation, header.rows)?;
            let entries = file.placed(&header, parts)?.into_iter().flatten();
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
        })(self, options)
    }

    /// Reads the entries, in file order.
    fn read<T: Scalar>(&mut self, options: &ReadOptions<'_>) -> Result<(Header, Vec<Parsed<T>>)> {
        let (header, mut lines, unread) = self.entries()?;
        self.check::<T>(&header, lines)?;

        let feed = Mutex::new(Feed { unread, taken: 0, failed: None });
        let (found, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let parts = Mutex::new(Vec::new());
        let size = &self.size;
        let worker = || {
            let (mut block, mut room, mut own) = (Vec::new(), 0, Vec::new());
            while !stop.load(Ordering::Relaxed) {
                let number = {
                    let mut feed = feed.lock().unwrap_or_else(PoisonError::into_inner);
                    let Some(number) = feed.next(&mut block) else { break };
                    size.progress(options, false);
                    number
                };
                let parsed = parse::<T>(&block, &header, room);
                room = parsed.entries.len() + parsed.entries.len() / 32;
                let found = found.fetch_add(parsed.stored, Ordering::Relaxed) + parsed.stored;
                // Every earlier block has already been taken, so the first error of the file will be found.
                if parsed.fault.is_some() || found > header.entries {
                    stop.store(true, Ordering::Relaxed);
                }
                own.push((number, parsed));
            }
            parts.lock().unwrap_or_else(PoisonError::into_inner).append(&mut own);
        };
        parallel::for_each(0..rayon::current_num_threads(), |_| worker());

        let mut parts: Vec<(usize, Parsed<T>)> = parts.into_inner().unwrap_or_else(PoisonError::into_inner);
        parts.sort_by_key(|part| part.0);
        let (mut stored, mut rounding) = (0, Rounding::default());
        for (_, part) in &mut parts {
            let left = header.entries - stored;
            // An invalid line also counts as one too many.
            let too_many = part.stored > left || (part.stored == left && part.fault.is_some());
            if too_many {
                let line = lines + 1 + part.line_of(left);
                return Err(self.parse_error(line, 0, too_many_lines(&header)));
            }
            if let Some((line, column, message)) = part.fault.take() {
                return Err(self.parse_error(lines + 1 + line, column, message));
            }
            rounding.add(std::mem::take(&mut part.rounding), lines);
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
        if let Some(notes) = options.notes {
            rounding.report(self.name(), T::KIND, notes);
        }
        self.size.progress(options, true);
        Ok((header, parts.into_iter().map(|part| part.1).collect()))
    }

    /// Checks a header before its entries are read.
    fn check<T: Scalar>(&self, header: &Header, line: u64) -> Result<()> {
        let kind = T::KIND;
        if header.field == Field::Complex && !kind.is_complex() {
            return Err(Error::Unsupported {
                operation: self.operation(),
                message: format!("the file holds complex numbers, {} cannot; use c64 or c32", kind.name()),
            });
        }
        let most = most_rows(header.entries);
        let side = header.rows.max(header.cols) as u64;
        if side > most {
            let entries = header.entries;
            return Err(self.parse_error(
                line,
                0,
                format!("{side} rows or columns for {entries} entries: at most {most} are made room for"),
            ));
        }
        let images = if header.symmetry == Symmetry::General { 1 } else { 2 };
        let bytes = self.entries_at_most(header).saturating_mul(images * size_of::<Entry<T>>() as u64);
        memory::check(&self.operation(), bytes)
    }

    /// An upper bound of the number of entries: those declared, or those that fit in the bytes of the file.
    fn entries_at_most(&self, header: &Header) -> u64 {
        let shortest = match header.layout {
            Layout::Coordinate => "1 1\n".len() as u64,
            Layout::Array => "1\n".len() as u64,
        };
        match self.size.total {
            Some(bytes) if self.size.plain => header.entries.min(bytes / shortest),
            _ => header.entries,
        }
    }

    /// The entries with their places, which those of an array get from their order.
    fn placed<T: Scalar>(&self, header: &Header, parts: Vec<Parsed<T>>) -> Result<Vec<Vec<Entry<T>>>> {
        if header.layout == Layout::Coordinate {
            return Ok(parts.into_iter().map(|p| p.entries).collect());
        }
        let mut next = 0;
        let mut start = |part: &Parsed<T>| {
            next += part.stored;
            next - part.stored
        };
        let starts: Vec<u64> = parts.iter().map(&mut start).collect();
        let operation = self.operation();
        let placed = parallel::map(parts.into_iter().zip(starts), |(part, first)| {
            place(header, first, part.entries).map_err(|(k, message)| Error::Structure {
                operation: operation.clone(),
                message: format!("value {} of the array: {message}", first + k + 1),
            })
        });
        placed.into_iter().collect()
    }
}

/// Describes the error of a line after the declared ones.
fn too_many_lines(header: &Header) -> String {
    let amgx = header.comments.iter().any(|comment| comment.starts_with("%AMGX"));
    let why = if amgx { ": AmgX puts vectors behind the matrix, which are not read" } else { "" };
    format!("the header promises {} entries, here is one more{why}", header.entries)
}
