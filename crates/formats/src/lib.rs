//! Sparse matrices on the host.
//!
//! - [`Csr`] is the format everything else is built from; [`Triplets`] assembles it from entries in any order.
mod assemble;
mod csr;
mod triplets;

pub use csr::Csr;
pub use triplets::Triplets;
