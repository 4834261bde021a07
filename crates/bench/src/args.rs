//! The command line.
use clap::{Args, Parser, Subcommand, ValueEnum};
use lacuna_measure::args::MeasuringArgs;
use lacuna_measure::number::TypeName;

/// The laboratory of Lacuna: its own measurements, and pages and tables of kept results.
#[derive(Debug, Parser)]
#[command(name = "lacuna-bench", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the project's own measurements: passes, products, solvers, matrices
    Run(RunArgs),
    /// Make a page or tables from results kept earlier
    Report(ReportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The suites to run [default: all]
    #[arg(value_enum)]
    pub(crate) suites: Vec<Suite>,
    /// Number types
    #[arg(long, value_delimiter = ',', value_enum, value_name = "TYPE,...", default_value = "f64")]
    pub(crate) types: Vec<TypeName>,
    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// Arguments shared by the commands that measure.
#[derive(Debug, Args)]
pub(crate) struct RunningArgs {
    /// Only small sizes, for a quick look
    #[arg(long)]
    pub(crate) small: bool,
    /// Compare with results kept earlier; exit code 1 if something is slower by more than the noise; `-` for
    /// standard input
    #[arg(long, value_name = "FILE|-")]
    pub(crate) against: Option<String>,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
}

/// A suite of the project's own measurements.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Suite {
    /// Fused passes over vectors, larger than the caches and inside them, compared with loops written by hand
    Passes,
    /// Products in every format
    Spmv,
    /// 30 iterations of every method, on systems from small to large
    Solvers,
    /// Reading a matrix, assembling it from triplets, converting it
    Matrices,
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
