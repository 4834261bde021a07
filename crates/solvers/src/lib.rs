//! Krylov methods, written once as programs of fused passes. No backend is named here.
mod bicgstab;
mod cg;
mod choose;
mod gmres;
mod method;
mod outcome;
mod precond;
mod solver;
mod system;

pub use bicgstab::{BiCgStab, PipelinedBiCgStab};
pub use cg::{Cg, PipelinedCg};
pub use choose::{Chosen, choose_method, choose_preconditioner};
pub use gmres::{Gmres, Orthogonalization, Side};
pub use method::{METHODS, Method, MethodInfo, Options, method};
pub use outcome::Outcome;
pub use precond::{PRECONDITIONERS, PrecondInfo, inverse_diagonal, jacobi};
pub use solver::{Solver, Stop, Watch};
pub use system::System;
