//! The contents of a file: decompressed, extracted from an archive, and without a byte order mark.
use super::archive::{Beside, Found, Wanted, find, is_tar};
use super::elements::reading;
use super::{Form, foreign};
use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use lacuna_engine::text::shown_name;
use lacuna_engine::{Error, Result};
use lzma_rust2::XzReader;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of bytes examined to recognize a file.
const HEAD: u64 = 512;
/// Maximum nesting of compression: a gzipped tar archive of gzipped files, compressed once more by a server.
const LAYERS: usize = 4;
/// Maximum memory of the xz decoder, in kilobytes.
const XZ_MEMORY: u32 = 1 << 20;

/// A source of bytes.
pub(crate) type Stream<'r> = Box<dyn Read + Send + 'r>;

/// Which forms are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// All of them.
    Any,
    /// Only this one.
    MatrixMarket,
}

impl Expected {
    fn named(self) -> String {
        let forms = match self {
            Expected::Any => "a Matrix Market, NumPy, SciPy, PETSc, MATLAB or Rutherford–Boeing file",
            Expected::MatrixMarket => "a Matrix Market file",
        };
        format!("expected {forms}, plain, compressed by gzip, bzip2 or xz, or in a tar archive")
    }
}

/// The unpacked contents of some form.
pub(crate) struct Text<'r> {
    /// The name of the file, followed by that of the member for an archive.
    pub(super) name: String,
    /// The form of the bytes.
    pub(super) form: Form,
    pub(super) stream: Stream<'r>,
    /// Whether the bytes of the text are those of the file.
    pub(super) plain: bool,
    /// The archive that it comes from, if any.
    pub(super) beside: Option<Beside<'r>>,
}

/// Examines the start of a file, and unpacks it.
pub(super) fn text<'r>(name: &str, raw: Stream<'r>, wanted: Wanted, expected: Expected) -> Result<Text<'r>> {
    let (mut name, mut stream, mut plain, mut beside) = (name.to_string(), raw, true, None);
    for _ in 0..=LAYERS {
        let failed = |source| Error::Io { operation: "reading".into(), path: name.clone(), source };
        let unsupported = |message: String| Error::Unsupported { operation: reading(&name), message };
        let mut head = Vec::new();
        stream.by_ref().take(HEAD).read_to_end(&mut head).map_err(failed)?;
        let packing = Packing::of(&head);
        let mark = if head.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
        if let (Packing::None, Some(what)) = (packing, foreign::named(&head[mark..])) {
            return Err(unsupported(format!("{}; it is {what}", expected.named())));
        }
        let form = Form::of(&head[mark..], &name);
        let is_other = expected == Expected::MatrixMarket && form != Form::MatrixMarket;
        if is_other && matches!(packing, Packing::None) {
            return Err(unsupported(format!("{}; it is {form}", expected.named())));
        }
        let old = form.is_text() && has_old_line_ends(&head[mark..]);
        let mut head = Cursor::new(head);
        head.set_position(if form.is_text() { mark as u64 } else { 0 });
        let whole = head.chain(stream);
        let buffered = |whole| BufReader::with_capacity(1 << 16, whole);
        stream = match packing {
            Packing::Gzip => Box::new(Members::new(buffered(whole), GzDecoder::new, GzDecoder::into_inner)),
            Packing::Bzip2 => Box::new(Members::new(buffered(whole), BzDecoder::new, BzDecoder::into_inner)),
            Packing::Xz => Box::new(XzReader::new_mem_limit(buffered(whole), true, XZ_MEMORY)),
            Packing::Tar if beside.is_some() => return Err(unsupported("an archive in an archive".into())),
            Packing::Tar => match find(Box::new(whole), &name, wanted).map_err(failed)? {
                Ok(Found { name: member, text, beside: archive }) => {
                    (name, beside) = (format!("{name}:{}", shown_name(&member)), Some(archive));
                    text
                }
                Err(message) => return Err(unsupported(message)),
            },
            Packing::None if old => {
                return Ok(Text { name, form, stream: Box::new(OldLineEnds(whole)), plain, beside });
            }
            Packing::None => return Ok(Text { name, form, stream: Box::new(whole), plain, beside }),
        };
        if !matches!(packing, Packing::Tar) {
            stream = Box::new(Unpacked(stream));
        }
        plain = false;
    }
    let message = format!("it is packed more than {LAYERS} times over");
    Err(Error::Unsupported { operation: reading(&name), message })
}

/// The kind of compression.
#[derive(Clone, Copy)]
enum Packing {
    None,
    Gzip,
    Bzip2,
    Xz,
    Tar,
}

impl Packing {
    fn of(head: &[u8]) -> Self {
        match head {
            [0x1F, 0x8B, ..] => Packing::Gzip,
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => Packing::Bzip2,
            // An empty stream without blocks.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => Packing::Bzip2,
            [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Packing::Xz,
            _ if is_tar(head) => Packing::Tar,
            _ => Packing::None,
        }
    }
}

/// Compressed members, one after another. Zero bytes after a member are padding, which tapes and some tools
/// write.
struct Members<R, D> {
    /// `None` after the last member.
    decoder: Option<D>,
    open: fn(R) -> D,
    close: fn(D) -> R,
}

impl<R: BufRead, D: Read> Members<R, D> {
    fn new(source: R, open: fn(R) -> D, close: fn(D) -> R) -> Self {
        Members { decoder: Some(open(source)), open, close }
    }
}

impl<R: BufRead, D: Read> Read for Members<R, D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.decoder {
            let n = decoder.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                return Ok(n);
            }
            let Some(mut source) = self.decoder.take().map(self.close) else { break };
            if skip_zeros(&mut source)? {
                self.decoder = Some((self.open)(source));
            }
        }
        Ok(0)
    }
}

/// Advances past zero bytes; whether others follow.
fn skip_zeros(source: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = match source.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        let (zeros, all) = (bytes.iter().take_while(|byte| **byte == 0).count(), bytes.len());
        source.consume(zeros);
        if zeros < all || all == 0 {
            return Ok(all > 0);
        }
    }
}

/// Says in the same words for every compression that its data are cut off.
struct Unpacked<R>(R);

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::new(
                io::ErrorKind::InvalidData,
                "the file ends too early: its compressed data are cut off",
            ),
            _ => error,
        })
    }
}

/// Whether the first line ends with a carriage return alone, as on old Macintosh computers.
fn has_old_line_ends(head: &[u8]) -> bool {
    let Some(end) = head.iter().position(|b| matches!(b, b'\r' | b'\n')) else { return false };
    let behind = head[end..].iter().find(|&&b| b != b'\r');
    head[end] == b'\r' && behind != Some(&b'\n')
}

/// Converts carriage returns to line ends.
struct OldLineEnds<R>(R);

impl<R: Read> Read for OldLineEnds<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.0.read(buffer)?;
        buffer[..n].iter_mut().filter(|b| **b == b'\r').for_each(|b| *b = b'\n');
        Ok(n)
    }
}

/// Opens a file; returns its name for errors, its bytes, and their number if it is known.
pub(super) fn open_file(path: &Path) -> Result<(String, File, Option<u64>)> {
    let name = path.display().to_string();
    let failed = |source| Error::Io { operation: "opening".into(), path: name.clone(), source };
    let file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if about.is_dir() {
        return Err(failed(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder, not a file")));
    }
    Ok((name, file, about.is_file().then_some(about.len())))
}

/// Counts the bytes read.
pub(super) struct Counted<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R> Counted<R> {
    /// The source, and its counter.
    pub(super) fn new(inner: R) -> (Self, Arc<AtomicU64>) {
        let read = Arc::new(AtomicU64::new(0));
        (Counted { inner, read: read.clone() }, read)
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
