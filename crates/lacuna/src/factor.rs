//! The factor by which a matrix is multiplied before solving.
use lacuna_engine::{Result, Scalar};
use lacuna_formats::{Csr, FORMATS};
use lacuna_solvers::{Factor, largest, scaling_exponent};
use std::sync::Arc;

/// The power of two and the sign by which a matrix is multiplied before solving. The power keeps squares of
/// products from overflow and underflow; the sign, for a method that needs a positive definite matrix, makes
/// an all-negative diagonal positive. Where some vectors are `narrow`, the products have to stay in the range of the
/// narrower type.
pub(crate) fn factor_of<T: Scalar>(a: &Csr<T>, definite: bool, narrow: bool) -> Factor {
    let exponent = exponent_of(a, narrow);
    let negative = |i: usize| a.get(i, i).is_some_and(|d| d.re() < 0.0 && d.im() == 0.0);
    Factor { exponent, negative: definite && a.rows() > 0 && (0..a.rows()).all(negative) }
}

fn exponent_of<T: Scalar>(a: &Csr<T>, narrow: bool) -> i32 {
    let largest = largest(a.values());
    match narrow {
        _ if largest == 0.0 => 0,
        false => scaling_exponent::<T>(largest),
        true => scaling_exponent::<T::Narrow>(largest),
    }
}

/// Whether a format of this name stores rounded values.
pub(crate) fn rounds(format: &str) -> bool {
    FORMATS.iter().any(|known| known.name == format && known.rounds)
}

/// The matrix that such a format holds: the values, times the factor of the system, rounded to the narrower type.
pub(crate) fn rounded<T: Scalar>(a: &Csr<T>) -> Result<Arc<Csr<T>>> {
    let exponent = exponent_of(a, false);
    let value = |v: &T| v.scale_by_power_of_two(exponent).rounded().scale_by_power_of_two(-exponent);
    Ok(Arc::new(a.with_values(a.values().iter().map(value).collect())?))
}

/// A matrix times a factor.
pub(crate) fn times<T: Scalar>(factor: Factor, a: Arc<Csr<T>>) -> Result<Arc<Csr<T>>> {
    Ok(if factor.is_one() { a } else { Arc::new(a.with_values(factor.times(a.values()))?) })
}
