//! A prepared program: matrices resolved, vectors by slot, rows divided among threads.
pub(crate) mod compile;
pub(crate) mod divide;
pub(crate) mod rolled;
pub(crate) mod step;
