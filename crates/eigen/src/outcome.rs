//! The result of an eigenvalue problem.
use lacuna_engine::Reason;
use std::fmt;
use std::time::Duration;

/// Whether values are missing among those that were sought.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Complete {
    /// All eigenvalues of the matrix were computed.
    All,
    /// The signs of the pivots of `A − σ B` count as many eigenvalues as were found (Sylvester's law of inertia).
    Counted,
    /// A second start found nothing between those that were found.
    Probed,
    /// So many are missing, by count or by a second start.
    Missing(usize),
    /// Not checked, for this reason.
    Unchecked(String),
}

impl fmt::Display for Complete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Complete::All => f.write_str("complete: all eigenvalues were computed"),
            Complete::Counted => f.write_str("complete: counted by the inertia of a shifted matrix"),
            Complete::Probed => f.write_str("a second start found no others"),
            Complete::Missing(count) => write!(f, "{count} missing"),
            Complete::Unchecked(why) => write!(f, "completeness not checked: {why}"),
        }
    }
}

/// How a search for eigenvalues ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EigenOutcome {
    /// [`Reason::Converged`] if all wanted pairs meet their tolerance by products made anew, the vectors are orthonormal, and no
    /// value is known to be missing.
    pub reason: Reason,
    /// `‖A x − λ B x‖` of each pair, for `‖x‖_B = 1`, summed in twice the working precision. Without a mass matrix there is an
    /// eigenvalue within that distance of each value.
    pub residuals: Vec<f64>,
    /// How far each value may be from an eigenvalue: the residual, or, where values are known to be complete and apart, its square over
    /// the distance to the others (Kato and Temple); with a mass matrix an estimate.
    pub bounds: Vec<f64>,
    /// Which pairs meet their tolerance.
    pub converged: Vec<bool>,
    /// Pairs whose tolerance is that of rounding, as `rtol` asked for less.
    pub by_rounding: Vec<bool>,
    /// Whether values are missing.
    pub complete: Complete,
    /// `max |Xᴴ B X − I|`
    pub orthogonality: f64,
    /// Iterations of a block, or products of Lanczos' method.
    pub iterations: u64,
    /// Products of `A` with a vector, or solves of the shifted matrix.
    pub products: u64,
    /// Applications of the preconditioner.
    pub preconditionings: u64,
    /// Cycles of Lanczos' method after the first.
    pub restarts: u64,
    /// Searches that found values which were missed before.
    pub second_starts: u64,
    /// The largest residual over its tolerance, for each iteration or cycle of the last search.
    pub history: Vec<f64>,
    /// Set-up of the preconditioner or the factors.
    pub setup: Duration,
    /// All of it.
    pub time: Duration,
    /// The method that was taken, the preconditioner, and why.
    pub choices: Vec<String>,
    /// What is worth knowing.
    pub notes: Vec<String>,
}

impl EigenOutcome {
    /// Whether the pairs are what was asked for.
    pub fn converged(&self) -> bool {
        self.reason == Reason::Converged
    }
}

/// Eigenvalues and eigenvectors.
#[derive(Clone, Debug)]
pub struct Eigen<T> {
    /// The eigenvalues: from the smallest, from the largest, or from the nearest on.
    pub values: Vec<f64>,
    /// The eigenvectors, `‖x‖_B = 1`, each with a real positive largest element. Pairs are handed back whatever the reason.
    pub vectors: Vec<Vec<T>>,
    /// How the search ended.
    pub outcome: EigenOutcome,
}
