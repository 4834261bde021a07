//! The levels, from the finest on.
use super::super::AmgOptions;
use super::super::hierarchy::{MOST_DENSE, MOST_LEVELS, SHRINKS};
use super::super::report::{hardly_smaller, no_couplings, no_inverse, too_many_entries};
use super::super::stages::{STEPS, STEPS_FOR_SMOOTHER, Times, damping, may_amplify, omega};
use super::super::strength::{below_median, first_threshold, mostly_above};
use super::held::{Held, radius};
use crate::precond::Setup;
use lacuna_engine::{
    AggregateArrays, Algebra, Array, FilteredArrays, Look, Result, SparseArrays, StrongArrays,
};

/// A level over a coarser one.
pub(super) struct Level {
    pub(super) rows: usize,
    pub(super) entries: usize,
    /// Of its smoother.
    pub(super) weights: Array,
    pub(super) p: SparseArrays,
    pub(super) r: SparseArrays,
    /// `R A P`
    pub(super) coarse: SparseArrays,
    /// Unknowns of that matrix that nothing determines.
    pub(super) floating: usize,
    pub(super) choices: Choices,
}

/// What is kept of a level for new values.
#[derive(Clone, Copy)]
pub(super) struct Choices {
    /// See [`StrongArrays::marks`].
    pub(super) marks: Option<Array>,
    pub(super) aggregates: AggregateArrays,
}

impl Choices {
    pub(super) fn arrays(&self) -> impl Iterator<Item = Array> {
        self.marks.into_iter().chain([self.aggregates.labels])
    }
}

/// All levels.
pub(super) struct Made {
    pub(super) levels: Vec<Level>,
    /// The weights of the coarsest level's smoother, where its matrix is too large for an inverse.
    pub(super) coarsest: Option<Array>,
    /// Why there are no more levels, where more were wanted.
    pub(super) notes: Vec<String>,
    /// What is done otherwise on the coarsest level.
    pub(super) coarsest_note: Option<String>,
    pub(super) times: Times,
}

/// What follows a level.
enum Next {
    /// Itself with a coarser one, and the norms of the near-null vector there.
    Level(Level, Array),
    /// None: why.
    Nothing(String),
}

/// What levels are made by: the options, with the precision of the values as they were given, and the choices of an earlier set-up,
/// if there was one.
#[derive(Clone, Copy)]
pub(super) struct By<'a> {
    pub(super) amg: &'a AmgOptions,
    pub(super) epsilon: f64,
    pub(super) known: Option<&'a [Choices]>,
}

/// A set-up at work on a device.
pub(super) struct Work<'w> {
    held: &'w mut Held,
    times: Times,
}

impl<'w> Work<'w> {
    pub(super) fn new(held: &'w mut Held) -> Self {
        Work { held, times: Times::default() }
    }

    /// An operation of the device, timed.
    fn ask<R>(
        &mut self,
        part: &'static str,
        work: impl FnOnce(&mut dyn Algebra) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        let held = &*self.held;
        self.times.add(part, || held.ask(work))
    }

    /// All levels over the finest matrix.
    pub(super) fn levels(
        mut self,
        by: By<'_>,
        finest: SparseArrays,
        setup: &mut Setup<'_>,
    ) -> Result<Option<Made>> {
        let (mut levels, mut notes) = (Vec::new(), Vec::new());
        let (mut current, mut near_null, mut entries) = (finest, None, finest.entries);
        let (looked, coarsest) = loop {
            let (depth, n) = (levels.len(), current.shape.0);
            setup.progress("levels", depth, by.known.map(<[Choices]>::len))?;
            let ends = match by.known {
                Some(known) => depth == known.len(),
                None => n <= by.amg.coarsest || depth == MOST_LEVELS,
            };
            if ends {
                break (None, current);
            }
            let look = or_host!(self.look(by, depth, &current)?);
            let (level, norms) = match or_host!(self.next(by, depth, (&current, &look), near_null)?) {
                Next::Level(level, norms) => (level, norms),
                Next::Nothing(why) => {
                    notes.push(why);
                    break (Some(look), current);
                }
            };
            entries += level.coarse.entries;
            let times = entries as f64 / finest.entries as f64;
            if times > by.amg.complexity {
                notes.push(too_many_entries(depth + 1, times, by.amg.complexity));
                break (Some(look), current);
            }
            self.held.free(&look.rows.arrays());
            (current, near_null) = (level.coarse, Some(norms));
            levels.push(level);
        };
        let n = coarsest.shape.0;
        let weights = if n > MOST_DENSE.max(by.amg.coarsest) {
            let look = match looked {
                Some(look) => look,
                None => or_host!(self.look(by, levels.len(), &coarsest)?),
            };
            Some(or_host!(self.weights(&coarsest, &look)?))
        } else {
            None
        };
        let coarsest_note = weights.is_some().then(|| no_inverse(n));
        Ok(Some(Made { levels, coarsest: weights, notes, coarsest_note, times: self.times }))
    }

    /// Looks at the rows of a level; `None` unless a device goes on with it.
    fn look(&mut self, by: By<'_>, depth: usize, a: &SparseArrays) -> Result<Option<Look>> {
        let first = first_threshold(by.amg.threshold(), depth);
        let known = (depth > 0).then_some(true);
        let look = or_host!(self.ask("strength", |algebra| algebra.look(a, known, 2.0 * first).map(Some))?);
        self.held.keep(&look.rows.arrays());
        Ok((look.hermitian && look.without_diagonal.is_none()).then_some(look))
    }

    /// The couplings of a level that are strong.
    fn strong(
        &mut self,
        by: By<'_>,
        depth: usize,
        (a, look): (&SparseArrays, &Look),
    ) -> Result<Option<StrongArrays>> {
        let (n, first) = (a.shape.0, first_threshold(by.amg.threshold(), depth));
        let threshold = if mostly_above(first, look.coupled, n) {
            first
        } else {
            let strongest = |algebra: &mut dyn Algebra| algebra.reals(look.rows.strongest, n).map(Some);
            below_median(first, or_host!(self.ask("strength", strongest)?))
        };
        let all = look.weakest > threshold;
        let of = |algebra: &mut dyn Algebra| algebra.strong(a, &look.rows, threshold, all);
        let strong = or_host!(self.ask("strength", of)?);
        if let Some(marks) = strong.marks {
            self.held.keep(&strong.graph);
            self.held.keep(&[marks]);
        }
        Ok(Some(strong))
    }

    /// The spectral radius of a filtered matrix.
    fn radius(&mut self, a: &SparseArrays, matrix: &FilteredArrays, steps: usize) -> Result<f64> {
        let held = &mut *self.held;
        self.times.add("radius", || radius(held, a, matrix, steps))
    }

    /// The weights of a level's smoother, damped such that it converges.
    fn weights(&mut self, a: &SparseArrays, look: &Look) -> Result<Option<Array>> {
        let (n, rows) = (a.shape.0, look.rows);
        let mut damped = 1.0;
        if may_amplify(look.spai_norm) {
            let whole = or_host!(self.ask("radius", |algebra| algebra.smoothed(a, &rows).map(Some))?);
            self.held.keep(&[whole.by]);
            let rho = self.radius(a, &whole, STEPS_FOR_SMOOTHER)?;
            damped = damping(rho, look.spai_norm);
            self.held.free(&[whole.by]);
        }
        let of = |algebra: &mut dyn Algebra| algebra.scaled(n, rows.spai, damped).map(Some);
        let weights = or_host!(self.ask("smoother", of)?);
        self.held.keep(&[weights]);
        Ok(Some(weights))
    }

    /// A level over a coarser one.
    fn next(
        &mut self,
        by: By<'_>,
        depth: usize,
        (a, look): (&SparseArrays, &Look),
        near_null: Option<Array>,
    ) -> Result<Option<Next>> {
        let (n, rows, known) = (a.shape.0, look.rows, by.known.map(|known| known[depth]));
        let strong = match known {
            Some(Choices { marks, .. }) => {
                StrongArrays { marks, graph: [a.row_ptr, a.columns], edges: a.entries }
            }
            None => or_host!(self.strong(by, depth, (a, look))?),
        };
        let weights = or_host!(self.weights(a, look)?);
        let of = |algebra: &mut dyn Algebra| algebra.filtered(a, &rows, strong.marks, near_null).map(Some);
        let matrix = or_host!(self.ask("filter", of)?);
        if strong.marks.is_some() {
            self.held.keep(&[matrix.lumped, matrix.by]);
        }
        let aggregates = match known {
            Some(choices) => choices.aggregates,
            None => {
                let of = |algebra: &mut dyn Algebra| algebra.aggregates(a, &rows, &strong);
                let made = or_host!(self.ask("aggregates", of)?);
                self.held.keep(&[made.labels]);
                made
            }
        };
        if aggregates.count == 0 {
            return Ok(Some(Next::Nothing(no_couplings(depth))));
        }
        if aggregates.count as f64 > SHRINKS * n as f64 {
            return Ok(Some(Next::Nothing(hardly_smaller(depth, aggregates.count, n))));
        }
        let omega = omega(by.amg, self.radius(a, &matrix, STEPS)?);
        let of = |algebra: &mut dyn Algebra| algebra.prolongator(a, &matrix, &aggregates, near_null, omega);
        let (p, norms) = or_host!(self.ask("prolongator", of)?);
        self.held.keep(&p.arrays());
        self.held.keep(&[norms]);
        if strong.marks.is_some() {
            self.held.free(&[matrix.lumped, matrix.by]);
            if known.is_none() {
                self.held.free(&strong.graph);
            }
        }
        let r = or_host!(self.ask("transpose", |algebra| algebra.adjoint(&p))?);
        self.held.keep(&r.arrays());
        let coarse = or_host!(self.ask("product", |algebra| algebra.product(&[&r, a, &p]))?);
        self.held.keep(&coarse.arrays());
        let of =
            |algebra: &mut dyn Algebra| algebra.regular(&coarse, &r, rows.diagonal, by.epsilon).map(Some);
        let floating = or_host!(self.ask("product", of)?);
        let choices = Choices { marks: strong.marks, aggregates };
        let level = Level { rows: n, entries: a.entries, weights, p, r, coarse, floating, choices };
        Ok(Some(Next::Level(level, norms)))
    }
}
