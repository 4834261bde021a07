//! Which couplings are strong, and the graph of these.
use super::rows::{RowCouplings, coupling};
use crate::random::mixed;
use lacuna_engine::{Double, Result};
use lacuna_formats::algebra::TransposePlan;
use lacuna_formats::{Csr, parallel};
use std::borrow::Cow;
use std::ops::Range;

/// Rows that a thread takes at a time.
const GRAIN: usize = 1 << 11;

/// The graph of the strong couplings, either way. A row may be among its own neighbours.
pub(super) struct Graph<'a> {
    ptr: Cow<'a, [u32]>,
    neighbours: Cow<'a, [u32]>,
}

impl Graph<'_> {
    pub(super) fn len(&self) -> usize {
        self.ptr.len() - 1
    }
    #[inline(always)]
    pub(super) fn of(&self, i: usize) -> &[u32] {
        &self.neighbours[self.ptr[i] as usize..self.ptr[i + 1] as usize]
    }
    /// The graph as a backend takes it.
    pub(super) fn arrays(&self) -> lacuna_engine::Graph<'_> {
        lacuna_engine::Graph { row_ptr: &self.ptr, neighbours: &self.neighbours }
    }
    /// Whether a row has no neighbour but itself.
    pub(super) fn is_isolated(&self, i: usize) -> bool {
        self.of(i).iter().all(|&j| j as usize == i)
    }
}

/// Which entries of a matrix are strong, each by its own coupling.
pub(super) enum Filter {
    /// All of them.
    All,
    /// A bit for each entry, words of a row's own.
    Bits {
        /// The first word of each row.
        ptr: Vec<u32>,
        /// From the lowest bit on.
        words: Vec<u64>,
    },
}

impl Filter {
    /// Calls `f` for each strong one of the `entries` of row `i`, in their order.
    #[inline(always)]
    pub(super) fn for_each(&self, i: usize, entries: usize, mut f: impl FnMut(usize)) {
        match self {
            Filter::All => (0..entries).for_each(f),
            Filter::Bits { ptr, words } => {
                for (first, word) in (0..).step_by(64).zip(&words[ptr[i] as usize..ptr[i + 1] as usize]) {
                    let mut left = *word;
                    while left != 0 {
                        f(first + left.trailing_zeros() as usize);
                        left &= left - 1;
                    }
                }
            }
        }
    }

    /// Whether entry `k` of row `i` is strong.
    #[inline(always)]
    pub(super) fn is_strong(&self, i: usize, k: usize) -> bool {
        match self {
            Filter::All => true,
            Filter::Bits { ptr, words } => words[ptr[i] as usize + k / 64] >> (k % 64) & 1 == 1,
        }
    }
}

/// Where couplings begin to be strong on a level: `min(θ ½ˡ, ½ · median over rows of the strongest)`.
///
/// The second term is for stencils of many equal couplings: those of 27 points are 1/26 each, and θ = 0.08 leaves none.
pub(super) fn threshold<T: Double>(rows: &RowCouplings<T>, theta: f64, level: usize) -> f64 {
    let first = first_threshold(theta, level);
    let n = rows.strongest.len();
    let coupled = parallel::count(n, 1 << 14, |i| rows.strongest[i] >= 2.0 * first);
    if mostly_above(first, coupled, n) {
        return first;
    }
    below_median(first, rows.strongest.clone())
}

/// `θ ½ˡ`
pub(super) fn first_threshold(theta: f64, level: usize) -> f64 {
    theta * 0.5f64.powi(level as i32)
}

/// Whether it is below half the median of the strongest couplings of `n` rows, so many of which have one of at least twice it.
pub(super) fn mostly_above(first: f64, coupled: usize, n: usize) -> bool {
    2 * coupled > n || first == 0.0
}

/// It, or half the median of the strongest couplings of all rows.
pub(super) fn below_median(first: f64, mut strongest: Vec<f64>) -> f64 {
    let middle = strongest.len() / 2;
    let (_, median, _) = strongest.select_nth_unstable_by(middle, f64::total_cmp);
    first.min(0.5 * *median)
}

/// Where couplings begin to be strong, by row. A row whose couplings are all below the threshold of the level, but strong in
/// sum, has a threshold of its own: half its strongest. Coarse rows have dozens of weak couplings to rows of their like; without
/// these a near-null vector would have a hole there.
struct Limits {
    threshold: f64,
    /// Those of rows, if any has its own.
    own: Vec<f64>,
    hermitian: bool,
}

impl Limits {
    fn new<T: Double>(rows: &RowCouplings<T>, threshold: f64) -> Self {
        let n = rows.strongest.len();
        let is_own = |i: usize| rows.strongest[i] <= threshold && rows.strong_in_sum[i];
        let limit = |i: usize| if is_own(i) { 0.5 * rows.strongest[i] } else { threshold };
        let any = parallel::find_first(n, GRAIN, is_own).is_some();
        let own = if any { parallel::collect(n, GRAIN, limit) } else { Vec::new() };
        Limits { threshold, own, hermitian: rows.hermitian }
    }

    /// That of an entry. In a Hermitian matrix it is the lower one of its two rows, so that the filtered matrix is Hermitian too.
    #[inline(always)]
    fn of(&self, i: usize, j: usize) -> f64 {
        match self.own.get(i) {
            None => self.threshold,
            Some(limit) if self.hermitian => limit.min(self.own[j]),
            Some(limit) => *limit,
        }
    }
}

/// The strong couplings of a matrix: those above a threshold, and the graph of them.
///
/// # Errors
/// [`lacuna_engine::Error::OutOfMemory`].
pub(super) fn strong<'a, T: Double>(
    a: &'a Csr<T>,
    rows: &RowCouplings<T>,
    threshold: f64,
) -> Result<(Filter, Graph<'a>)> {
    if rows.weakest > threshold && rows.hermitian {
        let graph = Graph { ptr: Cow::Borrowed(a.row_ptr()), neighbours: Cow::Borrowed(a.col_idx()) };
        return Ok((Filter::All, graph));
    }
    let limits = Limits::new(rows, threshold);
    let filtered = parallel::map(a.row_shares(), |run| {
        let [mut ends_of_columns, mut columns, mut ends_of_words] = [const { Vec::new() }; 3];
        let mut words = Vec::new();
        let mut sides = [0u64; 2];
        for i in run {
            let first = words.len();
            words.resize(first + a.row_slices(i).0.len().div_ceil(64), 0u64);
            for (k, (j, v)) in a.row_entries(i).enumerate() {
                if j == i || coupling(v, rows.scale[i], rows.scale[j]) > limits.of(i, j) {
                    words[first + k / 64] |= 1 << (k % 64);
                    if j != i {
                        columns.push(j as u32);
                        let side = &mut sides[usize::from(i < j)];
                        *side = side.wrapping_add(edge(i, j));
                    }
                }
            }
            ends_of_columns.push(columns.len() as u32);
            ends_of_words.push(words.len() as u32);
        }
        (ends_of_columns, columns, ends_of_words, words, sides)
    });
    let side = |k: usize| filtered.iter().fold(0u64, |sum, part| sum.wrapping_add(part.4[k]));
    let graph_ptr = ends(filtered.iter().map(|part| &part.0[..]));
    let word_ptr = ends(filtered.iter().map(|part| &part.2[..]));
    let neighbours = parallel::concat(&filtered.iter().map(|part| &part.1[..]).collect::<Vec<_>>());
    let words = parallel::concat(&filtered.iter().map(|part| &part.3[..]).collect::<Vec<_>>());
    let graph = if side(0) == side(1) {
        Graph { ptr: Cow::Owned(graph_ptr), neighbours: Cow::Owned(neighbours) }
    } else {
        symmetrised(&graph_ptr, &neighbours)?
    };
    Ok((Filter::Bits { ptr: word_ptr, words }, graph))
}

/// A hash of an edge, the same from both sides: sums of them over either side of the diagonal are equal where the graph is
/// symmetric, and elsewhere once in 2^64.
fn edge(i: usize, j: usize) -> u64 {
    mixed((i.min(j) as u64) << 32 | i.max(j) as u64)
}

/// Where rows start and the last one ends, by the ends of the rows of each run.
fn ends<'r>(runs: impl Iterator<Item = &'r [u32]>) -> Vec<u32> {
    let mut before = 0;
    let mut parts = vec![(0, &[0][..])];
    for run in runs {
        parts.push((before, run));
        before += run.last().map_or(0, |end| *end);
    }
    let moved = |(before, run): (u32, &[u32])| run.iter().map(|end| before + end).collect::<Vec<_>>();
    parallel::concat(&parallel::map(parts, moved))
}

/// The graph with each edge both ways.
///
/// # Errors
/// [`lacuna_engine::Error::OutOfMemory`].
fn symmetrised(ptr: &[u32], neighbours: &[u32]) -> Result<Graph<'static>> {
    let n = ptr.len() - 1;
    let transpose = TransposePlan::of_pattern(ptr, neighbours, n)?;
    let (other_ptr, others) = transpose.pattern();
    let merge = |run: Range<usize>| {
        let (mut ends, mut both) = (Vec::with_capacity(run.len()), Vec::new());
        for i in run {
            let mut own = &neighbours[ptr[i] as usize..ptr[i + 1] as usize];
            let mut other = &others[other_ptr[i] as usize..other_ptr[i + 1] as usize];
            while let Some(&next) = own.first().into_iter().chain(other.first()).min() {
                own = &own[usize::from(own.first() == Some(&next))..];
                other = &other[usize::from(other.first() == Some(&next))..];
                both.push(next);
            }
            ends.push(both.len() as u32);
        }
        (ends, both)
    };
    let merged = parallel::map(parallel::ranges(n, GRAIN), merge);
    let ends = ends(merged.iter().map(|(ends, _)| &ends[..]));
    let both = parallel::concat(&merged.iter().map(|(_, both)| &both[..]).collect::<Vec<_>>());
    Ok(Graph { ptr: Cow::Owned(ends), neighbours: Cow::Owned(both) })
}
