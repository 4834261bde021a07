//! What the commands take that describe: `info`, `generate`, `devices`.
use super::shared::{NumberType, TellingArgs, threads};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// A Matrix Market file, plain or compressed (.gz, .bz2, .xz), an archive of SuiteSparse (.tar.gz), `-` for standard input, or a
    /// generator such as gen:poisson2d:512x512
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
pub(crate) struct GenerateArgs {
    /// A generator with its arguments, such as gen:poisson2d:512x512
    #[arg(required_unless_present = "list")]
    pub(crate) spec: Option<String>,
    /// The file to write, compressed where it ends in .gz; `-` for standard output; compressed rows for programs in any
    /// language where it ends in .laccsr
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
