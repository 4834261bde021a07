//! Complete factorisations of sparse matrices on the host, for direct solves.
//!
//! [`Analysis`] finds an order and counts what a factorisation costs, [`Factors`] makes it and solves with it. There are five
//! kinds; each is tried where it promises least time, and the next one where it fails:
//!
//! | [`Kind`] | for | by |
//! |---|---|---|
//! | `Cholesky` | Hermitian matrices whose diagonal is positive, or negative | `L Lᴴ`, of the negative in that case |
//! | `Symmetric` | other Hermitian matrices | `L B Lᴴ` with pivots of one and two rows |
//! | `Sparse` | little fill | LU column by column |
//! | `Fronts` | more fill | LU by dense fronts, pivots within their rows |
//! | `Pivoted` | where these fail | LU with partial pivoting |
//!
//! The order is that of minimum degree, or nested dissection where that takes so much less work that it pays to look for it.
//! `Sparse` and `Fronts` factor the blocks of the block triangular form. Matrices and factors are in double precision: others are
//! widened first ([`Csr::wide`](lacuna_formats::Csr::wide)). Their bits depend on the matrix and on the kind of processor, never on the number of threads.
mod analysis;
mod arrangement;
mod columns;
mod cost;
mod dot;
mod factors;
mod failure;
mod fronts;
mod hermitian;
mod lu;
mod order;
mod pivoted;
mod sparse;

pub use analysis::{Analysis, Kind};
pub use cost::{Cost, Limits};
pub use factors::{Check, Factors, Inertia, Task};

use lacuna_engine::{Complex64, Scalar};

/// A number type in which factors are computed.
pub trait Number: Scalar + faer::traits::ComplexField {
    /// The sum of the moduli of the parts: to compare entries.
    fn size(self) -> f64 {
        size(self)
    }
}
impl Number for f64 {}
impl Number for Complex64 {}

/// The sum of the moduli of the parts.
pub(crate) fn size<T: Scalar>(v: T) -> f64 {
    v.re().abs() + v.im().abs()
}
