//! Arguments of the commands that describe and convert: `info`, `convert`, `generate`, `devices`.
use super::shared::{PLOT, ReportArgs, orders};
use clap::Args;
use lacuna_measure::args::threads;
use lacuna_measure::number::TypeName;

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// The matrix: a file in Matrix Market (.mtx), SciPy (.npz), PETSc (.petsc), MATLAB (.mat) or
    /// Rutherford-Boeing (.rb) form, plain or compressed (.gz, .bz2, .xz), an archive of the SuiteSparse
    /// collection (.tar.gz), `-` for standard input; or a generator such as gen:poisson2d:512x512
    pub(crate) matrix: String,
    /// List every storage format with its size, the measured time of a product on the default backend (from
    /// the cache if there is one), and the reason if it cannot be used; list every row order that changes the
    /// matrix, with its effect; print the range of the values, of all and of the largest of each row and column,
    /// the structural rank, and of a Hermitian matrix what a few Lanczos steps tell of its spectrum
    #[arg(long)]
    pub(crate) why: bool,
    /// Describe and plot the matrix in this order of rows and columns; `auto` takes the order that a product is likely to gain
    /// from, if there is one
    #[arg(long, default_value = "none", value_parser = orders())]
    pub(crate) reorder: String,
    /// Plot the positions of the entries
    #[arg(long, value_name = PLOT)]
    pub(crate) plot: Option<String>,
    /// Plot how many rows have how many entries
    #[arg(long, value_name = PLOT)]
    pub(crate) histogram: Option<String>,
    /// Threads [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = threads(), allow_negative_numbers = true)]
    pub(crate) threads: Option<u16>,
    /// Also say how the rows would be divided among this many ranks: their balance, what they send each other, and how many
    /// times as fast as one they could be
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) ranks: Option<usize>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The input: a matrix, or a vector if the file holds one (.npy, PETSc, Matrix Market arrays); any file
    /// that `lacuna solve` reads, `-` for standard input, or a generator
    #[arg(value_name = "IN")]
    pub(crate) input: String,
    /// The file to write; its extension selects the form. `-` writes Matrix Market to standard output
    #[arg(value_name = "OUT")]
    pub(crate) output: String,
    /// Also write the right-hand side stored with the matrix in IN or its archive
    #[arg(long, value_name = "FILE|-")]
    pub(crate) rhs: Option<String>,
    /// The number type [default: that of IN; f64 or c64 for text]
    #[arg(long = "type", value_enum)]
    pub(crate) number: Option<TypeName>,
    /// Write every entry of a Matrix Market file, including those implied by symmetry
    #[arg(long)]
    pub(crate) general: bool,
    /// Threads [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = threads(), allow_negative_numbers = true)]
    pub(crate) threads: Option<u16>,
    /// Print no text and no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// The file forms, as listed in the help of `lacuna convert`.
pub(crate) const FORMS: &str = "\
Forms:
  .mtx         Matrix Market: matrices and vectors; also what has any other end
  .npz         SciPy (scipy.sparse.load_npz, save_npz): matrices
  .npy         NumPy (numpy.load, save): vectors; dense arrays are read only
  .petsc       PETSc (MatLoad, VecLoad): matrices and vectors, in double precision
  .mat         MATLAB 5 to 7: read only
  .rb .hb      Rutherford-Boeing, Harwell-Boeing: read only
The first bytes of a file decide its form, its name only where they do not.
Compressed files (.gz, .bz2, .xz) and tar archives are read; .mtx, .npy and
.petsc are written as .gz too.

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
    /// The file to write: .npz for SciPy, .petsc for PETSc, any other extension for Matrix Market, compressed
    /// if it ends in .gz; `-` for standard output
    #[arg(long, short, value_name = "FILE", required_unless_present = "list")]
    pub(crate) output: Option<String>,
    /// The number type [default: f64, or c64 for a complex matrix]
    #[arg(long = "type", value_enum)]
    pub(crate) number: Option<TypeName>,
    /// Write every entry of a Matrix Market file, including those implied by symmetry
    #[arg(long)]
    pub(crate) general: bool,
    /// List the generators
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DevicesArgs {
    /// Threads of the CPU [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = threads(), allow_negative_numbers = true)]
    pub(crate) threads: Option<u16>,
    /// Skip the measurement of the memory bandwidth
    #[arg(long)]
    pub(crate) no_measure: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}
