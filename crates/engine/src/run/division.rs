//! The rows of a length divided among several devices, and sums that each begins and all finish in the canonical order.
use crate::Scalar;
use crate::sum::{SEGMENT, maximum, pair_sum};
use std::ops::Range;

/// The rows of one length, cut into consecutive parts at borders of segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cuts {
    n: usize,
    /// The first segment of each part, and the end of the last.
    borders: Vec<usize>,
}

impl Cuts {
    /// `n` rows in parts of about equal weight, where `before` is the weight of the rows before a row and does not decrease.
    pub fn balanced(n: usize, parts: usize, before: impl Fn(usize) -> usize) -> Self {
        let segments = n.div_ceil(SEGMENT);
        let weight = |segment: usize| before((segment * SEGMENT).min(n));
        let all = weight(segments);
        let border = |part: usize| {
            let wanted = (all as u128 * part as u128 / parts.max(1) as u128) as usize;
            let (mut low, mut high) = (0, segments);
            while low < high {
                let middle = (low + high) / 2;
                if weight(middle) < wanted { low = middle + 1 } else { high = middle }
            }
            // The nearer of the two borders around it.
            let nearer = low > 0 && wanted - weight(low - 1) < weight(low) - wanted;
            low - usize::from(nearer)
        };
        let mut borders: Vec<usize> = (0..parts).map(border).collect();
        borders.push(segments);
        Cuts { n, borders }
    }
    /// `n` rows in parts of about equal length.
    pub fn even(n: usize, parts: usize) -> Self {
        Self::balanced(n, parts, |row| row)
    }
    /// Number of rows.
    pub fn n(&self) -> usize {
        self.n
    }
    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.borders.len() - 1
    }
    /// The segments of a part.
    pub fn segments(&self, part: usize) -> Range<usize> {
        self.borders[part]..self.borders[part + 1]
    }
    /// The rows of a part.
    pub fn rows(&self, part: usize) -> Range<usize> {
        let Range { start, end } = self.segments(part);
        (start * SEGMENT).min(self.n)..(end * SEGMENT).min(self.n)
    }
    /// The part that has a row.
    pub fn owner(&self, row: usize) -> usize {
        self.borders.partition_point(|border| border * SEGMENT <= row) - 1
    }
    /// The subtrees of the canonical sum that a part has: see [`subtrees`].
    pub fn subtrees(&self, part: usize) -> impl Iterator<Item = Subtree> + use<> {
        subtrees(self.segments(part), self.borders[self.parts()])
    }
}

/// Segments `first` to `first + size`, as far as they exist, whose sum is a node of the canonical tree: `size` is a power of
/// two, and `first` is a multiple of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subtree {
    /// The first segment.
    pub first: usize,
    /// The number of segments, beyond the last one too.
    pub size: usize,
}

impl Subtree {
    /// Its segments, of `all` that there are.
    pub fn segments(self, all: usize) -> Range<usize> {
        self.first..(self.first + self.size).min(all)
    }
}

/// A range of the `all` segments of a sum as subtrees, in order: the fewest, at most twice the logarithm of `all`.
pub fn subtrees(range: Range<usize>, all: usize) -> impl Iterator<Item = Subtree> + use<> {
    let Range { start: mut first, end } = range;
    std::iter::from_fn(move || {
        let left = end.checked_sub(first).filter(|left| *left > 0)?;
        let aligned = if first == 0 { usize::MAX } else { 1 << first.trailing_zeros() };
        // Behind the last segment there is nothing that another part could have.
        let fits = if end == all { left.next_power_of_two() } else { 1 << left.ilog2() };
        let tree = Subtree { first, size: aligned.min(fits) };
        first += tree.size.min(left);
        Some(tree)
    })
}

/// The sums of some subtrees, given the sums of all segments.
pub fn tree_sums<'a, T: Scalar>(
    trees: impl Iterator<Item = Subtree> + 'a,
    segments: &'a [T],
) -> impl Iterator<Item = T> + 'a {
    trees.map(|tree| pair_sum(&segments[tree.segments(segments.len())]))
}

/// The maxima of some subtrees, given those of all segments.
pub fn tree_maxima<'a, T: Scalar>(
    trees: impl Iterator<Item = Subtree> + 'a,
    segments: &'a [T],
) -> impl Iterator<Item = T> + 'a {
    trees.map(|tree| maximum(segments[tree.segments(segments.len())].iter().copied()))
}

/// The canonical sum, given those of subtrees that cover all segments, in order; +0 for none.
pub fn finish_sum<T: Scalar>(trees: impl Iterator<Item = (Subtree, T)>) -> T {
    let mut open: Vec<(Subtree, T)> = Vec::new();
    for (mut tree, mut sum) in trees {
        let joins = |left: &(Subtree, T), tree: Subtree| {
            left.0.size == tree.size && left.0.first.is_multiple_of(2 * tree.size)
        };
        while let Some((left, left_sum)) = open.pop_if(|left| joins(left, tree)) {
            (tree, sum) = (Subtree { first: left.first, size: 2 * tree.size }, left_sum + sum);
        }
        open.push((tree, sum));
    }
    // What is left has no neighbour of its size, and goes up as it is.
    open.into_iter().rev().map(|(_, sum)| sum).reduce(|right, left| left + right).unwrap_or_else(T::zero)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sum::{pairwise, segment_sum};

    /// Numbers with magnitudes so different that nearly every order of adding them rounds differently.
    fn spread(n: usize, state: &mut u64) -> Vec<f64> {
        let mut next = || {
            *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            *state >> 11
        };
        (0..n).map(|_| (next() as f64 / 2f64.powi(52) - 1.0) * 2f64.powi((next() % 16) as i32)).collect()
    }

    #[test]
    fn random_lengths_and_cuts_change_no_bit() {
        let mut state = 1;
        for round in 0..300 {
            let n = 1 + (spread(1, &mut state)[0].to_bits() >> 20) as usize % (SEGMENT * (1 + round));
            let terms = spread(n, &mut state);
            let sums: Vec<f64> = terms.chunks(SEGMENT).map(segment_sum).collect();
            for parts in [1, 2, 3, 7, 64] {
                let weights = spread(n + 1, &mut state);
                let uneven = Cuts::balanced(n, parts, |row| row + (weights[0].abs() * row as f64) as usize);
                for cuts in [Cuts::even(n, parts), uneven] {
                    let of = |part| {
                        let trees: Vec<Subtree> = cuts.subtrees(part).collect();
                        let own = tree_sums(trees.clone().into_iter(), &sums).collect::<Vec<_>>();
                        trees.into_iter().zip(own)
                    };
                    let sum = finish_sum((0..parts).flat_map(of));
                    assert_eq!(sum.to_bits(), pairwise(&terms).to_bits(), "{n} in {parts}: {cuts:?}");
                }
            }
        }
        assert!(finish_sum::<f64>([].into_iter()).is_sign_positive());
        let zero = finish_sum(Cuts::even(3 * SEGMENT, 2).subtrees(0).map(|tree| (tree, -0.0f64)));
        assert!(zero.is_sign_negative(), "nothing is added to what has no neighbour");
    }

    #[test]
    fn parts_cover_all_rows_at_borders_of_segments() {
        for (n, parts) in [(0, 3), (1, 4), (255, 2), (256, 2), (257, 2), (5000, 7), (100_000, 3)] {
            let cuts = Cuts::even(n, parts);
            assert_eq!((cuts.rows(0).start, cuts.rows(parts - 1).end, cuts.parts()), (0, n, parts));
            for part in 0..parts {
                let rows = cuts.rows(part);
                assert!(rows.start.is_multiple_of(SEGMENT) || rows.start == n);
                assert!(part == 0 || cuts.rows(part - 1).end == rows.start);
                assert!(rows.clone().all(|row| cuts.owner(row) == part));
                let most = 2 * n.div_ceil(SEGMENT).next_power_of_two().ilog2() as usize;
                assert!(cuts.subtrees(part).count() <= most.max(1));
            }
        }
    }

    #[test]
    fn weights_are_balanced_to_half_a_segment() {
        let heavy = |row: usize| if row < 10_000 { 9 * row } else { 90_000 + (row - 10_000) };
        let cuts = Cuts::balanced(100_000, 4, heavy);
        for part in 0..4 {
            let Range { start, end } = cuts.rows(part);
            assert!(
                (heavy(end) - heavy(start)).abs_diff(180_000 / 4) <= 9 * SEGMENT,
                "{part}: {start}..{end}"
            );
        }
    }
}
