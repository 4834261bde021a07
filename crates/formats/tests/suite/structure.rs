//! The properties that [`Structure`] reports, on matrices small enough to check by eye.
use lacuna_engine::{Complex64, Scalar};
use lacuna_formats::{Csr, Structure, Triplets, spy};
use lacuna_io::Spec;
use proptest::prelude::*;

fn matrix<T: Scalar>(rows: usize, cols: usize, entries: &[(usize, usize, T)]) -> Csr<T> {
    let mut t = Triplets::new(rows, cols);
    t.extend(entries.iter().copied());
    t.to_csr().unwrap()
}

#[test]
fn a_tridiagonal_matrix() {
    let mut t = Triplets::new(5, 5);
    for i in 0..5usize {
        (i.saturating_sub(1)..(i + 2).min(5)).for_each(|j| t.push(i, j, if i == j { 2.0 } else { -1.0 }));
    }
    let s = Structure::of(&t.to_csr().unwrap());
    assert_eq!((s.rows, s.cols, s.nnz, s.empty_rows), (5, 5, 13, 0));
    assert_eq!((s.row_min, s.row_max, s.row_mean), (2, 3, 2.6));
    assert!((s.row_std - 0.24f64.sqrt()).abs() < 8.0 * f64::EPSILON);
    assert_eq!((s.lower_bandwidth, s.upper_bandwidth, s.bandwidth(), s.diagonals), (1, 1, 1, 3));
    assert_eq!((s.zero_diagonal, s.first_zero_diagonal), (0, None));
    assert!(s.pattern_symmetric && s.symmetric && s.hermitian && !s.skew_symmetric);
    assert!(s.diagonal_positive && s.diagonally_dominant);
    assert_eq!(s.block_size(), None);
}

#[test]
fn every_kind_of_symmetry() {
    let i = Complex64::i();
    let one = Complex64::new(1.0, 0.0);
    let kinds = |s: Structure| [s.pattern_symmetric, s.symmetric, s.hermitian, s.skew_symmetric];
    let of = |upper: Complex64, lower: Complex64, diagonal: Complex64| {
        kinds(Structure::of(&matrix(2, 2, &[(0, 0, diagonal), (0, 1, upper), (1, 0, lower)])))
    };
    assert_eq!(of(one, one, one), [true, true, true, false]);
    assert_eq!(of(i, i, i), [true, true, false, false]);
    assert_eq!(of(i, -i, one), [true, false, true, false]);
    assert_eq!(of(i, -i, i), [true, false, false, false]);
    assert_eq!(of(i, -i, Complex64::default()), [true, false, true, true]);
    assert_eq!(of(one, one + one, one), [true, false, false, false]);
    assert_eq!(kinds(Structure::of(&matrix(2, 2, &[(0, 1, 1.0)]))), [false; 4]);
    assert_eq!(kinds(Structure::of(&matrix(2, 3, &[(0, 0, 1.0)]))), [false; 4]);
}

#[test]
fn zero_and_missing_diagonal_entries_are_found() {
    let s = Structure::of(&matrix(4, 3, &[(0, 0, 1.0), (1, 1, 0.0), (3, 0, 1.0)]));
    assert_eq!((s.zero_diagonal, s.first_zero_diagonal, s.empty_rows), (2, Some(1), 1));
    assert!(!s.diagonal_positive && !s.diagonally_dominant);
    assert_eq!((s.lower_bandwidth, s.upper_bandwidth, s.diagonals), (3, 0, 2));
}

#[test]
fn dense_blocks_are_recognised() {
    let mut t = Triplets::new(9, 9);
    for (bi, bj) in [(0, 0), (1, 1), (2, 2), (0, 2)] {
        (0..9).for_each(|k| t.push(3 * bi + k / 3, 3 * bj + k % 3, 1.0));
    }
    let s = Structure::of(&t.to_csr().unwrap());
    assert_eq!(s.block_fill[1], (3, 1.0));
    assert!(s.block_fill[0].1 < 0.9 && s.block_fill[2].1 < 0.9);
    assert_eq!(s.block_size(), Some(3));
}

#[test]
fn nothing_has_a_structure_too() {
    let s = Structure::of(&Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap());
    assert_eq!((s.row_min, s.row_max, s.row_mean, s.row_std, s.diagonals), (0, 0, 0.0, 0.0, 0));
    assert_eq!(spy(&Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap(), 2, 2), [0; 4]);
}

#[test]
fn a_picture_counts_every_entry_once() {
    let a = matrix(4, 4, &[(0, 0, 1.0), (0, 1, 1.0), (1, 1, 1.0), (2, 2, 1.0), (3, 0, 1.0)]);
    assert_eq!(spy(&a, 2, 2), [3, 0, 1, 1]);
    assert_eq!(spy(&a, 1, 1), [5]);
    assert_eq!(spy(&a, 4, 8).iter().sum::<u32>(), 5);
    assert!(spy(&a, 0, 3).is_empty());
}

#[test]
fn large_blocks_are_looked_for_where_they_divide_and_small_ones_are_full() {
    for size in 5..=8 {
        let n = 6 * size;
        let mut t = Triplets::new(n, n);
        for (bi, bj) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (0, 2), (3, 5)] {
            (0..size * size).for_each(|k| t.push(size * bi + k / size, size * bj + k % size, 1.0));
        }
        let s = Structure::of(&t.to_csr().unwrap());
        assert!(s.block_fill.contains(&(size, 1.0)), "{size}: {:?}", s.block_fill);
        assert_eq!(s.block_size(), Some(size));
        assert!(s.block_fill.iter().all(|(b, _)| *b < 5 || n.is_multiple_of(*b)), "{:?}", s.block_fill);
    }
    let grid: Csr<f64> = Spec::parse("gen:poisson2d:30x28").unwrap().build().unwrap();
    assert_eq!(Structure::of(&grid).block_fill.len(), 3, "2x2 blocks are half full");
}

proptest! {
    #[test]
    fn agrees_with_the_definition(list in proptest::collection::vec((0..12usize, 0..12usize, -2i8..3), 0..60)) {
        let list: Vec<_> = list.into_iter().map(|(i, j, v)| (i, j, f64::from(v))).collect();
        let a = matrix(12, 12, &list);
        let (s, t) = (Structure::of(&a), a.transpose());
        prop_assert_eq!(s.symmetric, t == a);
        prop_assert_eq!(s.skew_symmetric, t.map(|v| -v).unwrap() == a);
        prop_assert_eq!(s.pattern_symmetric, (t.row_ptr(), t.col_idx()) == (a.row_ptr(), a.col_idx()));
        let offsets: std::collections::BTreeSet<_> = a.entries().map(|(i, j, _)| 12 + i - j).collect();
        prop_assert_eq!(s.diagonals, offsets.len());
        prop_assert_eq!(s.zero_diagonal, a.diagonal().iter().filter(|v| **v == 0.0).count());
        for (size, fill) in s.block_fill {
            let blocks: std::collections::BTreeSet<_> = a.entries().map(|(i, j, _)| (i / size, j / size)).collect();
            let expected = a.nnz() as f64 / (blocks.len() * size * size).max(1) as f64;
            prop_assert_eq!(fill, expected);
        }
        prop_assert_eq!(spy(&a, 5, 7).iter().sum::<u32>() as usize, a.nnz());
    }

    #[test]
    fn images_across_the_diagonal_are_told_from_spoilt_ones(
        list in proptest::collection::btree_map((0..40usize, 0..40usize), (-3i8..4, -3i8..4), 1..90),
        kind in 0..3,
        spoilt in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let mut entries = std::collections::BTreeMap::new();
        for ((i, j), (re, im)) in list {
            let v = Complex64::new(f64::from(re), f64::from(im));
            let image = [v, v.conj(), -v][kind as usize];
            if i != j || image == v {
                entries.insert((i, j), v);
                entries.insert((j, i), image);
            }
        }
        let mut entries: Vec<_> = entries.into_iter().map(|((i, j), v)| (i, j, v)).collect();
        if let Some(spoilt) = spoilt.filter(|_| !entries.is_empty()) {
            let at = spoilt.index(entries.len());
            entries[at].2 = -entries[at].2 * 2.0;
        }
        let a = matrix(40, 40, &entries);
        let (s, t) = (Structure::of(&a), a.transpose());
        prop_assert_eq!(s.symmetric, t == a);
        prop_assert_eq!(s.hermitian, a.adjoint() == a);
        prop_assert_eq!(s.skew_symmetric, t.map(|v| -v).unwrap() == a);
    }
}
