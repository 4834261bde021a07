//! What `lacuna solve` and `lacuna spmv` take.
use super::shared::{
    NumberType, PlaceArgs, TellingArgs, method, names, orders, preconditioner, restart, rounds, tolerance,
    vectors,
};
use clap::Args;
use lacuna::formats::FORMATS;

#[derive(Debug, Args)]
pub(crate) struct SolveArgs {
    /// A file: Matrix Market (.mtx), SciPy (.npz), PETSc (.petsc), MATLAB (.mat) or Rutherford-Boeing (.rb), plain or compressed (.gz,
    /// .bz2, .xz), an archive of SuiteSparse (.tar.gz), `-` for standard input; or a generator such as gen:poisson2d:512x512
    pub(crate) matrix: String,
    /// The right-hand side: a file of one column (.mtx, .npy, PETSc, ...), `-`, `ones`, or `random:SEED` [default: that beside the
    /// matrix in its file or archive, else ones]
    #[arg(long, value_name = "FILE|-|ones|random:SEED")]
    pub(crate) rhs: Option<String>,
    /// Where to start from: a file of one column [default: 0]
    #[arg(long, value_name = "FILE|-")]
    pub(crate) x0: Option<String>,
    /// The method, with options as NAME:key=value,...; `auto` goes by the structure of the matrix and says why
    #[arg(long, default_value = "auto", value_parser = method, value_name = "NAME[:key=value,...]")]
    pub(crate) method: String,
    /// The preconditioner, with options; `auto` is jacobi where the diagonal has no zero and is not constant
    #[arg(long, default_value = "auto", value_parser = preconditioner, value_name = "NAME[:key=value,...]")]
    pub(crate) precond: String,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The storage format on the device; `auto` takes what moves the fewest bytes and says how many, `tune` what is fastest,
    /// measured once and remembered
    #[arg(long, default_value = "auto", value_parser = names(["tune"].into_iter().chain(FORMATS.iter().map(|f| f.name))), hide_possible_values = true)]
    pub(crate) format: String,
    /// The order of rows and columns on the device; `auto` takes another than the one given where that promises much
    #[arg(long, default_value = "none", value_parser = orders())]
    pub(crate) reorder: String,
    /// The number type [default: f64, or c64 where the input is complex]
    #[arg(long = "type", value_enum)]
    pub(crate) number: Option<NumberType>,
    /// Solve for corrections in single precision, which moves half the bytes, and keep residuals and x in double: as accurate as
    /// without, while the condition of the matrix leaves single precision a digit
    #[arg(long)]
    pub(crate) refine: bool,
    /// Converged where |b - A x| <= max(rtol |b|, atol), or |A^H (b - A x)| <= rtol |A^H b| for least squares [default: 1e-8; 1e-5 for f32 and c32]
    #[arg(long, value_parser = tolerance, allow_hyphen_values = true, value_name = "NUMBER")]
    pub(crate) rtol: Option<f64>,
    /// The absolute tolerance of the same test
    #[arg(long, default_value = "0", value_parser = tolerance, allow_hyphen_values = true, value_name = "NUMBER")]
    pub(crate) atol: f64,
    /// Iterations at the most [default: 10 n, at least 1000, at most 100000]
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_iters: Option<u64>,
    /// Iterations of a GMRES cycle [default: 30]
    #[arg(long, value_name = "COUNT", value_parser = restart())]
    pub(crate) restart: Option<u32>,
    /// Write the solution to a file (.mtx, .npy or .petsc), or to standard output for `-`; the report then goes to standard error
    #[arg(long, value_name = "FILE|-")]
    pub(crate) output: Option<String>,
    /// Plot the residual over the iterations
    #[arg(long, value_name = "FILE.svg|FILE.png")]
    pub(crate) plot: Option<String>,
    #[command(flatten)]
    pub(crate) telling: TellingArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SpmvArgs {
    /// A file: Matrix Market (.mtx), SciPy (.npz), PETSc (.petsc), MATLAB (.mat) or Rutherford-Boeing (.rb), plain or compressed (.gz,
    /// .bz2, .xz), an archive of SuiteSparse (.tar.gz), `-` for standard input; or a generator such as gen:poisson2d:512x512
    pub(crate) matrix: String,
    /// Formats by name, separated by commas, `all` that take the matrix, or `tune` for the plausible ones, whose times are
    /// remembered
    #[arg(long, default_value = "all", value_delimiter = ',', value_name = "all|tune|NAME,...")]
    pub(crate) format: Vec<String>,
    /// The order of rows and columns; `auto` takes another than the one given where that promises much
    #[arg(long, default_value = "none", value_parser = orders())]
    pub(crate) reorder: String,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The number type [default: f64, or c64 where the matrix is complex]
    #[arg(long = "type", value_enum)]
    pub(crate) number: Option<NumberType>,
    /// Vectors that a product multiplies at once; several numbers, separated by commas, for one row of the table each
    #[arg(long, default_value = "1", value_delimiter = ',', value_name = "K,...", value_parser = vectors())]
    pub(crate) vectors: Vec<u16>,
    /// Rounds in which every format is timed once; the median counts
    #[arg(long, default_value_t = 7, value_parser = rounds())]
    pub(crate) rounds: u16,
    /// Plot the speed of each format
    #[arg(long, value_name = "FILE.svg|FILE.png")]
    pub(crate) plot: Option<String>,
    #[command(flatten)]
    pub(crate) telling: TellingArgs,
}
