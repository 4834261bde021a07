//! Jacobi's preconditioner.
use crate::named::Settings;
use crate::{Handles, Parts, PrecondInfo, Preconditioner, Setup};
use lacuna_engine::{Error, Pass, Recorder, Result, Scalar, Vector, compiled_here};
use lacuna_formats::{Csr, parallel};
use std::borrow::Cow;

/// Rows that a thread takes at least.
const GRAIN: usize = 8192;

/// `M = D⁻¹`, the reciprocals of the diagonal.
///
/// * Needs: a diagonal without zeros; positive under a method for positive definite matrices.
/// * Cost of an application: one vector read in the sweep that needs the result; `cg` and `bicgstab` store none. Storage: 1 vector, 2 if numbers
///   are complex.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jacobi;

impl Jacobi {
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: "jacobi",
        about: "the inverse of the diagonal; costs next to nothing beside the product",
        options: &[],
        needs_diagonal: true,
        needs_hermitian: false,
        needs_stencil: false,
    };

    pub(super) fn named(_: &Settings<'_>) -> Result<Self> {
        Ok(Jacobi)
    }
}

impl<T: Scalar> Preconditioner<T> for Jacobi {
    fn name(&self) -> Cow<'static, str> {
        "jacobi".into()
    }
    fn set_up(&mut self, a: &Csr<T>, _: &mut Setup<'_>) -> Result<Parts<T>> {
        let d = inverse_diagonal(a)?;
        let conjugate = T::KIND.is_complex().then(|| d.iter().map(|d| d.conj()).collect());
        let parts = Parts::new().vector(d);
        Ok(match conjugate {
            Some(conjugate) => parts.vector(conjugate),
            None => parts,
        })
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        let [d] = on.vectors();
        k.multi_axpy_dot(Pass::new("diagonal").set(z, d * r).then(then));
    }
    fn diagonal(&self, on: &Handles<T>) -> Option<Vector<T>> {
        Some(on.vectors::<1>()[0])
    }
    fn knows_adjoint(&self) -> bool {
        true
    }
    fn apply_adjoint(
        &self,
        k: &mut Recorder<'_, T>,
        on: &Handles<T>,
        r: Vector<T>,
        z: Vector<T>,
        then: Pass<T>,
    ) {
        let d = if T::KIND.is_complex() { on.vectors::<2>()[1] } else { on.vectors::<1>()[0] };
        k.multi_axpy_dot(Pass::new("diagonal").set(z, d * r).then(then));
    }
}

/// Why a diagonal entry has no finite reciprocal, and what to try.
fn without_reciprocal<T: Scalar>(a: &Csr<T>, row: usize) -> String {
    if a.row_entries(row).all(|(_, v)| v == T::zero()) {
        return "the row has no nonzero entry, so that the matrix is singular".into();
    }
    let entry = a.get(row, row).unwrap_or(T::zero());
    let what = if a.get(row, row).is_none() { "is missing".into() } else { format!("is {entry:e}") };
    let message = format!("the diagonal entry {what}; expected one with a finite reciprocal");
    match entry == T::zero() {
        true => format!(
            "{message}; the order `matching` (`--reorder matching`, `LinearSystem::reorder`) moves rows for a diagonal without zeros"
        ),
        false => message,
    }
}

/// The reciprocals of the diagonal of a square matrix.
///
/// # Errors
/// [`Error::Shape`] unless square; [`Error::Entry`] if a diagonal entry is 0 or missing, or its reciprocal is
/// not finite.
pub fn inverse_diagonal<T: Scalar>(a: &Csr<T>) -> Result<Vec<T>> {
    compiled_here!(T, |a: &Csr<T>| -> Result<Vec<T>> {
        let operation = "inverse of the diagonal";
        if a.rows() != a.cols() {
            let expected = "a square matrix".into();
            return Err(Error::Shape { operation: operation.into(), expected, got: (a.rows(), a.cols()) });
        }
        let inverse = |i: usize| T::one().quotient(a.get(i, i).unwrap_or(T::zero()));
        let inverses = parallel::collect(a.rows(), GRAIN, inverse);
        if let Some(row) = parallel::find_first(a.rows(), GRAIN, |i| !inverses[i].finite()) {
            let message = without_reciprocal(a, row);
            return Err(Error::Entry { operation: operation.into(), row, column: row, message });
        }
        Ok(inverses)
    })(a)
}
