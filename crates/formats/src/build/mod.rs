//! Construction of a matrix: from entries in any order, equations, finite elements, or borrowed arrays.
pub(crate) mod assemble;
pub(crate) mod assembly;
pub(crate) mod csr_ref;
pub(crate) mod cut;
pub(crate) mod triplets;
