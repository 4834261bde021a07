//! The CUDA backend against the serial reference: primitives, whole solves, and every kernel once on small cases.
#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod primitives;
mod small;
mod solves;
