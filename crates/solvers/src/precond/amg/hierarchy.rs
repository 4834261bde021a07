//! The levels of a hierarchy: made for a matrix, and for new values on its pattern.
use super::aggregates::{Aggregates, Aggregation};
use super::modes::Modes;
use super::regular::regular;
use super::report::{hardly_smaller, no_couplings, no_inverse, null_space, too_many_entries};
use super::rows::RowCouplings;
use super::stages::{Times, known_radius};
use super::strength::Filter;
use super::{Amg, AmgOptions, OPERATION};
use crate::precond::Setup;
use crate::precond::multigrid::{Smoother, inverse};
use lacuna_engine::{Double, Result};
use lacuna_formats::algebra::{GalerkinPlan, TransposePlan, galerkin_by_cells};
use lacuna_formats::{Csr, parallel};
use std::sync::Arc;

/// Part of the rows that a level may keep.
pub(super) const SHRINKS: f64 = 0.8;
/// Copies of the matrix of a level for which there is room before the next one is made.
const COPIES: usize = 3;
/// Levels at the most.
pub(super) const MOST_LEVELS: usize = 24;
/// Rows of the largest matrix whose dense inverse is taken where nothing coarser can be made.
pub(super) const MOST_DENSE: usize = 1024;

/// What the matrix of a level takes nearly to 0.
pub(super) enum NearNull<T> {
    /// A vector, constant where none is given.
    Vector(Option<Vec<T>>),
    /// Several, for a system with several unknowns a node.
    Modes(Modes<T>),
}

impl<T> NearNull<T> {
    /// Unknowns of a node, and of a coarse one.
    fn blocks(&self) -> [usize; 2] {
        match self {
            NearNull::Vector(_) => [1, 1],
            NearNull::Modes(modes) => [modes.block, modes.count],
        }
    }

    /// The vector, where there is one and it is not constant.
    pub(super) fn vector(&self) -> Option<&[T]> {
        match self {
            NearNull::Vector(vector) => vector.as_deref(),
            NearNull::Modes(_) => None,
        }
    }
}

/// A level that has a coarser one.
pub(super) struct Level<T: Double> {
    pub(super) smoother: Smoother<T>,
    pub(super) p: Arc<Csr<T>>,
    pub(super) r: Arc<Csr<T>>,
    /// `R A P`, the matrix of the next level.
    pub(super) coarse: Arc<Csr<T>>,
    /// Unknowns of that matrix that nothing determines: of parts that are singular by themselves.
    pub(super) floating: usize,
    /// Unknowns of a node here and on the next level.
    pub(super) blocks: [usize; 2],
    /// What depends on the pattern, and is kept for new values.
    pub(super) plan: Symbolic,
}

/// What is kept of a level for new values.
pub(super) struct Symbolic {
    filter: Filter,
    pub(super) aggregates: Aggregates,
    transpose: TransposePlan,
    /// Made when new values come for the first time.
    galerkin: Option<GalerkinPlan>,
}

/// What is done on the coarsest level.
pub(super) enum Coarsest<T: Double> {
    /// A dense inverse.
    Inverse(Arc<Csr<T>>),
    /// Smoothing, where the matrix is too large for that.
    Smoothed(Smoother<T>),
}

/// Levels, the finest first.
pub(super) struct Hierarchy<T: Double> {
    pub(super) levels: Vec<Level<T>>,
    pub(super) coarsest: Coarsest<T>,
    /// Whether the matrix is Hermitian.
    pub(super) hermitian: bool,
    /// What was done otherwise than asked, and why.
    pub(super) notes: Vec<String>,
    /// What was done so on the coarsest level.
    pub(super) coarsest_note: Option<String>,
    pub(super) times: Times,
    /// Twice the unit roundoff of the values as they were given.
    epsilon: f64,
}

impl<T: Double> Hierarchy<T> {
    /// From a matrix with the precision of its values, and what it takes nearly to 0.
    pub(super) fn new(
        amg: &AmgOptions,
        (a, epsilon): (&Csr<T>, f64),
        mut near_null: NearNull<T>,
        setup: &mut Setup<'_>,
    ) -> Result<Self> {
        let mut made = Hierarchy {
            levels: Vec::new(),
            coarsest: Coarsest::Inverse(Arc::new(Csr::identity(0)?)),
            hermitian: true,
            notes: Vec::new(),
            coarsest_note: None,
            times: Times::default(),
            epsilon,
        };
        let (mut last, mut entries) = (None::<Arc<Csr<T>>>, a.nnz());
        loop {
            let held = last.clone();
            let current = held.as_deref().unwrap_or(a);
            let (level, n) = (made.levels.len(), current.rows());
            setup.progress("levels", level, None)?;
            if n <= amg.coarsest || level == MOST_LEVELS {
                break made.finish(amg, current, None)?;
            }
            let known = (level > 0).then_some(made.hermitian);
            let rows = made.times.add("strength", || RowCouplings::of(current, known));
            rows.check_diagonal(OPERATION, level)?;
            made.hermitian = rows.hermitian;
            let Some((level, null)) = made.coarsen(amg, current, &rows, &near_null, setup)? else {
                break made.finish(amg, current, Some(rows))?;
            };
            entries += level.coarse.nnz();
            if entries as f64 > amg.complexity * a.nnz() as f64 {
                let times = entries as f64 / a.nnz() as f64;
                made.notes.push(too_many_entries(made.levels.len() + 1, times, amg.complexity));
                break made.finish(amg, current, Some(rows))?;
            }
            last = Some(level.coarse.clone());
            made.levels.push(level);
            near_null = null;
        }
        Ok(made)
    }

    /// A level over a coarser one, with what is nearly null there; nothing where it would not be much smaller.
    fn coarsen(
        &mut self,
        amg: &AmgOptions,
        a: &Csr<T>,
        rows: &RowCouplings<T>,
        near_null: &NearNull<T>,
        setup: &mut Setup<'_>,
    ) -> Result<Option<(Level<T>, NearNull<T>)>> {
        let (depth, epsilon) = (self.levels.len(), self.epsilon);
        setup.check_room(OPERATION, a, COPIES)?;
        // Nodes are aggregated where there are several unknowns a node.
        let (mut of_nodes, mut nodes) = (None, None);
        if let NearNull::Modes(modes) = near_null {
            let made = &*nodes.insert(self.times.add("strength", || modes.nodes(a))?);
            of_nodes = Some(self.times.add("strength", || RowCouplings::of(made, Some(rows.hermitian))));
        }
        let (units, of_units) = (nodes.as_ref().unwrap_or(a), of_nodes.as_ref().unwrap_or(rows));
        let (filter, graph) = self.times.strong(amg, units, of_units, depth)?;
        let filter = if nodes.is_some() { Filter::All } else { filter };
        let usual = if rows.hermitian { Aggregation::Greedy } else { Aggregation::Mis2 };
        let by = amg.aggregation.unwrap_or(usual);
        let (smoother, known) = self.times.smoother(amg, a, rows, None)?;
        let matrix = self.times.filtered((a, rows), &filter, near_null);
        setup.check()?;
        let (aggregates, rho) = self.times.add("aggregates and radius", || {
            let rho = || known_radius(&matrix, known);
            let algebra = setup.algebra();
            if by == Aggregation::Mis2 && algebra.is_for(graph.arrays().neighbours.len()) {
                return parallel::beside(|| Aggregates::by_device(units, of_units, &graph, algebra), rho);
            }
            // Greedy ones mostly keep one thread busy.
            parallel::both(a.nnz(), || Ok(Aggregates::new(units, of_units, &graph, by)), rho)
        });
        let aggregates = aggregates?;
        let kept = aggregates.count * near_null.blocks()[1];
        if aggregates.count == 0 {
            self.notes.push(no_couplings(depth));
            return Ok(None);
        }
        if kept as f64 > SHRINKS * a.rows() as f64 {
            self.notes.push(hardly_smaller(depth, kept, a.rows()));
            return Ok(None);
        }
        setup.check()?;
        let made = self.times.prolongator(amg, rows, (&matrix, rho?), &aggregates, near_null, None)?;
        setup.check()?;
        let p = made.p;
        let (transpose, r) = self.times.add("transpose", || {
            let transpose = TransposePlan::new(&p)?;
            let r = transpose.adjoint(&p)?;
            Ok::<_, lacuna_engine::Error>((transpose, r))
        })?;
        let blocks = near_null.blocks();
        let (coarse, floating) = self.times.add("product", || {
            let coarse = match setup.product(&[&r, a, &p])? {
                Some(coarse) => coarse,
                None => galerkin_by_cells(&r, a, &p, blocks)?,
            };
            regular((coarse, epsilon), &r, &rows.diagonal, blocks[1], &made.dependent)
        })?;
        let plan = Symbolic { filter, aggregates, transpose, galerkin: None };
        Ok(Some((
            Level {
                smoother,
                p: Arc::new(p),
                r: Arc::new(r),
                coarse: Arc::new(coarse),
                floating,
                blocks,
                plan,
            },
            made.near_null,
        )))
    }

    /// Decides what is done on the coarsest level, whose rows may have been looked at before.
    fn finish(&mut self, amg: &AmgOptions, a: &Csr<T>, rows: Option<RowCouplings<T>>) -> Result<()> {
        let known = (!self.levels.is_empty()).then_some(self.hermitian);
        let rows = match rows {
            Some(rows) => rows,
            None => self.times.add("strength", || RowCouplings::of(a, known)),
        };
        self.hermitian = rows.hermitian;
        self.coarsest_note = None;
        if a.rows() <= MOST_DENSE.max(amg.coarsest) {
            let (inverse, nullity) =
                self.times.add("coarsest", || inverse(Amg::NAME, (a, self.epsilon), self.hermitian))?;
            if nullity > 0 {
                self.coarsest_note = Some(null_space(nullity));
            }
            self.coarsest = Coarsest::Inverse(Arc::new(inverse));
        } else {
            rows.check_diagonal(OPERATION, self.levels.len())?;
            self.coarsest_note = Some(no_inverse(a.rows()));
            let former = match &self.coarsest {
                Coarsest::Smoothed(former) => Some(former),
                Coarsest::Inverse(_) => None,
            };
            self.coarsest = Coarsest::Smoothed(self.times.smoother(amg, a, &rows, former)?.0);
        }
        Ok(())
    }

    /// The same levels for new values of the matrix, with the aggregates and patterns that are there.
    pub(super) fn update(
        &mut self,
        amg: &AmgOptions,
        a: &Csr<T>,
        mut near_null: NearNull<T>,
        setup: &mut Setup<'_>,
    ) -> Result<()> {
        self.times = Times::default();
        let depths = self.levels.len();
        let mut last = None::<Arc<Csr<T>>>;
        for (depth, level) in self.levels.iter_mut().enumerate() {
            setup.progress("levels", depth, Some(depths))?;
            let current = last.as_deref().unwrap_or(a);
            let times = &mut self.times;
            let known = (depth > 0).then_some(self.hermitian);
            let rows = times.add("strength", || RowCouplings::of(current, known));
            rows.check_diagonal(OPERATION, depth)?;
            self.hermitian = rows.hermitian;
            let (smoother, known) = times.smoother(amg, current, &rows, Some(&level.smoother))?;
            level.smoother = smoother;
            let plan = &mut level.plan;
            let matrix = times.filtered((current, &rows), &plan.filter, &near_null);
            let rho = times.add("radius", || known_radius(&matrix, known))?;
            let former = Some(&*level.p);
            setup.check()?;
            let made = times.prolongator(amg, &rows, (&matrix, rho), &plan.aggregates, &near_null, former)?;
            let p = made.p;
            let r = times.add("transpose", || plan.transpose.adjoint(&p))?;
            setup.check()?;
            let coarse = times.add("product", || {
                match (setup.product(&[&r, current, &p])?, &plan.galerkin) {
                    (Some(coarse), _) => Ok(coarse),
                    // The device may hold what is there.
                    (None, Some(galerkin)) => {
                        let mut coarse = level.coarse.zeroed()?;
                        galerkin.multiply(&r, current, &p, &mut coarse).map(|()| coarse)
                    }
                    (None, None) => {
                        let (made, coarse) = GalerkinPlan::by_cells(&r, current, &p, level.blocks)?;
                        plan.galerkin = Some(made);
                        Ok(coarse)
                    }
                }
            })?;
            let (coarse, floating) =
                regular((coarse, self.epsilon), &r, &rows.diagonal, near_null.blocks()[1], &made.dependent)?;
            (level.p, level.r, level.coarse) = (Arc::new(p), Arc::new(r), Arc::new(coarse));
            level.floating = floating;
            near_null = made.near_null;
            last = Some(level.coarse.clone());
        }
        setup.progress("levels", depths, Some(depths))?;
        self.finish(amg, last.as_deref().unwrap_or(a), None)
    }
}
