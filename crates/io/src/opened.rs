//! An opened file of any form.
use super::archive::{Beside, Wanted};
use super::elements::{Contents, reading};
use super::mm::{self, Field, ReadOptions};
use super::stored::{Found, Stored};
use super::unpack::{Counted, Expected, Text, open_file, text};
use super::{Form, boeing, matlab, npy, npz, petsc};
use lacuna_engine::{Error, NumberType, Result, Scalar, compiled_here, pages};
use lacuna_formats::Csr;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The contents of a file, known before a number type is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The form of the file.
    pub form: Form,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Stored entries; for a symmetric matrix in some forms, those on and below the diagonal.
    pub entries: u64,
    /// The narrowest number type that represents the stored values; for text, `f64` or `c64`.
    pub kind: NumberType,
    /// Whether every place is stored, as for vectors.
    pub is_dense: bool,
}

/// A dense array: right-hand sides, one per column.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseArray<T> {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// All elements, column by column.
    pub values: Vec<T>,
}

impl<T: Scalar> DenseArray<T> {
    /// All places of a matrix.
    pub(super) fn of(operation: &str, a: &Csr<T>) -> Result<Self> {
        let (rows, cols) = (a.rows(), a.cols());
        let mut values = pages::zeroed::<T>(operation, rows.saturating_mul(cols))?;
        a.entries().for_each(|(i, j, v)| values[j * rows + i] = v);
        Ok(DenseArray { rows, cols, values })
    }

    /// Refuses values that are not rows times columns.
    pub(super) fn check(&self) -> Result<()> {
        let count = self.rows.saturating_mul(self.cols);
        Error::check_length("writing an array", "its values", count, self.values.len())
    }
}

/// A file of any form, opened once: its contents are described, so that a number type can be chosen, and are
/// read on request.
///
/// Matrix Market is read from the stream on request; other forms are read into memory when opened.
///
/// ```
/// use lacuna_io::{Form, Opened, Wanted, npy};
///
/// let mut bytes = Vec::new();
/// npy::encode_vector(&mut bytes, &[1.0f32, 2.5])?;
/// let mut file = Opened::from_reader("b.npy", &bytes[..], Wanted::Vector)?;
/// assert_eq!((file.about().form, file.about().rows), (Form::Npy, 2));
/// assert_eq!(file.vector::<f64>(&Default::default())?, [1.0, 2.5]);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
pub struct Opened<'r> {
    name: String,
    about: About,
    held: Held<'r>,
    left_out: Vec<String>,
}

/// Reads a form from bytes.
type ReadForm = fn(&Arc<Contents>, Wanted) -> Result<Found>;

enum Held<'r> {
    Text(mm::Opened<'r>),
    Binary {
        /// The requested item, until it is read.
        main: Option<Stored>,
        /// A right-hand side in the same file.
        beside: Option<Box<Stored>>,
        /// The archive of the file.
        archive: Option<Beside<'r>>,
        /// Whether the requested item is kept after it is read.
        keep: bool,
    },
}

impl std::fmt::Debug for Opened<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("name", &self.name).field("about", &self.about).finish_non_exhaustive()
    }
}

impl Opened<'static> {
    /// Opens a file and determines its contents.
    ///
    /// # Errors
    /// When the file cannot be read, has an unknown form, is inconsistent, or an archive does not contain
    /// what is wanted.
    pub fn open(path: impl AsRef<Path>, wanted: Wanted) -> Result<Self> {
        let (name, file, total) = open_file(path.as_ref())?;
        Self::start(&name, file, total, wanted)
    }
}

impl<'r> Opened<'r> {
    /// The same for any reader; errors call it `name`, whose extension determines the form if the bytes do
    /// not.
    ///
    /// # Errors
    /// As [`Opened::open`].
    pub fn from_reader(name: &str, bytes: impl Read + Send + 'r, wanted: Wanted) -> Result<Self> {
        Self::start(name, bytes, None, wanted)
    }

    fn start(name: &str, bytes: impl Read + Send + 'r, total: Option<u64>, wanted: Wanted) -> Result<Self> {
        let (counted, read) = Counted::new(bytes);
        let text = text(name, Box::new(counted), wanted, Expected::Any)?;
        let read: ReadForm = match text.form {
            Form::MatrixMarket => return mm::Opened::of_text(text, total, read).map(Self::of_text),
            Form::Npy => |contents, _| npy::read(contents).map(Found::alone),
            Form::Npz => |contents, _| npz::read(contents),
            Form::Petsc => petsc::read,
            Form::Matlab => matlab::read,
            Form::RutherfordBoeing => boeing::read,
        };
        let Text { name, stream, plain, beside: archive, .. } = text;
        let contents = Arc::new(Contents::read(&name, stream, total.filter(|_| plain))?);
        let Found { main, beside, left_out } = read(&contents, wanted)?;
        let beside = beside.map(Box::new);
        let about = main.about();
        let held = Held::Binary { main: Some(main), beside, archive, keep: false };
        Ok(Opened { name, about, held, left_out })
    }

    fn of_text(file: mm::Opened<'r>) -> Self {
        let header = file.header();
        let about = About {
            form: Form::MatrixMarket,
            rows: header.rows,
            cols: header.cols,
            entries: header.entries,
            kind: if header.field == Field::Complex { NumberType::C64 } else { NumberType::F64 },
            is_dense: header.layout == mm::Layout::Array,
        };
        Opened { name: file.name().into(), about, held: Held::Text(file), left_out: Vec::new() }
    }

    /// Its name for errors: the name of the file, followed by that of the archive member.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the file holds.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// What the file holds beside what is read and its right-hand side, in words: other variables and objects.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Whether it has been read and cannot be read again.
    pub fn is_spent(&self) -> bool {
        match &self.held {
            Held::Text(file) => file.is_spent(),
            Held::Binary { main, .. } => main.is_none(),
        }
    }

    /// Keeps the contents in memory, so that they can be read more than once.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn keep(&mut self) -> Result<()> {
        match &mut self.held {
            Held::Text(file) => file.keep(),
            Held::Binary { main: None, .. } => Err(self.spent()),
            Held::Binary { keep, .. } => {
                *keep = true;
                Ok(())
            }
        }
    }

    /// Reads the matrix. Can be repeated only if it was kept.
    ///
    /// # Errors
    /// When the file is inconsistent, an entry is not a finite number of the type, the file holds complex
    /// numbers and `T` is real, or its entries do not fit in memory.
    pub fn matrix<T: Scalar>(&mut self, options: &ReadOptions<'_>) -> Result<Csr<T>> {
        compiled_here!(T, |opened: &mut Opened<'_>, options: &ReadOptions<'_>| -> Result<Csr<T>> {
            match &mut opened.held {
                Held::Text(file) => file.matrix(options),
                Held::Binary { .. } => opened.read(|stored| stored.matrix(options)),
            }
        })(self, options)
    }

    /// Reads the vector: one column. Can be repeated only if it was kept.
    ///
    /// # Errors
    /// As [`Opened::matrix`], and when there is not exactly one column.
    pub fn vector<T: Scalar>(&mut self, options: &ReadOptions<'_>) -> Result<Vec<T>> {
        compiled_here!(T, |opened: &mut Opened<'_>, options: &ReadOptions<'_>| -> Result<Vec<T>> {
            match &mut opened.held {
                Held::Text(file) => file.vector(options),
                Held::Binary { .. } => opened.read(|stored| stored.vector(options)),
            }
        })(self, options)
    }

    /// Reads all places of the array, with any number of columns. Can be repeated only if it was kept.
    ///
    /// # Errors
    /// As [`Opened::matrix`].
    pub fn columns<T: Scalar>(&mut self, options: &ReadOptions<'_>) -> Result<DenseArray<T>> {
        compiled_here!(T, |opened: &mut Opened<'_>, options: &ReadOptions<'_>| -> Result<DenseArray<T>> {
            match &mut opened.held {
                Held::Text(file) => DenseArray::of(&reading(&opened.name), &file.matrix(options)?),
                Held::Binary { .. } => opened.read(|stored| stored.columns(options)),
            }
        })(self, options)
    }

    fn read<R>(&mut self, read: impl FnOnce(&Stored) -> Result<R>) -> Result<R> {
        let spent = self.spent();
        let Held::Binary { main, keep, .. } = &mut self.held else { return Err(spent) };
        if *keep {
            return read(main.as_ref().ok_or(spent)?);
        }
        read(&main.take().ok_or(spent)?)
    }

    fn spent(&self) -> Error {
        let message = "it was read before; open it again, or keep it".into();
        Error::Unsupported { operation: reading(&self.name), message }
    }

    /// The right-hand side that accompanies the matrix: beside it in a PETSc file, the variable `b` of a MATLAB file, or the member
    /// `NAME_b` of a SuiteSparse archive. It may be of any size. Call this after the matrix was read or kept, because it reads on in the archive.
    ///
    /// # Errors
    /// As [`Opened::open`].
    pub fn right_hand_side(&mut self) -> Result<Option<Self>> {
        match &mut self.held {
            Held::Text(file) => match file.beside_text()? {
                Some((name, stream)) => Self::start(&name, stream, None, Wanted::Vector).map(Some),
                None => Ok(None),
            },
            Held::Binary { beside, archive, .. } => {
                if let Some(stored) = beside.take() {
                    let (name, about) = (stored.name.clone(), stored.about());
                    let held = Held::Binary { main: Some(*stored), beside: None, archive: None, keep: false };
                    return Ok(Some(Opened { name, about, held, left_out: Vec::new() }));
                }
                let Some(archive) = archive else { return Ok(None) };
                match archive.named_right_hand_side(&self.name)? {
                    Some((name, stream)) => Self::start(&name, stream, None, Wanted::Vector).map(Some),
                    None => Ok(None),
                }
            }
        }
    }
}

/// Reads the matrix in a file of any form, plain, compressed by gzip, bzip2 or xz, or in a tar archive.
///
/// # Errors
/// As [`Opened::open`] and [`Opened::matrix`].
pub fn read_matrix<T: Scalar>(path: impl AsRef<Path>, options: &ReadOptions<'_>) -> Result<Csr<T>> {
    Opened::open(path, Wanted::Matrix)?.matrix(options)
}

/// Reads the vector in a file of any form.
///
/// # Errors
/// As [`Opened::open`] and [`Opened::vector`].
pub fn read_vector<T: Scalar>(path: impl AsRef<Path>, options: &ReadOptions<'_>) -> Result<Vec<T>> {
    Opened::open(path, Wanted::Vector)?.vector(options)
}

/// Reads the dense array in a file of any form: right-hand sides, one per column.
///
/// # Errors
/// As [`Opened::open`] and [`Opened::columns`].
pub fn read_columns<T: Scalar>(path: impl AsRef<Path>, options: &ReadOptions<'_>) -> Result<DenseArray<T>> {
    Opened::open(path, Wanted::Vector)?.columns(options)
}

/// As [`read_matrix`], from the bytes of a file; errors call them `name`.
///
/// # Errors
/// As [`read_matrix`].
pub fn parse_matrix<T: Scalar>(name: &str, bytes: &[u8]) -> Result<Csr<T>> {
    Opened::start(name, bytes, Some(bytes.len() as u64), Wanted::Matrix)?.matrix(&ReadOptions::default())
}

/// As [`read_vector`], from the bytes of a file; errors call them `name`.
///
/// # Errors
/// As [`read_vector`].
pub fn parse_vector<T: Scalar>(name: &str, bytes: &[u8]) -> Result<Vec<T>> {
    Opened::start(name, bytes, Some(bytes.len() as u64), Wanted::Vector)?.vector(&ReadOptions::default())
}

/// As [`read_columns`], from the bytes of a file; errors call them `name`.
///
/// # Errors
/// As [`read_columns`].
pub fn parse_columns<T: Scalar>(name: &str, bytes: &[u8]) -> Result<DenseArray<T>> {
    Opened::start(name, bytes, Some(bytes.len() as u64), Wanted::Vector)?.columns(&ReadOptions::default())
}
