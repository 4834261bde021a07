//! The CUDA kernels of Lacuna. The build script of `lacuna-cuda` compiles the `.cu` files of this folder, one
//! for each family of operations. Kernels generated for a program are OpenCL C; [`PRELUDE`] defines its words
//! in CUDA.

/// The name and the text of the file that precedes generated kernels.
pub const PRELUDE: (&str, &str) = ("prelude.cuh", include_str!("prelude.cuh"));
