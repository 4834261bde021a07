//! The truncated Neumann series of the matrix scaled by its diagonal.
use super::adjoint::{self, ADJOINT, kept_adjoint};
use super::inverse_diagonal;
use super::triangles::name_with;
use crate::named::{OptionInfo, Settings};
use crate::{Handles, Parts, PrecondInfo, Preconditioner, Setup};
use lacuna_engine::{Matrix, Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::Csr;
use std::borrow::Cow;

/// `M = Σ (I − ω D⁻¹ A)ʲ ω D⁻¹` for `j = 0 … order`: `order + 1` steps of damped Jacobi iteration from zero.
///
/// * Needs: a diagonal without zeros. The series converges if the spectrum of `ω D⁻¹ A` lies in the unit disk
///   around 1. Under a method for positive definite matrices an odd order keeps `M` definite whenever
///   `ω ‖D⁻¹ A‖ < 2`, an even order always.
/// * Cost of an application: `order` products with `A`, fused with all vector work. Storage: 3 vectors; with
///   the adjoint (`adjoint=yes`) also `Aᴴ` and a vector.
/// * Reference: Dubois, Greenbaum and Rodrigue 1979, doi:10.1007/BF02243566.
#[derive(Clone, Copy, Debug)]
pub struct Neumann {
    /// Products with `A` per application.
    pub order: usize,
    /// Damping.
    pub omega: f64,
    /// Whether the adjoint is stored too.
    pub adjoint: bool,
}

impl Default for Neumann {
    fn default() -> Self {
        Neumann { order: 3, omega: 0.9, adjoint: false }
    }
}

impl Neumann {
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: "neumann",
        about: "a polynomial of the matrix scaled by its diagonal; products alone",
        options: &[
            OptionInfo { key: "order", default: "3", about: "products of an application, 0 to 64" },
            OptionInfo { key: "omega", default: "0.9", about: "damping, above 0 and below 2" },
            ADJOINT,
        ],
        needs_diagonal: true,
        needs_hermitian: false,
        needs_stencil: false,
    };

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        Ok(Neumann {
            order: settings.number("order", "a whole number up to 64", |order| *order <= 64)?,
            omega: settings.number("omega", "a number above 0 and below 2", |w| *w > 0.0 && *w < 2.0)?,
            adjoint: adjoint::named(settings)?,
        })
    }

    /// Records `z ← M r` for a matrix and `d`, the numbers of `ω D⁻¹`, then the pass.
    fn record<T: Scalar>(
        &self,
        k: &mut Recorder<'_, T>,
        (a, d): (Matrix<T>, Vector<T>),
        [s, t]: [Vector<T>; 2],
        [r, z]: [Vector<T>; 2],
        then: Pass<T>,
    ) {
        // The sums alternate between z and s, so that the last is in z.
        let place = |j: usize| if (self.order - j).is_multiple_of(2) { z } else { s };
        let mut then = Some(then);
        let mut last = |j: usize, pass: Pass<T>| match then.take_if(|_| j == self.order) {
            Some(then) => pass.then(then),
            None => pass,
        };
        k.multi_axpy_dot(last(0, Pass::new("first").set(place(0), d * r)));
        for j in 1..=self.order {
            let (old, new) = (place(j - 1), place(j));
            k.spmv_dot(&a, old, t, last(j, Pass::new("next").set(new, old + d * r - d * t)));
        }
    }
}

impl<T: Scalar> Preconditioner<T> for Neumann {
    fn name(&self) -> Cow<'static, str> {
        let said = [format!("order={}", self.order), format!("omega={}", self.omega)];
        name_with("neumann", said.into_iter().chain(adjoint::said(self.adjoint)).collect())
    }
    fn set_up(&mut self, a: &Csr<T>, _: &mut Setup<'_, T>) -> Result<Parts<T>> {
        let (omega, n) = (T::from_real(self.omega), a.rows());
        let d: Vec<T> = inverse_diagonal(a)?.into_iter().map(|d| omega * d).collect();
        let conjugate = self.adjoint.then(|| d.iter().map(|d| d.conj()).collect());
        let parts = Parts::new().vector(d).scratch(n).scratch(n);
        Ok(match conjugate {
            Some(conjugate) => parts.vector(conjugate).matrix(a.adjoint()),
            None => parts,
        })
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        let [d] = on.vectors();
        self.record(k, (on.a(), d), on.scratch(), [r, z], then);
    }
    kept_adjoint!(|own, k, on, rz, then| {
        let ([_, d], [a]) = (on.vectors(), on.matrices());
        own.record(k, (a, d), on.scratch(), rz, then);
    });
}
