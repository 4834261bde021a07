//! The factor by which a matrix is multiplied before solving.
use lacuna_engine::{Error, Result, Scalar};
use lacuna_formats::{Csr, FORMATS};
use lacuna_solvers::{Factor, largest, scaling_exponent};
use std::sync::Arc;

/// The power of two and the sign by which a matrix is multiplied before solving. The power keeps squares of
/// products from overflow and underflow; the sign, for a method that needs a positive definite matrix, makes
/// an all-negative diagonal positive. Where some vectors are `narrow`, the products have to stay in the range of the
/// narrower type. Where the largest entry near 1 would leave the smallest without digits, it stays as large as squares allow.
pub(crate) fn factor_of<T: Scalar>(a: &Csr<T>, definite: bool, narrow: bool) -> Factor {
    let exponent = exponent_of(a, narrow);
    let negative = |i: usize| a.get(i, i).is_some_and(|d| d.re() < 0.0 && d.im() == 0.0);
    Factor { exponent, negative: definite && a.rows() > 0 && (0..a.rows()).all(negative) }
}

fn exponent_of<T: Scalar>(a: &Csr<T>, narrow: bool) -> i32 {
    if narrow {
        return near_one::<T::Narrow>(largest(a.values()));
    }
    let largest = largest(a.values());
    let exponent = near_one::<T>(largest);
    if exponent >= 0 {
        return exponent;
    }
    // A largest entry below this one's square root of the square root of the range is not scaled at all.
    let most = bits::<T>() / 4 - 1 - exponent_in(largest);
    exponent.max(keeps::<T>(smallest(a.values())).min(most).min(0))
}

/// The exponent of the factor that brings a largest entry near 1, if it is needed.
fn near_one<T: Scalar>(largest: f64) -> i32 {
    if largest == 0.0 { 0 } else { scaling_exponent::<T>(largest) }
}

/// The exponent of the least power of two that overflows.
fn bits<T: Scalar>() -> i32 {
    T::MAX.log2().round() as i32
}

fn exponent_in(number: f64) -> i32 {
    number.log2().floor() as i32
}

/// The least exponent of a factor that leaves a number all its digits.
fn keeps<T: Scalar>(smallest: f64) -> i32 {
    2 - bits::<T>() - exponent_in(smallest)
}

/// The smallest modulus of the real and imaginary parts that are not 0; infinite if there is none.
fn smallest<T: Scalar>(values: &[T]) -> f64 {
    let parts = values.iter().flat_map(|v| [v.re().abs(), v.im().abs()]);
    parts.filter(|part| *part > 0.0).fold(f64::INFINITY, f64::min)
}

/// What is said of a matrix whose smallest entries lose digits, or become 0, when it is multiplied by `2^exponent` in the
/// number type `N`.
pub(crate) fn lost<T: Scalar, N: Scalar>(a: &Csr<T>, exponent: i32) -> Option<String> {
    let scaled = exponent < 0 || T::KIND != N::KIND;
    let smallest = if scaled { smallest(a.values()) } else { f64::INFINITY };
    (smallest.is_finite() && keeps::<N>(smallest) > exponent).then(|| {
        format!(
            "entries from {smallest:.1e} to {:.1e} do not all fit into {} beside their squares: the smallest are lost; scale the \
             rows of the system",
            largest(a.values()),
            N::KIND.name()
        )
    })
}

/// The error of a preconditioner that refused a matrix of which entries are lost: what it says is not so of the matrix given.
pub(crate) fn unless_lost(refused: Error, lost: &Option<String>) -> Error {
    match (lost, refused) {
        (Some(lost), Error::Entry { operation, .. }) => Error::Structure { operation, message: lost.clone() },
        (Some(lost), Error::Unsupported { operation, .. } | Error::Structure { operation, .. }) => {
            Error::Structure { operation, message: lost.clone() }
        }
        (_, refused) => refused,
    }
}

/// Whether a format of this name stores rounded values.
pub(crate) fn rounds(format: &str) -> bool {
    FORMATS.iter().any(|known| known.name == format && known.rounds)
}

/// The matrix that such a format holds: the values, times the factor of the system, rounded to the narrower type; and what is
/// said of it if that changes values.
pub(crate) fn rounded<T: Scalar>(a: &Csr<T>) -> Result<(Arc<Csr<T>>, Option<String>)> {
    let exponent = near_one::<T>(largest(a.values()));
    let value = |v: &T| v.scale_by_power_of_two(exponent).rounded().scale_by_power_of_two(-exponent);
    let rounded = a.with_values(a.values().iter().map(value).collect())?;
    let changed = rounded.values() != a.values();
    let narrow = T::Narrow::KIND.name();
    let said = || {
        format!(
            "the format rounds the matrix to {narrow}: the residual, and whether it converged, are those of the rounded matrix"
        )
    };
    Ok((Arc::new(rounded), changed.then(said)))
}

/// A matrix times a factor.
pub(crate) fn times<T: Scalar>(factor: Factor, a: Arc<Csr<T>>) -> Result<Arc<Csr<T>>> {
    Ok(if factor.is_one() { a } else { Arc::new(a.with_values(factor.times(a.values()))?) })
}
