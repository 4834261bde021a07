//! Multigrid for matrices that are a stencil on a grid, and the parts shared with algebraic multigrid:
//! smoothers, the cycle, the coarsest level.
mod coarsest;
mod cycle;
mod operator;
mod smoother;
mod vcycle;

pub(super) use coarsest::inverse;
pub(super) use smoother::Smoother;
pub use smoother::Smoothing;
pub(super) use vcycle::VCycle;

use crate::named::{Bounds, OptionInfo, Settings};
use crate::{Handles, Parts, PrecondInfo, Preconditioner, Setup};
use lacuna_engine::{Basis, Double, Error, Format, Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::{Csr, Interpolation, Stencil, convert};
use operator::{Axes, Operator};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

const OPERATION: &str = "preconditioner `multigrid`";
/// An axis is coarsened if its coupling is at least this fraction of the strongest.
const STRONG: f64 = 0.5;

/// Steps of smoothing before and after that `multigrid` and `amg` take.
pub(super) const SWEEPS: Bounds<usize> = Bounds { expected: "a whole number from 1 to 8", least: 1, most: 8 };
/// Rows that they invert.
pub(super) const COARSEST: Bounds<usize> =
    Bounds { expected: "a whole number from 1 to 4096", least: 1, most: 4096 };

/// Parameters of coarsening and smoothing.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct MultigridOptions {
    /// The smoother.
    pub smoothing: Smoothing,
    /// Smoothing steps before and after the coarse correction, 1 to 8.
    pub sweeps: usize,
    /// A matrix of at most this many rows is inverted, 1 to 4096.
    pub coarsest: usize,
}

lacuna_engine::setters!(MultigridOptions { smoothing: Smoothing, sweeps: usize, coarsest: usize });

impl Default for MultigridOptions {
    fn default() -> Self {
        MultigridOptions { smoothing: Smoothing::Chebyshev, sweeps: 1, coarsest: 128 }
    }
}

/// `M` is a V-cycle over successively coarser grids, for matrices with one stencil at all points of a grid.
///
/// * Needs: constant Hermitian coefficients on a grid of one to three dimensions, as the format `stencil`
///   finds them, of neighbours at most one step away along each axis; negative couplings along some axis. `M`
///   is then Hermitian, and positive definite if `A` is.
/// * Coarse points are every other point along the axes with the strongest couplings; interpolation is linear
///   along each axis. Coarse matrices are Galerkin products, whose coefficients follow from a grid of 7
///   points per axis.
/// * Cost of an application: on every level four products with `A` (two with `smoother=spai0`) and one each
///   with `R` and `P`. No matrix is stored but the inverse of the coarsest: `R` and `P` are [`Interpolation`], the
///   coarser matrices [`Stencil`]s with coefficients by position. Vectors: two on the finest level, five on each
///   other, and one more on the finest with `smoother=spai0`.
/// * Set-up: reads the matrix once. New values: the same cost again.
/// * Reference: Briggs, Henson and McCormick 2000, doi:10.1137/1.9780898719505, chapters 3, 7 and 10.
#[derive(Default)]
pub struct Multigrid {
    options: MultigridOptions,
    made: Made,
}

/// What the recorded operations depend on.
#[derive(Default)]
struct Made {
    cycle: VCycle,
    /// The axes along which each level was coarsened in the last set-up.
    axes: Option<Vec<Axes>>,
}

impl Multigrid {
    /// Its name.
    pub const NAME: &str = "multigrid";
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: Self::NAME,
        about: "multigrid on a grid with one stencil all over; for elliptic problems",
        options: &[
            OptionInfo { key: "smoother", default: "chebyshev", about: "chebyshev or spai0" },
            OptionInfo { key: "sweeps", default: "1", about: "steps of smoothing before and after, 1 to 8" },
            OptionInfo { key: "coarsest", default: "128", about: "rows that are inverted, 1 to 4096" },
        ],
        needs_diagonal: true,
        needs_hermitian: true,
        needs_stencil: true,
    };

    /// With the given options.
    pub fn new(options: MultigridOptions) -> Self {
        Multigrid { options, ..Multigrid::default() }
    }

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        let smoothing = [("spai0", Smoothing::Spai0), ("chebyshev", Smoothing::Chebyshev)];
        Ok(Multigrid::new(MultigridOptions {
            smoothing: settings.choice("smoother", &smoothing)?.unwrap_or(Smoothing::Chebyshev),
            sweeps: settings.within("sweeps", &SWEEPS)?,
            coarsest: settings.within("coarsest", &COARSEST)?,
        }))
    }

    /// The axes along which a grid is coarsened; `None` if no axis has a coupling.
    fn axes<W: Double>(own: &Operator<W>) -> Option<Axes> {
        let couplings = own.couplings();
        let open = |k: usize| if own.size[k] > 2 { couplings[k] } else { 0.0 };
        let most = (0..3).map(open).fold(0.0, f64::max);
        let elliptic = own.centre().re() > 0.0 && most > 0.0 && most.is_finite();
        elliptic.then(|| [0, 1, 2].map(|k| open(k) >= STRONG * most))
    }

    /// The matrix as a stencil, if this preconditioner accepts it.
    pub fn stencil<T: Scalar>(a: &Csr<T>) -> Option<Stencil<T>> {
        let stencil = Stencil::from_csr(a).ok()?;
        let own = Operator::of(OPERATION, &stencil).ok()?;
        (own.is_hermitian() && Self::axes(&own).is_some()).then_some(stencil)
    }

    /// The points in x, y and z of the grid, if this preconditioner accepts the matrix.
    pub fn grid<T: Scalar>(a: &Csr<T>) -> Option<[usize; 3]> {
        Self::stencil(a).map(|stencil| stencil.size())
    }

    /// The smoother of a level.
    fn smoother<W: Double>(&self, own: &Operator<W>) -> Smoother<W> {
        match self.options.smoothing {
            Smoothing::Spai0 => Smoother::spai0(own.spai0()),
            Smoothing::Chebyshev => own.chebyshev(),
        }
    }

    /// The operator of a matrix.
    fn operator<T: Scalar>(a: &Csr<T>) -> Result<Operator<T::Wide>> {
        let refused = |error: Error| match error {
            Error::Unsupported { message, .. } => {
                let why = message.split("; keep").next().unwrap_or_default();
                let message = format!("{why}; it takes one stencil all over a grid, `amg` any matrix");
                Error::Unsupported { operation: OPERATION.into(), message }
            }
            other => other,
        };
        let own = Operator::of(OPERATION, &Stencil::from_csr(a).map_err(refused)?).map_err(refused)?;
        if own.is_hermitian() {
            return Ok(own);
        }
        let message =
            "the coefficients of opposite neighbours differ; expected a Hermitian matrix; `amg` takes others";
        Err(Error::Unsupported { operation: OPERATION.into(), message: message.into() })
    }

    /// The levels for a matrix, coarsened along given axes, or along axes chosen from the couplings.
    fn levels<T: Scalar>(
        &mut self,
        a: &Csr<T>,
        given: Option<&[Axes]>,
        setup: &mut Setup<'_>,
    ) -> Result<Parts<T>> {
        let start = Instant::now();
        SWEEPS.check(OPERATION, "sweeps", self.options.sweeps)?;
        COARSEST.check(OPERATION, "coarsest", self.options.coarsest)?;
        setup.check()?;
        let mut own = Self::operator(a)?;
        if Self::axes(&own).is_none() && a.rows() > self.options.coarsest {
            return Err(Self::not_elliptic(&own));
        }
        let (mut cycle, mut axes, mut parts) = (VCycle::default(), Vec::new(), Parts::new());
        let rows = |own: &Operator<T::Wide>| own.size.iter().product::<usize>();
        loop {
            setup.progress("levels", axes.len(), given.map(<[Axes]>::len))?;
            let [x, y, z] = own.size;
            let line = format!("{}: {x}x{y}x{z} points, {} neighbours", axes.len(), own.neighbours());
            parts = parts.report("level", line);
            let next = match given {
                Some(given) => given.get(axes.len()).copied(),
                None if rows(&own) <= self.options.coarsest => None,
                // If the remaining strong couplings are along axes too short to coarsen, smoothing is enough.
                None => Self::axes(&own),
            };
            let Some(next) = next else { break };
            let coarse = own.coarsened(next)?;
            let transfers: [Arc<dyn Format<T>>; 2] = [
                Arc::new(Interpolation::restriction(own.size, next)?),
                Arc::new(Interpolation::prolongation(own.size, next)?),
            ];
            let is_last = match given {
                Some(given) => axes.len() + 1 == given.len(),
                None => rows(&coarse) <= self.options.coarsest || Self::axes(&coarse).is_none(),
            };
            let is_solved = is_last && rows(&coarse) <= self.options.coarsest;
            let kept: Option<Arc<dyn Format<T>>> = match is_solved {
                true => None,
                false => Some(Arc::new(coarse.stencil::<T>()?)),
            };
            parts = cycle.level(parts, self.smoother(&own).moved(), transfers, kept);
            axes.push(next);
            own = coarse;
        }
        setup.check()?;
        parts = if rows(&own) <= self.options.coarsest {
            let coarsest = own.stencil::<T::Wide>()?.to_csr()?;
            let (inverse, _) = inverse(Self::NAME, (&coarsest, T::EPSILON), true)?;
            let inverse = Csr::<T>::rounded_from(OPERATION, inverse)?;
            cycle.solved(parts, convert(&Arc::new(inverse), "dense")?)
        } else {
            cycle.smoothed(parts, rows(&own), self.smoother(&own).moved())
        };
        self.made = Made { cycle, axes: Some(axes) };
        Ok(parts.report("set-up", format!("{:.4} s", start.elapsed().as_secs_f64())))
    }

    #[cold]
    fn not_elliptic<W: Double>(own: &Operator<W>) -> Error {
        let message = format!(
            "the diagonal is {:e} and points are coupled by {:?} along x, y and z; expected a positive diagonal, and negative coefficients \
             of neighbours along some axis of more than two points; `amg` or `jacobi` may do",
            own.centre(),
            own.couplings()
        );
        Error::Unsupported { operation: OPERATION.into(), message }
    }
}

impl<T: Scalar> Preconditioner<T> for Multigrid {
    fn name(&self) -> Cow<'static, str> {
        let (own, usual) = (self.options, MultigridOptions::default());
        let mut said = Vec::new();
        if own.smoothing != usual.smoothing {
            said.push("smoother=spai0".to_string());
        }
        if own.sweeps != usual.sweeps {
            said.push(format!("sweeps={}", own.sweeps));
        }
        if own.coarsest != usual.coarsest {
            said.push(format!("coarsest={}", own.coarsest));
        }
        if said.is_empty() { "multigrid".into() } else { format!("multigrid:{}", said.join(",")).into() }
    }

    /// New values are coarsened along the axes of the last set-up.
    fn keeps_choices(&self) -> bool {
        true
    }
    fn set_up(&mut self, a: &Csr<T>, setup: &mut Setup<'_>) -> Result<Parts<T>> {
        let axes = self.made.axes.clone().filter(|_| setup.is_update());
        self.levels(a, axes.as_deref(), setup)
    }

    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        self.made.cycle.record(k, on, [r, z], self.options.sweeps, then);
    }
    fn takes_columns(&self) -> bool {
        self.made.cycle.takes_columns()
    }
    fn apply_columns(
        &self,
        k: &mut Recorder<'_, T>,
        on: &Handles<T>,
        work: &[Basis<T>],
        [r, z]: [Basis<T>; 2],
    ) {
        self.made.cycle.record_columns(k, (on, work), [r, z], self.options.sweeps);
    }
    /// The matrix is Hermitian, and smoothing before and after is the same.
    fn is_hermitian(&self) -> bool {
        true
    }
}
