//! LU factors of the blocks of a matrix, each by columns or by fronts.
use crate::arrangement::{Arrangement, is_weak};
use crate::columns::Columns;
use crate::cost::{Cost, Limits};
use crate::failure::failed;
use crate::fronts::{Fronts, Tree};
use crate::sparse::{Elimination, Sparse};
use crate::{Check, Number};
use lacuna_engine::Result;
use lacuna_formats::Csr;
use std::ops::Range;
use std::sync::Arc;

/// Operations for each entry from which fronts pay, and where they need the matching by weights first.
const DENSE: f64 = 20.0;
const DENSE_IF_WEAK: f64 = 50.0;
/// Rows from which fronts pay.
const LARGE: usize = 200;
/// Seconds of an elimination by columns: for an operation, an entry of the factors, and an entry of the matrix.
const BY_COLUMNS: [f64; 3] = [4.5e-10, 1.7e-8, 3e-9];
/// The time of complex factors over that of real ones.
const COMPLEX: f64 = 3.0;

/// How a matrix is factored.
#[derive(Debug)]
pub(crate) struct LuPlan {
    arrangement: Arrangement,
    /// The blocks that are factored by fronts.
    trees: Vec<(Range<usize>, Arc<Tree>)>,
    pub(crate) cost: Cost,
}

impl LuPlan {
    pub(crate) fn of<W: Number>(a: &Csr<W>, within: f64) -> Result<Option<Self>> {
        let is_weak = is_weak(a);
        let limit = if is_weak { DENSE_IF_WEAK } else { DENSE };
        let Some(mut arrangement) = Arrangement::structural(a, within)? else { return Ok(None) };
        // Any entries stand in place of zeros on the diagonal until they are matched by weights.
        let has_zeros = || a.diagonal().iter().any(|d| *d == W::zero());
        let enough = |limit: f64| dense(&arrangement, limit).next().is_some();
        if is_weak && (enough(limit) || enough(DENSE) && has_zeros()) {
            let Some(weighted) = Arrangement::weighted(a, within)? else { return Ok(None) };
            arrangement = weighted;
        }
        let blocks: Vec<Range<usize>> = dense(&arrangement, limit).collect();
        let mut trees = Vec::new();
        if !blocks.is_empty() {
            let columns = arrangement.columns(a)?;
            for block in blocks {
                trees.push((block.clone(), Arc::new(Tree::of(&columns, block)?)));
            }
        }
        let cost = cost(a, &arrangement, &trees);
        Ok(Some(LuPlan { arrangement, trees, cost }))
    }

    /// The blocks, and whether each is factored by fronts.
    fn blocks(&self) -> impl Iterator<Item = (Range<usize>, bool)> + '_ {
        let mut by_fronts = self.trees.iter().map(|(block, _)| block).peekable();
        self.arrangement.borders.windows(2).map(move |w| {
            let block = w[0]..w[1];
            let by_fronts = by_fronts.next_if(|other| **other == block).is_some();
            (block, by_fronts)
        })
    }

    /// Whether some block is factored by fronts.
    pub(crate) fn has_fronts(&self) -> bool {
        !self.trees.is_empty()
    }
}

/// The blocks in which dense parts pay.
fn dense(arrangement: &Arrangement, limit: f64) -> impl Iterator<Item = Range<usize>> + '_ {
    let pays = move |(block, count): &(Range<usize>, crate::cost::Count)| {
        block.len() >= LARGE && count.density() >= limit
    };
    arrangement.blocks().filter(pays).map(|(block, _)| block)
}

fn cost<W: Number>(a: &Csr<W>, arrangement: &Arrangement, trees: &[(Range<usize>, Arc<Tree>)]) -> Cost {
    let [operation, entry, of_matrix] = BY_COLUMNS;
    let mut cost = Cost { seconds: of_matrix * a.nnz() as f64, ..Cost::default() };
    let mut passed_on = 0.0;
    for (_, tree) in trees {
        cost.entries += tree.count.entries;
        cost.operations += tree.count.operations;
        cost.seconds += tree.total;
        passed_on += tree.passed_on;
    }
    for (_, count) in arrangement.blocks().filter(|(block, _)| trees.iter().all(|(other, _)| other != block))
    {
        cost.entries += count.entries;
        cost.operations += count.operations;
        cost.seconds += operation * count.operations + entry * count.entries;
    }
    let size = if W::KIND.is_complex() { 16.0 } else { 8.0 };
    cost.bytes = (cost.entries + passed_on) * size;
    if W::KIND.is_complex() {
        cost.seconds *= COMPLEX;
    }
    cost
}

/// Factors of the blocks.
pub(crate) struct BlockLu<W> {
    plan: LuPlan,
    sparse: Sparse<W>,
    /// The place whose row is eliminated at each step.
    place_of: Vec<u32>,
    fronts: Vec<(Range<usize>, Fronts<W>)>,
}

impl<W: Number> BlockLu<W> {
    pub(crate) fn new(a: &Csr<W>, plan: LuPlan, limits: &Limits, check: Check<'_>) -> Result<Self> {
        let columns = plan.arrangement.columns(a)?;
        let fronts = by_fronts(&plan, &columns, &mut *check)?;
        let sparse = by_columns(&plan, &columns, limits, check)?;
        let place_of = by_step(&sparse.step_of);
        Ok(BlockLu { plan, sparse, place_of, fronts })
    }

    /// Factors a matrix of the same pattern in the same order, and by columns with the same pivots if they are large enough.
    pub(crate) fn renew(&mut self, a: &Csr<W>, limits: &Limits, check: Check<'_>) -> Result<()> {
        self.plan.arrangement.rescale(a)?;
        let columns = self.plan.arrangement.columns(a)?;
        let former = self.replaced();
        self.fronts = by_fronts(&self.plan, &columns, &mut *check)?;
        if !self.sparse.renew(&columns, self.plan.blocks(), &mut *check)? {
            self.sparse = by_columns(&self.plan, &columns, limits, check)?;
            self.place_of = by_step(&self.sparse.step_of);
        }
        match self.replaced() > former {
            true => Err(failed("more pivots are small than with the former values")),
            false => Ok(()),
        }
    }

    /// How many pivots were replaced.
    pub(crate) fn replaced(&self) -> usize {
        self.fronts.iter().map(|(_, fronts)| fronts.replaced).sum()
    }

    /// Entries of the factors.
    pub(crate) fn entries(&self) -> usize {
        let Sparse { l, u, pivots, above, .. } = &self.sparse;
        let by_columns = l.rows.len() + u.rows.len() + pivots.len() + above.rows.len();
        by_columns + self.fronts.iter().map(|(_, fronts)| fronts.entries()).sum::<usize>()
    }

    /// How many blocks there are.
    pub(crate) fn blocks(&self) -> usize {
        self.plan.arrangement.borders.len().saturating_sub(1)
    }

    /// `x ← A⁻¹ x`. What was factored is the transpose of `A`.
    pub(crate) fn solve(&self, x: &mut [W]) {
        let order = &self.plan.arrangement;
        let mut y: Vec<W> = order
            .rows
            .iter()
            .map(|&i| x[i as usize].scale_by_power_of_two(order.row_scales[i as usize]))
            .collect();
        let mut fronts = self.fronts.iter().peekable();
        for w in order.borders.windows(2) {
            let block = w[0]..w[1];
            if w[0] > 0 {
                for k in block.clone() {
                    let sum = self.sparse.above.dot(k, &y);
                    y[k] -= sum;
                }
            }
            match fronts.next_if(|(range, _)| *range == block) {
                Some((_, fronts)) => fronts.solve_transposed(&mut y[block]),
                None => self.sparse.solve_transposed(block, &mut y),
            }
        }
        for (k, v) in y.into_iter().enumerate() {
            let j = order.columns[self.place_of[k] as usize] as usize;
            x[j] = v.scale_by_power_of_two(order.column_scales[j]);
        }
    }

    /// `x ← A⁻ᵀ x`
    pub(crate) fn solve_transposed(&self, x: &mut [W]) {
        let order = &self.plan.arrangement;
        let from = |&place: &u32| {
            let j = order.columns[place as usize] as usize;
            x[j].scale_by_power_of_two(order.column_scales[j])
        };
        let mut y: Vec<W> = self.place_of.iter().map(from).collect();
        let mut fronts = self.fronts.iter().rev().peekable();
        for w in order.borders.windows(2).rev() {
            let block = w[0]..w[1];
            match fronts.next_if(|(range, _)| *range == block) {
                Some((_, fronts)) => fronts.solve(&mut y[block.clone()]),
                None => self.sparse.solve(block.clone(), &mut y),
            }
            for k in block.filter(|_| w[0] > 0) {
                let v = y[k];
                self.sparse.above.entries(k).for_each(|(i, u)| y[i] -= u * v);
            }
        }
        for (k, v) in y.into_iter().enumerate() {
            let i = order.rows[k] as usize;
            x[i] = v.scale_by_power_of_two(order.row_scales[i]);
        }
    }
}

/// The place whose row is eliminated at each step.
fn by_step(step_of: &[u32]) -> Vec<u32> {
    let mut place_of = vec![0; step_of.len()];
    step_of.iter().enumerate().for_each(|(place, step)| place_of[*step as usize] = place as u32);
    place_of
}

type OfBlocks<W> = Vec<(Range<usize>, Fronts<W>)>;

fn by_fronts<W: Number>(plan: &LuPlan, columns: &Columns<W>, check: Check<'_>) -> Result<OfBlocks<W>> {
    let mut fronts = Vec::new();
    if plan.has_fronts() {
        let rows = columns.transposed()?;
        for (block, tree) in &plan.trees {
            let made = Fronts::new(Arc::clone(tree), columns, &rows, block.clone(), check)?;
            fronts.push((block.clone(), made));
        }
    }
    Ok(fronts)
}

fn by_columns<W: Number>(
    plan: &LuPlan,
    columns: &Columns<W>,
    limits: &Limits,
    check: Check<'_>,
) -> Result<Sparse<W>> {
    let mut elimination = Elimination::new(columns, limits, check)?;
    for (block, by_fronts) in plan.blocks() {
        match by_fronts {
            true => elimination.skip(block)?,
            false => elimination.block(block)?,
        }
    }
    Ok(elimination.finish())
}
