//! MATLAB's `.mat` of version 5 to 7 (`save -v6` and `save -v7`): a matrix and its right-hand side.
//!
//! A single matrix in the file is read. Of several variables, `Problem.A` of SuiteSparse's struct has
//! priority, then `A`, then the only sparse one. The right-hand side is `b` of the same struct, or the
//! variable `b`. Matrices are sparse or full, of any numeric type, real, complex or logical, in either byte
//! order, compressed or not; a vector may be one row. [`Opened::left_out`](super::Opened::left_out) names other variables.
//!
//! Files of version 7.3, which are HDF5, and of version 4 are refused.
//!
//! Format: <https://www.mathworks.com/help/pdf_doc/matlab/matfile_format.pdf>
use super::Form;
use super::archive::Wanted;
use super::elements::{Contents, ElementKind, Elements, reading, too_many};
use super::mm::Symmetry;
use super::stored::{Found, Layout, Stored, StoredValues, sizes};
use flate2::read::ZlibDecoder;
use lacuna_engine::text::shown_name;
use lacuna_engine::{Error, Result};
use std::io::Read;
use std::sync::Arc;

/// Bytes before the first variable.
const HEADER: usize = 128;
/// Maximum number of variables listed in an error.
const LISTED: usize = 8;
/// Maximum number of fields of a struct.
const FIELDS: usize = 1 << 10;

/// Data types of tags.
const INT8: u32 = 1;
const INT32: u32 = 5;
const UINT32: u32 = 6;
const DOUBLES: u32 = 9;
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;

/// Classes of arrays.
const STRUCT: u8 = 2;
const SPARSE: u8 = 5;
const DOUBLE: u8 = 6;
const UINT64: u8 = 15;

/// An element of a file, as described by its tag.
struct Piece {
    kind: u32,
    start: usize,
    bytes: usize,
    /// The start of the next element.
    next: usize,
}

/// A matrix found, and its name.
struct Variable {
    name: String,
    stored: Stored,
    is_sparse: bool,
}

/// The bytes that contain variables: those of a file, or those of a decompressed variable.
struct Pieces<'a> {
    contents: &'a Arc<Contents>,
    big: bool,
}

/// Reads what is wanted, and for a matrix also its right-hand side.
pub(super) fn read(contents: &Arc<Contents>, wanted: Wanted) -> Result<Found> {
    if let Some(version) = other_version(&contents.bytes) {
        let message = format!("it is a MATLAB file of version {version}; write it with -v7, which is read");
        return Err(Error::Unsupported { operation: reading(&contents.name), message });
    }
    let mark = contents.slice(HEADER - 2, 2, "the header")?;
    let big = match mark {
        b"IM" => false,
        b"MI" => true,
        _ => {
            let message =
                "the mark of the byte order should be IM or MI: expected a MAT-file of version 5 to 7";
            return Err(contents.malformed(HEADER - 2, message));
        }
    };
    let file = Pieces { contents, big };
    let (mut found, mut others, mut at) = (Vec::new(), Vec::new(), HEADER);
    while at < contents.bytes.len() {
        let piece = file.piece(at)?;
        at = piece.next;
        match piece.kind {
            MATRIX => file.variable(&piece, &mut found, &mut others)?,
            COMPRESSED => {
                let unpacked = Arc::new(file.unpacked(&piece)?);
                let inner = Pieces { contents: &unpacked, big };
                let piece = inner.piece(0)?;
                if piece.kind == MATRIX {
                    inner.variable(&piece, &mut found, &mut others)?;
                }
            }
            _ => {}
        }
    }
    chosen(contents, found, &others, wanted)
}

/// The version of a file that is not of version 5 to 7, if its first bytes say so.
fn other_version(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"MATLAB 7.3") || bytes.get(512..).is_some_and(|b| b.starts_with(b"\x89HDF")) {
        return Some("7.3, which is HDF5");
    }
    // Version 4 begins with the type of a matrix as four decimal digits: byte order, 0, precision, class.
    let head: [u8; 20] = bytes.get(..20)?.try_into().ok()?;
    let of_order = |whole: fn([u8; 4]) -> u32| {
        let word = |k: usize| whole(std::array::from_fn(|i| head[4 * k + i]));
        let [kind, imaginary, name] = [word(0), word(3), word(4)];
        let digits = [kind / 1000, kind / 100 % 10, kind / 10 % 10, kind % 10];
        digits[0] <= 4
            && digits[1] == 0
            && digits[2] <= 5
            && digits[3] <= 2
            && imaginary <= 1
            && (1..=64).contains(&name)
    };
    [u32::from_le_bytes, u32::from_be_bytes].into_iter().any(of_order).then_some("4")
}

/// Chooses among all the variables.
fn chosen(contents: &Contents, mut found: Vec<Variable>, others: &[String], wanted: Wanted) -> Result<Found> {
    let names = |found: &[Variable]| {
        let all = found.iter().map(|v| &v.name).chain(others);
        let listed: Vec<_> = all.take(LISTED).map(|name| shown_name(name)).collect();
        let more = if found.len() + others.len() > LISTED { ", …" } else { "" };
        if listed.is_empty() { "no variable".into() } else { listed.join(", ") + more }
    };
    let position = |found: &[Variable], name: &str| found.iter().position(|v| v.name == name);
    let only = |found: &[Variable], fits: &dyn Fn(&Variable) -> bool| {
        let mut places = (0..found.len()).filter(|&k| fits(&found[k]));
        places.next().filter(|_| places.next().is_none())
    };
    let refused = |what: &str, found: &[Variable]| {
        let message = format!("expected {what}; the file holds {}", names(found));
        Err(Error::Unsupported { operation: reading(&contents.name), message })
    };
    let rhs = |found: &[Variable]| position(found, "Problem.b").or_else(|| position(found, "b"));
    if wanted == Wanted::Vector {
        let place = rhs(&found)
            .or_else(|| only(&found, &|v| v.stored.cols.min(v.stored.rows) == 1))
            .or_else(|| only(&found, &|_| true));
        return match place {
            Some(k) => {
                let main = found.remove(k).stored.upright();
                Ok(Found { left_out: left_out(&found, others), ..Found::alone(main) })
            }
            None => refused("a variable b, or a single vector", &found),
        };
    }
    let place = position(&found, "Problem.A")
        .or_else(|| position(&found, "A"))
        .or_else(|| only(&found, &|v| v.is_sparse))
        .or_else(|| only(&found, &|_| true));
    let Some(place) = place else {
        return refused("a variable A, the struct Problem, or a single matrix", &found);
    };
    let main = found.remove(place).stored;
    let beside = rhs(&found).map(|k| found.remove(k)).map(|Variable { name, stored, .. }| {
        let is_row = stored.rows == 1 && stored.cols == main.rows;
        let stored = if is_row { stored.upright() } else { stored };
        Stored { name: format!("{}:{name}", contents.name), ..stored }
    });
    Ok(Found { main, beside, left_out: left_out(&found, others) })
}

/// The variables that are not used, in words.
fn left_out(found: &[Variable], others: &[String]) -> Vec<String> {
    let matrices = found.iter().map(|v| {
        let (name, Stored { rows, cols, .. }) = (shown_name(&v.name), &v.stored);
        format!("the variable {name}, {rows} x {cols}")
    });
    matrices
        .chain(others.iter().map(|name| format!("the variable {}, no matrix", shown_name(name))))
        .collect()
}

impl Pieces<'_> {
    fn whole(&self, at: usize, what: &str) -> Result<u32> {
        Ok(u32::from_le_bytes(self.contents.array(at, self.big, what)?))
    }

    /// The element whose tag begins at a byte.
    fn piece(&self, at: usize) -> Result<Piece> {
        let first = self.whole(at, "a tag")?;
        // Small elements store their size and up to four bytes in the tag.
        if first >> 16 != 0 {
            let (kind, bytes) = (first & 0xFFFF, (first >> 16) as usize);
            if bytes > 4 {
                let message = format!("a small piece should take at most 4 bytes, got {bytes}");
                return Err(self.contents.malformed(at, message));
            }
            self.contents.slice(at + 4, 4, "a small piece")?;
            return Ok(Piece { kind, start: at + 4, bytes, next: at + 8 });
        }
        let (start, bytes) = (at + 8, self.whole(at + 4, "the size of a piece")? as usize);
        self.contents.slice(start, bytes, "a piece")?;
        // Compressed elements are not padded; the last one need not be.
        let padded = if first == COMPRESSED { bytes } else { bytes.next_multiple_of(8) };
        Ok(Piece { kind: first, start, bytes, next: start + padded })
    }

    /// The element inside a compressed one: as many bytes as its own tag says.
    fn unpacked(&self, piece: &Piece) -> Result<Contents> {
        let (name, packed) =
            (&self.contents.name, &self.contents.bytes[piece.start..piece.start + piece.bytes]);
        let failed = |source| Error::Io { operation: "reading".into(), path: name.clone(), source };
        let mut decoder = ZlibDecoder::new(packed);
        let mut tag = [0; 8];
        decoder.read_exact(&mut tag).map_err(failed)?;
        let size = tag[4..]
            .try_into()
            .map(|size| if self.big { u32::from_be_bytes(size) } else { u32::from_le_bytes(size) });
        let total = 8 + u64::from(size.unwrap_or(0));
        let name = format!("{name}:variable at byte {}", piece.start - 8);
        // Unpacks no more than deflate's maximum ratio allows.
        let expected = total.min((piece.bytes as u64).saturating_mul(1032));
        Contents::read(&name, tag.chain(decoder).take(total), Some(expected))
    }

    /// The element at a byte, which must be of an expected type.
    fn expect(&self, at: usize, end: usize, kinds: &[u32], what: &str) -> Result<Piece> {
        if at >= end {
            return Err(self
                .contents
                .malformed(at.min(end), format!("the variable ends, {what} should follow")));
        }
        let piece = self.piece(at)?;
        if !kinds.contains(&piece.kind) {
            return Err(self
                .contents
                .malformed(at, format!("{what} should follow, got a piece of type {}", piece.kind)));
        }
        Ok(piece)
    }

    /// Numbers of any type.
    fn numbers(&self, at: usize, end: usize, what: &str) -> Result<(Elements, usize)> {
        let piece = self.expect(at, end, &[1, 2, 3, 4, 5, 6, 7, 9, 12, 13], what)?;
        let kind = match piece.kind {
            1 => ElementKind::Signed(1),
            2 => ElementKind::Unsigned(1),
            3 => ElementKind::Signed(2),
            4 => ElementKind::Unsigned(2),
            5 => ElementKind::Signed(4),
            6 => ElementKind::Unsigned(4),
            7 => ElementKind::Float(4),
            9 => ElementKind::Float(8),
            12 => ElementKind::Signed(8),
            _ => ElementKind::Unsigned(8),
        };
        let count = (piece.bytes / kind.bytes()) as u64;
        Ok((Elements::new(self.contents, piece.start, count, kind, self.big)?, piece.next))
    }

    /// The values of an array. MATLAB writes logical sparse ones as bytes under the type of doubles.
    fn values(&self, array: &Array, at: usize, count: u64) -> Result<(Elements, usize)> {
        let what = "the values";
        let (values, next) = self.numbers(at, array.end, what)?;
        let piece = self.piece(at)?;
        if array.is_logical && piece.kind == DOUBLES && count > values.len() as u64 {
            let kind = ElementKind::Unsigned(1);
            let bytes = Elements::new(self.contents, piece.start, piece.bytes as u64, kind, self.big)?;
            return Ok((bytes.first(count)?, next));
        }
        Ok((values.first(count)?, next))
    }

    /// Adds the matrix in an element, or those in the struct `Problem`, to `found`; adds the name of anything
    /// else to `others`.
    fn variable(&self, piece: &Piece, found: &mut Vec<Variable>, others: &mut Vec<String>) -> Result<()> {
        let Some((array, name)) = self.array(piece)? else { return Ok(()) };
        if array.class == STRUCT && name == "Problem" {
            return self.fields(&array, found);
        }
        match self.matrix(&array)? {
            Some((stored, is_sparse)) => found.push(Variable { name, stored, is_sparse }),
            None => others.push(name),
        }
        Ok(())
    }

    /// The common start of all arrays; `None` for an empty element.
    fn array(&self, piece: &Piece) -> Result<Option<(Array, String)>> {
        let end = piece.start + piece.bytes;
        if piece.bytes == 0 {
            return Ok(None);
        }
        let flags = self.expect(piece.start, end, &[UINT32], "the flags of an array")?;
        let word = self.whole(flags.start, "the flags of an array")?;
        // Other kinds of objects have no dimensions.
        let class = (word & 0xFF) as u8;
        if class == 0 || class > UINT64 {
            return Ok(Some((
                Array { class, is_complex: false, is_logical: false, shape: (0, 0), at: end, end },
                String::new(),
            )));
        }
        let sizes = self.expect(flags.next, end, &[INT32], "the sizes of an array")?;
        let shape = Elements::new(
            self.contents,
            sizes.start,
            (sizes.bytes / 4) as u64,
            ElementKind::Signed(4),
            self.big,
        )?;
        let shape = shape.wholes("size")?;
        let sized = |k: usize| {
            let size = shape.get(k).copied().unwrap_or(1);
            u64::try_from(size).map_err(|_| self.contents.malformed(sizes.start, format!("a size is {size}")))
        };
        let cols = (1..shape.len())
            .try_fold(1u64, |product, k| Ok::<_, Error>(product.saturating_mul(sized(k)?)))?;
        let names = self.expect(sizes.next, end, &[INT8], "the name of an array")?;
        let name = self.contents.slice(names.start, names.bytes, "the name of an array")?;
        let name = String::from_utf8_lossy(name).into_owned();
        let (is_complex, is_logical) = (word & 0x800 != 0, word & 0x200 != 0);
        let array = Array { class, is_complex, is_logical, shape: (sized(0)?, cols), at: names.next, end };
        Ok(Some((array, name)))
    }

    /// The matrices in the first element of a struct.
    fn fields(&self, array: &Array, found: &mut Vec<Variable>) -> Result<()> {
        let length = self.expect(array.at, array.end, &[INT32], "the length of a field's name")?;
        let width = self.whole(length.start, "the length of a field's name")? as usize;
        let names = self.expect(length.next, array.end, &[INT8], "the names of fields")?;
        let count = names.bytes.checked_div(width).unwrap_or(0);
        if count > FIELDS {
            let message = format!("a struct should have at most {FIELDS} fields, got {count}");
            return Err(self.contents.malformed(names.start, message));
        }
        let bytes = self.contents.slice(names.start, names.bytes, "the names of fields")?;
        let mut at = names.next;
        for name in bytes.chunks_exact(width.max(1)).take(count) {
            let name = String::from_utf8_lossy(name);
            let name = name.split('\0').next().unwrap_or_default();
            let piece = self.expect(at, array.end, &[MATRIX], "the value of a field")?;
            at = piece.next;
            if !matches!(name, "A" | "b") {
                continue;
            }
            let Some((field, _)) = self.array(&piece)? else { continue };
            if let Some((stored, is_sparse)) = self.matrix(&field)? {
                found.push(Variable { name: format!("Problem.{name}"), stored, is_sparse });
            }
        }
        Ok(())
    }

    /// The matrix of an array; `None` if it is not one.
    fn matrix(&self, array: &Array) -> Result<Option<(Stored, bool)>> {
        let (name, (rows, cols)) = (self.contents.name.as_str(), array.shape);
        let is_sparse = array.class == SPARSE;
        if !is_sparse && !(DOUBLE..=UINT64).contains(&array.class) {
            return Ok(None);
        }
        let [n, m] = sizes(name, [("rows", rows), ("columns", cols)])?;
        let (layout, count, at) = if is_sparse {
            let (idx, at) = self.numbers(array.at, array.end, "the rows of the entries")?;
            let (ptr, at) = self.numbers(at, array.end, "the pointers to the columns")?;
            let pointers = ptr.wholes("pointer")?;
            if pointers.len() as u64 != cols + 1 {
                let message =
                    format!("expected {} pointers to the columns, got {}", cols + 1, pointers.len());
                return Err(self.contents.malformed(ptr.offset(0), message));
            }
            // More space than the actual number of entries may be stored.
            let count = u64::try_from(pointers[m]).unwrap_or(0);
            if count > u64::from(u32::MAX) {
                return Err(too_many(name, "entries", count));
            }
            let layout = Layout::DenseArray {
                ptr: ptr.pointers("pointer", count)?,
                idx: idx.first(count)?.indices("row", rows)?,
            };
            (layout, count, at)
        } else {
            (Layout::Dense { column_major: true }, rows.saturating_mul(cols), array.at)
        };
        let (re, at) = self.values(array, at, count)?;
        let values = match array.is_complex {
            true => {
                StoredValues::Parts(re, self.numbers(at, array.end, "the imaginary parts")?.0.first(count)?)
            }
            false => StoredValues::Numbers(re),
        };
        let (name, form, symmetry) = (name.into(), Form::Matlab, Symmetry::General);
        Ok(Some((Stored { name, form, rows: n, cols: m, layout, symmetry, values }, is_sparse)))
    }
}

/// An array whose flags, dimensions and name have been read.
struct Array {
    class: u8,
    is_complex: bool,
    is_logical: bool,
    shape: (u64, u64),
    /// The start of the data after the name.
    at: usize,
    end: usize,
}
