//! The extension module of the Python package `lacuna_sparse`: its classes and functions take arrays that the package has made
//! contiguous and of one of the four number types. What is computed is computed by the facade, `lacuna::dynamic`.
mod arrays;
mod eigen;
mod errors;
mod functions;
mod gpu;
mod matrix;
mod operator;
mod preconditioner;
mod report;
mod system;
mod watching;

use pyo3::pymodule;

/// The core of `lacuna_sparse`.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::eigen::spectrum;
    #[pymodule_export]
    use super::functions::{advise, devices, methods, norm, preconditioners};
    #[pymodule_export]
    use super::gpu::dlpack_tensor;
    #[pymodule_export]
    use super::matrix::Matrix;
    #[pymodule_export]
    use super::preconditioner::Preconditioner;
    #[pymodule_export]
    use super::report::Report;
    #[pymodule_export]
    use super::system::System;

    /// One large block, taken and freed: the C library then keeps freed memory up to twice that size for the next call, and a call
    /// with a matrix of 600 kB takes a third less time, which went into fresh pages.
    #[pymodule_init]
    fn init(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(16 << 20)));
        Ok(())
    }
}
