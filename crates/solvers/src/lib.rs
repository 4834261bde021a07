//! Krylov methods and preconditioners, written once as programs of fused passes and independent of any
//! backend.
mod accuracy;
mod attained;
pub mod auto;
mod columns;
mod explain;
mod krylov;
mod named;
mod observed;
mod observer;
mod outcome;
mod precond;
mod random;
mod rank;
mod ritz;
mod scale;
mod solver;
mod stop;
mod system;

pub use accuracy::{Residual, norm_bound, residual, residual_norm};
pub use auto::{AutoSolver, Chosen, OperatorSolver};
pub use columns::{Advance, Column, ColumnSolver, Columns, RightHandSide};
pub use explain::{explain, is_structurally_singular};
pub use krylov::{BiCg, BiCgStab, BiCgStabL, Cgs, ClassicalBiCgStab, Gmres, Idr, Orthogonalization, Side};
pub use krylov::{
    CbGmres, Cg, ChebyshevIteration, ClassicalCg, Cr, Cycle, FGmres, FlexibleCg, MinRes, PipelinedCg,
    PipelinedGmres,
};
pub use krylov::{Cgls, Combined, Craig, Lsmr, Lsqr};
pub use krylov::{ColumnMethod, METHODS, Method, MethodInfo, Needs, Options, Qmr, Richardson, TfQmr, method};
pub use named::{OptionInfo, name_of};
pub use observer::Observer;
pub use outcome::{Outcome, Way};
pub use precond::{Aggregation, Amg, AmgOptions, Multigrid, MultigridOptions, Smoothing};
pub use precond::{BlockIlu, ColumnScaling, Polynomial};
pub use precond::{BlockJacobi, Blocks, Chebyshev, Fsai, FsaiOptions, Jacobi, Neumann, inverse_diagonal};
#[cfg(feature = "direct")]
pub use precond::{Direct, DirectOptions};
pub use precond::{Given, Handles, OnHost, Parts, Placed, Preconditioner, SparseAlgebra, There};
pub use precond::{Ic0, Ilu0, Ilut, Solves, Sor, Spai, Ssor};
pub use precond::{PRECONDITIONERS, PrecondInfo, SHARED_OPTIONS, preconditioner};
pub use precond::{Setup, SetupProgress, SetupWatch, interruptible};
pub use random::hashed;
pub use rank::{Deficient, deficiency};
pub use ritz::{RitzValues, balanced};
pub use scale::{Factor, largest, max_norm, scaling_exponent, vector_norm};
pub use solver::Solver;
pub use stop::{Norm, Stop, Watch};
pub use system::{Image, System};
