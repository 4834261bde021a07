//! Least-squares and least-norm methods for matrices of any shape. They stop at
//! `‖Aᴴ (b − A x)‖ ≤ rtol ‖Aᴴ b‖`.
//!
//! A preconditioner `M` is applied from the right: `min ‖b − A M y‖` with `x = x₀ + M y`. Directions are multiplied
//! by `M` before they are summed into `x`, so `y` is not stored. The recurrences follow `‖Mᴴ Aᴴ r‖`, scaled by its
//! ratio to `‖Aᴴ r‖` at the last restart; the confirmation computes `‖Aᴴ r‖`. If the minimiser is not unique, the
//! one of least `‖M⁻¹ (x − x₀)‖` is found.
mod bidiagonal;
mod cgls;
mod craig;
mod lsmr;
mod lsqr;

pub use cgls::Cgls;
pub use craig::Craig;
pub use lsmr::Lsmr;
pub use lsqr::Lsqr;
