//! Arguments of `lacuna papers`.
use clap::{Args, ValueEnum};
use lacuna_measure::args::MeasuringArgs;

#[derive(Debug, Args)]
pub(crate) struct PapersArgs {
    /// The papers, by their first author [default: all]
    #[arg(value_enum)]
    pub(crate) papers: Vec<Name>,
    /// Only small sizes, in seconds
    #[arg(long)]
    pub(crate) small: bool,
    /// Write the figures to this folder, as SVG
    #[arg(long, value_name = "FOLDER")]
    pub(crate) figures: Option<String>,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
}

/// A paper by its first author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    /// Jost, Contassot-Vivier and Vialle 2009: an efficient multi-algorithms sparse linear solver for GPUs
    Jost,
    /// Wang, Klie, Parashar and Sudan 2009: solving sparse linear systems on NVIDIA Tesla GPUs
    Wang,
    /// Buatois, Caumon and Lévy 2009: Concurrent Number Cruncher
    Buatois,
    /// Rupp, Weinbub, Jüngel and Grasser 2016: pipelined iterative solvers with kernel fusion
    Rupp,
    /// Bell and Garland 2008: efficient sparse matrix-vector multiplication on CUDA
    Bell,
}
