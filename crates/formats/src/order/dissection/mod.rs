//! Nested dissection: orders of elimination by separators.
mod level;
mod separator;

use crate::parallel::map_large;
use level::Level;
use separator::{Side, separator};
use std::ops::Range;

/// Rows of a part that is not divided any more.
const LEAF: usize = 200;
/// A row with more couplings than this many times the square root of the number of rows comes last.
const DENSE: f64 = 10.0;
/// The part of the rows that a separator may take.
const MOST: f64 = 0.4;

/// An order of the rows of a matrix by nested dissection. Each part is followed by the rows that separate it from others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dissection {
    /// The rows, in their new order.
    pub order: Vec<u32>,
    /// The places of parts that were not divided. Their rows are in no particular order: that of minimum degree suits them.
    pub leaves: Vec<Range<usize>>,
}

/// Nested dissection of the graph of `A + Aᵀ` of a matrix of `n` rows, for factors with little fill where the graph is that of a body in
/// three dimensions, or has no dimension. The columns of row `i` are `columns[ptr[i]..ptr[i + 1]]`, in any order; what is no row is
/// ignored. The order is the same for any number of threads. `None` if it would take more than `most` units of work, each a coupling
/// that is looked at on one level: about 6e-8 s. Rows that are coupled with the same others count as one.
///
/// Each part is divided by a multilevel method: pairs of rows with heavy couplings are contracted until some hundred are left, these are
/// divided by growing one side from several rows, and the separator is improved each time that pairs are taken apart.
///
/// ```
/// // A chain of 1000 rows.
/// let columns: Vec<u32> = (1..1000).collect();
/// let ptr: Vec<u32> = (0..=1000).map(|i| i.min(999)).collect();
/// let found = lacuna_formats::nested_dissection(1000, &ptr, &columns, 1e6).expect("little work");
/// assert_eq!(found.order.len(), 1000);
/// assert!(found.leaves.len() > 4);
/// ```
///
/// References: George 1973, doi:10.1137/0710032; Hendrickson and Rothberg 1998, doi:10.1137/S1064827596300656; Karypis and Kumar 1998,
/// doi:10.1137/S1064827595287997; Fiduccia and Mattheyses 1982, doi:10.1109/DAC.1982.1585498.
pub fn nested_dissection(n: usize, ptr: &[u32], columns: &[u32], most: f64) -> Option<Dissection> {
    // Couplings in both directions are counted in 32 bits.
    if columns.len() > (u32::MAX / 2) as usize {
        return None;
    }
    let graph = Level::mirrored(n, ptr, columns);
    let longest = ((DENSE * (n as f64).sqrt()) as usize).max(16);
    let (rows, dense): (Vec<u32>, Vec<u32>) =
        (0..n as u32).partition(|&i| graph.neighbours(i).len() <= longest);
    let graph = if dense.is_empty() { graph } else { graph.restricted(&rows) };
    let mut found = Dissection { order: rows.clone(), leaves: Vec::new() };
    found.order.extend(dense);
    let (graph, ptr, members) = graph.compressed();
    let levels = libm::log2(n as f64 / (LEAF / 2) as f64).max(1.0);
    if graph.size() as f64 * levels > most {
        return None;
    }
    let groups = (0..graph.len() as u32).collect();
    let mut put = |groups: &[u32], start: usize| {
        let all = groups.iter().flat_map(|&k| &members[ptr[k as usize]..ptr[k as usize + 1]]);
        let mut end = start;
        for (place, &row) in found.order[start..].iter_mut().zip(all) {
            *place = rows[row as usize];
            end += 1;
        }
        start..end
    };
    let mut parts = vec![Part { graph, groups, start: 0 }];
    while !parts.is_empty() {
        let size = parts.iter().map(|part| part.graph.size()).sum();
        let divided = map_large(size, parts, Part::divided);
        parts = Vec::new();
        for cut in divided {
            match cut {
                Cut::Leaf(part) => {
                    let places = put(&part.groups, part.start);
                    found.leaves.extend((!places.is_empty()).then_some(places));
                }
                Cut::Parts(first, second, between) => {
                    put(&between, second.start + second.rows());
                    parts.extend([first, second]);
                }
            }
        }
    }
    found.leaves.sort_unstable_by_key(|places| places.start);
    Some(found)
}

/// Groups of rows that are ordered among themselves, at the places from `start` on.
struct Part {
    graph: Level,
    groups: Vec<u32>,
    start: usize,
}

enum Cut {
    Leaf(Part),
    /// Two parts without couplings, and the groups between them.
    Parts(Part, Part, Vec<u32>),
}

impl Part {
    fn rows(&self) -> usize {
        self.graph.weight.iter().map(|w| *w as usize).sum()
    }

    fn divided(self) -> Cut {
        let rows = self.rows();
        if rows <= LEAF || self.graph.size() == 0 {
            return Cut::Leaf(self);
        }
        let side = separator(&self.graph);
        let of = |wanted: Side| {
            let is_there = |(_, side): &(usize, &Side)| **side == wanted;
            side.iter().enumerate().filter(is_there).map(|(i, _)| i as u32).collect()
        };
        let old = |local: &[u32]| local.iter().map(|i| self.groups[*i as usize]).collect::<Vec<u32>>();
        let part = |local: Vec<u32>, start| Part {
            graph: self.graph.restricted(&local),
            groups: old(&local),
            start,
        };
        let first = part(of(Side::First), self.start);
        let second = part(of(Side::Second), self.start + first.rows());
        let between = rows - first.rows() - second.rows();
        if first.groups.is_empty() || second.groups.is_empty() || between as f64 > MOST * rows as f64 {
            return Cut::Leaf(self);
        }
        let between: Vec<u32> = of(Side::Between);
        Cut::Parts(first, second, old(&between))
    }
}
