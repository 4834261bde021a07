//! A program made ready to run: matrices found, vectors as slots, rows divided among threads.
pub(crate) mod compile;
pub(crate) mod divide;
pub(crate) mod rolled;
