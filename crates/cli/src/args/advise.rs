//! What `lacuna advise` takes.
use super::shared::{NumberType, PlaceArgs, TellingArgs, tolerance};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct AdviseArgs {
    /// A matrix: a file of any form, `-` for standard input, or a generator such as gen:poisson2d:512x512
    pub(crate) matrix: String,
    /// The right-hand side: a file of one column, `-`, `ones`, or `random:SEED` [default: that beside the matrix, else ones]
    #[arg(long, value_name = "FILE|-|ones|random:SEED")]
    pub(crate) rhs: Option<String>,
    /// Seconds that each way gets for its iterations; set-ups are not interrupted
    #[arg(long, default_value = "5", value_parser = seconds, value_name = "NUMBER")]
    pub(crate) seconds: f64,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The number type [default: f64, or c64 where the input is complex]
    #[arg(long = "type", value_enum)]
    pub(crate) number: Option<NumberType>,
    /// Solved where |b - A x| <= rtol |b| [default: 1e-8; 1e-5 for f32 and c32]
    #[arg(long, value_parser = tolerance, allow_hyphen_values = true, value_name = "NUMBER")]
    pub(crate) rtol: Option<f64>,
    /// Iterations at the most [default: 10 n, at least 1000, at most 100000]
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_iters: Option<u64>,
    /// Plot the residual of each way over time
    #[arg(long, value_name = "FILE.svg|FILE.png")]
    pub(crate) plot: Option<String>,
    #[command(flatten)]
    pub(crate) telling: TellingArgs,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(seconds),
        _ => Err("expected a number of seconds above 0".into()),
    }
}
