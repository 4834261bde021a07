//! Rutherford–Boeing and Harwell–Boeing text: matrices in compressed columns.
//!
//! Assembled matrices are read: real, complex, pattern and integer; symmetric, skew-symmetric, Hermitian,
//! unsymmetric and rectangular. The numbers are in the fields given by the Fortran formats of the header,
//! with or without blanks between them. A full right-hand side after a Harwell–Boeing matrix is read with it.
//! Element matrices (`RSE` and the like) and sparse right-hand sides are not supported.
//!
//! Formats: <https://math.nist.gov/MatrixMarket/formats.html#hb>; Duff, Grimes, Lewis, The Rutherford–Boeing
//! sparse matrix collection, RAL-TR-97-031, 1997.
mod fortran;
mod lines;

use super::elements::{Contents, ElementKind, Elements, reading};
use super::mm::Symmetry;
use super::stored::{Found, Layout, Stored, StoredValues, sizes};
use super::{Form, Wanted};
use fortran::Format;
use lacuna_engine::{Error, Result};
use lines::{Lines, words};
use std::sync::Arc;

/// The contents of the four or five lines of a header.
struct Header {
    values: u8,
    symmetry: Symmetry,
    rows: usize,
    cols: usize,
    entries: u64,
    has_values: bool,
    pointers: Format,
    indices: Format,
    numbers: Option<Format>,
    /// The right-hand sides after a Harwell–Boeing matrix.
    beside: Option<Beside>,
}

/// The header's description of right-hand sides.
struct Beside {
    format: Format,
    count: u64,
    is_full: bool,
    has_guess: bool,
    has_solution: bool,
}

/// Reads the matrix of a file and the right-hand sides after it; if a vector is wanted, the right-hand sides
/// come first.
pub(super) fn read(contents: &Arc<Contents>, wanted: Wanted) -> Result<Found> {
    let mut lines = Lines::new(contents);
    let header = Header::read(&mut lines)?;
    let (rows, cols, entries) = (header.rows, header.cols, header.entries);
    let ptr = lines.wholes(&header.pointers, cols as u64 + 1, "pointer", 1..=entries + 1)?;
    let falls = ptr.windows(2).position(|w| w[1] < w[0]);
    if let Some(k) = falls {
        return Err(lines.wrong(0, format!("pointer {} comes after {}", ptr[k + 1] + 1, ptr[k] + 1)));
    }
    if ptr[0] != 0 || u64::from(ptr[cols]) != entries {
        let message = format!(
            "the pointers should go from 1 to {}, one more than there are entries, got {} to {}",
            entries + 1,
            ptr[0] + 1,
            ptr[cols] + 1
        );
        return Err(lines.wrong(0, message));
    }
    let idx = lines.wholes(&header.indices, entries, "row", 1..=rows as u64)?;
    let is_complex = header.values == b'C';
    let kind = if is_complex { ElementKind::Complex(16) } else { ElementKind::Float(8) };
    let name = contents.name.as_str();
    let values = match &header.numbers {
        Some(format) if header.has_values => {
            let parts = if is_complex { 2 * entries } else { entries };
            let numbers = lines.numbers(format, parts, "value")?;
            StoredValues::Numbers(Elements::of_decimals(name, numbers, kind))
        }
        _ => StoredValues::Pattern(entries as usize),
    };
    let beside = match &header.beside {
        Some(beside) if beside.is_full => {
            let count = beside.count.saturating_mul(rows as u64);
            let parts = if is_complex { count.saturating_mul(2) } else { count };
            let numbers = lines.numbers(&beside.format, parts, "element of the right-hand side")?;
            let numbers = Elements::of_decimals(name, numbers, kind);
            let shape = (rows as u64, beside.count);
            Some(Stored::dense(name, Form::RutherfordBoeing, shape, true, numbers)?)
        }
        _ => None,
    };
    let (form, layout, symmetry) = (Form::RutherfordBoeing, Layout::DenseArray { ptr, idx }, header.symmetry);
    let matrix = Stored { name: name.into(), form, rows, cols, layout, symmetry, values };
    let left_out = header.beside.iter().flat_map(Beside::left_out).collect();
    Ok(match (wanted, beside) {
        (Wanted::Vector, Some(beside)) => Found { left_out, ..Found::alone(beside) },
        (_, beside) => Found { main: matrix, beside, left_out },
    })
}

impl Header {
    fn read(lines: &mut Lines<'_>) -> Result<Self> {
        lines.next("the title")?;
        let counts = words(lines.next("the counts of lines")?);
        let count = |lines: &Lines<'_>, k: usize, what: &str| match counts.get(k) {
            Some((at, word)) => lines.whole(*at, word, what, 0..=u64::MAX),
            None => Ok(0),
        };
        let has_values = count(lines, 3, "the number of lines with values")? > 0;
        let has_beside = count(lines, 4, "the number of lines with right-hand sides")? > 0;

        let line = lines.next("the type and the sizes")?;
        let (values, symmetry) = lines.matrix_type(line)?;
        let rest = words(line.get(3..).unwrap_or_default());
        let size = |k: usize, what: &str| match rest.get(k) {
            Some((at, word)) => lines.whole(at + 3, word, what, 0..=u64::from(u32::MAX)),
            None => Err(lines.wrong(0, format!("{what} is missing"))),
        };
        let (rows, cols) = (size(0, "the number of rows")?, size(1, "the number of columns")?);
        let entries = size(2, "the number of entries")?;
        let [rows, cols] = sizes(lines.name(), [("rows", rows), ("columns", cols)])?;
        if symmetry != Symmetry::General && rows != cols {
            return Err(lines.wrong(0, format!("a {symmetry} matrix is square, got {rows}x{cols}")));
        }
        match (has_values, values == b'P') {
            (true, true) => return Err(lines.wrong(0, "a pattern has no values, got lines of them".into())),
            (false, false) if entries > 0 => {
                return Err(lines.wrong(0, "there are no lines of values".into()));
            }
            _ => {}
        }

        let line = lines.next("the formats")?;
        let formats = lines.formats(line)?;
        let mut formats = formats.into_iter();
        let mut format = |what: &str| {
            formats.next().ok_or_else(|| lines.wrong(0, format!("the format of {what} is missing")))
        };
        let (pointers, indices) = (format("the pointers")?, format("the rows")?);
        let numbers = if has_values { Some(format("the values")?) } else { None };
        let beside = if has_beside { Some(format("the right-hand sides")?) } else { None };
        let beside = beside.map(|format| Beside::read(lines, format)).transpose()?;
        Ok(Header { values, symmetry, rows, cols, entries, has_values, pointers, indices, numbers, beside })
    }
}

impl Beside {
    fn read(lines: &mut Lines<'_>, format: Format) -> Result<Self> {
        let line = lines.next("the type of the right-hand sides")?;
        let is_full = line.first().is_some_and(|b| b.eq_ignore_ascii_case(&b'F'));
        let count = match words(line.get(3..).unwrap_or_default()).first() {
            Some((at, word)) => {
                let what = "the number of right-hand sides";
                lines.whole(at + 3, word, what, 0..=u64::from(u32::MAX))?
            }
            None => return Err(lines.wrong(0, "the number of right-hand sides is missing".into())),
        };
        let has = |letter: u8| line.iter().take(3).any(|b| b.eq_ignore_ascii_case(&letter));
        Ok(Beside { format, count, is_full, has_guess: has(b'G'), has_solution: has(b'X') })
    }

    /// What is not read, in words.
    fn left_out(&self) -> impl Iterator<Item = String> {
        let sparse = (!self.is_full).then_some("the right-hand sides, which are sparse");
        let guess = self.has_guess.then_some("the starting guesses");
        let solution = self.has_solution.then_some("the solutions");
        [sparse, guess, solution].into_iter().flatten().map(String::from)
    }
}

impl Lines<'_> {
    /// The type of a matrix, such as `RUA`: the kind of the values, in upper case, and the symmetry.
    fn matrix_type(&self, line: &[u8]) -> Result<(u8, Symmetry)> {
        let word = line.get(..3).unwrap_or(line).to_ascii_uppercase();
        let wrong = || {
            let letters = "three letters such as RUA: R, C, P, I or Q, then S, U, H, Z or R, then A or E";
            let got = String::from_utf8_lossy(&word).into_owned();
            self.wrong(1, format!("the type of the matrix should be {letters}, got `{got}`"))
        };
        let &[values @ (b'R' | b'C' | b'P' | b'I' | b'Q'), symmetry, storage @ (b'A' | b'E')] = &word[..]
        else {
            return Err(wrong());
        };
        if storage == b'E' {
            let message = "the matrix is stored as element matrices, expected an assembled one".into();
            return Err(Error::Unsupported { operation: reading(self.name()), message });
        }
        let symmetry = match symmetry {
            b'U' | b'R' => Symmetry::General,
            b'S' => Symmetry::Symmetric,
            b'H' => Symmetry::Hermitian,
            b'Z' => Symmetry::SkewSymmetric,
            _ => return Err(wrong()),
        };
        if symmetry == Symmetry::Hermitian && values != b'C' {
            return Err(self.wrong(2, "a real matrix is not hermitian but symmetric".into()));
        }
        if symmetry == Symmetry::SkewSymmetric && values == b'P' {
            return Err(self.wrong(2, "a pattern has no signs: it cannot be skew-symmetric".into()));
        }
        Ok((values, symmetry))
    }
}
