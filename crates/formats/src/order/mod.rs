//! Graph algorithms on a matrix: orders, colours, parts and matchings of its rows.
pub(crate) mod assignment;
pub(crate) mod blocks;
pub(crate) mod colours;
pub(crate) mod components;
pub(crate) mod dissection;
pub(crate) mod graph;
pub(crate) mod logarithm;
pub(crate) mod matching;
pub(crate) mod minimum_degree;
pub(crate) mod parts;
pub(crate) mod permutation;
pub(crate) mod reorder;
pub(crate) mod transversal;
