//! Partition of rows into parts with few couplings between them.
use crate::interrupt;
use crate::order::graph::Graph;
use crate::storage::pattern::PatternRef;
use crate::{Csr, Permutation};
use lacuna_engine::Scalar;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Couplings with the part above which more make no difference.
const MOST: usize = 32;

/// Compact parts of `rows` rows, in order: each grows by the row with the most couplings to it, and among
/// equals by the one found first, which gives boxes of the cells of a grid. A part begins with the smallest
/// row adjacent to the previous parts; if too few rows are left there, it continues elsewhere.
///
/// Reference: greedy graph growing of Karypis and Kumar 1998, doi:10.1137/S1064827595287997.
pub fn compact_parts<T: Scalar>(a: &Csr<T>, rows: usize) -> Permutation {
    compact(PatternRef::of(a), rows)
}

fn compact(a: PatternRef<'_>, rows: usize) -> Permutation {
    let graph = interrupt::unchecked(|| Graph::of(a));
    let n = graph.len();
    let mut order = Vec::with_capacity(n);
    let mut taken = vec![false; n];
    // Rows adjacent to taken ones, each once.
    let (mut border, mut met) = (BinaryHeap::new(), vec![false; n]);
    // Couplings of a row with the part, and the part they refer to.
    let (mut inside, mut part_of) = (vec![0usize; n], vec![u32::MAX; n]);
    let mut found: [VecDeque<u32>; MOST + 1] = std::array::from_fn(|_| VecDeque::new());
    let (mut part, mut left, mut first) = (0, rows.max(1), 0usize);
    while order.len() < n {
        if left == 0 {
            (part, left) = (part + 1, rows.max(1));
            found.iter_mut().for_each(VecDeque::clear);
        }
        let grown = (1..=MOST).rev().find_map(|count| {
            std::iter::from_fn(|| found[count].pop_front())
                .find(|&row| !taken[row as usize] && inside[row as usize].min(MOST) == count)
        });
        let row = grown.unwrap_or_else(|| {
            let next = std::iter::from_fn(|| border.pop()).map(|Reverse(row): Reverse<u32>| row);
            next.into_iter().find(|&row| !taken[row as usize]).unwrap_or_else(|| {
                while taken[first] {
                    first += 1;
                }
                first as u32
            })
        });
        taken[row as usize] = true;
        order.push(row);
        left -= 1;
        for &next in graph.of_row(row) {
            let at = next as usize;
            if taken[at] {
                continue;
            }
            if !std::mem::replace(&mut met[at], true) {
                border.push(Reverse(next));
            }
            if std::mem::replace(&mut part_of[at], part) != part {
                inside[at] = 0;
            }
            inside[at] += 1;
            found[inside[at].min(MOST)].push_back(next);
        }
    }
    Permutation::known(order)
}

/// Parts of about `rows` rows: an order of all rows, and the start of each part in it, followed by `n`. The
/// parts are boxes of cells if the matrix couples those of a grid with their 4 or 6 neighbours and `rows` is
/// a power of two, otherwise [`compact_parts`]. The rows of a part keep their order.
pub fn parts<T: Scalar>(a: &Csr<T>, rows: usize) -> (Permutation, Vec<u32>) {
    let a = PatternRef::of(a);
    let n = a.rows;
    let boxes = if rows.is_power_of_two() { grid(a) } else { None };
    if let Some(sides) = boxes {
        return boxes_of(sides, rows);
    }
    let mut order = compact(a, rows).order().to_vec();
    order.chunks_mut(rows.max(1)).for_each(<[u32]>::sort_unstable);
    let starts = (0..n).step_by(rows.max(1)).chain([n]).map(|start| start as u32).collect();
    (Permutation::known(order), starts)
}

/// Cells of a grid along each axis, if a matrix couples each only with some of its nearest neighbours.
fn grid(a: PatternRef<'_>) -> Option<[usize; 3]> {
    // Distances of entries from the diagonal: 1, and those to the adjacent line and plane.
    let mut strides = vec![1usize];
    for i in 0..a.rows {
        for &j in a.row(i) {
            let distance = i.abs_diff(j as usize);
            if distance > 1 && !strides.contains(&distance) {
                strides.push(distance);
                if strides.len() > 3 {
                    return None;
                }
            }
        }
    }
    strides.sort_unstable();
    let [x, y] = [*strides.get(1)?, *strides.get(2).unwrap_or(&a.rows)];
    let divides = y.is_multiple_of(x) && a.rows.is_multiple_of(y);
    // No coupling wraps around the end of a line or plane.
    let within =
        |i: usize, j: usize| i / x == j / x || i.abs_diff(j) > 1 && (i / y == j / y || i.abs_diff(j) > x);
    let fits = divides && (0..a.rows).all(|i| a.row(i).iter().all(|&j| within(i, j as usize)));
    fits.then(|| [x, y / x, a.rows / y])
}

/// Boxes of `cells` cells of a grid, a power of two, with sides as equal as possible; those at the ends of
/// the grid are smaller.
fn boxes_of(sides: [usize; 3], cells: usize) -> (Permutation, Vec<u32>) {
    let mut of_box = [1usize; 3];
    let mut left = cells;
    while left > 1 {
        // Doubles the shortest side that can grow, the first among equals.
        let can = (0..3).filter(|&axis| of_box[axis] < sides[axis]);
        let Some(axis) = can.min_by_key(|&axis| of_box[axis]) else { break };
        (of_box[axis], left) = (2 * of_box[axis], left / 2);
    }
    let n = sides.iter().product();
    let (mut order, mut starts) = (Vec::with_capacity(n), Vec::new());
    let corners = |axis: usize| (0..sides[axis]).step_by(of_box[axis]);
    let along = move |axis: usize, from: usize| from..(from + of_box[axis]).min(sides[axis]);
    for z in corners(2) {
        for y in corners(1) {
            for x in corners(0) {
                starts.push(order.len() as u32);
                for k in along(2, z) {
                    for j in along(1, y) {
                        order.extend(along(0, x).map(|i| ((k * sides[1] + j) * sides[0] + i) as u32));
                    }
                }
            }
        }
    }
    starts.push(n as u32);
    (Permutation::known(order), starts)
}
