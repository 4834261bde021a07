//! Arguments shared by several commands.
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, value_parser};
use lacuna::formats::factor::SCALINGS;
use lacuna::formats::{MATCHING, ORDERS};
use lacuna::{Device, DeviceOptions, Norm};
use lacuna_measure::args::{Simd, threads};
use lacuna_measure::failure::Failure;

/// A norm of the residual.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum NormName {
    #[value(name = "2")]
    Two,
    Max,
}

impl From<NormName> for Norm {
    fn from(name: NormName) -> Self {
        match name {
            NormName::Two => Norm::Two,
            NormName::Max => Norm::Max,
        }
    }
}

/// The backend and device to run on.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// The backend [default: the best one that is built in and has a device]
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// The device: its index in the list of `lacuna devices`, a part of its name, or auto; opencl also accepts gpu and cpu,
    /// cuda several that share every system, as in 0,1
    #[arg(long, value_name = "INDEX|NAME|auto", allow_negative_numbers = true)]
    pub(crate) device: Option<String>,
    /// Threads of the CPU [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = threads(), allow_negative_numbers = true)]
    pub(crate) threads: Option<u16>,
    /// The vector instructions of the CPU: none, to see what they gain [default: the best there are]
    #[arg(long, value_enum, value_name = "none")]
    pub(crate) simd: Option<Simd>,
    /// Divide every system among this many ranks, each a thread of the CPU with rows of its own, which send each other what
    /// several devices would: the same bits as one, to try and to test
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) ranks: Option<usize>,
}

impl PlaceArgs {
    /// Opens the device that was asked for, or the default one.
    pub(crate) fn open(&self) -> lacuna::Result<Device> {
        let options = DeviceOptions::default()
            .threads(self.threads.map(usize::from))
            .device(self.device.clone())
            .ranks(self.ranks)
            .scalar(self.simd.is_some());
        match &self.backend {
            None if self.ranks.is_some() => lacuna::open_with("cpu", options),
            Some(backend) => lacuna::open_with(backend, options),
            None if options == DeviceOptions::default() => lacuna::default_device(),
            None => lacuna::open_with(lacuna::default_device()?.info().backend, options),
        }
    }
}

/// The names of plots that this build can write.
pub(super) const PLOT: &str = if cfg!(feature = "png") { "FILE.svg|FILE.png" } else { "FILE.svg" };

/// The form of the output.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Write the results as JSON to a file, or to standard output for `-`
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<String>,
    /// Print no text and no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Accepts `auto` and the given names.
pub(super) fn names(names: impl Iterator<Item = &'static str>) -> PossibleValuesParser {
    PossibleValuesParser::new(std::iter::once("auto").chain(names))
}

/// Parses a method, `NAME:key=value,…`, or `auto` or `tune`.
pub(super) fn method(text: &str) -> Result<String, String> {
    lacuna::check_method(text).map(|()| text.into()).map_err(|error| error.to_string())
}

/// Parses a preconditioner, `NAME:key=value,…`, or `auto`.
pub(super) fn preconditioner(text: &str) -> Result<String, String> {
    lacuna::check_preconditioner(text).map(|()| text.into()).map_err(|error| error.to_string())
}

/// Rejoins names with options that were split at every comma: a piece that is no name continues the one
/// before.
pub(crate) fn joined(pieces: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for piece in pieces {
        let goes_on = piece.contains('=') && !piece.contains(':');
        match names.last_mut().filter(|_| goes_on) {
            Some(last) => *last += &format!(",{piece}"),
            None => names.push(piece.clone()),
        }
    }
    names
}

/// Rejects an option that is given twice: by `--restart`, and in the name of a method.
pub(crate) fn check_restart(method: &str, restart: Option<u32>) -> Result<(), Failure> {
    let options = method.split_once(':').map_or("", |(_, options)| options);
    let named = options.split(',').find(|option| option.split('=').next() == Some("restart"));
    match (named, restart) {
        (Some(named), Some(restart)) => {
            let message =
                format!("--restart {restart}: the method has {named} already, expected only one of them");
            Err(Failure::Usage(message))
        }
        _ => Ok(()),
    }
}

/// Accepts the orders of rows and columns.
pub(super) fn orders() -> PossibleValuesParser {
    PossibleValuesParser::new(["none", "auto"].into_iter().chain(ORDERS.iter().map(|o| o.name)))
}

/// The same, and the order of rows alone that a solve takes.
pub(super) fn orders_of_solve() -> PossibleValuesParser {
    let names = ORDERS.iter().chain([&MATCHING]).map(|o| o.name);
    PossibleValuesParser::new(["none", "auto"].into_iter().chain(names))
}

/// The ways of scaling rows and columns.
pub(super) fn scalings() -> PossibleValuesParser {
    PossibleValuesParser::new(["none"].into_iter().chain(SCALINGS.iter().map(|scaling| scaling.name)))
}

/// Parses a number of iterations, 0 included.
pub(super) fn count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "expected a whole number from 0 to 2^64 - 1".into())
}

/// Parses the number of vectors of a product.
pub(super) fn vectors() -> impl TypedValueParser<Value = u16> {
    value_parser!(u16).range(1..=1000)
}

/// Parses the iterations of a cycle.
pub(super) fn restart() -> impl TypedValueParser<Value = u32> {
    value_parser!(u32).range(1..=1000)
}
