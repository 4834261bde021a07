//! Parts of rows that are coupled among each other more than with others.
use crate::graph::Graph;
use crate::{Csr, Permutation};
use lacuna_core::Scalar;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Couplings with the part beyond which more make no difference.
const MOST: usize = 32;

/// Compact parts of `rows` rows, one after the other: each grows by the row that is coupled most often with it, of several the one
/// found first, which makes boxes of the cells of a grid. A part begins with the smallest row next to those before it; where what
/// is left there is too little, it goes on elsewhere.
///
/// Reference: greedy graph growing of Karypis and Kumar 1998, doi:10.1137/S1064827595287997.
pub fn compact_parts<T: Scalar>(a: &Csr<T>, rows: usize) -> Permutation {
    let graph = Graph::of(a);
    let n = graph.len();
    let mut order = Vec::with_capacity(n);
    let mut taken = vec![false; n];
    // Rows next to those taken, each once.
    let (mut border, mut met) = (BinaryHeap::new(), vec![false; n]);
    // Couplings of a row with the part, and the part that is about.
    let (mut inside, mut part_of) = (vec![0usize; n], vec![u32::MAX; n]);
    let mut found: [VecDeque<u32>; MOST + 1] = std::array::from_fn(|_| VecDeque::new());
    let (mut part, mut left, mut first) = (0, rows.max(1), 0usize);
    while order.len() < n {
        if left == 0 {
            (part, left) = (part + 1, rows.max(1));
            found.iter_mut().for_each(VecDeque::clear);
        }
        let grown = (1..=MOST).rev().find_map(|count| {
            std::iter::from_fn(|| found[count].pop_front())
                .find(|&row| !taken[row as usize] && inside[row as usize].min(MOST) == count)
        });
        let row = grown.unwrap_or_else(|| {
            let next = std::iter::from_fn(|| border.pop()).map(|Reverse(row): Reverse<u32>| row);
            next.into_iter().find(|&row| !taken[row as usize]).unwrap_or_else(|| {
                while taken[first] {
                    first += 1;
                }
                first as u32
            })
        });
        taken[row as usize] = true;
        order.push(row);
        left -= 1;
        for &next in graph.of_row(row) {
            let at = next as usize;
            if taken[at] {
                continue;
            }
            if !std::mem::replace(&mut met[at], true) {
                border.push(Reverse(next));
            }
            if std::mem::replace(&mut part_of[at], part) != part {
                inside[at] = 0;
            }
            inside[at] += 1;
            found[inside[at].min(MOST)].push_back(next);
        }
    }
    Permutation::known(order)
}

#[cfg(test)]
mod tests {
    use super::compact_parts;
    use crate::{Csr, Spec, Triplets};

    /// Part of the entries that are between parts.
    fn cut(a: &Csr<f64>, rows: usize) -> f64 {
        let order = compact_parts(a, rows);
        let place = order.inverse();
        let between =
            a.entries().filter(|&(i, j, _)| place[i] as usize / rows != place[j] as usize / rows).count();
        between as f64 / a.nnz() as f64
    }

    #[test]
    fn parts_of_grids_are_about_boxes() {
        for (name, rows, most) in [
            // Cubes of 3x3x3 cut 2 of 7 entries, squares of 4x4 1 of 5.
            ("gen:poisson3d:30x30x30", 27, 0.31),
            ("gen:poisson3d:30x30x30", 32, 0.33),
            ("gen:poisson2d:60x60", 16, 0.24),
            ("gen:poisson1d:100", 10, 0.07),
        ] {
            let a = Spec::parse(name).unwrap().build::<f64>().unwrap();
            assert!(cut(&a, rows) < most, "{name}: {}", cut(&a, rows));
        }
    }

    #[test]
    fn every_row_has_its_place() {
        let empty = Triplets::<f64>::new(7, 7).to_csr().unwrap();
        let mut order = compact_parts(&empty, 3).order().to_vec();
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3, 4, 5, 6]);
        assert!(compact_parts(&Triplets::<f64>::new(0, 0).to_csr().unwrap(), 3).is_empty());
    }
}
