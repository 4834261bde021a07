//! Chebyshev's polynomial in the matrix scaled by its diagonal.
use super::amg::{Spectrum, spectrum};
use crate::named::{OptionInfo, Settings};
use crate::{Handles, Parts, PrecondInfo, Preconditioner, Setup};
use lacuna_engine::{Error, Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::algebra::check_hermitian;
use lacuna_formats::{Csr, rounded};
use std::borrow::Cow;

/// `M` is `degree` steps of Chebyshev's iteration for `D⁻¹ A`, starting from zero and damping the interval
/// `[λ/ratio, λ]`. Here `λ = min(1.1 ρ, ‖D⁻¹A‖∞)`, and `ρ` is the estimate of the largest eigenvalue from 10
/// Lanczos steps.
///
/// * Needs: a Hermitian matrix with a positive diagonal. `M` is positive definite if the spectrum of `D⁻¹ A`
///   is positive and bounded by `λ`.
/// * Cost of an application: `degree − 1` products with `A`, fused with all vector work; no dot product.
///   Storage: 3 vectors.
/// * Set-up: 10 products. New values: the same cost again.
/// * Reference: Saad 2003, Iterative Methods for Sparse Linear Systems, section 12.3.2, doi:10.1137/1.9780898718003.
#[derive(Clone, Copy, Debug)]
pub struct Chebyshev {
    /// Degree in `D⁻¹ A` plus one; an application takes one product less.
    pub degree: usize,
    /// The ratio of the largest eigenvalue to the smallest that is damped.
    pub ratio: f64,
}

impl Default for Chebyshev {
    fn default() -> Self {
        Chebyshev { degree: 4, ratio: 30.0 }
    }
}

impl Chebyshev {
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: "chebyshev",
        about: "Chebyshev's polynomial of the matrix scaled by its diagonal; products alone",
        options: &[
            OptionInfo { key: "degree", default: "4", about: "products of an application plus one, 1 to 64" },
            OptionInfo {
                key: "ratio",
                default: "30",
                about: "largest eigenvalue over smallest damped, above 1",
            },
        ],
        needs_diagonal: true,
        needs_hermitian: true,
        needs_stencil: false,
    };

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        Ok(Chebyshev {
            degree: settings.number("degree", "a whole number from 1 to 64", |d| (1..=64).contains(d))?,
            ratio: settings
                .number("ratio", "a finite number above 1", |r: &f64| *r > 1.0 && r.is_finite())?,
        })
    }
}

impl<T: Scalar> Preconditioner<T> for Chebyshev {
    fn name(&self) -> Cow<'static, str> {
        format!("chebyshev:degree={},ratio={}", self.degree, self.ratio).into()
    }
    fn set_up(&mut self, a: &Csr<T>, setup: &mut Setup<'_>) -> Result<Parts<T>> {
        const OPERATION: &str = "preconditioner `chebyshev`";
        check_hermitian(OPERATION, a)?;
        setup.check()?;
        let Spectrum { diagonal, largest: high } = spectrum(OPERATION, &*a.wide()?, 0.0)?;
        if let Some(row) = diagonal.iter().position(|d| d.re() <= 0.0) {
            let message = format!("the diagonal entry is {}; expected a positive one", diagonal[row]);
            return Err(Error::Entry { operation: OPERATION.into(), row, column: row, message });
        }
        let centre = T::Wide::from_real(high * (1.0 + 1.0 / self.ratio) / 2.0);
        let w: Vec<T::Wide> =
            diagonal.iter().map(|&d| T::Wide::from_real(1.0).quotient(centre * d)).collect();
        let w: Vec<T> = rounded(w);
        if let Some(row) = w.iter().position(|w| !w.finite()) {
            let message =
                format!("the diagonal entry is {}; expected one with a finite reciprocal", diagonal[row]);
            return Err(Error::Entry { operation: OPERATION.into(), row, column: row, message });
        }
        let bounds = format!("{:.4} to {high:.4}", high / self.ratio);
        Ok(Parts::new().vector(w).scratch(a.rows()).scratch(a.rows()).report("spectrum damped", bounds))
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        let ([w], [s, t]) = (on.vectors(), on.scratch());
        let last = self.degree - 1;
        // The iterates alternate between z and s, so that the last is in z.
        let place = |j: usize| if (last - j).is_multiple_of(2) { z } else { s };
        let mut then = Some(then);
        let mut ended = |j: usize, pass: Pass<T>| match then.take_if(|_| j == last) {
            Some(then) => pass.then(then),
            None => pass,
        };
        k.multi_axpy_dot(ended(0, Pass::new("first").set(place(0), w * r)));
        // The recurrence of the polynomials; its coefficients depend only on the ratio.
        let sigma = (self.ratio + 1.0) / (self.ratio - 1.0);
        let mut rho = 1.0 / sigma;
        for j in 1..=last {
            let (x, new) = (place(j - 1), place(j));
            let before = rho;
            rho = 1.0 / (2.0 * sigma - rho);
            let (c, by) = (rho * before, 1.0 + rho * before);
            let step = by * x + by * (w * r) - by * (w * t);
            let step = if j == 1 { step } else { step - c * new };
            k.spmv_dot(&on.a(), x, t, ended(j, Pass::new("next").set(new, step)));
        }
    }
    fn is_hermitian(&self) -> bool {
        true
    }
}
