//! How a hierarchy is made: parameters, their names, and what they may be.
use super::{Aggregation, MOST_UNKNOWNS, OPERATION};
use crate::named::{Bounds, OptionInfo, Settings};
use crate::precond::multigrid::{COARSEST, SWEEPS, Smoothing};
use lacuna_engine::{Error, Result};
use lacuna_formats::FORMATS;

/// Where couplings begin to be strong if that is left open and there are no rigid-body modes.
const THETA: f64 = 0.08;
const THETAS: Bounds<f64> = Bounds { expected: "a number from 0 to 1", least: 0.0, most: 1.0 };
const DAMPINGS: Bounds<f64> = Bounds { expected: "a number from 0 to 2", least: 0.0, most: 2.0 };
const COMPLEXITIES: Bounds<f64> =
    Bounds { expected: "a number not below 1", least: 1.0, most: f64::INFINITY };

/// How a hierarchy is made.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct AmgOptions {
    /// Couplings `|a_ij| / √|a_ii a_jj|` above it are strong on the finest level, above half of it on the next, and so on. Where
    /// most rows have none so strong, those above half the median of the strongest of each row are. If `None`, 0.08, or 0 with
    /// [`rigid_body_modes`](super::Amg::rigid_body_modes).
    pub theta: Option<f64>,
    /// How rows are put together. If `None`, greedily for a Hermitian matrix, by MIS-2 for others.
    pub aggregation: Option<Aggregation>,
    /// Unknowns per node, 1 to 8: the blocks of a node decide which couplings are strong, and an aggregate has a coarse unknown
    /// for each. If `None`, detected from the pattern; 1 treats every row separately.
    pub block: Option<usize>,
    /// `ω` in units of `1/ρ(D⁻¹A)` when the prolongator is smoothed, 0 to 2.
    pub damping: f64,
    /// The smoother; SPAI(0) where the matrix is not Hermitian.
    pub smoothing: Smoothing,
    /// Steps of smoothing before and after, 1 to 8.
    pub sweeps: usize,
    /// A matrix of at most this many rows is inverted, 1 to 4096.
    pub coarsest: usize,
    /// No level is made that brings the entries of all levels above so many times those of the matrix; from 1 on.
    pub complexity: f64,
    /// The format of matrices on the coarser levels and between levels. If `None`, blocks of the unknowns of a node, `csr` where
    /// there is one.
    pub format: Option<&'static str>,
    /// Whether the cycle runs in [`Scalar::Narrow`](lacuna_engine::Scalar::Narrow), with half the bytes. The method around it
    /// keeps its type; it has to bear a preconditioner that is Hermitian to single precision only, as `classical-cg` and
    /// `flexible-cg` do and `cg` does not.
    pub narrow: bool,
}

lacuna_engine::setters!(AmgOptions {
    theta: impl Into<Option<f64>>,
    aggregation: impl Into<Option<Aggregation>>,
    block: impl Into<Option<usize>>,
    damping: f64,
    smoothing: Smoothing,
    sweeps: usize,
    coarsest: usize,
    complexity: f64,
    format: impl Into<Option<&'static str>>,
    narrow: bool,
});

impl Default for AmgOptions {
    fn default() -> Self {
        AmgOptions {
            theta: None,
            aggregation: None,
            block: None,
            damping: 4.0 / 3.0,
            smoothing: Smoothing::Spai0,
            sweeps: 1,
            coarsest: 512,
            complexity: 3.0,
            format: None,
            narrow: false,
        }
    }
}

impl AmgOptions {
    pub(super) const KEYS: &'static [OptionInfo] = &[
        OptionInfo { key: "theta", default: "0.08", about: "couplings above it are strong, 0 to 1" },
        OptionInfo {
            key: "aggregate",
            default: "auto",
            about: "greedy, or mis2; auto: greedy for Hermitian matrices",
        },
        OptionInfo { key: "block", default: "auto", about: "unknowns of a node, 1 to 8" },
        OptionInfo { key: "smoother", default: "spai0", about: "spai0 or chebyshev" },
        OptionInfo { key: "sweeps", default: "1", about: "steps of smoothing before and after, 1 to 8" },
        OptionInfo { key: "coarsest", default: "512", about: "rows that are inverted, 1 to 4096" },
        OptionInfo { key: "complexity", default: "3", about: "the most that entries grow by, from 1 on" },
        OptionInfo { key: "damping", default: "1.3333333333333333", about: "of the prolongator, 0 to 2" },
        OptionInfo { key: "format", default: "auto", about: "of the level matrices" },
        OptionInfo {
            key: "precision",
            default: "full",
            about: "of the cycle: full, or single with half the bytes",
        },
    ];

    /// Where couplings begin to be strong on the finest level.
    pub(super) fn threshold(&self) -> f64 {
        self.theta.unwrap_or(THETA)
    }

    /// As given with a name.
    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        let default = AmgOptions::default();
        let aggregation =
            [("auto", None), ("mis2", Some(Aggregation::Mis2)), ("greedy", Some(Aggregation::Greedy))];
        let smoothing = [("spai0", Smoothing::Spai0), ("chebyshev", Smoothing::Chebyshev)];
        let formats: Vec<_> = FORMATS.iter().map(|format| (format.name, Some(format.name))).collect();
        Ok(AmgOptions {
            theta: settings.given("theta").map(|_| settings.within("theta", &THETAS)).transpose()?,
            block: match settings.given("block") {
                None | Some("auto") => None,
                Some(_) => {
                    let expected = "`auto` or a whole number from 1 to 8";
                    Some(settings.number("block", expected, |b| (1..=MOST_UNKNOWNS).contains(b))?)
                }
            },
            aggregation: settings.choice("aggregate", &aggregation)?.unwrap_or(default.aggregation),
            damping: settings.within("damping", &DAMPINGS)?,
            smoothing: settings.choice("smoother", &smoothing)?.unwrap_or(default.smoothing),
            sweeps: settings.within("sweeps", &SWEEPS)?,
            coarsest: settings.within("coarsest", &COARSEST)?,
            complexity: settings.within("complexity", &COMPLEXITIES)?,
            format: match settings.given("format") {
                None | Some("auto") => None,
                Some(_) => settings.choice("format", &formats)?.flatten(),
            },
            narrow: settings
                .choice("precision", &[("single", true), ("full", false)])?
                .unwrap_or(default.narrow),
        })
    }

    /// Fails for a number out of its range, or a format that does not exist. The unknowns of a node are compared with the matrix.
    pub(super) fn check(&self) -> Result<()> {
        THETAS.check(OPERATION, "theta", self.threshold())?;
        DAMPINGS.check(OPERATION, "damping", self.damping)?;
        SWEEPS.check(OPERATION, "sweeps", self.sweeps)?;
        COARSEST.check(OPERATION, "coarsest", self.coarsest)?;
        COMPLEXITIES.check(OPERATION, "complexity", self.complexity)?;
        match self.format.filter(|name| FORMATS.iter().all(|format| format.name != *name)) {
            None => Ok(()),
            Some(name) => {
                let names: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
                let message = format!("format: expected one of {}, got `{name}`", names.join(", "));
                Err(Error::Argument { what: OPERATION.into(), message })
            }
        }
    }

    /// `amg` with the options that differ from the defaults.
    pub(super) fn name(&self) -> String {
        let usual = AmgOptions::default();
        let mut said = Vec::new();
        let mut say = |differs: bool, option: String| said.extend(differs.then_some(option));
        say(self.theta.is_some(), format!("theta={}", self.threshold()));
        say(self.aggregation == Some(Aggregation::Mis2), "aggregate=mis2".into());
        say(self.aggregation == Some(Aggregation::Greedy), "aggregate=greedy".into());
        say(self.block.is_some(), format!("block={}", self.block.unwrap_or_default()));
        say(self.smoothing != usual.smoothing, "smoother=chebyshev".into());
        say(self.narrow, "precision=single".into());
        say(self.sweeps != usual.sweeps, format!("sweeps={}", self.sweeps));
        say(self.coarsest != usual.coarsest, format!("coarsest={}", self.coarsest));
        say(self.damping != usual.damping, format!("damping={}", self.damping));
        say(self.complexity != usual.complexity, format!("complexity={}", self.complexity));
        say(self.format.is_some(), format!("format={}", self.format.unwrap_or_default()));
        if said.is_empty() { "amg".into() } else { format!("amg:{}", said.join(",")) }
    }
}
