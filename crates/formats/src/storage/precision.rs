//! Matrices in double precision, and rounded from it: set-ups compute in `f64` and `Complex<f64>` alone.
use crate::{Csr, parallel};
use lacuna_engine::{Error, Result, Scalar, pages, same};
use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

/// Numbers that a thread takes at least.
const GRAIN: usize = 8192;

/// Numbers of double precision, rounded. Those of that type are handed on.
pub fn rounded<T: Scalar>(numbers: Vec<T::Wide>) -> Vec<T> {
    same(numbers)
        .unwrap_or_else(|numbers| parallel::collect(numbers.len(), GRAIN, |k| numbers[k].converted()))
}

impl<T: Scalar> Csr<T> {
    /// The matrix in double precision: itself, or a copy on the same pattern.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn wide(&self) -> Result<Cow<'_, Csr<T::Wide>>> {
        if let Some(same) = (self as &dyn Any).downcast_ref() {
            return Ok(Cow::Borrowed(same));
        }
        self.with_values(converted("a matrix in double precision", self.values())?).map(Cow::Owned)
    }

    /// A matrix of double precision, rounded: itself, or a copy on the same pattern.
    ///
    /// # Errors
    /// [`Error::Entry`] with the first entry that is too large for the type; [`Error::OutOfMemory`].
    pub fn rounded<'a>(operation: &str, a: &'a Csr<T::Wide>) -> Result<Cow<'a, Self>> {
        if let Some(same) = (a as &dyn Any).downcast_ref() {
            return Ok(Cow::Borrowed(same));
        }
        let rounded = a.with_values(converted(operation, a.values())?);
        rounded.map(Cow::Owned).map_err(|error| too_large::<T>(operation, error))
    }

    /// As [`Csr::rounded`], of a matrix that is used up.
    ///
    /// # Errors
    /// As there.
    pub fn rounded_from(operation: &str, a: Csr<T::Wide>) -> Result<Self> {
        same(a).or_else(|a| Csr::rounded(operation, &a).map(Cow::into_owned))
    }

    /// As [`Csr::rounded`], of a matrix that is shared.
    ///
    /// # Errors
    /// As there.
    pub fn rounded_shared(operation: &str, a: &Arc<Csr<T::Wide>>) -> Result<Arc<Self>> {
        same(a.clone()).or_else(|a| Csr::rounded(operation, &a).map(Cow::into_owned).map(Arc::new))
    }
}

/// Numbers in another type, each part rounded.
pub(super) fn converted<T: Scalar, U: Scalar>(operation: &str, from: &[T]) -> Result<Vec<U>> {
    let mut to = pages::zeroed(operation, from.len())?;
    parallel::for_each(to.chunks_mut(GRAIN).zip(from.chunks(GRAIN)), |(to, from): (&mut [U], &[T])| {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from.converted());
    });
    Ok(to)
}

fn too_large<T: Scalar>(operation: &str, error: Error) -> Error {
    match error {
        Error::Entry { row, column, .. } => {
            let message = format!("the entry is too large for {}", T::KIND.name());
            Error::Entry { operation: operation.into(), row, column, message }
        }
        other => other,
    }
}
