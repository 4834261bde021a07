//! Preconditioners: set up on the host from a matrix, placed on a device, applied as operators.
mod adjoint;
mod algebra;
mod amg;
mod block_ilu;
mod block_jacobi;
mod chebyshev;
mod column_scaling;
#[cfg(feature = "direct")]
mod direct;
mod fsai;
mod hermitian;
mod ilu0;
mod ilut;
mod jacobi;
mod list;
mod multigrid;
mod neumann;
mod placed;
mod polynomial;
mod relaxation;
mod setup;
mod sor;
mod spai;
mod ssor;
mod triangles;

pub use algebra::{OnHost, SparseAlgebra};
pub use amg::{Aggregation, Amg, AmgOptions};
pub use block_ilu::BlockIlu;
pub use block_jacobi::{BlockJacobi, Blocks};
pub use chebyshev::Chebyshev;
pub use column_scaling::ColumnScaling;
#[cfg(feature = "direct")]
pub use direct::{Direct, DirectOptions};
pub use fsai::{Fsai, FsaiOptions};
pub use ilu0::{Ic0, Ilu0};
pub use ilut::Ilut;
pub use jacobi::{Jacobi, inverse_diagonal};
pub use list::{PRECONDITIONERS, PrecondInfo, SHARED_OPTIONS, preconditioner};
pub use multigrid::{Multigrid, MultigridOptions, Smoothing};
pub use neumann::Neumann;
pub use placed::{Handles, Parts, Placed, Preconditioner};
pub use polynomial::Polynomial;
pub use setup::{Setup, SetupProgress, SetupWatch};
pub use sor::Sor;
pub use spai::Spai;
pub use ssor::Ssor;
pub use triangles::Solves;
