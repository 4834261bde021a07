//! MATLAB files written by SciPy.
use crate::{file, matrix};
use lacuna_engine::Complex64;
use lacuna_formats::io::{Opened, Wanted, parse_matrix, parse_vector};
use lacuna_formats::mm::ReadOptions;

#[test]
fn a_matrix_and_its_right_hand_side() {
    for (name, variable, b) in
        [("sparse.mat", "b", [0.0, 1.0, 2.0, 3.0]), ("problem.mat", "Problem.b", [1.0, 2.0, 3.0, 4.0])]
    {
        let bytes = file(name);
        let mut opened =
            Opened::from_reader(name, &bytes[..], Wanted::Matrix).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(opened.matrix::<f64>(&ReadOptions::default()).unwrap(), matrix(1.0), "{name}");
        let mut beside = opened.right_hand_side().unwrap().expect("a right-hand side");
        assert_eq!(beside.name(), format!("{name}:{variable}"));
        assert_eq!(beside.vector::<f64>(&ReadOptions::default()).unwrap(), b);
        assert_eq!(parse_vector::<f64>(name, &bytes).unwrap(), b);
    }
}

#[test]
fn complex_and_logical_matrices() {
    let a = parse_matrix::<Complex64>("a.mat", &file("sparse_v7.mat")).unwrap();
    assert_eq!(a, matrix(Complex64::new(1.0, 2.0)));
    // The only sparse variable of two; every value is 1.
    let a = parse_matrix::<f32>("a.mat", &file("int_logical.mat")).unwrap();
    let expected = matrix::<f32>(1.0);
    assert!((a.row_ptr(), a.col_idx()) == (expected.row_ptr(), expected.col_idx()));
    assert!(a.values().iter().all(|&v| v == 1.0));
}

#[test]
fn what_is_missing_is_told() {
    let bytes = file("int_logical.mat");
    let message = parse_vector::<f64>("a.mat", &bytes).expect_err("no vector").to_string();
    assert_eq!(message, "reading a.mat: expected a variable b, or a single vector; the file holds n, L");
    let message = parse_matrix::<f64>("a.mat", &bytes[..128]).expect_err("nothing").to_string();
    assert!(message.ends_with("the file holds no variable"), "{message}");
    let mut marked = bytes.clone();
    marked[126] = b'X';
    let message = parse_matrix::<f64>("a.mat", &marked).expect_err("no mark").to_string();
    assert_eq!(
        message,
        "a.mat: byte 126: the mark of the byte order should be IM or MI: expected a MAT-file of version 5 to 7"
    );
}
