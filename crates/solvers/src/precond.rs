//! Preconditioners by name.
use lacuna_core::{Backend, Diagonal, Error, Result, Scalar};
use lacuna_formats::Csr;

/// A preconditioner in the list.
#[derive(Clone, Copy, Debug)]
pub struct PrecondInfo {
    /// The name it goes by.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
}

/// Every preconditioner, by name.
pub const PRECONDITIONERS: [PrecondInfo; 2] = [
    PrecondInfo { name: "none", about: "no preconditioner" },
    PrecondInfo { name: "jacobi", about: "the inverse of the diagonal; costs no sweep of its own" },
];

/// The reciprocals of the diagonal of a square matrix.
///
/// # Errors
/// [`Error::Shape`] unless square; [`Error::Entry`] where a diagonal entry is 0 or missing, or its reciprocal not
/// finite.
pub fn inverse_diagonal<T: Scalar>(a: &Csr<T>) -> Result<Vec<T>> {
    let operation = "Jacobi preconditioner";
    if a.rows() != a.cols() {
        let expected = "a square matrix".into();
        return Err(Error::Shape { operation: operation.into(), expected, got: (a.rows(), a.cols()) });
    }
    let row = |i: usize| {
        let range = a.row_ptr()[i] as usize..a.row_ptr()[i + 1] as usize;
        let at = a.col_idx()[range.clone()].binary_search(&(i as u32));
        let entry = at.map_or(T::zero(), |k| a.values()[range.start + k]);
        let inverse = T::one().quotient(entry);
        if entry == T::zero() || !inverse.finite() {
            let what = if at.is_err() { "is missing".into() } else { format!("is {entry:e}") };
            let message = format!("the diagonal entry {what}; expected one with a finite reciprocal");
            return Err(Error::Entry { operation: operation.into(), row: i, column: i, message });
        }
        Ok(inverse)
    };
    (0..a.rows()).map(row).collect()
}

/// Jacobi's preconditioner `M = D⁻¹` on a device.
///
/// # Errors
/// As [`inverse_diagonal`].
pub fn jacobi<T: Scalar, B: Backend>(dev: &mut B, a: &Csr<T>) -> Result<Diagonal<T>> {
    let inverse = inverse_diagonal(a)?;
    let vector = dev.vector(inverse.len())?;
    dev.upload(&inverse, vector)?;
    Ok(Diagonal(vector))
}
