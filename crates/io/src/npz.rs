//! SciPy's `.npz`: a sparse matrix, as `scipy.sparse.save_npz` writes it.
//!
//! A zip archive of `.npy` members. Supported forms are `csr`, `csc`, `bsr`, `dia` and `coo`, compressed or
//! not, with 32- or 64-bit indices and values of any type that [`npy`](super::npy) reads. Columns may be in
//! any order, and repeated entries are summed; zeros stored by `dia` are dropped, as in SciPy.
//!
//! Matrices are written as `csr`, uncompressed, with 32-bit indices if they suffice; `scipy.sparse.load_npz`
//! reads them. Numbers keep their bits.
//!
//! A member is unpacked only to the length that its own header declares, after the headers of all members
//! have been checked against each other.
//!
//! Format: <https://docs.scipy.org/doc/scipy/reference/generated/scipy.sparse.save_npz.html>
use super::Form;
use super::elements::{Contents, Elements, reading, too_many};
use super::mm::Symmetry;
use super::npy::{Header, descr, header};
use super::stored::{Found, Layout, Stored, StoredValues, sizes};
use lacuna_engine::text::{shown_name, shown_word};
use lacuna_engine::{Error, Result, Scalar, compiled_here, memory};
use lacuna_formats::Csr;
use std::io::{self, Cursor, Read, Seek, Write};
use std::sync::Arc;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Bytes read from a member: enough for its header, and for all of the members with shapes and names.
const HEAD: u64 = 1 << 17;
/// How the end of the directory of a zip archive begins.
const END: &[u8] = b"PK\x05\x06";
/// What SciPy writes.
const MEMBERS: [&str; 10] =
    ["format", "shape", "data", "indices", "indptr", "offsets", "row", "col", "coords", "_is_array"];
/// Maximum number of members listed in an error.
const LISTED: usize = 8;

/// An archive in memory.
struct Archive<'a> {
    name: &'a str,
    zip: ZipArchive<Cursor<&'a [u8]>>,
}

impl Archive<'_> {
    /// The header of a member, and its first bytes.
    fn head(&mut self, member: &str) -> Result<(Contents, Header)> {
        let (name, file) = (format!("{}:{member}.npy", self.name), format!("{member}.npy"));
        let index = self.zip.index_for_name(&file);
        let Some(index) = index else { return Err(self.missing(&file)) };
        let mut bytes = Vec::new();
        let member = self.zip.by_index(index).map_err(|e| failed(&name, e))?;
        let read = member.take(HEAD).read_to_end(&mut bytes);
        read.map_err(|source| Error::Io { operation: "reading".into(), path: name.clone(), source })?;
        let contents = Contents { name, bytes };
        let header = Header::read(&contents)?;
        Ok((contents, header))
    }

    /// All of a member: as much as its header declares, plus one byte.
    fn member(&mut self, member: &str, header: &Header) -> Result<Arc<Contents>> {
        let (name, file) = (format!("{}:{member}.npy", self.name), format!("{member}.npy"));
        let promised = header.total(&name)?;
        memory::check(&reading(&name), promised)?;
        let found = self.zip.by_name(&file).map_err(|e| failed(&name, e))?;
        let size = found.size();
        Contents::read(&name, found.take(promised.saturating_add(1)), Some(promised.min(size))).map(Arc::new)
    }

    fn elements(&mut self, member: &str) -> Result<Elements> {
        let (_, header) = self.head(member)?;
        let contents = self.member(member, &header)?;
        header.elements(&contents)
    }

    /// The members that are not part of the matrix, in words.
    fn left_out(&self) -> Vec<String> {
        let own = |name: &str| name.strip_suffix(".npy").is_some_and(|stem| MEMBERS.contains(&stem));
        let others = self.zip.file_names_raw().map(String::from_utf8_lossy).filter(|name| !own(name));
        others.map(|name| format!("the member {}", shown_name(&name))).collect()
    }

    fn missing(&self, file: &str) -> Error {
        let names = self.zip.file_names_raw().take(LISTED).map(String::from_utf8_lossy);
        let names: Vec<_> = names.map(|name| shown_name(&name).into_owned()).collect();
        let more = if self.zip.len() > LISTED { ", …" } else { "" };
        let holds = if names.is_empty() { "no file at all".into() } else { names.join(", ") + more };
        let expected = format!("expected the member {file}, as scipy.sparse.save_npz writes");
        let message = match file {
            "format.npy" => format!("{expected}; it is a zip archive of {holds}: unpack it first"),
            _ => format!("{expected}; the archive holds {holds}"),
        };
        Error::Unsupported { operation: reading(self.name), message }
    }
}

fn failed(name: &str, error: ZipError) -> Error {
    match error {
        ZipError::Io(source) => Error::Io { operation: "reading".into(), path: name.into(), source },
        ZipError::UnsupportedArchive(message) => {
            Error::Unsupported { operation: reading(name), message: message.into() }
        }
        error => {
            let source = io::Error::new(io::ErrorKind::InvalidData, error.to_string());
            Error::Io { operation: "reading".into(), path: name.into(), source }
        }
    }
}

/// Reads the matrix of a file.
pub(super) fn read(contents: &Arc<Contents>) -> Result<Found> {
    let name = contents.name.as_str();
    if !contents.bytes.windows(END.len()).any(|bytes| bytes == END) {
        let message = "the file ends too early: the directory at the end of a zip archive is missing";
        let source = io::Error::new(io::ErrorKind::UnexpectedEof, message);
        return Err(Error::Io { operation: "reading".into(), path: name.into(), source });
    }
    let zip = ZipArchive::new(Cursor::new(&contents.bytes[..])).map_err(|e| failed(name, e))?;
    let mut archive = Archive { name, zip };
    let (form, header) = archive.head("format")?;
    let form = header.text(&form)?;
    let (shape_of, header) = archive.head("shape")?;
    let shape_of = Arc::new(shape_of);
    let shape = header.elements(&shape_of)?.wholes("size")?;
    let &[rows, cols] = &shape[..] else {
        let message = format!("expected a matrix of 2 dimensions, got {}", shape.len());
        return Err(Error::Unsupported { operation: reading(name), message });
    };
    let sized = |size: i64, what: &str| {
        u64::try_from(size)
            .map_err(|_| shape_of.malformed(header.start, format!("the number of {what} is {size}")))
    };
    let [rows, cols] = sizes(name, [("rows", sized(rows, "rows")?), ("columns", sized(cols, "columns")?)])?;
    let (layout, values) = match form.as_str() {
        "csr" | "csc" => archive.compressed(form == "csr", rows, cols)?,
        "bsr" => archive.blocks(rows, cols)?,
        "dia" => archive.diagonals()?,
        "coo" => archive.coordinates(rows, cols)?,
        _ => {
            let message = format!("expected the form csr, csc, bsr, dia or coo, got `{}`", shown_word(&form));
            return Err(Error::Unsupported { operation: reading(name), message });
        }
    };
    let (symmetry, values) = (Symmetry::General, StoredValues::Numbers(values));
    let main = Stored { name: name.into(), form: Form::Npz, rows, cols, layout, symmetry, values };
    Ok(Found { left_out: archive.left_out(), ..Found::alone(main) })
}

impl Archive<'_> {
    /// The shape of a member, which must have `N` dimensions.
    fn shape<const N: usize>(&mut self, member: &str) -> Result<([u64; N], bool)> {
        let (contents, header) = self.head(member)?;
        let shape = <[u64; N]>::try_from(&header.shape[..]).map_err(|_| {
            let got = header.shape.len();
            contents.malformed(0, format!("expected an array of {N} dimensions, got {got}"))
        })?;
        Ok((shape, header.column_major))
    }

    /// Refuses a member whose length does not match.
    fn check(&mut self, member: &str, expected: u64, why: &str) -> Result<()> {
        let ([got], _) = self.shape::<1>(member)?;
        if got == expected {
            return Ok(());
        }
        let name = format!("{}:{member}.npy", self.name);
        let contents = Contents { name, bytes: Vec::new() };
        Err(contents.malformed(0, format!("expected {expected} elements, {why}, got {got}")))
    }

    /// The number of entries, which must fit in 32-bit indices.
    fn entries(&self, count: u64) -> Result<u64> {
        if count > u64::from(u32::MAX) { Err(too_many(self.name, "entries", count)) } else { Ok(count) }
    }

    fn compressed(&mut self, by_rows: bool, rows: usize, cols: usize) -> Result<(Layout, Elements)> {
        let ([room], _) = self.shape("data")?;
        let (lines, across) = if by_rows { (rows, cols) } else { (cols, rows) };
        let (ptr, idx) = self.indices(room, lines, across, "one more than there are rows or columns")?;
        let values = self.elements("data")?.first(idx.len() as u64)?;
        let layout = if by_rows { Layout::Rows { ptr, idx } } else { Layout::DenseArray { ptr, idx } };
        Ok((layout, values))
    }

    /// The pointers and indices of `lines`, with room for so many entries: what is beyond the last pointer is not part of the matrix.
    fn indices(&mut self, room: u64, lines: usize, across: usize, why: &str) -> Result<(Vec<u32>, Vec<u32>)> {
        self.check("indptr", lines as u64 + 1, why)?;
        let pointers = self.elements("indptr")?;
        let last = pointers.wholes("pointer")?.into_iter().max();
        let count = last.and_then(|last| u64::try_from(last).ok()).filter(|last| *last <= room);
        let count = self.entries(count.unwrap_or(room))?;
        let ptr = pointers.pointers("pointer", count)?;
        let ([found], _) = self.shape::<1>("indices")?;
        if found < count {
            self.check("indices", count, "as many as the last pointer says")?;
        }
        let idx = self.elements("indices")?.first(count)?.indices("index", across as u64)?;
        Ok((ptr, idx))
    }

    fn blocks(&mut self, rows: usize, cols: usize) -> Result<(Layout, Elements)> {
        let ([count, height, width], column_major) = self.shape("data")?;
        self.entries(count.saturating_mul(height).saturating_mul(width))?;
        let [height, width] = [height, width].map(|side| side as usize);
        let fits = |size: usize, side: usize| side > 0 && size.is_multiple_of(side);
        if !fits(rows, height) || !fits(cols, width) {
            let message = format!("blocks of {height}x{width} do not tile a matrix of {rows}x{cols}");
            return Err(Error::Structure { operation: reading(self.name), message });
        }
        let (lines, across) = (rows / height, cols / width);
        if column_major {
            self.check("indices", count, "as many as data has blocks")?;
        }
        let (ptr, idx) = self.indices(count, lines, across, "one more than there are rows of blocks")?;
        let stored = if column_major { count } else { idx.len() as u64 };
        let values = self.elements("data")?.first(stored * (height * width) as u64)?;
        Ok((Layout::Blocks { ptr, idx, height, width, blocks: stored as usize, column_major }, values))
    }

    fn diagonals(&mut self) -> Result<(Layout, Elements)> {
        let ([count, length], column_major) = self.shape("data")?;
        self.entries(count.saturating_mul(length))?;
        self.check("offsets", count, "as many as data has rows")?;
        let offsets = self.elements("offsets")?.wholes("offset")?;
        Ok((Layout::Diagonals { offsets, length: length as usize, column_major }, self.elements("data")?))
    }

    fn coordinates(&mut self, rows: usize, cols: usize) -> Result<(Layout, Elements)> {
        let ([count], _) = self.shape("data")?;
        let count = self.entries(count)?;
        if self.zip.index_for_name("coords.npy").is_some() {
            return Ok((self.pairs(count, [rows, cols])?, self.elements("data")?));
        }
        self.check("row", count, "as many as data has")?;
        self.check("col", count, "as many as data has")?;
        let row = self.elements("row")?.indices("row", rows as u64)?;
        let col = self.elements("col")?.indices("column", cols as u64)?;
        Ok((Layout::Entries { row, col }, self.elements("data")?))
    }
}

impl Archive<'_> {
    /// Coordinates stored as one array of two rows.
    fn pairs(&mut self, count: u64, sides: [usize; 2]) -> Result<Layout> {
        let (shape, column_major) = self.shape::<2>("coords")?;
        let name = format!("{}:coords.npy", self.name);
        let wrong =
            |message: String| Contents { name: name.clone(), bytes: Vec::new() }.malformed(0, message);
        if shape != [2, count] {
            let [rows, cols] = shape;
            return Err(wrong(format!(
                "expected an array of 2 x {count}, as many as data has, got {rows} x {cols}"
            )));
        }
        let all = self.elements("coords")?.indices("coordinate", sides[0].max(sides[1]) as u64)?;
        let count = count as usize;
        let of = |d: usize| {
            (0..count).map(|k| all[if column_major { 2 * k + d } else { d * count + k }]).collect()
        };
        let [row, col]: [Vec<u32>; 2] = [0, 1].map(of);
        for (side, indices) in sides.into_iter().zip([&row, &col]) {
            if let Some(k) = indices.iter().position(|&index| index as usize >= side) {
                return Err(wrong(format!(
                    "entry {k} has the coordinate {}: expected 0 to {}",
                    indices[k],
                    side - 1
                )));
            }
        }
        Ok(Layout::Entries { row, col })
    }
}

/// Writes a matrix in compressed rows, like `scipy.sparse.save_npz(compressed=False)`.
///
/// # Errors
/// When the output cannot be written.
///
/// ```
/// use lacuna_io::{self as io, Spec};
///
/// let a = Spec::parse("gen:poisson1d:9")?.build::<f64>()?;
/// let mut bytes = Vec::new();
/// io::npz::encode_matrix(&mut bytes, &a)?;
/// assert_eq!(io::parse_matrix::<f64>("A.npz", &bytes)?, a);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
pub fn encode_matrix<T: Scalar>(mut out: &mut (impl Write + ?Sized), a: &Csr<T>) -> Result<()> {
    compiled_here!(T, |out: &mut dyn Write, a: &Csr<T>| -> Result<()> {
        let out = ZipWriter::new_stream(out);
        encode(out, a).map_err(|error| match error {
            ZipError::Io(source) => super::save::failed(source),
            error => super::save::failed(io::Error::other(error.to_string())),
        })
    })(&mut out, a)
}

fn encode<T: Scalar, W: Write + Seek>(mut out: ZipWriter<W>, a: &Csr<T>) -> Result<(), ZipError> {
    let wide = a.nnz().max(a.rows()).max(a.cols()) > i32::MAX as usize;
    let order = if cfg!(target_endian = "big") { '>' } else { '<' };
    let index = format!("{order}i{}", if wide { 8 } else { 4 });
    let vector = |n: usize| format!("({n},)");
    let mut member = |name: &str, header: Vec<u8>, parts: &mut dyn Iterator<Item = Vec<u8>>, large: bool| {
        // No timestamp: the same matrix gives the same bytes.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(zip::DateTime::default())
            .large_file(large);
        out.start_file(format!("{name}.npy"), options)?;
        out.write_all(&header)?;
        for part in parts {
            out.write_all(&part)?;
        }
        Ok::<(), ZipError>(())
    };
    let large = |count: usize, bytes: usize| count as u64 * bytes as u64 > u64::from(u32::MAX) - (1 << 16);
    let mut indices = |name: &str, indices: &[u32]| {
        let bytes = |part: &[u32]| match wide {
            true => part.iter().flat_map(|&i| i64::from(i).to_ne_bytes()).collect(),
            false => bytemuck::cast_slice(part).to_vec(),
        };
        let header = header(&index, false, &vector(indices.len()));
        member(name, header, &mut indices.chunks(1 << 16).map(bytes), large(indices.len(), 8))
    };
    indices("indices", a.col_idx())?;
    indices("indptr", a.row_ptr())?;
    let shape = [a.rows() as i64, a.cols() as i64].iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<u8>>();
    let mut format = std::iter::once(b"csr".to_vec());
    member("format", header("|S3", false, "()"), &mut format, false)?;
    member("shape", header(&format!("{order}i8"), false, "(2,)"), &mut std::iter::once(shape), false)?;
    let mut values = a.values().chunks(1 << 16).map(|part| bytemuck::cast_slice(part).to_vec());
    let header = header(&descr(T::KIND), false, &vector(a.nnz()));
    member("data", header, &mut values, large(a.nnz(), size_of::<T>()))?;
    out.finish()?;
    Ok(())
}
