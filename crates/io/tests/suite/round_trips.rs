//! Written files are read back to the same bits.
use crate::bits;
use lacuna_engine::{Complex32, Complex64, Scalar};
use lacuna_formats::{Csr, Triplets};
use lacuna_io::Spec;
use lacuna_io::mm::{self, ReadOptions, Storage, Symmetry, WriteOptions, encode_matrix};
use lacuna_io::{
    DenseArray, Opened, Wanted, npy, npz, parse_columns, parse_matrix, parse_vector, petsc, read_matrix,
    read_vector, write_matrix, write_vector,
};
use proptest::prelude::*;

/// Numbers with arbitrary bits, including zeros and subnormals.
fn number<T: Scalar>() -> impl Strategy<Value = T> {
    let part = prop_oneof![any::<f32>().prop_map(f64::from), Just(0.0), Just(-0.0), -1e3..1e3];
    (part.clone(), part).prop_map(|(re, im)| {
        let finite = |v: f64| if v.is_finite() { v } else { 1.0 };
        T::from_parts(finite(re), finite(im))
    })
}

fn any_matrix<T: Scalar>() -> impl Strategy<Value = Csr<T>> {
    (0..9usize, 0..9usize).prop_flat_map(|(rows, cols)| {
        let most = if rows * cols == 0 { 0 } else { 20 };
        let entry = (0..rows.max(1), 0..cols.max(1), number::<T>());
        proptest::collection::btree_map((entry.0, entry.1), entry.2, 0..=most).prop_map(move |entries| {
            let mut t = Triplets::new(rows, cols);
            t.extend(entries.into_iter().map(|((i, j), v)| (i, j, v)));
            t.to_csr().unwrap()
        })
    })
}

fn check_matrix<T: Scalar>(a: &Csr<T>) {
    let mut files = vec![Vec::new(); 3];
    npz::encode_matrix(&mut files[0], a).unwrap();
    petsc::encode_matrix(&mut files[1], a).unwrap();
    // A symmetric file keeps the sign of only one of two zeros across the diagonal.
    let storage = Storage::As(Symmetry::General);
    encode_matrix(&mut files[2], a, &WriteOptions { storage, ..Default::default() }).unwrap();
    for bytes in files {
        let read = parse_matrix::<T>("a", &bytes).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(&read, a);
        assert_eq!(bits(read.values()), bits(a.values()));
    }
}

fn check_vector<T: Scalar>(x: &[T]) {
    let mut files = vec![Vec::new(); 2];
    npy::encode_vector(&mut files[0], x).unwrap();
    petsc::encode_vector(&mut files[1], x).unwrap();
    for bytes in files {
        assert_eq!(bits(&parse_vector::<T>("x", &bytes).unwrap()), bits(x));
    }
    let b = DenseArray { rows: x.len() / 2, cols: 2, values: x[..x.len() / 2 * 2].to_vec() };
    let mut bytes = Vec::new();
    npy::encode_columns(&mut bytes, &b).unwrap();
    let read = parse_columns::<T>("x", &bytes).unwrap();
    assert_eq!((read.rows, read.cols, bits(&read.values)), (b.rows, 2, bits(&b.values)));
}

macro_rules! round_trips {
    ($($name:ident: $type:ty),*) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(64))]
            $(#[test]
            fn $name(a in any_matrix::<$type>(), x in proptest::collection::vec(number::<$type>(), 0..9)) {
                check_matrix(&a);
                check_vector(&x);
            })*
        }
    };
}
round_trips!(f32_comes_back: f32, f64_comes_back: f64, c32_comes_back: Complex32, c64_comes_back: Complex64);

#[test]
fn the_name_of_a_file_decides_its_form() {
    let folder = std::env::temp_dir().join(format!("lacuna-io-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let a = Spec::parse("gen:convection:7x5").unwrap().build::<f64>().unwrap();
    let x: Vec<f64> = (0..35).map(|i| 1.0 / f64::from(i + 1)).collect();
    for (name, start) in [
        ("a.mtx", &b"%%Mat"[..]),
        ("a.mtx.gz", b"\x1F\x8B"),
        ("a.npz", b"PK\x03\x04"),
        ("a.petsc", b"\0\x12\x7B\x50"),
        ("a.petsc.gz", b"\x1F\x8B"),
        ("a", b"%%Mat"),
    ] {
        let path = folder.join(name);
        write_matrix(&path, &a, &WriteOptions::default()).unwrap();
        assert!(std::fs::read(&path).unwrap().starts_with(start), "{name}");
        assert_eq!(read_matrix::<f64>(&path, &ReadOptions::default()).unwrap(), a, "{name}");
    }
    for name in ["x.mtx", "x.npy", "x.npy.gz", "x.petsc"] {
        let path = folder.join(name);
        write_vector(&path, &x).unwrap();
        assert_eq!(read_vector::<f64>(&path, &ReadOptions::default()).unwrap(), x, "{name}");
    }
    for (name, why) in [
        ("a.npy", "holds a dense array"),
        ("a.mat", "is read but not written"),
        ("a.rb", "is read but not written"),
        ("a.npz.gz", "is an archive already"),
        ("a.mtx.bz2", "a .bz2 is read but not written; expected .npz, .petsc, .mtx, .petsc.gz or .mtx.gz"),
        (
            "a.tar.gz",
            "a tar archive is read but not written; expected .npz, .petsc, .mtx, .petsc.gz or .mtx.gz",
        ),
        ("a.TAR", "a tar archive is read but not written"),
        ("a.mtx.zst", "a .zst is not written"),
        ("a.tar.Z", "a .z is not written"),
        ("a.zip", "a .zip is not written"),
        ("a.tgz", "a tar archive is read but not written"),
        ("a.tar.xz", "a tar archive is read but not written"),
        ("none/a.npz", "No such file"),
    ] {
        let error = write_matrix(folder.join(name), &a, &WriteOptions::default());
        let message = error.expect_err("should fail").to_string();
        assert!(message.contains(why) && message.contains(name), "{message}");
        assert!(!folder.join(name).exists());
    }
    for name in ["x.tar.gz", "x.tar"] {
        let message = write_vector(folder.join(name), &x).expect_err(name).to_string();
        let expected =
            "a tar archive is read but not written; expected .npy, .petsc or .mtx, or one of these and .gz";
        assert!(message.ends_with(expected) && !folder.join(name).exists(), "{message}");
        assert!(mm::write_vector(folder.join(name), &x).is_err());
    }
    // No incomplete file remains, and an interrupted write leaves the previous file unchanged.
    let before = std::fs::read(folder.join("x.npy")).unwrap();
    assert!(write_vector(folder.join("x.npy"), &[f64::NAN]).is_err());
    assert_eq!(std::fs::read(folder.join("x.npy")).unwrap(), before);
    assert!(
        std::fs::read_dir(&folder).unwrap().all(|e| !e
            .unwrap()
            .file_name()
            .to_string_lossy()
            .contains("part"))
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_pipe_will_do() {
    let a = Spec::parse("gen:poisson2d:9x9").unwrap().build::<f32>().unwrap();
    let mut bytes = Vec::new();
    npz::encode_matrix(&mut bytes, &a).unwrap();
    let mut pipe = Opened::from_reader("standard input", &bytes[..], Wanted::Matrix).unwrap();
    assert_eq!(pipe.matrix::<f32>(&ReadOptions::default()).unwrap(), a);
}
