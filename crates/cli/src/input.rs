//! Matrices and vectors from files, generators and names.
use crate::args::NumberType;
use crate::failure::{Failure, Result};
use crate::progress::Reading;
use lacuna::formats::mm::{self, Field, ReadOptions};
use lacuna::{Csr, Error, Kind, Scalar, formats};

/// A matrix that a file or a generator has, not read yet.
pub(crate) struct Source {
    name: String,
    complex: bool,
}

impl Source {
    /// Parses the name of a generator, or reads the first lines of a file.
    pub(crate) fn open(name: &str) -> Result<Self> {
        Ok(Source { name: name.into(), complex: formats::field(name)? == Field::Complex })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The number type asked for, or the one that fits; `also_complex` where something else in the input is complex.
    pub(crate) fn number_type(&self, asked: Option<NumberType>, also_complex: bool) -> Result<Kind> {
        let complex = self.complex || also_complex;
        let Some(kind) = asked.map(NumberType::kind) else {
            return Ok(if complex { Kind::C64 } else { Kind::F64 });
        };
        if complex && !kind.is_complex() {
            let what = if self.complex { "matrix" } else { "vector" };
            let message =
                format!("--type {}: the {what} is complex, expected --type c64 or c32", kind.name());
            return Err(Failure::Usage(message));
        }
        Ok(kind)
    }

    /// The matrix, with progress shown on long reads.
    pub(crate) fn read<T: Scalar>(&self, quiet: bool) -> Result<Csr<T>> {
        let reading = Reading::new(&self.name, quiet);
        let progress = |read: u64, all: u64| reading.at(read, all);
        Ok(formats::open(&self.name, &ReadOptions { progress: Some(&progress) })?)
    }
}

/// Where a vector comes from.
pub(crate) enum VectorSource {
    /// The same number everywhere.
    Ones,
    /// Uniform random numbers between -1 and 1, parts of complex ones each.
    Random(u64),
    /// A Matrix Market file of one column.
    File(String),
}

impl VectorSource {
    /// Parses `ones`, `random:SEED` or the name of a file.
    pub(crate) fn parse(option: &str, text: &str) -> Result<Self> {
        match text.split_once(':') {
            _ if text == "ones" => Ok(VectorSource::Ones),
            Some(("random", seed)) => match seed.parse() {
                Ok(seed) => Ok(VectorSource::Random(seed)),
                Err(_) => {
                    let message = format!("{option} {text}: the seed should be a whole number, got `{seed}`");
                    Err(Failure::Usage(message))
                }
            },
            _ if text == "random" => {
                Err(Failure::Usage(format!("{option} {text}: a seed is missing; for example random:1")))
            }
            _ => Ok(VectorSource::File(text.into())),
        }
    }

    /// Whether it needs a complex number type.
    pub(crate) fn is_complex(&self) -> Result<bool> {
        match self {
            VectorSource::File(path) => Ok(mm::read_header(path)?.field == Field::Complex),
            _ => Ok(false),
        }
    }

    /// The vector, of `n` elements.
    pub(crate) fn read<T: Scalar>(&self, option: &str, n: usize) -> Result<Vec<T>> {
        match self {
            VectorSource::Ones => Ok(vec![T::one(); n]),
            VectorSource::Random(seed) => {
                let mut numbers = Numbers(*seed);
                Ok((0..n).map(|_| numbers.element()).collect())
            }
            VectorSource::File(path) => {
                let vector = mm::read_vector(path)?;
                if vector.len() != n {
                    let message = format!(
                        "{option} {path}: expected {n} elements, as many as the matrix has rows, got {}",
                        vector.len()
                    );
                    return Err(Failure::Usage(message));
                }
                Ok(vector)
            }
        }
    }
}

/// Reproducible random numbers: a counter and a mixing of its bits (SplitMix64).
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

/// Threads for reading, generating and analysing; the backend has its own.
pub(crate) fn set_threads(threads: Option<u16>) -> Result<()> {
    let threads = threads.unwrap_or(0).into();
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().map_err(|error| {
        let (device, operation) = ("cpu".into(), "starting threads".into());
        Error::Device { device, operation, message: error.to_string() }.into()
    })
}
