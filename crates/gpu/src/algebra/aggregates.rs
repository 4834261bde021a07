//! Greedy aggregates: the first set in the order of rows no two of which are within two steps, with the neighbours of each; the
//! rest joins.
use super::independent_set::{DECIDE, SPREAD};
use super::product::scanned;
use super::session::Arrays;
use super::{AlgebraDevice, Kernel, KernelArgument, Threads, each, read, typed};
use lacuna_engine::{AggregateArrays, Result, RowArrays, SparseArrays, StrongArrays};

pub(super) const OPEN: Kernel = typed("level_open");
pub(super) const STATES: Kernel = typed("level_states");
pub(super) const FIRST_SET: Kernel = typed("level_first_set");
pub(super) const ROOTS: Kernel = typed("level_roots");
pub(super) const LABELS: Kernel = typed("level_labels");
pub(super) const JOIN: Kernel = typed("level_join");

use KernelArgument::{Array as At, Word};

/// See [`lacuna_engine::Algebra::aggregates`].
pub(super) fn aggregates<D: AlgebraDevice>(
    dev: &mut D,
    arrays: &mut Arrays<D::Array>,
    a: &SparseArrays,
    rows: &RowArrays,
    strong: &StrongArrays,
) -> Result<Option<AggregateArrays>> {
    let n = a.shape.0;
    let count = Word(n as u32);
    let of = arrays.sparse(a)?;
    let graph = [At(arrays.get(strong.graph[0])?), At(arrays.get(strong.graph[1])?)];
    let states = first_set(dev, &graph, n, strong.edges)?;
    let roots = dev.room(4 * n)?;
    dev.launch(ROOTS, each(n), &[At(&states), At(&roots), count])?;
    let numbers = scanned(dev, &roots, n)?;
    let founded = dev.room(4 * n)?;
    let labels = [At(&states), At(&numbers.ends), At(&founded), count];
    dev.launch(LABELS, each(n), &[&graph[..], &labels[..]].concat())?;
    let (labels, left) = (dev.room(4 * n)?, dev.zeros(8)?);
    let marks = strong.marks.map_or(Ok(of.columns), |marks| arrays.get(marks))?;
    let taken = [At(of.row_ptr), At(of.columns), At(of.values), At(marks), At(arrays.get(rows.scale)?)];
    let all = Word(strong.marks.is_none().into());
    let join = [At(&founded), At(&labels), At(&left), all, count];
    dev.launch(JOIN, each(n), &[&taken[..], &join[..]].concat())?;
    let mut found = [0u32; 2];
    read(dev, &left, &mut found)?;
    // A row whose neighbours are in none would found one more, which a maximal set leaves none of.
    if found[1] > 0 {
        return Ok(None);
    }
    let (count, isolated) = (numbers.total as usize, found[0] as usize);
    Ok(Some(AggregateArrays { labels: arrays.add(labels), count, isolated }))
}

/// Threads that look at the neighbours of a row together.
fn lanes_of(edges: usize, n: usize) -> usize {
    match edges / n.max(1) {
        0..=4 => 4,
        5..=8 => 8,
        _ => 32,
    }
}

/// The states of rows: in the set, or out of it.
fn first_set<D: AlgebraDevice>(
    dev: &mut D,
    graph: &[KernelArgument<'_, D::Array>; 2],
    n: usize,
    edges: usize,
) -> Result<D::Array> {
    let count = Word(n as u32);
    let (states, keys) = (dev.room(4 * n)?, dev.room(8 * n)?);
    dev.launch(OPEN, each(n), &[&graph[..], &[At(&states), At(&keys), count]].concat())?;
    if dev.waits_for_others() {
        let ticket = dev.zeros(4)?;
        let lanes = lanes_of(edges, n);
        let given = [At(&states), At(&ticket), Word(lanes as u32), count];
        dev.launch(FIRST_SET, each(n * lanes), &[&graph[..], &given[..]].concat())?;
        return Ok(states);
    }
    let nearby = dev.zeros(8 * n)?;
    loop {
        let undecided = dev.zeros(4)?;
        dev.launch(SPREAD, Threads::Each(n), &[&graph[..], &[At(&keys), At(&nearby), count]].concat())?;
        let decide = [At(&nearby), At(&keys), At(&undecided), count];
        dev.launch(DECIDE, Threads::Each(n), &[&graph[..], &decide[..]].concat())?;
        let mut left = [0u32];
        read(dev, &undecided, &mut left)?;
        if left == [0] {
            break;
        }
    }
    dev.launch(STATES, each(n), &[At(&keys), At(&states), count])?;
    Ok(states)
}
