//! Matrices and vectors in files, and model problems by name.
//!
//! [`Spec`] generates model problems of any size, [`look_alikes`] matrices like those of published benchmarks; [`open`] takes a
//! generator's name or a file. Matrices of other crates are converted in `lacuna-formats`.
//!
//! # Files
//! | form | ends of names | read | written | holds |
//! |---|---|---|---|---|
//! | Matrix Market ([`mm`]) | `.mtx` | yes | yes | matrices, vectors |
//! | NumPy ([`npy`]) | `.npy` | yes | yes | vectors, dense arrays |
//! | SciPy ([`npz`]) | `.npz` | yes | yes | matrices |
//! | PETSc binary ([`petsc`]) | `.petsc` | yes | yes | matrices, vectors, both |
//! | MATLAB 5 to 7 | `.mat` | yes | no | a matrix with its right-hand side, SuiteSparse's `Problem` too |
//! | Rutherford–Boeing, Harwell–Boeing | `.rb`, `.hb`, `.rua` and the like | yes | no | matrices, with right-hand sides |
//!
//! [`Opened`] reads any of them; [`read_matrix`], [`read_vector`] and [`read_columns`] do so in one call. The
//! first bytes of a file determine its form, or its name if they do not. Each file may be compressed by gzip,
//! bzip2 or xz. [`write_matrix`] and [`write_vector`] choose the form by the file name; `.gz` compresses.
//!
//! For every form, a matrix is returned as [`Csr`](lacuna_formats::Csr) in one of the four number types: repeated
//! entries are summed, numbers are rounded to the type once, and losses are reported through
//! [`ReadOptions::notes`](mm::ReadOptions::notes).
//!
//! Errors name the file, the position (line and column of text, the byte in binary files, with the member of
//! an archive) and what was expected. No file, however broken, makes a reader panic or allocate memory that
//! the system does not have.
mod archive;
mod boeing;
mod elements;
mod foreign;
mod form;
mod generate;
mod matlab;
pub mod mm;
pub mod npy;
pub mod npz;
mod opened;
pub mod petsc;
mod save;
mod source;
mod stored;
mod unpack;

pub use archive::Wanted;
pub use form::Form;
pub use generate::{Generator, Spec, look_alikes};
pub use opened::{
    About, DenseArray, Opened, parse_columns, parse_matrix, parse_vector, read_columns, read_matrix,
    read_vector,
};
pub use save::{
    check_columns_name, check_matrix_name, check_vector_name, write_columns, write_matrix, write_vector,
};
pub use source::{field, open};
