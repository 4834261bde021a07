//! How a matrix comes into being: from entries in any order, from equations, from elements, from arrays of others.
pub(crate) mod assemble;
pub(crate) mod assembly;
pub(crate) mod csr_ref;
pub(crate) mod cut;
pub(crate) mod triplets;
