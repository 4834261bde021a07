//! Vectors from files and by name.
use lacuna::Scalar;
use lacuna::backend::pages;
use lacuna::backend::text::{shown_name, shown_word};
use lacuna::io::Wanted;
use lacuna::io::mm::ReadOptions;
use lacuna_measure::failure::{Failure, Result};
use lacuna_measure::input::{InputFile, Source};

/// The source of a vector.
pub(crate) enum VectorSource {
    /// All ones.
    Ones,
    /// Uniform random numbers between -1 and 1; for complex types, both parts.
    Random(u64),
    /// A file with one column.
    File(Box<VectorFile>),
}

/// A vector in a file, and the option that named it.
pub(crate) struct VectorFile {
    option: &'static str,
    file: InputFile,
}

impl VectorSource {
    /// Parses `ones` or `random:SEED`, or opens a file.
    pub(crate) fn open(option: &'static str, text: &str) -> Result<Self> {
        match text.split_once(':') {
            _ if text == "ones" => Ok(VectorSource::Ones),
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
    pub(crate) fn is_file(text: &str) -> bool {
        text != "ones" && text != "random" && !text.starts_with("random:")
    }

    /// Opens a file, even if its name is also a keyword.
    pub(crate) fn open_file(option: &'static str, path: &str) -> Result<Self> {
        Ok(VectorSource::File(Box::new(VectorFile { option, file: InputFile::open(path, Wanted::Vector)? })))
    }

    /// Whether it needs a complex number type.
    pub(crate) fn is_complex(&self) -> bool {
        matches!(self, VectorSource::File(vector) if vector.file.about.kind.is_complex())
    }

    /// Buffers a stream in memory before another is opened.
    pub(crate) fn keep_stream(&self) -> Result<()> {
        match self {
            VectorSource::File(vector) => vector.file.keep_stream(),
            _ => Ok(()),
        }
    }

    /// The vector. Notes about it are added to those of the matrix.
    pub(crate) fn read<T: Scalar>(&self, length: Length, matrix: &Source, quiet: bool) -> Result<Vec<T>> {
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
            VectorSource::File(vector) => {
                let VectorFile { option, file } = &**vector;
                let notes = |note: &str| matrix.note(note, quiet);
                let options = ReadOptions { progress: None, notes: Some(&notes) };
                let vector = file.with(|opened| opened.vector(&options))?;
                length.check(&format!("{option} {}", shown_name(&file.path)), &vector)?;
                Ok(vector)
            }
        }
    }
}

/// The length of a vector, which the matrix determines.
#[derive(Clone, Copy)]
pub(crate) enum Length {
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

    /// Rejects a vector of another length.
    pub(crate) fn check<T>(self, what: &str, vector: &[T]) -> Result<()> {
        let (count, got) = (self.count(), vector.len());
        if got == count {
            return Ok(());
        }
        let of = match self {
            Length::Rows(_) => "rows",
            Length::Columns(_) => "columns",
        };
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
