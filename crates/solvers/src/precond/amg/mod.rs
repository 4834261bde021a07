//! Algebraic multigrid by smoothed aggregation.
mod aggregates;
mod filtered;
mod hierarchy;
mod mis;
mod modes;
mod options;
mod prolongator;
mod radius;
mod regular;
mod report;
mod rows;
mod spectrum;
mod stages;
mod strength;
mod there;

pub use aggregates::Aggregation;
pub use options::AmgOptions;
pub(super) use spectrum::{Spectrum, spectrum};

use super::adjoint;
use super::multigrid::VCycle;
use crate::named::Settings;
use crate::{Handles, Parts, PrecondInfo, Preconditioner, Setup};
use hierarchy::{Coarsest, Hierarchy, NearNull};
use lacuna_engine::{Basis, Complex64, Double, Error, Format, Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::{BLOCK_SIZES, Csr, FORMATS, Packed, Structure, convert};
use modes::{Modes, rigid_body};
use std::any::Any;
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

const OPERATION: &str = "preconditioner `amg`";
/// Unknowns of a node at the most.
const MOST_UNKNOWNS: usize = 8;

/// `M` = a V-cycle over levels made by smoothed aggregation.
///
/// * Needs: a diagonal without zeros. For Hermitian positive definite matrices `M` is so too, whatever the aggregates. For
///   others `R = Pᴴ` all the same, which holds up to strong convection.
/// * Adjoint: smoothing is the same before and after the correction, so for a Hermitian matrix `M` is its own adjoint up to
///   rounding, at no storage. There is none for other matrices, nor in single precision.
/// * Cost of an application: on every level two products with `A` (four with `smoother=chebyshev`) for each sweep, and one each
///   with `R` and `P`. The matrices of all levels have 1.4 to 1.7 times the entries of the finest on grids. Storage: these, and
///   three vectors on the finest level, five on each other, two on one that is inverted.
/// * Set-up: on all threads but for greedy aggregates, with the same bits on any number of them. Where a device is faster at it
///   ([`lacuna_engine::Backend::has_fast_sparse_algebra`]), it does all of it, again with the same bits, and keeps the levels: for
///   Hermitian matrices in double precision, one unknown a node and the constant near-null vector, in `csr`, with greedy
///   aggregates and SPAI(0). Of others it finds the coarse matrices and the independent sets of large levels. New values on the
///   same pattern keep the aggregates and, on the host, the patterns of all products.
/// * Reference: Vaněk, Mandel and Brezina 1996, doi:10.1007/BF02238511; aggregates by Bell, Dalton and Olson 2012,
///   doi:10.1137/110838844; SPAI(0) by Bröker and Grote 2002, doi:10.1016/S0168-9274(01)00110-6.
#[derive(Default)]
pub struct Amg {
    options: AmgOptions,
    /// Vectors that the matrix maps nearly to 0, and the unknowns of a node where there are several.
    near_null: Option<(Option<usize>, Vec<Vec<Complex64>>)>,
    /// A [`Hierarchy`] in double precision, or a [`there::Hierarchy`].
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
        options: AmgOptions::KEYS,
        needs_diagonal: true,
        needs_hermitian: false,
        needs_stencil: false,
    };

    /// With options of one's own.
    pub fn new(options: AmgOptions) -> Self {
        Amg { options, ..Amg::default() }
    }

    /// A vector that the matrix maps nearly to 0, in place of the constant: one number a row, none of them 0. Where a matrix is
    /// scaled as `S A S`, it is `S⁻¹` times that of `A`.
    pub fn near_null<T: Scalar>(mut self, vector: &[T]) -> Self {
        self.near_null = Some((None, vec![wide(vector)]));
        self
    }

    /// Several vectors that the matrix maps nearly to 0, of a system with `block` unknowns a node (1 to 8) that stand one after the
    /// other. A coarse node has as many unknowns as there are vectors.
    pub fn near_null_space<T: Scalar>(mut self, block: usize, vectors: &[Vec<T>]) -> Self {
        self.near_null = Some((Some(block), vectors.iter().map(|v| wide(v)).collect()));
        self
    }

    /// The rigid-body modes of an elastic body in `D` = 2 or 3 dimensions, from the coordinates of its nodes: 3 or 6 near-null
    /// vectors. Unless [`AmgOptions::theta`] is given, all couplings count as strong, which keeps the coarse matrices small. The displacements of a node are `D` rows of the matrix that follow each other, nodes in the order of the points.
    ///
    /// ```
    /// use lacuna_io::Spec;
    /// use lacuna_solvers::{Amg, Preconditioner, Setup};
    ///
    /// let a = Spec::parse("gen:elasticity3d:6")?.build::<f64>()?;
    /// // Nodes of a cube, of which the face z = 0 is held: 7 by 7 by 6 are free.
    /// let node = |k: usize| [k % 7, k / 7 % 7, k / 49 + 1].map(|c| c as f64 / 6.0);
    /// let points: Vec<[f64; 3]> = (0..a.rows() / 3).map(node).collect();
    /// let mut amg = Amg::default().rigid_body_modes(&points);
    /// amg.set_up(&a, &mut Setup::new())?;
    /// # Ok::<(), lacuna_engine::Error>(())
    /// ```
    pub fn rigid_body_modes<const D: usize>(mut self, points: &[[f64; D]]) -> Self {
        self.options.theta = self.options.theta.or(Some(0.0));
        self.near_null_space(D, &rigid_body(points))
    }

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        AmgOptions::named(settings).map(Amg::new)
    }

    /// What a matrix takes nearly to 0.
    fn near_null_for<W: Double>(&self, a: &Csr<W>) -> Result<NearNull<W>> {
        let Some((block, vectors)) = &self.near_null else {
            let natural = || Structure::block_size_of(a).filter(|block| *block <= MOST_UNKNOWNS);
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
        let narrowed = |v: &Vec<Complex64>| v.iter().map(|v| W::from_parts(v.re, v.im)).collect();
        let mut vectors: Vec<Vec<W>> = vectors.iter().map(narrowed).collect();
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
    fn is_hermitian_over<T: Scalar>(&self, made: &Hierarchy<T::Wide>) -> bool {
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

    /// Fails if a weight of a smoother is too large for a type.
    fn check_weights<T: Scalar, U: Scalar>(made: &Hierarchy<T::Wide>) -> Result<()> {
        let coarsest = match &made.coarsest {
            Coarsest::Smoothed(smoother) => Some(smoother),
            Coarsest::Inverse(_) => None,
        };
        for (level, smoother) in made.levels.iter().map(|level| &level.smoother).chain(coarsest).enumerate() {
            if let Some((row, weight)) = smoother.overflows::<U>() {
                let mut message = format!(
                    "the smoother of level {level} has the weight {weight:e} in row {row}, too large for {}",
                    U::KIND.name()
                );
                if T::KIND != U::KIND {
                    message += "; `precision=full` takes it";
                }
                return Err(Error::Unsupported { operation: OPERATION.into(), message });
            }
        }
        Ok(())
    }

    /// What a hierarchy needs on a device, and the cycle over it. The weights of the smoothers are moved there.
    fn parts<T: Scalar>(&self, a: &Csr<T>, made: &mut Hierarchy<T::Wide>) -> Result<(VCycle, Parts<T>)> {
        let narrow = self.options.narrow && T::HAS_NARROW;
        let rounded = |m: &Csr<T>| -> Option<Arc<dyn Format<T>>> {
            if narrow { Some(Arc::new(Packed::rounded(m).ok()?)) } else { None }
        };
        match narrow {
            true => Self::check_weights::<T, T::Narrow>(made)?,
            false => Self::check_weights::<T, T>(made)?,
        }
        let report = made.report([a.rows(), a.nnz()]);
        let (mut cycle, mut parts) = match narrow {
            true => VCycle::narrow(Parts::new(), rounded(a)),
            false => (VCycle::default(), Parts::new()),
        };
        let depth = made.levels.len();
        for (k, level) in made.levels.iter_mut().enumerate() {
            let stored = |m: &Arc<Csr<T::Wide>>, shape| {
                let m = &Csr::<T>::rounded_shared(OPERATION, m)?;
                match (self.options.format, rounded(m)) {
                    (None, Some(rounded)) => Ok(rounded),
                    (None, None) => convert(m, blocks(shape)),
                    (Some(format), _) => convert(m, format).or_else(|error| match m.rows() == m.cols() {
                        // Between levels many formats do not suit.
                        false => convert(m, "csr"),
                        true => Err(Error::Unsupported {
                            operation: OPERATION.into(),
                            message: format!("format={format} for level {}: {error}", k + 1),
                        }),
                    }),
                }
            };
            let [fine, below] = level.blocks;
            let is_stored = k + 1 < depth || matches!(made.coarsest, Coarsest::Smoothed(_));
            let coarse = is_stored.then(|| stored(&level.coarse, [below; 2])).transpose()?;
            let between = [stored(&level.r, [below, fine])?, stored(&level.p, [fine, below])?];
            parts = cycle.level(parts, level.smoother.moved(), between, coarse);
        }
        parts = match &mut made.coarsest {
            Coarsest::Inverse(inverse) => {
                let inverse = Csr::<T>::rounded_shared(OPERATION, inverse)?;
                cycle.solved(parts, convert(&inverse, "dense")?)
            }
            Coarsest::Smoothed(smoother) => {
                let rows = made.levels.last().map_or(a.rows(), |level| level.coarse.rows());
                cycle.smoothed(parts, rows, smoother.moved())
            }
        };
        Ok((cycle, report.into_iter().fold(parts, |parts, (what, value)| parts.report(what, value))))
    }

    /// The parts for new values, with the aggregates and patterns of a hierarchy.
    fn renewed<T: Scalar>(
        &mut self,
        a: &Csr<T>,
        mut made: Box<Hierarchy<T::Wide>>,
        setup: &mut Setup<'_>,
    ) -> Result<Parts<T>> {
        let wide = a.wide()?;
        let near_null = self.near_null_for(&*wide)?;
        let updated = made.update(&self.options, &wide, near_null, setup);
        let updated = updated.and_then(|()| self.parts(a, &mut made));
        let hermitian = self.is_hermitian_over::<T>(&made);
        // The patterns hold for the next values, whatever became of these.
        self.hierarchy = Some(made);
        let (cycle, parts) = updated?;
        self.hermitian = hermitian;
        self.check_recorded(cycle == self.cycle)?;
        Ok(parts)
    }
}

impl<T: Scalar> Preconditioner<T> for Amg {
    fn name(&self) -> Cow<'static, str> {
        self.options.name().into()
    }
    fn keeps_choices(&self) -> bool {
        true
    }
    fn set_up(&mut self, a: &Csr<T>, setup: &mut Setup<'_>) -> Result<Parts<T>> {
        self.options.check()?;
        let there = setup.there(a.nnz());
        if setup.is_update()
            && let Some(kept) = self.hierarchy.as_ref().and_then(|any| any.downcast_ref::<there::Hierarchy>())
        {
            let (cycle, parts) = self.renew_there(a, kept, there.and_then(|there| there.matrix), setup)?;
            self.check_recorded(cycle == self.cycle)?;
            return Ok(parts);
        }
        if setup.is_update()
            && let Some(made) =
                self.hierarchy.take().and_then(|any| any.downcast::<Hierarchy<T::Wide>>().ok())
        {
            return self.renewed(a, made, setup);
        }
        let wide = a.wide()?;
        let near_null = self.near_null_for(&*wide)?;
        if let (Some(there), NearNull::Vector(None)) = (there, &near_null)
            && let Some((kept, cycle, parts)) = self.set_up_there(a, there, setup)?
        {
            self.hermitian = true;
            self.cycle = cycle;
            self.hierarchy = Some(Box::new(kept));
            return Ok(parts);
        }
        let mut made = Hierarchy::new(&self.options, (&wide, T::EPSILON), near_null, setup)?;
        let (cycle, parts) = self.parts(a, &mut made)?;
        self.hermitian = self.is_hermitian_over::<T>(&made);
        self.check_recorded(true)?;
        self.cycle = cycle;
        self.hierarchy = Some(Box::new(made));
        Ok(parts)
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        self.cycle.record(k, on, [r, z], self.options.sweeps, then);
    }
    fn takes_columns(&self) -> bool {
        self.cycle.takes_columns()
    }
    fn apply_columns(
        &self,
        k: &mut Recorder<'_, T>,
        on: &Handles<T>,
        work: &[Basis<T>],
        [r, z]: [Basis<T>; 2],
    ) {
        self.cycle.record_columns(k, (on, work), [r, z], self.options.sweeps);
    }
    fn is_narrow(&self) -> bool {
        self.options.narrow && T::HAS_NARROW
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
