//! Sparse matrices on the host.
//!
//! - [`Csr`] is the format everything else is built from; [`Triplets`] assembles it from entries in any order.
//! - [`Spec`] makes model problems of any size by name.
//! - [`mm`] reads and writes Matrix Market files.
//! - [`open`] takes either, a file or a name.
//! - [`Structure`] says what a matrix looks like, [`spy`] counts entries for a picture of it.
mod assemble;
mod csr;
mod generate;
pub mod mm;
mod source;
mod structure;
mod triplets;

pub use csr::Csr;
pub use generate::{Generator, Spec};
pub use source::{field, open};
pub use structure::{Structure, spy};
pub use triplets::Triplets;
