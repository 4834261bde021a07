//! The factor by which a matrix is multiplied before solving.
use crate::{Factor, largest, scaling_exponent};
use lacuna_engine::{Error, Result, Scalar};
use lacuna_formats::{Csr, FORMATS};
use std::sync::Arc;

/// The power of two and the sign by which a matrix is multiplied before solving. The power keeps squares of
/// products from overflow and underflow; the sign, for a method that needs a positive definite matrix, makes
/// an all-negative diagonal positive. The matrix has the values given in place of its own. Where some vectors are `narrow`, the products have to stay in the range of the
/// narrower type. Where the largest entry near 1 would leave the smallest without digits, it stays as large as squares allow.
pub(super) fn factor_of<T: Scalar>(pattern: &Csr<T>, values: &[T], definite: bool, narrow: bool) -> Factor {
    let negative = |i: usize| {
        let found = pattern.row_slices(i).0.binary_search(&(i as u32));
        let at = found.map(|k| pattern.row_ptr()[i] as usize + k);
        at.is_ok_and(|k| values[k].re() < 0.0 && values[k].im() == 0.0)
    };
    let negative = definite && pattern.rows() > 0 && (0..pattern.rows()).all(negative);
    Factor { exponent: exponent_of(values, narrow), negative }
}

fn exponent_of<T: Scalar>(values: &[T], narrow: bool) -> i32 {
    let largest = largest(values);
    if narrow {
        return near_one::<T::Narrow>(largest);
    }
    let exponent = near_one::<T>(largest);
    if exponent >= 0 {
        return exponent;
    }
    // A largest entry below this one's square root of the square root of the range is not scaled at all.
    let most = bits::<T>() / 4 - 1 - exponent_in(largest);
    exponent.max(keeps::<T>(smallest(values)).min(most).min(0))
}

/// The exponent of the factor that brings a largest entry near 1, if it is needed.
fn near_one<T: Scalar>(largest: f64) -> i32 {
    if largest == 0.0 { 0 } else { scaling_exponent::<T>(largest) }
}

/// The exponent of the least power of two that overflows.
fn bits<T: Scalar>() -> i32 {
    libm::log2(T::MAX).round() as i32
}

fn exponent_in(number: f64) -> i32 {
    libm::log2(number).floor() as i32
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
pub(super) fn lost<T: Scalar, N: Scalar>(values: &[T], exponent: i32) -> Option<String> {
    let scaled = exponent < 0 || T::KIND != N::KIND;
    let smallest = if scaled { smallest(values) } else { f64::INFINITY };
    (smallest.is_finite() && keeps::<N>(smallest) > exponent).then(|| {
        format!(
            "entries from {smallest:.1e} to {:.1e} do not all fit into {} beside their squares: the smallest are lost; scale \
             rows and columns (`--scale both`, `LinearSystem::scale`)",
            largest(values),
            N::KIND.name()
        )
    })
}

/// Replaces the error of a preconditioner where scaling made entries 0: its message would describe the scaled matrix, not the
/// caller's.
pub(super) fn unless_lost(refused: Error, lost: Option<&String>) -> Error {
    match (lost, refused) {
        (Some(lost), Error::Entry { operation, .. }) => Error::Structure { operation, message: lost.clone() },
        (Some(lost), Error::Unsupported { operation, .. } | Error::Structure { operation, .. }) => {
            Error::Structure { operation, message: lost.clone() }
        }
        (_, refused) => refused,
    }
}

/// Whether a format of this name stores rounded values.
pub(super) fn rounds(format: &str) -> bool {
    FORMATS.iter().any(|known| known.name == format && known.rounds)
}

/// Rounds values to those that such a format holds: to the narrower type after the factor of the system. Returns what is said
/// of the matrix if that changes values.
pub(super) fn round<T: Scalar>(values: &mut [T]) -> Option<String> {
    let exponent = near_one::<T>(largest(values));
    let mut changed = false;
    for v in values {
        let rounded = v.scale_by_power_of_two(exponent).rounded().scale_by_power_of_two(-exponent);
        changed |= rounded != *v;
        *v = rounded;
    }
    let narrow = T::Narrow::KIND.name();
    changed.then(|| {
        format!(
            "the format rounds the matrix to {narrow}: the residual, and whether it converged, are those of the rounded matrix"
        )
    })
}

/// A matrix times a factor.
pub(super) fn times<T: Scalar>(factor: Factor, a: Arc<Csr<T>>) -> Result<Arc<Csr<T>>> {
    Ok(if factor.is_one() { a } else { Arc::new(a.with_values(factor.times(a.values()))?) })
}
