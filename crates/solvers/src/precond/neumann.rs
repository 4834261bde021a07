//! The truncated Neumann series of the matrix scaled by its diagonal.
use super::adjoint::{self, ADJOINT, kept_adjoint};
use super::amg::spectrum;
use super::inverse_diagonal;
use super::triangles::name_with;
use crate::named::{OptionInfo, Settings};
use crate::{Handles, Parts, PrecondInfo, Preconditioner, Setup};
use lacuna_engine::{Matrix, Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::Csr;
use std::borrow::Cow;

const OPERATION: &str = "preconditioner `neumann`";
/// The damping, and the largest eigenvalue of `D⁻¹ A` with which it is taken.
const USUAL: f64 = 0.9;
const LARGE: f64 = 2.0;

/// `M = Σ (I − ω D⁻¹ A)ʲ ω D⁻¹` for `j = 0 … order`: `order + 1` steps of damped Jacobi iteration from zero.
///
/// * Needs: a diagonal without zeros. The series converges if the spectrum of `ω D⁻¹ A` lies in the unit disk
///   around 1. Under a method for positive definite matrices an odd order keeps `M` definite whenever
///   `ω ‖D⁻¹ A‖ < 2`, an even order always.
/// * `ω` is 0.9 unless it is given, and less where the largest eigenvalue `λ` of `D⁻¹ A` is above 2: `ω = 1.8 / λ`. An estimate from 10
///   Lanczos steps, raised by 10 %, stands for `λ`; it is made where `‖D⁻¹ A‖∞` is above 2.
/// * Cost of an application: `order` products with `A`, fused with all vector work. Storage: 3 vectors; with
///   the adjoint (`adjoint=yes`) also `Aᴴ` and a vector.
/// * Reference: Dubois, Greenbaum and Rodrigue 1979, doi:10.1007/BF02243566.
#[derive(Clone, Copy, Debug)]
pub struct Neumann {
    /// Products with `A` per application.
    pub order: usize,
    /// Damping; by the largest eigenvalue if `None`.
    pub omega: Option<f64>,
    /// Whether the adjoint is stored too.
    pub adjoint: bool,
}

impl Default for Neumann {
    fn default() -> Self {
        Neumann { order: 3, omega: None, adjoint: false }
    }
}

impl Neumann {
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: "neumann",
        about: "a polynomial of the matrix scaled by its diagonal; products alone",
        options: &[
            OptionInfo { key: "order", default: "3", about: "products of an application, 0 to 64" },
            OptionInfo {
                key: "omega",
                default: "auto",
                about: "damping, above 0 and below 2; auto: 0.9, less where an eigenvalue is above 2",
            },
            ADJOINT,
        ],
        needs_diagonal: true,
        needs_hermitian: false,
        needs_stencil: false,
    };

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        Ok(Neumann {
            order: settings.number("order", "a whole number up to 64", |order| *order <= 64)?,
            omega: match settings.given("omega") {
                None | Some("auto") => None,
                Some(_) => {
                    let expected = "`auto` or a number above 0 and below 2";
                    Some(settings.number("omega", expected, |w| *w > 0.0 && *w < 2.0)?)
                }
            },
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
        let said = [Some(format!("order={}", self.order)), self.omega.map(|omega| format!("omega={omega}"))];
        name_with("neumann", said.into_iter().flatten().chain(adjoint::said(self.adjoint)).collect())
    }
    fn set_up(&mut self, a: &Csr<T>, _: &mut Setup<'_>) -> Result<Parts<T>> {
        let (inverse, n) = (inverse_diagonal(a)?, a.rows());
        let damping = match self.omega {
            Some(omega) => omega,
            None => {
                let largest = spectrum(OPERATION, &*a.wide()?, LARGE)?.largest;
                if largest > LARGE { USUAL * LARGE / largest } else { USUAL }
            }
        };
        let omega = T::from_real(damping);
        let d: Vec<T> = inverse.into_iter().map(|d| omega * d).collect();
        let conjugate = self.adjoint.then(|| d.iter().map(|d| d.conj()).collect());
        let parts = Parts::new().vector(d).scratch(n).scratch(n).report("damping", format!("{damping:.4}"));
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
