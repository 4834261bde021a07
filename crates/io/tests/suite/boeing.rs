//! Rutherford–Boeing and Harwell–Boeing text.
use lacuna_engine::{Complex32, Complex64, Scalar};
use lacuna_io::mm::ReadOptions;
use lacuna_io::{Opened, Wanted, parse_matrix, parse_vector};

/// The example of the Harwell–Boeing guide, 5x5 with 13 entries, with a right-hand side.
pub(crate) const RUA: &str = "\
1UNSYMMETRIC MATRIX WITH 13 ENTRIES                                     RUA
             8             1             1             4             2
RUA                        5             5            13             0
(6I3)           (13I3)          (5E15.8)            (5E15.8)            \n\
F                          1             0
  1  4  7  9 11 14
  1  3  5  2  3  5  2  3  2  4  3  1  5
 1.10000000E+00 3.10000000D+00 5.10000000E+00 2.20000000E+00 3.20000000E+00
-5.20000000E+00 2.30000000E+00 3.30000000E+00 2.40000000E+00 4.40000000E+00
 5.40000000E+00 1.50000000+000 5.50000000E+00
 1.00000000E+00 2.00000000E+00 3.00000000E+00 4.00000000E+00 5.00000000E+00
";

fn list<T: Scalar>(text: &str) -> Vec<(usize, usize, T)> {
    parse_matrix::<T>("t", text.as_bytes()).unwrap_or_else(|e| panic!("{e}")).entries().collect()
}

/// A file of three lines of numbers in wide fields.
fn file(kind: &str, sizes: &str, pointers: &str, rows: &str, values: Option<&str>) -> String {
    let lines = if values.is_some() { 1 } else { 0 };
    let fields = |text: &str| text.split(' ').map(|word| format!("{word:>8}")).collect::<String>();
    let values_of = values.map(|v| fields(v) + "\n").unwrap_or_default();
    format!(
        "title\n3 1 1 {lines}\n{kind} {sizes} 0\n(20I8) (20I8) (20F8.1)\n{}\n{}\n{values_of}",
        fields(pointers),
        fields(rows)
    )
}

#[test]
fn an_unsymmetric_matrix_and_its_right_hand_side() {
    for text in [RUA.to_string(), RUA.replace('\n', "\r\n"), RUA.replace("RUA   ", "rua   ")] {
        let a = list::<f64>(&text);
        assert_eq!((a.len(), a[0], a[12]), (13, (0, 0, 1.1), (4, 4, 5.5)));
        assert_eq!(a[1], (0, 4, 1.5));
        assert!(a.contains(&(4, 1, -5.2)) && a.contains(&(2, 0, 3.1)));
        let mut file = Opened::from_reader("t", text.as_bytes(), Wanted::Matrix).unwrap();
        file.matrix::<f64>(&ReadOptions::default()).unwrap();
        let mut b = file.right_hand_side().unwrap().expect("a right-hand side");
        let expected = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(b.vector::<f64>(&ReadOptions::default()).unwrap(), expected);
        assert_eq!(parse_vector::<f64>("t", text.as_bytes()).unwrap(), expected);
    }
}

#[test]
fn every_kind_of_values_and_symmetry() {
    let c = |re, im| Complex64::new(re, im);
    assert_eq!(
        list::<f64>(&file("rsa", "2 2 3", "1 3 4", "1 2 2", Some("4.0 -1.0 35"))),
        [(0, 0, 4.0), (0, 1, -1.0), (1, 0, -1.0), (1, 1, 3.5)]
    );
    assert_eq!(list::<f64>(&file("rza", "2 2 1", "1 2 2", "2", Some("3.0"))), [(0, 1, -3.0), (1, 0, 3.0)]);
    assert_eq!(
        list::<Complex64>(&file("cha", "2 2 2", "1 3 3", "1 2", Some("4.0 0.0 1.0 2.0"))),
        [(0, 0, c(4.0, 0.0)), (0, 1, c(1.0, -2.0)), (1, 0, c(1.0, 2.0))]
    );
    assert_eq!(list::<f32>(&file("pra", "3 1 2", "1 3", "1 3", None)), [(0, 0, 1.0), (2, 0, 1.0)]);
    assert_eq!(list::<f64>(&file("iua", "1 2 1", "1 1 2", "1", Some("7.0"))), [(0, 1, 7.0)]);
    let nothing = "title\n1 1 0 0\nRUA 3 3 0 0\n(16I5) (16I5) (4E20.12)\n    1    1    1    1\n";
    assert_eq!(list::<f64>(nothing), []);
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let refused = |text: &str| {
        let message = parse_matrix::<f64>("a.rb", text.as_bytes()).expect_err("should fail").to_string();
        assert_eq!(lacuna_engine::text::escaped(&message), message);
        message
    };
    let good = file("rua", "2 2 2", "1 2 3", "1 2", Some("4.0 5.0"));
    assert!(parse_matrix::<f64>("a.rb", good.as_bytes()).is_ok());
    let changed = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        refused(&good.replacen(from, to, 1))
    };
    assert_eq!(
        changed("rua", "rux"),
        "a.rb:3:1: the type of the matrix should be three letters such as RUA: R, C, P, I or Q, then S, U, H, Z or R, then A or E, got `RUX`"
    );
    assert_eq!(
        changed("rua", "rue"),
        "reading a.rb: the matrix is stored as element matrices, expected an assembled one"
    );
    assert_eq!(changed("rua", "rha"), "a.rb:3:2: a real matrix is not hermitian but symmetric");
    assert_eq!(changed("rua", "pua"), "a.rb:3: a pattern has no values, got lines of them");
    assert_eq!(
        changed("2 2 2", "2 x 2"),
        "a.rb:3:7: the number of columns should be a whole number, got `x`"
    );
    assert_eq!(changed("2 2 2 0", ""), "a.rb:3: the number of rows is missing");
    assert_eq!(
        changed("2 2 2", "2 2 99999999999"),
        "a.rb:3:9: the number of entries should be 0 to 4294967295, got 99999999999"
    );
    assert_eq!(
        changed("2 2 2", "2 4000000000 2"),
        "a.rb:4: 4000000001 fields should follow, each a pointer; 59 characters are left"
    );
    assert_eq!(
        changed("(20I8)", "(20A8)"),
        "a.rb:4:1: expected a Fortran format of numbers such as (10I8), got `(20A8)`"
    );
    assert_eq!(changed(" (20F8.1)", ""), "a.rb:4: the format of the values is missing");
    assert_eq!(changed("       3\n", "       4\n"), "a.rb:5:24: a pointer should be 1 to 3, got 4");
    assert_eq!(changed("       2       3\n", "       3       2\n"), "a.rb:5: pointer 2 comes after 3");
    assert_eq!(
        changed("       3\n", "       2\n"),
        "a.rb:5: the pointers should go from 1 to 3, one more than there are entries, got 1 to 2"
    );
    assert_eq!(
        changed("       1       2\n", "       1       3\n"),
        "a.rb:6:16: a row should be 1 to 2, got 3"
    );
    assert_eq!(
        changed("       1       2\n", "       1\n"),
        "a.rb:6:9: a row is missing: expected field 2 of the line"
    );
    assert_eq!(
        changed("     5.0", "*****\u{1b}.0"),
        "a.rb:7:9: a value should be a finite real number, got `*****\\u{1b}.0`"
    );
    let message = refused(&file("rsa", "2 2 2", "1 2 3", "1 1", Some("4.0 5.0")));
    assert!(message.contains("stored on and below the diagonal"), "{message}");
    assert!(refused("a file\n").starts_with("a.rb:1: the file ends after this line"));
}

#[test]
fn an_archive_of_suitesparse_may_hold_it() {
    let mut out = tar::Builder::new(Vec::new());
    let b = b"%%MatrixMarket matrix array real general\n5 1\n1\n2\n3\n4\n5\n";
    for (path, text) in [("n/n.rb", RUA.as_bytes()), ("n/n_b.mtx", b)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        out.append_data(&mut header, path, text).unwrap();
    }
    let bytes = out.into_inner().unwrap();
    let mut file = Opened::from_reader("n.tar", &bytes[..], Wanted::Matrix).unwrap();
    assert_eq!((file.name(), file.about().rows), ("n.tar:n/n.rb", 5));
    assert_eq!(file.matrix::<f64>(&ReadOptions::default()).unwrap().nnz(), 13);
    let mut b = file.right_hand_side().unwrap().expect("a right-hand side");
    assert_eq!(b.vector::<f64>(&ReadOptions::default()).unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn lines_that_do_not_keep_to_their_columns_are_read_by_words() {
    let text = "Symmetric test                                                          KEY     \n\
                \x20            5             1             1             3             0\n\
                RSA                        3             3             4             0\n\
                (26I3)          (26I3)          (3E23.15)           \n\
                \x20 1  3  4  5\n  1  2  2  3\n  4.0 1.0 5.0\n  6.0\n";
    let entries = [(0, 0, 4.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 5.0), (2, 2, 6.0)];
    assert_eq!(list::<f64>(text), entries);
}

#[test]
fn numbers_are_rounded_to_single_precision_once() {
    // The nearest `f64` is halfway between two `f32`, none of the numbers is.
    let words =
        ["1.00000005960464477540", "3.40282356779733661637E+38", "7.00649232162408535462E-46", "-2.0"];
    let singles = words.map(|word| word.parse::<f32>().unwrap());
    let doubles = words.map(|word| word.parse::<f64>().unwrap());
    assert_eq!([0, 1, 2, 3].map(|k| singles[k] == doubles[k] as f32), [false, false, false, true]);

    let numbers = words.map(|word| format!("{word:>27}")).concat();
    let column = "       1       5\n       1       2       3       4\n";
    let real = format!("title\n4 1 1 1 0\nrua 4 1 4 0\n(20I8) (20I8) (4E27.20)\n{column}{numbers}\n");
    assert_eq!(list::<f32>(&real), [0, 1, 2, 3].map(|i| (i, 0, singles[i])));
    assert_eq!(list::<f64>(&real), [0, 1, 2, 3].map(|i| (i, 0, doubles[i])));

    let column = "       1       3\n       1       2\n";
    let complex = format!("title\n4 1 1 1 0\ncua 2 1 2 0\n(20I8) (20I8) (4E27.20)\n{column}{numbers}\n");
    let c = |k: usize| Complex32::new(singles[k], singles[k + 1]);
    assert_eq!(list::<Complex32>(&complex), [(0, 0, c(0)), (1, 0, c(2))]);

    let pattern =
        "title\n4 1 1 0 1\npua 4 1 1 0\n(20I8) (20I8) (4E27.20)\nF  1 0\n       1       2\n       1\n";
    assert_eq!(parse_vector::<f32>("t", format!("{pattern}{numbers}\n").as_bytes()).unwrap(), singles);
}

#[test]
fn numbers_that_single_precision_does_not_hold_are_told() {
    let notes = std::sync::Mutex::new(Vec::new());
    let note = |text: &str| notes.lock().unwrap().push(text.to_string());
    let options = ReadOptions { progress: None, notes: Some(&note) };
    // The first becomes the least number above zero, though its `f64` is halfway and would become zero.
    let text = "title\n4 1 1 1 0\nrua 2 1 2 0\n(20I8) (20I8) (2E27.20)\n       1       3\n       1       2\n \
                7.00649232162408535462E-46                    1.0E-46\n";
    let mut file = Opened::from_reader("t", text.as_bytes(), Wanted::Matrix).unwrap();
    file.matrix::<f32>(&options).unwrap();
    assert_eq!(notes.into_inner().unwrap(), ["t: element 1, 1e-46, is too small for f32 and became 0"]);
}
