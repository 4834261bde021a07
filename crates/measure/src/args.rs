//! Arguments shared by everything that measures, and how a command line is parsed.
use crate::failure::Result;
use crate::input::STANDARD;
use crate::out;
use clap::builder::TypedValueParser;
use clap::{Args, FromArgMatches, ValueEnum, value_parser};
use lacuna::backend::text::printable;

/// Arguments shared by the commands that measure.
#[derive(Debug, Args)]
pub struct MeasuringArgs {
    /// Backends by name, or `NAME:DEVICE` for one of their devices [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME[:DEVICE],...")]
    pub backends: Vec<String>,
    /// Number of rounds. Each round measures everything once, alternating between the cases; medians are
    /// reported
    #[arg(long, default_value_t = 7, value_parser = rounds(), allow_negative_numbers = true)]
    pub rounds: u16,
    /// Start no further measurement after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = tolerance, allow_negative_numbers = true)]
    pub time_limit: Option<f64>,
    /// Threads of the CPU [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = threads(), allow_negative_numbers = true)]
    pub threads: Option<u16>,
    /// The vector instructions of the CPU: none, to see what they gain [default: the best there are]
    #[arg(long, value_enum, value_name = "none")]
    pub simd: Option<Simd>,
    /// Append the results to a file as they come, one JSON object per line; `-` prints them
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<String>,
    /// Write a self-contained HTML page with plots and tables; `-` for standard output
    #[arg(long, value_name = "FILE|-")]
    pub html: Option<String>,
    /// Show results of other libraries too, from a file written by crates/bench/peers/run.sh; `-` for standard input
    #[arg(long, value_name = "FILE|-")]
    pub peers: Option<String>,
    /// Print no text and no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// What may be said of the vector instructions of the CPU.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Simd {
    None,
}

impl MeasuringArgs {
    /// Rejects outputs that cannot be written, and those that would overwrite one another, a matrix or the results of
    /// other libraries, to which `--json` may append.
    ///
    /// # Errors
    /// [`Failure::Usage`](crate::failure::Failure::Usage).
    pub fn check_outputs(&self, matrices: &[String]) -> Result<()> {
        let [json, html] = [("--json", self.json.as_deref()), ("--html", self.html.as_deref())];
        let mut inputs: Vec<_> = matrices.iter().map(|path| ("a matrix", Some(path.as_str()))).collect();
        out::check_outputs(&[json, html], &inputs)?;
        inputs.push(("--peers", self.peers.as_deref()));
        out::check_outputs(&[html], &inputs)
    }

    /// Whether results go to standard output, so that text goes to standard error.
    pub fn aside(&self) -> bool {
        [&self.json, &self.html].into_iter().any(|path| path.as_deref() == Some(STANDARD))
    }
}

/// Parses a command line. Prints help or an error and exits if that is all there is to do.
pub fn parsed<C: FromArgMatches>(command: clap::Command) -> C {
    let matches = command.try_get_matches().unwrap_or_else(|error| exit(&error));
    C::from_arg_matches(&matches).unwrap_or_else(|error| exit(&error))
}

/// Prints help or an error, with unprintable characters escaped, and exits.
fn exit(error: &clap::Error) -> ! {
    let text = error.render().to_string();
    if printable(&text) == text {
        error.exit();
    }
    out::note(text.trim_end());
    std::process::exit(error.exit_code())
}

/// Parses a tolerance, or another number of at least 0.
pub fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value >= 0.0 && value.is_finite() => Ok(value),
        _ => Err("expected a finite number of at least 0".into()),
    }
}

/// Parses a number of threads.
pub fn threads() -> impl TypedValueParser<Value = u16> {
    value_parser!(u16).range(1..=1024)
}

/// Parses a number of rounds.
pub fn rounds() -> impl TypedValueParser<Value = u16> {
    value_parser!(u16).range(1..=1000)
}
