//! Named matrices: model problems of any size, usable wherever a matrix file is.
//!
//! The same name gives the same bits on every machine and with any number of threads: an entry depends only
//! on its place and the seed, and is computed with `+ − × ÷ √`, which are rounded identically everywhere.
mod alike;
mod arguments;
mod banded;
mod elements;
mod energies;
mod grid;
mod lattice;
mod mesh;
mod network;
mod noise;
mod reservoir;
mod spec;
mod surface;

pub use alike::look_alikes;
pub use spec::{Generator, Spec};
