//! Analysis of a matrix, and the choice of a format.
pub(crate) mod blocks;
pub(crate) mod footprint;
pub(crate) mod lengths;
pub(crate) mod mirror;
pub(crate) mod select;
pub(crate) mod structure;
