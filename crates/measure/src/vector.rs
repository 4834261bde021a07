//! Vectors from files and by name.
use crate::failure::{Failure, Result};
use crate::input::{InputFile, Source};
use crate::quantity::many;
use lacuna::Scalar;
use lacuna::backend::pages;
use lacuna::backend::text::{shown_name, shown_word};
use lacuna::io::mm::ReadOptions;
use lacuna::io::{DenseArray, Wanted};

/// The source of a vector.
pub enum VectorSource {
    /// All ones.
    Ones,
    /// Uniform random numbers between -1 and 1; for complex types, both parts.
    Random(u64),
    /// That of the model, from the generator of the matrix.
    Model,
    /// A file with one column.
    File(Box<VectorFile>),
}

/// A vector in a file, and the option that named it.
pub struct VectorFile {
    option: &'static str,
    file: InputFile,
}

impl VectorFile {
    /// The option and the file, for an error.
    fn shown(&self) -> String {
        format!("{} {}", self.option, shown_name(&self.file.path))
    }

    /// Rejects a file of another shape before it is read: one column is expected, or any number of them if there may be `several`.
    fn check(&self, length: Length, several: bool) -> Result<()> {
        let (rows, cols, is_dense) = (self.file.about.rows, self.file.about.cols, self.file.about.is_dense);
        if cols == 1 {
            return length.check_count(&self.shown(), rows);
        }
        let (count, of) = (length.count(), length.of());
        if several && rows == count {
            return Ok(());
        }
        let columns = if several { "columns" } else { "one column" };
        let got = if is_dense { "an array" } else { "a sparse matrix" };
        let hint = match (is_dense, rows == count, self.option) {
            (false, true, "--rhs") if cols > 1 => "; several right-hand sides are given as a dense file",
            _ if rows == 1 && cols == count => "; store it as a column",
            _ => "",
        };
        let shown = self.shown();
        Err(Failure::Usage(format!(
            "{shown}: expected {columns} of {count} elements, as many as the matrix has {of}, got {got} of {} and {}{hint}",
            many(rows, "row", "rows"),
            many(cols, "column", "columns"),
        )))
    }
}

impl VectorSource {
    /// Parses `ones`, `model` or `random:SEED`, or opens a file.
    pub fn open(option: &'static str, text: &str) -> Result<Self> {
        match text.split_once(':') {
            _ if text == "ones" => Ok(VectorSource::Ones),
            _ if text == "model" => Ok(VectorSource::Model),
            Some(("random", seed)) => match seed.parse() {
                Ok(seed) => Ok(VectorSource::Random(seed)),
                Err(_) => {
                    let (text, seed) = (shown_name(text), shown_word(seed));
                    let message = format!("{option} {text}: the seed should be a whole number, got `{seed}`");
                    Err(Failure::Usage(message))
                }
            },
            _ if text == "random" => {
                Err(Failure::Usage(format!("{option} {text}: a seed is missing; for example random:1")))
            }
            _ => Self::open_file(option, text),
        }
    }

    /// Whether [`VectorSource::open`] takes this text as the name of a file.
    pub fn is_file(text: &str) -> bool {
        text != "ones" && text != "model" && text != "random" && !text.starts_with("random:")
    }

    /// Opens a file, even if its name is also a keyword.
    pub fn open_file(option: &'static str, path: &str) -> Result<Self> {
        Ok(VectorSource::File(Box::new(VectorFile { option, file: InputFile::open(path, Wanted::Vector)? })))
    }

    /// What it is, in words; `None` for ones.
    pub fn words(&self) -> Option<String> {
        match self {
            VectorSource::Ones => None,
            VectorSource::Random(seed) => Some(format!("random:{seed}")),
            VectorSource::Model => Some("that of the model".into()),
            VectorSource::File(vector) => Some(shown_name(&vector.file.path).into_owned()),
        }
    }

    /// Whether it is a dense file of several columns. A sparse one is more likely a matrix by mistake.
    pub fn is_several(&self) -> bool {
        matches!(self, VectorSource::File(vector) if vector.file.about.is_dense && vector.file.about.cols != 1)
    }

    /// Whether it needs a complex number type.
    pub fn is_complex(&self) -> bool {
        matches!(self, VectorSource::File(vector) if vector.file.about.kind.is_complex())
    }

    /// Buffers a stream in memory before another is opened.
    pub fn keep_stream(&self) -> Result<()> {
        match self {
            VectorSource::File(vector) => vector.file.keep_stream(),
            _ => Ok(()),
        }
    }

    /// The vector. Notes about it are added to those of the matrix.
    pub fn read<T: Scalar>(&self, length: Length, matrix: &Source, quiet: bool) -> Result<Vec<T>> {
        let zeros = || pages::zeroed::<T>("a vector", length.count());
        match self {
            VectorSource::Ones => {
                let mut ones = zeros()?;
                ones.fill(T::one());
                Ok(ones)
            }
            VectorSource::Random(seed) => {
                let (mut numbers, mut random) = (Numbers(*seed), zeros()?);
                random.fill_with(|| numbers.element());
                Ok(random)
            }
            VectorSource::Model => matrix.model_right_hand_side(),
            VectorSource::File(vector) => {
                vector.check(length, false)?;
                let notes = |note: &str| matrix.note(note, quiet);
                let options = ReadOptions { progress: None, notes: Some(&notes) };
                let read = vector.file.with(|opened| opened.vector(&options))?;
                length.check(&vector.shown(), &read)?;
                Ok(read)
            }
        }
    }
}

/// All columns of a file, each of `rows` elements.
///
/// # Errors
/// Of reading, and for another number of rows.
pub fn read_columns<T: Scalar>(
    source: &VectorSource,
    rows: usize,
    matrix: &Source,
    quiet: bool,
) -> Result<DenseArray<T>> {
    let VectorSource::File(vector) = source else {
        let values = source.read::<T>(Length::Rows(rows), matrix, quiet)?;
        return Ok(DenseArray { rows, cols: 1, values });
    };
    vector.check(Length::Rows(rows), true)?;
    let notes = |note: &str| matrix.note(note, quiet);
    let options = ReadOptions { progress: None, notes: Some(&notes) };
    let columns = vector.file.with(|opened| opened.columns::<T>(&options))?;
    Length::Rows(rows).check_count(&vector.shown(), columns.rows)?;
    Ok(columns)
}

/// `b`, for a matrix of `rows` rows: as given, or the one stored with the matrix, or ones.
///
/// # Errors
/// Of reading, and for another number of rows.
pub fn right_hand_side<T: Scalar>(
    given: Option<&VectorSource>,
    source: &Source,
    rows: usize,
    quiet: bool,
) -> Result<Vec<T>> {
    let length = Length::Rows(rows);
    if let Some(rhs) = given {
        return rhs.read::<T>(length, source, quiet);
    }
    match source.right_hand_side::<T>(quiet)? {
        Some(b) => length.check("the right-hand side beside the matrix", &b).map(|()| b),
        None => VectorSource::Ones.read::<T>(length, source, quiet),
    }
}

/// A right-hand side and a starting guess as they were given, for every matrix of a run.
#[derive(Default)]
pub struct Vectors {
    /// `None` for the one stored with the matrix, else ones.
    pub rhs: Option<VectorSource>,
    /// `None` for 0.
    pub x0: Option<VectorSource>,
}

impl Vectors {
    /// Opens both; streams are kept, since several matrices and number types read them.
    ///
    /// # Errors
    /// Of opening; for a seed that is no number.
    pub fn open(rhs: Option<&str>, x0: Option<&str>) -> Result<Self> {
        let open = |rhs| VectorSource::open("--rhs", rhs);
        let vectors = Vectors {
            rhs: rhs.map(open).transpose()?,
            x0: x0.map(|x0| VectorSource::open_file("--x0", x0)).transpose()?,
        };
        for vector in [&vectors.rhs, &vectors.x0].into_iter().flatten() {
            vector.keep_stream()?;
        }
        Ok(vectors)
    }

    /// Whether one of them needs a complex number type.
    pub fn are_complex(&self) -> bool {
        [&self.rhs, &self.x0].into_iter().flatten().any(VectorSource::is_complex)
    }
}

/// The length of a vector, which the matrix determines.
#[derive(Clone, Copy)]
pub enum Length {
    /// Of a right-hand side.
    Rows(usize),
    /// Of a solution.
    Columns(usize),
}

impl Length {
    fn count(self) -> usize {
        match self {
            Length::Rows(count) | Length::Columns(count) => count,
        }
    }

    /// What of the matrix it is the number of.
    fn of(self) -> &'static str {
        match self {
            Length::Rows(_) => "rows",
            Length::Columns(_) => "columns",
        }
    }

    /// Rejects a vector of another length.
    pub fn check<T>(self, what: &str, vector: &[T]) -> Result<()> {
        self.check_count(what, vector.len())
    }

    fn check_count(self, what: &str, got: usize) -> Result<()> {
        let (count, of) = (self.count(), self.of());
        if got == count {
            return Ok(());
        }
        let message = format!("{what}: expected {count} elements, as many as the matrix has {of}, got {got}");
        Err(Failure::Usage(message))
    }
}

/// Reproducible random numbers by hashing a counter (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn part(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        (z >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn element<T: Scalar>(&mut self) -> T {
        let re = self.part();
        let im = if T::KIND.is_complex() { self.part() } else { 0.0 };
        T::from_parts(re, im)
    }
}
