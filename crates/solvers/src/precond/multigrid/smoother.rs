//! The smoothers of a level.
use lacuna_engine::{Double, Scalar};
use lacuna_formats::{parallel, rounded};

/// The kind of smoother.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Smoothing {
    /// `x ← x + W (b − A x)` with the diagonal matrix `W` that minimises `‖I − W A‖` in the Frobenius norm.
    Spai0,
    /// Chebyshev's polynomial of degree 2 in `D⁻¹ A` on the upper part of the spectrum. For Hermitian matrices.
    Chebyshev,
}

/// The part of the spectrum that Chebyshev's polynomial damps, in units of the estimated radius.
const PART: [f64; 2] = [0.3, 1.1];

/// The coefficient `c` of the second step `d ← c d + (1 + c) W r`, `x ← x + d` of Chebyshev's iteration,
/// whose first step is `d ← W r`, `x ← x + d`. It depends only on the ratio of the ends of the spectrum.
pub(super) fn second_step() -> f64 {
    let sigma = (PART[1] + PART[0]) / (PART[1] - PART[0]);
    1.0 / (2.0 * sigma * sigma - 1.0)
}

/// The entry of `W` for an entry of the diagonal.
fn chebyshev_weight<T: Scalar>(radius: f64, norm: f64) -> impl Fn(T) -> T {
    let high = (PART[1] * radius).min(norm);
    let centre = T::from_real(2.0 / (high * (1.0 + PART[0] / PART[1])));
    move |diagonal| centre * T::one().quotient(diagonal)
}

/// The diagonal matrix `W` of a smoother.
pub(in crate::precond) enum Diagonal<T> {
    /// Its entries.
    Each(Vec<T>),
    /// The number that all entries are.
    All(T),
}

/// The smoother of a level: its kind and its diagonal matrix.
pub(in crate::precond) struct Smoother<T> {
    pub(in crate::precond) kind: Smoothing,
    pub(in crate::precond) diagonal: Diagonal<T>,
}

impl<T: Double> Smoother<T> {
    /// With the weights of SPAI(0).
    pub(in crate::precond) fn spai0(weights: Vec<T>) -> Self {
        Smoother { kind: Smoothing::Spai0, diagonal: Diagonal::Each(weights) }
    }

    /// With the diagonal `D`, an estimate of the spectral radius of `D⁻¹ A`, which may be a little low, and
    /// its bound `‖D⁻¹A‖∞`.
    pub(in crate::precond) fn chebyshev(diagonal: &[T], radius: f64, norm: f64) -> Self {
        let weight = chebyshev_weight(radius, norm);
        let weights = parallel::collect(diagonal.len(), 1 << 14, |i| weight(diagonal[i]));
        Smoother { kind: Smoothing::Chebyshev, diagonal: Diagonal::Each(weights) }
    }

    /// The same for a matrix whose diagonal entries are all equal.
    pub(in crate::precond) fn chebyshev_of(diagonal: T, radius: f64, norm: f64) -> Self {
        let weight = chebyshev_weight(radius, norm);
        Smoother { kind: Smoothing::Chebyshev, diagonal: Diagonal::All(weight(diagonal)) }
    }

    /// Takes the weights out, rounded to a type; the kind stays.
    pub(in crate::precond) fn moved<U: Scalar<Wide = T>>(&mut self) -> Smoother<U> {
        let diagonal = match std::mem::replace(&mut self.diagonal, Diagonal::Each(Vec::new())) {
            Diagonal::Each(weights) => Diagonal::Each(rounded(weights)),
            Diagonal::All(weight) => Diagonal::All(weight.converted()),
        };
        Smoother { kind: self.kind, diagonal }
    }

    /// The first weight that is too large for a type, with its row.
    pub(in crate::precond) fn overflows<U: Scalar>(&self) -> Option<(usize, T)> {
        let weights = match &self.diagonal {
            Diagonal::Each(weights) => &weights[..],
            Diagonal::All(weight) => std::slice::from_ref(weight),
        };
        let row = parallel::find_first(weights.len(), 1 << 14, |i| !weights[i].converted::<U>().finite())?;
        Some((row, weights[row]))
    }

    pub(in crate::precond) fn name(&self) -> &'static str {
        match self.kind {
            Smoothing::Spai0 => "spai0",
            Smoothing::Chebyshev => "chebyshev",
        }
    }
}
