//! Every kind of Matrix Market file, and an error with line and column for every kind of broken one.
use lacuna_engine::{Complex32, Complex64, Error, Scalar};
use lacuna_formats::{Csr, Triplets};
use lacuna_io::mm::*;
use lacuna_io::{Spec, field, open};
use proptest::prelude::*;

fn parse<T: Scalar>(text: &str) -> Csr<T> {
    parse_matrix("test", text.as_bytes()).unwrap_or_else(|e| panic!("{e}"))
}

fn list<T: Scalar>(text: &str) -> Vec<(usize, usize, T)> {
    parse::<T>(text).entries().collect()
}

fn c(re: f64, im: f64) -> Complex64 {
    Complex64::new(re, im)
}

#[test]
fn every_field_and_symmetry_of_coordinates() {
    assert_eq!(
        list::<f64>("%%MatrixMarket matrix coordinate real general\n2 3 3\n2 1 -1.5\n1 3 2e1\n1 1 .5\n"),
        [(0, 0, 0.5), (0, 2, 20.0), (1, 0, -1.5)]
    );
    assert_eq!(
        list::<f32>("%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 1 7\n2 1 -3\n"),
        [(0, 0, 7.0), (0, 1, -3.0), (1, 0, -3.0)]
    );
    assert_eq!(
        list::<f64>("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 4\n"),
        [(0, 1, -4.0), (1, 0, 4.0)]
    );
    assert_eq!(
        list::<Complex64>("%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 3 0\n2 1 1 2\n"),
        [(0, 0, c(3.0, 0.0)), (0, 1, c(1.0, -2.0)), (1, 0, c(1.0, 2.0))]
    );
    assert_eq!(
        list::<Complex32>("%%MatrixMarket matrix coordinate pattern general\n1 2 1\n1 2\n"),
        [(0, 1, Complex32::new(1.0, 0.0))]
    );
    assert_eq!(
        list::<Complex64>("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1e-3 -2.5E+2"),
        [(0, 0, c(1e-3, -250.0))]
    );
}

#[test]
fn every_symmetry_of_arrays() {
    let general = "%%MatrixMarket matrix array real general\n2 3\n1\n2\n0\n4\n5\n6\n";
    assert_eq!(list::<f64>(general), [(0, 0, 1.0), (0, 2, 5.0), (1, 0, 2.0), (1, 1, 4.0), (1, 2, 6.0)]);
    let symmetric = "%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n";
    assert_eq!(list::<f64>(symmetric), [(0, 0, 1.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 3.0)]);
    let skew = "%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n";
    let expected = [(0, 1, -1.0), (0, 2, -2.0), (1, 0, 1.0), (1, 2, -3.0), (2, 0, 2.0), (2, 1, 3.0)];
    assert_eq!(list::<f64>(skew), expected);
    let hermitian = "%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 3\n4 0\n";
    let expected = [(0, 0, c(1.0, 0.0)), (0, 1, c(2.0, -3.0)), (1, 0, c(2.0, 3.0)), (1, 1, c(4.0, 0.0))];
    assert_eq!(list::<Complex64>(hermitian), expected);
}

#[test]
fn comments_blank_lines_line_ends_and_case_do_not_matter() {
    let text = "%%matrixmarket MATRIX Coordinate Real GENERAL\r\n% a comment\r\n%\r\n\r\n  2\t2  3 \r\n\r\n1 1 1\r\n\
                % another\r\n  2 2\t+2.0D0 \r\n 1 1 0.5\r\n\r\n";
    assert_eq!(list::<f64>(text), [(0, 0, 1.5), (1, 1, 2.0)]);
    let header = parse_header("test", text.as_bytes()).unwrap();
    assert_eq!((header.rows, header.cols, header.entries), (2, 2, 3));
    assert_eq!(header.comments, [" a comment", ""]);
    assert_eq!(
        (header.layout, header.field, header.symmetry),
        (Layout::Coordinate, Field::Real, Symmetry::General)
    );
    assert_eq!(parse::<f64>("%%MatrixMarket matrix coordinate real general\n0 0 0").rows(), 0);
    assert_eq!(parse::<f64>("%%MatrixMarket matrix coordinate real general\n5 4 0\n").rows(), 5);
    assert_eq!(parse::<f64>("%%MatrixMarket matrix array real general\n0 7\n").cols(), 7);
}

#[test]
fn numbers_are_rounded_correctly() {
    for word in [
        "0",
        "-0.0",
        "1",
        "0.1",
        "123456789012345678",
        "9007199254740993",
        "9007199254740992",
        "1e22",
        "1e23",
        "3e-22",
        "4.9406564584124654e-324",
        "2.2250738585072011e-308",
        "1.7976931348623157e308",
        "8.5e-324",
        "1e-400",
        "0.000000000000000000000000000000000000012345",
        "12345678901234567890123456789",
        "7.2057594037927933e16",
        "00000000000000000000000000001.5",
        "1.00000000000000000000000000000000000001",
        "5.e3",
        ".5e-3",
        "+6.25",
        "179769313486231570000000000000000000000e270",
        "0.1e-0",
        "1e0000001",
    ] {
        let text = format!("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 {word}\n");
        let expected: f64 = word.parse().unwrap();
        assert_eq!(parse::<f64>(&text).values()[0].to_bits(), expected.to_bits(), "{word}");
        if (expected as f32).is_finite() {
            let expected: f32 = word.parse().unwrap();
            assert_eq!(parse::<f32>(&text).values()[0].to_bits(), expected.to_bits(), "{word}");
        }
    }
    // Just above the midpoint of two `f32`, and equal to it as an `f64`.
    let word = "1.000000059604644775390625000000000000000001";
    let text = format!("%%MatrixMarket matrix array real general\n1 1\n{word}\n");
    assert_eq!(parse::<f32>(&text).values(), [1.0 + f32::EPSILON]);
    let large = parse_matrix::<f32>("t", b"%%MatrixMarket matrix array real general\n1 1\n1e39\n");
    assert_eq!(large.expect_err("f32").to_string(), "t:3:1: the value 1e39 is too large for f32");
}

#[test]
fn vectors() {
    let read = |text: &str| parse_vector::<f64>("t", text.as_bytes());
    assert_eq!(read("%%MatrixMarket matrix array real general\n3 1\n1\n0\n-0\n").unwrap(), [1.0, 0.0, 0.0]);
    let sparse = "%%MatrixMarket matrix coordinate integer general\n3 1 2\n3 1 5\n3 1 2\n";
    assert_eq!(read(sparse).unwrap(), [0.0, 0.0, 7.0]);
    assert_eq!(
        read("%%MatrixMarket matrix array real general\n1 2\n1\n0\n").expect_err("wide").to_string(),
        "reading t: expected a vector, that is one column, got a 1x2 matrix"
    );
    let mut out = Vec::new();
    let x = [c(1.5, -0.0), c(1e300, 1e-300), c(-3.0, 0.1)];
    encode_vector(&mut out, &x).unwrap();
    assert_eq!(
        String::from_utf8(out.clone()).unwrap(),
        "%%MatrixMarket matrix array complex general\n3 1\n1.5 -0\n1e300 1e-300\n-3 0.1\n"
    );
    assert_eq!(parse_vector::<Complex64>("t", &out).unwrap(), x);
    assert_eq!(
        encode_vector(&mut out, &[0.0, f64::NAN]).expect_err("NaN").to_string(),
        "writing a vector: x, row 1: NaN is not finite"
    );
}

#[test]
fn writing_chooses_the_symmetry_or_checks_the_one_asked_for() {
    let write = |a: &Csr<f64>, storage| {
        let mut out = Vec::new();
        encode_matrix(&mut out, a, &WriteOptions { storage, comment: "made by hand\ntwice" })?;
        Ok::<_, Error>(String::from_utf8(out).unwrap())
    };
    let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![2.0, -0.1, -0.1, 1e22]).unwrap();
    assert_eq!(
        write(&a, Storage::Auto).unwrap(),
        "%%MatrixMarket matrix coordinate real symmetric\n%made by hand\n%twice\n2 2 3\n1 1 2\n2 1 -0.1\n2 2 1e22\n"
    );
    assert!(
        write(&a, Storage::As(Symmetry::General))
            .unwrap()
            .contains("general\n%made by hand\n%twice\n2 2 4\n")
    );
    assert_eq!(
        write(&a, Storage::As(Symmetry::SkewSymmetric)).expect_err("skew").to_string(),
        "writing a matrix: entry at row 0, column 0: the matrix is not skew-symmetric"
    );
    assert!(write(&a, Storage::As(Symmetry::Hermitian)).is_err());
    let skew = Csr::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![-2.5, 2.5]).unwrap();
    assert!(
        write(&skew, Storage::Auto)
            .unwrap()
            .ends_with("skew-symmetric\n%made by hand\n%twice\n2 2 1\n2 1 2.5\n")
    );
    let wide = Csr::new(1, 2, vec![0, 1], vec![1], vec![3.0]).unwrap();
    assert!(write(&wide, Storage::Auto).unwrap().contains(" general\n"));
    assert!(write(&wide, Storage::As(Symmetry::Symmetric)).is_err());
}

#[test]
fn files_plain_and_compressed() {
    let folder = std::env::temp_dir().join(format!("lacuna-io-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let a = Spec::parse("gen:helmholtz:200x90").unwrap().build::<Complex64>().unwrap();
    for name in ["a.mtx", "a.mtx.gz"] {
        let path = folder.join(name);
        write_matrix(&path, &a, &WriteOptions::default()).unwrap();
        let calls = std::sync::Mutex::new(Vec::new());
        let progress = |done: u64, total: u64| calls.lock().unwrap().push((done, total));
        assert_eq!(
            read_matrix::<Complex64>(&path, &ReadOptions { progress: Some(&progress), notes: None }).unwrap(),
            a
        );
        let (calls, size) = (calls.into_inner().unwrap(), std::fs::metadata(&path).unwrap().len());
        assert!(calls.iter().all(|c| c.0 <= size && c.1 == size) && calls.is_sorted());
        assert_eq!(calls.last(), Some(&(size, size)));
        assert_eq!(read_header(&path).unwrap().symmetry, Symmetry::Symmetric);
        let path = path.to_str().unwrap();
        assert_eq!(field(path).unwrap(), Field::Complex);
        assert_eq!(open::<Complex64>(path, &ReadOptions::default()).unwrap(), a);
    }
    let plain = std::fs::metadata(folder.join("a.mtx")).unwrap().len();
    assert!(std::fs::metadata(folder.join("a.mtx.gz")).unwrap().len() < plain / 2);
    assert_eq!(field("gen:helmholtz:3x3").unwrap(), Field::Complex);
    assert_eq!(field("gen:dense:3").unwrap(), Field::Real);
    let x = vec![1.0, -2.25, 1e-7];
    write_vector(folder.join("x.mtx.gz"), &x).unwrap();
    assert_eq!(read_vector::<f64>(folder.join("x.mtx.gz")).unwrap(), x);

    let packed = std::fs::read(folder.join("a.mtx.gz")).unwrap();
    let error = parse_matrix::<Complex64>("cut.gz", &packed[..packed.len() / 2]).expect_err("cut");
    assert!(matches!(error, Error::Io { .. }), "{error}");
    let missing =
        read_matrix::<f64>(folder.join("none"), &ReadOptions::default()).expect_err("none").to_string();
    assert!(missing.starts_with("opening ") && missing.contains("none: "), "{missing}");
    assert!(
        read_matrix::<f64>(&folder, &ReadOptions::default())
            .expect_err("folder")
            .to_string()
            .contains("folder")
    );
    assert!(write_matrix(folder.join("no/such/folder"), &a, &WriteOptions::default()).is_err());
    std::fs::remove_dir_all(&folder).unwrap();
}

fn any_matrix() -> impl Strategy<Value = Csr<Complex64>> {
    let number = prop_oneof![any::<f64>(), (-100i32..100).prop_map(f64::from)]
        .prop_filter("finite", |v| v.is_finite());
    (1usize..30, 1usize..30).prop_flat_map(move |(rows, cols)| {
        let entry = (0..rows, 0..cols, number.clone(), number.clone());
        proptest::collection::vec(entry, 0..80).prop_map(move |list| {
            let mut seen = std::collections::BTreeSet::new();
            let mut t = Triplets::new(rows, cols);
            let new = list.into_iter().filter(|e| seen.insert((e.0, e.1)));
            t.extend(new.map(|(i, j, re, im)| (i, j, c(re, im))));
            t.to_csr().unwrap()
        })
    })
}

#[test]
fn whole_numbers_are_rounded_once() {
    // Just above the middle of two neighbours in f32; in f64 it is the middle.
    let text = b"%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1152921573326323713\n";
    let a: Csr<f32> = parse_matrix("integer", text).unwrap();
    assert_eq!(a.values(), [1_152_921_573_326_323_713_i64 as f32]);
}

#[test]
fn blank_lines_count_in_the_place_of_an_error() {
    let text = format!(
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n{}1 1 1\n\n\n1 x 1\n",
        "\n".repeat(1000)
    );
    let message = parse_matrix::<f64>("blank", text.as_bytes()).unwrap_err().to_string();
    assert!(message.contains("1006"), "{message}");
}

#[test]
fn a_header_alone_does_not_make_room_for_rows() {
    for size in ["4294967295 0", "0 4294967295"] {
        let text = format!("%%MatrixMarket matrix array real general\n{size}\n");
        let message = parse_matrix::<f64>("rows", text.as_bytes()).unwrap_err().to_string();
        assert!(message.contains("4294967295 rows or columns for 0 entries"), "{message}");
    }
}

/// Written and read back.
fn again<T: Scalar>(a: &Csr<T>) -> Csr<T> {
    let mut out = Vec::new();
    encode_matrix(&mut out, a, &WriteOptions::default()).unwrap();
    parse_matrix("again", &out).unwrap()
}

proptest! {
    #[test]
    fn what_is_written_reads_back_to_the_same_bits(a in any_matrix()) {
        prop_assert_eq!(&again(&a), &a);
        let real = a.map(|v| v.re).unwrap();
        prop_assert_eq!(&again(&real), &real);
        let single = a.map(|v| (v.re as f32).clamp(f32::MIN, f32::MAX)).unwrap();
        prop_assert_eq!(&again(&single), &single);
        if a.rows() == a.cols() {
            let half = |i: usize, j: usize, v: Complex64, w: Complex64| [(i, j, v), (j, i, w)];
            for (sign, conjugate) in [(1.0, false), (1.0, true), (-1.0, false)] {
                let mut t = Triplets::new(a.rows(), a.cols());
                for (i, j, v) in a.entries().filter(|e| e.0 > e.1) {
                    t.extend(half(i, j, v, if conjugate { v.conj() } else { v * sign }));
                }
                let a = t.to_csr().unwrap();
                prop_assert_eq!(&again(&a), &a);
            }
        }
    }
}
