//! Eigenvalues of large sparse Hermitian matrices, on any backend.
//!
//! | method | for | by |
//! |---|---|---|
//! | `lobpcg` | the smallest or largest of `A x = λ B x` | a block with a preconditioner, on a basis kept orthonormal |
//! | `lanczos` | the largest, and those near a number | thick restarts; factors of `A − σ I` |
//! | `dense` | small matrices | Householder's reduction and QL steps |
//!
//! A value that is missed looks like success: residuals are small, and nothing is wrong but the set. So every result is checked from
//! the matrices and the pairs alone: residuals in twice the working precision, orthogonality, and [completeness](Complete), by the
//! inertia of a shifted matrix or by a second start.
mod block;
mod complete;
mod lanczos;
mod lobpcg;
mod outcome;
mod problem;
mod search;
mod shift;
mod small;
mod solve;
mod trust;

pub use outcome::{Complete, Eigen, EigenOutcome};
pub use problem::{Check, EIGEN_METHODS, EigenProblem, EigenProgress, Which};
pub use small::Small;
