//! A matrix from wherever it is: a file or a generator.
use crate::mm::{Field, ReadOptions, read_header, read_matrix};
use crate::{Csr, Spec};
use lacuna_core::{Result, Scalar};

/// The matrix of a Matrix Market file or a generator's name (`gen:…`).
///
/// # Errors
/// As [`read_matrix`], [`Spec::parse`] and [`Spec::build`].
///
/// ```
/// let a = lacuna_formats::open::<f64>("gen:poisson1d:9", &Default::default())?;
/// assert_eq!(a.nnz(), 25);
/// # Ok::<(), lacuna_core::Error>(())
/// ```
pub fn open<T: Scalar>(source: &str, options: &ReadOptions<'_>) -> Result<Csr<T>> {
    match source.starts_with(Spec::PREFIX) {
        true => Spec::parse(source)?.build(),
        false => read_matrix(source, options),
    }
}

/// Whether the entries of a Matrix Market file or a generated matrix are complex: [`Field::Complex`], or one of the
/// fields that a real number type holds. Of a file only the first lines are read.
///
/// # Errors
/// As [`read_header`] and [`Spec::parse`].
pub fn field(source: &str) -> Result<Field> {
    match source.starts_with(Spec::PREFIX) {
        true if Spec::parse(source)?.is_complex() => Ok(Field::Complex),
        true => Ok(Field::Real),
        false => Ok(read_header(source)?.field),
    }
}
