//! Symmetric successive over-relaxation.
use super::adjoint::{self, ADJOINT, kept_adjoint};
use super::relaxation::{self, Ordered};
use super::triangles::{Factors, Solves, apply, apply_adjoint, name_with};
use crate::named::Settings;
use crate::{Handles, Parts, PrecondInfo, Preconditioner, Setup};
use lacuna_engine::{Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::Csr;
use std::borrow::Cow;

/// `M = ω (2 − ω) (D + ω U)⁻¹ D (D + ω L)⁻¹` with the strict triangles and the diagonal of `A`: a forward
/// sweep of over-relaxation and a backward one; symmetric Gauss–Seidel for `ω = 1`.
///
/// * Needs: a diagonal without zeros. `M` is Hermitian positive definite if the matrix is Hermitian with a
///   positive diagonal.
/// * Cost of an application: two triangular solves with half the entries each; colouring needs few levels.
///   The original order of the matrix (`order=natural`) takes fewer iterations and many more levels. Storage:
///   the entries of the matrix and a vector; twice the entries with the adjoint (`adjoint=yes`).
/// * Set-up: one thread, a few passes over the matrix. New values: the same cost again.
/// * Reference: Saad 2003, Iterative Methods for Sparse Linear Systems, section 10.2, doi:10.1137/1.9780898718003.
#[derive(Clone, Copy, Debug)]
pub struct Ssor {
    /// The relaxation factor, above 0 and below 2.
    pub omega: f64,
    /// Whether rows are processed colour by colour.
    pub coloured: bool,
    /// Whether the adjoint is stored too.
    pub adjoint: bool,
}

impl Default for Ssor {
    fn default() -> Self {
        Ssor { omega: 1.0, coloured: true, adjoint: false }
    }
}

impl Ssor {
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: "ssor",
        about: "symmetric over-relaxation by colours; Gauss-Seidel forth and back for omega=1",
        options: &[relaxation::OMEGA, relaxation::ORDER, ADJOINT],
        needs_diagonal: true,
        needs_hermitian: false,
        needs_stencil: false,
    };

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        let (omega, coloured) = relaxation::named(settings)?;
        Ok(Ssor { omega, coloured, adjoint: adjoint::named(settings)? })
    }
}

impl<T: Scalar> Preconditioner<T> for Ssor {
    fn name(&self) -> Cow<'static, str> {
        let mut said = relaxation::said(self.omega, self.coloured);
        said.extend(adjoint::said(self.adjoint));
        name_with("ssor", said)
    }
    fn set_up(&mut self, a: &Csr<T>, setup: &mut Setup<'_>) -> Result<Parts<T>> {
        let ordered = Ordered::new(a, self.coloured)?;
        setup.check()?;
        let (a, inverse) = (&*ordered.a, &ordered.inverse);
        // With s = D t of the first solve, (I + ω L D⁻¹) s = ω r; no pass is needed between the solves.
        let (omega, c) = (self.omega, (2.0 - self.omega) / self.omega);
        let by_column = |(_, j, v): (usize, usize, T)| v * inverse[j];
        let lower = a.with_values(a.entries().map(by_column).collect())?;
        let upper = if c == 1.0 { None } else { Some(a.scaled(T::from_real(1.0 / c))?) };
        let lower_reciprocals = vec![T::from_real(omega); a.rows()];
        let upper_reciprocals: Vec<T> = inverse.iter().map(|&d| T::from_real(omega * c) * d).collect();
        let factors = Factors {
            lower: &lower,
            lower_reciprocals: Some(&lower_reciprocals),
            upper: upper.as_ref().unwrap_or(a),
            upper_reciprocals: Some(&upper_reciprocals),
            names: ordered.names(),
        };
        Ok(ordered.report(factors.parts(Solves::Levels, self.adjoint)?))
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        apply(k, on, Solves::Levels, [r, z], then);
    }
    kept_adjoint!(|_, k, on, rz, then| apply_adjoint(k, on, Solves::Levels, rz, then));
}
