//! Conversions to and from other crates, each behind a feature with the crate's name and version.
#[cfg(feature = "faer024")]
mod faer;
#[cfg(feature = "nalgebra-sparse012")]
mod nalgebra_sparse;
#[cfg(feature = "serde")]
mod serde;
#[cfg(feature = "sprs011")]
mod sprs;
