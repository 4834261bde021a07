//! Systems whose number type is known at run time only: what the bindings for other languages are made of.
//!
//! Everything here is one type over the four number types. Vectors are bytes in the memory layout of the type, as other languages
//! hand them over; settings are text. [`open`] gives each object a device of its own, so that the functions of the caller's that
//! one solve calls may solve with another.
//!
//! ```
//! use lacuna::NumberType;
//! use lacuna::dynamic::{Indices, Matrix, Operator, Settings, System, open};
//!
//! let (row_ptr, col_idx, values) = ([0, 2, 4], [0, 1, 0, 1], [4.0f64, 1.0, 1.0, 3.0]);
//! let bytes = |v: &[f64]| v.iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<u8>>();
//! let (row_ptr, col_idx) = (Indices::I32(&row_ptr), Indices::I32(&col_idx));
//! let a = Matrix::csr(NumberType::F64, (2, 2), row_ptr, col_idx, &bytes(&values), 0)?;
//! let settings = Settings::parse("method=cg; preconditioner=jacobi; rtol=1e-12")?;
//! let mut system = System::new(&open("cpu", None)?, Operator::Matrix(a), &settings, None, None, None)?;
//! let (b, mut x) = ([1.0f64, 2.0], [0.0f64; 2]);
//! # fn cast(v: &mut [f64]) -> &mut [u8] { lacuna::dynamic::bytes_of_mut(v) }
//! let outcome = system.solve(&bytes(&b), cast(&mut x), None)?;
//! assert!(outcome.converged() && (x[0] - 1.0 / 11.0).abs() < 1e-12);
//! # Ok::<(), lacuna::Error>(())
//! ```
mod advise;
mod bytes;
mod derived;
mod device;
#[cfg(feature = "eigen")]
mod eigen;
mod matrix;
mod operator;
mod preconditioner;
mod settings;
mod system;

pub use advise::advise;
pub use bytes::{bytes_of, bytes_of_mut, norm};
pub use device::open;
#[cfg(feature = "eigen")]
pub use eigen::{Sought, Spectrum, eigen, general, svd};
pub use matrix::{Indices, Matrix};
pub use operator::{
    Failure, Function, Functions, Observing, Operator, Precondition, ShowBytes, ShowResidual,
};
pub use preconditioner::Preconditioner;
pub use settings::Settings;
pub use system::System;
