//! Matrix Market files, reading and writing, plain or compressed by gzip.
//!
//! Everything of the format is read: coordinate and array; real, integer, complex and pattern; general, symmetric,
//! skew-symmetric and Hermitian; comments and blank lines anywhere, either kind of line end. What does not belong is
//! an error with its line and column. Text is read in blocks by all threads of the current rayon pool, so neither
//! the text as a whole nor what a header merely promises is ever held in memory.
mod blocks;
mod entries;
mod header;
mod read;
mod scan;
mod write;

pub use header::{Field, Header, Layout, Symmetry};
pub use read::{
    ReadOptions, parse_header, parse_matrix, parse_vector, read_header, read_matrix, read_vector,
};
pub use write::{Storage, WriteOptions, encode_matrix, encode_vector, write_matrix, write_vector};
