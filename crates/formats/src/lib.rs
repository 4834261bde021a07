//! Sparse matrices on the host.
//!
//! - [`Csr`] is the format everything else is built from; [`Triplets`] assembles it from entries in any order.
//! - [`Spec`] makes model problems of any size by name.
//! - [`Structure`] says what a matrix looks like, [`spy`] counts entries for a picture of it.
mod assemble;
mod csr;
mod generate;
mod structure;
mod triplets;

pub use csr::Csr;
pub use generate::{Generator, Spec};
pub use structure::{Structure, spy};
pub use triplets::Triplets;
