//! Least squares and least norms: methods for matrices of any shape, which meet `‖Aᴴ (b − A x)‖ ≤ rtol ‖Aᴴ b‖`.
mod bidiagonal;
mod cgls;
mod craig;
mod lsmr;
mod lsqr;

pub use cgls::Cgls;
pub use craig::Craig;
pub use lsmr::Lsmr;
pub use lsqr::Lsqr;
