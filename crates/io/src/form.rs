//! Forms of files, recognized by their first bytes and by their names.
use std::fmt;
use std::path::Path;

/// The form of a file that holds a matrix or a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Matrix Market text.
    MatrixMarket,
    /// A dense NumPy array.
    Npy,
    /// A SciPy sparse matrix, as `scipy.sparse.save_npz` writes it.
    Npz,
    /// PETSc's binary matrices and vectors.
    Petsc,
    /// A MATLAB file of version 5 to 7.
    Matlab,
    /// Rutherford–Boeing or Harwell–Boeing text.
    RutherfordBoeing,
}

/// Extensions that do not determine the form.
pub(super) const PACKINGS: [&str; 3] = ["gz", "bz2", "xz"];

impl Form {
    /// The name of the form, with its article.
    pub const fn name(self) -> &'static str {
        match self {
            Form::MatrixMarket => "a Matrix Market file",
            Form::Npy => "a NumPy array",
            Form::Npz => "a zip archive, as SciPy's save_npz writes",
            Form::Petsc => "a file in PETSc's binary format",
            Form::Matlab => "a MATLAB file",
            Form::RutherfordBoeing => "a Rutherford–Boeing file",
        }
    }

    /// The form for the extension of a name, ignoring `.gz`, `.bz2` and `.xz`.
    ///
    /// ```
    /// use lacuna_io::Form;
    ///
    /// assert_eq!(Form::of_name("A.rua.gz"), Some(Form::RutherfordBoeing));
    /// assert_eq!(Form::of_name("A"), None);
    /// ```
    pub fn of_name(name: impl AsRef<Path>) -> Option<Self> {
        let name = name.as_ref();
        let end = |path: &Path| path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        let mut last = end(name)?;
        if PACKINGS.contains(&last.as_str()) {
            last = end(Path::new(name.file_stem()?))?;
        }
        match last.as_str() {
            "mtx" | "mm" => Some(Form::MatrixMarket),
            "npy" => Some(Form::Npy),
            "npz" => Some(Form::Npz),
            "petsc" => Some(Form::Petsc),
            "mat" => Some(Form::Matlab),
            "rb" | "hb" => Some(Form::RutherfordBoeing),
            last if is_boeing_type(last.as_bytes()) => Some(Form::RutherfordBoeing),
            _ => None,
        }
    }

    /// The form of a file that begins with `head`; its name decides if the bytes do not.
    pub(super) fn of(head: &[u8], name: &str) -> Self {
        let version = head.get(124..128);
        match head {
            _ if head.trim_ascii_start().starts_with(b"%%") => Form::MatrixMarket,
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Form::Npy,
            [b'P', b'K', 3 | 5 | 7, 4 | 6 | 8, ..] => Form::Npz,
            [0, 0x12, 0x7B, 0x50 | 0x4E, ..] | [0, 0, 0, 0, 0, 0x12, 0x7B, 0x50 | 0x4E, ..] => Form::Petsc,
            _ if matches!(version, Some([0, 1, b'I', b'M'] | [1, 0, b'M', b'I'])) => Form::Matlab,
            _ if head.starts_with(b"MATLAB 5.0 MAT-file") => Form::Matlab,
            _ if is_boeing(head) => Form::RutherfordBoeing,
            _ => Form::of_name(name).unwrap_or(Form::MatrixMarket),
        }
    }

    /// Whether files of this form are text.
    pub(super) const fn is_text(self) -> bool {
        matches!(self, Form::MatrixMarket | Form::RutherfordBoeing)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether the third line begins with the type of a matrix and the fourth with a Fortran format.
fn is_boeing(head: &[u8]) -> bool {
    let mut lines = head.split(|&b| b == b'\n').skip(2);
    let (Some(third), Some(fourth)) = (lines.next(), lines.next()) else { return false };
    third.get(..3).is_some_and(is_boeing_type)
        && third.get(3).is_some_and(u8::is_ascii_whitespace)
        && fourth.trim_ascii_start().starts_with(b"(")
}

/// Whether these letters form a type such as `RUA`.
fn is_boeing_type(letters: &[u8]) -> bool {
    let [values, symmetry, storage] = letters else { return false };
    b"rcpiq".contains(&values.to_ascii_lowercase())
        && b"suhzr".contains(&symmetry.to_ascii_lowercase())
        && b"ae".contains(&storage.to_ascii_lowercase())
}
