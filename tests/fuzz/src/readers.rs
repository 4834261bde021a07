//! Files of every form: an answer to each, and what is read is a matrix that can be written and read again.
use crate::bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use lacuna::backend::text::escaped;
use lacuna::io::mm;
use lacuna::io::{Opened, Wanted, npy, npz, parse_columns, parse_matrix, parse_vector, petsc};
use lacuna::{Complex32, Complex64, Csr, Result, Scalar};
use std::io::Write;

/// An error that can be printed, and says something.
fn checked<V>(result: Result<V>) -> Option<V> {
    result.map_err(|error| told_error(&error.to_string())).ok()
}

fn told_error(message: &str) {
    assert!(!message.is_empty());
    assert_eq!(escaped(message), message, "control characters of a file");
}

/// A matrix that was read is one, and every form that is written gives it back.
pub(crate) fn is_kept<T: Scalar>(a: &Csr<T>) {
    let (rows, cols, row_ptr, col_idx, values) = a.clone().into_parts();
    assert_eq!(Csr::new(rows, cols, row_ptr, col_idx, values).as_ref().ok(), Some(a));
    assert!(a.values().iter().all(|v| v.finite()));
    let mut bytes = Vec::new();
    mm::encode_matrix(&mut bytes, a, &Default::default()).expect("a matrix can be written");
    same(a, parse_matrix("a.mtx", &bytes), "Matrix Market");
    bytes.clear();
    npz::encode_matrix(&mut bytes, a).expect("a matrix can be written");
    same(a, parse_matrix("a.npz", &bytes), "npz");
    bytes.clear();
    if !a.values().iter().any(looks_like_an_object) && petsc::encode_matrix(&mut bytes, a).is_ok() {
        same(a, parse_matrix("a.petsc", &bytes), "PETSc");
    }
}

/// Whether a value has the bits of a class id of PETSc. Its files do not declare the type of the values, so that
/// such a value may be another object just as well.
fn looks_like_an_object<T: Scalar>(v: &T) -> bool {
    [v.re(), v.im()].iter().any(|part| [1_211_216, 1_211_214].contains(&(part.to_bits() >> 32)))
}

fn same<T: Scalar>(a: &Csr<T>, read: Result<Csr<T>>, form: &str) {
    let read = read.unwrap_or_else(|error| panic!("{form}: {error}"));
    assert!(read == *a, "{form}: {read:?} is not {a:?}");
}

fn is_kept_vector<T: Scalar>(x: &[T]) {
    let mut bytes = Vec::new();
    mm::encode_vector(&mut bytes, x).expect("a vector can be written");
    assert_eq!(parse_vector::<T>("x.mtx", &bytes).expect("Matrix Market"), x);
    bytes.clear();
    npy::encode_vector(&mut bytes, x).expect("a vector can be written");
    assert_eq!(parse_vector::<T>("x.npy", &bytes).expect("npy"), x);
}

/// Reads a file in every way there is.
fn read(name: &str, data: &[u8]) {
    let matrix = checked(parse_matrix::<Complex64>(name, data));
    if matrix.as_ref().is_some_and(|a| a.rows() + a.cols() > 1 << 22) {
        return; // a few bytes may mean millions of empty rows: reading them again and again shows nothing
    }
    if let Some(a) = matrix.as_ref().filter(|a| a.rows() + a.cols() + a.nnz() < 1 << 16) {
        is_kept(a);
    }
    if let Some(a) = checked(parse_matrix::<f32>(name, data)) {
        assert!(matrix.is_some(), "read as f32 and not as c64");
        assert!(a.values().iter().all(|v| v.finite()));
    }
    if let Some(x) = checked(parse_vector::<f64>(name, data)) {
        is_kept_vector(&x);
    }
    checked(parse_columns::<Complex32>(name, data));
    for wanted in [Wanted::Matrix, Wanted::Vector] {
        let Some(mut opened) = checked(Opened::from_reader(name, data, wanted)) else { continue };
        let about = *opened.about();
        if checked(opened.keep()).is_none() {
            continue;
        }
        let notes = |note: &str| told_error(note);
        let options = mm::ReadOptions { progress: None, notes: Some(&notes) };
        if let Some(a) = checked(opened.matrix::<Complex64>(&options)) {
            assert_eq!((about.rows, about.cols), (a.rows(), a.cols()), "what was foretold");
            assert!(a == opened.matrix(&options).expect("a kept matrix is read again"));
        }
        if let Some(Some(mut beside)) = checked(opened.right_hand_side()) {
            checked(beside.columns::<f64>(&options));
        }
    }
}

/// Matrix Market files.
pub fn matrix_market(data: &[u8]) {
    read("a.mtx", data);
    checked(mm::parse_header("a.mtx", data));
}

/// Arrays of NumPy.
pub fn npy(data: &[u8]) {
    read("a.npy", data);
}

/// Archives of SciPy: the bytes say the members, each a name, a length and what it holds.
pub fn npz(data: &[u8]) {
    const NAMES: [&str; 10] = [
        "format.npy",
        "shape.npy",
        "indptr.npy",
        "indices.npy",
        "data.npy",
        "row.npy",
        "col.npy",
        "offsets.npy",
        "_is_array.npy",
        "x.txt",
    ];
    if data.starts_with(b"PK") {
        return read("a.npz", data);
    }
    let mut data = Bytes::new(data);
    let mut members = Vec::new();
    while !data.is_empty() && members.len() < 12 {
        let name = data.pick(&NAMES);
        let length = usize::from(u16::from_le_bytes([data.byte(), data.byte()]));
        members.push((name, data.take(length)));
    }
    read("a.npz", &zip(&members));
}

/// A zip archive of members as they are.
fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in members {
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        let size = bytes.len() as u32;
        let mut about = vec![20u8, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        [crc.sum(), size, size].iter().for_each(|word| about.extend(word.to_le_bytes()));
        about.extend((name.len() as u16).to_le_bytes());
        about.extend([0, 0]);
        let at = out.len() as u32;
        out.extend([b"PK\x03\x04", &about[..], name.as_bytes(), bytes].concat());
        directory.extend([b"PK\x01\x02\x14\0", &about[..], &[0; 10]].concat());
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (count, at) = ((members.len() as u16).to_le_bytes(), out.len() as u32);
    let length = (directory.len() as u32).to_le_bytes();
    out.extend(directory);
    out.extend([b"PK\x05\x06\0\0\0\0", &count[..], &count, &length, &at.to_le_bytes(), &[0, 0]].concat());
    out
}

/// Files of MATLAB: a header, then elements, compressed where the first byte is odd.
pub fn matlab(data: &[u8]) {
    if data.starts_with(b"MATLAB") {
        return read("a.mat", data);
    }
    let mut data = Bytes::new(data);
    let compressed = data.coin();
    let big = data.coin();
    let mut file = vec![b' '; 124];
    file[..10].copy_from_slice(b"MATLAB 5.0");
    file.extend(if big { *b"\x01\0MI" } else { *b"\0\x01IM" });
    if compressed {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(data.rest()).expect("memory takes all");
        let packed = zlib.finish().expect("memory takes all");
        let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
        file.extend([word(15), word(packed.len() as u32)].concat());
        file.extend(packed);
    } else {
        file.extend(data.rest());
    }
    read("a.mat", &file);
}

/// Binary files of PETSc.
pub fn petsc(data: &[u8]) {
    read("a.petsc", data);
}

/// Rutherford–Boeing and Harwell–Boeing files.
pub fn boeing(data: &[u8]) {
    read("a.rb", data);
}

/// Packed files and tar archives; members of the archive are written with headers that add up.
pub fn archives(data: &[u8]) {
    const NAMES: [&str; 6] = ["a/a.mtx", "a/a_b.mtx", "a/a.rb", "b/c.mtx", "a/a_x.mtx", "readme"];
    let mut data = Bytes::new(data);
    let kind = data.byte();
    let plain = match kind % 8 {
        0 => data.rest().to_vec(),
        1..=3 => {
            let mut tar = Vec::new();
            while !data.is_empty() && tar.len() < 1 << 16 {
                let name = data.pick(&NAMES);
                let length = data.below(512);
                let text = data.take(length);
                tar.extend(tar_header(name, text.len(), data.byte()));
                tar.extend(text);
                tar.resize(tar.len().next_multiple_of(512), 0);
            }
            tar.extend([0; 1024]);
            let cut = data.below(8) * 100;
            tar.truncate(tar.len() - cut.min(tar.len()));
            tar
        }
        _ => return read(data.pick(&["a.mtx.gz", "a.mtx.bz2", "a.mtx.xz", "a.tar.gz", "a"]), data.rest()),
    };
    match kind / 8 % 4 {
        0 => read("a.tar.gz", &plain),
        1 => {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(&plain).expect("memory takes all");
            let mut packed = gzip.finish().expect("memory takes all");
            if kind >= 128 {
                packed.truncate(packed.len() - packed.len() / 8);
            }
            read("a.tar.gz", &packed);
        }
        2 => read("a.mtx", &plain),
        _ => read("", &plain),
    }
}

/// The header of a member, of a regular file most of the time.
fn tar_header(name: &str, length: usize, kind: u8) -> [u8; 512] {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..107].copy_from_slice(b"0000644");
    header[124..135].copy_from_slice(format!("{length:011o}").as_bytes());
    header[148..156].fill(b' ');
    header[156] = if kind < 200 { b'0' } else { kind };
    header[257..263].copy_from_slice(b"ustar\0");
    let sum: u32 = header.iter().map(|&b| u32::from(b)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header
}
