//! Running a program on the host: the reference backend, the memory of host backends, the canonical sum.
pub(crate) mod aligned;
pub mod arena;
pub(crate) mod cache;
pub mod division;
pub(crate) mod fork;
pub(crate) mod host;
pub(crate) mod load;
pub mod memory;
pub mod pages;
pub mod reference;
pub(crate) mod store;
pub mod sum;
pub(crate) mod workers;
