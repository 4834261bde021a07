//! How the rows of each length are divided, for as long as something of that length is on the device.
use crate::survey::balanced;
use lacuna_engine::AnyFormat;
use lacuna_engine::division::{Cuts, Subtree};
use lacuna_engine::sum::SEGMENT;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The rows of one length, divided.
#[derive(Debug)]
pub(crate) struct Division {
    pub(crate) cuts: Cuts,
    /// The subtrees of the canonical sum that each rank has.
    trees: Vec<Vec<Subtree>>,
    /// Whether every rank has all rows.
    pub(crate) whole: bool,
}

impl Division {
    fn new(cuts: Cuts, whole: bool) -> Self {
        let all = Subtree { first: 0, size: cuts.n().div_ceil(SEGMENT).next_power_of_two() };
        let of = |rank| match whole {
            true if cuts.n() > 0 => vec![all],
            _ => cuts.subtrees(rank).collect(),
        };
        let trees = (0..cuts.parts()).map(of).collect();
        Division { cuts, trees, whole }
    }
    /// All segments.
    pub(crate) fn all(&self) -> Range<usize> {
        0..self.cuts.n().div_ceil(SEGMENT)
    }
    /// The segments that a rank computes.
    pub(crate) fn segments(&self, rank: usize) -> Range<usize> {
        if self.whole { self.all() } else { self.cuts.segments(rank) }
    }
    /// The rows that a rank computes.
    pub(crate) fn rows(&self, rank: usize) -> Range<usize> {
        if self.whole { 0..self.cuts.n() } else { self.cuts.rows(rank) }
    }
    /// The subtrees whose sums a rank has.
    pub(crate) fn trees(&self, rank: usize) -> &[Subtree] {
        &self.trees[rank]
    }
}

/// One length in use.
#[derive(Default)]
struct Length {
    /// Blocks of vectors of this length, and rows and columns of matrices.
    users: usize,
    /// The first square matrix with so many rows, by whose entries they are balanced.
    matrix: Option<AnyFormat>,
    division: Option<Arc<Division>>,
}

/// The lengths in use.
pub(crate) struct Lengths {
    ranks: usize,
    /// Lengths below this are kept whole by every rank where there are longer ones.
    pub(crate) whole_below: usize,
    lengths: HashMap<usize, Length>,
}

/// How much longer another length must be for a short one to be kept whole.
const LONGER: usize = 2;

impl Lengths {
    pub(crate) fn new(ranks: usize, whole_below: usize) -> Self {
        Lengths { ranks, whole_below, lengths: HashMap::new() }
    }
    /// Counts a user of a length.
    pub(crate) fn enter(&mut self, n: usize) {
        self.lengths.entry(n).or_default().users += 1;
    }
    /// The same for those of a matrix, which decides the balance if it is the first.
    pub(crate) fn enter_matrix(&mut self, a: &AnyFormat) {
        let (rows, cols) = a.shape();
        [rows, cols].into_iter().for_each(|n| self.enter(n));
        if rows == cols
            && let Some(length) = self.lengths.get_mut(&rows)
        {
            length.matrix.get_or_insert_with(|| a.clone());
        }
    }
    /// Takes a user of a length back; after the last one its rows may be divided in another way.
    pub(crate) fn leave(&mut self, n: usize) {
        if let Some(length) = self.lengths.get_mut(&n) {
            length.users = length.users.saturating_sub(1);
            if length.users == 0 {
                self.lengths.remove(&n);
            }
        }
    }
    /// How the rows of a length are divided. Fixed by the first call.
    pub(crate) fn division(&mut self, n: usize) -> Arc<Division> {
        if let Some(division) = self.lengths.get(&n).and_then(|length| length.division.clone()) {
            return division;
        }
        let (ranks, longest) = (self.ranks, self.lengths.keys().max().copied().unwrap_or(0));
        let whole = n < self.whole_below && longest >= LONGER * n.max(1);
        let length = self.lengths.entry(n).or_default();
        let cuts = match &length.matrix {
            Some(a) if !whole => balanced(a, ranks),
            _ => Cuts::even(n, ranks),
        };
        let division = Arc::new(Division::new(cuts, whole));
        // The matrix is not needed any more.
        (length.matrix, length.division) = (None, Some(division.clone()));
        division
    }
}
