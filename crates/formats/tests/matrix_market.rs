//! Every kind of Matrix Market file, and an answer with line and column to every kind of broken one.
use lacuna_core::{Complex32, Complex64, Error, Scalar};
use lacuna_formats::mm::*;
use lacuna_formats::{Csr, Spec, Triplets, field, open};
use proptest::prelude::*;

fn parse<T: Scalar>(text: &str) -> Csr<T> {
    parse_matrix("test", text.as_bytes()).unwrap_or_else(|e| panic!("{e}"))
}

fn list<T: Scalar>(text: &str) -> Vec<(usize, usize, T)> {
    parse::<T>(text).entries().collect()
}

/// What is said of `text` after the name.
fn fault(text: &str) -> String {
    fault_of(text.as_bytes())
}

fn fault_of(bytes: &[u8]) -> String {
    let error = parse_matrix::<Complex64>("t", bytes).expect_err("should fail");
    assert!(matches!(error, Error::Parse { .. }), "{error:?}");
    error.to_string().trim_start_matches("t:").to_string()
}

fn c(re: f64, im: f64) -> Complex64 {
    Complex64::new(re, im)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
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
fn a_broken_header_is_named() {
    assert_eq!(fault(""), "1: the file is empty; it should begin with `%%MatrixMarket matrix …`");
    assert_eq!(fault("1 1 1\n"), "1:1: a file should begin with `%%MatrixMarket`, got `1`");
    assert_eq!(fault("%%MatrixMarket vector"), "1:16: the object should be `matrix`, got `vector`");
    assert_eq!(
        fault("%%MatrixMarket matrix coordinates real general"),
        "1:23: the layout should be coordinate or array, got `coordinates`"
    );
    assert_eq!(
        fault("%%MatrixMarket matrix array quaternion general"),
        "1:29: the field should be real, integer, complex or pattern, got `quaternion`"
    );
    assert_eq!(
        fault("%%MatrixMarket matrix array real"),
        "1:33: the symmetry should be general, symmetric, skew-symmetric or hermitian, got ``"
    );
    assert_eq!(
        fault("%%MatrixMarket matrix array real general 3"),
        "1:42: the banner ends after the symmetry, got `3`"
    );
    let banner = |rest: &str| fault(&format!("%%MatrixMarket matrix {rest}"));
    assert_eq!(banner("array pattern general"), "1:29: an array has values: its field cannot be pattern");
    assert_eq!(
        banner("coordinate pattern skew-symmetric"),
        "1:42: a pattern has no signs: it cannot be skew-symmetric"
    );
    assert_eq!(banner("coordinate real hermitian"), "1:39: a real matrix is not hermitian but symmetric");
    let sizes = |rest: &str| banner(&format!("coordinate real symmetric\n%\n{rest}"));
    assert_eq!(sizes(""), "2: the file ends before the line `rows columns entries`");
    assert_eq!(sizes("2 2"), "3:4: the number of entries is missing");
    assert_eq!(sizes("2 x 1"), "3:3: the number of columns should be a whole number, got `x`");
    assert_eq!(sizes("2 2 1 1"), "3:7: nothing should follow the sizes, got `1`");
    assert_eq!(sizes("-2 2 1"), "3:1: the number of rows should be a whole number, got `-2`");
    assert_eq!(sizes("2 3 1"), "3:3: a symmetric matrix is square, got 2x3");
    assert_eq!(
        sizes("2 2 1000000000000"),
        "3:5: the number of entries should be at most 4294967295, which 32-bit indices count, got 1000000000000"
    );
    assert!(sizes("99999999999999999999999999 2 1").starts_with("3:1: the number of rows should be at most"));
}

#[test]
fn a_broken_entry_is_named() {
    let entry = |line: &str| {
        fault(&format!("%%MatrixMarket matrix coordinate real general\n% c\n2 3 3\n1 1 1\n\n{line}\n2 2 2\n"))
    };
    assert_eq!(entry("0 1 1"), "6:1: the row index counts from 1, got 0");
    assert_eq!(entry("1 0 1"), "6:3: the column index counts from 1, got 0");
    assert_eq!(entry("3 1 1"), "6:1: row 3 is outside the matrix of 2 rows");
    assert_eq!(entry("  2   4 1"), "6:7: column 4 is outside the matrix of 3 columns");
    assert_eq!(
        entry("1 99999999999999999999999 1"),
        "6:3: column 99999999999999999999999 is outside the matrix of 3 columns"
    );
    assert_eq!(
        entry("18446744073709551617 1 1"),
        "6:1: row 18446744073709551617 is outside the matrix of 2 rows"
    );
    assert_eq!(entry("-1 1 1"), "6:1: the row index should be a whole number from 1, got `-1`");
    assert_eq!(entry("1.0 1 1"), "6:1: the row index should be a whole number from 1, got `1.0`");
    assert_eq!(entry("1"), "6:2: the column index is missing");
    assert_eq!(entry("1 1"), "6:4: the value is missing");
    assert_eq!(entry("1 1   \t"), "6:4: the value is missing");
    assert_eq!(entry("1 1 1 1"), "6:7: nothing should follow the value, got `1`");
    assert_eq!(entry("1 1 one"), "6:5: the value should be a real number, got `one`");
    assert_eq!(entry("1 1 1.2.3"), "6:5: the value should be a real number, got `1.2.3`");
    assert_eq!(entry("1 1 1e"), "6:5: the value should be a real number, got `1e`");
    assert_eq!(entry("1 1 -"), "6:5: the value should be a real number, got `-`");
    assert_eq!(entry("1 1 0x10"), "6:5: the value should be a real number, got `0x10`");
    assert_eq!(entry("1 1 NaN"), "6:5: the value should be finite, got `NaN`");
    assert_eq!(entry("1 2 -inf"), "6:5: the value should be finite, got `-inf`");
    assert_eq!(entry("1 2 1e999"), "6:5: the value 1e999 is too large for f64");
    assert_eq!(entry("1 2 3%"), "6:5: the value should be a real number, got `3%`");
    assert!(entry("1 2 \u{1F600}").starts_with("6:5: the value should be a real number, got `\u{1F600}`"));
    let long = "9".repeat(100_000);
    assert!(entry(&format!("1 1 {long}")).ends_with("9… is too large for f64"));

    let of = |banner: &str, lines: &str| {
        fault(&format!("%%MatrixMarket matrix coordinate {banner}\n3 3 1\n{lines}\n"))
    };
    assert_eq!(of("integer general", "1 1 1.5"), "3:5: the value should be a whole number, got `1.5`");
    assert_eq!(
        of("integer general", "1 1 9223372036854775808"),
        "3:5: the value 9223372036854775808 is too large for a 64-bit integer"
    );
    assert_eq!(of("pattern general", "1 1 1"), "3:5: nothing should follow the column, got `1`");
    assert_eq!(of("complex general", "1 1 1"), "3:6: the imaginary part is missing");
    assert_eq!(
        of("real symmetric", "1 2 1"),
        "3:1: a symmetric matrix is stored on and below the diagonal, got an entry at row 1, column 2"
    );
    assert_eq!(
        of("real skew-symmetric", " 2 2 1"),
        "3:2: a skew-symmetric matrix has no diagonal, got an entry at row 2"
    );
    assert_eq!(
        of("complex hermitian", "2 2  1 3"),
        "3:6: the diagonal of a hermitian matrix is real, got 1+3i"
    );
    let array = |line: &str| fault(&format!("%%MatrixMarket matrix array real general\n2 1\n1\n{line}\n"));
    assert_eq!(array("1 2"), "4:3: nothing should follow the value: an array has one a line, got `2`");
    assert_eq!(array("inf"), "4:1: the value should be finite, got `inf`");
    assert_eq!(
        fault_of(b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 \xFF\xFE\n"),
        "3:5: the value should be a real number, got `\u{FFFD}\u{FFFD}`"
    );
}

#[test]
fn a_wrong_count_is_named() {
    let count = |promised: u64, lines: &str| {
        fault(&format!("%%MatrixMarket matrix coordinate real general\n3 3 {promised}\n{lines}"))
    };
    assert_eq!(count(3, "1 1 1\n2 2 2\n"), "4: the header promises 3 entries, the file ends after 2");
    assert_eq!(count(1, "1 1 1\n%\n2 2 2\n"), "5: the header promises 1 entries, here is one more");
    assert_eq!(count(0, "\n\n1 1 1"), "5: the header promises 0 entries, here is one more");
    assert_eq!(
        count(4_000_000_000, "1 1 1\n"),
        "3: the header promises 4000000000 entries, the file ends after 1"
    );
    let array = |size: &str| fault(&format!("%%MatrixMarket matrix array real general\n{size}\n1\n2\n3\n"));
    assert_eq!(array("2 2"), "5: the header promises 4 entries, the file ends after 3");
    assert_eq!(array("2 1"), "5: the header promises 2 entries, here is one more");
    assert_eq!(
        array("4294967295 4294967295"),
        "5: the header promises 18446744065119617025 entries, the file ends after 3"
    );
}

#[test]
fn a_lying_header_costs_no_memory() {
    assert_eq!(
        fault("%%MatrixMarket matrix coordinate real general\n4000000000 4000000000 1\n1 1 1\n"),
        "2: 4000000000 rows or columns for 1 entries: at most 67108864 are made room for"
    );
    // An error ends the reading even where a decompressed text never does.
    let mut bomb = b"%%MatrixMarket matrix coordinate pattern general\n9 9 3\n".to_vec();
    bomb.extend(b"1 1\n".repeat(4 << 20));
    assert_eq!(fault_of(&gzip(&bomb)), "6: the header promises 3 entries, here is one more");
    let endless_line = [&b"%%MatrixMarket"[..], &b" ".repeat(40 << 20)].concat();
    let error = parse_matrix::<f64>("t", &gzip(&endless_line)).expect_err("no line end").to_string();
    assert!(error.contains("a line of more than 16777216 bytes"), "{error}");
}

#[test]
fn complex_files_ask_for_complex_numbers() {
    let text = "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n";
    assert_eq!(
        parse_matrix::<f64>("t", text.as_bytes()).expect_err("real").to_string(),
        "reading t: the file holds complex numbers, f64 cannot; use c64 or c32"
    );
}

#[test]
fn places_are_exact_in_large_files_too() {
    let mut text = String::from("%%MatrixMarket matrix coordinate real general\n%\n1000 1000 400000\n");
    let mut starts = Vec::new();
    for k in 0..400_000usize {
        if k % 1000 == 7 {
            text.push_str("\n% between\n");
        }
        starts.push(text.len());
        text.push_str(&format!("{} {} {}.25\n", k / 400 + 1, k % 400 + 1, k));
    }
    let a = parse::<f64>(&text);
    assert_eq!((a.nnz(), a.get(999, 399)), (400_000, Some(399_999.25)));
    for k in [0, 1, 65_537, 222_222, 399_999] {
        let at = starts[k];
        let line = 1 + text[..at].matches('\n').count();
        let end = at + text[at..].find('\n').unwrap();
        let column = 1 + text[at..end].rfind(' ').unwrap() + 1;
        let broken = format!("{}x{}", &text[..at + column - 1], &text[at + column..]);
        assert!(fault(&broken).starts_with(&format!("{line}:{column}: the value")), "{k}");
        // The first fault of the file is named, whichever thread meets its own first.
        let twice = format!("{broken}1 1 1\n401 x\n");
        assert!(fault(&twice).starts_with(&format!("{line}:{column}: the value")), "{k}");
        let short = text.replacen(" 400000\n", &format!(" {k}\n"), 1);
        assert_eq!(fault(&short), format!("{line}: the header promises {k} entries, here is one more"));
    }
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
    // Just above the middle of two f32, and on it as an f64.
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
    let folder = std::env::temp_dir().join(format!("lacuna-formats-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let a = Spec::parse("gen:helmholtz:200x90").unwrap().build::<Complex64>().unwrap();
    for name in ["a.mtx", "a.mtx.gz"] {
        let path = folder.join(name);
        write_matrix(&path, &a, &WriteOptions::default()).unwrap();
        let calls = std::sync::Mutex::new(Vec::new());
        let progress = |done: u64, total: u64| calls.lock().unwrap().push((done, total));
        assert_eq!(read_matrix::<Complex64>(&path, &ReadOptions { progress: Some(&progress) }).unwrap(), a);
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

/// Written and read again.
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

    #[test]
    fn no_text_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), tail in "[0-9 .eE+\\-%\n\r]{0,80}") {
        let _ = parse_matrix::<f64>("t", &bytes);
        for banner in ["coordinate real general", "array complex hermitian", "coordinate pattern symmetric"] {
            let mut text = format!("%%MatrixMarket matrix {banner}\n").into_bytes();
            text.extend(&tail.as_bytes()[..tail.len().min(9)]);
            text.push(b'\n');
            text.extend(tail.as_bytes());
            let _ = parse_matrix::<Complex32>("t", &text);
            text.extend(&bytes);
            let _ = parse_vector::<Complex64>("t", &text);
        }
    }
}
