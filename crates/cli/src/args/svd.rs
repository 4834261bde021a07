//! Arguments of `lacuna svd`.
use super::eigen::{CheckName, at_least_one};
use super::shared::{PlaceArgs, ReportArgs, count};
use clap::{Args, ValueEnum};
use lacuna::eigen::Extreme;
use lacuna_measure::args::tolerance;
use lacuna_measure::number::TypeName;

#[derive(Debug, Args)]
pub(crate) struct SvdArgs {
    /// The matrix, of any shape: a file in any supported form, `-` for standard input, or a generator such as gen:convection:100x100
    pub(crate) matrix: String,
    /// How many singular values [default: 6, or all where there are fewer]
    #[arg(long, short = 'k', value_parser = at_least_one, allow_negative_numbers = true, value_name = "COUNT")]
    pub(crate) count: Option<usize>,
    /// Which ones: the largest of any matrix, or the smallest of a square or a small one
    #[arg(long, value_enum, default_value = "largest")]
    pub(crate) which: ExtremeName,
    /// How to make sure that no singular value is missing: probe with a second start, as `auto` does, or not; there is no count
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) complete: CheckName,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The number type [default: f64, or c64 if the matrix is complex]
    #[arg(long = "type", value_enum)]
    pub(crate) number: Option<TypeName>,
    /// Relative tolerance: a triplet has converged if |A v - sigma u| and |A^H u - sigma v| are at most rtol sigma, or are at the level
    /// of rounding [default: 1e-8; 1e-4 for f32 and c32]
    #[arg(long, value_parser = tolerance, allow_hyphen_values = true, value_name = "NUMBER")]
    pub(crate) rtol: Option<f64>,
    /// The largest number of products
    #[arg(long, default_value = "100000", value_name = "COUNT", value_parser = count, allow_negative_numbers = true)]
    pub(crate) max_iters: u64,
    /// Another seed of the vectors to begin with, below 1000
    #[arg(long, default_value = "0", value_parser = clap::value_parser!(u32).range(0..1000), value_name = "NUMBER")]
    pub(crate) seed: u32,
    /// Write the left vectors as the columns of a matrix to a file, or to standard output for `-`
    #[arg(long, value_name = "FILE|-")]
    pub(crate) left: Option<String>,
    /// Write the right vectors likewise
    #[arg(long, value_name = "FILE|-")]
    pub(crate) right: Option<String>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// [`Extreme`] by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ExtremeName {
    Largest,
    Smallest,
}

impl ExtremeName {
    pub(crate) fn extreme(self) -> Extreme {
        match self {
            ExtremeName::Largest => Extreme::Largest,
            ExtremeName::Smallest => Extreme::Smallest,
        }
    }
    pub(crate) fn name(self) -> &'static str {
        match self {
            ExtremeName::Largest => "largest",
            ExtremeName::Smallest => "smallest",
        }
    }
}
