//! Krylov methods and preconditioners, written once as programs of fused passes. No backend is named here.
mod accuracy;
mod choose;
mod explain;
mod krylov;
mod named;
mod outcome;
mod precond;
mod scale;
mod solver;
mod system;

pub use accuracy::{norm_bound, residual_norm};
pub use choose::{Chosen, choose_method, choose_preconditioner};
pub use explain::explain;
pub use krylov::{BiCgStab, Cg, ClassicalBiCgStab, ClassicalCg};
pub use krylov::{Gmres, METHODS, Method, MethodInfo, Options, Orthogonalization, Side, method};
pub use named::{OptionInfo, name_of};
pub use outcome::Outcome;
pub use precond::{Aggregation, Amg, AmgOptions, Smoothing};
pub use precond::{BlockIlu, Polynomial};
pub use precond::{BlockJacobi, Blocks, Chebyshev, Fsai, FsaiOptions, Jacobi, Neumann, inverse_diagonal};
pub use precond::{Handles, Parts, Placed, Preconditioner};
pub use precond::{Ic0, Ilu0, Ilut, Solves, Ssor};
pub use precond::{PRECONDITIONERS, PrecondInfo, preconditioner};
pub use scale::{largest, scaling_exponent, vector_norm};
pub use solver::{Factor, Solver, Stop, Watch};
pub use system::System;
