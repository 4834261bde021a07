//! Arguments of the commands that measure and report: `compare`, `bench`, `report`.
use super::shared::{NumberType, fixed_preconditioner, restart, rounds, threads, tolerance};
use crate::input::STANDARD;
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The matrices: files that `lacuna solve` reads, `-` for standard input, or generators [default:
    /// gen:poisson-p1 with 225 to 261121 unknowns]
    pub(crate) matrices: Vec<String>,
    /// Methods by name; also gmres-once (GMRES that orthogonalises once) and spmv (only products) [default:
    /// cg if the matrix is positive definite, bicgstab, gmres]
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    pub(crate) methods: Vec<String>,
    /// Storage formats by name; `auto` takes the choices of all backends, `all` takes every format [default:
    /// auto]
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    pub(crate) formats: Vec<String>,
    /// Number types [default: f64, or c64 if the matrix is complex]
    #[arg(long, value_delimiter = ',', value_enum, value_name = "TYPE,...")]
    pub(crate) types: Vec<NumberType>,
    /// The preconditioner of every solve, with options
    #[arg(long, default_value = "none", value_parser = fixed_preconditioner, value_name = "NAME[:key=value,...]")]
    pub(crate) precond: String,
    /// Run exactly this many iterations in every solve, whatever the residual
    #[arg(long, default_value_t = 30, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) iterations: u64,
    /// Solve until |b - A x| <= rtol |b| instead of a fixed number of iterations
    #[arg(long, value_parser = tolerance, allow_hyphen_values = true, value_name = "NUMBER", conflicts_with = "iterations")]
    pub(crate) rtol: Option<f64>,
    /// The largest number of iterations with --rtol [default: 10 n, at least 1000, at most 100000]
    #[arg(long, value_name = "COUNT", requires = "rtol")]
    pub(crate) max_iters: Option<u64>,
    /// Iterations of a GMRES cycle [default: 30]
    #[arg(long, value_name = "COUNT", value_parser = restart())]
    pub(crate) restart: Option<u32>,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
}

/// Arguments shared by the commands that measure.
#[derive(Debug, Args)]
pub(crate) struct MeasuringArgs {
    /// Backends by name, or `NAME:DEVICE` for one of their devices [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME[:DEVICE],...")]
    pub(crate) backends: Vec<String>,
    /// Number of rounds. Each round measures everything once, alternating between the cases; medians are
    /// reported
    #[arg(long, default_value_t = 7, value_parser = rounds())]
    pub(crate) rounds: u16,
    /// Start no further measurement after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = tolerance)]
    pub(crate) time_limit: Option<f64>,
    /// Threads of the CPU [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = threads())]
    pub(crate) threads: Option<u16>,
    /// Append the results to a file as they come, one JSON object per line; `-` prints them
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<String>,
    /// Write a self-contained HTML page with plots and tables; `-` for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) html: Option<String>,
    /// Show results of other libraries too, from a file written by bench/peers/run.sh; `-` for standard input
    #[arg(long, value_name = "FILE|-")]
    pub(crate) peers: Option<String>,
    /// Print no text and no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl MeasuringArgs {
    /// Whether results go to standard output, so that text goes to standard error.
    pub(crate) fn aside(&self) -> bool {
        [&self.json, &self.html].into_iter().any(|path| path.as_deref() == Some(STANDARD))
    }
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// The suites to run [default: all except papers]
    #[arg(value_enum)]
    pub(crate) suites: Vec<Suite>,
    /// Number types of all suites except papers
    #[arg(long, value_delimiter = ',', value_enum, value_name = "TYPE,...", default_value = "f64")]
    pub(crate) types: Vec<NumberType>,
    /// Only small sizes, for a quick look
    #[arg(long)]
    pub(crate) small: bool,
    /// Only the papers with one of these words in their name, such as buatois
    #[arg(long, value_delimiter = ',', value_name = "WORD,...")]
    pub(crate) papers: Vec<String>,
    /// Compare with results kept earlier; exit code 1 if something is slower by more than the noise; `-` for
    /// standard input
    #[arg(long, value_name = "FILE|-")]
    pub(crate) against: Option<String>,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
}

/// A suite of the project's own measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// Fused passes over vectors, larger than the caches and inside them, compared with loops written by hand
    Passes,
    /// Products in every format
    Spmv,
    /// 30 iterations of every method, on systems from small to large
    Solvers,
    /// Reading a matrix, assembling it from triplets, converting it
    Matrices,
    /// The tables and figures of five papers, at present-day sizes
    Papers,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Results written with --json, of one or several runs, and results of other libraries; `-` for standard
    /// input
    #[arg(required_unless_present = "fill")]
    pub(crate) files: Vec<String>,
    /// Write a self-contained HTML page with plots and tables; `-` for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) html: Option<String>,
    /// Write tables as Markdown to a file; `-` for standard output [default: -, unless --html is given]
    #[arg(long, value_name = "FILE|-")]
    pub(crate) markdown: Option<String>,
    /// Update the tables of these documents, each from the results named in the comment above it
    #[arg(long, value_name = "FILE.md", num_args = 1.., conflicts_with_all = ["files", "html", "markdown"])]
    pub(crate) fill: Vec<String>,
    /// Only report tables that differ from what their results give, and change nothing
    #[arg(long, requires = "fill")]
    pub(crate) check: bool,
}
