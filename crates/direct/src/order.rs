//! Orders of elimination, and what factors cost in them.
use crate::cost::Count;
use crate::failure::{filled, unsupported};
use lacuna_engine::{Error, Result};
use lacuna_formats::{minimum_degree, nested_dissection};

/// Seconds of nested dissection for an entry of the matrix and for a unit of its work, and of an operation of LU factors.
const DISSECTION: [f64; 2] = [3e-8, 6e-8];
const OPERATION: f64 = 2e-11;
/// Seconds for a place of a list that minimum degree looks at, and the part of the time of factors that it may take.
const LOOK: f64 = 6e-9;
const LOOKING: f64 = 0.5;
/// Nested dissection is tried if the factors are expected to take this many times its own time.
const WORTH: f64 = 3.0;
/// The least part of their time in the order of minimum degree to which nested dissection is expected to bring factors.
const LEAST: f64 = 0.1;
/// The part of the operations in the order of minimum degree that must not be exceeded.
const BETTER: f64 = 0.9;
const NONE: u32 = u32::MAX;

/// The rows of a matrix in an order, with which factors have so many entries and take so many operations.
pub(crate) struct Order {
    pub(crate) order: Vec<u32>,
    pub(crate) count: Count,
}

/// An order of little fill for the pattern `A + Aᵀ` of a square matrix: approximate minimum degree, or nested dissection where that
/// takes fewer operations, if the factors are expensive enough to look for it, and may then take no more than so many seconds. The rows
/// of column `j` are `rows[ptr[j]..ptr[j + 1]]`, in any order. None if looking for it takes too large a part of that time.
pub(crate) fn order(n: usize, ptr: &[u32], rows: &[u32], within: f64) -> Result<Option<Order>> {
    let Some(found) = by_minimum_degree(n, ptr, rows, within)? else { return Ok(None) };
    let operations = found.count.operations;
    Ok(dissected(n, ptr, rows, within, (OPERATION * operations, operations))?.or(Some(found)))
}

/// The order of minimum degree, unless looking for it takes too large a part of the seconds that factors may take.
pub(crate) fn by_minimum_degree(n: usize, ptr: &[u32], rows: &[u32], within: f64) -> Result<Option<Order>> {
    let Some(found) = minimum_degree(n, ptr, rows, LOOKING * within / LOOK)? else {
        return if within.is_finite() { Ok(None) } else { Err(too_large()) };
    };
    let count = Count { entries: 2.0 * found.entries + n as f64, operations: 2.0 * found.operations };
    Ok(Some(Order { order: found.order, count }))
}

/// Whether not even the best order is expected to bring factors of so many operations of LU within so many seconds.
pub(crate) fn is_hopeless(operations: f64, within: f64) -> bool {
    LEAST * 0.5 * OPERATION * operations > within
}

fn too_large() -> Error {
    unsupported("the matrix has too many entries for an order of elimination")
}

/// Nested dissection, if it may be worth its time beside factors that take so many seconds and operations, and bring them within the
/// seconds that they may take; and if it takes fewer operations.
pub(crate) fn dissected(
    n: usize,
    ptr: &[u32],
    rows: &[u32],
    within: f64,
    (seconds, operations): (f64, f64),
) -> Result<Option<Order>> {
    if LEAST * seconds > within {
        return Ok(None);
    }
    let [entry, unit] = DISSECTION;
    let most = (seconds.min(within) / WORTH - entry * rows.len() as f64) / unit;
    if most < n as f64 {
        return Ok(None);
    }
    let Some(mut found) = nested_dissection(n, ptr, rows, most) else { return Ok(None) };
    let mut leaf = Leaf { place: filled(NONE, n)?, ptr: Vec::new(), rows: Vec::new() };
    for places in &found.leaves {
        leaf.order(ptr, rows, &mut found.order[places.clone()])?;
    }
    finished(found.order, ptr, rows, BETTER * operations)
}

/// Parts that are not divided, with working memory.
struct Leaf {
    place: Vec<u32>,
    ptr: Vec<u32>,
    rows: Vec<u32>,
}

impl Leaf {
    /// Orders some vertices by minimum degree among themselves.
    fn order(&mut self, ptr: &[u32], rows: &[u32], vertices: &mut [u32]) -> Result<()> {
        vertices.iter().enumerate().for_each(|(k, &i)| self.place[i as usize] = k as u32);
        self.ptr.clear();
        self.rows.clear();
        self.ptr.push(0);
        for &j in &*vertices {
            let column = &rows[ptr[j as usize] as usize..ptr[j as usize + 1] as usize];
            let inside = column.iter().map(|&i| self.place[i as usize]);
            self.rows.extend(inside.filter(|&k| k != NONE));
            self.ptr.push(self.rows.len() as u32);
        }
        vertices.iter().for_each(|&i| self.place[i as usize] = NONE);
        let found = minimum_degree(vertices.len(), &self.ptr, &self.rows, f64::INFINITY)?;
        let found = found.ok_or_else(too_large)?;
        let former = vertices.to_vec();
        vertices.iter_mut().zip(found.order).for_each(|(to, k)| *to = former[k as usize]);
        Ok(())
    }
}

/// An order in which each subtree of the elimination tree stands together, with its count; none if that exceeds a limit.
fn finished(order: Vec<u32>, ptr: &[u32], rows: &[u32], most: f64) -> Result<Option<Order>> {
    let n = order.len();
    let (first, upper) = upper(&order, ptr, rows)?;
    // Liu 1986, doi:10.1145/6497.6499: the columns of a row of the factor are met on the way up.
    let (mut parent, mut met) = (filled(NONE, n)?, filled(NONE, n)?);
    let mut below = filled(0u32, n)?;
    let (mut entries, mut operations) = (n as f64, 0.0);
    for j in 0..n {
        met[j] = j as u32;
        for &i in &upper[first[j] as usize..first[j + 1] as usize] {
            let mut i = i as usize;
            while met[i] != j as u32 {
                met[i] = j as u32;
                below[i] += 1;
                if parent[i] == NONE {
                    parent[i] = j as u32;
                }
                i = parent[i] as usize;
            }
        }
    }
    for rows in &below {
        let rows = f64::from(*rows);
        entries += 2.0 * rows;
        operations += 2.0 * rows * rows;
    }
    if operations > most {
        return Ok(None);
    }
    let after = postorder(&parent, &below)?;
    let order = after.into_iter().map(|k| order[k as usize]).collect();
    Ok(Some(Order { order, count: Count { entries, operations } }))
}

/// The rows above the diagonal in each column of `A + Aᵀ`, in the given order, some perhaps twice.
fn upper(order: &[u32], ptr: &[u32], rows: &[u32]) -> Result<(Vec<u32>, Vec<u32>)> {
    let n = order.len();
    let mut place = filled(0u32, n)?;
    order.iter().enumerate().for_each(|(k, &i)| place[i as usize] = k as u32);
    let entries = || {
        (0..n).flat_map(|j| {
            let column = &rows[ptr[j] as usize..ptr[j + 1] as usize];
            let j = place[j];
            column
                .iter()
                .map(|&i| place[i as usize])
                .filter(move |i| *i != j)
                .map(move |i| (i.min(j), i.max(j)))
        })
    };
    let mut first = filled(0u32, n + 1)?;
    entries().for_each(|(_, j)| first[j as usize + 1] += 1);
    (0..n).for_each(|k| first[k + 1] += first[k]);
    let mut next = first.clone();
    let mut upper = filled(0u32, first[n] as usize)?;
    for (i, j) in entries() {
        upper[next[j as usize] as usize] = i;
        next[j as usize] += 1;
    }
    Ok((first, upper))
}

/// The nodes of a forest, children before their parents and the one with most entries last.
fn postorder(parent: &[u32], below: &[u32]) -> Result<Vec<u32>> {
    let n = parent.len();
    let (mut child, mut sibling) = (filled(NONE, n)?, filled(NONE, n)?);
    let mut largest = filled(NONE, n)?;
    for (k, &up) in parent.iter().enumerate().filter(|(_, up)| **up != NONE) {
        let largest = &mut largest[up as usize];
        if *largest == NONE || below[k] >= below[*largest as usize] {
            *largest = k as u32;
        }
    }
    // The last that is put in front is the first; the largest goes first, to be the last.
    for is_largest in [true, false] {
        for k in (0..n).rev().filter(|&k| parent[k] != NONE) {
            let up = parent[k] as usize;
            if (largest[up] == k as u32) == is_largest {
                sibling[k] = std::mem::replace(&mut child[up], k as u32);
            }
        }
    }
    let mut order = crate::failure::with_room(n)?;
    let mut open = Vec::new();
    for root in (0..n).filter(|&k| parent[k] == NONE) {
        open.push(root as u32);
        while let Some(&k) = open.last() {
            let next = std::mem::replace(&mut child[k as usize], NONE);
            if next == NONE {
                order.push(k);
                open.pop();
            } else {
                child[k as usize] = sibling[next as usize];
                open.push(next);
            }
        }
    }
    Ok(order)
}
