//! Arguments of `lacuna eigen`.
use super::shared::{PLOT, PlaceArgs, ReportArgs, count, names, preconditioner};
use clap::{Args, ValueEnum};
use lacuna::Complex64;
use lacuna::eigen::{Check, EIGEN_METHODS};
use lacuna_measure::args::tolerance;
use lacuna_measure::number::TypeName;

/// The method for matrices that need not be Hermitian.
pub(crate) const KRYLOV_SCHUR: &str = "krylov-schur";

#[derive(Debug, Args)]
pub(crate) struct EigenArgs {
    /// The matrix, square: a file in any supported form, `-` for standard input, or a generator such as
    /// gen:poisson2d:512x512
    pub(crate) matrix: String,
    /// How many eigenvalues [default: 6, or all where there are fewer]
    #[arg(long, short = 'k', value_parser = at_least_one, allow_negative_numbers = true, value_name = "COUNT")]
    pub(crate) count: Option<usize>,
    /// Which ones: the smallest or largest of a Hermitian matrix; of any matrix those of largest modulus, those of smallest (leftmost)
    /// or largest (rightmost) real part, or those nearest to a number, as near:1.5 or near:1.5-2i [default: smallest of a Hermitian
    /// matrix, modulus of others]
    #[arg(long, value_parser = wanted, value_name = "smallest|largest|modulus|leftmost|rightmost|near:NUMBER")]
    pub(crate) which: Option<Wanted>,
    /// The mass matrix B of A x = lambda B x: Hermitian and positive definite; for lanczos near a number it may have a null space
    #[arg(long, value_name = "FILE")]
    pub(crate) mass: Option<String>,
    /// The method: `lobpcg` for the smallest, or the largest with a mass matrix; `lanczos` for the largest and those near a number;
    /// `dense` for small matrices; `krylov-schur` for matrices that need not be Hermitian
    #[arg(long, default_value = "auto", value_parser = names(EIGEN_METHODS.iter().map(|(name, _)| *name).chain([KRYLOV_SCHUR])))]
    pub(crate) method: String,
    /// The preconditioner of lobpcg, with options; `auto` takes amg for smallest values, see `lacuna help solve` for all
    #[arg(long, default_value = "auto", value_parser = preconditioner, value_name = "NAME[:key=value,...]")]
    pub(crate) precond: String,
    /// How to make sure that no eigenvalue is missing: count them by the signs of the pivots of a shifted matrix, probe with a second
    /// start, or neither; `auto` counts where factors are cheap and probes elsewhere
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) complete: CheckName,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The number type [default: f64, or c64 if a matrix is complex]
    #[arg(long = "type", value_enum)]
    pub(crate) number: Option<TypeName>,
    /// Relative tolerance: a pair has converged if |A x - lambda B x| <= rtol |lambda|, or is at the level of rounding [default: 1e-8;
    /// 1e-4 for f32 and c32]
    #[arg(long, value_parser = tolerance, allow_hyphen_values = true, value_name = "NUMBER")]
    pub(crate) rtol: Option<f64>,
    /// The largest number of iterations of lobpcg, or of products of lanczos and krylov-schur [default: 10000; 100000 of krylov-schur]
    #[arg(long, value_name = "COUNT", value_parser = count, allow_negative_numbers = true)]
    pub(crate) max_iters: Option<u64>,
    /// Another seed of the vectors to begin with, below 1000
    #[arg(long, default_value = "0", value_parser = clap::value_parser!(u32).range(0..1000), value_name = "NUMBER")]
    pub(crate) seed: u32,
    /// Search nothing: check the columns of a file, with their Rayleigh quotients, as the pairs that a search finds: residuals,
    /// orthogonality, and whether a value is missing among them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["count", "seed", "max_iters", "vectors"])]
    pub(crate) verify: Option<String>,
    /// Write the eigenvectors as the columns of a matrix to a file, or to standard output for `-`
    #[arg(long, value_name = "FILE|-")]
    pub(crate) vectors: Option<String>,
    /// Plot the eigenvalues, and the residuals over the iterations
    #[arg(long, value_name = PLOT)]
    pub(crate) plot: Option<String>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// [`Check`] by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CheckName {
    Auto,
    Counted,
    Probed,
    Off,
}

impl CheckName {
    pub(crate) fn check(self) -> Check {
        match self {
            CheckName::Auto => Check::Auto,
            CheckName::Counted => Check::Counted,
            CheckName::Probed => Check::Probed,
            CheckName::Off => Check::Off,
        }
    }
}

pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "expected a whole number from 1 on".into())
}

/// Which eigenvalues.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    Smallest,
    Largest,
    Modulus,
    Leftmost,
    Rightmost,
    Near(Complex64),
}

impl Wanted {
    pub(crate) fn name(self) -> String {
        match self {
            Wanted::Smallest => "smallest".into(),
            Wanted::Largest => "largest".into(),
            Wanted::Modulus => "modulus".into(),
            Wanted::Leftmost => "leftmost".into(),
            Wanted::Rightmost => "rightmost".into(),
            Wanted::Near(sigma) => format!("near:{sigma}"),
        }
    }
}

fn wanted(text: &str) -> Result<Wanted, String> {
    let near = || text.strip_prefix("near:")?.parse().ok().filter(|v: &Complex64| v.is_finite());
    match text {
        "smallest" => Ok(Wanted::Smallest),
        "largest" => Ok(Wanted::Largest),
        "modulus" => Ok(Wanted::Modulus),
        "leftmost" => Ok(Wanted::Leftmost),
        "rightmost" => Ok(Wanted::Rightmost),
        _ => near().map(Wanted::Near).ok_or_else(|| {
            "expected smallest, largest, modulus, leftmost, rightmost or near:NUMBER, as near:2 or near:2-1i".into()
        }),
    }
}
