//! What is known of the spectrum of `D⁻¹ A` of a matrix as it is: for those who damp a part of it.
use super::filtered::Filtered;
use super::radius::radius;
use super::rows::RowCouplings;
use super::strength::Filter;
use lacuna_engine::{Double, Result};
use lacuna_formats::Csr;

/// Steps of Lanczos' or Arnoldi's method.
const STEPS: usize = 10;

/// Factor applied to the estimate of the largest eigenvalue, which is usually a little low.
const RAISED: f64 = 1.1;

/// The diagonal `D` and how large eigenvalues of `D⁻¹ A` are.
pub(in crate::precond) struct Spectrum<T> {
    pub(in crate::precond) diagonal: Vec<T>,
    /// A number that is seldom below the largest eigenvalue by modulus, and never above `‖D⁻¹A‖∞`.
    pub(in crate::precond) largest: f64,
}

/// Looks at a square matrix. Where `‖D⁻¹A‖∞` is at most `enough`, that bound is taken in place of an estimate.
///
/// # Errors
/// Where a diagonal entry is 0 or missing, or memory runs out.
pub(in crate::precond) fn spectrum<T: Double>(
    operation: &str,
    a: &Csr<T>,
    enough: f64,
) -> Result<Spectrum<T>> {
    let rows = RowCouplings::of(a, None);
    rows.check_diagonal(operation, 0)?;
    let mut largest = rows.norm;
    if largest > enough {
        largest = largest.min(RAISED * radius(&Filtered::new(a, &rows, &Filter::All, None), STEPS)?);
    }
    Ok(Spectrum { largest, diagonal: rows.diagonal })
}
