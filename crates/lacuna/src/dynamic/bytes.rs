//! Bytes as numbers of a type, and back.
use lacuna_engine::{Error, NumberType, Result, Scalar, with_number};
use lacuna_solvers::vector_norm;

/// The bytes of numbers.
pub fn bytes_of<T: Scalar>(numbers: &[T]) -> &[u8] {
    bytemuck::cast_slice(numbers)
}

/// The bytes of numbers.
pub fn bytes_of_mut<T: Scalar>(numbers: &mut [T]) -> &mut [u8] {
    bytemuck::cast_slice_mut(numbers)
}

/// The 2-norm of the numbers in bytes, without overflow or underflow.
///
/// # Errors
/// [`Error::Argument`] for bytes that are no numbers of the type.
pub fn norm(kind: NumberType, bytes: &[u8]) -> Result<f64> {
    with_number!(kind, T => Ok(vector_norm(numbers::<T>("a vector", bytes)?)))
}

/// Bytes as numbers.
///
/// # Errors
/// [`Error::Argument`] for bytes that are not so aligned, or no whole number of them.
pub(super) fn numbers<'a, T: Scalar>(what: &str, bytes: &'a [u8]) -> Result<&'a [T]> {
    bytemuck::try_cast_slice(bytes).map_err(|_| unfit::<T>(what, bytes))
}

/// [`numbers`] to write.
///
/// # Errors
/// As there.
pub(super) fn numbers_mut<'a, T: Scalar>(what: &str, bytes: &'a mut [u8]) -> Result<&'a mut [T]> {
    if bytemuck::try_cast_slice::<u8, T>(bytes).is_err() {
        return Err(unfit::<T>(what, bytes));
    }
    Ok(bytemuck::cast_slice_mut(bytes))
}

fn unfit<T: Scalar>(what: &str, bytes: &[u8]) -> Error {
    let (name, size) = (T::KIND.name(), size_of::<T>());
    let (count, align) = (bytes.len(), align_of::<T>());
    let message = format!(
        "expected numbers of type {name}, of {size} bytes each at multiples of {align}, got {count} bytes at {:p}",
        bytes.as_ptr()
    );
    Error::Argument { what: what.into(), message }
}
