//! Orders of rows: their properties, and that they change nothing but the order.
use lacuna_formats::{
    Csr, ORDERS, Permutation, Profile, Triplets, by_colours, by_length, by_parts, compact_parts,
    greedy_colours, parts, reorder, reverse_cuthill_mckee,
};
use lacuna_io::Spec;
use proptest::prelude::*;

fn generated(name: &str) -> Csr<f64> {
    Spec::parse(name).unwrap().build().unwrap()
}

/// An irregular permutation.
fn shuffled(n: usize) -> Permutation {
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|&i| (u64::from(i) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(20));
    Permutation::new(order).unwrap()
}

#[test]
fn a_shuffled_band_is_found_again() {
    let mut t = Triplets::new(500, 500);
    for i in 0..500usize {
        (i.saturating_sub(1)..(i + 2).min(500)).for_each(|j| t.push(i, j, (i + j) as f64 + 1.0));
    }
    let band = t.to_csr().unwrap();
    let a = band.permuted(&shuffled(500)).unwrap();
    assert!(Profile::of(&a).bandwidth > 100);
    let again = a.permuted(&reverse_cuthill_mckee(&a)).unwrap();
    assert_eq!(Profile::of(&again), Profile { bandwidth: 1, profile: 499 });
}

#[test]
fn a_shuffled_grid_gets_the_band_of_its_shorter_side() {
    let a = generated("gen:poisson2d:60x20").permuted(&shuffled(1200)).unwrap();
    let rcm = a.permuted(&reverse_cuthill_mckee(&a)).unwrap();
    assert!(Profile::of(&rcm).bandwidth <= 21, "{:?}", Profile::of(&rcm));
}

#[test]
fn rows_by_length_keep_their_order() {
    let mut t = Triplets::new(4, 4);
    [(0, 0), (1, 0), (1, 1), (2, 2), (3, 1), (3, 3)].into_iter().for_each(|(i, j)| t.push(i, j, 1.0));
    assert_eq!(by_length(&t.to_csr().unwrap()).order(), [1, 3, 0, 2]);
}

#[test]
fn parts_are_connected() {
    let a = generated("gen:poisson2d:40x40").permuted(&shuffled(1600)).unwrap();
    let order = by_parts(&a, 100);
    let mut alone = 0;
    for part in order.order().chunks(100) {
        let inside = |row: &u32| {
            a.row_entries(*row as usize).any(|(j, _)| j as u32 != *row && part.contains(&(j as u32)))
        };
        alone += part.iter().filter(|row| !inside(row)).count();
    }
    // Rows left between full parts may end up in a part without their neighbours.
    assert!(alone <= 16, "{alone} rows of 1600 are in a part with none of their neighbours");
}

#[test]
fn orders_by_name() {
    let a = generated("gen:poisson2d:20x20").permuted(&shuffled(400)).unwrap();
    for order in ORDERS {
        let found = reorder(&a, order.name).unwrap();
        assert_eq!(found.map(|p| p.len()), Some(400), "{}", order.name);
    }
    assert_eq!(reorder(&a, "none").unwrap(), None);
    assert_eq!(reorder(&a, "auto").unwrap(), None, "as small as this nothing is gained");
    assert_eq!(reorder(&generated("gen:poisson1d:9"), "length").unwrap().unwrap().order()[0], 1);
    let refusal = reorder(&a, "rmc").unwrap_err().to_string();
    assert_eq!(refusal, "reorder: expected none, auto or one of rcm, length, parts, packets, got `rmc`");
    let wide = Triplets::<f64>::new(2, 3).to_csr().unwrap();
    assert!(reorder(&wide, "rcm").unwrap_err().to_string().contains("2x3"));
    assert!(wide.permuted(&shuffled(2)).is_err() && a.permuted(&shuffled(2)).is_err());
}

#[test]
fn what_is_no_permutation_is_refused() {
    let refusal = |order: Vec<u32>| Permutation::new(order).unwrap_err().to_string();
    assert!(refusal(vec![1, 1]).contains("row 1 comes a second time at place 1"));
    assert!(refusal(vec![0, 7]).contains("row 7 at place 1 is out of range"));
    assert!(Permutation::new(Vec::new()).unwrap().is_empty());
}

proptest! {
    #[test]
    fn only_the_order_changes(
        n in 0usize..90,
        entries in prop::collection::vec((0usize..90, 0usize..90, -8i32..8), 0..260),
        part in 0usize..20,
    ) {
        let mut t = Triplets::<f64>::new(n, n);
        entries.into_iter().filter(|(i, j, _)| *i < n && *j < n).for_each(|(i, j, v)| t.push(i, j, f64::from(v)));
        let a = t.to_csr().unwrap();
        for p in [reverse_cuthill_mckee(&a), by_length(&a), by_parts(&a, part), shuffled(n)] {
            prop_assert!(Permutation::new(p.order().to_vec()).is_ok());
            let b = a.permuted(&p).unwrap();
            for i in 0..n {
                for j in 0..n {
                    prop_assert_eq!(b.get(i, j), a.get(p.order()[i] as usize, p.order()[j] as usize));
                }
            }
            let old: Vec<usize> = (0..n).collect();
            let (mut new, mut back) = (vec![0; n], vec![0; n]);
            p.gather(&old, &mut new).unwrap();
            p.scatter(&new, &mut back).unwrap();
            prop_assert_eq!(&back, &old);
            prop_assert!(new.iter().zip(p.order()).all(|(&new, &order)| new == order as usize));
            prop_assert!(p.inverse().iter().enumerate().all(|(old, &at)| new[at as usize] == old));
        }
    }
}

#[test]
fn columns_that_are_no_rows_are_ignored() {
    let mut t = Triplets::new(2, 5);
    [(0, 0), (0, 4), (1, 1), (1, 3)].into_iter().for_each(|(i, j)| t.push(i, j, 1.0));
    let a: Csr<f64> = t.to_csr().unwrap();
    assert_eq!(reverse_cuthill_mckee(&a).order().len(), 2);
    assert_eq!(by_parts(&a, 1).order().len(), 2);
}

#[test]
fn grids_take_two_colours_and_no_colour_couples_its_rows() {
    for (name, most) in
        [("gen:poisson3d:7x6x5", 2), ("gen:poisson3d:7x6x5:27", 8), ("gen:random:300:9:3", 30)]
    {
        let a = generated(name);
        let (colours, count) = greedy_colours(&a);
        assert!(count <= most, "{name}: {count}");
        let left = a.entries().filter(|(i, j, _)| j < i);
        left.for_each(|(i, j, _)| assert_ne!(colours[i], colours[j], "{name} {i} {j}"));
        let (order, _) = by_colours(&a);
        let sorted: Vec<u32> = order.order().iter().map(|&row| colours[row as usize]).collect();
        assert!(sorted.is_sorted(), "{name}");
    }
}

/// Fraction of the entries that couple different parts.
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
        let a = generated(name);
        assert!(cut(&a, rows) < most, "{name}: {}", cut(&a, rows));
    }
}

#[test]
fn grids_are_cut_into_boxes() {
    // With the start of the first row of cells of each line and plane of the first box.
    for (name, rows, first, sizes) in [
        ("gen:poisson3d:8x12x6", 32, vec![0, 8, 16, 24, 96, 104, 112, 120], vec![32; 18]),
        ("gen:poisson2d:10x8", 16, vec![0, 10, 20, 30], [16, 16, 8].repeat(2)),
        ("gen:poisson3d:8x8x8:27", 64, vec![], vec![64; 8]),
        ("gen:poisson1d:64", 16, vec![0, 4, 8, 12], vec![16; 4]),
    ] {
        let (order, starts) = parts(&generated(name), rows);
        let got: Vec<u32> = starts.windows(2).map(|w| w[1] - w[0]).collect();
        assert_eq!(got, sizes, "{name}");
        let lines = first.iter().flat_map(|&start| start..start + 4);
        lines.enumerate().for_each(|(k, row)| assert_eq!(order.order()[k], row, "{name}"));
        let mut all = order.order().to_vec();
        all.sort_unstable();
        assert!(all.iter().enumerate().all(|(i, &row)| i as u32 == row), "{name}");
    }
    // A band as wide as two lines is not a grid: it wraps around the end of a line.
    let mut triplets = Triplets::new(12, 12);
    for i in 0..12usize {
        for j in [i.checked_sub(4), i.checked_sub(1), Some(i)].into_iter().flatten() {
            triplets.push(i, j, 1.0);
        }
    }
    let (_, starts) = parts::<f64>(&triplets.to_csr().unwrap(), 4);
    assert_eq!(starts, [0, 4, 8, 12]); // boxes of 2 x 2 would have 4, 4, 2 and 2 rows
}

#[test]
fn every_row_has_its_place() {
    let empty = Triplets::<f64>::new(7, 7).to_csr().unwrap();
    let mut order = compact_parts(&empty, 3).order().to_vec();
    order.sort_unstable();
    assert_eq!(order, [0, 1, 2, 3, 4, 5, 6]);
    assert!(compact_parts(&Triplets::<f64>::new(0, 0).to_csr().unwrap(), 3).is_empty());
}
