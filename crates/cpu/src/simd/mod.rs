//! Vectorised numbers: arithmetic, lanes of row sums, gathers and prefetch.
pub(crate) mod gather;
pub(crate) mod known;
pub(crate) mod lanes;
pub(crate) mod numbers;
pub(crate) mod outlined;
pub(crate) mod prefetch;
