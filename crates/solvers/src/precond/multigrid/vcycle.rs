//! A V-cycle over levels: its data on a device, and how it is recorded with the handles.
use super::cycle::{Task, Weights, cycle};
use super::smoother::{Diagonal, Smoother, Smoothing};
use crate::{Handles, Parts};
use lacuna_engine::{Basis, Format, Matrix, Owned, Pass, Recorder, Scalar, Vector};
use std::sync::Arc;

/// What the recorded operations of a cycle depend on. Levels are added from the finest on, each with its
/// parts.
#[derive(Clone, Default, PartialEq, Eq)]
pub(in crate::precond) struct VCycle {
    /// The smoothers of all levels, the coarsest last, and whether the diagonal matrix of each is a multiple of
    /// the identity; `None` if that level is solved by its inverse.
    smoothers: Vec<Option<(Smoothing, bool)>>,
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

    /// Adds the smoother of a level.
    fn smoother<T: Scalar>(&mut self, parts: Parts<T>, smoother: Smoother<T>) -> Parts<T> {
        let is_multiple = matches!(smoother.diagonal, Diagonal::All(_));
        self.smoothers.push(Some((smoother.kind, is_multiple)));
        match smoother.diagonal {
            Diagonal::All(number) => parts.number(number),
            Diagonal::Each(numbers) if self.narrow => parts.narrow_vector(numbers),
            Diagonal::Each(numbers) => parts.vector(numbers),
        }
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
        let (fine_rows, coarse_rows) = p.shape();
        let parts = self.smoother(parts, smoother).shared_matrix(r).shared_matrix(p);
        let parts = coarse.into_iter().fold(parts, Parts::shared_matrix);
        let rows = [fine_rows, fine_rows, coarse_rows, coarse_rows];
        rows.into_iter().fold(parts, |parts, rows| self.scratch(parts, rows))
    }

    /// Adds a level of these rows, smoothed by SPAI(0), whose parts are on the device already: the weights, `R` and `P`, and the
    /// matrix of the coarser level unless that is inverted; each `None` where it was there before.
    pub(in crate::precond) fn level_there<T: Scalar>(
        &mut self,
        parts: Parts<T>,
        weights: Option<Owned<Vector<T>>>,
        between: [Option<Owned<Matrix<T>>>; 2],
        coarse: Option<Option<Owned<Matrix<T>>>>,
        [fine_rows, coarse_rows]: [usize; 2],
    ) -> Parts<T> {
        let parts = self.smoother_there(parts, weights);
        let parts = between.into_iter().chain(coarse).fold(parts, Parts::matrix_there);
        let rows = [fine_rows, fine_rows, coarse_rows, coarse_rows];
        rows.into_iter().fold(parts, |parts, rows| self.scratch(parts, rows))
    }

    /// Adds the coarsest level of `n` rows, smoothed by SPAI(0) with weights that are on the device already: `None` where they were
    /// there before.
    pub(in crate::precond) fn smoothed_there<T: Scalar>(
        &mut self,
        parts: Parts<T>,
        n: usize,
        weights: Option<Owned<Vector<T>>>,
    ) -> Parts<T> {
        let parts = self.smoother_there(parts, weights);
        self.scratch(parts, n)
    }

    fn smoother_there<T: Scalar>(&mut self, parts: Parts<T>, weights: Option<Owned<Vector<T>>>) -> Parts<T> {
        self.smoothers.push(Some((Smoothing::Spai0, false)));
        parts.vector_there(weights)
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

    /// Adds the coarsest level of `n` rows, solved by smoothing.
    pub(in crate::precond) fn smoothed<T: Scalar>(
        &mut self,
        parts: Parts<T>,
        n: usize,
        smoother: Smoother<T>,
    ) -> Parts<T> {
        let parts = self.smoother(parts, smoother);
        self.scratch(parts, n)
    }

    /// Records `z ← M r` with `sweeps` smoothing steps before and after on each level but the coarsest, then `then`.
    pub(in crate::precond) fn record<T: Scalar>(
        &self,
        k: &mut Recorder<'_, T>,
        on: &Handles<T>,
        [r, z]: [Vector<T>; 2],
        sweeps: usize,
        then: Pass<T>,
    ) {
        let work: Vec<Basis<T>> = on.all_scratch().iter().map(|v| v.alone()).collect();
        cycle(k, &self.tasks(on, &work), [r.alone(), z.alone()], sweeps, Some(then));
    }

    /// Whether [`VCycle::record_columns`] works: no kernel for several columns takes narrow ones.
    pub(in crate::precond) fn takes_columns(&self) -> bool {
        !self.narrow
    }
    /// Records `Z ← M R` for several columns, with as many columns in each basis of `work`, of which there is one for each work vector.
    pub(in crate::precond) fn record_columns<T: Scalar>(
        &self,
        k: &mut Recorder<'_, T>,
        (on, work): (&Handles<T>, &[Basis<T>]),
        [r, z]: [Basis<T>; 2],
        sweeps: usize,
    ) {
        cycle(k, &self.tasks(on, work), [r, z], sweeps, None);
    }

    /// The work on each level, with the handles it uses.
    fn tasks<T: Scalar>(&self, on: &Handles<T>, work: &[Basis<T>]) -> Vec<Task<T>> {
        let mut vectors = on.all_vectors().iter().copied();
        let mut numbers = on.all_numbers().iter().copied();
        let mut matrices = on.all_matrices().iter().copied();
        let mut scratch = work.iter().copied();
        let mut a = if self.has_finest { matrices.next() } else { Some(on.a()) };
        // The lists have the lengths that the parts gave them.
        let mut make = |k: usize, smoother: Option<(Smoothing, bool)>| {
            let last = k + 1 == self.smoothers.len();
            let Some((smoothing, is_multiple)) = smoother else { return matrices.next().map(Task::Solve) };
            let w = match is_multiple {
                true => Weights::All(numbers.next()?),
                false => Weights::Each(vectors.next()?),
            };
            if last {
                return Some(Task::SmoothCoarsest { smoothing, a: a.take()?, w, x: scratch.next()? });
            }
            let matrices_of = [a.take()?, matrices.next()?, matrices.next()?];
            if k + 2 < self.smoothers.len() || self.smoothers[k + 1].is_some() {
                a = matrices.next();
            }
            let (work, next) = ([scratch.next()?, scratch.next()?], [scratch.next()?, scratch.next()?]);
            Some(Task::Correct { smoothing, matrices: matrices_of, w, work, next })
        };
        self.smoothers.iter().enumerate().filter_map(|(k, smoother)| make(k, *smoother)).collect()
    }
}
