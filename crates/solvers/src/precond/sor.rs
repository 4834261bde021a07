//! Successive over-relaxation.
use super::adjoint::{self, ADJOINT, kept_adjoint};
use super::relaxation::{self, Ordered};
use super::triangles::name_with;
use crate::named::Settings;
use crate::{Handles, Parts, PrecondInfo, Preconditioner, Setup};
use lacuna_engine::{Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::{Csr, Half, Triangular};
use std::borrow::Cow;

/// `M = ω (D + ω L)⁻¹` with the lower half and the diagonal of `A`: one sweep of over-relaxation, that of Gauss and Seidel for
/// `ω = 1`. Richardson's iteration with it is the method of that name.
///
/// * Needs: a diagonal without zeros. `M` is not Hermitian, so `cg` does not take it: [`Ssor`](crate::Ssor) is.
/// * Cost of an application: one triangular solve of half the entries, by colours in a few levels, or in the order of the matrix
///   (`order=natural`) in many. Storage: these entries and a vector; twice that with the
///   adjoint (`adjoint=yes`).
/// * Set-up: one thread, a few passes over the matrix. New values: the same again.
/// * Reference: Young 1954, doi:10.1090/S0002-9947-1954-0059635-7; Saad 2003, section 4.1, doi:10.1137/1.9780898718003.
#[derive(Clone, Copy, Debug)]
pub struct Sor {
    /// Over-relaxation, above 0 and below 2.
    pub omega: f64,
    /// Whether rows are taken colour by colour.
    pub coloured: bool,
    /// Whether the adjoint is stored too.
    pub adjoint: bool,
}

impl Default for Sor {
    fn default() -> Self {
        Sor { omega: 1.0, coloured: true, adjoint: false }
    }
}

impl Sor {
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: "sor",
        about: "one sweep of over-relaxation by colours; Gauss-Seidel for omega=1; not for cg",
        options: &[relaxation::OMEGA, relaxation::ORDER, ADJOINT],
        needs_diagonal: true,
        needs_hermitian: false,
        needs_stencil: false,
    };

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        let (omega, coloured) = relaxation::named(settings)?;
        Ok(Sor { omega, coloured, adjoint: adjoint::named(settings)? })
    }
}

impl<T: Scalar> Preconditioner<T> for Sor {
    fn name(&self) -> Cow<'static, str> {
        let mut said = relaxation::said(self.omega, self.coloured);
        said.extend(adjoint::said(self.adjoint));
        name_with("sor", said)
    }
    fn set_up(&mut self, a: &Csr<T>, setup: &mut Setup<'_>) -> Result<Parts<T>> {
        let ordered = Ordered::new(a, self.coloured)?;
        setup.check()?;
        let omega = T::from_real(self.omega);
        let reciprocals: Vec<T> = ordered.inverse.iter().map(|&d| omega * d).collect();
        let lower = Triangular::part(&ordered.a, Half::Lower, Some(&reciprocals), ordered.names())?;
        let depth = lower.depth();
        let mut parts = Parts::new().matrix(lower).report("levels", depth);
        if self.adjoint {
            let conjugates: Vec<T> = reciprocals.iter().map(|d| d.conj()).collect();
            let turned = ordered.a.adjoint();
            parts = parts.matrix(Triangular::part(&turned, Half::Upper, Some(&conjugates), ordered.names())?);
        }
        Ok(ordered.report(parts))
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        let [lower] = on.matrices();
        k.tri_solve(lower, r, z, then);
    }
    kept_adjoint!(|_, k, on, [r, z], then| {
        let [_, upper] = on.matrices();
        k.tri_solve(upper, r, z, then);
    });
}
