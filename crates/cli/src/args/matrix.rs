//! What the commands take that describe and make: `info`, `convert`, `generate`, `devices`.
use super::shared::{NumberType, TellingArgs, threads};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// A file: Matrix Market (.mtx), SciPy (.npz), PETSc (.petsc), MATLAB (.mat) or Rutherford-Boeing (.rb), plain or compressed (.gz,
    /// .bz2, .xz), an archive of SuiteSparse (.tar.gz), `-` for standard input; or a generator such as gen:poisson2d:512x512
    pub(crate) matrix: String,
    /// Every storage format with what it would take, how long a product is measured to take on the default backend (or was),
    /// and why not; every order of the rows with what it does
    #[arg(long)]
    pub(crate) why: bool,
    /// Plot where the entries are
    #[arg(long, value_name = "FILE.svg|FILE.png")]
    pub(crate) plot: Option<String>,
    /// Threads [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = threads())]
    pub(crate) threads: Option<u16>,
    #[command(flatten)]
    pub(crate) telling: TellingArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// What to read: a matrix, or a vector where the file has one (.npy, PETSc, Matrix Market arrays); any file that `lacuna solve`
    /// takes, `-` for standard input, or a generator
    #[arg(value_name = "IN")]
    pub(crate) input: String,
    /// The file to write, in the form that its end stands for; `-` for standard output, in Matrix Market
    #[arg(value_name = "OUT")]
    pub(crate) output: String,
    /// Write the right-hand side too, that IN or its archive has beside the matrix
    #[arg(long, value_name = "FILE|-")]
    pub(crate) rhs: Option<String>,
    /// The number type [default: that of IN; f64 or c64 of text]
    #[arg(long = "type", value_enum)]
    pub(crate) number: Option<NumberType>,
    /// Write every entry of a Matrix Market file, also those that its symmetry tells
    #[arg(long)]
    pub(crate) general: bool,
    /// Threads [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = threads())]
    pub(crate) threads: Option<u16>,
    /// No text and no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// The forms, as the help of `lacuna convert` lists them.
pub(crate) const FORMS: &str = "\
Forms:
  .mtx         Matrix Market: matrices and vectors; also what has any other end
  .npz         SciPy (scipy.sparse.load_npz, save_npz): matrices
  .npy         NumPy (numpy.load, save): vectors, dense arrays
  .petsc       PETSc (MatLoad, VecLoad): matrices and vectors, in double precision
  .mat         MATLAB 5 to 7: read only
  .rb .hb      Rutherford-Boeing, Harwell-Boeing: read only
The first bytes of a file decide its form, its name only where they do not.
Compressed files are read (.gz, .bz2, .xz); .mtx, .npy and .petsc are written
as .gz too.

Examples:
  lacuna convert A.mtx.gz A.npz               for scipy.sparse.load_npz
  lacuna convert A.npz A.petsc                for PETSc's MatLoad
  lacuna convert Problem.mat A.mtx --rhs b.mtx
  lacuna convert b.npy b.mtx                  a vector
  lacuna convert A.npz - | less               to look at it";

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// A generator with its arguments, such as gen:poisson2d:512x512
    #[arg(required_unless_present = "list")]
    pub(crate) spec: Option<String>,
    /// The file to write: .npz for SciPy, .petsc for PETSc, else Matrix Market, compressed where it ends in .gz; `-` for standard
    /// output
    #[arg(long, short, value_name = "FILE", required_unless_present = "list")]
    pub(crate) output: Option<String>,
    /// The number type [default: f64, or c64 for a complex matrix]
    #[arg(long = "type", value_enum)]
    pub(crate) number: Option<NumberType>,
    /// Write every entry of a Matrix Market file, also those that its symmetry tells
    #[arg(long)]
    pub(crate) general: bool,
    /// List the generators
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DevicesArgs {
    /// Threads of the CPU [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = threads())]
    pub(crate) threads: Option<u16>,
    /// Leave out the measurement of the memory bandwidth
    #[arg(long)]
    pub(crate) no_measure: bool,
}
