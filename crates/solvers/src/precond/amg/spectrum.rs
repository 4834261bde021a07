//! What is known of the spectrum of `D⁻¹ A` of a matrix as it is: for those who damp a part of it.
use super::filtered::Filtered;
use super::radius::radius;
use super::rows::Rows;
use super::strength::Filter;
use lacuna_engine::{Result, Scalar};
use lacuna_formats::Csr;

/// Steps of Lanczos' or Arnoldi's method.
const STEPS: usize = 10;

/// The diagonal `D` and how large eigenvalues of `D⁻¹ A` are.
pub(in crate::precond) struct Spectrum<T> {
    pub(in crate::precond) diagonal: Vec<T>,
    /// An estimate of the spectral radius, usually a little low.
    pub(in crate::precond) radius: f64,
    /// `‖D⁻¹A‖∞`, a bound.
    pub(in crate::precond) norm: f64,
}

/// Looks at a square matrix.
///
/// # Errors
/// Where a diagonal entry is 0 or missing, or memory runs out.
pub(in crate::precond) fn spectrum<T: Scalar>(operation: &str, a: &Csr<T>) -> Result<Spectrum<T>> {
    let rows = Rows::of(a, None);
    rows.check_diagonal(operation, 0)?;
    let radius = radius(&Filtered::new(a, &rows, &Filter::All, None), STEPS)?;
    Ok(Spectrum { radius, norm: rows.norm, diagonal: rows.diagonal })
}
