//! Files of every form: written by other programs, by this crate, and broken ones; generators.
mod boeing;
mod fixtures;
mod foreign_files;
// Its tests run here: the library is compiled once.
#[allow(dead_code)]
#[path = "../../src/boeing/fortran.rs"]
mod fortran;
mod generate;
mod hostile;
mod matlab;
mod matrix_market;
mod matrix_market_faults;
mod real_matrices;
mod round_trips;

use lacuna_engine::{NumberType, Scalar};
use lacuna_formats::Csr;

/// A file written by another program.
fn file(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The matrix in most of the files, times a number.
fn matrix<T: Scalar>(factor: T) -> Csr<T> {
    let entries = [
        (0, 0, 4.0),
        (0, 1, -1.0),
        (1, 0, -1.0),
        (1, 1, 4.0),
        (1, 2, 0.5),
        (2, 2, 4.0),
        (2, 3, -1.0),
        (2, 5, 2.0),
        (3, 2, -1.0),
        (3, 3, 4.0),
    ];
    let mut t = lacuna_formats::Triplets::new(4, 6);
    t.extend(entries.map(|(i, j, v)| (i, j, T::from_real(v) * factor)));
    t.to_csr().unwrap()
}

/// The bits of numbers.
fn bits<T: Scalar>(values: &[T]) -> Vec<u8> {
    assert!(matches!(T::KIND, NumberType::F32 | NumberType::F64 | NumberType::C32 | NumberType::C64));
    bytemuck::cast_slice(values).to_vec()
}
