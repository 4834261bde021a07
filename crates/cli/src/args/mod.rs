//! The command line.
mod advise;
mod compare;
mod eigen;
mod lists;
mod matrix;
mod papers;
mod shared;
mod solve;
mod svd;

pub(crate) use advise::AdviseArgs;
pub(crate) use compare::CompareArgs;
pub(crate) use eigen::{CheckName, EigenArgs, KRYLOV_SCHUR, Wanted};
pub(crate) use lists::generators;
pub(crate) use matrix::{ConvertArgs, DevicesArgs, GenerateArgs, InfoArgs};
pub(crate) use papers::{Name, PapersArgs};
pub(crate) use shared::{check_restart, joined};
pub(crate) use solve::{SolveArgs, SpmvArgs};
pub(crate) use svd::SvdArgs;

use clap::{CommandFactory, Parser, Subcommand};
use lacuna_measure::args::parsed;
use lists::{lists, lists_of_products};
use matrix::FORMS;

/// Sparse linear systems, eigenvalue problems and singular values.
#[derive(Debug, Parser)]
#[command(name = "lacuna", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  lacuna solve gen:poisson2d:512x512          a model problem, everything chosen for you
  lacuna solve A.mtx --rhs b.mtx --output x.mtx
  lacuna solve A.mtx.gz --method gmres --restart 50 --rtol 1e-10 --plot convergence.svg
  lacuna eigen K.mtx --mass M.mtx --count 12  the smallest eigenvalues, and none of them missed
  lacuna svd A.mtx --count 12                 the largest singular values
  lacuna advise A.mtx --plot race.svg         tries what may suit it, names the fastest
  lacuna info A.mtx --plot spy.svg            what the matrix looks like, what would solve it
  lacuna spmv A.mtx --plot spmv.svg           which storage format is fastest here
  lacuna convert A.npz A.mtx                  between SciPy, PETSc, MATLAB, Matrix Market and more
  lacuna generate gen:convection:300x300 --output A.mtx.gz
  lacuna devices
  zcat A.mtx.gz | lacuna solve - --output - > x.mtx
  lacuna solve A.mtx --backend opencl --device 1
  lacuna compare                              which backend and method wins here, from small systems to large
  lacuna compare A.mtx --formats all --html compare.html
  lacuna compare A.mtx --methods cg,minres --precond none,jacobi,ic0 --rtol 1e-8 --plot residuals.svg
  lacuna papers jost --small                  the tables and figures of a paper, in seconds

`lacuna help solve` lists the methods, preconditioners and generators.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Solve A x = b
    Solve(Box<SolveArgs>),
    /// Eigenvalues of A x = lambda x, of any square matrix, or of a Hermitian A x = lambda B x
    Eigen(Box<EigenArgs>),
    /// Singular values of A v = sigma u, for a matrix of any shape
    Svd(Box<SvdArgs>),
    /// Try methods and preconditioners on A x = b, and report which is fastest here
    Advise(Box<AdviseArgs>),
    /// Time the product with a matrix in each storage format
    Spmv(SpmvArgs),
    /// Compare backends, formats and methods on this machine: which is fastest, and whether all give the same
    /// bits
    Compare(Box<CompareArgs>),
    /// Show the tables and figures of five papers, ours beside theirs
    Papers(PapersArgs),
    /// Describe a matrix: structure, symmetry, rows, diagonal, and the suggested solver
    Info(InfoArgs),
    /// Write a matrix or a vector in another form: for SciPy, PETSc, or as text
    Convert(ConvertArgs),
    /// Write a generated matrix to a file
    Generate(GenerateArgs),
    /// List the devices of all backends: memory, number types, measured bandwidth
    Devices(DevicesArgs),
}

/// Parses the command line of `lacuna`.
pub(crate) fn parse() -> Command {
    let command = Cli::command()
        .mut_subcommand("solve", |c| c.after_help(lists()))
        .mut_subcommand("compare", |c| c.after_help(lists()))
        .mut_subcommand("spmv", |c| c.after_help(lists_of_products()))
        .mut_subcommand("info", |c| c.after_help(generators()))
        .mut_subcommand("convert", |c| c.after_help(FORMS))
        .mut_subcommand("generate", |c| c.after_help(generators()));
    parsed::<Cli>(command).command
}
