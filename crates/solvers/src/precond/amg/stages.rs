//! The stages of a set-up, timed.
use super::AmgOptions;
use super::aggregates::Aggregates;
use super::filtered::Filtered;
use super::hierarchy::NearNull;
use super::modes;
use super::prolongator::{Tentative, smoothed};
use super::radius::radius;
use super::rows::RowCouplings;
use super::strength::{Filter, Graph, strong, threshold};
use crate::precond::multigrid::{Smoother, Smoothing};
use lacuna_engine::{Double, Result};
use lacuna_formats::{Csr, parallel};
use std::time::{Duration, Instant};

/// Steps of the estimate of a spectral radius: for the prolongator, which a low one does no harm, and for a smoother, which must not amplify.
pub(super) const STEPS: usize = 5;
pub(super) const STEPS_FOR_SMOOTHER: usize = 10;
/// The eigenvalue of `W A` from which on smoothing amplifies, `W` being the weights of SPAI(0): the cycle is not definite then.
const AMPLIFIED: f64 = 2.0;
/// The largest estimate of it that is left as it is.
const MOST: f64 = 1.9;
/// The eigenvalue that a larger one is brought to: what damps the upper part of a spectrum most evenly.
const DAMPED: f64 = 4.0 / 3.0;
/// What an estimate of it is raised by.
const RAISED: f64 = 1.1;

/// The factor of the weights of SPAI(0) with which smoothing converges for a definite matrix: 1 where a bound shows that it does.
fn spai_damping<T: Double>(a: &Csr<T>, rows: &RowCouplings<T>) -> Result<T> {
    if !rows.hermitian || !may_amplify(rows.spai_norm) {
        return Ok(T::one());
    }
    let by =
        |i: usize| if rows.spai[i] == T::zero() { rows.diagonal[i] } else { T::one().quotient(rows.spai[i]) };
    let by = parallel::collect(rows.spai.len(), 1 << 14, by);
    let scaled = Filtered { by: by.into(), ..Filtered::new(a, rows, &Filter::All, None) };
    Ok(T::from_real(damping(radius(&scaled, STEPS_FOR_SMOOTHER)?, rows.spai_norm)))
}

/// Whether smoothing by SPAI(0) may amplify, by a bound of the spectrum of `W A`.
pub(super) fn may_amplify(spai_norm: f64) -> bool {
    spai_norm >= AMPLIFIED
}

/// The factor of the weights of SPAI(0), by an estimate of the radius of `W A` and a bound of it.
pub(super) fn damping(radius: f64, spai_norm: f64) -> f64 {
    let largest = (RAISED * radius).min(spai_norm);
    if largest <= MOST { 1.0 } else { DAMPED / largest }
}

/// The damping of a prolongator that a matrix of this spectral radius smooths: without an estimate nothing is smoothed.
pub(super) fn omega(amg: &AmgOptions, rho: f64) -> f64 {
    if rho.is_finite() && rho > 0.0 { amg.damping / rho } else { 0.0 }
}

/// A prolongator, with what belongs to the next level.
pub(super) struct Prolongator<T: Double> {
    pub(super) p: Csr<T>,
    pub(super) near_null: NearNull<T>,
    /// Coarse unknowns that nothing depends on.
    pub(super) dependent: Vec<usize>,
}

/// Time by part.
#[derive(Default)]
pub(super) struct Times(pub(super) Vec<(&'static str, Duration)>);

impl Times {
    pub(super) fn add<R>(&mut self, part: &'static str, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = work();
        let spent = start.elapsed();
        match self.0.iter_mut().find(|(known, _)| *known == part) {
            Some((_, time)) => *time += spent,
            None => self.0.push((part, spent)),
        }
        result
    }

    /// The strong couplings of a matrix.
    pub(super) fn strong<'a, T: Double>(
        &mut self,
        amg: &AmgOptions,
        a: &'a Csr<T>,
        rows: &RowCouplings<T>,
        depth: usize,
    ) -> Result<(Filter, Graph<'a>)> {
        let epsilon = threshold(rows, amg.threshold(), depth);
        self.add("strength", || strong(a, rows, epsilon))
    }

    /// The smoother of a level, SPAI(0) where the matrix is not Hermitian or the former smoother was it, for which operations
    /// are recorded; and the spectral radius of `D⁻¹ A` where that is known.
    pub(super) fn smoother<T: Double>(
        &mut self,
        amg: &AmgOptions,
        a: &Csr<T>,
        rows: &RowCouplings<T>,
        former: Option<&Smoother<T>>,
    ) -> Result<(Smoother<T>, Option<f64>)> {
        let was_spai = former.is_some_and(|former| former.kind == Smoothing::Spai0);
        if was_spai || amg.smoothing != Smoothing::Chebyshev || !rows.hermitian {
            let damping = self.add("radius", || spai_damping(a, rows))?;
            let weight = |i: usize| damping * rows.spai[i];
            let weights = || parallel::collect(rows.spai.len(), 1 << 14, weight);
            return Ok((self.add("smoother", || Smoother::spai0(weights())), None));
        }
        let whole = Filtered::new(a, rows, &Filter::All, None);
        let rho = self.add("radius", || radius(&whole, STEPS_FOR_SMOOTHER))?;
        Ok((self.add("smoother", || Smoother::chebyshev(&rows.diagonal, rho, rows.norm)), Some(rho)))
    }

    /// The filtered matrix of a level.
    pub(super) fn filtered<'a, T: Double>(
        &mut self,
        (a, rows): (&'a Csr<T>, &'a RowCouplings<T>),
        filter: &'a Filter,
        near_null: &NearNull<T>,
    ) -> Filtered<'a, T> {
        self.add("filter", || Filtered::new(a, rows, filter, near_null.vector()))
    }

    /// The prolongator of a level, smoothed by a matrix of spectral radius `rho`; with the pattern of the former one, if there is
    /// one.
    pub(super) fn prolongator<T: Double>(
        &mut self,
        amg: &AmgOptions,
        rows: &RowCouplings<T>,
        (matrix, rho): (&Filtered<'_, T>, f64),
        aggregates: &Aggregates,
        near_null: &NearNull<T>,
        former: Option<&Csr<T>>,
    ) -> Result<Prolongator<T>> {
        let omega = omega(amg, rho);
        self.add("prolongator", || match near_null {
            NearNull::Vector(vector) => {
                let tentative = Tentative::new(aggregates, vector.as_deref());
                let p = smoothed(former, matrix, aggregates, &tentative, omega)?;
                Ok(Prolongator {
                    p,
                    near_null: NearNull::Vector(Some(tentative.coarse)),
                    dependent: Vec::new(),
                })
            }
            NearNull::Modes(all) => {
                let tentative = all.tentative(aggregates)?;
                let p = modes::smoothed(former, matrix.a, rows, aggregates, &tentative, omega)?;
                Ok(Prolongator {
                    p,
                    near_null: NearNull::Modes(tentative.coarse),
                    dependent: tentative.dependent,
                })
            }
        })
    }
}

/// The spectral radius of a filtered matrix; `known` is that of the matrix with all couplings.
pub(super) fn known_radius<T: Double>(matrix: &Filtered<'_, T>, known: Option<f64>) -> Result<f64> {
    match (matrix.filter, known) {
        (Filter::All, Some(rho)) => Ok(rho),
        _ => radius(matrix, STEPS),
    }
}
