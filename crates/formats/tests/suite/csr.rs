//! Validity of matrices, and the results of all operations on them.
use lacuna_engine::{Complex64, Error, Format, row_sum};
use lacuna_formats::{Csr, CsrRef, Triplets};
use proptest::prelude::*;

fn message<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.expect_err("should fail").to_string()
}

fn small() -> Csr<f64> {
    Csr::new(3, 4, vec![0, 2, 2, 4], vec![0, 3, 1, 2], vec![1.0, 2.0, 3.0, 4.0]).unwrap()
}

#[test]
fn rejects_what_contradicts_itself() {
    let new = |ptr: &[u32], idx: &[u32], values: &[f64]| {
        message(Csr::new(2, 2, ptr.to_vec(), idx.to_vec(), values.to_vec()))
    };
    assert_eq!(new(&[0, 1], &[0], &[1.0]), "Csr::new: row_ptr should have length 3, got 2");
    assert_eq!(new(&[0, 1, 1], &[0, 1], &[1.0]), "Csr::new: col_idx should have length 1, got 2");
    assert_eq!(new(&[1, 1, 1], &[0], &[1.0]), "Csr::new: row_ptr[0] should be 0, got 1");
    assert_eq!(
        new(&[0, 1, 0], &[0], &[1.0]),
        "Csr::new: row_ptr should not decrease, got 0 after 1 at row 1"
    );
    assert_eq!(
        new(&[0, 1, 3], &[0, 1], &[1.0, 1.0]),
        "Csr::new: row_ptr should end at the number of entries 2, got 3"
    );
    assert_eq!(
        new(&[0, 1, 2], &[0, 2], &[1.0, 1.0]),
        "Csr::new: entry at row 1, column 2: the matrix has 2 columns"
    );
    assert_eq!(
        new(&[0, 2, 2], &[1, 0], &[1.0, 1.0]),
        "Csr::new: entry at row 0, column 0: comes after column 1; Triplets sorts entries"
    );
    assert_eq!(
        new(&[0, 0, 2], &[1, 1], &[1.0, 1.0]),
        "Csr::new: entry at row 1, column 1: the column is repeated; Triplets sums repeated entries"
    );
    assert_eq!(
        new(&[0, 0, 2], &[0, 1], &[1.0, f64::NAN]),
        "Csr::new: entry at row 1, column 1: NaN is not a finite number of type f64"
    );
    let columns_out_of_order_and_range = new(&[0, 2, 2], &[7, 0], &[1.0, 1.0]);
    assert_eq!(
        columns_out_of_order_and_range,
        "Csr::new: entry at row 0, column 7: the matrix has 2 columns"
    );
}

#[test]
fn sizes_beyond_32_bits_are_errors() {
    let big = u32::MAX as usize + 1;
    assert!(message(Csr::<f64>::identity(big)).contains("4294967296 rows are more than 32-bit"));
    assert!(message(Csr::<f64>::new(big, 0, vec![], vec![], vec![])).contains("rows"));
    assert!(message(Triplets::<f64>::new(1, big).to_csr()).contains("4294967296 columns"));
}

#[test]
fn empty_matrices_are_matrices() {
    let none = Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap();
    assert_eq!((none.rows(), none.cols(), none.nnz(), none.lanes()), (0, 0, 0, 1));
    none.product(&[], &mut []).unwrap();
    assert_eq!(none.transpose(), none);
    let hollow = Csr::<f64>::new(3, 2, vec![0; 4], vec![], vec![]).unwrap();
    let mut y = [1.0; 3];
    hollow.product(&[1.0, 1.0], &mut y).unwrap();
    assert_eq!(y, [0.0; 3]);
    assert_eq!(hollow.transpose().rows(), 2);
    assert_eq!(Triplets::<f64>::new(3, 2).to_csr().unwrap(), hollow);
    assert_eq!(hollow.row_entries(99).len(), 0);
}

#[test]
fn reads_back_what_it_holds() {
    let a = small();
    assert_eq!(a.entries().collect::<Vec<_>>(), [(0, 0, 1.0), (0, 3, 2.0), (2, 1, 3.0), (2, 2, 4.0)]);
    assert_eq!((a.get(2, 1), a.get(2, 0), a.get(9, 9)), (Some(3.0), None, None));
    assert_eq!(a.diagonal(), [1.0, 0.0, 4.0]);
    assert_eq!(a.bytes(), 4 * 4 + 4 * 4 + 4 * 8);
    assert_eq!(a.kernel(), "csr");
    assert_eq!(a.scaled(2.0).unwrap().values(), [2.0, 4.0, 6.0, 8.0]);
    let mut b = a.clone();
    assert!(message(b.set_values(&[1.0])).contains("length 4, got 1"));
    b.set_values(&[9.0; 4]).unwrap();
    assert_eq!(b, a.with_values(vec![9.0; 4]).unwrap());
    assert!(
        message(a.product(&[0.0; 3], &mut [0.0; 3]))
            .contains("of a 3x4 matrix: x should have length 4, got 3")
    );
}

#[test]
fn casts_only_where_nothing_is_lost_but_precision() {
    let a = small();
    let z: Csr<Complex64> = a.cast().unwrap();
    assert_eq!(z.cast::<f64>().unwrap(), a);
    assert_eq!(a.cast::<f32>().unwrap().values(), [1.0f32, 2.0, 3.0, 4.0]);
    let turned = z.scaled(Complex64::new(0.0, 1.0)).unwrap();
    assert!(message(turned.cast::<f64>()).contains("entry at row 0, column 0: 0+1i has an imaginary part"));
    assert_eq!(turned.adjoint().get(3, 0), Some(Complex64::new(0.0, -2.0)));
    assert_eq!(turned.transpose().get(3, 0), Some(Complex64::new(0.0, 2.0)));
    let large = a.scaled(1e300).unwrap();
    assert!(message(large.cast::<f32>()).contains("row 0, column 0: inf is not a finite number of type f32"));
    assert!(message(large.scaled(1e300)).contains("inf"));
}

#[test]
fn triplets_sum_in_the_order_of_insertion() {
    let mut t = Triplets::new(2, 2);
    t.extend([(1, 0, 1e16), (0, 1, 2.0), (1, 0, 1.0), (1, 0, -1e16)]);
    assert_eq!(t.to_csr().unwrap().values(), [2.0, 1e16 + 1.0 - 1e16]);
    let mut more = Triplets::new(2, 2);
    more.push(0, 1, 5.0);
    t.append(more).unwrap();
    assert_eq!(t.len(), 5);
    assert_eq!(t.to_csr().unwrap().get(0, 1), Some(7.0));
    assert!(message(t.append(Triplets::new(2, 3))).contains("expected a 2x2 matrix, got a 2x3"));
}

#[test]
fn triplets_name_the_entry_that_cannot_be() {
    let mut t = Triplets::new(2, 2);
    t.extend([(0, 0, 1.0), (2, 1, 1.0), (5, 5, 1.0)]);
    assert_eq!(
        message(t.to_csr()),
        "Triplets::to_csr: entry at row 2, column 1: lies outside the 2x2 matrix"
    );
    for entries in [vec![(1, 1, f64::INFINITY)], vec![(1, 1, f64::MAX), (0, 0, 1.0), (1, 1, f64::MAX)]] {
        let mut t = Triplets::new(2, 2);
        t.extend(entries);
        assert!(message(t.to_csr()).contains("row 1, column 1: inf is not a finite number"));
    }
}

/// A pseudorandom number below `bound` from a counter.
fn scrambled(k: usize, bound: usize) -> usize {
    let z = (k as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((z ^ (z >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33) as usize % bound
}

#[test]
fn many_triplets_in_every_order_give_one_matrix() {
    let (rows, cols, count) = (50_021, 997, 400_000);
    let mut expected = std::collections::BTreeMap::new();
    let mut t = Triplets::new(rows, cols);
    for k in 0..count {
        // Row 7 is long, so that long rows are sorted too.
        let i = if k % 100 == 0 { 7 } else { scrambled(k, rows) };
        let (j, v) = (scrambled(k + count, cols), scrambled(k, 64) as f64);
        t.push(i, j, v);
        *expected.entry((i, j)).or_insert(0.0) += v;
    }
    let a = t.to_csr().unwrap();
    assert!(a.entries().map(|(i, j, v)| ((i, j), v)).eq(expected));
    let checked = Csr::new(rows, cols, a.row_ptr().to_vec(), a.col_idx().to_vec(), a.values().to_vec());
    assert_eq!(checked.unwrap(), a);
    assert_eq!(a.to_triplets().to_csr().unwrap(), a);
    assert_eq!(a.transpose().transpose(), a);
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(one_thread.install(|| t.to_csr()).unwrap(), a);
}

#[test]
fn lanes_grow_with_the_rows() {
    let lanes = |per_row: usize| {
        let mut t = Triplets::new(10, 2000);
        (0..5).for_each(|i| (0..per_row).for_each(|j| t.push(2 * i, j, 1.0)));
        t.to_csr().unwrap().lanes()
    };
    let expected = [(1, 1), (15, 1), (16, 2), (31, 2), (32, 4), (255, 16), (256, 32), (2000, 32)];
    assert_eq!(expected.map(|(per_row, _)| (per_row, lanes(per_row))), expected);
}

fn entries() -> impl Strategy<Value = (usize, usize, Vec<(usize, usize, f64)>)> {
    (1usize..40, 1usize..200).prop_flat_map(|(rows, cols)| {
        let entry = (0..rows, 0..cols, -8i32..8).prop_map(|(i, j, v)| (i, j, f64::from(v)));
        (Just(rows), Just(cols), proptest::collection::vec(entry, 0..600))
    })
}

#[test]
fn long_rows_are_summed_in_pieces() {
    let mut t = Triplets::<f64>::new(700, 1300);
    (0..700).for_each(|i| t.push(i, i, 1.0));
    for (row, entries) in [(3, 64), (4, 65), (5, 512), (6, 1300)] {
        (0..entries).filter(|j| *j != row).for_each(|j| t.push(row, j, 1.0 / (3 + j) as f64));
    }
    let a = t.to_csr().unwrap();
    assert_eq!(a.lanes(), 1);
    let x: Vec<f64> = (0..1300).map(|j| 1.0 / (7 + scrambled(j, 91)) as f64).collect();
    let terms = |row| -> Vec<_> { a.row_entries(row).map(|(j, v)| (v, x[j])).collect() };
    assert_eq!(a.row(3, &x), row_sum(1, terms(3)));
    for row in [4, 5] {
        assert_eq!(a.row(row, &x), row_sum(32, terms(row)), "row {row}");
    }
    assert_ne!(a.row(5, &x), row_sum(1, terms(5)));
    let pieces: Vec<f64> = terms(6).chunks(512).map(|piece| row_sum(32, piece.iter().copied())).collect();
    assert_eq!(a.row(6, &x), pieces[0] + pieces[1] + pieces[2]);
}

proptest! {
    #[test]
    fn triplets_agree_with_a_dense_array((rows, cols, list) in entries()) {
        let mut dense = vec![0.0; rows * cols];
        let mut t = Triplets::new(rows, cols);
        for &(i, j, v) in &list {
            dense[i * cols + j] += v;
            t.push(i, j, v);
        }
        let a = t.to_csr().unwrap();
        for i in 0..rows {
            for j in 0..cols {
                prop_assert_eq!(a.get(i, j).unwrap_or(0.0), dense[i * cols + j]);
                prop_assert_eq!(a.transpose().get(j, i), a.get(i, j));
            }
        }
        prop_assert_eq!(a.transpose().transpose(), a);
    }

    #[test]
    fn rows_have_the_canonical_bits((rows, cols, list) in entries()) {
        let mut t = Triplets::new(rows, cols);
        for (k, (i, j, v)) in list.into_iter().enumerate() {
            let tilt = scrambled(k, 1000) as f64;
            t.push(i, j, Complex64::new((v + 0.1) / (tilt + 3.0), (tilt - 400.0) / 7.0));
        }
        let a = t.to_csr().unwrap();
        let number = |k| Complex64::new(1.0 / (scrambled(k, 77) as f64 + 0.3), scrambled(k, 9) as f64 / 7.0);
        let x: Vec<Complex64> = (0..cols).map(number).collect();
        let mut y = vec![Complex64::default(); rows];
        a.product(&x, &mut y).unwrap();
        for (i, y) in y.iter().enumerate() {
            prop_assert_eq!(*y, row_sum(a.lanes(), a.row_entries(i).map(|(j, v)| (v, x[j]))));
        }
    }
}

/// Entries are looked at in blocks: the borders of these and of rows are where one could be missed.
#[test]
fn columns_out_of_order_are_found_wherever_they_are() {
    let (rows, each) = (3000, 3);
    let row_ptr: Vec<u32> = (0..=rows).map(|i| i * each).collect();
    let columns: Vec<u32> = (0..rows * each).map(|k| 5 * (k % each)).collect();
    let values = vec![1.0; columns.len()];
    let made = |columns: &[u32]| CsrRef::new(rows as usize, 11, &row_ptr, columns, &values).map(drop);
    assert!(made(&columns).is_ok());
    for k in [0, 1, 2, 3, 4094, 4095, 4096, 4097, 4098, 8190, 8191, 8192, 8193, 8997, 8998, 8999] {
        let row = k / 3;
        for wrong in [0, 11] {
            let mut columns = columns.clone();
            columns[k] = wrong;
            match made(&columns) {
                Ok(()) => assert!(wrong == 0 && k % 3 == 0, "{k}"),
                Err(Error::Entry { row: found, .. }) => assert_eq!(found, row, "{k}"),
                Err(error) => panic!("{k}: {error}"),
            }
        }
    }
}
