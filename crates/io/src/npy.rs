//! NumPy's `.npy`: a vector, or a dense two-dimensional array.
//!
//! `np.save("b.npy", b)` writes files for [`io::read_vector`](super::read_vector) and
//! [`io::read_columns`](super::read_columns). Supported are versions 1 to 3 of the format; elements of type
//! `f4`, `f8`, `c8`, `c16`, integers and booleans, in either byte order; row-major or column-major
//! (`fortran_order`). [`io::read_matrix`](super::read_matrix) drops zeros. Object arrays are pickled Python
//! and not supported.
//!
//! Files are written in version 1 with the machine's byte order. Numbers keep their bits.
//!
//! Format: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>
use super::elements::{Contents, ElementKind, Elements, reading};
use super::stored::Stored;
use super::{DenseArray, Form};
use lacuna_engine::text::shown_word;
use lacuna_engine::{Error, NumberType, Result, Scalar};
use std::io::{self, Write};
use std::sync::Arc;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Alignment of the end of the header.
const ALIGNMENT: usize = 64;
/// Maximum length of a header.
const LONGEST_HEADER: usize = 1 << 16;

/// A parsed header.
pub(super) struct Header {
    /// The type of an element, such as `<f8`.
    pub(super) descr: String,
    pub(super) column_major: bool,
    pub(super) shape: Vec<u64>,
    /// The start of the elements.
    pub(super) start: usize,
}

/// Reads the array of a file.
pub(super) fn read(contents: &Arc<Contents>) -> Result<Stored> {
    let header = Header::read(contents)?;
    let shape = match header.shape[..] {
        [n] => (n, 1),
        [rows, cols] => (rows, cols),
        ref shape => {
            let message = format!("expected an array of 1 or 2 dimensions, got {}", shape.len());
            return Err(Error::Unsupported { operation: reading(&contents.name), message });
        }
    };
    let values = header.elements(contents)?;
    Stored::dense(&contents.name, Form::Npy, shape, header.column_major, values)
}

impl Header {
    /// Parses the header at the start of a file.
    pub(super) fn read(contents: &Contents) -> Result<Self> {
        let magic = contents.slice(0, MAGIC.len(), "the magic string `\\x93NUMPY`")?;
        if magic != MAGIC {
            return Err(contents.malformed(0, "a NumPy array should begin with `\\x93NUMPY`"));
        }
        let [major, minor] = contents.array(MAGIC.len(), false, "the version")?;
        let (at, length) = match major {
            1 => (10, u16::from_le_bytes(contents.array(8, false, "the header's length")?).into()),
            2 | 3 => (12, u32::from_le_bytes(contents.array(8, false, "the header's length")?) as usize),
            _ => {
                let message = format!("the version should be 1.0, 2.0 or 3.0, got {major}.{minor}");
                return Err(contents.malformed(MAGIC.len(), message));
            }
        };
        if length > LONGEST_HEADER {
            let message = format!("the header should take at most {LONGEST_HEADER} bytes, got {length}");
            return Err(contents.malformed(8, message));
        }
        let text = contents.slice(at, length, "the header")?;
        let mut parser = Parser { contents, text, at: 0, offset: at };
        let (descr, column_major, shape) = parser.dictionary()?;
        Ok(Header { descr, column_major, shape, start: at + length })
    }

    /// Number of elements.
    pub(super) fn count(&self) -> u64 {
        self.shape.iter().fold(1, |product: u64, &n| product.saturating_mul(n))
    }

    /// Bytes of a file with this header.
    pub(super) fn total(&self, name: &str) -> Result<u64> {
        let element = match self.descr.as_bytes() {
            [_, b'U', digits @ ..] => 4 * width(digits).unwrap_or(0),
            [_, b'S', digits @ ..] => width(digits).unwrap_or(0),
            _ => self.kind(name)?.0.bytes(),
        };
        Ok(self.count().saturating_mul(element as u64).saturating_add(self.start as u64))
    }

    /// The type of an element, and whether its first byte is the most significant.
    fn kind(&self, name: &str) -> Result<(ElementKind, bool)> {
        let (order, letter, digits) = match self.descr.as_bytes() {
            [order @ (b'<' | b'>' | b'=' | b'|'), letter, digits @ ..] => (*order, *letter, digits),
            [letter, digits @ ..] => (b'=', *letter, digits),
            [] => (b'=', b' ', &[][..]),
        };
        let big = order == b'>' || (order == b'=' && cfg!(target_endian = "big"));
        let kind = match (letter, width(digits)) {
            (b'f', Some(n @ (4 | 8))) => ElementKind::Float(n),
            (b'c', Some(n @ (8 | 16))) => ElementKind::Complex(n),
            (b'i', Some(n @ (1 | 2 | 4 | 8))) => ElementKind::Signed(n),
            (b'u', Some(n @ (1 | 2 | 4 | 8))) => ElementKind::Unsigned(n),
            (b'b', Some(1)) => ElementKind::Unsigned(1),
            _ => {
                let why = match letter {
                    b'O' => ": such an array is pickled Python",
                    _ => "",
                };
                let message = format!(
                    "expected elements of type f4, f8, c8, c16, i1 to i8, u1 to u8 or b1, got `{}`{why}",
                    shown_word(&self.descr)
                );
                return Err(Error::Unsupported { operation: reading(name), message });
            }
        };
        Ok((kind, big))
    }

    /// The elements after the header; the file must end with them.
    pub(super) fn elements(&self, contents: &Arc<Contents>) -> Result<Elements> {
        let (kind, big) = self.kind(&contents.name)?;
        let elements = Elements::new(contents, self.start, self.count(), kind, big)?;
        let (end, all) = (elements.end(), contents.bytes.len());
        match all - end {
            0 => Ok(elements),
            more => {
                let message =
                    format!("the array of {} elements ends here, {more} bytes follow", self.count());
                Err(contents.malformed(end, message))
            }
        }
    }

    /// A text, stored as an array of one string.
    pub(super) fn text(&self, contents: &Contents) -> Result<String> {
        let rest = contents.bytes.get(self.start..).unwrap_or_default();
        let letters: Vec<u8> = match self.descr.as_bytes() {
            [b'|', b'S', ..] => rest.to_vec(),
            [b'<', b'U', ..] => rest.iter().copied().step_by(4).collect(),
            [b'>', b'U', ..] => rest.iter().copied().skip(3).step_by(4).collect(),
            _ => {
                let message = format!("expected a text, got elements of type `{}`", shown_word(&self.descr));
                return Err(contents.malformed(0, message));
            }
        };
        Ok(String::from_utf8_lossy(&letters).trim_end_matches('\0').into())
    }
}

fn width(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|&n: &usize| n < 1 << 20)
}

/// Parser of a header's dictionary, as Python writes it.
struct Parser<'a> {
    contents: &'a Contents,
    text: &'a [u8],
    at: usize,
    /// The position of the text in the file.
    offset: usize,
}

impl Parser<'_> {
    fn expected(&self, what: &str) -> Error {
        let rest = &self.text[self.at.min(self.text.len())..];
        let got = String::from_utf8_lossy(&rest[..rest.len().min(20)]).into_owned();
        self.contents.malformed(self.offset + self.at, format!("expected {what} in the header, got `{got}`"))
    }

    fn skip_blanks(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn accept(&mut self, symbol: u8) -> bool {
        self.skip_blanks();
        let is_there = self.text.get(self.at) == Some(&symbol);
        self.at += usize::from(is_there);
        is_there
    }

    fn symbol(&mut self, symbol: u8) -> Result<()> {
        if self.accept(symbol) { Ok(()) } else { Err(self.expected(&format!("`{}`", char::from(symbol)))) }
    }

    /// A string in single or double quotes, without escapes.
    fn string(&mut self) -> Result<String> {
        self.skip_blanks();
        let Some(&quote @ (b'\'' | b'"')) = self.text.get(self.at) else {
            return Err(self.expected("a string"));
        };
        let rest = &self.text[self.at + 1..];
        let Some(length) = rest.iter().position(|&b| b == quote) else {
            return Err(self.expected("the end of a string"));
        };
        self.at += length + 2;
        Ok(String::from_utf8_lossy(&rest[..length]).into_owned())
    }

    fn word(&mut self) -> &[u8] {
        self.skip_blanks();
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_alphanumeric) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn truth(&mut self) -> Result<bool> {
        match self.word() {
            b"True" => Ok(true),
            b"False" => Ok(false),
            _ => Err(self.expected("True or False")),
        }
    }

    fn shape(&mut self) -> Result<Vec<u64>> {
        self.symbol(b'(')?;
        let mut shape = Vec::new();
        while !self.accept(b')') {
            let size = std::str::from_utf8(self.word())
                .ok()
                .and_then(|word| word.trim_end_matches('L').parse().ok());
            shape.push(size.ok_or_else(|| self.expected("a whole number"))?);
            if !self.accept(b',') {
                self.symbol(b')')?;
                break;
            }
        }
        Ok(shape)
    }

    /// Type, order and shape.
    fn dictionary(&mut self) -> Result<(String, bool, Vec<u64>)> {
        let (mut descr, mut order, mut shape) = (None, None, None);
        self.symbol(b'{')?;
        while !self.accept(b'}') {
            let key = self.string()?;
            self.symbol(b':')?;
            match key.as_str() {
                "descr" if self.text.get(self.at + 1) == Some(&b'[') || self.accept(b'[') => {
                    let message = "expected an array of numbers, got one of records".into();
                    return Err(Error::Unsupported { operation: reading(&self.contents.name), message });
                }
                "descr" => descr = Some(self.string()?),
                "fortran_order" => order = Some(self.truth()?),
                "shape" => shape = Some(self.shape()?),
                _ => return Err(self.expected("one of descr, fortran_order and shape before this")),
            }
            if !self.accept(b',') {
                self.symbol(b'}')?;
                break;
            }
        }
        match (descr, order, shape) {
            (Some(descr), Some(order), Some(shape)) => Ok((descr, order, shape)),
            _ => Err(self.expected("all of descr, fortran_order and shape before the end")),
        }
    }
}

/// The type of the elements in a header's syntax.
pub(super) fn descr(kind: NumberType) -> String {
    let order = if cfg!(target_endian = "big") { '>' } else { '<' };
    let kind = match kind {
        NumberType::F32 => "f4",
        NumberType::F64 => "f8",
        NumberType::C32 => "c8",
        NumberType::C64 => "c16",
    };
    format!("{order}{kind}")
}

/// The header of an array; `shape` in Python syntax.
pub(super) fn header(descr: &str, column_major: bool, shape: &str) -> Vec<u8> {
    let order = if column_major { "True" } else { "False" };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    let length = (MAGIC.len() + 4 + text.len() + 1).next_multiple_of(ALIGNMENT);
    text.extend(std::iter::repeat_n(' ', length - MAGIC.len() - 4 - text.len() - 1));
    text.push('\n');
    // A few sizes of at most 20 digits each, which easily fit in two bytes.
    let size = (text.len() as u16).to_le_bytes();
    [MAGIC, &[1, 0], &size, text.as_bytes()].concat()
}

/// Writes a vector as a one-dimensional array.
///
/// # Errors
/// When the output cannot be written, or an element is not finite.
pub fn encode_vector<T: Scalar>(out: &mut (impl Write + ?Sized), x: &[T]) -> Result<()> {
    super::mm::check_finite(x)?;
    let header = header(&descr(T::KIND), false, &format!("({},)", x.len()));
    encode(out, &header, x).map_err(super::save::failed)
}

/// Writes a two-dimensional array in column-major order (`fortran_order`).
///
/// # Errors
/// As [`encode_vector`], and when the number of values is not rows times columns.
pub fn encode_columns<T: Scalar>(out: &mut (impl Write + ?Sized), b: &DenseArray<T>) -> Result<()> {
    b.check()?;
    super::mm::check_finite(&b.values)?;
    let header = header(&descr(T::KIND), true, &format!("({}, {})", b.rows, b.cols));
    encode(out, &header, &b.values).map_err(super::save::failed)
}

fn encode<T: Scalar>(out: &mut (impl Write + ?Sized), header: &[u8], values: &[T]) -> io::Result<()> {
    out.write_all(header)?;
    out.write_all(bytemuck::cast_slice(values))?;
    out.flush()
}
