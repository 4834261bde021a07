//! An opened file whose header has been read; the rest is read later.
use super::blocks::Blocks;
use super::header::{Header, HeaderLines};
use super::read::ReadOptions;
use super::scan::Fault;
use crate::Wanted;
use crate::archive::Beside;
use crate::elements::reading;
use crate::unpack::{Counted, Expected, Stream, Text, open_file, text};
use lacuna_engine::{Error, Result};
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum bytes of blank lines and comments before the sizes, since a stream may be endless.
const LONGEST_HEADER: u64 = 1 << 26;

/// A Matrix Market file, opened once, with its header: the number type can be chosen before the entries are
/// read, even from a pipe.
///
/// Plain, compressed by gzip, bzip2 or xz, or in a tar archive: see [`Wanted`]. A byte order mark at the
/// start is skipped.
///
/// ```
/// use lacuna_io::mm::{Opened, Wanted};
///
/// let text = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 3\n";
/// let mut file = Opened::from_reader("a pipe", text.as_bytes(), Wanted::Matrix)?;
/// assert_eq!(file.header().rows, 2);
/// let a = file.matrix::<f64>(&Default::default())?;
/// assert_eq!(a.get(0, 1), Some(3.0));
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
pub struct Opened<'r> {
    pub(super) name: String,
    header: Header,
    /// Number of lines up to the sizes.
    lines: u64,
    unread: Option<Unread<'r>>,
    kept: Option<Arc<[u8]>>,
    beside: Option<Beside<'r>>,
    pub(super) size: Size,
}

/// The size of a file, as far as it is known.
#[derive(Clone)]
pub(super) struct Size {
    /// The total, if it is known before reading.
    pub(super) total: Option<u64>,
    pub(super) read: Arc<AtomicU64>,
    /// Whether the bytes of the file are those of the text.
    pub(super) plain: bool,
}

/// The text after the sizes.
pub(super) struct Unread<'r> {
    /// Lines already read from `blocks`.
    pub(super) rest: Vec<u8>,
    pub(super) blocks: Blocks<Stream<'r>>,
}

impl std::fmt::Debug for Opened<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened")
            .field("name", &self.name)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

impl Opened<'static> {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// When the file cannot be read, its first lines are not a Matrix Market header, or an archive does not
    /// contain what is wanted.
    pub fn open(path: impl AsRef<Path>, wanted: Wanted) -> Result<Self> {
        let (name, file, total) = open_file(path.as_ref())?;
        Self::start(&name, file, total, wanted)
    }
}

impl<'r> Opened<'r> {
    /// The same for any reader; errors call it `name`.
    ///
    /// # Errors
    /// As [`Opened::open`].
    pub fn from_reader(name: &str, bytes: impl Read + Send + 'r, wanted: Wanted) -> Result<Self> {
        Self::start(name, bytes, None, wanted)
    }

    /// Reads the header.
    pub(super) fn start(
        name: &str,
        bytes: impl Read + Send + 'r,
        total: Option<u64>,
        wanted: Wanted,
    ) -> Result<Self> {
        let (counted, read) = Counted::new(bytes);
        Self::of_text(text(name, Box::new(counted), wanted, Expected::MatrixMarket)?, total, read)
    }

    /// Reads the header of a text.
    pub(crate) fn of_text(text: Text<'r>, total: Option<u64>, read: Arc<AtomicU64>) -> Result<Self> {
        let Text { name, stream, plain, beside, .. } = text;
        let failed = |source| Error::Io { operation: "reading".into(), path: name.clone(), source };
        let wrong = |line, column, message| Error::Parse { source_name: name.clone(), line, column, message };
        let (mut blocks, mut block) = (Blocks::new(stream), Vec::new());
        let (mut lines, mut length, mut head) = (0, 0, HeaderLines::default());
        while blocks.next(&mut block).map_err(failed)? {
            let mut start = 0;
            while let Some(end) = block[start..].iter().position(|&b| b == b'\n') {
                let line = &block[start..start + end];
                lines += 1;
                start += end + 1;
                let header = head.line(line).map_err(|Fault { at, message }| {
                    wrong(lines, at.map_or(0, |at| at as u64 + 1), message)
                })?;
                if let Some(header) = header {
                    block.drain(..start);
                    let unread = Some(Unread { rest: block, blocks });
                    let size = Size { total, read, plain };
                    return Ok(Opened { name, header, lines, unread, kept: None, beside, size });
                }
            }
            length += block.len() as u64;
            if length > LONGEST_HEADER {
                return Err(wrong(lines, 0, format!("no sizes in the first {LONGEST_HEADER} bytes")));
            }
        }
        let Fault { message, .. } = head.missing();
        Err(wrong(u64::max(lines, 1), 0, message))
    }

    /// Its name for errors: the name of the file, followed by that of the archive member.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The header of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether it is in an archive, which may also contain a right-hand side.
    pub fn is_archive(&self) -> bool {
        self.beside.is_some()
    }

    /// Whether the entries have been read and cannot be read again.
    pub fn is_spent(&self) -> bool {
        self.unread.is_none() && self.kept.is_none()
    }

    pub(super) fn into_header(self) -> Header {
        self.header
    }

    /// Reads the rest of the text into memory, so that the entries can be read more than once.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn keep(&mut self) -> Result<()> {
        if self.kept.is_none() {
            let Unread { mut rest, blocks } = self.take()?;
            blocks.into_rest(&mut rest).map_err(|e| self.io(e))?;
            self.kept = Some(rest.into());
        }
        Ok(())
    }

    /// The right-hand side that accompanies the matrix in a SuiteSparse archive, `NAME_b.mtx`, if there is
    /// one. Call this after the matrix was read or kept, because it reads on in the archive.
    ///
    /// # Errors
    /// As [`Opened::open`].
    pub fn right_hand_side(&self) -> Result<Option<Self>> {
        match self.beside_text()? {
            Some((name, stream)) => Self::start(&name, stream, None, Wanted::Vector).map(Some),
            None => Ok(None),
        }
    }

    /// The right-hand side that accompanies the matrix, in any form, and its name.
    pub(crate) fn beside_text(&self) -> Result<Option<(String, Stream<'r>)>> {
        self.beside.as_ref().map_or(Ok(None), |archive| archive.named_right_hand_side(&self.name))
    }

    /// The header, the number of lines before the entries, and the text of the entries.
    pub(super) fn entries(&mut self) -> Result<(Header, u64, Unread<'r>)> {
        let unread = match &self.kept {
            Some(text) => {
                Unread { rest: Vec::new(), blocks: Blocks::new(Box::new(Cursor::new(text.clone()))) }
            }
            None => self.take()?,
        };
        Ok((self.header.clone(), self.lines, unread))
    }

    fn take(&mut self) -> Result<Unread<'r>> {
        self.unread.take().ok_or_else(|| Error::Unsupported {
            operation: self.operation(),
            message: "it was read before; open it again, or keep it".into(),
        })
    }

    pub(super) fn operation(&self) -> String {
        reading(&self.name)
    }

    pub(super) fn io(&self, source: io::Error) -> Error {
        Error::Io { operation: "reading".into(), path: self.name.clone(), source }
    }

    /// The error at a line, counted from 1.
    pub(super) fn parse_error(&self, line: u64, column: u64, message: String) -> Error {
        Error::Parse { source_name: self.name.clone(), line, column, message }
    }
}

impl Size {
    /// Reports progress.
    pub(super) fn progress(&self, options: &ReadOptions<'_>, finished: bool) {
        if let Some(progress) = options.progress {
            let (read, total) = (self.read.load(Ordering::Relaxed), self.total.unwrap_or(0));
            progress(if finished { total.max(read) } else { read }, total);
        }
    }
}
