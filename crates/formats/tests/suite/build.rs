//! Construction for other crates: what they pass is checked, and errors start with their operation.
use lacuna_engine::Error;
use lacuna_formats::Csr;
use lacuna_formats::build::{Entry, assemble, compressed, from_rows, pieces, rectangular};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

fn assembled(entries: &[Entry<f64>]) -> Result<Csr<f64>, Error> {
    assemble("reading A", 2, 3, pieces(entries).collect())
}

#[test]
fn entries_outside_the_matrix_are_refused_in_any_order() {
    let inside = [(0, 0, 1.0), (1, 2, 2.0)];
    assert_eq!(assembled(&inside).unwrap().get(1, 2), Some(2.0));
    for wrong in [(2, 0, 1.0), (u32::MAX, 0, 1.0), (0, 3, 1.0), (1, u32::MAX, 1.0)] {
        let last = [inside[0], wrong];
        let first = [wrong, inside[0]];
        for entries in [&last[..], &first, &[wrong]] {
            match assembled(entries).unwrap_err() {
                Error::Entry { operation, row, column, .. } => {
                    assert_eq!(
                        (operation.as_str(), row, column),
                        ("reading A", wrong.0 as usize, wrong.1 as usize)
                    )
                }
                error => panic!("{error}"),
            }
        }
    }
}

#[test]
fn rows_of_a_function_are_sorted_summed_and_checked() {
    let a = rectangular("generating A", [2, 3], &|i, row: &mut Vec<(u32, f64)>| {
        row.extend([(2, 1.0), (i as u32, 2.0), (2, 0.5)]);
    });
    let a = a.unwrap();
    assert_eq!(
        (a.row_ptr(), a.col_idx(), a.values()),
        (&[0, 2, 4][..], &[0, 2, 1, 2][..], &[2.0, 1.5, 2.0, 1.5][..])
    );

    let outside =
        rectangular("generating A", [2, 3], &|i, row: &mut Vec<(u32, f64)>| row.push((2 + i as u32, 1.0)));
    assert!(matches!(outside, Err(Error::Entry { row: 1, column: 3, .. })), "{outside:?}");
    let not_finite = from_rows("generating A", 3, |i, row| row.push((i as u32, 1.0 / (i as f64 - 1.0))));
    assert!(matches!(not_finite, Err(Error::Entry { row: 1, column: 1, .. })), "{not_finite:?}");
    for step in [1, u32::MAX] {
        let length = AtomicU32::new(5);
        let changing = from_rows("generating A", 8, |_, row| {
            (0..length.fetch_add(step, Relaxed) % 7).for_each(|j| row.push((j, 1.0)));
        });
        assert!(matches!(changing, Err(Error::Structure { .. })), "{changing:?}");
    }
}

#[test]
fn compressed_rows_are_checked_for_their_caller() {
    let of = |columns: Vec<u32>| compressed("reading A", 1, 2, vec![0, 2], columns, vec![1.0, 2.0]);
    assert!(of(vec![0, 1]).is_ok());
    for columns in [vec![1, 0], vec![0, 2], vec![0]] {
        let error = of(columns).unwrap_err().to_string();
        assert!(error.starts_with("reading A"), "{error}");
    }
}
