//! LU by dense fronts (Duff and Reid 1983, doi:10.1145/356044.356047; Liu 1992, doi:10.1137/1034004) on the pattern of `A + Aᵀ`, so
//! that the cost is known before. Pivots are sought among the rows of a front alone; one that is too small is replaced (Li and Demmel
//! 2003, doi:10.1145/779359.779361), and the method around corrects for it.
mod front;
mod numeric;
mod solve;
mod tree;

use std::sync::Arc;
pub(crate) use tree::Tree;

/// Factors of a block.
pub(crate) struct Fronts<W> {
    tree: Arc<Tree>,
    fronts: Vec<Front<W>>,
    /// How many pivots were replaced.
    pub(crate) replaced: usize,
}

/// The part of the factors that a front holds, in columns.
struct Front<W> {
    /// All rows of the columns that are eliminated: `L` without its unit diagonal, and `U`.
    columns: Vec<W>,
    /// The rows that are eliminated, of the columns passed on.
    beside: Vec<W>,
    /// The row, of those that are eliminated, that each of them came from.
    exchanged: Vec<u32>,
}
