//! Running a program on the host: the reference backend, the memory of host backends, the canonical sum.
pub(crate) mod fork;
pub(crate) mod host;
pub(crate) mod lines;
pub mod memory;
pub mod pages;
pub(crate) mod reference;
pub(crate) mod store;
pub mod sum;
