//! What a matrix looks like, and which format suits it.
pub(crate) mod blocks;
pub(crate) mod footprint;
pub(crate) mod lengths;
pub(crate) mod mirror;
pub(crate) mod select;
pub(crate) mod structure;
