//! Files written by SciPy, and bytes in PETSc's layout.
use crate::{file, matrix};
use lacuna_engine::{Complex32, Complex64, NumberType};
use lacuna_io::mm::ReadOptions;
use lacuna_io::{DenseArray, Form, Opened, Wanted, parse_columns, parse_matrix, parse_vector, read_matrix};

#[test]
fn matrices_of_save_npz() {
    for name in ["csr.npz", "csc_stored.npz", "dia.npz", "coo_f32.npz", "csr_wide_i4.npz"] {
        let a = parse_matrix::<f64>(name, &file(name)).unwrap_or_else(|e| panic!("{e}"));
        let expected = matrix::<f64>(1.0);
        match name {
            // Integers, so that 0.5 is 0.
            "csr_wide_i4.npz" => {
                assert!(expected.entries().all(|(i, j, v)| a.get(i, j).unwrap_or(0.0) == v.trunc()))
            }
            _ => assert_eq!(a, expected, "{name}"),
        }
    }
    // Blocks keep their zeros.
    let a = parse_matrix::<f64>("bsr.npz", &file("bsr.npz")).unwrap();
    let expected = matrix::<f64>(1.0);
    assert!(a.nnz() > expected.nnz());
    assert!(a.entries().all(|(i, j, v)| expected.get(i, j).unwrap_or(0.0) == v));
    assert!(expected.entries().all(|(i, j, v)| a.get(i, j) == Some(v)));
    let a = parse_matrix::<Complex64>("c.npz", &file("coo_array_c16.npz")).unwrap();
    assert_eq!(a, matrix(Complex64::new(1.0, 2.0)));
}

#[test]
fn what_a_file_holds_is_known_before_it_is_read() {
    let about = |name: &str| *Opened::from_reader(name, &file(name)[..], Wanted::Matrix).unwrap().about();
    let coo = about("coo_f32.npz");
    assert_eq!((coo.form, coo.rows, coo.cols, coo.entries, coo.kind), (Form::Npz, 4, 6, 10, NumberType::F32));
    assert_eq!(about("coo_array_c16.npz").kind, NumberType::C64);
    let columns = about("fortran_big_c8.npy");
    assert_eq!((columns.form, columns.kind, columns.is_dense), (Form::Npy, NumberType::C32, true));
}

#[test]
fn arrays_of_numpy() {
    assert_eq!(parse_vector::<f64>("v.npy", &file("vector.npy")).unwrap(), [1.5, -2.0, 3.0]);
    let c = |re, im| Complex32::new(re, im);
    let values = vec![c(1.0, 1.0), c(4.0, 0.0), c(2.0, 0.0), c(5.0, 0.0), c(3.0, 0.0), c(6.0, -2.0)];
    let b = parse_columns::<Complex32>("b.npy", &file("fortran_big_c8.npy")).unwrap();
    assert_eq!(b, DenseArray { rows: 2, cols: 3, values });
    let message = parse_vector::<Complex32>("b.npy", &file("fortran_big_c8.npy")).expect_err("3 columns");
    assert_eq!(message.to_string(), "reading b.npy: expected a vector, that is one column, got a 2x3 matrix");
    let message = parse_vector::<f64>("o.npy", &file("objects.npy")).expect_err("objects").to_string();
    assert_eq!(
        message,
        "reading o.npy: expected elements of type f4, f8, c8, c16, i1 to i8, u1 to u8 or b1, got `|O`: such an array is pickled Python"
    );
}

/// A PETSc object: integers of a width, then bytes.
fn petsc<const N: usize>(width: usize, wholes: [i64; N], values: &[u8]) -> Vec<u8> {
    let wholes = wholes.iter().flat_map(|n| n.to_be_bytes()[8 - width..].to_vec());
    wholes.chain(values.iter().copied()).collect()
}

/// `[[2, 1], [0, 3]]` with the given values.
fn petsc_matrix(width: usize, values: &[u8]) -> Vec<u8> {
    petsc(width, [1_211_216, 2, 2, 3, 2, 1, 0, 1, 1], values)
}

fn doubles(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_be_bytes()).collect()
}

#[test]
fn a_value_may_look_like_an_object() {
    // The bits of a matrix without rows, where the values would end if they were real.
    let looks = f64::from_bits(1_211_216 << 32);
    let file = petsc_matrix(4, &doubles(&[2.0, 1.0, 3.0, looks, 0.0, -1.0]));
    let a = parse_matrix::<Complex64>("a", &file).unwrap();
    assert_eq!(a.get(0, 1), Some(Complex64::new(3.0, looks)));
    // Real ones with a right-hand side, as long as complex ones alone.
    let file = [petsc_matrix(4, &doubles(&[2.0, 1.0, 3.0])), petsc(4, [1_211_214, 2], &doubles(&[1.0, 4.0]))]
        .concat();
    let mut opened = Opened::from_reader("a", &file[..], Wanted::Matrix).unwrap();
    assert_eq!(opened.matrix::<f64>(&ReadOptions::default()).unwrap().get(1, 1), Some(3.0));
    let mut beside = opened.right_hand_side().unwrap().expect("a right-hand side");
    assert_eq!(beside.vector::<f64>(&ReadOptions::default()).unwrap(), [1.0, 4.0]);
}

#[test]
fn petsc_matrices_of_every_build() {
    for width in [4, 8] {
        let a = parse_matrix::<f64>("a", &petsc_matrix(width, &doubles(&[2.0, 1.0, 3.0]))).unwrap();
        let list: Vec<_> = a.entries().collect();
        assert_eq!(list, [(0, 0, 2.0), (0, 1, 1.0), (1, 1, 3.0)], "{width}");
        let complex = petsc_matrix(width, &doubles(&[2.0, 1.0, 1.0, 0.0, 3.0, -1.0]));
        let a = parse_matrix::<Complex64>("a", &complex).unwrap();
        assert_eq!(a.get(1, 1), Some(Complex64::new(3.0, -1.0)));
        let message = parse_matrix::<f32>("a", &complex).expect_err("complex").to_string();
        assert_eq!(message, "reading a: the file holds complex numbers, f32 cannot; use c64 or c32");
        let dense = petsc(width, [1_211_216, 2, 2, -1], &doubles(&[2.0, 1.0, 0.0, 3.0]));
        assert_eq!(parse_matrix::<f64>("a", &dense).unwrap().nnz(), 3);
    }
}

#[test]
fn an_archive_without_its_end_is_cut_off() {
    let whole = file("csr.npz");
    for length in [whole.len() / 2, whole.len() - 22] {
        assert_eq!(
            parse_matrix::<f64>("a.npz", &whole[..length]).unwrap_err().to_string(),
            "reading a.npz: the file ends too early: the directory at the end of a zip archive is missing"
        );
    }
}

#[test]
fn a_vector_behind_a_petsc_matrix_is_its_right_hand_side() {
    for width in [4, 8] {
        let b = petsc(width, [1_211_214, 2], &doubles(&[5.0, 6.0]));
        let both = [petsc_matrix(width, &doubles(&[2.0, 1.0, 3.0])), b.clone()].concat();
        let mut file = Opened::from_reader("a", &both[..], Wanted::Matrix).unwrap();
        file.keep().unwrap();
        for _ in 0..2 {
            assert_eq!(file.matrix::<f64>(&ReadOptions::default()).unwrap().nnz(), 3);
        }
        let mut rhs = file.right_hand_side().unwrap().expect("a right-hand side");
        assert_eq!(rhs.vector::<f64>(&ReadOptions::default()).unwrap(), [5.0, 6.0]);
        assert!(rhs.is_spent() && rhs.vector::<f64>(&ReadOptions::default()).is_err());
        for bytes in [&both, &b] {
            assert_eq!(parse_vector::<f64>("a", bytes).unwrap(), [5.0, 6.0]);
        }
    }
}

#[test]
fn a_petsc_file_is_read_in_any_order() {
    let a = || petsc_matrix(4, &doubles(&[2.0, 1.0, 3.0]));
    let vector = |values: &[f64]| petsc(4, [1_211_214, values.len() as i64], &doubles(values));
    for (file, b, left_out) in [
        ([vector(&[5.0, 6.0]), a()].concat(), &[5.0, 6.0][..], &[][..]),
        (
            [vector(&[5.0, 6.0]), a(), vector(&[7.0]), a(), vector(&[8.0, 9.0])].concat(),
            &[7.0],
            &["object 1, a vector of 2 x 1", "object 4, a matrix of 2 x 2", "object 5, a vector of 2 x 1"],
        ),
    ] {
        let mut opened = Opened::from_reader("a", &file[..], Wanted::Matrix).unwrap();
        assert_eq!((opened.about().rows, opened.about().cols), (2, 2));
        assert_eq!(opened.left_out(), left_out);
        let mut beside = opened.right_hand_side().unwrap().expect("a right-hand side");
        assert_eq!(beside.vector::<f64>(&ReadOptions::default()).unwrap(), b);
    }
}

#[test]
fn other_forms_may_be_compressed_too() {
    use std::io::Write;
    for (name, bytes) in [("a.npz", file("csr.npz")), ("a", petsc_matrix(4, &doubles(&[2.0, 1.0, 3.0])))] {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(&bytes).unwrap();
        let packed = out.finish().unwrap();
        let plain = parse_matrix::<f64>(name, &bytes).unwrap();
        assert_eq!(parse_matrix::<f64>(name, &packed).unwrap(), plain);
    }
}

#[test]
fn numbers_that_the_type_does_not_hold_are_told() {
    let notes = std::sync::Mutex::new(Vec::new());
    let note = |text: &str| notes.lock().unwrap().push(text.to_string());
    let options = ReadOptions { progress: None, notes: Some(&note) };
    let bytes = petsc_matrix(4, &doubles(&[2.0, 1e-50, -1e-60]));
    let mut file = Opened::from_reader("a", &bytes[..], Wanted::Matrix).unwrap();
    file.matrix::<f32>(&options).unwrap();
    let said = "a: element 1, 1e-50, is too small for f32 and became 0; the same is true of 1 more";
    assert_eq!(notes.into_inner().unwrap(), [said]);
    let bytes = petsc_matrix(4, &doubles(&[2.0, 1e50, 1.0]));
    let message = parse_matrix::<f32>("a", &bytes).expect_err("too large").to_string();
    assert_eq!(message, "reading a: entry at row 0, column 1: inf is not a finite number of type f32");
}

#[test]
fn files_are_opened_by_name() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/csr.npz");
    assert_eq!(read_matrix::<f64>(path, &ReadOptions::default()).unwrap(), matrix(1.0));
}
