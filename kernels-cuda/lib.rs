//! The CUDA kernels of Lacuna. `lacuna-cuda` compiles the `.cu` files of this folder when it is built, a file a family of
//! operations. Kernels generated for a program are OpenCL C; [`PRELUDE`] gives its words their meaning in CUDA.

/// The name and the text of the file that generated kernels begin with.
pub const PRELUDE: (&str, &str) = ("prelude.cuh", include_str!("prelude.cuh"));
