//! Preconditioners: made on the host from a matrix, placed on a device, applied as operators.
mod amg;
mod block_jacobi;
mod chebyshev;
mod fsai;
mod hermitian;
mod jacobi;
mod list;
mod neumann;
mod placed;

pub use amg::{Aggregation, Amg, AmgOptions, Smoothing};
pub use block_jacobi::{BlockJacobi, Blocks};
pub use chebyshev::Chebyshev;
pub use fsai::Fsai;
pub use jacobi::{Jacobi, inverse_diagonal};
pub use list::{PRECONDITIONERS, PrecondInfo, preconditioner};
pub use neumann::Neumann;
pub use placed::{Handles, Parts, Placed, Preconditioner};
