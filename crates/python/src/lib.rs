//! The extension module of the Python package `lacuna_sparse`: its classes and functions take arrays that the package has made
//! contiguous and of one of the four number types. What is computed is computed by the facade, `lacuna::dynamic`.
mod arrays;
mod errors;
mod functions;
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
    use super::functions::{advise, devices, methods, norm, preconditioners};
    #[pymodule_export]
    use super::matrix::Matrix;
    #[pymodule_export]
    use super::preconditioner::Preconditioner;
    #[pymodule_export]
    use super::report::Report;
    #[pymodule_export]
    use super::system::System;
}
