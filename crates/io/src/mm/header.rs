//! The header of a file: banner, comments, sizes.
use super::scan::{Fault, words};
use std::fmt;

/// Maximum bytes of comments kept.
const COMMENT_BYTES: usize = 1 << 16;

/// How entries are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One line per stored entry: row, column, value.
    Coordinate,
    /// One line per place, column by column.
    Array,
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A real number.
    Real,
    /// An integer.
    Integer,
    /// A real and an imaginary part.
    Complex,
    /// No value: every stored entry is 1.
    Pattern,
}

/// Which entries represent two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetry {
    /// None.
    General,
    /// Those below the diagonal; the mirror image is equal.
    Symmetric,
    /// Those below the diagonal; the mirror image is the negative, the diagonal is zero and need not be
    /// stored.
    SkewSymmetric,
    /// Those below the diagonal; the mirror image is the conjugate, the diagonal is real.
    Hermitian,
}

macro_rules! named {
    ($type:ident: $($variant:ident $name:literal),*) => {
        impl $type {
            /// The name in a banner.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name),* }
            }

            fn parse(word: &str) -> Option<Self> {
                [$($type::$variant),*].into_iter().find(|v| v.name().eq_ignore_ascii_case(word))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
named!(Layout: Coordinate "coordinate", Array "array");
named!(Field: Real "real", Integer "integer", Complex "complex", Pattern "pattern");
named!(Symmetry: General "general", Symmetric "symmetric", SkewSymmetric "skew-symmetric", Hermitian "hermitian");

/// The header of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// How entries are laid out.
    pub layout: Layout,
    /// The kind of an entry, which determines whether a complex number type is needed.
    pub field: Field,
    /// Which entries represent two.
    pub symmetry: Symmetry,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Entries in the file; for a symmetric matrix, those on and below the diagonal.
    pub entries: u64,
    /// The comments before the sizes, one line each, without the percent sign; the first 64 KiB.
    pub comments: Vec<String>,
}

/// A header being read line by line.
#[derive(Default)]
pub(super) struct HeaderLines {
    banner: Option<(Layout, Field, Symmetry)>,
    comments: Vec<String>,
    comment_bytes: usize,
}

impl HeaderLines {
    /// Parses the next line; returns the header when it is complete.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<Option<Header>, Fault> {
        let Some((layout, field, symmetry)) = self.banner else {
            if line.trim_ascii().is_empty() {
                return Ok(None);
            }
            self.banner = Some(banner(line)?);
            return Ok(None);
        };
        let text = line.trim_ascii();
        if let Some(comment) = text.strip_prefix(b"%") {
            if self.comment_bytes + comment.len() <= COMMENT_BYTES {
                self.comment_bytes += comment.len() + 1;
                self.comments.push(String::from_utf8_lossy(comment).into_owned());
            }
            return Ok(None);
        }
        if text.is_empty() {
            return Ok(None);
        }
        let (rows, cols, entries) = sizes(line, layout, symmetry)?;
        let comments = std::mem::take(&mut self.comments);
        Ok(Some(Header { layout, field, symmetry, rows, cols, entries, comments }))
    }

    /// Describes what is missing at the end of a file.
    pub(super) fn missing(&self) -> Fault {
        let what = match self.banner {
            None => "the file is empty; it should begin with `%%MatrixMarket matrix …`",
            Some((Layout::Coordinate, ..)) => "the file ends before the line `rows columns entries`",
            Some((Layout::Array, ..)) => "the file ends before the line `rows columns`",
        };
        Fault::line(what.into())
    }
}

/// The banner: `%%MatrixMarket matrix layout field symmetry`.
fn banner(line: &[u8]) -> Result<(Layout, Field, Symmetry), Fault> {
    let mut words = words(line);
    let mut next = || words.next().unwrap_or((line.trim_ascii_end().len(), String::new()));
    let (at, word) = next();
    if !word.eq_ignore_ascii_case("%%MatrixMarket") {
        return Err(Fault::new(at, format!("a file should begin with `%%MatrixMarket`, got `{word}`")));
    }
    let (at, word) = next();
    if !word.eq_ignore_ascii_case("matrix") {
        return Err(Fault::new(at, format!("the object should be `matrix`, got `{word}`")));
    }
    let (at, word) = next();
    let layout = Layout::parse(&word)
        .ok_or_else(|| Fault::new(at, format!("the layout should be coordinate or array, got `{word}`")))?;
    let (field_at, word) = next();
    let field = Field::parse(&word).ok_or_else(|| {
        Fault::new(field_at, format!("the field should be real, integer, complex or pattern, got `{word}`"))
    })?;
    let (at, word) = next();
    let symmetry = Symmetry::parse(&word).ok_or_else(|| {
        let kinds = "general, symmetric, skew-symmetric or hermitian";
        Fault::new(at, format!("the symmetry should be {kinds}, got `{word}`"))
    })?;
    if let Some((at, word)) = words.next() {
        return Err(Fault::new(at, format!("the banner ends after the symmetry, got `{word}`")));
    }
    match (layout, field, symmetry) {
        (Layout::Array, Field::Pattern, _) => {
            Err(Fault::new(field_at, "an array has values: its field cannot be pattern".into()))
        }
        (_, Field::Pattern, Symmetry::SkewSymmetric) => {
            Err(Fault::new(at, "a pattern has no signs: it cannot be skew-symmetric".into()))
        }
        (_, Field::Real | Field::Integer | Field::Pattern, Symmetry::Hermitian) => {
            Err(Fault::new(at, format!("a {field} matrix is not hermitian but symmetric")))
        }
        banner => Ok(banner),
    }
}

/// The line `rows columns entries` or `rows columns`.
fn sizes(line: &[u8], layout: Layout, symmetry: Symmetry) -> Result<(usize, usize, u64), Fault> {
    let mut words = words(line);
    let mut size = |what: &str, bound: u64| match words.next() {
        None => Err(Fault::new(line.trim_ascii_end().len(), format!("the number of {what} is missing"))),
        Some((at, word)) => match word.parse::<u64>() {
            Ok(n) if n <= bound => Ok((at, n)),
            _ if !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()) => Err(Fault::new(
                at,
                format!(
                    "the number of {what} should be at most {bound}, which 32-bit indices count, got {word}"
                ),
            )),
            _ => Err(Fault::new(at, format!("the number of {what} should be a whole number, got `{word}`"))),
        },
    };
    let bound = u64::from(u32::MAX);
    let (_, rows) = size("rows", bound)?;
    let (cols_at, cols) = size("columns", bound)?;
    if symmetry != Symmetry::General && rows != cols {
        return Err(Fault::new(cols_at, format!("a {symmetry} matrix is square, got {rows}x{cols}")));
    }
    // Below the diagonal, then including it; no overflow, because dimensions fit in 32 bits.
    let triangle = rows * rows.saturating_sub(1) / 2;
    let places = match symmetry {
        Symmetry::General => rows * cols,
        Symmetry::SkewSymmetric => triangle,
        Symmetry::Symmetric | Symmetry::Hermitian => triangle + rows,
    };
    let entries = match layout {
        Layout::Array => places,
        Layout::Coordinate => size("entries", bound)?.1,
    };
    if let Some((at, word)) = words.next() {
        return Err(Fault::new(at, format!("nothing should follow the sizes, got `{word}`")));
    }
    Ok((rows as usize, cols as usize, entries))
}
