//! Least-squares and least-norm methods for matrices of any shape. They stop at
//! `‖Aᴴ (b − A x)‖ ≤ rtol ‖Aᴴ b‖`.
mod bidiagonal;
mod cgls;
mod craig;
mod lsmr;
mod lsqr;

pub use cgls::Cgls;
pub use craig::Craig;
pub use lsmr::Lsmr;
pub use lsqr::Lsqr;
