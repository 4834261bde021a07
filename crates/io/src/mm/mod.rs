//! Matrix Market files: reading and writing.
//!
//! The whole format is supported: coordinate and array; real, integer, complex and pattern; general,
//! symmetric, skew-symmetric and Hermitian; comments and blank lines anywhere, any kind of line end; plain,
//! compressed by gzip, bzip2 or xz, and in tar archives laid out like SuiteSparse's. For a file of another
//! kind, the error names the kind. Invalid text is an error with its line and column. Files are opened once,
//! so pipes work too ([`Opened`]). All threads of the current rayon pool parse the text in blocks, so memory
//! never holds the whole text, nor what a header merely promises.
mod blocks;
mod entries;
mod header;
mod opened;
mod read;
mod rounded;
mod scan;
mod write;

pub use super::archive::Wanted;
pub(super) use entries::mirror;
pub use header::{Field, Header, Layout, Symmetry};
pub use opened::Opened;
pub(super) use read::most_rows;
pub use read::{
    ReadOptions, parse_header, parse_matrix, parse_vector, read_header, read_matrix, read_vector,
};
pub(super) use write::check_finite;
pub use write::{
    Storage, WriteOptions, encode_columns, encode_matrix, encode_vector, write_matrix, write_vector,
};
