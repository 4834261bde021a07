//! Nested dissection.
use lacuna_formats::{Dissection, nested_dissection};
use proptest::prelude::*;

/// Rows with their columns, as arrays.
pub(crate) fn pattern(rows: &[Vec<u32>]) -> (Vec<u32>, Vec<u32>) {
    let mut ptr = vec![0];
    rows.iter().for_each(|row| ptr.push(ptr[ptr.len() - 1] + row.len() as u32));
    (ptr, rows.concat())
}

/// Fails unless each row occurs once, and no two of the parts are coupled.
fn checked(rows: &[Vec<u32>]) -> Dissection {
    let n = rows.len();
    let (ptr, columns) = pattern(rows);
    let found = nested_dissection(n, &ptr, &columns, f64::INFINITY).unwrap();
    let mut sorted = found.order.clone();
    sorted.sort_unstable();
    assert!(sorted.iter().copied().eq(0..n as u32));
    assert!(
        found.leaves.is_sorted_by(|a, b| a.end <= b.start) && found.leaves.iter().all(|leaf| leaf.end <= n)
    );
    let mut leaf_of = vec![None; n];
    for (k, leaf) in found.leaves.iter().enumerate() {
        assert!(!leaf.is_empty());
        found.order[leaf.clone()].iter().for_each(|row| leaf_of[*row as usize] = Some(k));
    }
    for (i, row) in rows.iter().enumerate() {
        for &j in row.iter().filter(|j| (**j as usize) < n) {
            let (own, other) = (leaf_of[i], leaf_of[j as usize]);
            assert!(own.is_none() || other.is_none() || own == other, "{i} and {j} are in two parts");
        }
    }
    found
}

/// A grid in three dimensions, of which each point is coupled with the next along each axis.
pub(crate) fn grid(side: usize) -> Vec<Vec<u32>> {
    let strides = [1, side, side * side];
    let n = side.pow(3);
    let next =
        |i: usize| strides.into_iter().filter(move |s| i / s % side + 1 < side).map(move |s| (i + s) as u32);
    (0..n).map(|i| next(i).collect()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn parts_are_separated(
        n in 0usize..1500,
        many in 0usize..3,
        entries in prop::collection::vec((0u32..1600, 0u32..1600), 0..3000),
    ) {
        let mut rows = vec![Vec::new(); n];
        for (i, j) in entries.into_iter().filter(|(i, _)| (*i as usize) < n) {
            // A chain, a few rows with most of the entries, or what was drawn.
            match many {
                0 if i as usize + 1 < n => rows[i as usize].extend([j, i + 1]),
                1 => rows[i as usize % 3].push(j),
                _ => rows[i as usize].push(j),
            }
        }
        checked(&rows);
    }
}

#[test]
fn a_grid_is_divided_evenly() {
    let side = 16;
    let found = checked(&grid(side));
    // A plane and its halves separate eight parts; the best planes have 256, 2 times 128 and 4 times 64 points.
    let inside: usize = found.leaves.iter().map(ExactSizeIterator::len).sum();
    assert!(found.leaves.len() >= 16 && inside > side.pow(3) / 2, "{} in {}", inside, found.leaves.len());
    let last = found.leaves.last().map_or(0, |leaf| leaf.end);
    let top = side.pow(3) - last;
    assert!(top < 3 * side * side, "{top} points are at the end");
}

#[test]
fn hostile_patterns_are_ordered() {
    let n = 3000u32;
    // No entries, one row, a star, its reverse, 300 complete blocks, a complete matrix, and a grid beside a dense row.
    assert_eq!(checked(&[]), Dissection::default());
    assert_eq!(checked(&vec![Vec::new(); 3000]).leaves.first(), Some(&(0..3000)));
    assert_eq!(checked(&[vec![0]]).order, [0]);
    let mut star = vec![Vec::new(); n as usize];
    star[7] = (0..n).collect();
    assert_eq!(checked(&star).order[n as usize - 1], 7);
    let reversed: Vec<Vec<u32>> = (0..n).map(|_| vec![n - 1]).collect();
    assert_eq!(checked(&reversed).order[n as usize - 1], n - 1);
    let blocks: Vec<Vec<u32>> = (0..n).map(|i| (i / 10 * 10..i / 10 * 10 + 10).collect()).collect();
    // The rows of a block are one.
    let found = checked(&blocks);
    assert_eq!(
        found.leaves.iter().map(ExactSizeIterator::len).sum::<usize>(),
        n as usize,
        "nothing is between"
    );
    let complete: Vec<Vec<u32>> = (0..400).map(|_| (0..400).collect()).collect();
    assert!(checked(&complete).leaves.is_empty());
    let mut bordered = grid(14);
    let hub = bordered.len() as u32;
    bordered.push((0..hub).collect());
    let found = checked(&bordered);
    assert_eq!(found.order.last(), Some(&hub));
    assert!(found.leaves.len() > 8);
}

#[test]
fn arrays_that_are_no_pattern_are_no_panic() {
    for (n, ptr, columns) in
        [(3, &[][..], &[][..]), (3, &[0, 1], &[2]), (2, &[5, 1, 9], &[0]), (2, &[0, 1, 2], &[7, u32::MAX])]
    {
        let mut found = nested_dissection(n, ptr, columns, f64::INFINITY).unwrap().order;
        found.sort_unstable();
        assert!(found.into_iter().eq(0..n as u32));
    }
}

#[test]
fn the_order_does_not_depend_on_the_number_of_threads() {
    let (ptr, columns) = pattern(&grid(24));
    let of = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| nested_dissection(24 * 24 * 24, &ptr, &columns, f64::INFINITY))
    };
    let alone = of(1);
    assert!(alone.is_some());
    assert!(nested_dissection(24 * 24 * 24, &ptr, &columns, 1e5).is_none(), "too much work");
    assert!([2, 3, 8].into_iter().all(|threads| of(threads) == alone));
}
