//! Scaling of the columns, for least squares.
use crate::named::Settings;
use crate::{Handles, Parts, PrecondInfo, Preconditioner, Setup};
use lacuna_engine::{Error, Pass, Recorder, Result, Scalar, Vector, compiled_here};
use lacuna_formats::Csr;
use std::borrow::Cow;

/// `M = D`, the reciprocals of the norms of the columns, so that those of `A M` have norm 1: within a factor
/// of `√n` the best diagonal for `n` columns. A column of zeros keeps the factor 1.
///
/// * Needs: nothing; the matrix may have any shape.
/// * Cost of an application: one vector read, fused with the preceding sweep. Storage: 1 vector.
/// * Differs from no preconditioner: the least-squares solution is the same if it is unique. If not, the one of
///   least `‖D⁻¹ x‖` is found instead of the one of least `‖x‖`, and the outcome notes it for a matrix with fewer
///   rows than columns.
/// * Reference: van der Sluis 1969, Theorem 3.5, doi:10.1007/BF02165096.
#[derive(Clone, Copy, Debug, Default)]
pub struct ColumnScaling;

impl ColumnScaling {
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: "column-scaling",
        about: "the inverse norms of the columns; least squares, any shape",
        options: &[],
        needs_diagonal: false,
        needs_hermitian: false,
        needs_stencil: false,
    };

    pub(super) fn named(_: &Settings<'_>) -> Result<Self> {
        Ok(ColumnScaling)
    }
}

impl<T: Scalar> Preconditioner<T> for ColumnScaling {
    fn name(&self) -> Cow<'static, str> {
        "column-scaling".into()
    }
    fn accepts_any_shape(&self) -> bool {
        true
    }
    fn set_up(&mut self, a: &Csr<T>, _: &mut Setup<'_>) -> Result<Parts<T>> {
        let norms = column_norms(a);
        let [least, most] = [f64::min, f64::max].map(|of| norms.iter().copied().reduce(of).unwrap_or(0.0));
        let d = norms.into_iter().enumerate().map(|(j, norm)| inverse(j, norm)).collect::<Result<_>>()?;
        Ok(Parts::new().vector(d).report("norms of the columns", format!("{least:.1e} to {most:.1e}")))
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        let [d] = on.vectors();
        k.multi_axpy_dot(Pass::new("diagonal").set(z, d * r).then(then));
    }
    fn is_hermitian(&self) -> bool {
        true
    }
}

/// The Euclidean norms of the columns. Entries are divided by the largest of their column before they are
/// squared, so that no square overflows or underflows.
fn column_norms<T: Scalar>(a: &Csr<T>) -> Vec<f64> {
    compiled_here!(T, |a: &Csr<T>| -> Vec<f64> {
        let (mut largest, mut sums) = (vec![0.0_f64; a.cols()], vec![0.0_f64; a.cols()]);
        let entries = || a.col_idx().iter().map(|j| *j as usize).zip(a.values().iter().map(|v| v.modulus()));
        entries().for_each(|(j, size)| largest[j] = largest[j].max(size));
        entries()
            .filter(|(_, size)| *size > 0.0)
            .for_each(|(j, size)| sums[j] += (size / largest[j]).powi(2));
        largest.iter().zip(sums).map(|(largest, sum)| largest * sum.sqrt()).collect()
    })(a)
}

/// The factor of column `j`.
fn inverse<T: Scalar>(j: usize, norm: f64) -> Result<T> {
    let inverse = T::from_real(if norm == 0.0 { 1.0 } else { norm.recip() });
    if inverse == T::zero() || !inverse.finite() {
        let message = format!("column {j} has norm {norm:e}; expected one with a finite reciprocal");
        return Err(Error::Structure { operation: "scaling of the columns".into(), message });
    }
    Ok(inverse)
}
