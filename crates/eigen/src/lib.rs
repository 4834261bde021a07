//! Eigenvalues and singular values of large sparse matrices, on any backend.
//!
//! | method | for | by |
//! |---|---|---|
//! | `lobpcg` | the smallest or largest of `A x = λ B x` | a block with a preconditioner, on a basis kept orthonormal |
//! | `lanczos` | the largest, those near a number, and the smallest where factors are cheap | thick restarts; factors of `A − σ B` |
//! | `krylov-schur` | matrices that are not Hermitian | thick restarts in Schur form, complex |
//! | `golub-kahan` | the largest singular values, and the smallest by factors | thick restarts, both sides orthonormal |
//! | `dense` | small matrices | Householder's reduction and QL steps, Jacobi's rotations |
//!
//! A value that is missed looks like success: residuals are small, and nothing is wrong but the set. So every result is checked from
//! the matrices and the pairs alone: residuals in twice the working precision, orthogonality, and [completeness](Complete), by the
//! inertia of a shifted matrix or by a second start.
mod block;
mod choice;
mod complete;
mod filter;
mod general;
mod gram;
mod inverse;
mod jacobi;
mod lanczos;
mod lobpcg;
mod moved;
mod outcome;
mod prepared;
mod problem;
mod programs;
mod search;
mod shift;
mod small;
mod solve;
mod svd;
mod trust;
mod verify;

pub use general::{GeneralEigen, GeneralOutcome, GeneralProblem, Part};
pub use jacobi::SmallSvd;
pub use outcome::{Complete, Eigen, EigenOutcome};
pub use prepared::PreparedEigen;
pub use problem::{Check, EIGEN_METHODS, EigenProblem, EigenProgress, Which};
pub use small::Small;
pub use svd::{Extreme, Svd, SvdOutcome, SvdProblem};
