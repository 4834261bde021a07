//! Construction of a matrix: from entries in any order, a function of the row, equations, finite elements, or borrowed arrays.
//!
//! The functions here are for crates that make matrices, readers and generators: `operation` is theirs and starts the message
//! of every error. Nothing that they are given is believed. A program uses [`Triplets`](crate::Triplets),
//! [`Csr::new`](crate::Csr::new), [`Assembly`](crate::Assembly) and [`Elements`](crate::Elements).
pub(crate) mod assemble;
pub(crate) mod assembly;
pub(crate) mod csr_ref;
pub(crate) mod cut;
mod rows;
pub(crate) mod triplets;

pub use crate::storage::checks::check_sizes;
pub use assemble::{Entry, Piece, assemble, pieces};
pub use csr_ref::compressed;
pub use rows::{Row, from_rows, rectangular};
