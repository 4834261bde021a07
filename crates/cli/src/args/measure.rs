//! What the commands take that measure and report: `compare`, `bench`, `report`.
use super::shared::{NumberType, fixed_preconditioner, restart, rounds, threads, tolerance};
use crate::input::STANDARD;
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Files as `lacuna solve` takes them, `-` for standard input, or generators [default: gen:poisson-p1 with 225 to 261121 unknowns]
    pub(crate) matrices: Vec<String>,
    /// Methods by name, also gmres-once (orthogonalises once) and spmv (products alone) [default: cg where the matrix
    /// is positive definite, bicgstab, gmres]
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    pub(crate) methods: Vec<String>,
    /// Storage formats by name, `auto` for what any of the backends would choose, or `all` [default: auto]
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    pub(crate) formats: Vec<String>,
    /// Number types [default: f64, or c64 where the matrix is complex]
    #[arg(long, value_delimiter = ',', value_enum, value_name = "TYPE,...")]
    pub(crate) types: Vec<NumberType>,
    /// The preconditioner of every solve, with options
    #[arg(long, default_value = "none", value_parser = fixed_preconditioner, value_name = "NAME[:key=value,...]")]
    pub(crate) precond: String,
    /// Iterations of every solve, whatever the residual
    #[arg(long, default_value_t = 30, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) iterations: u64,
    /// Solve until |b - A x| <= rtol |b| instead
    #[arg(long, value_parser = tolerance, allow_hyphen_values = true, value_name = "NUMBER", conflicts_with = "iterations")]
    pub(crate) rtol: Option<f64>,
    /// Iterations at the most with --rtol [default: 10 n, at least 1000, at most 100000]
    #[arg(long, value_name = "COUNT", requires = "rtol")]
    pub(crate) max_iters: Option<u64>,
    /// Iterations of a GMRES cycle [default: 30]
    #[arg(long, value_name = "COUNT", value_parser = restart())]
    pub(crate) restart: Option<u32>,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
}

/// What the commands that measure share.
#[derive(Debug, Args)]
pub(crate) struct MeasuringArgs {
    /// Backends by name, `NAME:DEVICE` for one of its devices [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME[:DEVICE],...")]
    pub(crate) backends: Vec<String>,
    /// Rounds in which everything is measured once, taking turns; medians count
    #[arg(long, default_value_t = 7, value_parser = rounds())]
    pub(crate) rounds: u16,
    /// Begin nothing more after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = tolerance)]
    pub(crate) time_limit: Option<f64>,
    /// Threads of the CPU [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = threads())]
    pub(crate) threads: Option<u16>,
    /// Append the results as lines of JSON to a file, as they come, or print them for `-`
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<String>,
    /// Write a page with plots and tables, which needs nothing else; `-` for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) html: Option<String>,
    /// Results of other libraries to show beside ours, as bench/peers/run.sh keeps them; `-` for standard input
    #[arg(long, value_name = "FILE|-")]
    pub(crate) peers: Option<String>,
    /// No text and no progress
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
    /// What to measure [default: all but papers]
    #[arg(value_enum)]
    pub(crate) suites: Vec<Suite>,
    /// Number types of all but papers
    #[arg(long, value_delimiter = ',', value_enum, value_name = "TYPE,...", default_value = "f64")]
    pub(crate) types: Vec<NumberType>,
    /// Small sizes alone, for a quick look
    #[arg(long)]
    pub(crate) small: bool,
    /// Hold what is measured against results kept earlier; exit code 1 where something is slower beyond the noise; `-` for standard
    /// input
    #[arg(long, value_name = "FILE|-")]
    pub(crate) against: Option<String>,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
}

/// A part of the project's own measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// Fused passes, streaming out of cache and in it, beside loops written by hand
    Passes,
    /// Products in every format
    Spmv,
    /// 30 iterations of every method, from small systems to large
    Solvers,
    /// Reading a matrix, assembling it from triplets, converting it
    Matrices,
    /// The tables and figures of five papers, at today's sizes
    Papers,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Results kept with --json, of one run or several, and of peers; `-` for standard input
    #[arg(required_unless_present = "fill")]
    pub(crate) files: Vec<String>,
    /// Write a page with plots and tables, which needs nothing else; `-` for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) html: Option<String>,
    /// Write tables as Markdown to a file, or to standard output for `-` [default: -, unless --html is given]
    #[arg(long, value_name = "FILE|-")]
    pub(crate) markdown: Option<String>,
    /// Make the tables of documents anew, each from the results that the comment above it names
    #[arg(long, value_name = "FILE.md", num_args = 1.., conflicts_with_all = ["files", "html", "markdown"])]
    pub(crate) fill: Vec<String>,
    /// Only tell where a table is not what its results make it
    #[arg(long, requires = "fill")]
    pub(crate) check: bool,
}
