//! Arguments of `lacuna compare`.
use super::shared::{NormName, PLOT, count, restart};
use clap::Args;
use lacuna_measure::args::{MeasuringArgs, tolerance};
use lacuna_measure::number::TypeName;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The matrices: files that `lacuna solve` reads, `-` for standard input, or generators [default:
    /// gen:poisson-p1 with 225 to 261121 unknowns]
    pub(crate) matrices: Vec<String>,
    /// Methods by name, with options; also gmres-once (GMRES that orthogonalises once) and spmv (only products) [default:
    /// cg if the matrix is positive definite, bicgstab, gmres; cgls, lsqr, lsmr if it is not square]
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    pub(crate) methods: Vec<String>,
    /// Storage formats by name; `auto` takes the choices of all backends, `all` takes every format [default:
    /// auto]
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    pub(crate) formats: Vec<String>,
    /// Number types [default: f64, or c64 if the matrix is complex]
    #[arg(long, value_delimiter = ',', value_enum, value_name = "TYPE,...")]
    pub(crate) types: Vec<TypeName>,
    /// Preconditioners, with options; each is tried with every method but those that are preconditioners themselves (jacobi,
    /// gauss-seidel, sor, direct)
    #[arg(long, default_value = "none", value_delimiter = ',', value_name = "NAME[:key=value,...],...")]
    pub(crate) precond: Vec<String>,
    /// The right-hand side of every solve: a file with one column, `-`, `ones`, `random:SEED`, or `model`, that of the
    /// generator's model [default: the one stored with the matrix, else ones]
    #[arg(long, value_name = "FILE|-|ones|model|random:SEED")]
    pub(crate) rhs: Option<String>,
    /// The starting guess of every solve: a file with one column [default: 0]
    #[arg(long, value_name = "FILE|-")]
    pub(crate) x0: Option<String>,
    /// Run this many iterations in every solve, whatever the residual; a method that breaks down, as some do
    /// once only rounding is left, ends earlier
    #[arg(long, default_value_t = 30, value_name = "COUNT", value_parser = iterations, allow_negative_numbers = true)]
    pub(crate) iterations: u64,
    /// Solve until |b - A x| <= rtol |b|, or |A^H (b - A x)| <= rtol |A^H b| for least squares, instead of a
    /// fixed number of iterations
    #[arg(long, value_parser = tolerance, allow_hyphen_values = true, value_name = "NUMBER", conflicts_with = "iterations")]
    pub(crate) rtol: Option<f64>,
    /// The norm of that test: of two, or the maximum norm, max |b - A x| <= rtol max |b|
    #[arg(long, value_enum, default_value = "2", requires = "rtol")]
    pub(crate) norm: NormName,
    /// The largest number of iterations with --rtol [default: 10 n, at least 1000, at most 100000]
    #[arg(long, value_name = "COUNT", value_parser = count, allow_negative_numbers = true, requires = "rtol")]
    pub(crate) max_iters: Option<u64>,
    /// Iterations of a GMRES cycle [default: 30]
    #[arg(long, value_name = "COUNT", value_parser = restart(), allow_negative_numbers = true)]
    pub(crate) restart: Option<u32>,
    /// Measure every method a second time, with each pass over vectors a sweep of its own, apart from the products: what fusion
    /// gains
    #[arg(long)]
    pub(crate) unfused: bool,
    /// Plot the residuals of all solves over their iterations
    #[arg(long, value_name = PLOT)]
    pub(crate) plot: Option<String>,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
}

/// Parses the number of iterations of every solve.
fn iterations(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| (1..=1_000_000).contains(count));
    count.ok_or_else(|| "expected a whole number from 1 to 1000000".into())
}
