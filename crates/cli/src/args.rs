//! The command line.
use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use lacuna::formats::{FORMATS, ORDERS};
use lacuna::solvers::{METHODS, PRECONDITIONERS};
use lacuna::{BACKENDS, Kind, Spec};

/// Sparse linear systems, solved by Krylov methods.
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
  lacuna info A.mtx --plot spy.png            what the matrix looks like, what would solve it
  lacuna spmv A.mtx --plot spmv.svg           which storage format is fastest here
  lacuna generate gen:convection:300x300 --output A.mtx.gz
  lacuna devices
  lacuna solve A.mtx --backend opencl --device 1
  lacuna compare                              which backend and method wins here, from small systems to large
  lacuna compare A.mtx --formats all --html compare.html

`lacuna help solve` lists the methods, preconditioners and generators.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Solve A x = b
    Solve(Box<SolveArgs>),
    /// Time the product with a matrix in each storage format
    Spmv(SpmvArgs),
    /// Tell which backend, format and method wins here, and whether all have the same bits
    Compare(Box<CompareArgs>),
    /// Run the project's own measurements: passes, products, solvers, those of the papers
    Bench(BenchArgs),
    /// Make a page or tables of results that were kept
    Report(ReportArgs),
    /// Describe a matrix: structure, symmetry, rows, diagonal, and what would solve it
    Info(InfoArgs),
    /// Write a generated matrix to a file
    Generate(GenerateArgs),
    /// List every device of every backend: its memory, its number types, its measured bandwidth
    Devices(DevicesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SolveArgs {
    /// A Matrix Market file, may end in .gz, or a generator such as gen:poisson2d:512x512
    pub(crate) matrix: String,
    /// The right-hand side: a Matrix Market file of one column, `ones`, or `random:SEED`
    #[arg(long, default_value = "ones", value_name = "FILE|ones|random:SEED")]
    pub(crate) rhs: String,
    /// Where to start from: a Matrix Market file of one column [default: 0]
    #[arg(long, value_name = "FILE")]
    pub(crate) x0: Option<String>,
    /// The method; `auto` goes by the structure of the matrix and says why
    #[arg(long, default_value = "auto", value_parser = names(METHODS.iter().map(|m| m.name)), hide_possible_values = true)]
    pub(crate) method: String,
    /// The preconditioner; `auto` is jacobi where the diagonal has no zero and is not constant
    #[arg(long, default_value = "auto", value_parser = names(PRECONDITIONERS.iter().map(|p| p.name)))]
    pub(crate) precond: String,
    /// The backend [default: the best one that is built in]
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// The device: its place in the list of `lacuna devices`, a part of its name, or auto; opencl also takes gpu and cpu
    #[arg(long, value_name = "INDEX|NAME|auto")]
    pub(crate) device: Option<String>,
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
    /// Converged where |b - A x| <= max(rtol |b|, atol) [default: 1e-8; 1e-5 for f32 and c32]
    #[arg(long, value_parser = tolerance, allow_hyphen_values = true, value_name = "NUMBER")]
    pub(crate) rtol: Option<f64>,
    /// The absolute tolerance of the same test
    #[arg(long, default_value = "0", value_parser = tolerance, allow_hyphen_values = true, value_name = "NUMBER")]
    pub(crate) atol: f64,
    /// Iterations at the most [default: 10 n, at least 1000, at most 100000]
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_iters: Option<u64>,
    /// Iterations of a GMRES cycle [default: 30]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) restart: Option<u32>,
    /// Threads [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Write the solution to a Matrix Market file
    #[arg(long, value_name = "X.mtx")]
    pub(crate) output: Option<String>,
    /// Write the outcome as JSON to a file, or to standard output for `-`
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<String>,
    /// Plot the residual over the iterations
    #[arg(long, value_name = "FILE.svg|FILE.png")]
    pub(crate) plot: Option<String>,
    /// No summary and no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Matrix Market files or generators [default: gen:poisson-p1 with 225 to 261121 unknowns]
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
    /// The preconditioner of every solve
    #[arg(long, default_value = "none", value_parser = PossibleValuesParser::new(PRECONDITIONERS.iter().map(|p| p.name)))]
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
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
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
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) rounds: u16,
    /// Begin nothing more after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = tolerance)]
    pub(crate) time_limit: Option<f64>,
    /// Threads of the CPU [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Append the results as lines of JSON to a file, as they come
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<String>,
    /// Write a page with plots and tables, which needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<String>,
    /// Results of other libraries to show beside ours, as bench/peers/run.sh keeps them
    #[arg(long, value_name = "FILE")]
    pub(crate) peers: Option<String>,
    /// No text and no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// What to measure [default: passes, spmv and solvers]
    #[arg(value_enum)]
    pub(crate) suites: Vec<Suite>,
    /// Number types of passes, products and solvers
    #[arg(long, value_delimiter = ',', value_enum, value_name = "TYPE,...", default_value = "f64")]
    pub(crate) types: Vec<NumberType>,
    /// Small sizes alone, for a quick look
    #[arg(long)]
    pub(crate) small: bool,
    /// Hold what is measured against results kept earlier; exit code 1 where something is slower beyond the noise
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<String>,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
}

/// A part of the project's own measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// Fused passes, far out of cache and in it, beside loops written by hand
    Passes,
    /// Products in every format
    Spmv,
    /// 30 iterations of every method, from small systems to large
    Solvers,
    /// The tables and figures of five papers, at today's sizes
    Papers,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Results kept with --json, of one run or several, and of peers
    #[arg(required = true)]
    pub(crate) files: Vec<String>,
    /// Write a page with plots and tables, which needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<String>,
    /// Write tables as Markdown to a file, or to standard output for `-` [default: -, unless --html is given]
    #[arg(long, value_name = "FILE|-")]
    pub(crate) markdown: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// A Matrix Market file, may end in .gz, or a generator such as gen:poisson2d:512x512
    pub(crate) matrix: String,
    /// Every storage format with what it would take, how long a product is measured to take on the default backend (or was),
    /// and why not; every order of the rows with what it does
    #[arg(long)]
    pub(crate) why: bool,
    /// Write the facts as JSON to a file, or to standard output for `-`
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<String>,
    /// Plot where the entries are
    #[arg(long, value_name = "FILE.svg|FILE.png")]
    pub(crate) plot: Option<String>,
    /// Threads [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// No text and no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SpmvArgs {
    /// A Matrix Market file, may end in .gz, or a generator such as gen:poisson2d:512x512
    pub(crate) matrix: String,
    /// Formats by name, separated by commas, `all` that take the matrix, or `tune` for the plausible ones, whose times are
    /// remembered
    #[arg(long, default_value = "all", value_delimiter = ',', value_name = "all|tune|NAME,...")]
    pub(crate) format: Vec<String>,
    /// The order of rows and columns; `auto` takes another than the one given where that promises much
    #[arg(long, default_value = "none", value_parser = orders())]
    pub(crate) reorder: String,
    /// The backend [default: the best one that is built in]
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// The device: its place in the list of `lacuna devices`, a part of its name, or auto; opencl also takes gpu and cpu
    #[arg(long, value_name = "INDEX|NAME|auto")]
    pub(crate) device: Option<String>,
    /// The number type [default: f64, or c64 where the matrix is complex]
    #[arg(long = "type", value_enum)]
    pub(crate) number: Option<NumberType>,
    /// Rounds in which every format is timed once; the median counts
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) rounds: u16,
    /// Write the figures as JSON to a file, or to standard output for `-`
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<String>,
    /// Plot the speed of each format
    #[arg(long, value_name = "FILE.svg|FILE.png")]
    pub(crate) plot: Option<String>,
    /// Threads of the CPU [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// No text and no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
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
    /// List the generators
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DevicesArgs {
    /// Threads of the CPU [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Leave out the measurement of the memory bandwidth
    #[arg(long)]
    pub(crate) no_measure: bool,
}

/// A number type by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NumberType {
    F64,
    F32,
    C64,
    C32,
}

impl NumberType {
    pub(crate) fn kind(self) -> Kind {
        match self {
            NumberType::F64 => Kind::F64,
            NumberType::F32 => Kind::F32,
            NumberType::C64 => Kind::C64,
            NumberType::C32 => Kind::C32,
        }
    }
}

/// `auto` and the names.
fn names(names: impl Iterator<Item = &'static str>) -> PossibleValuesParser {
    PossibleValuesParser::new(std::iter::once("auto").chain(names))
}

/// The orders of rows.
fn orders() -> PossibleValuesParser {
    PossibleValuesParser::new(["none", "auto"].into_iter().chain(ORDERS.iter().map(|o| o.name)))
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value >= 0.0 && value.is_finite() => Ok(value),
        _ => Err("expected a finite number not below 0".into()),
    }
}

/// Parses the command line; prints help or what is wrong with it, and exits, where that is what there is to do.
pub(crate) fn parse() -> Command {
    let command = Cli::command()
        .mut_subcommand("solve", |c| c.after_help(lists()))
        .mut_subcommand("compare", |c| c.after_help(lists()))
        .mut_subcommand("spmv", |c| c.after_help(formats() + &generators()))
        .mut_subcommand("info", |c| c.after_help(generators()))
        .mut_subcommand("generate", |c| c.after_help(generators()));
    let matches = command.get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).command
}

/// Columns of the lists below.
const WIDTH: usize = 92;

/// What `--method`, `--precond` and the rest may be, and what the exit codes mean.
fn lists() -> String {
    let built_in = BACKENDS.iter().filter(|b| b.built_in);
    list("Methods", &mut METHODS.iter().map(|m| (m.name, m.about)))
        + &list("Preconditioners", &mut PRECONDITIONERS.iter().map(|p| (p.name, p.about)))
        + &formats()
        + &list("Backends", &mut built_in.map(|b| (b.name, b.about)))
        + &generators()
        + "\nExit codes: 0 converged, 1 not converged, 2 bad input or usage, 3 device failure."
}

/// Names with what each is.
fn list(heading: &str, items: &mut dyn Iterator<Item = (&str, &str)>) -> String {
    let lines: String = items.map(|(name, about)| entry(&format!("  {name:20}"), about)).collect();
    format!("{heading}:\n{lines}\n")
}

fn formats() -> String {
    list("Formats", &mut FORMATS.iter().map(|f| (f.name, f.description)))
        + &list("Orders", &mut ORDERS.iter().map(|o| (o.name, o.description)))
}

/// The generators with their arguments.
pub(crate) fn generators() -> String {
    let lines = Spec::list().iter().map(|g| {
        let call = format!("  gen:{}:{}", g.name, g.arguments);
        format!("{call:38}  for example {}\n{}", g.example, entry("     ", g.description))
    });
    format!("Generators:\n{}", lines.collect::<String>())
}

/// A line, or more where it would be too long, that begins like `start` and goes on below what comes after it.
fn entry(start: &str, about: &str) -> String {
    let indent = start.chars().count();
    let (mut text, mut column) = (start.to_string(), indent);
    for word in about.split(' ') {
        let length = word.chars().count() + 1;
        if column + length > WIDTH && column > indent {
            text += &format!("\n{:indent$}", "");
            column = indent;
        }
        text += &format!(" {word}");
        column += length;
    }
    text + "\n"
}
