//! Sparse matrices on the host.
//!
//! - [`Csr`] is the format everything else is built from; [`Triplets`] assembles it from entries in any order.
//! - [`Structure`] says what a matrix looks like, [`spy`] counts entries for a picture of it.
mod assemble;
mod csr;
mod structure;
mod triplets;

pub use csr::Csr;
pub use structure::{Structure, spy};
pub use triplets::Triplets;
