//! A V-cycle over levels: its data on a device, and how it is recorded with the handles.
use super::cycle::{Task, cycle};
use super::smoother::{Smoother, Smoothing};
use crate::{Handles, Parts};
use lacuna_engine::{Format, Pass, Recorder, Scalar, Vector};
use lacuna_formats::{Csr, convert};
use std::sync::Arc;

/// What the recorded operations of a cycle depend on. Levels are added from the finest on, each with its
/// parts.
#[derive(Clone, Default, PartialEq, Eq)]
pub(in crate::precond) struct VCycle {
    /// The smoothers of all levels, the coarsest last; `None` if that level is solved by its inverse.
    smoothers: Vec<Option<Smoothing>>,
    /// Whether vectors of the cycle are in the narrower type.
    narrow: bool,
    /// Whether the finest matrix is among the parts, before all others.
    has_finest: bool,
}

impl VCycle {
    /// A cycle whose vectors are in the narrower type, with the finest matrix in a format for it.
    pub(in crate::precond) fn narrow<T: Scalar>(
        parts: Parts<T>,
        finest: Option<Arc<dyn Format<T>>>,
    ) -> (Self, Parts<T>) {
        let cycle = VCycle { smoothers: Vec::new(), narrow: true, has_finest: finest.is_some() };
        (cycle, finest.into_iter().fold(parts, Parts::shared_matrix))
    }

    fn vector<T: Scalar>(&self, parts: Parts<T>, numbers: Vec<T>) -> Parts<T> {
        if self.narrow { parts.narrow_vector(numbers) } else { parts.vector(numbers) }
    }

    fn scratch<T: Scalar>(&self, parts: Parts<T>, n: usize) -> Parts<T> {
        if self.narrow { parts.narrow_scratch(n) } else { parts.scratch(n) }
    }

    /// Adds a level above a coarser one, with the matrix of the coarser one unless that is inverted.
    pub(in crate::precond) fn level<T: Scalar>(
        &mut self,
        parts: Parts<T>,
        smoother: Smoother<T>,
        [r, p]: [Arc<dyn Format<T>>; 2],
        coarse: Option<Arc<dyn Format<T>>>,
    ) -> Parts<T> {
        self.smoothers.push(Some(smoother.kind));
        let (fine_rows, coarse_rows) = p.shape();
        let parts = self.vector(parts, smoother.diagonal).shared_matrix(r).shared_matrix(p);
        let parts = coarse.into_iter().fold(parts, Parts::shared_matrix);
        let work = if smoother.kind == Smoothing::Chebyshev { 3 } else { 2 };
        let rows = std::iter::repeat_n(fine_rows, work).chain([coarse_rows; 2]);
        rows.fold(parts, |parts, rows| self.scratch(parts, rows))
    }

    /// Adds the coarsest level, solved by the inverse of its matrix.
    pub(in crate::precond) fn solved<T: Scalar>(
        &mut self,
        parts: Parts<T>,
        inverse: Arc<dyn Format<T>>,
    ) -> Parts<T> {
        self.smoothers.push(None);
        parts.shared_matrix(inverse)
    }

    /// Adds the coarsest level, solved by smoothing.
    pub(in crate::precond) fn smoothed<T: Scalar>(
        &mut self,
        parts: Parts<T>,
        smoother: Smoother<T>,
    ) -> Parts<T> {
        self.smoothers.push(Some(smoother.kind));
        let n = smoother.diagonal.len();
        let parts = self.vector(parts, smoother.diagonal);
        self.scratch(parts, n)
    }

    /// Records `z ← M r` with `sweeps` smoothing steps before and after on each level, then `then`.
    pub(in crate::precond) fn record<T: Scalar>(
        &self,
        k: &mut Recorder<'_, T>,
        on: &Handles<T>,
        [r, z]: [Vector<T>; 2],
        sweeps: usize,
        then: Pass<T>,
    ) {
        cycle(k, &self.tasks(on), [r, z], sweeps, then);
    }

    /// The work on each level, with the handles it uses.
    fn tasks<T: Scalar>(&self, on: &Handles<T>) -> Vec<Task<T>> {
        let mut vectors = on.all_vectors().iter().copied();
        let mut matrices = on.all_matrices().iter().copied();
        let mut scratch = on.all_scratch().iter().copied();
        let mut a = if self.has_finest { matrices.next() } else { Some(on.a()) };
        // The lists have the lengths that the parts gave them.
        let mut make = |k: usize, smoothing: Option<Smoothing>| {
            let last = k + 1 == self.smoothers.len();
            let Some(smoothing) = smoothing else { return matrices.next().map(Task::Solve) };
            if last {
                return Some(Task::Smooth {
                    smoothing,
                    a: a.take()?,
                    w: vectors.next()?,
                    x: scratch.next()?,
                });
            }
            let (w, own, r, p) = (vectors.next()?, a.take()?, matrices.next()?, matrices.next()?);
            if k + 2 < self.smoothers.len() || self.smoothers[k + 1].is_some() {
                a = matrices.next();
            }
            let (x, t) = (scratch.next()?, scratch.next()?);
            let d = if smoothing == Smoothing::Chebyshev { scratch.next()? } else { t };
            let next = [scratch.next()?, scratch.next()?];
            Some(Task::Correct { smoothing, matrices: [own, r, p], w, work: [x, t, d], next })
        };
        self.smoothers.iter().enumerate().filter_map(|(k, smoothing)| make(k, *smoothing)).collect()
    }
}

/// The matrix in the first of the given formats that accepts it, otherwise in `csr`.
pub(in crate::precond) fn stored<T: Scalar>(a: &Arc<Csr<T>>, formats: &[&str]) -> Arc<dyn Format<T>> {
    formats.iter().find_map(|format| convert(a, format).ok()).unwrap_or_else(|| a.clone())
}
