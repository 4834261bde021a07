//! The errors of a factorisation.
use faer::dyn_stack::{MemBuffer, StackReq};
use faer::sparse::FaerError;
use lacuna_engine::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) const OPERATION: &str = "direct";

pub(crate) fn unsupported(message: impl Into<String>) -> Error {
    Error::Unsupported { operation: OPERATION.into(), message: message.into() }
}

pub(crate) fn singular() -> Error {
    unsupported("a pivot is zero: the matrix is singular to working precision")
}

pub(crate) fn failed(why: impl std::fmt::Debug) -> Error {
    unsupported(format!("the factorisation failed: {why:?}"))
}

pub(crate) fn out_of_memory(requested: u64) -> Error {
    let device = "the host".into();
    Error::OutOfMemory { operation: OPERATION.into(), device, requested, available: None }
}

/// The error of a factorisation by `faer` of so many bytes.
pub(crate) fn refused(bytes: f64) -> impl Fn(FaerError) -> Error {
    move |error| match error {
        FaerError::OutOfMemory => out_of_memory(bytes as u64),
        error => failed(error),
    }
}

/// Runs `work` and turns a panic of `faer` into an error.
pub(crate) fn guarded<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(failed("it panicked")))
}

/// Working memory of `faer`.
pub(crate) fn memory(needs: StackReq) -> Result<MemBuffer> {
    let bytes = needs.unaligned_bytes_required() as u64;
    MemBuffer::try_new(needs).map_err(|_| out_of_memory(bytes))
}

/// So many copies of `value`, or an error.
pub(crate) fn filled<V: Clone>(value: V, count: usize) -> Result<Vec<V>> {
    let mut made = with_room(count)?;
    made.resize(count, value);
    Ok(made)
}

/// An empty vector with room for so many elements, or an error.
pub(crate) fn with_room<V>(count: usize) -> Result<Vec<V>> {
    let mut made = Vec::new();
    made.try_reserve_exact(count).map_err(|_| out_of_memory((count * size_of::<V>()) as u64))?;
    Ok(made)
}

/// Makes room for more elements.
pub(crate) fn grow<V>(v: &mut Vec<V>, more: usize) -> Result<()> {
    v.try_reserve(more).map_err(|_| out_of_memory(((v.len() + more) * size_of::<V>()) as u64))
}
