//! Approximate minimum degree: an order of elimination for factors with little fill.
mod quotient;

use super::graph::mirrored;
use crate::interrupt;
use lacuna_engine::Result;
use quotient::{Quotient, State};

const NONE: u32 = u32::MAX;
/// A row with more couplings than this many times the square root of the number of rows comes last.
const DENSE: f64 = 10.0;

/// An order of the rows of a matrix by minimum degree, in which each subtree of the elimination tree stands together, and what
/// factors without exchanges of rows cost in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MinimumDegree {
    /// The rows, in their new order.
    pub order: Vec<u32>,
    /// Entries of a lower triangular factor without its diagonal, at most.
    pub entries: f64,
    /// Multiplications and subtractions of LU factors.
    pub operations: f64,
    /// The units of work that it took.
    pub work: f64,
}

/// An order by approximate minimum degree for the graph of `A + Aᵀ` of a matrix of `n` rows. The columns of row `i` are
/// `columns[ptr[i]..ptr[i + 1]]`, in any order; what is no row is ignored. `None` if it would take more than `most` units of work,
/// each a place of a list that is looked at: 5e-9 to 1e-8 s.
///
/// ```
/// // A chain of 1000 rows has no fill.
/// let columns: Vec<u32> = (1..1000).collect();
/// let ptr: Vec<u32> = (0..=1000).map(|i| i.min(999)).collect();
/// let found = lacuna_formats::minimum_degree(1000, &ptr, &columns, f64::INFINITY)?.expect("no limit");
/// assert_eq!(found.entries, 999.0);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
///
/// # Errors
/// Those of a check in a running set-up, which is asked every now and then.
///
/// Reference: Amestoy, Davis and Duff 1996, doi:10.1137/S0895479894278952.
pub fn minimum_degree(n: usize, ptr: &[u32], columns: &[u32], most: f64) -> Result<Option<MinimumDegree>> {
    // Couplings in both directions are counted in 32 bits, and lists of what is eliminated come beside them.
    if columns.len() > (u32::MAX / 4) as usize {
        return Ok(None);
    }
    let (starts, to) = mirrored(n, ptr, columns);
    let mut q = Quotient::new(starts, to);
    let dense = ((DENSE * (n as f64).sqrt()) as u32).max(16).min(n as u32);
    let (mut left, mut rows_last) = (n, Vec::new());
    let mut pivots: Vec<(u32, u32)> = Vec::new();
    // Rows without couplings are eliminated first; dense ones are no part of the graph.
    for i in 0..n {
        match q.degree[i] {
            0 => {
                (q.state[i], q.mark[i]) = (State::Element, 0);
                pivots.push((i as u32, 1));
                left -= 1;
            }
            degree if degree > dense => {
                (q.state[i], q.rows[i]) = (State::Gone, 0);
                rows_last.push(i as u32);
                left -= 1;
            }
            degree => q.buckets.enter(i as u32, degree),
        }
    }
    let of_dense = rows_last.len() as f64;
    let (mut entries, mut operations) = (0.0, 0.0);
    let (mut longest, mut chains) = (0u32, vec![NONE; n.max(1)]);
    while left > 0 {
        if q.work as f64 > most {
            return Ok(None);
        }
        interrupt::check_at(pivots.len())?;
        let Some(me) = q.buckets.take() else { break };
        let mut pivot_rows = q.rows[me as usize];
        left -= pivot_rows as usize;
        q.rows[me as usize] = -pivot_rows;
        let Some(mut degree) = q.become_element(me as usize) else { return Ok(None) };
        q.degree[me as usize] = degree;
        q.renew_stamp(n as u32);
        let begin = q.start[me as usize] as usize;
        let list = begin..begin + q.length[me as usize] as usize;
        q.count_outside(list.clone());
        for at in list.clone() {
            let i = q.lists[at];
            match q.update(i as usize, me) {
                None => {
                    // Eliminated with the pivot.
                    let rows = -q.rows[i as usize];
                    (q.parent[i as usize], q.rows[i as usize]) = (me, 0);
                    q.state[i as usize] = State::Gone;
                    degree -= rows as u32;
                    pivot_rows += rows;
                    left -= rows as usize;
                }
                Some(hash) => {
                    let chain = hash as usize % n;
                    q.buckets.next[i as usize] = std::mem::replace(&mut chains[chain], i);
                    q.buckets.last[i as usize] = chain as u32;
                }
            }
        }
        q.degree[me as usize] = degree;
        longest = longest.max(degree);
        q.stamp += longest;
        q.renew_stamp(n as u32);
        for at in list.clone() {
            let i = q.lists[at] as usize;
            if q.rows[i] < 0 {
                let chain = q.buckets.last[i] as usize;
                let first = std::mem::replace(&mut chains[chain], NONE);
                q.unite(first);
            }
        }
        // What is left of the list, with its degrees.
        let mut end = begin;
        for at in list {
            let i = q.lists[at];
            let rows = -q.rows[i as usize];
            if rows > 0 {
                q.rows[i as usize] = rows;
                let others = degree - rows as u32;
                let of_i = (q.degree[i as usize] + others).min(left as u32 - rows as u32);
                q.degree[i as usize] = of_i;
                q.buckets.enter(i, of_i);
                q.lists[end] = i;
                end += 1;
            }
        }
        q.rows[me as usize] = pivot_rows;
        q.length[me as usize] = (end - begin) as u32;
        if end == begin {
            q.mark[me as usize] = 0;
        }
        let (own, below) = (f64::from(pivot_rows), f64::from(degree) + of_dense);
        entries += own * below + (own - 1.0) * own / 2.0;
        operations +=
            own * below * below + below * (own - 1.0) * own + (own - 1.0) * own * (2.0 * own - 1.0) / 6.0;
        pivots.push((me, pivot_rows as u32 + degree));
    }
    let own = of_dense;
    entries += (own - 1.0).max(0.0) * own / 2.0;
    operations += (own - 1.0).max(0.0) * own * (2.0 * own - 1.0) / 6.0;
    let order = ordered(&q, &pivots, &rows_last);
    Ok(Some(MinimumDegree { order, entries, operations, work: q.work as f64 }))
}

/// The rows of all pivots in a postorder of the tree of elements, the child with the largest front last; then some more.
fn ordered(q: &Quotient, pivots: &[(u32, u32)], rows_last: &[u32]) -> Vec<u32> {
    let n = q.start.len();
    let mut is_pivot = vec![false; n];
    pivots.iter().for_each(|(pivot, _)| is_pivot[*pivot as usize] = true);
    // The pivot with which each row is eliminated.
    let mut with = vec![NONE; n];
    let mut path = Vec::new();
    for i in 0..n as u32 {
        let mut k = i;
        while k != NONE && !is_pivot[k as usize] && with[k as usize] == NONE {
            path.push(k);
            k = q.parent[k as usize];
        }
        let pivot = if k == NONE || is_pivot[k as usize] { k } else { with[k as usize] };
        path.drain(..).for_each(|k| with[k as usize] = pivot);
        if is_pivot[i as usize] {
            with[i as usize] = i;
        }
    }
    // Lists of the rows of each pivot, and of the children of each.
    let (mut row, mut next_row) = (vec![NONE; n], vec![NONE; n]);
    for i in (0..n as u32).rev().filter(|&i| with[i as usize] != NONE) {
        next_row[i as usize] = std::mem::replace(&mut row[with[i as usize] as usize], i);
    }
    let parent = |pivot: u32| match q.parent[pivot as usize] {
        NONE => NONE,
        up => with[up as usize],
    };
    let (mut child, mut sibling, mut largest) = (vec![NONE; n], vec![NONE; n], vec![(0, NONE); n]);
    for &(pivot, front) in pivots {
        let up = parent(pivot);
        if up != NONE && front >= largest[up as usize].0 {
            largest[up as usize] = (front, pivot);
        }
    }
    // What is put in front last is the first: the largest, which goes first, is the last.
    for is_largest in [true, false] {
        for &(pivot, _) in pivots.iter().rev() {
            let up = parent(pivot);
            if up != NONE && (largest[up as usize].1 == pivot) == is_largest {
                sibling[pivot as usize] = std::mem::replace(&mut child[up as usize], pivot);
            }
        }
    }
    let mut order = Vec::with_capacity(n);
    let mut open = Vec::new();
    for &(root, _) in pivots.iter().filter(|(pivot, _)| parent(*pivot) == NONE) {
        open.push(root);
        while let Some(&pivot) = open.last() {
            let next = std::mem::replace(&mut child[pivot as usize], NONE);
            if next != NONE {
                child[pivot as usize] = sibling[next as usize];
                open.push(next);
                continue;
            }
            let mut i = row[pivot as usize];
            while i != NONE {
                order.push(i);
                i = next_row[i as usize];
            }
            open.pop();
        }
    }
    order.extend(rows_last);
    order
}
