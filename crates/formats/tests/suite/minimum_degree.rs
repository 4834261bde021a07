//! Approximate minimum degree.
use crate::dissection::{grid, pattern};
use lacuna_formats::{MinimumDegree, minimum_degree};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// The entries below the diagonal of a factor in an order, and the operations, by elimination in a set of couplings.
fn eliminated(rows: &[Vec<u32>], order: &[u32]) -> (f64, f64) {
    let mut coupled = vec![BTreeSet::new(); rows.len()];
    for (i, row) in rows.iter().enumerate() {
        for &j in row.iter().filter(|j| (**j as usize) < rows.len() && **j as usize != i) {
            coupled[i].insert(j);
            coupled[j as usize].insert(i as u32);
        }
    }
    let (mut entries, mut operations) = (0.0, 0.0);
    for &i in order {
        let left = std::mem::take(&mut coupled[i as usize]);
        entries += left.len() as f64;
        operations += (left.len() as f64).powi(2);
        for &j in &left {
            coupled[j as usize].remove(&i);
            coupled[j as usize].extend(left.iter().filter(|k| **k != j));
        }
    }
    (entries, operations)
}

/// Fails unless each row occurs once, and what is told of the factors bounds what they have.
fn checked(rows: &[Vec<u32>]) -> (MinimumDegree, f64) {
    let (ptr, columns) = pattern(rows);
    let found = minimum_degree(rows.len(), &ptr, &columns, f64::INFINITY).unwrap().unwrap();
    let mut sorted = found.order.clone();
    sorted.sort_unstable();
    assert!(sorted.iter().copied().eq(0..rows.len() as u32));
    let (entries, operations) = eliminated(rows, &found.order);
    assert!(entries <= found.entries && operations <= found.operations, "{entries} {operations}, {found:?}");
    (found, entries)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn factors_have_what_is_told(
        n in 0usize..250,
        many in 0usize..3,
        entries in prop::collection::vec((0u32..260, 0u32..260), 0..600),
    ) {
        let mut rows = vec![Vec::new(); n];
        for (i, j) in entries.into_iter().filter(|(i, _)| (*i as usize) < n) {
            // A chain, a few rows with most of the entries, or what was drawn.
            match many {
                0 if i as usize + 1 < n => rows[i as usize].extend([j, i + 1]),
                1 => rows[i as usize % 3].push(j),
                _ => rows[i as usize].extend([j, i]),
            }
        }
        checked(&rows);
    }
}

#[test]
fn grids_have_little_fill_and_trees_none() {
    let (found, entries) = checked(&grid(8));
    assert_eq!(found.entries, entries, "no row is dense");
    assert!(entries < 12_000.0, "{entries}: a band has 30 000");
    let tree: Vec<Vec<u32>> = (0..500u32).map(|i| if i == 0 { vec![] } else { vec![(i - 1) / 3] }).collect();
    assert_eq!(checked(&tree).1, 499.0);
    // A row that is coupled with all comes last.
    let mut bordered = grid(9);
    let hub = bordered.len() as u32;
    bordered.push((0..hub).collect());
    assert_eq!(checked(&bordered).0.order.last(), Some(&hub));
    let complete: Vec<Vec<u32>> = (0..60).map(|_| (0..60).collect()).collect();
    assert_eq!(checked(&complete).1, 60.0 * 59.0 / 2.0);
}

#[test]
fn too_much_work_is_given_up() {
    let (ptr, columns) = pattern(&grid(16));
    assert_eq!(minimum_degree(16 * 16 * 16, &ptr, &columns, 1e4).unwrap(), None);
    let found = minimum_degree(16 * 16 * 16, &ptr, &columns, f64::INFINITY).unwrap().unwrap();
    assert!(found.work > 1e4);
    for (n, ptr, columns) in
        [(3, &[][..], &[][..]), (3, &[0, 1], &[2]), (2, &[5, 1, 9], &[0]), (2, &[0, 1, 2], &[7, u32::MAX])]
    {
        let mut order = minimum_degree(n, ptr, columns, f64::INFINITY).unwrap().unwrap().order;
        order.sort_unstable();
        assert!(order.into_iter().eq(0..n as u32));
    }
}
