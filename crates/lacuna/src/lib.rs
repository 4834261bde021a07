//! Sparse linear systems on CPU, CUDA and OpenCL.
pub use lacuna_core::*;
