//! Files in the wild: compressed, in archives, from pipes, of other kinds, with old line ends.
use lacuna_engine::text::escaped;
use lacuna_io::mm::{Opened, ReadOptions, Wanted, parse_matrix, parse_vector, read_matrix};
use std::io::{Read, Write};
use std::sync::Mutex;

const A: &str = "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 4\n2 1 1\n2 2 5\n3 3 6\n";
const B: &str = "%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// `A` compressed by `xz -9e`, because the decoder used has no encoder.
const XZ: &[u8] = &[
    0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00, 0x00, 0x04, 0xE6, 0xD6, 0xB4, 0x46, 0x02, 0x00, 0x21, 0x01, 0x1C,
    0x00, 0x00, 0x00, 0x10, 0xCF, 0x58, 0xCC, 0xE0, 0x00, 0x4B, 0x00, 0x41, 0x5D, 0x00, 0x12, 0xE1, 0x30,
    0xC2, 0x74, 0x38, 0x61, 0xDE, 0x3A, 0x4B, 0x4F, 0x5F, 0x43, 0xE3, 0xFB, 0x8B, 0xA8, 0x9A, 0x11, 0xC8,
    0x87, 0x49, 0xAD, 0x30, 0xF2, 0x34, 0xB6, 0xB2, 0x4A, 0xBD, 0x60, 0xEA, 0x3E, 0xC8, 0xF8, 0x15, 0x1E,
    0x52, 0xD0, 0xDA, 0xED, 0x47, 0x3A, 0x58, 0xF0, 0x03, 0xAE, 0x22, 0x14, 0x28, 0x37, 0xF9, 0x28, 0xE3,
    0x3F, 0x2E, 0xD6, 0xF5, 0xCC, 0x41, 0x7D, 0x02, 0x4A, 0x8B, 0x80, 0x00, 0x00, 0x00, 0x00, 0x9A, 0xF4,
    0x9C, 0xF7, 0x32, 0x52, 0xD0, 0x14, 0x00, 0x01, 0x5D, 0x4C, 0x89, 0x9B, 0xF9, 0x50, 0x1F, 0xB6, 0xF3,
    0x7D, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5A,
];

/// A tar archive of these files.
fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = tar::Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        out.append_data(&mut header, path, *text).unwrap();
    }
    out.into_inner().unwrap()
}

#[test]
fn a_name_of_many_megabytes_is_refused() {
    let mut out = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.as_old_mut().name[..13].copy_from_slice(b"././@LongLink");
    header.set_size(64 << 20);
    header.set_cksum();
    out.append(&header, std::io::repeat(b'a').take(64 << 20)).unwrap();
    let message = refused(&gzip(&out.into_inner().unwrap()));
    assert!(message.contains("4 MiB of names and headers"), "{message}");
}

fn opened(bytes: &[u8], wanted: Wanted) -> Opened<'_> {
    Opened::from_reader("f.tar.gz", bytes, wanted).unwrap()
}

fn refused(bytes: &[u8]) -> String {
    let message = parse_matrix::<f64>("f", bytes).expect_err("should fail").to_string();
    assert_eq!(escaped(&message), message);
    message
}

#[test]
fn however_it_is_packed() {
    let a = parse_matrix::<f64>("t", A.as_bytes()).unwrap();
    let marked = [b"\xEF\xBB\xBF", A.as_bytes()].concat();
    let twice = gzip(&gzip(A.as_bytes()));
    let parts = [bzip2(&A.as_bytes()[..20]), bzip2(&A.as_bytes()[20..])].concat();
    let archived = tar(&[("a/readme.txt", b"read me"), ("a/a.mtx", A.as_bytes())]);
    for bytes in [
        marked.clone(),
        gzip(&marked),
        bzip2(A.as_bytes()),
        XZ.to_vec(),
        twice,
        parts,
        archived.clone(),
        gzip(&archived),
        bzip2(&archived),
        tar(&[("a.mtx.gz", &gzip(A.as_bytes()))]),
        A.replace('\n', "\r").into_bytes(),
        A.replace('\n', "\r\n").into_bytes(),
        A.replace('\n', "\r\r\n").into_bytes(),
        format!("\n \r\n\n{A}").into_bytes(),
        gzip(format!("\r\r{}", A.replace('\n', "\r")).as_bytes()),
    ] {
        assert_eq!(parse_matrix::<f64>("t", &bytes).unwrap(), a, "{:?}", &bytes[..20]);
    }
    assert_eq!(
        parse_vector::<f64>("t", &gzip(&[b"\xEF\xBB\xBF", B.as_bytes()].concat())).unwrap(),
        [1.0, 2.0, 3.0]
    );
}

#[test]
fn zeros_after_a_compressed_file_are_padding() {
    let a = parse_matrix::<f64>("t", A.as_bytes()).unwrap();
    let padded = |file: &[u8], zeros: usize| [file, &vec![0; zeros]].concat();
    for pack in [gzip, bzip2] {
        let (whole, first, second) =
            (pack(A.as_bytes()), pack(&A.as_bytes()[..20]), pack(&A.as_bytes()[20..]));
        for zeros in [1, 512, 1 << 17] {
            assert_eq!(parse_matrix::<f64>("t", &padded(&whole, zeros)).unwrap(), a, "{zeros}");
        }
        let parts = [padded(&first, 10_240), padded(&second, 10_240)].concat();
        assert_eq!(parse_matrix::<f64>("t", &parts).unwrap(), a);
        // Anything else after it is an error, behind zeros too.
        for zeros in [0, 512] {
            assert!(refused(&[&padded(&whole, zeros)[..], b"more"].concat()).starts_with("reading f: "));
        }
    }
    assert_eq!(parse_matrix::<f64>("t", &padded(XZ, 512)).unwrap(), a);
}

#[test]
fn places_count_behind_what_was_passed_over() {
    let broken = A.replace("2 2 5", "2 2 x");
    assert!(refused(format!("\u{FEFF}{broken}").as_bytes()).starts_with("f:5:5: the value"));
    assert!(refused(broken.replace('\n', "\r").as_bytes()).starts_with("f:5:5: the value"));
    assert!(refused(format!("\n\n{broken}").as_bytes()).starts_with("f:7:5: the value"));
    assert!(refused(&tar(&[("d/a.mtx", broken.as_bytes())])).starts_with("f:d/a.mtx:5:5: the value"));
    let late = A.replace("2 1 1\n", "2 1 1\r");
    assert_eq!(
        refused(late.as_bytes()),
        "f:4:7: nothing should follow the value, got `2`; a carriage return ends a line only where the first line ends so"
    );
}

#[test]
fn an_archive_has_a_matrix_and_what_belongs_to_it() {
    let other = A.replace('6', "7");
    // The right-hand side before and after, other files in between, a matrix with a different name.
    let files: [&[(&str, &[u8])]; 4] = [
        &[("n/n.mtx", A.as_bytes()), ("n/n_b.mtx", B.as_bytes())],
        &[("n/n_b.mtx", B.as_bytes()), ("n/n_x.mtx", b"no matrix"), ("n/n.mtx", A.as_bytes())],
        &[
            ("f.mtx", A.as_bytes()),
            ("other.mtx", other.as_bytes()),
            ("x.txt", b""),
            ("f_b.mtx", B.as_bytes()),
        ],
        &[("m_b.mtx", B.as_bytes()), ("m.mtx", A.as_bytes()), ("._m.mtx", b"\0\0")],
    ];
    let a = parse_matrix::<f64>("t", A.as_bytes()).unwrap();
    for files in files {
        let bytes = gzip(&tar(files));
        let mut file = opened(&bytes, Wanted::Matrix);
        assert_eq!(file.matrix::<f64>(&ReadOptions::default()).unwrap(), a);
        let mut b = file.right_hand_side().unwrap().expect("a right-hand side");
        assert_eq!(b.vector::<f64>(&ReadOptions::default()).unwrap(), [1.0, 2.0, 3.0], "{}", b.name());
        let vector = opened(&bytes, Wanted::Vector).vector::<f64>(&ReadOptions::default()).unwrap();
        assert_eq!(vector, [1.0, 2.0, 3.0]);
    }
    let alone = tar(&[("n/n.mtx", A.as_bytes()), ("n/n_bb.mtx", B.as_bytes())]);
    let mut file = opened(&alone, Wanted::Matrix);
    file.keep().unwrap();
    assert!(file.right_hand_side().unwrap().is_none());
    for _ in 0..2 {
        assert_eq!(file.matrix::<f32>(&ReadOptions::default()).unwrap().nnz(), 4);
    }
}

#[test]
fn a_compressed_archive_is_read_to_its_check_sum() {
    type Files<'a> = &'a [(&'a str, &'a [u8])];
    let files: [Files<'_>; 3] = [
        &[("n/n.mtx", A.as_bytes()), ("n/n_b.mtx", B.as_bytes()), ("n/n_x.mtx", B.as_bytes())],
        &[("n/n_b.mtx", B.as_bytes()), ("n/n.mtx", A.as_bytes()), ("n/read.me", b"last")],
        // Only at its end does the only matrix turn out to be the one.
        &[("m_b.mtx", B.as_bytes()), ("m.mtx", A.as_bytes())],
    ];
    for files in files {
        let archive = tar(files);
        let mut stored = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        stored.write_all(&archive).unwrap();
        let stored = stored.finish().unwrap();
        let mut damaged = stored.clone();
        let at = stored.windows(5).position(|text| text == b"2 2 5").unwrap();
        damaged[at + 4] = b'7';
        let mut cut: Vec<_> = [gzip(&archive), bzip2(&archive)]
            .iter()
            .flat_map(|packed| (1..=12).map(|bytes| packed[..packed.len() - bytes].to_vec()))
            .collect();
        cut.push(damaged);
        for bytes in cut {
            let options = ReadOptions::default();
            for wanted in [Wanted::Matrix, Wanted::Vector] {
                let read = Opened::from_reader("f.tar.gz", &bytes[..], wanted).and_then(|mut file| {
                    if wanted == Wanted::Matrix {
                        return file.matrix::<f64>(&options).map(|_| ());
                    }
                    file.vector::<f64>(&options).map(|_| ())
                });
                let message = read.expect_err("should fail").to_string();
                assert!(message.starts_with("reading f.tar.gz"), "{message}");
            }
        }
    }
}

#[test]
fn compressed_data_that_are_cut_off_say_so() {
    for packed in [gzip(A.as_bytes()), bzip2(A.as_bytes()), XZ.to_vec()] {
        for length in [packed.len() / 2, packed.len() - 1] {
            let message = refused(&packed[..length]);
            assert_eq!(message, "reading f: the file ends too early: its compressed data are cut off");
        }
    }
}

#[test]
fn an_archive_without_one_matrix_says_what_it_has() {
    assert_eq!(
        refused(&tar(&[("a/x.mtx", A.as_bytes()), ("a/y.mtx", A.as_bytes())])),
        "reading f: several members may be meant: a/x.mtx, a/y.mtx; unpack the archive first"
    );
    assert_eq!(
        refused(&gzip(&tar(&[("a\u{1B}.txt", b"")]))),
        "reading f: no member of the archive ends in .mtx or .rb; it holds a\\u{1b}.txt"
    );
    let whole = tar(&[("a/a.mtx", A.as_bytes())]);
    assert_eq!(refused(&whole[..550]), "reading f:a/a.mtx: the archive ends within a member");
    assert_eq!(refused(&tar(&[("a/a.mtx", &whole)])), "reading f:a/a.mtx: an archive in an archive");
    let deep = (0..6).fold(A.as_bytes().to_vec(), |bytes, _| gzip(&bytes));
    assert_eq!(refused(&deep), "reading f: it is packed more than 4 times over");
}

#[test]
fn a_right_hand_side_is_named_after_its_archive() {
    let both = tar(&[("a/a.mtx", A.as_bytes()), ("a/a_b.mtx", B.as_bytes())]);
    let alone = tar(&[("m.mtx", A.as_bytes()), ("m_b.mtx", B.as_bytes())]);
    for (bytes, member) in [(both, "a/a_b.mtx"), (alone, "m_b.mtx")] {
        let mut file = Opened::from_reader("C:/at 12:30.tar", &bytes[..], Wanted::Matrix).unwrap();
        file.matrix::<f64>(&ReadOptions::default()).unwrap();
        let b = file.right_hand_side().unwrap().expect("a right-hand side");
        assert_eq!(b.name(), format!("C:/at 12:30.tar:{member}"));
    }
}

#[test]
fn errors_and_notes_shorten_long_names() {
    let folder = "d".repeat(100_000);
    let [a, b, x] = ["a.mtx", "a_b.mtx", "x.mtx"].map(|file| format!("{folder}/{file}"));
    let is_short = |text: &str, end: &str| {
        assert!(text.len() < 2500 && text.contains("ddd…ddd") && text.ends_with(end), "{text}");
    };
    let broken = A.replace("2 2 5", "2 2 x");
    let message = refused(&tar(&[(&a, broken.as_bytes())]));
    is_short(&message, "d/a.mtx:5:5: the value should be a real number, got `x`");
    is_short(
        &refused(&tar(&[(&a, &A.as_bytes()[..46])])),
        "d/a.mtx:1: the file ends before the line `rows columns entries`",
    );
    is_short(&refused(&tar(&[(&a, A.as_bytes()), (&x, A.as_bytes())])), "; unpack the archive first");
    is_short(&refused(&tar(&[(&folder, b"")])), "ddd");

    let both = tar(&[("a/a.mtx", A.as_bytes()), (&b, B.as_bytes())]);
    let mut file = opened(&both, Wanted::Matrix);
    file.matrix::<f64>(&ReadOptions::default()).unwrap();
    is_short(file.right_hand_side().unwrap().expect("a right-hand side").name(), "d/a_b.mtx");
}

#[test]
fn other_kinds_are_named() {
    let utf16: Vec<u8> = A.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (bytes, word) in [
        (&b"PK\x03\x04...."[..], "zip"),
        (b"7z\xBC\xAF\x27\x1C", "7z"),
        (b"\x28\xB5\x2F\xFD....", "zstd"),
        (&utf16, "UTF-16"),
        (&[b"\xFF\xFE", &utf16[..]].concat(), "UTF-16"),
        (&gzip(&[b"\xFF\xFE", &utf16[..]].concat()), "UTF-16"),
        (b"\xFE\xFF\0%\0%", "UTF-16"),
        (b"\xFF\xFE\0\0%\0\0\0", "UTF-32"),
        (b"\x89HDF\r\n\x1A\n", "HDF5"),
        (b"\x93NUMPY\x01\0", "NumPy"),
        (b"\n<!DOCTYPE html>\n<html>", "HTML"),
        (b"\xEF\xBB\xBF<html>", "HTML"),
        (b"MATLAB 7.3 MAT-file, Platform: GLNXA64", "HDF5"),
        (&[0; 1024], "empty tar archive"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
    ] {
        let message = refused(bytes);
        assert!(
            message.contains(word) && message.starts_with("reading f: expected a Matrix Market file"),
            "{message}"
        );
    }
    // A truncated file, and an invalid one.
    assert!(refused(&XZ[..XZ.len() / 2]).starts_with("reading f: "));
    assert!(refused(&bzip2(A.as_bytes())[..40]).starts_with("reading f: "));
    assert!(refused(b"\x1B]0;title\x07\x7F \xC2\x9B").contains("got `\\u{1b}]0;title\\u{7}\\u{7f}`"));
    assert!(
        refused("\u{202E}\u{200B}%%MatrixMarket".as_bytes()).contains("`\\u{202e}\\u{200b}%%MatrixMarket`")
    );
}

#[test]
fn words_of_a_file_are_escaped_wherever_they_stand() {
    for bad in
        ["\u{1B}[2J1", "\u{9B}31m1", "\u{202E}1", "\u{FEFF}1", "1\u{200B}", "\u{A0}1", "\u{7}", "\u{E0041}1"]
    {
        for text in [
            A.replacen("coordinate", bad, 1),
            A.replacen("real", bad, 1),
            A.replacen("general", bad, 1),
            A.replacen("general", &format!("general {bad}"), 1),
            A.replacen("3 3 4", &format!("3 {bad} 4"), 1),
            A.replacen("3 3 4", &format!("3 3 4 {bad}"), 1),
            A.replacen("1 1 4", &format!("{bad} 1 4"), 1),
            A.replacen("1 1 4", &format!("1 {bad} 4"), 1),
            A.replacen("1 1 4", &format!("1 1 {bad}"), 1),
            A.replacen("1 1 4", &format!("1 1 4 {bad}"), 1),
        ] {
            let message = refused(text.as_bytes());
            assert!(message.contains("\\u{"), "{message}");
        }
    }
    let name = "no\u{1B}[31m\n.mtx";
    let message = read_matrix::<f64>(name, &ReadOptions::default()).expect_err("no file").to_string();
    assert!(message.starts_with("opening no\\u{1b}[31m\\n.mtx: "), "{message}");
    let message = parse_matrix::<f64>(name, b"x").expect_err("no banner").to_string();
    assert!(message.starts_with("no\\u{1b}[31m\\n.mtx:1:1: "), "{message}");
}

/// Returns a few bytes at a time, like a pipe, and can be read once.
struct Drip<'a>(&'a [u8]);

impl Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.0.len().min(buffer.len()).min(3);
        let (now, later) = self.0.split_at(n);
        buffer[..n].copy_from_slice(now);
        self.0 = later;
        Ok(n)
    }
}

#[test]
fn a_pipe_is_read_once() {
    let a = parse_matrix::<f64>("t", A.as_bytes()).unwrap();
    let packed = gzip(&tar(&[("n/n.mtx", A.as_bytes()), ("n/n_b.mtx", B.as_bytes())]));
    for bytes in [A.as_bytes(), &gzip(A.as_bytes()), XZ, &packed] {
        let mut pipe = Opened::from_reader("pipe", Drip(bytes), Wanted::Matrix).unwrap();
        assert_eq!((pipe.header().rows, pipe.header().entries), (3, 4));
        assert_eq!(pipe.matrix::<f64>(&ReadOptions::default()).unwrap(), a);
        let again = pipe.matrix::<f64>(&ReadOptions::default()).expect_err("it was read").to_string();
        assert!(again.contains("it was read before"), "{again}");
        let mut pipe = Opened::from_reader("pipe", Drip(bytes), Wanted::Matrix).unwrap();
        pipe.keep().unwrap();
        for _ in 0..2 {
            assert_eq!(pipe.matrix::<f64>(&ReadOptions::default()).unwrap(), a);
        }
    }
    // Endless input is refused too.
    for (bytes, why) in [(&b"\n"[..], "no sizes"), (b"\0", "all zeros"), (b"y\n", "should begin")] {
        let endless = Endless(bytes);
        let message =
            Opened::from_reader("pipe", endless, Wanted::Matrix).expect_err("no matrix").to_string();
        assert!(message.contains(why), "{message}");
    }
}

struct Endless<'a>(&'a [u8]);

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = buffer.len() / self.0.len() * self.0.len();
        buffer[..n].chunks_exact_mut(self.0.len()).for_each(|chunk| chunk.copy_from_slice(self.0));
        Ok(n)
    }
}

/// The notes about a text that is read.
fn notes<T: lacuna_engine::Scalar>(text: &str) -> Vec<String> {
    let notes = Mutex::new(Vec::new());
    let note = |text: &str| notes.lock().unwrap().push(text.to_string());
    let options = ReadOptions { progress: None, notes: Some(&note) };
    Opened::from_reader("f", text.as_bytes(), Wanted::Matrix).unwrap().matrix::<T>(&options).unwrap();
    notes.into_inner().unwrap()
}

#[test]
fn numbers_that_the_type_does_not_hold_are_told() {
    let real =
        "%%MatrixMarket matrix coordinate real general\n% c\n\n2 2 3\n1 1 1\n1 2 1e-50\n2 2 -0.0000e-1\n";
    assert!(notes::<f64>(real).is_empty());
    assert_eq!(notes::<f32>(real), ["f:6:5: the value 1e-50 is too small for f32 and became 0"]);
    let tiny = real.replace("1 1 1\n", "1 1 -3d-999\n");
    assert_eq!(notes::<f64>(&tiny), ["f:5:5: the value -3d-999 is too small for f64 and became 0"]);
    let both = "f:5:5: the value -3d-999 is too small for f32 and became 0; the same is true of 1 more";
    assert_eq!(notes::<f32>(&tiny), [both]);
    // The smallest number of the type does not become zero.
    assert!(notes::<f32>(&real.replace("1e-50", "1.4e-45")).is_empty());
    assert!(notes::<f64>(&real.replace("1e-50", "4.9e-324")).is_empty());
    let complex = "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1e-60\n";
    let said = ["f:3:7: the imaginary part 1e-60 is too small for c32 and became 0"];
    assert_eq!(notes::<lacuna_engine::Complex32>(complex), said);

    let whole = |n: &str| format!("%%MatrixMarket matrix array integer general\n2 1\n1\n{n}\n");
    let said = "f:4:1: the value 9007199254740993 is not exact in f64 and became 9007199254740992";
    assert_eq!(notes::<f64>(&whole("9007199254740993")), [said]);
    assert_eq!(notes::<f64>(&whole("-9223372036854775807")).len(), 1);
    assert_eq!(notes::<f64>(&whole("9223372036854775807")).len(), 1);
    assert!(notes::<f64>(&whole("-9223372036854775808")).is_empty());
    assert_eq!(notes::<f32>(&whole("16777217")).len(), 1);
    assert!(notes::<f32>(&whole("16777218")).is_empty());
    // In a long file, the first one is reported together with the number of all.
    let lines: String =
        (1..=300_000).map(|i| format!("{} 1 {}\n", i, if i % 3 == 0 { "1e-99" } else { "1" })).collect();
    let long = format!("%%MatrixMarket matrix coordinate real general\n300000 1 300000\n{lines}");
    let said = "f:5:5: the value 1e-99 is too small for f32 and became 0; the same is true of 99999 more";
    assert_eq!(notes::<f32>(&long), [said]);
}

#[test]
fn more_lines_than_promised_are_told_before_what_is_on_them() {
    let amgx = A.replacen("general\n", "general\n%%AMGX 1 1 rhs\n", 1) + "1\n2\n3\n";
    assert_eq!(
        refused(amgx.as_bytes()),
        "f:8: the header promises 4 entries, here is one more: AmgX puts vectors behind the matrix, which are not read"
    );
    for line in ["7", "x y z", "9 9 9", "1 1 1 1", "\u{1B}"] {
        let message = refused(format!("{A}\n% c\n{line}\n").as_bytes());
        assert_eq!(message, "f:9: the header promises 4 entries, here is one more");
    }
}

#[test]
fn zeros_on_a_skew_symmetric_diagonal_are_read() {
    let text = "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 3\n1 1 0\n2 1 1\n3 2 2\n";
    let a = parse_matrix::<f64>("t", text.as_bytes()).unwrap();
    assert_eq!((a.nnz(), a.get(0, 0), a.get(0, 1)), (5, Some(0.0), Some(-1.0)));
    assert_eq!(
        refused(text.replace("1 1 0", "1 1 2").as_bytes()),
        "f:3:1: the diagonal of a skew-symmetric matrix is zero, got 2 at row 1"
    );
}
