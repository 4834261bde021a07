//! A matrix from a file or a generator.
use super::mm::{Field, ReadOptions};
use super::{Opened, Wanted, read_matrix};
use crate::Spec;
use lacuna_engine::{Result, Scalar};
use lacuna_formats::Csr;

/// Reads a matrix from a file of any form, or generates it by name (`gen:…`).
///
/// # Errors
/// As [`read_matrix`], [`Spec::parse`] and [`Spec::build`].
///
/// ```
/// let a = lacuna_io::open::<f64>("gen:poisson1d:9", &Default::default())?;
/// assert_eq!(a.nnz(), 25);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
pub fn open<T: Scalar>(source: &str, options: &ReadOptions<'_>) -> Result<Csr<T>> {
    match source.starts_with(Spec::PREFIX) {
        true => Spec::parse(source)?.build(),
        false => read_matrix(source, options),
    }
}

/// Whether the entries of a file of any form or of a generated matrix are complex: [`Field::Complex`],
/// otherwise [`Field::Real`]. Of text, only the first lines are read.
///
/// # Errors
/// As [`Opened::open`] and [`Spec::parse`].
pub fn field(source: &str) -> Result<Field> {
    let complex = match source.starts_with(Spec::PREFIX) {
        true => Spec::parse(source)?.is_complex(),
        false => Opened::open(source, Wanted::Matrix)?.about().kind.is_complex(),
    };
    Ok(if complex { Field::Complex } else { Field::Real })
}
