//! Aggregates of rows, which become the rows of the next level.
use super::mis::{distance_two_set, priorities};
use super::rows::{RowCouplings, coupling};
use super::strength::Graph;
use crate::precond::SparseAlgebra;
use lacuna_engine::{Double, Result};
use lacuna_formats::{Csr, parallel};

/// In no aggregate.
pub(super) const NONE: u32 = u32::MAX;
/// Rows of an aggregate at the least, where there is another to join.
const LEAST: u32 = 3;
/// Rows that a thread takes at a time.
const GRAIN: usize = 1 << 11;

/// How rows are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// Around the rows of a maximal set at distance three and more, in parallel.
    Mis2,
    /// One after the other in the order of rows (Vaněk, Mandel and Brezina 1996, doi:10.1007/BF02238511), founded
    /// by one thread: smaller aggregates and, for Hermitian matrices, fewer iterations.
    Greedy,
}

/// The aggregate of each row, or [`NONE`], and how many there are.
pub(super) struct Aggregates {
    pub(super) of: Vec<u32>,
    pub(super) count: usize,
}

impl Aggregates {
    /// Aggregates by strong couplings. Rows without any are in none.
    pub(super) fn new<T: Double>(
        a: &Csr<T>,
        rows: &RowCouplings<T>,
        graph: &Graph<'_>,
        by: Aggregation,
    ) -> Self {
        match by {
            Aggregation::Mis2 => around(&distance_two_set(graph, priorities(graph)), a, rows, graph),
            Aggregation::Greedy => greedy(a, rows, graph),
        }
    }

    /// Those of [`Aggregation::Mis2`], whose roots a device finds.
    ///
    /// # Errors
    /// Device failures.
    pub(super) fn by_device<T: Double>(
        a: &Csr<T>,
        rows: &RowCouplings<T>,
        graph: &Graph<'_>,
        device: &mut dyn SparseAlgebra,
    ) -> Result<Self> {
        let priorities = priorities(graph);
        let roots = device.distance_two_set(graph.arrays(), &priorities)?;
        let roots = roots.unwrap_or_else(|| distance_two_set(graph, priorities));
        Ok(around(&roots, a, rows, graph))
    }

    /// Rows in no aggregate.
    pub(super) fn isolated(&self) -> usize {
        parallel::count(self.of.len(), GRAIN, |i| self.of[i] == NONE)
    }

    fn sizes(&self) -> Vec<u32> {
        let mut sizes = vec![0; self.count];
        self.of.iter().filter(|label| **label != NONE).for_each(|label| sizes[*label as usize] += 1);
        sizes
    }
}

/// The strongest of the neighbours of row `i` for which `f` holds: that of the smaller column where two are as strong.
fn strongest<T: Double>(
    a: &Csr<T>,
    rows: &RowCouplings<T>,
    graph: &Graph<'_>,
    i: usize,
    f: impl Fn(usize) -> bool,
) -> Option<(f64, usize)> {
    let of = |j: usize| {
        let by =
            |i: usize, j: usize| coupling(a.get(i, j).unwrap_or(T::zero()), rows.scale[i], rows.scale[j]);
        if rows.hermitian { by(i, j) } else { by(i, j).max(by(j, i)) }
    };
    let near = graph.of(i).iter().map(|&j| j as usize).filter(|&j| j != i && f(j));
    near.map(|j| (of(j), j)).fold(None, |best, next| match best {
        Some((s, _)) if next.0 <= s => best,
        _ => Some(next),
    })
}

/// A root takes its neighbours, and what is left joins the aggregate it is coupled with most strongly.
fn around<T: Double>(roots: &[u32], a: &Csr<T>, rows: &RowCouplings<T>, graph: &Graph<'_>) -> Aggregates {
    let mut label = vec![NONE; graph.len()];
    roots.iter().zip(0..).for_each(|(&root, k)| label[root as usize] = k);
    let near = parallel::collect(graph.len(), GRAIN, |i| match label[i] {
        NONE => graph.of(i).iter().map(|&j| label[j as usize]).find(|k| *k != NONE).unwrap_or(NONE),
        own => own,
    });
    let mut all = Aggregates { of: near, count: roots.len() };
    join_the_rest(a, rows, graph, &mut all);
    merge_small(a, rows, graph, &mut all);
    all
}

/// Rows that are in no aggregate join that of their strongest neighbour, by rounds that read the labels of the round before.
fn join_the_rest<T: Double>(a: &Csr<T>, rows: &RowCouplings<T>, graph: &Graph<'_>, all: &mut Aggregates) {
    loop {
        let label = &all.of;
        let join = |i: usize| {
            if label[i] != NONE {
                return None;
            }
            let (_, j) = strongest(a, rows, graph, i, |j| label[j] != NONE)?;
            Some((i as u32, label[j]))
        };
        let runs = parallel::ranges(label.len(), GRAIN);
        let joined = parallel::map(runs, |run| run.filter_map(join).collect::<Vec<_>>());
        let mut any = false;
        for (i, k) in joined.into_iter().flatten() {
            all.of[i as usize] = k;
            any = true;
        }
        if !any {
            return;
        }
    }
}

/// Aggregates of few rows merge into the neighbour of enough rows that they are coupled with most strongly.
fn merge_small<T: Double>(a: &Csr<T>, rows: &RowCouplings<T>, graph: &Graph<'_>, all: &mut Aggregates) {
    let sizes = all.sizes();
    if sizes.iter().all(|size| *size >= LEAST) {
        return;
    }
    let large = |label: u32| label != NONE && sizes[label as usize] >= LEAST;
    let mut into: Vec<Option<(f64, u32)>> = vec![None; all.count];
    for i in (0..all.of.len()).filter(|&i| all.of[i] != NONE && !large(all.of[i])) {
        let best = strongest(a, rows, graph, i, |j| large(all.of[j]));
        let known = &mut into[all.of[i] as usize];
        if let Some((s, j)) = best
            && known.is_none_or(|(strength, _)| s > strength)
        {
            *known = Some((s, all.of[j]));
        }
    }
    let mut number = vec![NONE; all.count];
    let mut count = 0;
    for (k, number) in number.iter_mut().enumerate().filter(|(k, _)| into[*k].is_none()) {
        debug_assert!(sizes[k] > 0, "an aggregate without rows");
        *number = count;
        count += 1;
    }
    let renamed = |k: u32| number[into[k as usize].map_or(k, |(_, other)| other) as usize];
    parallel::for_each(all.of.chunks_mut(GRAIN), |labels| {
        labels.iter_mut().filter(|k| **k != NONE).for_each(|k| *k = renamed(*k));
    });
    all.count = count as usize;
}

/// A row none of whose neighbours is taken founds an aggregate of them all; the rest joins, and what is then left founds more.
fn greedy<T: Double>(a: &Csr<T>, rows: &RowCouplings<T>, graph: &Graph<'_>) -> Aggregates {
    let n = graph.len();
    let mut all = Aggregates { of: vec![NONE; n], count: 0 };
    // Takes those of a row and its neighbours that are free.
    let found = |all: &mut Aggregates, i: usize| {
        for j in graph.of(i).iter().map(|&j| j as usize).chain([i]) {
            if all.of[j] == NONE {
                all.of[j] = all.count as u32;
            }
        }
        all.count += 1;
    };
    let isolated = parallel::collect(n, GRAIN, |i| graph.is_isolated(i));
    for i in (0..n).filter(|&i| !isolated[i]) {
        if all.of[i] == NONE && graph.of(i).iter().all(|&j| all.of[j as usize] == NONE) {
            found(&mut all, i);
        }
    }
    let founded = std::mem::take(&mut all.of);
    all.of = parallel::collect(n, GRAIN, |i| match founded[i] {
        NONE if !isolated[i] => {
            strongest(a, rows, graph, i, |j| founded[j] != NONE).map_or(NONE, |(_, j)| founded[j])
        }
        label => label,
    });
    for i in (0..n).filter(|&i| !isolated[i]) {
        if all.of[i] == NONE {
            found(&mut all, i);
        }
    }
    all
}
