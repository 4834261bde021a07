//! Comparing methods for a matrix of a number type that is known at run time.
use super::Matrix;
use super::bytes::numbers;
use crate::{Trial, Trying};
use lacuna_engine::{Device, Result, with_each};
use lacuna_solvers::Stop;

/// Tries methods and preconditioners on a system, each for some seconds at most: see [`crate::advise`].
///
/// # Errors
/// As there; [`Error::Argument`](crate::Error::Argument) for bytes that are no numbers of the type.
pub fn advise(
    dev: &Device,
    a: &Matrix,
    b: &[u8],
    stop: Stop,
    seconds: f64,
    watch: &mut Trying<'_>,
) -> Result<Vec<Trial>> {
    with_each!(&a.0, a => crate::advise(dev, a.clone(), numbers("b", b)?, stop, seconds, watch))
}
