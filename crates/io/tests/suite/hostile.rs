//! Broken files: an error for each, never a panic, and no memory for what is only declared.
use crate::file;
use lacuna_engine::{Complex64, Error};
use lacuna_formats::Csr;
use lacuna_io::mm::ReadOptions;
use lacuna_io::{Opened, Spec, Wanted, npy, npz, parse_columns, parse_matrix, parse_vector, petsc};

/// A valid file of every supported form.
fn good() -> Vec<(&'static str, Vec<u8>)> {
    let names = [
        "csr.npz",
        "csc_stored.npz",
        "bsr.npz",
        "dia.npz",
        "coo_f32.npz",
        "coo_array_c16.npz",
        "vector.npy",
        "fortran_big_c8.npy",
        "sparse.mat",
        "sparse_v7.mat",
        "problem.mat",
        "int_logical.mat",
    ];
    let a = Spec::parse("gen:poisson1d:3").unwrap().build::<f64>().unwrap();
    let mut both = Vec::new();
    petsc::encode_matrix(&mut both, &a).unwrap();
    petsc::encode_vector(&mut both, &[1.0; 3]).unwrap();
    let mut files: Vec<_> = names.map(|name| (name, file(name))).into();
    files.push(("both.petsc", both));
    files.push(("a.rb", crate::boeing::RUA.into()));
    files
}

/// Reads bytes as any kind of content.
fn read(name: &str, bytes: &[u8]) -> Result<Csr<Complex64>, Error> {
    let matrix = parse_matrix(name, bytes);
    let _ = parse_vector::<Complex64>(name, bytes);
    let _ = parse_columns::<f32>(name, bytes);
    matrix
}

#[test]
fn a_file_that_ends_early_is_refused() {
    for (name, bytes) in good() {
        let whole = read(name, &bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        // A file of several variables may end after any of them.
        if name == "int_logical.mat" {
            continue;
        }
        for length in 0..bytes.len() {
            // A file that ends after its matrix lacks a right-hand side, or the end of a line.
            if let Ok(matrix) = read(name, &bytes[..length]) {
                assert_eq!(matrix, whole, "{name}, {length} bytes");
            }
        }
    }
}

#[test]
fn changed_bytes_do_no_harm() {
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as usize % below
    };
    const INTERESTING: [u8; 8] = [0, 1, 0x7F, 0x80, 0xFF, b'0', b'9', b'-'];
    for (name, good) in good() {
        for _ in 0..400 {
            let mut bytes = good.clone();
            for _ in 0..=next(3) {
                let at = next(bytes.len());
                bytes[at] = if next(2) == 0 { INTERESTING[next(8)] } else { next(256) as u8 };
            }
            if next(8) == 0 {
                let (from, count) = (next(bytes.len()), 1 + next(16));
                bytes.drain(from..(from + count).min(bytes.len()));
            }
            if let Err(error) = read(name, &bytes) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

fn refused(name: &str, bytes: &[u8]) -> String {
    let message = parse_matrix::<f64>(name, bytes).expect_err("should fail").to_string();
    assert_eq!(lacuna_engine::text::escaped(&message), message);
    message
}

/// An array with this header and these bytes.
fn array(dictionary: &str, values: &[u8]) -> Vec<u8> {
    let length = (dictionary.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\0", &length[..], dictionary.as_bytes(), values].concat()
}

#[test]
fn what_is_wrong_with_an_array_is_told() {
    let of =
        |descr: &str, shape: &str| format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}");
    let message = refused("a.npy", &array(&of("'<f8'", "(4000000000, 4000000000)"), &[0; 8]));
    assert_eq!(
        message,
        "a.npy: byte 85: 16000000000000000000 elements of 8 bytes should follow, 8 bytes are left"
    );
    let message = refused("a.npy", &array(&of("'<f8'", "(1,)"), &[0; 9]));
    assert_eq!(message, "a.npy: byte 73: the array of 1 elements ends here, 1 bytes follow");
    assert!(refused("a.npy", &array(&of("'<f2'", "(1,)"), &[0; 2])).contains("got `<f2`"));
    assert!(refused("a.npy", &array(&of("'\u{1b}x'", "(1,)"), &[0; 2])).contains("got `\\u{1b}x`"));
    assert!(refused("a.npy", &array(&of("[('x', '<f8')]", "(1,)"), &[0; 8])).contains("one of records"));
    let message = refused("a.npy", &array(&of("'<f8'", "(1, 1, 1)"), &[0; 8]));
    assert_eq!(message, "reading a.npy: expected an array of 1 or 2 dimensions, got 3");
    assert!(refused("a.npy", &array(&of("'<f8'", "(-1,)"), &[])).contains("expected a whole number"));
    assert!(
        refused("a.npy", &array("{'descr': '<f8'}", &[])).contains("expected all of descr, fortran_order")
    );
    assert!(refused("a.npy", &array("{'x': 1}", &[])).contains("expected one of descr"));
    assert_eq!(refused("a.npy", b"no array"), "a.npy: byte 0: a NumPy array should begin with `\\x93NUMPY`");
    let nan = f64::NAN.to_le_bytes();
    let message = parse_vector::<f64>("a.npy", &array(&of("'<f8'", "(1,)"), &nan)).expect_err("no number");
    assert_eq!(message.to_string(), "reading a.npy: column 0, row 0: NaN is not a finite number of type f64");
}

#[test]
fn what_is_quoted_is_shortened() {
    let long = "x".repeat(50_000);
    let dictionary = format!("{{'descr': '{long}', 'fortran_order': False, 'shape': (1,)}}");
    let form = csr(&long, &[2, 2], &[0, 1, 2], &[0, 1], wholes(&[1, 1]));
    for (name, bytes) in [
        ("a.npy", array(&dictionary, &[0; 8])),
        ("a.npz", archive(&[(&long, Vec::new())])),
        ("a.npz", form),
        ("a.rb", format!("t\n1 1 1 1\nrua {long} 1 1\n").into()),
        ("a.rb", format!("t\n1 1 1 1\nrua 1 1 1\n({long})\n").into()),
        ("a.rb", format!("t\n1 1 1 1\nrua 1 1 1\n(2I30000) (I9) (F9.1)\n{long}\n").into()),
    ] {
        let message = refused(name, &bytes);
        assert!(message.len() < 1000 && message.contains("xxx…"), "{message}");
    }
}

/// An uncompressed zip archive of arrays.
fn archive(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    use std::io::Write;
    let mut out = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, bytes) in members {
        out.start_file(*name, options.compression_method(zip::CompressionMethod::Deflated)).unwrap();
        out.write_all(bytes).unwrap();
    }
    out.finish().unwrap().into_inner()
}

fn wholes(values: &[i64]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    array(&format!("{{'descr': '<i8', 'fortran_order': False, 'shape': ({},)}}", values.len()), &bytes)
}

fn csr(form: &str, shape: &[i64], indptr: &[i64], indices: &[i64], data: Vec<u8>) -> Vec<u8> {
    let dictionary = format!("{{'descr': '|S{}', 'fortran_order': False, 'shape': ()}}", form.len());
    archive(&[
        ("format.npy", array(&dictionary, form.as_bytes())),
        ("shape.npy", wholes(shape)),
        ("indptr.npy", wholes(indptr)),
        ("indices.npy", wholes(indices)),
        ("data.npy", data),
    ])
}

#[test]
fn what_is_wrong_with_an_archive_is_told() {
    let ones = || wholes(&[1, 1]);
    assert!(parse_matrix::<f64>("a.npz", &csr("csr", &[2, 2], &[0, 1, 2], &[0, 1], ones())).is_ok());
    for (bytes, why) in [
        (
            csr("csr", &[2, 2], &[0, 1, 2], &[0, 2], ones()),
            "a.npz:indices.npy: byte 73: index 2: expected 0 to 1",
        ),
        (
            csr("csr", &[2, 2], &[0, 1, 2], &[0, -1], ones()),
            "a.npz:indices.npy: byte 73: index -1: expected 0 to 1",
        ),
        (
            csr("csr", &[2, 2], &[0, 2, 1], &[0, 1], ones()),
            "a.npz:indptr.npy: byte 81: pointer 1 comes after 2",
        ),
        (
            csr("csc", &[2, 2], &[0, 1, 3], &[0, 1], ones()),
            "a.npz:indptr.npy: byte 81: pointer 3: expected 0 to 2",
        ),
        (
            csr("csr", &[2, 2], &[1, 1, 2], &[0, 1], ones()),
            "a.npz:indptr.npy: byte 65: the first pointer should be 0, got 1",
        ),
        (
            csr("csr", &[3, 2], &[0, 1, 2], &[0, 1], ones()),
            "a.npz:indptr.npy: byte 0: expected 4 elements, one more than there are rows or columns, got 3",
        ),
        (
            csr("csr", &[2, 2], &[0, 1, 2], &[0], ones()),
            "a.npz:indices.npy: byte 0: expected 2 elements, as many as the last pointer says, got 1",
        ),
        (
            csr("csr", &[-2, 2], &[0, 1, 2], &[0], ones()),
            "a.npz:shape.npy: byte 65: the number of rows is -2",
        ),
        (
            csr("csr", &[2, 2, 2], &[0], &[0], ones()),
            "reading a.npz: expected a matrix of 2 dimensions, got 3",
        ),
        (
            csr("lil", &[2, 2], &[0], &[0], ones()),
            "reading a.npz: expected the form csr, csc, bsr, dia or coo, got `lil`",
        ),
        (
            csr("csr", &[2, 1 << 40], &[0, 1, 2], &[0, 1], ones()),
            "reading a.npz: 1099511627776 columns are more than 32-bit indices count (4294967295)",
        ),
        (
            csr("csc", &[4_000_000_000, 2], &[0, 1, 2], &[0, 1], ones()),
            "reading a.npz: 4000000000 rows or columns for 2 entries: at most 67108864 are made room for",
        ),
        (
            archive(&[("x\u{1b}.txt", vec![])]),
            "reading a.npz: expected the member format.npy, as scipy.sparse.save_npz writes; it is a zip archive of x\\u{1b}.txt: unpack it first",
        ),
    ] {
        assert_eq!(refused("a.npz", &bytes), why);
    }
}

#[test]
fn room_to_spare_is_not_part_of_a_matrix() {
    for indices in [&[0, 1, 7][..], &[0, 1]] {
        let file = csr("csr", &[2, 2], &[0, 1, 2], indices, wholes(&[3, 4, 5, 6]));
        let entries: Vec<_> = parse_matrix::<f64>("a.npz", &file).unwrap().entries().collect();
        assert_eq!(entries, [(0, 0, 3.0), (1, 1, 4.0)]);
    }
    assert_eq!(
        parse_matrix::<f64>("a.npz", &csr("csr", &[2, 2], &[0, 0, 0], &[0], wholes(&[3]))).unwrap().nnz(),
        0
    );
}

#[test]
fn coordinates_may_be_one_array() {
    let coo = |shape: &str, coords: &[i64]| {
        let bytes: Vec<u8> = coords.iter().flat_map(|v| v.to_le_bytes()).collect();
        archive(&[
            ("format.npy", array("{'descr': '|S3', 'fortran_order': False, 'shape': ()}", b"coo")),
            ("shape.npy", wholes(&[2, 3])),
            ("coords.npy", array(&format!("{{'descr': '<i8', {shape}}}"), &bytes)),
            ("data.npy", wholes(&[4, 5])),
            ("mine.npy", wholes(&[1])),
        ])
    };
    let by_rows = coo("'fortran_order': False, 'shape': (2, 2)", &[0, 1, 2, 0]);
    let by_columns = coo("'fortran_order': True, 'shape': (2, 2)", &[0, 2, 1, 0]);
    for file in [by_rows, by_columns] {
        let mut opened = Opened::from_reader("a.npz", &file[..], Wanted::Matrix).unwrap();
        let a = opened.matrix::<f64>(&ReadOptions::default()).unwrap();
        assert_eq!(a.entries().collect::<Vec<_>>(), [(0, 2, 4.0), (1, 0, 5.0)]);
        assert_eq!(opened.left_out(), ["the member mine.npy"]);
    }
    for (shape, coords, why) in [
        (
            "'fortran_order': False, 'shape': (2, 2)",
            &[0, 2, 2, 0][..],
            "entry 1 has the coordinate 2: expected 0 to 1",
        ),
        (
            "'fortran_order': False, 'shape': (2, 1)",
            &[0, 2],
            "expected an array of 2 x 2, as many as data has, got 2 x 1",
        ),
    ] {
        let said = refused("a.npz", &coo(shape, coords));
        assert!(said.ends_with(why), "{said}");
    }
}

#[test]
fn what_is_only_promised_takes_no_memory() {
    // Members that unpack to far more than their headers declare, and headers that declare far more than
    // there is.
    let bomb = [wholes(&[1, 1]), vec![0; 1 << 24]].concat();
    let message = refused("a.npz", &csr("csr", &[2, 2], &[0, 1, 2], &[0, 1], bomb));
    assert_eq!(message, "a.npz:data.npy: byte 81: the array of 2 elements ends here, 1 bytes follow");
    let huge = array("{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000,)}", &[]);
    let message = refused("a.npz", &csr("csr", &[2, 2], &[0, 1, 2], &[0, 1], huge));
    assert!(message.contains("a.npz:data.npy"), "{message}");
    for wholes in [
        [1_211_216, i32::MAX, i32::MAX, i32::MAX],
        [1_211_216, 0, 0, i32::MAX],
        [1_211_216, i32::MAX, 1, 0],
        [1_211_216, i32::MAX, i32::MAX, -1],
        [1_211_214, i32::MAX, 0, 0],
        [1_211_216, 1, 1, -2],
        [1_211_216, -1, 1, 0],
    ] {
        let bytes: Vec<u8> = wholes.iter().flat_map(|n| n.to_be_bytes()).collect();
        assert!(refused("a", &bytes).starts_with("a: byte "));
    }
}

#[test]
fn what_is_wrong_with_a_petsc_file_is_told() {
    let a = Spec::parse("gen:poisson1d:3").unwrap().build::<f64>().unwrap();
    let mut good = Vec::new();
    petsc::encode_matrix(&mut good, &a).unwrap();
    let changed = |at: usize, value: i32| {
        let mut bytes = good.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        refused("a.petsc", &bytes)
    };
    assert_eq!(
        changed(0, 7),
        "a.petsc: byte 0: the class id should be 1211216 for a matrix or 1211214 for a vector, got 7"
    );
    assert_eq!(changed(16, 1), "a.petsc: byte 16: the lengths of the rows should add up to 7 entries, got 6");
    assert_eq!(changed(28, 3), "a.petsc: byte 28: column 3: expected 0 to 2");
    assert!(
        refused("a.petsc", &[&good[..], b"x"].concat()).contains("7 values of 8 or 16 bytes should follow")
    );
}

#[test]
fn values_that_are_not_finite_are_not_written() {
    let x = [1.0, f64::INFINITY];
    assert!(npy::encode_vector(&mut Vec::new(), &x).is_err());
    assert!(petsc::encode_vector(&mut Vec::new(), &x).is_err());
    let a = Spec::parse("gen:poisson1d:3").unwrap().build::<f64>().unwrap();
    npz::encode_matrix(&mut Vec::new(), &a).unwrap();
}
