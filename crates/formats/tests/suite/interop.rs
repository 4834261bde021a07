//! Borrowed arrays, and matrices of other crates: borrowing does not copy, round trips preserve the matrix,
//! and invalid input is refused.
//! `cargo test -p lacuna-formats --test interop --features faer024,sprs011,nalgebra-sparse012,serde`
use lacuna_engine::{Complex64, Error};
use lacuna_formats::{Csr, CsrRef, Triplets};
use proptest::prelude::*;
use std::sync::Arc;

fn small() -> Csr<f64> {
    Csr::new(3, 4, vec![0, 2, 2, 4], vec![0, 3, 1, 2], vec![1.0, 2.0, 3.0, 4.0]).unwrap()
}

/// Any matrix, including ones with one row or none.
fn any_matrix() -> impl Strategy<Value = Csr<Complex64>> {
    (0..12usize, 0..12usize).prop_flat_map(|(rows, cols)| {
        let entry = (0..rows.max(1), 0..cols.max(1), -9i32..9, -9i32..9);
        proptest::collection::vec(entry, 0..40).prop_map(move |entries| {
            let mut t = Triplets::new(rows, cols);
            if rows * cols > 0 {
                t.extend(
                    entries.into_iter().map(|(i, j, re, im)| (i, j, Complex64::new(re.into(), im.into()))),
                );
            }
            t.to_csr().unwrap()
        })
    })
}

#[test]
fn borrowed_rows_are_checked_and_not_copied() {
    let a = small();
    let view = a.view();
    assert!(std::ptr::eq(view.values(), a.values()) && std::ptr::eq(view.col_idx(), a.col_idx()));
    assert_eq!((view.rows(), view.cols(), view.nnz()), (3, 4, 4));
    assert_eq!(view.to_csr(), a);
    assert_eq!(*Arc::<Csr<f64>>::from(view), a);
    assert_eq!(CsrRef::new(3, 4, a.row_ptr(), a.col_idx(), a.values()).unwrap(), view);
    // SAFETY: the arrays of a matrix.
    let unchecked = unsafe { CsrRef::new_unchecked(3, 4, a.row_ptr(), a.col_idx(), a.values()) };
    assert_eq!(unchecked, view);
    let refused = CsrRef::new(3, 3, a.row_ptr(), a.col_idx(), a.values()).unwrap_err();
    assert_eq!(refused.to_string(), "CsrRef::new: entry at row 0, column 3: the matrix has 3 columns");
    let refused = CsrRef::new(3, 4, a.row_ptr(), a.col_idx(), &[1.0, 2.0, 3.0, f64::NAN]).unwrap_err();
    assert!(matches!(refused, Error::Entry { row: 2, column: 2, .. }));
}

#[test]
fn a_matrix_is_taken_apart_and_put_together() {
    let (rows, cols, row_ptr, col_idx, values) = small().into_parts();
    let at = values.as_ptr();
    let again = Csr::new(rows, cols, row_ptr, col_idx, values).unwrap();
    assert_eq!((again.values().as_ptr(), again), (at, small()));
}

#[test]
fn indices_of_other_types_are_checked() {
    let wide = |row_ptr: &[usize], col_idx: &[i64]| {
        Csr::from_indices(2, 3, row_ptr, col_idx, vec![1.0; col_idx.len()]).map_err(|e| e.to_string())
    };
    assert_eq!(wide(&[0, 1, 3], &[2, 0, 1]).unwrap().col_idx(), [2, 0, 1]);
    let beyond = 1usize << 40;
    assert_eq!(
        wide(&[0, 1, beyond], &[2, 0, 1]).unwrap_err(),
        "Csr::from_indices: row_ptr[2] should be from 0 to 4294967295, got 1099511627776"
    );
    assert_eq!(
        wide(&[0, 1, 3], &[2, -1, 1]).unwrap_err(),
        "Csr::from_indices: col_idx[1] should be from 0 to 4294967295, got -1"
    );
    assert!(wide(&[0, 1, 3], &[2, 0, 3]).unwrap_err().contains("the matrix has 3 columns"));
}

proptest! {
    #[test]
    fn wide_indices_give_the_same_matrix(a in any_matrix()) {
        let wide = |all: &[u32]| all.iter().map(|&k| u64::from(k)).collect::<Vec<_>>();
        let (row_ptr, col_idx) = (wide(a.row_ptr()), wide(a.col_idx()));
        let again = Csr::from_indices(a.rows(), a.cols(), &row_ptr, &col_idx, a.values().to_vec());
        prop_assert_eq!(&again.unwrap(), &a);
        prop_assert_eq!(a.view().to_csr(), a);
    }
}

#[cfg(feature = "faer024")]
mod faer {
    use super::*;
    use faer024::sparse::{
        SparseColMat, SparseRowMat, SparseRowMatRef, SymbolicSparseColMat, SymbolicSparseRowMat,
    };

    #[test]
    fn rows_are_lent() {
        let a = small();
        let lent: SparseRowMatRef<'_, u32, f64> = (&a).try_into().unwrap();
        assert!(std::ptr::eq(lent.val(), a.values()));
        assert!(std::ptr::eq(lent.symbolic().row_ptr(), a.row_ptr()));
        assert!(std::ptr::eq(lent.symbolic().col_idx(), a.col_idx()));
        let owned = SparseRowMat::new(
            SymbolicSparseRowMat::new_checked(3, 4, vec![0u32, 2, 2, 4], None, vec![0, 3, 1, 2]),
            vec![1.0, 2.0, 3.0, 4.0],
        );
        let at = owned.val().as_ptr();
        let taken = Csr::try_from(owned).unwrap();
        assert_eq!((taken.values().as_ptr(), taken), (at, a));
    }

    #[test]
    fn rows_with_room_behind_them_are_closed_up() {
        let starts = vec![0u32, 3, 4, 7];
        let symbolic =
            SymbolicSparseRowMat::new_checked(3, 4, starts, Some(vec![2, 0, 2]), vec![0, 3, 9, 9, 1, 2, 9]);
        let owned = SparseRowMat::new(symbolic, vec![1.0, 2.0, 9.0, 9.0, 3.0, 4.0, 9.0]);
        assert_eq!(Csr::try_from(owned).unwrap(), small());
    }

    #[test]
    fn what_is_not_finite_is_refused() {
        let symbolic = SymbolicSparseRowMat::new_checked(1, 1, vec![0u32, 1], None, vec![0]);
        assert!(matches!(
            Csr::try_from(SparseRowMat::new(symbolic, vec![f64::INFINITY])),
            Err(Error::Entry { row: 0, column: 0, .. })
        ));
    }

    proptest! {
        #[test]
        fn round_trips(a in any_matrix()) {
            let lent = SparseRowMatRef::try_from(&a).unwrap();
            prop_assert_eq!(&Csr::try_from(lent).unwrap(), &a);
            let columns = a.transpose();
            let starts = columns.row_ptr().iter().map(|&k| k as usize).collect();
            let rows = columns.col_idx().iter().map(|&k| k as usize).collect();
            let symbolic = SymbolicSparseColMat::new_checked(a.rows(), a.cols(), starts, None, rows);
            let by_columns = SparseColMat::new(symbolic, columns.values().to_vec());
            prop_assert_eq!(&Csr::try_from(by_columns.as_ref()).unwrap(), &a);
        }
    }
}

#[cfg(feature = "sprs011")]
mod sprs {
    use super::*;
    use sprs011::{CsMatI, CsMatViewI, TriMatI};

    #[test]
    fn arrays_move_each_way() {
        let a = small();
        let at = a.values().as_ptr();
        let moved: CsMatI<f64, u32, u32> = a.into();
        assert_eq!(moved.data().as_ptr(), at);
        let back = Csr::try_from(moved).unwrap();
        assert_eq!((back.values().as_ptr(), &back), (at, &small()));
        let lent: CsMatViewI<'_, f64, u32, u32> = (&back).into();
        assert!(std::ptr::eq(lent.data(), back.values()) && std::ptr::eq(lent.indices(), back.col_idx()));
    }

    #[test]
    fn what_is_not_finite_or_outside_is_refused() {
        let mut a: CsMatI<f64, u32, u32> = small().into();
        a.data_mut()[2] = f64::NAN;
        assert!(matches!(Csr::try_from(a), Err(Error::Entry { row: 2, column: 1, .. })));
        let mut outside = Triplets::new(2, 2);
        outside.push(2, 0, 1.0);
        assert!(matches!(
            TriMatI::<f64, u32>::try_from(&outside),
            Err(Error::Entry { row: 2, column: 0, .. })
        ));
    }

    proptest! {
        #[test]
        fn round_trips(a in any_matrix()) {
            let lent = CsMatViewI::from(&a);
            prop_assert_eq!(&Csr::try_from(lent.to_other_storage()).unwrap(), &a, "by columns");
            let wide: CsMatI<Complex64, usize, u64> = lent.to_other_types();
            prop_assert_eq!(&Csr::try_from(wide.view()).unwrap(), &a);
            prop_assert_eq!(&Csr::try_from(wide.to_csc().view()).unwrap(), &a, "by columns");
            let triplets = TriMatI::try_from(&a.to_triplets()).unwrap();
            prop_assert_eq!(&Triplets::from(&triplets).to_csr().unwrap(), &a);
        }
    }
}

#[cfg(feature = "nalgebra-sparse012")]
mod nalgebra_sparse {
    use super::*;
    use nalgebra_sparse012::{CooMatrix, CscMatrix, CsrMatrix};

    #[test]
    fn what_is_not_finite_or_outside_is_refused() {
        let a = CsrMatrix::try_from_csr_data(1, 2, vec![0, 2], vec![0, 1], vec![1.0, f64::NAN]).unwrap();
        assert!(matches!(Csr::try_from(&a), Err(Error::Entry { row: 0, column: 1, .. })));
        let mut outside = Triplets::new(2, 2);
        outside.push(0, 2, 1.0);
        assert!(matches!(CooMatrix::try_from(&outside), Err(Error::Entry { row: 0, column: 2, .. })));
    }

    proptest! {
        #[test]
        fn round_trips(a in any_matrix()) {
            prop_assert_eq!(&Csr::try_from(&CsrMatrix::from(&a)).unwrap(), &a);
            let columns = a.transpose();
            let wide = |all: &[u32]| all.iter().map(|&k| k as usize).collect::<Vec<_>>();
            let (starts, rows) = (wide(columns.row_ptr()), wide(columns.col_idx()));
            let by_columns =
                CscMatrix::try_from_csc_data(a.rows(), a.cols(), starts, rows, columns.values().to_vec());
            prop_assert_eq!(&Csr::try_from(&by_columns.unwrap()).unwrap(), &a);
            let triplets = CooMatrix::try_from(&a.to_triplets()).unwrap();
            prop_assert_eq!(&Triplets::from(&triplets).to_csr().unwrap(), &a);
        }
    }
}

#[cfg(feature = "serde")]
mod serde {
    use super::*;

    #[test]
    fn text_that_is_no_matrix_is_refused() {
        let text = |columns: &str| {
            format!(r#"{{"rows":1,"cols":2,"row_ptr":[0,2],"col_idx":{columns},"values":[1.0,2.0]}}"#)
        };
        assert!(serde_json::from_str::<Csr<f64>>(&text("[0,1]")).is_ok());
        let refused = serde_json::from_str::<Csr<f64>>(&text("[1,0]")).unwrap_err();
        assert!(refused.to_string().contains("comes after column 1"), "{refused}");
    }

    proptest! {
        #[test]
        fn round_trips(a in any_matrix()) {
            let text = serde_json::to_string(&a).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Csr<Complex64>>(&text).unwrap(), &a);
        }
    }
}
