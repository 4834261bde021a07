//! Arguments of `lacuna advise`.
use super::shared::{PLOT, PlaceArgs, ReportArgs, count};
use clap::Args;
use lacuna_measure::args::tolerance;
use lacuna_measure::number::TypeName;

#[derive(Debug, Args)]
pub(crate) struct AdviseArgs {
    /// The matrix: a file in any supported form, `-` for standard input, or a generator such as
    /// gen:poisson2d:512x512
    pub(crate) matrix: String,
    /// The right-hand side: a file with one column, `-`, `ones`, `random:SEED`, or `model`, that of the generator's model
    /// [default: the one stored with the matrix, else ones]
    #[arg(long, value_name = "FILE|-|ones|model|random:SEED")]
    pub(crate) rhs: Option<String>,
    /// Time limit for the iterations of each trial, in seconds; set-ups are not interrupted
    #[arg(long, default_value = "5", value_parser = seconds, allow_negative_numbers = true, value_name = "NUMBER")]
    pub(crate) seconds: f64,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The number type [default: f64, or c64 if the input is complex]
    #[arg(long = "type", value_enum)]
    pub(crate) number: Option<TypeName>,
    /// Relative tolerance: solved if |b - A x| <= max(rtol |b|, atol) [default: 1e-8; 1e-5 for f32 and c32]
    #[arg(long, value_parser = tolerance, allow_hyphen_values = true, value_name = "NUMBER")]
    pub(crate) rtol: Option<f64>,
    /// Absolute tolerance of the same test
    #[arg(long, default_value = "0", value_parser = tolerance, allow_hyphen_values = true, value_name = "NUMBER")]
    pub(crate) atol: f64,
    /// The largest number of iterations [default: 10 n, at least 1000, at most 100000]
    #[arg(long, value_name = "COUNT", value_parser = count, allow_negative_numbers = true)]
    pub(crate) max_iters: Option<u64>,
    /// Plot the residual of each trial over time
    #[arg(long, value_name = PLOT)]
    pub(crate) plot: Option<String>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(seconds),
        _ => Err("expected a number of seconds above 0".into()),
    }
}
