//! Writing: all threads convert rows to text, one batch at a time.
use super::entries::across;
use super::header::{Field, Symmetry};
use crate::DenseArray;
use crate::save::{failed, save};
use lacuna_engine::{Error, Result, Scalar, compiled_here};
use lacuna_formats::Csr;
use lacuna_formats::parallel;
use std::io::{self, Write};
use std::path::Path;

/// Entries per task.
const SHARE: usize = 1 << 14;

/// Which entries are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// Those on and below the diagonal if the matrix is symmetric, Hermitian or skew-symmetric, otherwise
    /// all.
    #[default]
    Auto,
    /// Those that this symmetry stores; the matrix must have it.
    As(Symmetry),
}

/// Options for writing.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions<'a> {
    /// Which entries are written.
    pub storage: Storage,
    /// Comment lines after the banner.
    pub comment: &'a str,
}

/// Writes a matrix in coordinate format, compressed by gzip if the name ends in `.gz`. Numbers have the
/// fewest digits that read back to the same bits.
///
/// # Errors
/// When the file cannot be written, or the matrix does not have the requested symmetry.
pub fn write_matrix<T: Scalar>(path: impl AsRef<Path>, a: &Csr<T>, options: &WriteOptions<'_>) -> Result<()> {
    compiled_here!(T, |path: &Path, a: &Csr<T>, options: &WriteOptions<'_>| -> Result<()> {
        let symmetry = storage(a, options.storage)?;
        save(path, |out| matrix(out, a, symmetry, options.comment).map_err(failed))
    })(path.as_ref(), a, options)
}

/// As [`write_matrix`], to any writer, uncompressed.
///
/// # Errors
/// As [`write_matrix`].
pub fn encode_matrix<T: Scalar>(
    mut out: &mut (impl Write + ?Sized),
    a: &Csr<T>,
    options: &WriteOptions<'_>,
) -> Result<()> {
    compiled_here!(T, |out: &mut dyn Write, a: &Csr<T>, options: &WriteOptions<'_>| -> Result<()> {
        let symmetry = storage(a, options.storage)?;
        matrix(out, a, symmetry, options.comment).map_err(failed)
    })(&mut out, a, options)
}

/// Writes a vector as an array of one column, compressed by gzip if the name ends in `.gz`.
///
/// # Errors
/// When the file cannot be written, or an element is not finite.
pub fn write_vector<T: Scalar>(path: impl AsRef<Path>, x: &[T]) -> Result<()> {
    compiled_here!(T, |path: &Path, x: &[T]| -> Result<()> {
        check_finite(x)?;
        save(path, |out| vector(out, x).map_err(failed))
    })(path.as_ref(), x)
}

/// As [`write_vector`], to any writer, uncompressed.
///
/// # Errors
/// As [`write_vector`].
pub fn encode_vector<T: Scalar>(mut out: &mut (impl Write + ?Sized), x: &[T]) -> Result<()> {
    compiled_here!(T, |out: &mut dyn Write, x: &[T]| -> Result<()> {
        check_finite(x)?;
        vector(out, x).map_err(failed)
    })(&mut out, x)
}

/// Writes columns, such as several solutions, as a dense array, uncompressed.
///
/// # Errors
/// When it cannot be written, an element is not finite, or the values are not rows times columns.
pub fn encode_columns<T: Scalar>(mut out: &mut (impl Write + ?Sized), x: &DenseArray<T>) -> Result<()> {
    compiled_here!(T, |out: &mut dyn Write, x: &DenseArray<T>| -> Result<()> {
        x.check()?;
        check_finite(&x.values)?;
        array(out, [x.rows, x.cols], &x.values).map_err(failed)
    })(&mut out, x)
}

/// Refuses a vector with an element that is not finite.
pub(crate) fn check_finite<T: Scalar>(x: &[T]) -> Result<()> {
    match x.iter().position(|v| !v.finite()) {
        None => Ok(()),
        Some(row) => Err(Error::Element {
            operation: "writing a vector".into(),
            what: "x".into(),
            row,
            message: format!("{} is not finite", x[row]),
        }),
    }
}

/// The symmetry to write with.
fn storage<T: Scalar>(a: &Csr<T>, storage: Storage) -> Result<Symmetry> {
    let candidates = match storage {
        Storage::As(Symmetry::General) => return Ok(Symmetry::General),
        Storage::Auto => vec![Symmetry::Symmetric, Symmetry::Hermitian, Symmetry::SkewSymmetric],
        Storage::As(wanted) => vec![wanted],
    };
    for symmetry in candidates {
        let complex_only = symmetry == Symmetry::Hermitian;
        if complex_only && !T::KIND.is_complex() {
            continue;
        }
        if breaks(a, symmetry).is_none() {
            return Ok(symmetry);
        }
    }
    let Storage::As(wanted) = storage else { return Ok(Symmetry::General) };
    let (row, column) = breaks(a, wanted).unwrap_or((0, 0));
    let message = if wanted == Symmetry::Hermitian && !T::KIND.is_complex() {
        format!("a real matrix is symmetric, not {wanted}")
    } else {
        format!("the matrix is not {wanted}")
    };
    Err(Error::Entry { operation: "writing a matrix".into(), row, column, message })
}

/// The first entry, by row, without its counterpart across the diagonal.
fn breaks<T: Scalar>(a: &Csr<T>, symmetry: Symmetry) -> Option<(usize, usize)> {
    if a.rows() != a.cols() || (symmetry == Symmetry::SkewSymmetric && a.nnz() == 0) {
        return Some((0, 0));
    }
    let wrong = |i: usize, (j, v): (usize, T)| {
        let no_diagonal = symmetry == Symmetry::SkewSymmetric && i == j;
        no_diagonal || a.get(j, i) != Some(across(symmetry, v))
    };
    let row = parallel::find_first(a.rows(), 1024, |i| a.row_entries(i).any(|e| wrong(i, e)))?;
    a.row_entries(row).find(|&e| wrong(row, e)).map(|(j, _)| (row, j))
}

fn matrix<T: Scalar>(
    out: &mut (impl Write + ?Sized),
    a: &Csr<T>,
    symmetry: Symmetry,
    comment: &str,
) -> io::Result<()> {
    let lower = symmetry != Symmetry::General;
    let kept = |i: usize| {
        let (columns, _) = a.row_slices(i);
        if lower { columns.partition_point(|&j| j as usize <= i) } else { columns.len() }
    };
    let entries = parallel::sum(a.rows(), 4096, kept);
    writeln!(out, "%%MatrixMarket matrix coordinate {} {symmetry}", field::<T>())?;
    for line in comment.lines() {
        writeln!(out, "%{line}")?;
    }
    writeln!(out, "{} {} {entries}", a.rows(), a.cols())?;
    let shares = row_shares(a);
    for batch in shares.chunks(4 * rayon::current_num_threads()) {
        let texts = parallel::map(batch, |share| {
            let mut text = Vec::with_capacity(24 * SHARE);
            for i in share.clone() {
                for (j, v) in a.row_entries(i).take(kept(i)) {
                    push_whole(&mut text, i as u64 + 1);
                    text.push(b' ');
                    push_whole(&mut text, j as u64 + 1);
                    text.push(b' ');
                    push_number(&mut text, v);
                }
            }
            text
        });
        texts.iter().try_for_each(|text| out.write_all(text))?;
    }
    out.flush()
}

/// The rows in runs of about [`SHARE`] entries.
fn row_shares<T: Scalar>(a: &Csr<T>) -> Vec<std::ops::Range<usize>> {
    let (mut shares, mut first) = (Vec::new(), 0);
    for end in 1..=a.rows() {
        let size = (a.row_ptr()[end] - a.row_ptr()[first]) as usize + end - first;
        if size >= SHARE || end == a.rows() {
            shares.push(first..end);
            first = end;
        }
    }
    shares
}

fn vector<T: Scalar>(out: &mut (impl Write + ?Sized), x: &[T]) -> io::Result<()> {
    array(out, [x.len(), 1], x)
}

fn array<T: Scalar>(out: &mut (impl Write + ?Sized), [rows, cols]: [usize; 2], x: &[T]) -> io::Result<()> {
    writeln!(out, "%%MatrixMarket matrix array {} general\n{rows} {cols}", field::<T>())?;
    for batch in x.chunks(4 * SHARE * rayon::current_num_threads()) {
        let texts = parallel::map(batch.chunks(SHARE), |x| {
            let mut text = Vec::with_capacity(20 * x.len());
            x.iter().for_each(|&v| push_number(&mut text, v));
            text
        });
        texts.iter().try_for_each(|text| out.write_all(text))?;
    }
    out.flush()
}

fn field<T: Scalar>() -> Field {
    if T::KIND.is_complex() { Field::Complex } else { Field::Real }
}

/// A number and the end of its line.
fn push_number<T: Scalar>(text: &mut Vec<u8>, v: T) {
    push_part::<T>(text, v.re());
    if T::KIND.is_complex() {
        text.push(b' ');
        push_part::<T>(text, v.im());
    }
    text.push(b'\n');
}

/// One part, with the fewest digits that read back to the same bits.
fn push_part<T: Scalar>(text: &mut Vec<u8>, v: f64) {
    let whole = v.abs() < 1e15 && v.trunc() == v;
    if whole {
        if v.is_sign_negative() {
            text.push(b'-');
        }
        push_whole(text, v.abs() as u64);
        return;
    }
    let single = matches!(T::KIND, lacuna_engine::NumberType::F32 | lacuna_engine::NumberType::C32);
    // Writing to a vector cannot fail.
    let _ = if single { write!(text, "{:?}", v as f32) } else { write!(text, "{v:?}") };
}

/// An integer in decimal digits.
fn push_whole(text: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0u8; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[first..]);
}
