//! What one look at the rows of a level's matrix tells.
use crate::random::mixed;
use lacuna_engine::{Double, Error, Result};
use lacuna_formats::{Csr, parallel};
use std::ops::Range;

/// A row with no coupling above the threshold of its level, but a sum of couplings above this, has its own threshold.
const STRONG_SUM: f64 = 0.5;

/// `|v|`; for complex numbers without scaling, so it may overflow or underflow.
#[inline(always)]
pub(super) fn size<T: Double>(v: T) -> f64 {
    if T::KIND.is_complex() { (v.re() * v.re() + v.im() * v.im()).sqrt() } else { v.re().abs() }
}

/// The diagonal, the smoother that follows from it, and how rows are coupled.
pub(super) struct RowCouplings<T> {
    /// `a_ii`
    pub(super) diagonal: Vec<T>,
    /// `1/√|a_ii|`, 0 where that is not finite.
    pub(super) scale: Vec<f64>,
    /// SPAI(0): `conj(a_ii) / Σ_j |a_ij|²` (Bröker and Grote 2002, doi:10.1016/S0168-9274(01)00110-6).
    pub(super) spai: Vec<T>,
    /// The strongest coupling of each row, 0 where there is none.
    pub(super) strongest: Vec<f64>,
    /// Whether the couplings of a row, weak as each may be, exceed [`STRONG_SUM`] in sum.
    pub(super) strong_in_sum: Vec<bool>,
    /// The weakest coupling of all; infinite where there is none.
    pub(super) weakest: f64,
    /// `‖D⁻¹A‖∞`
    pub(super) norm: f64,
    /// `‖W A‖∞` with the weights `W` of SPAI(0).
    pub(super) spai_norm: f64,
    /// Whether `A = Aᴴ`, up to hash collisions (2^-64).
    pub(super) hermitian: bool,
    /// The first row whose diagonal entry is 0, missing or has no finite reciprocal.
    pub(super) without_diagonal: Option<usize>,
}

/// The coupling `|a_ij| / √|a_ii a_jj|`, the same from both sides.
#[inline(always)]
pub(super) fn coupling<T: Double>(v: T, scale_i: f64, scale_j: f64) -> f64 {
    size(v) * (scale_i * scale_j)
}

/// A hash of an entry above the diagonal and of its image below.
#[inline(always)]
fn hash<T: Double>(i: usize, j: usize, v: T) -> u64 {
    let (low, high, v) = if i < j { (i, j, v) } else { (j, i, v.conj()) };
    // 0 and −0 are one number here.
    let bits = (v.re() + 0.0).to_bits() ^ (v.im() + 0.0).to_bits().rotate_left(23);
    mixed(((low as u64) << 32 | high as u64).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ bits)
}

/// What a run of rows says.
struct Part {
    weakest: f64,
    norm: f64,
    spai_norm: f64,
    above: u64,
    below: u64,
    real_diagonal: bool,
}

impl<T: Double> RowCouplings<T> {
    /// Looks at a square matrix; whether it is Hermitian is looked at only where that is not known.
    pub(super) fn of(a: &Csr<T>, known_hermitian: Option<bool>) -> Self {
        let n = a.rows();
        let diagonal = a.diagonal();
        let scale = parallel::collect(n, 1 << 14, |i| {
            let scale = size(diagonal[i]).sqrt().recip();
            if scale.is_finite() { scale } else { 0.0 }
        });
        let (mut spai, mut strongest, mut strong_in_sum) = (vec![T::zero(); n], vec![0.0; n], vec![false; n]);
        let runs = a.row_shares();
        let tasks = cut(&runs, &mut spai)
            .zip(cut(&runs, &mut strongest))
            .zip(cut(&runs, &mut strong_in_sum))
            .zip(&runs);
        let look = |(((spai, strongest), strong_in_sum), run): RowsOfRun<'_, T>| {
            let mut part = Part {
                weakest: f64::INFINITY,
                norm: 0.0,
                spai_norm: 0.0,
                above: 0,
                below: 0,
                real_diagonal: true,
            };
            for (((i, spai), strongest), strong_in_sum) in
                run.clone().zip(spai).zip(strongest).zip(strong_in_sum)
            {
                let (d, scale_i) = (diagonal[i], scale[i]);
                let inverse = T::one().quotient(d);
                let (mut sum, mut squares, mut all) = (0.0, 0.0, 0.0);
                let (mut most, mut least) = (0.0f64, f64::INFINITY);
                let by = size(inverse);
                for (j, v) in a.row_entries(i) {
                    let ratio = size(v) * by;
                    sum += ratio;
                    squares += ratio * ratio;
                    if j != i {
                        let s = coupling(v, scale_i, scale[j]);
                        all += s;
                        most = if s > most { s } else { most };
                        least = if s < least { s } else { least };
                        if known_hermitian.is_none() {
                            let h = hash(i, j, v);
                            let side = if i < j { &mut part.above } else { &mut part.below };
                            *side = side.wrapping_add(h);
                        }
                    }
                }
                let weight = inverse * T::from_real(squares.recip());
                *spai = if weight.finite() { weight } else { T::zero() };
                (*strongest, *strong_in_sum) = (most, all > STRONG_SUM);
                part.weakest = part.weakest.min(least);
                part.norm = part.norm.max(sum);
                part.spai_norm = part.spai_norm.max(sum / squares);
                part.real_diagonal &= d.im() == 0.0;
            }
            part
        };
        let parts = parallel::map(tasks, look);
        let total = |side: fn(&Part) -> u64| parts.iter().map(side).fold(0, u64::wrapping_add);
        let mirrored = parts.iter().all(|p| p.real_diagonal) && total(|p| p.above) == total(|p| p.below);
        let bad = |i: usize| !T::one().quotient(diagonal[i]).finite() || diagonal[i] == T::zero();
        RowCouplings {
            without_diagonal: parallel::find_first(n, 1 << 14, bad),
            hermitian: known_hermitian.unwrap_or(mirrored),
            weakest: parts.iter().fold(f64::INFINITY, |least, p| least.min(p.weakest)),
            norm: parts.iter().fold(0.0, |most, p| most.max(p.norm)),
            spai_norm: parts.iter().fold(0.0, |most, p| most.max(p.spai_norm)),
            diagonal,
            scale,
            spai,
            strongest,
            strong_in_sum,
        }
    }

    /// Fails if a diagonal entry is 0 or missing; the rows of the matrix itself are those of level 0.
    pub(super) fn check_diagonal(&self, operation: &str, level: usize) -> Result<()> {
        let Some(row) = self.without_diagonal else { return Ok(()) };
        let (operation, entry) = (operation.into(), self.diagonal[row]);
        let expected = "expected one with a finite reciprocal";
        Err(match level {
            0 => {
                let message = format!("the diagonal entry is {entry:e}; {expected}");
                Error::Entry { operation, row, column: row, message }
            }
            level => {
                let message = format!(
                    "the coarse matrix of level {level} has {entry:e} on the diagonal, in row {row}; {expected}"
                );
                Error::Unsupported { operation, message }
            }
        })
    }
}

/// What is found for a run of rows.
type RowsOfRun<'a, T> = (((&'a mut [T], &'a mut [f64]), &'a mut [bool]), &'a Range<usize>);

/// An array cut into runs.
fn cut<'a, E>(runs: &[Range<usize>], array: &'a mut [E]) -> impl Iterator<Item = &'a mut [E]> {
    let mut rest = array;
    runs.iter().map(move |run| {
        let (own, others) = std::mem::take(&mut rest).split_at_mut(run.len());
        rest = others;
        own
    })
}
