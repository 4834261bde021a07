//! MATLAB files written by SciPy.
use crate::{file, matrix};
use lacuna_engine::Complex64;
use lacuna_io::mm::ReadOptions;
use lacuna_io::{Opened, Wanted, parse_matrix, parse_vector};

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

/// An element: its type, its bytes, and zeros up to a multiple of eight.
fn piece(kind: u32, bytes: &[u8]) -> Vec<u8> {
    let padding = vec![0; bytes.len().next_multiple_of(8) - bytes.len()];
    [&kind.to_le_bytes()[..], &(bytes.len() as u32).to_le_bytes(), bytes, &padding].concat()
}

fn whole(numbers: &[i32]) -> Vec<u8> {
    piece(5, &numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>())
}

/// A variable: class and flags, sizes, name, and the elements of its data.
fn variable(flags: u32, sizes: [i32; 2], name: &str, data: &[Vec<u8>]) -> Vec<u8> {
    let flags = piece(6, &[flags.to_le_bytes(), [0; 4]].concat());
    piece(14, &[flags, whole(&sizes), piece(1, name.as_bytes()), data.concat()].concat())
}

fn full(sizes: [i32; 2], name: &str, values: &[f64]) -> Vec<u8> {
    variable(6, sizes, name, &[piece(9, &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())])
}

fn mat(variables: &[Vec<u8>]) -> Vec<u8> {
    let mut head = vec![b' '; 124];
    head.extend([0, 1, b'I', b'M']);
    [head, variables.concat()].concat()
}

#[test]
fn a_vector_may_be_a_row_and_what_is_not_used_is_told() {
    let a = || full([2, 2], "A", &[2.0, 1.0, 0.0, 3.0]);
    let b = || full([1, 2], "b", &[5.0, 6.0]);
    let words = variable(4, [1, 1], "words", &[piece(4, &[65, 0])]);
    let file = mat(&[b(), full([2, 1], "x0", &[1.0, 1.0]), a(), words]);
    let mut opened = Opened::from_reader("m.mat", &file[..], Wanted::Matrix).unwrap();
    assert_eq!(opened.left_out(), ["the variable x0, 2 x 1", "the variable words, no matrix"]);
    let mut beside = opened.right_hand_side().unwrap().expect("a right-hand side");
    assert_eq!(beside.vector::<f64>(&ReadOptions::default()).unwrap(), [5.0, 6.0]);
    assert_eq!(parse_vector::<f64>("m.mat", &file).unwrap(), [5.0, 6.0]);
    assert_eq!(parse_vector::<f64>("m.mat", &mat(&[b()])).unwrap(), [5.0, 6.0]);
    // One that does not fit is handed on with its sizes.
    let file = mat(&[a(), full([4, 1], "b", &[1.0; 4])]);
    let mut opened = Opened::from_reader("m.mat", &file[..], Wanted::Matrix).unwrap();
    assert_eq!(opened.right_hand_side().unwrap().map(|b| b.about().rows), Some(4));
}

#[test]
fn logical_sparse_values_may_be_bytes() {
    let logical = |flags: u32| {
        let values = piece(9, &[1, 1, 1]);
        mat(&[variable(flags, [2, 2], "A", &[whole(&[0, 1, 1]), whole(&[0, 2, 3]), values])])
    };
    let a = parse_matrix::<f64>("a.mat", &logical(0x205)).unwrap();
    assert_eq!(a.entries().collect::<Vec<_>>(), [(0, 0, 1.0), (1, 0, 1.0), (1, 1, 1.0)]);
    assert!(parse_matrix::<f64>("a.mat", &logical(5)).is_err());
}

#[test]
fn other_versions_are_named() {
    let mut hdf5 = vec![b' '; 600];
    hdf5[512..520].copy_from_slice(b"\x89HDF\r\n\x1A\n");
    let version_4: Vec<u8> =
        [0, 1, 1, 0, 2].iter().flat_map(|n: &u32| n.to_le_bytes()).chain(*b"A\0").collect();
    for (file, version) in [(hdf5, "7.3, which is HDF5"), (version_4, "4")] {
        let said = parse_matrix::<f64>("a.mat", &file).unwrap_err().to_string();
        assert_eq!(
            said,
            format!(
                "reading a.mat: it is a MATLAB file of version {version}; write it with -v7, which is read"
            )
        );
    }
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
