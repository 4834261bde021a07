//! Arguments of `lacuna solve` and `lacuna spmv`.
use super::shared::{
    NormName, PLOT, PlaceArgs, ReportArgs, count, method, names, orders, orders_of_solve, preconditioner,
    restart, scalings, vectors,
};
use clap::Args;
use lacuna::formats::FORMATS;
use lacuna_measure::args::{rounds, tolerance};
use lacuna_measure::number::TypeName;

#[derive(Debug, Args)]
pub(crate) struct SolveArgs {
    /// The matrix: a file in Matrix Market (.mtx), SciPy (.npz), PETSc (.petsc), MATLAB (.mat) or
    /// Rutherford-Boeing (.rb) form, plain or compressed (.gz, .bz2, .xz), an archive of the SuiteSparse
    /// collection (.tar.gz), `-` for standard input; or a generator such as gen:poisson2d:512x512
    pub(crate) matrix: String,
    /// The right-hand side: a file with one column, or with several for several solves (.mtx, .npy, PETSc, ...), `-`, `ones`,
    /// `random:SEED`, or `model`, that of the generator's model [default: the one stored with the matrix in its file or archive,
    /// else ones]
    #[arg(long, value_name = "FILE|-|ones|model|random:SEED")]
    pub(crate) rhs: Option<String>,
    /// The starting guess: a file with one column [default: 0]
    #[arg(long, value_name = "FILE|-")]
    pub(crate) x0: Option<String>,
    /// The method, with options as NAME:key=value,...; `auto` chooses by the structure of the matrix (how, is listed below) and
    /// gives the reason, `tune` takes what solved a matrix of this structure fastest before (see `lacuna
    /// advise`), with its preconditioner
    #[arg(long, default_value = "auto", value_parser = method, value_name = "NAME[:key=value,...]")]
    pub(crate) method: String,
    /// The preconditioner, with options; `auto` chooses by the matrix and the method, as listed below
    #[arg(long, default_value = "auto", value_parser = preconditioner, value_name = "NAME[:key=value,...]")]
    pub(crate) precond: String,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The storage format on the device; `auto` takes the one whose product is estimated to be fastest here, by
    /// the bytes and the places of each, or keeps csr on the CPU beside ilu0, ic0, ilut and direct, `tune` the
    /// one that is fastest by measurement, which is done once and remembered
    #[arg(long, default_value = "auto", value_parser = names(["tune"].into_iter().chain(FORMATS.iter().map(|f| f.name))), hide_possible_values = true)]
    pub(crate) format: String,
    /// The order of rows and columns on the device; `auto` changes the given one if that is likely to gain
    /// much. With an automatic method, rows move where the diagonal has zeros (`matching`)
    #[arg(long, default_value = "none", value_parser = orders_of_solve())]
    pub(crate) reorder: String,
    /// Scale rows, columns or both by powers of two before the solve, where their units differ by many powers of ten; `symmetric`
    /// keeps a symmetric matrix symmetric. The tolerance is then that of the scaled rows
    #[arg(long, default_value = "none", value_parser = scalings())]
    pub(crate) scale: String,
    /// The number type [default: f64, or c64 if the input is complex]
    #[arg(long = "type", value_enum)]
    pub(crate) number: Option<TypeName>,
    /// Solve for corrections in single precision, which moves half the bytes, and keep residuals and x in
    /// double. As accurate as without, as long as the condition number leaves single precision at least one
    /// digit
    #[arg(long)]
    pub(crate) refine: bool,
    /// Relative tolerance: converged if |b - A x| <= max(rtol |b|, atol), or |A^H (b - A x)| <= rtol |A^H b|
    /// for least squares [default: 1e-8; 1e-5 for f32 and c32]
    #[arg(long, value_parser = tolerance, allow_hyphen_values = true, value_name = "NUMBER")]
    pub(crate) rtol: Option<f64>,
    /// Absolute tolerance of the same test
    #[arg(long, default_value = "0", value_parser = tolerance, allow_hyphen_values = true, value_name = "NUMBER")]
    pub(crate) atol: f64,
    /// The norm of the test: of two, or the maximum norm, max |b - A x| <= max(rtol max |b|, atol); the residuals of iterations
    /// stay those of the 2-norm
    #[arg(long, value_enum, default_value = "2")]
    pub(crate) norm: NormName,
    /// The largest number of iterations [default: 10 n, at least 1000, at most 100000]
    #[arg(long, value_name = "COUNT", value_parser = count, allow_negative_numbers = true)]
    pub(crate) max_iters: Option<u64>,
    /// Iterations of a GMRES cycle [default: 30]
    #[arg(long, value_name = "COUNT", value_parser = restart(), allow_negative_numbers = true)]
    pub(crate) restart: Option<u32>,
    /// Write the solution to a file (.mtx, .npy or .petsc), or to standard output for `-`; the report then
    /// goes to standard error
    #[arg(long, value_name = "FILE|-")]
    pub(crate) output: Option<String>,
    /// Plot the residual over the iterations
    #[arg(long, value_name = PLOT)]
    pub(crate) plot: Option<String>,
    /// Set up and solve so many times, and report the fastest: leaves out what a process does once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), allow_negative_numbers = true, value_name = "COUNT")]
    pub(crate) repeat: u32,
    /// Print also what the set-up made: the levels of a hierarchy, the fill of factors, the time of each part
    #[arg(long, short, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SpmvArgs {
    /// The matrix: a file in Matrix Market (.mtx), SciPy (.npz), PETSc (.petsc), MATLAB (.mat) or
    /// Rutherford-Boeing (.rb) form, plain or compressed (.gz, .bz2, .xz), an archive of the SuiteSparse
    /// collection (.tar.gz), `-` for standard input; or a generator such as gen:poisson2d:512x512
    pub(crate) matrix: String,
    /// Formats by name, separated by commas; `all` for every format that can hold the matrix, `tune` for the
    /// plausible ones, whose times are remembered
    #[arg(long, default_value = "all", value_delimiter = ',', value_name = "all|tune|NAME,...")]
    pub(crate) format: Vec<String>,
    /// The order of rows and columns; `auto` changes the given one if that is likely to gain much
    #[arg(long, default_value = "none", value_parser = orders())]
    pub(crate) reorder: String,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The number type [default: f64, or c64 if the matrix is complex]
    #[arg(long = "type", value_enum)]
    pub(crate) number: Option<TypeName>,
    /// The number of vectors that a product multiplies at once; several numbers, separated by commas, give
    /// one row of the table each
    #[arg(long, default_value = "1", value_delimiter = ',', value_name = "K,...", value_parser = vectors(), allow_negative_numbers = true)]
    pub(crate) vectors: Vec<u16>,
    /// Number of rounds. Each round times every format once; the median is reported
    #[arg(long, default_value_t = 7, value_parser = rounds(), allow_negative_numbers = true)]
    pub(crate) rounds: u16,
    /// Plot the speed of each format
    #[arg(long, value_name = PLOT)]
    pub(crate) plot: Option<String>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}
