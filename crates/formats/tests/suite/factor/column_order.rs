//! Orders of columns that keep factors sparse.
use lacuna_formats::factor::{column_order, diagonal_order};
use lacuna_formats::{Csr, Triplets};
use lacuna_io::Spec;

/// Number of entries of the factor of `AᵀA` for a column order.
fn fill(a: &Csr<f64>, order: &[u32]) -> usize {
    let n = a.cols();
    let mut place = vec![0; n];
    order.iter().enumerate().for_each(|(at, &j)| place[j as usize] = at);
    let mut below: Vec<std::collections::BTreeSet<usize>> = vec![Default::default(); n];
    for i in 0..a.rows() {
        let row: Vec<usize> = a.row_slices(i).0.iter().map(|&j| place[j as usize]).collect();
        row.iter().for_each(|&j| below[j].extend(row.iter().filter(|&&k| k > j)));
    }
    let mut entries = n;
    for j in 0..n {
        let own = std::mem::take(&mut below[j]);
        entries += own.len();
        if let Some(&parent) = own.first() {
            below[parent].extend(own.into_iter().filter(|&k| k > parent));
        }
    }
    entries
}

#[test]
fn fill_is_far_below_that_of_the_natural_order() {
    for (name, part) in [("gen:poisson2d:30x30", 0.7), ("gen:random:400:5:7", 0.8)] {
        let a = Spec::parse(name).unwrap().build::<f64>().unwrap();
        let natural: Vec<u32> = (0..a.cols() as u32).collect();
        let order = column_order(&a).unwrap();
        let (own, other) = (fill(&a, order.order()), fill(&a, &natural));
        assert!((own as f64) < part * other as f64, "{name}: {own} of {other}");
    }
}

#[test]
fn with_pivots_on_the_diagonal_fill_is_that_of_minimum_degree() {
    // Elimination in the pattern of a symmetric matrix: the pairs are the rows of its incidence matrix.
    let incidence = |a: &Csr<f64>| {
        let pairs: Vec<_> = a.entries().filter(|(i, j, _)| i < j).collect();
        let mut triplets = Triplets::new(pairs.len(), a.cols());
        for (row, (i, j, _)) in pairs.iter().enumerate() {
            triplets.push(row, *i, 1.0);
            triplets.push(row, *j, 1.0);
        }
        triplets.to_csr().unwrap()
    };
    for (name, part) in [("gen:poisson2d:30x30", 0.4), ("gen:poisson3d:8x8x8", 0.6)] {
        let a = Spec::parse(name).unwrap().build::<f64>().unwrap();
        let natural: Vec<u32> = (0..a.cols() as u32).collect();
        let pairs: Csr<f64> = incidence(&a);
        let (own, other) = (fill(&pairs, diagonal_order(&a).unwrap().order()), fill(&pairs, &natural));
        assert!((own as f64) < part * other as f64, "{name}: {own} of {other}");
    }
}

#[test]
fn empty_rows_and_columns_and_dense_rows_have_their_place() {
    let mut triplets = Triplets::new(300, 300);
    (0..300).for_each(|j| triplets.push(0, j, 1.0));
    (1..299).for_each(|i| triplets.push(i, i, 1.0));
    let a: Csr<f64> = triplets.to_csr().unwrap();
    for order in [column_order(&a), diagonal_order(&a)].map(|order| order.unwrap()) {
        let mut order = order.order().to_vec();
        order.sort_unstable();
        assert!(order.iter().enumerate().all(|(i, &j)| i as u32 == j));
    }
    for (rows, cols) in [(2, 3), (3, 2), (0, 2)] {
        let mut triplets = Triplets::new(rows, cols);
        (0..rows * cols).for_each(|k| triplets.push(k / cols, k % cols, 1.0));
        let a: Csr<f64> = triplets.to_csr().unwrap();
        let lengths = [column_order(&a), diagonal_order(&a)].map(|order| order.unwrap().len());
        assert_eq!(lengths, [cols; 2]);
    }
}

#[test]
fn a_column_that_almost_all_rows_have_comes_last() {
    let n = 2000;
    let mut t = Triplets::new(n, n);
    (0..n).for_each(|i| t.push(i, i, 2.0));
    (1..n).for_each(|i| t.push(i, 0, 1.0));
    let a: Csr<f64> = t.to_csr().unwrap();
    for order in [column_order(&a), diagonal_order(&a)].map(|order| order.unwrap()) {
        assert_eq!((order.order().len(), order.order().last()), (n, Some(&0)));
    }
}
