//! A hierarchy that a device makes and that stays there: for Hermitian matrices of double precision with one unknown a node.
//!
//! The stages are those of [`super::hierarchy`], with the same bits. What the device cannot do is left to the host from the
//! beginning: `None`.
use super::report::{Line, null_space, report};
use super::stages::Times;
use super::{Aggregation, Amg, AmgOptions, OPERATION};
use crate::Parts;
use crate::precond::multigrid::{Smoothing, VCycle, inverse};
use crate::precond::{Setup, There};
use lacuna_engine::{
    Algebra, Array, Device, Each, Error, FormatRefs, Matrix, NumberType, Owned, Products, Result, Scalar,
    SparseArrays, Untyped, Vector,
};
use lacuna_formats::{Csr, convert};
use std::sync::Arc;

/// What is done only where the device can do it: leaves the function with `None` otherwise.
macro_rules! or_host {
    ($made:expr) => {
        match $made {
            Some(made) => made,
            None => return Ok(None),
        }
    };
}

mod held;
mod levels;

use held::Held;
use levels::{By, Choices, Level, Made, Work};

/// Where the set-up is done, for the report.
const ON_DEVICE: &str = "on the device";

/// What belongs to a level on the device.
struct Kept {
    choices: Choices,
    weights: Vector<Untyped>,
    r: Matrix,
    p: Matrix,
    /// Unless it is the coarsest and inverted.
    coarse: Option<Matrix>,
}

/// What is kept of a hierarchy for new values.
pub(super) struct Hierarchy {
    device: Device,
    kind: NumberType,
    levels: Vec<Kept>,
    /// The weights of the coarsest level's smoother, if there is one.
    coarsest: Option<Vector<Untyped>>,
    /// Why there are no more levels, where more were wanted.
    notes: Vec<String>,
}

impl Drop for Hierarchy {
    fn drop(&mut self) {
        let arrays: Vec<Array> = self.levels.iter().flat_map(|level| level.choices.arrays()).collect();
        // What cannot be freed goes with the device.
        let _ = self.device.algebra(self.kind, |algebra| {
            algebra.free(&arrays);
            Ok(Some(()))
        });
    }
}

impl AmgOptions {
    /// Whether a device makes such a hierarchy.
    fn suits_devices(&self) -> bool {
        self.smoothing == Smoothing::Spai0
            && self.aggregation != Some(Aggregation::Mis2)
            && self.format.is_none_or(|format| format == "csr")
            && !self.narrow
    }
}

/// The matrix on the device, in double precision.
fn finest<T: Scalar>(held: &mut Held, a: &Csr<T>) -> Result<Option<SparseArrays>> {
    let is_it = |m: &Matrix| (m.rows, m.cols, m.nnz) == (a.rows(), a.cols(), a.nnz());
    let stored = match held.matrix().filter(is_it) {
        Some(matrix) => held.ask(|algebra| algebra.stored(matrix))?,
        None => None,
    };
    let there = match stored {
        Some(there) => there,
        None => or_host!(held.ask(|algebra| algebra.upload(T::each::<FormatRefs<'_>>(a)))?),
    };
    held.keep(&there.arrays());
    Ok(Some(there))
}

/// The inverse of the coarsest matrix, and a note if it has none.
fn inverted<T: Scalar>(
    held: &Held,
    times: &mut Times,
    coarsest: &SparseArrays,
) -> Result<Option<(Csr<T>, Option<String>)>> {
    let found = or_host!(held.ask(|algebra| algebra.download(coarsest).map(Some))?);
    let a = or_host!(Each::<Products>::take::<T::Wide>(found));
    let a = Csr::new(a.shape.0, a.shape.1, a.row_ptr, a.col_idx, a.values)?;
    let (inverse, nullity) = times.add("coarsest", || inverse(Amg::NAME, (&a, T::EPSILON), true))?;
    let note = (nullity > 0).then(|| null_space(nullity));
    Ok(Some((Csr::<T>::rounded(OPERATION, &inverse)?.into_owned(), note)))
}

/// A hierarchy at the end of a set-up.
struct Done<T: Scalar> {
    made: Made,
    /// Of the coarsest matrix, unless that is smoothed.
    inverse: Option<Csr<T>>,
}

impl<T: Scalar> Done<T> {
    fn new(held: &mut Held, by: By<'_>, a: &Csr<T>, setup: &mut Setup<'_>) -> Result<Option<Self>> {
        let finest = or_host!(finest(held, a)?);
        let mut made = or_host!(Work::new(held).levels(by, finest, setup)?);
        // Where there is no coarser level the host says why.
        let last = or_host!(made.levels.last());
        let mut inverse = None;
        if made.coarsest.is_none() {
            let (found, note) = or_host!(inverted::<T>(held, &mut made.times, &last.coarse)?);
            made.coarsest_note = note;
            inverse = Some(found);
        }
        Ok(Some(Done { made, inverse }))
    }

    fn coarsest_rows(&self) -> usize {
        self.made.levels.last().map_or(0, |level| level.coarse.shape.0)
    }

    /// The parts of all levels but the coarsest, with that; the weights of its smoother are given unless they are there.
    fn parts(
        self,
        mut cycle: VCycle,
        parts: Parts<T>,
        weights: Option<Owned<Vector<T>>>,
    ) -> Result<(VCycle, Parts<T>)> {
        let notes: Vec<String> = self.made.notes.iter().chain(&self.made.coarsest_note).cloned().collect();
        let report = report(&lines(&self.made), (&self.made.times, ON_DEVICE), &notes);
        let rows = self.coarsest_rows();
        let parts = match self.inverse {
            Some(inverse) => cycle.solved(parts, convert(&Arc::new(inverse), "dense")?),
            None => cycle.smoothed_there(parts, rows, weights),
        };
        Ok((cycle, report.into_iter().fold(parts, |parts, (what, value)| parts.report(what, value))))
    }
}

impl Amg {
    /// A hierarchy made by a device, with its parts; `None` if the host has to make it.
    pub(super) fn set_up_there<T: Scalar>(
        &self,
        a: &Csr<T>,
        there: There,
        setup: &mut Setup<'_>,
    ) -> Result<Option<(Hierarchy, VCycle, Parts<T>)>> {
        if T::KIND == T::KIND.narrow() || !self.options.suits_devices() || a.rows() <= self.options.coarsest {
            return Ok(None);
        }
        match self.made_there(a, there, setup) {
            Err(Error::OutOfMemory { .. }) => Ok(None),
            made => made,
        }
    }

    fn made_there<T: Scalar>(
        &self,
        a: &Csr<T>,
        there: There,
        setup: &mut Setup<'_>,
    ) -> Result<Option<(Hierarchy, VCycle, Parts<T>)>> {
        let device = there.device.clone();
        let held = &mut Held::new(there, T::KIND);
        let by = By { amg: &self.options, epsilon: T::EPSILON, known: None };
        let done = or_host!(Done::<T>::new(held, by, a, setup)?);
        let notes = done.made.notes.clone();
        let mut kept = Hierarchy { device, kind: T::KIND, levels: Vec::new(), coarsest: None, notes };
        let (mut cycle, mut parts) = (VCycle::default(), Parts::new());
        let (depth, has_inverse) = (done.made.levels.len(), done.inverse.is_some());
        for (k, level) in done.made.levels.iter().enumerate() {
            let weights = or_host!(vector::<T>(held, level.weights, level.rows)?);
            let (r, p) = (or_host!(matrix(held, &level.r)?), or_host!(matrix(held, &level.p)?));
            let is_stored = k + 1 < depth || !has_inverse;
            let coarse = if is_stored { Some(or_host!(matrix(held, &level.coarse)?)) } else { None };
            let choices = level.choices;
            choices.arrays().for_each(|array| held.leave(&[array]));
            kept.levels.push(Kept {
                choices,
                weights: weights.untyped(),
                r: r.untyped(),
                p: p.untyped(),
                coarse: coarse.as_ref().map(|coarse| coarse.untyped()),
            });
            let rows = [level.rows, choices.aggregates.count];
            parts = cycle.level_there(parts, Some(weights), [Some(r), Some(p)], coarse.map(Some), rows);
        }
        let weights = match done.made.coarsest {
            Some(weights) => Some(or_host!(vector::<T>(held, weights, done.coarsest_rows())?)),
            None => None,
        };
        kept.coarsest = weights.as_ref().map(|weights| weights.untyped());
        let (cycle, parts) = done.parts(cycle, parts, weights)?;
        Ok(Some((kept, cycle, parts)))
    }

    /// The parts for new values, which are put in the place of those that are there.
    pub(super) fn renew_there<T: Scalar>(
        &self,
        a: &Csr<T>,
        kept: &Hierarchy,
        matrix: Option<Matrix>,
        setup: &mut Setup<'_>,
    ) -> Result<(VCycle, Parts<T>)> {
        let renewed = self.renewed_there(a, kept, matrix, setup)?;
        renewed.ok_or_else(|| {
            let message = "the levels that the device has do not suit them; prepare the system again".into();
            Error::Structure { operation: "new values of preconditioner `amg`".into(), message }
        })
    }

    fn renewed_there<T: Scalar>(
        &self,
        a: &Csr<T>,
        kept: &Hierarchy,
        matrix: Option<Matrix>,
        setup: &mut Setup<'_>,
    ) -> Result<Option<(VCycle, Parts<T>)>> {
        let held = &mut Held::new(There { device: kept.device.clone(), matrix }, T::KIND);
        let choices: Vec<Choices> = kept.levels.iter().map(|level| level.choices).collect();
        let by = By { amg: &self.options, epsilon: T::EPSILON, known: Some(&choices) };
        let mut done = or_host!(Done::<T>::new(held, by, a, setup)?);
        done.made.notes.clone_from(&kept.notes);
        let (mut cycle, mut parts) = (VCycle::default(), Parts::new());
        for (level, to) in done.made.levels.iter().zip(&kept.levels) {
            let put = |algebra: &mut dyn Algebra| {
                algebra.set_vector(to.weights, level.weights)?;
                algebra.set_matrix(to.r, &level.r)?;
                algebra.set_matrix(to.p, &level.p)?;
                to.coarse.map_or(Ok(()), |coarse| algebra.set_matrix(coarse, &level.coarse)).map(Some)
            };
            or_host!(held.ask(put)?);
            let rows = [level.rows, level.choices.aggregates.count];
            parts = cycle.level_there(parts, None, [None, None], to.coarse.map(|_| None), rows);
        }
        if let (Some(to), Some(weights)) = (kept.coarsest, done.made.coarsest) {
            or_host!(held.ask(|algebra| algebra.set_vector(to, weights).map(Some))?);
        }
        done.parts(cycle, parts, None).map(Some)
    }
}

/// A vector with the numbers of an array.
fn vector<T: Scalar>(held: &mut Held, numbers: Array, n: usize) -> Result<Option<Owned<Vector<T>>>> {
    let to = held.device().vector::<T>(n)?;
    or_host!(held.ask(|algebra| algebra.set_vector(to.untyped(), numbers).map(Some))?);
    held.free(&[numbers]);
    Ok(Some(to))
}

/// A matrix of arrays, which belong to it from then on.
fn matrix<T: Scalar>(held: &mut Held, of: &SparseArrays) -> Result<Option<Owned<Matrix<T>>>> {
    let made = held.device().matrix_of::<T>(of)?;
    held.leave(&of.arrays());
    Ok(made)
}

/// The lines of levels and of the coarsest.
fn lines(made: &Made) -> Vec<Line> {
    let mut floating = 0;
    let mut lines: Vec<Line> = Vec::new();
    for level in &made.levels {
        let prolongator = Some((level.p.entries, level.choices.aggregates.isolated));
        lines.push(Line { rows: level.rows, entries: level.entries, floating, prolongator, by: "spai0" });
        floating = level.floating;
    }
    lines.extend(made.levels.last().map(|Level { coarse, .. }| Line {
        rows: coarse.shape.0,
        entries: coarse.entries,
        floating,
        prolongator: None,
        by: if made.coarsest.is_some() { "spai0" } else { "dense inverse" },
    }));
    lines
}
