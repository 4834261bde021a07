//! Broken Matrix Market files: an error with line and column for each, and never a panic.
use lacuna_engine::{Complex32, Complex64, Error};
use lacuna_io::mm::{parse_matrix, parse_vector};
use proptest::prelude::*;

/// The error for `text`, without the name.
fn fault(text: &str) -> String {
    fault_of(text.as_bytes())
}

fn fault_of(bytes: &[u8]) -> String {
    let error = parse_matrix::<Complex64>("t", bytes).expect_err("should fail");
    assert!(matches!(error, Error::Parse { .. }), "{error:?}");
    error.to_string().trim_start_matches("t:").to_string()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
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
fn a_hermitian_array_of_one_place_is_real_as_a_vector_too() {
    let array = |value: &str| format!("%%MatrixMarket matrix array complex hermitian\n1 1\n{value}\n");
    let two = parse_vector::<Complex64>("t", array("2 0").as_bytes()).unwrap();
    assert_eq!(two, [Complex64::new(2.0, 0.0)]);
    let unreal = array("2 3");
    let matrix = parse_matrix::<Complex64>("t", unreal.as_bytes()).expect_err("a matrix").to_string();
    let vector = parse_vector::<Complex64>("t", unreal.as_bytes()).expect_err("a vector").to_string();
    assert_eq!(
        vector,
        "reading t: value 1 of the array: the diagonal of a hermitian matrix is real, got 2+3i"
    );
    assert_eq!(vector, matrix);
    // Nothing is stored of a skew-symmetric one.
    let skew = b"%%MatrixMarket matrix array real skew-symmetric\n1 1\n";
    assert_eq!(parse_vector::<f64>("t", skew).unwrap(), [0.0]);
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
        "3:2: the diagonal of a skew-symmetric matrix is zero, got 1+0i at row 2"
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
    // An error ends the reading even if the decompressed text never ends.
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
    let a = parse_matrix::<f64>("t", text.as_bytes()).unwrap();
    assert_eq!((a.nnz(), a.get(999, 399)), (400_000, Some(399_999.25)));
    for threads in [1, 3, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(|| parse_matrix::<f64>("t", text.as_bytes())).unwrap(), a);
    }
    for k in [0, 1, 65_537, 222_222, 399_999] {
        let at = starts[k];
        let line = 1 + text[..at].matches('\n').count();
        let end = at + text[at..].find('\n').unwrap();
        let column = 1 + text[at..end].rfind(' ').unwrap() + 1;
        let broken = format!("{}x{}", &text[..at + column - 1], &text[at + column..]);
        assert!(fault(&broken).starts_with(&format!("{line}:{column}: the value")), "{k}");
        // The first error of the file is reported, whichever thread finds its own first.
        let twice = format!("{broken}1 1 1\n401 x\n");
        assert!(fault(&twice).starts_with(&format!("{line}:{column}: the value")), "{k}");
        let short = text.replacen(" 400000\n", &format!(" {k}\n"), 1);
        assert_eq!(fault(&short), format!("{line}: the header promises {k} entries, here is one more"));
    }
}

proptest! {
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
