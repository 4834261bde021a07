//! Chebyshev's iteration: needs bounds on the spectrum in place of reductions.
use super::method::{Listed, MethodInfo, Needs, Options};
use super::spectrum::largest_eigenvalue;
use crate::System;
use crate::named::{OptionInfo, Settings};
use lacuna_engine::{Formula, Pass, Recorder, Result};

/// Chebyshev's semi-iteration on an interval that contains the spectrum of `M A`. Its coefficients do not
/// depend on dot products; the one reduction per iteration is for the stopping test.
///
/// * Solves: `M A` with real positive eigenvalues, as for Hermitian positive definite `A` and `M`.
/// * The interval is `low` to `high`. A missing bound is estimated: `high` by 20 steps of the power iteration
///   with a margin of 10 %, `low` as `high / ratio`. Eigenvalues below `low` converge slowly, those above
///   `high` diverge.
/// * Cost of an iteration: one product with `A`, one with `M`; two sweeps. Storage: 3 vectors, 4 with a
///   preconditioner, and the same number again for the estimate.
/// * Outcome: `Diverged` if an eigenvalue lies far outside the interval.
/// * Reference: Golub and Varga 1961, doi:10.1007/BF01386013; Saad 2003, Algorithm 12.1, doi:10.1137/1.9780898718003.
#[derive(Clone, Copy, Debug)]
pub struct ChebyshevIteration {
    /// The smallest eigenvalue of `M A`, if known.
    pub low: Option<f64>,
    /// The largest, if known.
    pub high: Option<f64>,
    /// `high / low`, used if `low` is not known.
    pub ratio: f64,
}

impl Default for ChebyshevIteration {
    fn default() -> Self {
        ChebyshevIteration { low: None, high: None, ratio: 200.0 }
    }
}

impl Listed for ChebyshevIteration {
    const INFO: MethodInfo = MethodInfo {
        name: "chebyshev",
        about: "Chebyshev's iteration on an interval of eigenvalues; Hermitian positive definite",
        needs: Needs::PositiveDefinite,
        adjoint: false,
        options: &[
            OptionInfo {
                key: "low",
                default: "0",
                about: "the smallest eigenvalue of M A; 0 for high / ratio",
            },
            OptionInfo {
                key: "high",
                default: "0",
                about: "the largest eigenvalue of M A; 0 to estimate it",
            },
            OptionInfo { key: "ratio", default: "200", about: "high / low where low is not given" },
        ],
    };

    fn named(settings: &Settings<'_>, _: &Options) -> Result<Self> {
        let bound = |key| settings.number(key, "a number from 0", |v: &f64| *v >= 0.0 && v.is_finite());
        let known = |v: f64| Some(v).filter(|v| *v > 0.0);
        let ratio = settings.number("ratio", "a number above 1", |r: &f64| *r > 1.0 && r.is_finite())?;
        let (low, high) = (known(bound("low")?), known(bound("high")?));
        if let (Some(low), Some(high)) = (low, high) {
            settings.below(["low", "high"], [low, high])?;
        }
        Ok(ChebyshevIteration { low, high, ratio })
    }

    fn record(&self, k: &mut Recorder<'_>, s: &System<'_>) {
        let (a, b, x) = (s.a, s.b, s.x);
        let [r, d, q] = k.vectors(s.n());
        let z = s.preconditioned(k, r);
        let [rr, low, high, theta, delta, sigma, rho, next] = k.cells();

        match self.high {
            Some(value) => k.multi_axpy_dot(Pass::new("high").eval(high, value)),
            None => largest_eigenvalue(k, s, high),
        }
        let bounds = match self.low {
            Some(value) => Pass::new("low").eval(low, value),
            None => Pass::new("low").eval(low, high / self.ratio),
        };
        let bounds = bounds.eval(theta, 0.5 * (high + low)).eval(delta, 0.5 * (high - low));
        k.multi_axpy_dot(bounds.eval(sigma, theta / delta));

        let residual = Pass::new("residual").set(r, b - q).dot(rr, r, r);
        let start = Pass::new("start").set(d, z / theta).eval(rho, 1.0 / Formula::from(sigma));
        let step = Pass::new("step").set(x, x + d).set(r, r - q).dot(rr, r, r);
        let step = s.count(step, rr).eval(next, 1.0 / (2.0 * sigma - rho));
        let turn = Pass::new("turn").set(d, (next * rho) * d + (2.0 * next / delta) * z).eval(rho, next);

        k.restart(|k| {
            k.spmv_dot(a, x, q, s.confirm(residual, rr));
            s.precondition(k, r, z, start);
        });
        k.each(|k| {
            k.spmv_dot(a, d, q, Pass::nothing());
            k.multi_axpy_dot(step);
            s.precondition(k, r, z, turn);
        });
    }
}
