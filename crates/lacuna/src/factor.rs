//! The factor by which a matrix is multiplied before solving.
use lacuna_engine::{Result, Scalar};
use lacuna_formats::Csr;
use lacuna_solvers::{Factor, largest, scaling_exponent};
use std::sync::Arc;

/// The power of two and the sign by which a matrix is multiplied before solving. The power keeps squares of
/// products from overflow and underflow; the sign, for a method that needs a positive definite matrix, makes
/// an all-negative diagonal positive.
pub(crate) fn factor_of<T: Scalar>(a: &Csr<T>, definite: bool) -> Factor {
    let largest = largest(a.values());
    let exponent = if largest > 0.0 { scaling_exponent::<T>(largest) } else { 0 };
    let negative = |i: usize| a.get(i, i).is_some_and(|d| d.re() < 0.0 && d.im() == 0.0);
    Factor { exponent, negative: definite && a.rows() > 0 && (0..a.rows()).all(negative) }
}

/// A matrix times a factor.
pub(crate) fn times<T: Scalar>(factor: Factor, a: Arc<Csr<T>>) -> Result<Arc<Csr<T>>> {
    Ok(if factor.is_one() { a } else { Arc::new(a.with_values(factor.times(a.values()))?) })
}
