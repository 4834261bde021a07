//! PETSc's binary files: matrices and vectors, as `MatView` and `VecView` write them.
//!
//! All numbers are big-endian. A matrix consists of the class id 1211216, rows, columns, entries, the length
//! of each row, the column of each entry, and the values; if the number of entries is -1, all places follow
//! row by row. A vector consists of the class id 1211214, its length, and the values. Integers take 4 bytes,
//! or 8 if PETSc was built with 64-bit indices; values are real or complex numbers in double precision. A
//! file does not declare which: the width of integers is inferred from its first bytes, and that of the
//! values from what follows them, another object or the end. Single-precision values are not supported: half
//! a file in double precision could be mistaken for them.
//!
//! A file may hold several objects. The first matrix is read, with the vector after it as its right-hand
//! side, or else the one before it; of vectors, the first. [`Opened::left_out`](super::Opened::left_out) names the others.
//!
//! Files are written with 32-bit integers if they suffice, and values in double precision, which represents
//! single precision exactly: readable by a PETSc of the default configuration, or for complex values by one
//! built with `--with-scalar-type=complex`.
//!
//! Format: <https://petsc.org/release/manualpages/Mat/MatLoad/>,
//! <https://petsc.org/release/manualpages/Vec/VecLoad/>
use super::Form;
use super::archive::Wanted;
use super::elements::{Contents, ElementKind, Elements, reading, too_many};
use super::mm::Symmetry;
use super::stored::{Found, Layout, Stored, StoredValues, sizes};
use lacuna_engine::{Result, Scalar, compiled_here, memory};
use lacuna_formats::Csr;
use std::io::{self, Write};
use std::sync::Arc;

const MATRIX: i64 = 1_211_216;
const VECTOR: i64 = 1_211_214;
/// The number of entries that indicates a dense matrix.
const DENSE: i64 = -1;
/// Maximum number of objects read.
const OBJECTS: usize = 1 << 12;

/// Maximum number of objects looked at ahead.
const AHEAD: usize = 64;
/// Types of values.
const KINDS: [ElementKind; 2] = [ElementKind::Float(8), ElementKind::Complex(16)];

/// A file, and the width of its integers.
struct Objects<'a> {
    contents: &'a Arc<Contents>,
    at: usize,
    width: usize,
}

/// Reads what is wanted, and for a matrix also the right-hand side beside it.
pub(super) fn read(contents: &Arc<Contents>, wanted: Wanted) -> Result<Found> {
    let width = if contents.bytes.starts_with(&[0; 4]) { 8 } else { 4 };
    let mut objects = Objects { contents, at: 0, width };
    let mut found = vec![objects.next()?];
    while !objects.is_at_end() && found.len() < OBJECTS {
        found.push(objects.next()?);
    }
    let is_wanted = |object: &Object| object.is_vector == (wanted == Wanted::Vector);
    let main = found.iter().position(is_wanted).unwrap_or(0);
    let beside = [main + 1, main.wrapping_sub(1)];
    let beside = beside.into_iter().find(|&k| found.get(k).is_some_and(|object| object.is_vector));
    let beside = beside.filter(|_| !found[main].is_vector);
    let mut left_out = Vec::new();
    let (mut of_main, mut of_beside) = (None, None);
    for (k, Object { stored, is_vector }) in found.into_iter().enumerate() {
        if k == main {
            of_main = Some(stored);
        } else if Some(k) == beside {
            of_beside = Some(stored);
        } else {
            let what = if is_vector { "vector" } else { "matrix" };
            left_out.push(format!("object {}, a {what} of {} x {}", k + 1, stored.rows, stored.cols));
        }
    }
    if !objects.is_at_end() {
        left_out.push(format!("all objects from number {} on", OBJECTS + 1));
    }
    match of_main {
        Some(main) => Ok(Found { main, beside: of_beside, left_out }),
        None => Err(contents.malformed(0, "there is no object")),
    }
}

struct Object {
    stored: Stored,
    is_vector: bool,
}

impl Objects<'_> {
    fn is_at_end(&self) -> bool {
        self.at >= self.contents.bytes.len()
    }

    /// An integer.
    fn whole(&mut self, what: &str) -> Result<i64> {
        let number = match self.width {
            8 => i64::from_le_bytes(self.contents.array(self.at, true, what)?),
            _ => i32::from_le_bytes(self.contents.array(self.at, true, what)?).into(),
        };
        self.at += self.width;
        Ok(number)
    }

    /// A nonnegative integer.
    fn size(&mut self, what: &str) -> Result<u64> {
        let size = self.whole(what)?;
        u64::try_from(size).map_err(|_| {
            self.contents
                .malformed(self.at - self.width, format!("{what} should not be negative, got {size}"))
        })
    }

    fn wholes(&mut self, count: u64) -> Result<Elements> {
        let elements = Elements::new(self.contents, self.at, count, ElementKind::Signed(self.width), true)?;
        self.at = elements.end();
        Ok(elements)
    }

    /// Whether an object may begin, or the file end, at a byte.
    fn is_border(&self, at: usize) -> bool {
        let rest = self.contents.bytes.get(at..);
        rest.is_some_and(|rest| {
            rest.is_empty()
                || [MATRIX, VECTOR].iter().any(|id| match self.width {
                    8 => rest.starts_with(&id.to_be_bytes()),
                    _ => rest.starts_with(&(*id as i32).to_be_bytes()),
                })
        })
    }

    /// Values, of the type whose end coincides with the start of the next object. A value may look like the start of an object, so the
    /// type after which objects follow each other to the end of the file comes first.
    fn values(&mut self, count: u64) -> Result<Elements> {
        let left = self.contents.bytes.len() - self.at;
        let ends = KINDS.map(|kind| (kind, count.saturating_mul(kind.bytes() as u64)));
        let mut borders = ends
            .iter()
            .filter(|(_, bytes)| *bytes <= left as u64 && self.is_border(self.at + *bytes as usize));
        let whole =
            |(_, bytes): &&(ElementKind, u64)| self.runs_to_the_end(self.at + *bytes as usize, &mut 0);
        if let Some((kind, _)) = borders.clone().find(whole).or_else(|| borders.next()) {
            let values = Elements::new(self.contents, self.at, count, *kind, true)?;
            self.at = values.end();
            return Ok(values);
        }
        let message = format!(
            "{count} values of 8 or 16 bytes should follow, and then another object or the end of the file; {left} bytes are left"
        );
        Err(self.contents.malformed(self.at, message))
    }

    /// Whether objects follow each other from a byte to the end, judged by their sizes and row lengths.
    fn runs_to_the_end(&self, at: usize, looked_at: &mut usize) -> bool {
        *looked_at += 1;
        if at == self.contents.bytes.len() {
            return true;
        }
        let ends = self.ends(at).unwrap_or_default();
        *looked_at < AHEAD
            && ends
                .into_iter()
                .flatten()
                .any(|end| self.is_border(end) && self.runs_to_the_end(end, looked_at))
    }

    /// Where the object that starts at a byte ends, with real and with complex values.
    fn ends(&self, at: usize) -> Result<[Option<usize>; 2]> {
        let mut object = Objects { contents: self.contents, at, width: self.width };
        let is_matrix = object.whole("the class id")? == MATRIX;
        let rows = object.size("the length")?;
        let (mut indices, mut values) = (0, rows);
        if is_matrix {
            let cols = object.size("the number of columns")?;
            let entries = object.whole("the number of entries")?;
            if entries == DENSE {
                values = rows.saturating_mul(cols);
            } else {
                values = u64::try_from(entries).unwrap_or(u64::MAX);
                indices = rows.saturating_add(values).saturating_mul(self.width as u64);
                if indices > self.contents.bytes.len() as u64 || !object.has_lengths(rows, values)? {
                    return Ok([None; 2]);
                }
            }
        }
        let begin = object.at as u64;
        let end = |kind: ElementKind| {
            let bytes = values.checked_mul(kind.bytes() as u64)?;
            let end = begin.checked_add(indices)?.checked_add(bytes)?;
            (end <= self.contents.bytes.len() as u64).then_some(end as usize)
        };
        let [real, complex] = KINDS.map(end);
        Ok([real, complex.filter(|_| values > 0)])
    }

    /// Whether row lengths that add up to this many entries follow.
    fn has_lengths(&self, rows: u64, entries: u64) -> Result<bool> {
        let mut lengths = Objects { contents: self.contents, at: self.at, width: self.width };
        let mut sum = 0u64;
        for _ in 0..rows {
            sum = sum.saturating_add(lengths.size("the length of a row")?);
        }
        Ok(sum == entries)
    }

    fn next(&mut self) -> Result<Object> {
        let begin = self.at;
        match self.whole("the class id")? {
            MATRIX => self.matrix(),
            VECTOR => self.vector(),
            id => {
                let message = format!(
                    "the class id should be {MATRIX} for a matrix or {VECTOR} for a vector, got {id}"
                );
                Err(self.contents.malformed(begin, message))
            }
        }
    }

    fn vector(&mut self) -> Result<Object> {
        let n = self.size("the length")?;
        let values = self.values(n)?.detached();
        let stored = Stored::dense(&self.contents.name, Form::Petsc, (n, 1), false, values)?;
        Ok(Object { stored, is_vector: true })
    }

    fn matrix(&mut self) -> Result<Object> {
        let (rows, cols) = (self.size("the number of rows")?, self.size("the number of columns")?);
        let name = self.contents.name.as_str();
        let counted = self.at;
        let entries = self.whole("the number of entries")?;
        if entries == DENSE {
            let values = self.values(rows.saturating_mul(cols))?;
            let stored = Stored::dense(name, Form::Petsc, (rows, cols), false, values)?;
            return Ok(Object { stored, is_vector: false });
        }
        let entries = u64::try_from(entries).map_err(|_| {
            let message = format!("the number of entries should not be negative, got {entries}");
            self.contents.malformed(counted, message)
        })?;
        if entries > u64::from(u32::MAX) {
            return Err(too_many(name, "entries", entries));
        }
        let [rows, cols] = sizes(name, [("rows", rows), ("columns", cols)])?;
        let begin = self.at;
        let lengths = self.wholes(rows as u64)?;
        memory::check(&reading(name), 4 * (rows as u64 + entries))?;
        let lengths = lengths.indices("the length of a row,", entries + 1)?;
        let mut ptr = Vec::with_capacity(rows + 1);
        let mut end = 0u64;
        ptr.push(0);
        for length in lengths {
            end += u64::from(length);
            ptr.push(end.min(entries) as u32);
        }
        if end != entries {
            let message = format!("the lengths of the rows should add up to {entries} entries, got {end}");
            return Err(self.contents.malformed(begin, message));
        }
        let idx = self.wholes(entries)?.indices("column", cols as u64)?;
        let values = StoredValues::Numbers(self.values(entries)?);
        let (layout, symmetry) = (Layout::Rows { ptr, idx }, Symmetry::General);
        let stored = Stored { name: name.into(), form: Form::Petsc, rows, cols, layout, symmetry, values };
        Ok(Object { stored, is_vector: false })
    }
}

/// Writes a matrix.
///
/// # Errors
/// When the output cannot be written.
///
/// ```
/// use lacuna_io::{self as io, Spec};
///
/// let a = Spec::parse("gen:poisson1d:9")?.build::<f64>()?;
/// let mut bytes = Vec::new();
/// io::petsc::encode_matrix(&mut bytes, &a)?;
/// // The right-hand side may follow in the same file.
/// io::petsc::encode_vector(&mut bytes, &[1.0; 9])?;
/// assert_eq!(io::parse_matrix::<f64>("A.petsc", &bytes)?, a);
/// assert_eq!(io::parse_vector::<f64>("A.petsc", &bytes)?, [1.0; 9]);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
pub fn encode_matrix<T: Scalar>(mut out: &mut (impl Write + ?Sized), a: &Csr<T>) -> Result<()> {
    compiled_here!(T, |out: &mut dyn Write, a: &Csr<T>| -> Result<()> {
        let wide = a.nnz().max(a.rows()).max(a.cols()) > i32::MAX as usize;
        let mut out = Wholes { out, wide };
        let mut run = || -> io::Result<()> {
            let sizes = [MATRIX, a.rows() as i64, a.cols() as i64, a.nnz() as i64];
            out.write(sizes.into_iter())?;
            out.write(a.row_ptr().windows(2).map(|w| i64::from(w[1] - w[0])))?;
            out.write(a.col_idx().iter().map(|&j| i64::from(j)))?;
            numbers(out.out, a.values())
        };
        run().map_err(super::save::failed)
    })(&mut out, a)
}

/// Writes a vector, with a 32-bit length if that suffices.
///
/// # Errors
/// When the output cannot be written, or an element is not finite.
pub fn encode_vector<T: Scalar>(mut out: &mut (impl Write + ?Sized), x: &[T]) -> Result<()> {
    compiled_here!(T, |out: &mut dyn Write, x: &[T]| -> Result<()> {
        super::mm::check_finite(x)?;
        let mut out = Wholes { out, wide: x.len() > i32::MAX as usize };
        let mut run = || -> io::Result<()> {
            out.write([VECTOR, x.len() as i64].into_iter())?;
            numbers(out.out, x)
        };
        run().map_err(super::save::failed)
    })(&mut out, x)
}

/// An output of integers of one width.
struct Wholes<'a> {
    out: &'a mut dyn Write,
    wide: bool,
}

impl Wholes<'_> {
    fn write(&mut self, numbers: impl Iterator<Item = i64>) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(1 << 16);
        for number in numbers {
            match self.wide {
                true => bytes.extend(number.to_be_bytes()),
                false => bytes.extend((number as i32).to_be_bytes()),
            }
            if bytes.len() >= 1 << 16 {
                self.out.write_all(&bytes)?;
                bytes.clear();
            }
        }
        self.out.write_all(&bytes)
    }
}

fn numbers<T: Scalar>(out: &mut dyn Write, values: &[T]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(1 << 16);
    for part in values.chunks(1 << 12) {
        bytes.clear();
        for v in part {
            bytes.extend(v.re().to_be_bytes());
            if T::KIND.is_complex() {
                bytes.extend(v.im().to_be_bytes());
            }
        }
        out.write_all(&bytes)?;
    }
    out.flush()
}
