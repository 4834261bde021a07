//! The loops of a pass over a piece of the vectors: updates and canonical dot products.
pub(crate) mod dot;
pub(crate) mod fused;
pub(crate) mod sweep;
pub(crate) mod update;
