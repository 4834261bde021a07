//! Matrices by name: model problems of any size, usable wherever a matrix file is.
//!
//! The same name gives the same bits on every machine and with any number of threads: an entry depends on its place
//! and the seed alone, and is computed by `+ − × ÷ √`, which are rounded alike everywhere.
mod alike;
mod elements;
mod grid;
mod lattice;
mod mesh;
mod network;
mod noise;
mod reservoir;
mod rows;
mod spec;

pub use alike::look_alikes;
pub use spec::{Generator, Spec};
