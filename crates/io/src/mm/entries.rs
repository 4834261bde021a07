//! The entries of one block of text.
use super::header::{Field, Header, Layout, Symmetry};
use super::rounded::Rounding;
use super::scan::{Fault, Scanner};
use lacuna_engine::{NumberType, Scalar};
use lacuna_formats::build::Entry;

/// The contents of a block of whole lines.
pub(super) struct Parsed<T> {
    /// The entries, each followed by its mirror image if the matrix is symmetric. Those of an array have no
    /// place yet.
    pub(super) entries: Vec<Entry<T>>,
    /// Number of lines with an entry.
    pub(super) stored: u64,
    /// Number of lines.
    pub(super) lines: u64,
    /// Runs of blank lines and comments: the number of entry lines before them, and how many there are.
    skipped: Vec<(u32, u32)>,
    /// What ended parsing early: the line in the block, counted from 0, the column from 1, and the reason.
    pub(super) fault: Option<(u64, u64, String)>,
    /// Numbers not representable in the number type.
    pub(super) rounding: Rounding,
}

impl<T> Parsed<T> {
    /// The line of entry `k` in the block, counted from 0.
    pub(super) fn line_of(&self, k: u64) -> u64 {
        let before = self.skipped.iter().take_while(|(entries, _)| u64::from(*entries) <= k);
        k + before.map(|(_, lines)| u64::from(*lines)).sum::<u64>()
    }
}

/// Parses a block; about `room` entries are expected.
pub(super) fn parse<T: Scalar>(text: &[u8], header: &Header, room: usize) -> Parsed<T> {
    let mut scanner = Scanner::new(text, matches!(T::KIND, NumberType::F32 | NumberType::C32));
    let mut parsed = Parsed {
        entries: Vec::with_capacity(room),
        stored: 0,
        lines: 0,
        skipped: Vec::new(),
        fault: None,
        rounding: Rounding::default(),
    };
    while !scanner.at_end() {
        let line = scanner.at();
        if scanner.skip_empty_line() {
            match parsed.skipped.last_mut() {
                Some((entries, lines)) if *entries == parsed.stored as u32 => *lines += 1,
                _ => parsed.skipped.push((parsed.stored as u32, 1)),
            }
        } else {
            let read = match header.layout {
                Layout::Coordinate => coordinate(&mut scanner, header, &mut parsed.entries),
                Layout::Array => array(&mut scanner, header, &mut parsed.entries),
            };
            if let Err(fault) = read {
                let column = fault.at.map_or(0, |at| at - line + 1);
                parsed.fault = Some((parsed.lines, column as u64, fault.message));
                return parsed;
            }
            parsed.stored += 1;
        }
        parsed.lines += 1;
    }
    parsed.rounding = scanner.rounding.placed(text);
    parsed
}

/// Parses a value.
#[inline(always)]
fn value<T: Scalar>(scanner: &mut Scanner<'_>, field: Field) -> Result<T, Fault> {
    Ok(match field {
        Field::Real => T::from_real(scanner.real("value")?),
        Field::Complex => {
            let re = scanner.real("real part")?;
            T::from_parts(re, scanner.real("imaginary part")?)
        }
        Field::Integer => T::from_real(scanner.integer("value")?),
        Field::Pattern => T::one(),
    })
}

/// A line `row column value`.
#[inline(always)]
fn coordinate<T: Scalar>(
    scanner: &mut Scanner<'_>,
    header: &Header,
    entries: &mut Vec<Entry<T>>,
) -> Result<(), Fault> {
    let start = scanner.at();
    let i = scanner.index("row", 1..=header.rows as u32)?;
    let j = scanner.index("column", 1..=header.cols as u32)?;
    scanner.skip_blanks();
    let value_at = scanner.at();
    let v: T = value(scanner, header.field)?;
    scanner.end_line(if header.field == Field::Pattern { "the column" } else { "the value" })?;
    entries.push((i, j, v));
    if header.symmetry != Symmetry::General {
        mirror(header.symmetry, (i, j, v), entries)
            .map_err(|(at_value, message)| Fault::new(if at_value { value_at } else { start }, message))?;
    }
    Ok(())
}

/// Adds the mirror image of an entry. The error says whether it concerns the value or the row.
pub(crate) fn mirror<T: Scalar>(
    symmetry: Symmetry,
    (i, j, v): Entry<T>,
    entries: &mut Vec<Entry<T>>,
) -> Result<(), (bool, String)> {
    if i < j {
        let place = format!("row {}, column {}", i + 1, j + 1);
        let message =
            format!("a {symmetry} matrix is stored on and below the diagonal, got an entry at {place}");
        return Err((false, message));
    }
    if i == j {
        return match symmetry {
            Symmetry::SkewSymmetric if v != T::zero() => {
                let message =
                    format!("the diagonal of a skew-symmetric matrix is zero, got {v} at row {}", i + 1);
                Err((false, message))
            }
            Symmetry::Hermitian if v.im() != 0.0 => {
                Err((true, format!("the diagonal of a hermitian matrix is real, got {v}")))
            }
            _ => Ok(()),
        };
    }
    entries.push((j, i, across(symmetry, v)));
    Ok(())
}

/// The value of the mirror image.
pub(super) fn across<T: Scalar>(symmetry: Symmetry, v: T) -> T {
    match symmetry {
        Symmetry::General | Symmetry::Symmetric => v,
        Symmetry::SkewSymmetric => -v,
        Symmetry::Hermitian => v.conj(),
    }
}

/// Parses a line of an array: one value.
fn array<T: Scalar>(
    scanner: &mut Scanner<'_>,
    header: &Header,
    entries: &mut Vec<Entry<T>>,
) -> Result<(), Fault> {
    let v = value(scanner, header.field)?;
    scanner.end_line("the value: an array has one a line")?;
    entries.push((0, 0, v));
    Ok(())
}

/// Assigns the entries of an array their places, column by column, after the `first` previous entries, and
/// adds their mirror images. Zeros are omitted.
pub(super) fn place<T: Scalar>(
    header: &Header,
    first: u64,
    values: Vec<Entry<T>>,
) -> Result<Vec<Entry<T>>, (u64, String)> {
    let Some(start) = (!values.is_empty()).then(|| position(header, first)) else { return Ok(values) };
    let (mut i, mut j) = start;
    let mut entries = Vec::with_capacity(values.len());
    for (k, (_, _, v)) in values.into_iter().enumerate() {
        if v != T::zero() {
            entries.push((i as u32, j as u32, v));
            if header.symmetry != Symmetry::General {
                mirror(header.symmetry, (i as u32, j as u32, v), &mut entries)
                    .map_err(|(_, message)| (k as u64, message))?;
            }
        }
        i += 1;
        if i == header.rows as u64 {
            j += 1;
            i = top(header.symmetry, j);
        }
    }
    Ok(entries)
}

/// The first row that an array stores of column `j`.
fn top(symmetry: Symmetry, j: u64) -> u64 {
    match symmetry {
        Symmetry::General => 0,
        Symmetry::Symmetric | Symmetry::Hermitian => j,
        Symmetry::SkewSymmetric => j + 1,
    }
}

/// Row and column of entry `k` of an array.
fn position(header: &Header, k: u64) -> (u64, u64) {
    let rows = header.rows as u64;
    // Entries of the columns before column j.
    let before = |j: u64| match header.symmetry {
        Symmetry::General => j * rows,
        Symmetry::Symmetric | Symmetry::Hermitian => j * rows - j * j.saturating_sub(1) / 2,
        Symmetry::SkewSymmetric => j * rows - j * (j + 1) / 2,
    };
    let (mut low, mut high) = (0, header.cols as u64);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if before(middle) <= k { low = middle } else { high = middle }
    }
    (top(header.symmetry, low) + (k - before(low)), low)
}
