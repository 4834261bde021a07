//! Which elements of x each rank needs of the others for a product, and which rows need none.
use lacuna_engine::division::Cuts;
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::{AnyFormat, with_each};
use lacuna_formats::{columns_read, solved_from};
use std::ops::Range;

/// What the ranks exchange for a product with one matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halo {
    parts: Vec<Part>,
}

/// The exchange of one rank. Ranks are in increasing order, with rows in increasing order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The rows of x that it sends, by the rank that needs them.
    pub sends: Vec<(usize, Vec<Range<usize>>)>,
    /// The rows of x that it needs, by the rank that has them.
    pub receives: Vec<(usize, Vec<Range<usize>>)>,
    /// Its segments of y that need its own rows of x alone.
    pub interior: Vec<Range<usize>>,
    /// The others.
    pub border: Vec<Range<usize>>,
}

/// Number of rows of some ranges.
pub(crate) fn count(rows: &[Range<usize>]) -> usize {
    rows.iter().map(ExactSizeIterator::len).sum()
}

impl Part {
    /// The elements of x that it needs from others.
    pub fn needs(&self) -> usize {
        self.receives.iter().map(|(_, rows)| count(rows)).sum()
    }
}

/// Appends a segment to ranges, or to the last of them.
fn push(ranges: &mut Vec<Range<usize>>, segment: usize) {
    match ranges.last_mut() {
        Some(last) if last.end == segment => last.end += 1,
        _ => ranges.push(segment..segment + 1),
    }
}

/// A set of rows.
struct Rows(Vec<u64>);

impl Rows {
    fn insert(&mut self, run: Range<usize>) {
        let Range { mut start, end } = run;
        while start < end {
            let (word, bit) = (start / 64, start % 64);
            let many = (64 - bit).min(end - start);
            self.0[word] |= (u64::MAX >> (64 - many)) << bit;
            start += many;
        }
    }
    /// The runs of its members, and empties it.
    fn drain(&mut self, mut each: impl FnMut(Range<usize>)) {
        let mut run = 0..0;
        for (at, word) in self.0.iter_mut().enumerate() {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                let first = bits.trailing_zeros();
                let many = (bits >> first).trailing_ones();
                let start = 64 * at + first as usize;
                if run.end != start {
                    each(std::mem::replace(&mut run, start..start));
                }
                run.end = start + many as usize;
                bits &= !((u64::MAX >> (64 - many)) << first);
            }
        }
        each(run);
    }
}

impl Halo {
    /// What products with a matrix exchange whose rows are cut as `rows` and columns as `cols`; `None` if nothing is known of
    /// what the format reads.
    pub fn new(a: &AnyFormat, rows: &Cuts, cols: &Cuts) -> Option<Self> {
        with_each!(a, a => Self::of(rows, cols, |rows, each| columns_read(&**a, rows, each)))
    }
    /// What solves with a triangular matrix exchange, if it has independent blocks that are small: those that have a row of a
    /// part are solved there.
    pub fn of_solves(a: &AnyFormat, cuts: &Cuts) -> Option<Self> {
        with_each!(a, a => Self::of(cuts, cuts, |rows, each| solved_from(&**a, rows, each)))
    }
    /// What operations exchange that read the runs that `reads` calls a function with for rows of a segment, if it knows them.
    fn of(
        rows: &Cuts,
        cols: &Cuts,
        reads: impl Fn(Range<usize>, &mut dyn FnMut(Range<usize>)) -> bool,
    ) -> Option<Self> {
        let mut parts = vec![Part::default(); rows.parts()];
        let mut needed = Rows(vec![0; cols.n().div_ceil(64)]);
        for me in 0..rows.parts() {
            let own = cols.rows(me);
            for segment in rows.segments(me) {
                let mut is_border = false;
                let of = segment * SEGMENT..((segment + 1) * SEGMENT).min(rows.n());
                let known = reads(of, &mut |run: Range<usize>| {
                    if run.start < own.start.min(run.end) {
                        needed.insert(run.start..run.end.min(own.start));
                        is_border = true;
                    }
                    if run.end > own.end.max(run.start) {
                        needed.insert(run.start.max(own.end)..run.end);
                        is_border = true;
                    }
                });
                if !known {
                    return None;
                }
                let part = &mut parts[me];
                push(if is_border { &mut part.border } else { &mut part.interior }, segment);
            }
            needed.drain(|run| {
                let mut rest = run;
                while !rest.is_empty() {
                    let owner = cols.owner(rest.start);
                    let piece = rest.start..rest.end.min(cols.rows(owner).end);
                    rest.start = piece.end;
                    let receives = &mut parts[me].receives;
                    match receives.last_mut() {
                        Some((last, pieces)) if *last == owner => pieces.push(piece),
                        _ => receives.push((owner, vec![piece])),
                    }
                }
            });
        }
        for me in 0..parts.len() {
            for (from, pieces) in parts[me].receives.clone() {
                parts[from].sends.push((me, pieces));
            }
        }
        Some(Halo { parts })
    }
    /// The exchange of a rank.
    pub fn part(&self, rank: usize) -> &Part {
        &self.parts[rank]
    }
    /// The exchanges of all ranks, in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_rows_are_runs() {
        let mut rows = Rows(vec![0; 5]);
        let runs = [3..4, 60..70, 70..71, 127..128, 128..300];
        runs.iter().rev().for_each(|run| rows.insert(run.clone()));
        let mut found = Vec::new();
        rows.drain(|run| found.push(run));
        found.retain(|run| !run.is_empty());
        assert_eq!(found, [3..4, 60..71, 127..300]);
        rows.drain(|run| assert!(run.is_empty()));
    }
}
