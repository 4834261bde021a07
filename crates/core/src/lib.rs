//! The vocabulary of Lacuna.
mod error;
mod format;
mod scalar;

pub use error::{Error, Result};
pub use format::{Argument, Format, row_sum};
pub use num_complex::{Complex, Complex32, Complex64};
pub use scalar::{Kind, Scalar};
