//! Algebraic multigrid by smoothed aggregation.
mod aggregates;
mod filtered;
mod hierarchy;
mod mis;
mod modes;
mod prolongator;
mod radius;
mod rows;
mod spectrum;
mod strength;

pub use aggregates::Aggregation;
pub(super) use spectrum::{Spectrum, spectrum};

use super::adjoint;
use super::multigrid::{Smoothing, VCycle};
use crate::named::{OptionInfo, Settings};
use crate::{Handles, Parts, PrecondInfo, Preconditioner};
use hierarchy::{Coarsest, Hierarchy, NearNull};
use lacuna_engine::{Complex64, Error, Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::{BLOCK_SIZES, Csr, FORMATS, Structure, convert};
use modes::{Modes, rigid_body};
use std::any::Any;
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

const OPERATION: &str = "preconditioner `amg`";
/// Unknowns of a node at the most.
const MOST_UNKNOWNS: usize = 8;

/// How a hierarchy is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AmgOptions {
    /// Couplings `|a_ij| / √|a_ii a_jj|` above it are strong on the finest level, above half of it on the next, and so on. Where
    /// most rows have none so strong, those above half the median of the strongest of each row are.
    pub theta: f64,
    /// How rows are put together; greedily for a Hermitian matrix, by MIS-2 for others, where not given.
    pub aggregation: Option<Aggregation>,
    /// Unknowns of a node, which are put together: their blocks decide which couplings are strong, and an aggregate has a coarse
    /// unknown for each. Those that the entries of the matrix lie in (2 to 8) where not given; 1 takes each row for itself.
    pub block: Option<usize>,
    /// `ω` in units of `1/ρ(D⁻¹A)` when the prolongator is smoothed.
    pub damping: f64,
    /// The smoother; SPAI(0) where the matrix is not Hermitian.
    pub smoothing: Smoothing,
    /// Steps of smoothing before and after.
    pub sweeps: usize,
    /// A matrix of no more rows is inverted.
    pub coarsest: usize,
    /// No level is made that brings the entries of all levels above so many times those of the matrix.
    pub complexity: f64,
    /// The format of matrices on the coarser levels and between levels; blocks of the unknowns of a node where not given, `csr`
    /// where there is one.
    pub format: Option<&'static str>,
    /// Whether the cycle runs in [`Scalar::Narrow`], with half the bytes. The method around it keeps its type; it has to bear a
    /// preconditioner that is Hermitian to single precision only, as `classical-cg` and `flexible-cg` do and `cg` does not.
    pub narrow: bool,
}

impl Default for AmgOptions {
    fn default() -> Self {
        AmgOptions {
            theta: 0.08,
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

/// `M` = a V-cycle over levels made by smoothed aggregation.
///
/// * Needs: a diagonal without zeros. For Hermitian positive definite matrices `M` is so too, whatever the aggregates. For
///   others `R = Pᴴ` all the same, which holds up to strong convection.
/// * Adjoint: smoothing is the same before and after the correction, so for a Hermitian matrix `M` is its own adjoint up to
///   rounding, at no storage. There is none for other matrices, nor in single precision.
/// * Cost of an application: two products with `A` and one each with `R` and `P` on every level, whose entries are 1.4 to 1.7
///   times those of the matrix on grids. Storage: these matrices, and 4 vectors on each level.
/// * Set-up: on all threads but for greedy aggregates, with the same bits on any number of them. New values on the same pattern keep the aggregates and
///   the patterns of all products.
/// * Reference: Vaněk, Mandel and Brezina 1996, doi:10.1007/BF02238511; aggregates by Bell, Dalton and Olson 2012,
///   doi:10.1137/110838844; SPAI(0) by Bröker and Grote 2002, doi:10.1016/S0168-9274(01)00110-6.
#[derive(Default)]
pub struct Amg {
    options: AmgOptions,
    /// Vectors that the matrix takes nearly to 0, and the unknowns of a node where there are several.
    near_null: Option<(Option<usize>, Vec<Vec<Complex64>>)>,
    /// A [`Hierarchy`] of the number type of the matrix.
    hierarchy: Option<Box<dyn Any + Send>>,
    /// What the recorded operations depend on.
    cycle: VCycle,
    /// Whether the cycle of the last set-up is Hermitian.
    hermitian: bool,
    /// Whether the cycle was recorded as its own adjoint; new values must then be Hermitian too.
    is_own_adjoint: Cell<bool>,
}

impl Amg {
    /// The name it goes by.
    pub const NAME: &str = "amg";
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: Self::NAME,
        about: "algebraic multigrid by smoothed aggregation; for elliptic problems",
        options: &[
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
        ],
        needs_diagonal: true,
        needs_hermitian: false,
        needs_stencil: false,
    };

    /// With options of one's own.
    pub fn new(options: AmgOptions) -> Self {
        Amg { options, ..Amg::default() }
    }

    /// A vector that the matrix takes nearly to 0, in place of the constant: one number a row, none of them 0. Where a matrix is
    /// scaled as `S A S`, it is `S⁻¹` times that of `A`.
    pub fn near_null<T: Scalar>(mut self, vector: &[T]) -> Self {
        self.near_null = Some((None, vec![wide(vector)]));
        self
    }

    /// Several vectors that the matrix takes nearly to 0, of a system with `block` unknowns a node (1 to 8) that stand one after the
    /// other. A coarse node has as many unknowns as there are vectors.
    pub fn near_null_space<T: Scalar>(mut self, block: usize, vectors: &[Vec<T>]) -> Self {
        self.near_null = Some((Some(block), vectors.iter().map(|v| wide(v)).collect()));
        self
    }

    /// The rigid-body modes of an elastic body in `D` = 2 or 3 dimensions, from the coordinates of its nodes: 3 or 6 near-null
    /// vectors. Unless asked otherwise all couplings count as strong (`theta` 0), which keeps the coarse matrices small. The displacements of a node are `D` rows of the matrix that follow each other, nodes in the order of the points.
    ///
    /// ```
    /// use lacuna_formats::Spec;
    /// use lacuna_solvers::{Amg, Preconditioner};
    ///
    /// let a = Spec::parse("gen:elasticity3d:6")?.build::<f64>()?;
    /// // Nodes of a cube, whose face x = 0 is held: 6 by 7 by 7 are free.
    /// let node = |k: usize| [k % 6 + 1, k / 6 % 7, k / 42].map(|c| c as f64 / 6.0);
    /// let points: Vec<[f64; 3]> = (0..a.rows() / 3).map(node).collect();
    /// let mut amg = Amg::default().rigid_body_modes(&points);
    /// amg.set_up(&a)?;
    /// # Ok::<(), lacuna_engine::Error>(())
    /// ```
    pub fn rigid_body_modes<const D: usize>(mut self, points: &[[f64; D]]) -> Self {
        if self.options.theta == AmgOptions::default().theta {
            self.options.theta = 0.0;
        }
        self.near_null_space(D, &rigid_body(points))
    }

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        let default = AmgOptions::default();
        let aggregation =
            [("auto", None), ("mis2", Some(Aggregation::Mis2)), ("greedy", Some(Aggregation::Greedy))];
        let smoothing = [("spai0", Smoothing::Spai0), ("chebyshev", Smoothing::Chebyshev)];
        let formats = FORMATS.map(|format| (format.name, Some(format.name)));
        Ok(Amg::new(AmgOptions {
            theta: settings.number("theta", "a number from 0 to 1", |t| (0.0..=1.0).contains(t))?,
            block: match settings.given("block") {
                None | Some("auto") => None,
                Some(_) => {
                    let expected = "`auto` or a whole number from 1 to 8";
                    Some(settings.number("block", expected, |b| (1..=MOST_UNKNOWNS).contains(b))?)
                }
            },
            aggregation: settings.choice("aggregate", &aggregation)?.unwrap_or(default.aggregation),
            damping: settings.number("damping", "a number from 0 to 2", |d| (0.0..=2.0).contains(d))?,
            smoothing: settings.choice("smoother", &smoothing)?.unwrap_or(default.smoothing),
            sweeps: settings.number("sweeps", "a whole number from 1 to 8", |s| (1..=8).contains(s))?,
            coarsest: settings
                .number("coarsest", "a whole number from 1 to 4096", |c| (1..=4096).contains(c))?,
            complexity: settings.number("complexity", "a number not below 1", |c| *c >= 1.0)?,
            format: match settings.given("format") {
                None | Some("auto") => None,
                Some(_) => settings.choice("format", &formats)?.flatten(),
            },
            narrow: settings
                .choice("precision", &[("single", true), ("full", false)])?
                .unwrap_or(default.narrow),
        }))
    }

    /// What a matrix takes nearly to 0.
    fn near_null_for<T: Scalar>(&self, a: &Csr<T>) -> Result<NearNull<T>> {
        let Some((block, vectors)) = &self.near_null else {
            let natural = || Structure::of(a).block_size().filter(|block| *block <= MOST_UNKNOWNS);
            let block = self.options.block.or_else(natural).unwrap_or(1);
            if block == 1 {
                return Ok(NearNull::Vector(None));
            }
            self.check_block(a, block)?;
            return Ok(NearNull::Modes(Modes::translations(a.rows(), block)));
        };
        for vector in vectors {
            Error::check_length(OPERATION, "the near-null vector", a.rows(), vector.len())?;
        }
        let narrowed = |v: &Vec<Complex64>| v.iter().map(|v| T::from_parts(v.re, v.im)).collect();
        let mut vectors: Vec<Vec<T>> = vectors.iter().map(narrowed).collect();
        Ok(match (block, vectors.len()) {
            (None, _) => NearNull::Vector(vectors.pop()),
            (Some(_), 0) => {
                let message = "expected at least one near-null vector, got none".into();
                return Err(Error::Argument { what: OPERATION.into(), message });
            }
            (Some(block), _) => {
                self.check_block(a, *block)?;
                NearNull::Modes(Modes::new(*block, &vectors))
            }
        })
    }

    fn check_block<T: Scalar>(&self, a: &Csr<T>, block: usize) -> Result<()> {
        if (1..=MOST_UNKNOWNS).contains(&block) && a.rows().is_multiple_of(block) {
            return Ok(());
        }
        let message = format!(
            "expected 1 to {MOST_UNKNOWNS} unknowns a node that divide {} rows, got {block}",
            a.rows()
        );
        Err(Error::Argument { what: OPERATION.into(), message })
    }

    /// Whether the cycle over a hierarchy is Hermitian to the precision of the number type.
    fn is_hermitian_over<T: Scalar>(&self, made: &Hierarchy<T>) -> bool {
        made.hermitian && !(self.options.narrow && T::HAS_NARROW)
    }

    /// Fails if the recorded operations do not suit the values: they are of another cycle, or take `M` for its own adjoint.
    fn check_recorded(&self, is_same: bool) -> Result<()> {
        if is_same && (self.hermitian || !self.is_own_adjoint.get()) {
            return Ok(());
        }
        let message = "they are not Hermitian, but those of the set-up were; prepare the system again".into();
        Err(Error::Structure { operation: "new values of preconditioner `amg`".into(), message })
    }

    /// What a hierarchy needs on a device, and the cycle over it.
    fn parts<T: Scalar>(&self, a: &Csr<T>, made: &Hierarchy<T>) -> Result<(VCycle, Parts<T>)> {
        let narrow = self.options.narrow && T::HAS_NARROW;
        let rounded = |m: &Arc<Csr<T>>| narrow.then(|| convert(m, "packed-f32").ok()).flatten();
        let (mut cycle, mut parts) = match narrow {
            true => VCycle::narrow(Parts::new(), rounded(&Arc::new(a.clone()))),
            false => (VCycle::default(), Parts::new()),
        };
        let depth = made.levels.len();
        for (k, level) in made.levels.iter().enumerate() {
            let stored = |m: &Arc<Csr<T>>, shape| match (self.options.format, rounded(m)) {
                (None, Some(rounded)) => Ok(rounded),
                (format, _) => convert(m, format.unwrap_or(blocks(shape))),
            };
            let [fine, below] = level.blocks;
            let is_stored = k + 1 < depth || matches!(made.coarsest, Coarsest::Smoothed(_));
            let coarse = is_stored.then(|| stored(&level.coarse, [below; 2])).transpose()?;
            let between = [stored(&level.r, [below, fine])?, stored(&level.p, [fine, below])?];
            parts = cycle.level(parts, level.smoother.clone(), between, coarse);
        }
        parts = match &made.coarsest {
            Coarsest::Inverse(inverse) => cycle.solved(parts, convert(inverse, "dense")?),
            Coarsest::Smoothed(smoother) => {
                let rows = made.levels.last().map_or(a.rows(), |level| level.coarse.rows());
                cycle.smoothed(parts, rows, smoother.clone())
            }
        };
        Ok((cycle, made.report(a).into_iter().fold(parts, |parts, (what, value)| parts.report(what, value))))
    }
}

impl<T: Scalar> Preconditioner<T> for Amg {
    fn name(&self) -> Cow<'static, str> {
        let (own, usual) = (self.options, AmgOptions::default());
        let mut said = Vec::new();
        if own.theta != usual.theta {
            said.push(format!("theta={}", own.theta));
        }
        match own.aggregation {
            None => {}
            Some(Aggregation::Mis2) => said.push("aggregate=mis2".into()),
            Some(Aggregation::Greedy) => said.push("aggregate=greedy".into()),
        }
        if let Some(block) = own.block {
            said.push(format!("block={block}"));
        }
        if own.smoothing != usual.smoothing {
            said.push("smoother=chebyshev".into());
        }
        if own.narrow != usual.narrow {
            said.push("precision=single".into());
        }
        if own.sweeps != usual.sweeps {
            said.push(format!("sweeps={}", own.sweeps));
        }
        if own.coarsest != usual.coarsest {
            said.push(format!("coarsest={}", own.coarsest));
        }
        if said.is_empty() { "amg".into() } else { format!("amg:{}", said.join(",")).into() }
    }
    fn set_up(&mut self, a: &Csr<T>) -> Result<Parts<T>> {
        let made = Hierarchy::new(&self.options, a, self.near_null_for(a)?)?;
        let (cycle, parts) = self.parts(a, &made)?;
        self.hermitian = self.is_hermitian_over(&made);
        self.check_recorded(true)?;
        self.cycle = cycle;
        self.hierarchy = Some(Box::new(made));
        Ok(parts)
    }
    fn update(&mut self, a: &Csr<T>) -> Result<Parts<T>> {
        let near_null = self.near_null_for(a)?;
        let kept = self.hierarchy.take().and_then(|any| any.downcast::<Hierarchy<T>>().ok());
        let Some(mut made) = kept else { return self.set_up(a) };
        made.update(&self.options, a, near_null)?;
        let (cycle, parts) = self.parts(a, &made)?;
        self.hermitian = self.is_hermitian_over(&made);
        self.hierarchy = Some(made);
        self.check_recorded(cycle == self.cycle)?;
        Ok(parts)
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        self.cycle.record(k, on, [r, z], self.options.sweeps, then);
    }
    fn knows_adjoint(&self) -> bool {
        self.hermitian
    }
    fn apply_adjoint(
        &self,
        k: &mut Recorder<'_, T>,
        on: &Handles<T>,
        r: Vector<T>,
        z: Vector<T>,
        then: Pass<T>,
    ) {
        if self.hermitian {
            self.is_own_adjoint.set(true);
            return self.apply(k, on, r, z, then);
        }
        let message = "its cycle is its own adjoint for a Hermitian matrix in full precision, and there is none \
                       otherwise; `ilut:adjoint=yes` keeps one for any matrix";
        adjoint::refuse(k, &Preconditioner::<T>::name(self), message);
    }
}

/// The format for blocks of this shape.
fn blocks([rows, cols]: [usize; 2]) -> &'static str {
    let named =
        |format: &&lacuna_formats::FormatInfo| format.name.strip_prefix("bcsr") == Some(&rows.to_string());
    let format = FORMATS.iter().find(named).filter(|_| rows == cols && BLOCK_SIZES.contains(&rows));
    format.map_or("csr", |format| format.name)
}

fn wide<T: Scalar>(vector: &[T]) -> Vec<Complex64> {
    vector.iter().map(|v| Complex64::new(v.re(), v.im())).collect()
}
