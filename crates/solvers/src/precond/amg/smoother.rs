//! What smooths on a level.
use super::AmgOptions;
use super::rows::Rows;
use lacuna_core::Scalar;
use rayon::prelude::*;

/// Which smoother.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Smoothing {
    /// `x ← x + W (b − A x)` with the diagonal matrix `W` that makes `‖I − W A‖` least in Frobenius' norm.
    Spai0,
    /// Chebyshev's polynomial of degree 2 in `D⁻¹ A` on the upper part of the spectrum. For Hermitian matrices.
    Chebyshev,
}

/// The part of the spectrum that Chebyshev's polynomial damps, in units of the estimated radius.
const PART: [f64; 2] = [0.3, 1.1];

/// `c` of the second step `d ← c d + (1 + c) W r`, `x ← x + d` of Chebyshev's iteration, where the first is `d ← W r`,
/// `x ← x + d`. It depends on the ratio of the ends of the spectrum alone.
pub(super) fn second_step() -> f64 {
    let sigma = (PART[1] + PART[0]) / (PART[1] - PART[0]);
    1.0 / (2.0 * sigma * sigma - 1.0)
}

/// A smoother of a level: how, and its diagonal matrix `W`.
pub(super) struct Smoother<T> {
    pub(super) kind: Smoothing,
    pub(super) diagonal: Vec<T>,
}

impl<T: Scalar> Smoother<T> {
    /// Whether [`Smoother::new`] looks at the radius.
    pub(super) fn needs_radius(amg: &AmgOptions, rows: &Rows<T>) -> bool {
        amg.smoothing == Smoothing::Chebyshev && rows.hermitian
    }

    /// With an estimate of the spectral radius of `D⁻¹ A`; SPAI(0) where the matrix is not Hermitian.
    pub(super) fn new(amg: &AmgOptions, rows: &Rows<T>, rho: f64) -> Self {
        if !Self::needs_radius(amg, rows) {
            return Smoother { kind: Smoothing::Spai0, diagonal: rows.spai.clone() };
        }
        // The estimate is a little low; the norm is a bound.
        let high = (PART[1] * rho).min(rows.norm);
        let centre = T::from_real(2.0 / (high * (1.0 + PART[0] / PART[1])));
        let inverse = |d: &T| centre * T::one().quotient(*d);
        let diagonal = rows.diagonal.par_iter().with_min_len(1 << 14).map(inverse).collect();
        Smoother { kind: Smoothing::Chebyshev, diagonal }
    }

    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Smoothing::Spai0 => "spai0",
            Smoothing::Chebyshev => "chebyshev",
        }
    }
}
