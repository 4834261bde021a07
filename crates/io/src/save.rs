//! Writing files: in the form given by their names, and atomically.
use super::form::PACKINGS;
use super::mm::{self, WriteOptions};
use super::{DenseArray, Form, npy, npz, petsc};
use flate2::Compression;
use flate2::write::GzEncoder;
use lacuna_engine::text::shown_name;
use lacuna_engine::{Error, Result, Scalar};
use lacuna_formats::Csr;
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a matrix in the form given by the extension: `.npz`, `.petsc`, otherwise Matrix Market; compressed
/// by gzip if the name ends in `.gz`. The options apply to Matrix Market.
///
/// An incomplete file never appears under its name.
///
/// # Errors
/// As [`check_matrix_name`]; when the file cannot be written, or the matrix does not have the requested
/// symmetry.
pub fn write_matrix<T: Scalar>(path: impl AsRef<Path>, a: &Csr<T>, options: &WriteOptions<'_>) -> Result<()> {
    let path = path.as_ref();
    check_matrix_name(path)?;
    match Form::of_name(path) {
        Some(Form::Npz) => save(path, |out| npz::encode_matrix(out, a)),
        Some(Form::Petsc) => save(path, |out| petsc::encode_matrix(out, a)),
        _ => mm::write_matrix(path, a, options),
    }
}

/// Whether [`write_matrix`] can write a file of this name, to be asked before a matrix is made.
///
/// ```
/// use lacuna_io::check_matrix_name;
///
/// assert!(check_matrix_name("A.mtx.gz").is_ok());
/// assert!(check_matrix_name("A.mtx.xz").is_err());
/// ```
///
/// # Errors
/// When the form is read-only or holds no sparse matrix, or the compression is read-only; for an archive.
pub fn check_matrix_name(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    check_packing(path, ".npz, .petsc, .mtx, .petsc.gz or .mtx.gz")?;
    match Form::of_name(path) {
        Some(Form::Npz) if is_gzip(path) => {
            Err(refused(path, "an .npz is an archive already, expected a name that ends in .npz"))
        }
        Some(Form::Npy) => {
            Err(refused(path, "an .npy holds a dense array; expected .npz, .petsc or .mtx for a matrix"))
        }
        Some(form @ (Form::Matlab | Form::RutherfordBoeing)) => {
            Err(refused(path, &format!("{form} is read but not written; expected .npz, .petsc or .mtx")))
        }
        Some(Form::MatrixMarket | Form::Npz | Form::Petsc) | None => Ok(()),
    }
}

/// Writes a vector in the form given by the extension: `.npy`, `.petsc`, otherwise Matrix Market; compressed
/// by gzip if the name ends in `.gz`.
///
/// An incomplete file never appears under its name.
///
/// # Errors
/// As [`check_vector_name`]; when the file cannot be written, or an element is not finite.
pub fn write_vector<T: Scalar>(path: impl AsRef<Path>, x: &[T]) -> Result<()> {
    let path = path.as_ref();
    check_vector_name(path)?;
    match Form::of_name(path) {
        Some(Form::Npy) => save(path, |out| npy::encode_vector(out, x)),
        Some(Form::Petsc) => save(path, |out| petsc::encode_vector(out, x)),
        _ => mm::write_vector(path, x),
    }
}

/// Writes a dense array, such as solutions, one per column: `.npy`, otherwise Matrix Market; compressed by gzip if the name ends in
/// `.gz`.
///
/// An incomplete file never appears under its name.
///
/// # Errors
/// As [`check_columns_name`]; when the file cannot be written, or an element is not finite; [`Error::Length`] where the values are not
/// rows times columns.
pub fn write_columns<T: Scalar>(path: impl AsRef<Path>, x: &DenseArray<T>) -> Result<()> {
    let path = path.as_ref();
    check_columns_name(path)?;
    match Form::of_name(path) {
        Some(Form::Npy) => save(path, |out| npy::encode_columns(out, x)),
        _ => save(path, |out| mm::encode_columns(out, x)),
    }
}

/// Whether [`write_columns`] can write a file of this name.
///
/// # Errors
/// As [`check_vector_name`], and for PETSc's form, whose vectors have one column.
pub fn check_columns_name(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    match Form::of_name(path) {
        Some(Form::Petsc) => {
            Err(refused(path, "a .petsc holds one vector; expected .npy or .mtx for several columns"))
        }
        _ => check_vector_name(path),
    }
}

/// Whether [`write_vector`] can write a file of this name, to be asked before a vector is computed.
///
/// # Errors
/// When the form is read-only or holds no vector, or the compression is read-only; for an archive.
pub fn check_vector_name(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    check_packing(path, ".npy, .petsc or .mtx, or one of these and .gz")?;
    match Form::of_name(path) {
        Some(Form::Npz) => {
            Err(refused(path, "an .npz holds a sparse matrix; expected .npy, .petsc or .mtx for a vector"))
        }
        Some(form @ (Form::Matlab | Form::RutherfordBoeing)) => {
            Err(refused(path, &format!("{form} is read but not written; expected .npy, .petsc or .mtx")))
        }
        Some(Form::MatrixMarket | Form::Npy | Form::Petsc) | None => Ok(()),
    }
}

/// Compressions and archives that would be taken for the end of a plain file's name.
const UNKNOWN_PACKINGS: [&str; 7] = ["zst", "zip", "7z", "lz4", "lzma", "z", "br"];

/// Refuses archives and compressions that are not written; `expected` says what is.
fn check_packing(path: &Path, expected: &str) -> Result<()> {
    let end = |name: &Path| name.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    let last = end(path).unwrap_or_default();
    let inner = path.file_stem().filter(|_| PACKINGS.contains(&&*last)).and_then(|stem| end(stem.as_ref()));
    if UNKNOWN_PACKINGS.contains(&&*last) {
        return Err(refused(path, &format!("a .{last} is not written; expected {expected}")));
    }
    let what = match &*last {
        _ if inner.as_deref() == Some("tar") => "a tar archive".into(),
        "tar" | "tgz" | "tbz" | "tbz2" | "txz" => "a tar archive".into(),
        "bz2" | "xz" => format!("a .{last}"),
        _ => return Ok(()),
    };
    Err(refused(path, &format!("{what} is read but not written; expected {expected}")))
}

fn refused(path: &Path, message: &str) -> Error {
    let operation = format!("writing {}", shown_name(&path.display().to_string()));
    Error::Unsupported { operation, message: message.into() }
}

/// The error of an output that has no file name.
pub(super) fn failed(source: io::Error) -> Error {
    Error::Io { operation: "writing".into(), path: "the output".into(), source }
}

fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"))
}

/// Writes a file, compressed if its name says so. It gets its name once it is complete; anything other than a
/// regular file is written in place.
pub(super) fn save(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    check_packing(path, ".mtx or .mtx.gz")?;
    let named = |error| match error {
        Error::Io { operation, source, .. } => {
            Error::Io { operation, path: path.display().to_string(), source }
        }
        error => error,
    };
    let packed = |mut file: &fs::File| {
        if is_gzip(path) {
            let mut out = GzEncoder::new(file, Compression::default());
            write(&mut out)?;
            return out.finish().map(|_| ()).map_err(failed);
        }
        let mut out = BufWriter::with_capacity(1 << 16, &mut file);
        write(&mut out)?;
        out.flush().map_err(failed)
    };
    let run = || {
        let there = fs::metadata(path).ok();
        if there.is_some() {
            // Also checks write permission.
            let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
            if there.as_ref().is_some_and(|about| !about.is_file()) {
                return packed(&file);
            }
        }
        let target = if there.is_some() { fs::canonicalize(path).map_err(failed)? } else { path.into() };
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut part = tempfile::Builder::new();
        part.prefix(".lacuna-").suffix(".part");
        #[cfg(unix)]
        let access = {
            use std::os::unix::fs::PermissionsExt;
            there.map_or(fs::Permissions::from_mode(0o666), |about| about.permissions())
        };
        #[cfg(unix)]
        part.permissions(access);
        let part = part.tempfile_in(folder.unwrap_or(Path::new("."))).map_err(failed)?;
        packed(part.as_file())?;
        part.persist(&target).map(|_| ()).map_err(|e| failed(e.error))
    };
    run().map_err(named)
}
