//! Near-null spaces of several vectors, for systems with several unknowns a node: aggregates of nodes, and a coarse node of as many
//! unknowns as there are vectors.
use super::aggregates::{Aggregates, NONE};
use super::rows::{RowCouplings, size};
use lacuna_engine::{Double, Result, pages};
use lacuna_formats::algebra::{build_rows, fill_rows_with, refill_rows_with};
use lacuna_formats::{Csr, parallel};
use std::ops::Range;

const OPERATION: &str = "prolongator";
/// Nodes that a thread takes at a time.
const GRAIN: usize = 1 << 8;

/// Vectors that the matrix maps nearly to 0.
#[derive(Clone)]
pub(super) struct Modes<T> {
    /// Unknowns of a node.
    pub(super) block: usize,
    /// Vectors.
    pub(super) count: usize,
    /// Row by row.
    values: Vec<T>,
}

/// The tentative prolongator of an aggregation.
pub(super) struct Tentative<T> {
    /// An orthonormal basis of the vectors on each aggregate: a number for each row and each coarse unknown of its aggregate, row by
    /// row. Rows in no aggregate have zeros.
    pub(super) values: Vec<T>,
    /// The vectors in these bases.
    pub(super) coarse: Modes<T>,
    /// Coarse unknowns without a vector: the vectors depend on each other on that aggregate.
    pub(super) dependent: Vec<usize>,
}

impl<T: Double> Modes<T> {
    /// One constant for each unknown of a node.
    pub(super) fn translations(rows: usize, block: usize) -> Self {
        let one = |i: usize| if i / block % block == i % block { T::one() } else { T::zero() };
        Modes { block, count: block, values: (0..rows * block).map(one).collect() }
    }
    /// From vectors of one length, a multiple of `block`.
    pub(super) fn new(block: usize, vectors: &[Vec<T>]) -> Self {
        let rows = vectors.first().map_or(0, Vec::len);
        let values = (0..rows).flat_map(|i| vectors.iter().map(move |v| v[i])).collect();
        Modes { block, count: vectors.len(), values }
    }

    /// The matrix of the nodes: the Frobenius norm of each block.
    pub(super) fn nodes(&self, a: &Csr<T>) -> Result<Csr<T>> {
        let (block, nodes) = (self.block, a.rows() / self.block);
        build_rows("blocks of a matrix", nodes, nodes, runs(nodes), |run, out| {
            let (mut columns, mut values) = (Vec::<u32>::new(), Vec::<f64>::new());
            let mut numbers = Vec::new();
            for node in run {
                columns.clear();
                values.clear();
                for i in node * block..(node + 1) * block {
                    // Rows of a node mostly have the same blocks, so that an entry is in the last block or the next.
                    let mut at = 0;
                    for (j, v) in a.row_entries(i) {
                        at = place_of((j / block) as u32, &mut columns, at);
                        values.resize(columns.len(), 0.0);
                        values[at] += v.re() * v.re() + v.im() * v.im();
                    }
                }
                numbers.clear();
                numbers.extend(values.iter().map(|square| T::from_real(square.sqrt())));
                out.row(&columns, &numbers);
            }
        })
    }

    /// An orthonormal basis of the vectors on each aggregate, by Gram and Schmidt, twice.
    pub(super) fn tentative(&self, all: &Aggregates) -> Result<Tentative<T>> {
        let (count, width) = (self.count, self.block * self.count);
        let members = members(all);
        let bases = parallel::collect(members.len(), 64, |k| self.orthonormal(&members[k]));
        let coarse = parallel::concat(&bases.iter().map(|(_, r)| &r[..]).collect::<Vec<_>>());
        let dependent = (0..all.count * count).filter(|k| {
            let (aggregate, v) = (k / count, k % count);
            bases[aggregate].1[v * count + v] == T::zero()
        });
        let dependent = dependent.collect();
        let mut values = pages::zeroed(OPERATION, all.of.len() * width)?;
        let chunks = values.chunks_mut(GRAIN * width).zip(all.of.chunks(GRAIN)).enumerate();
        parallel::for_each(chunks, |(chunk, (values, labels))| {
            for (node, (own, &label)) in (chunk * GRAIN..).zip(values.chunks_exact_mut(width).zip(labels)) {
                // A node in no aggregate keeps its zeros.
                let nodes = members.get(label as usize).map_or(&[][..], Vec::as_slice);
                if let Ok(k) = nodes.binary_search(&(node as u32)) {
                    own.copy_from_slice(&bases[label as usize].0[k * width..][..width]);
                }
            }
        });
        Ok(Tentative { values, coarse: Modes { block: count, count, values: coarse }, dependent })
    }

    /// `Q` and `R` of the vectors on these nodes, both row by row. A vector that depends on those before it gets a column of zeros in
    /// `Q` and a row of zeros in `R`.
    fn orthonormal(&self, nodes: &[u32]) -> (Vec<T>, Vec<T>) {
        let (block, count) = (self.block, self.count);
        let rows = nodes.iter().flat_map(|&node| (0..block).map(move |u| node as usize * block + u));
        let mut q: Vec<T> =
            rows.flat_map(|i| self.values[i * count..(i + 1) * count].iter().copied()).collect();
        let mut r = vec![T::zero(); count * count];
        let norm = |q: &[T], v: usize| {
            q.iter().skip(v).step_by(count).map(|q| size(*q) * size(*q)).sum::<f64>().sqrt()
        };
        for v in 0..count {
            let given = norm(&q, v);
            for _ in 0..2 {
                for u in 0..v {
                    let columns = || q.chunks_exact(count);
                    let along = columns().fold(T::zero(), |sum, row| sum + row[u].conj() * row[v]);
                    r[u * count + v] += along;
                    q.chunks_exact_mut(count).for_each(|row| row[v] -= along * row[u]);
                }
            }
            let left = norm(&q, v);
            let independent = left > T::EPSILON.sqrt() * given;
            let inverse = if independent { T::from_real(left.recip()) } else { T::zero() };
            q.chunks_exact_mut(count).for_each(|row| row[v] *= inverse);
            r[v * count + v] = if independent { T::from_real(left) } else { T::zero() };
        }
        (q, r)
    }
}

/// `(I − ω D⁻¹ A) T`, with all entries of its blocks stored; with the pattern of the former one, if there is one.
pub(super) fn smoothed<T: Double>(
    former: Option<&Csr<T>>,
    a: &Csr<T>,
    rows: &RowCouplings<T>,
    all: &Aggregates,
    t: &Tentative<T>,
    omega: f64,
) -> Result<Csr<T>> {
    let block = a.rows() / all.of.len().max(1);
    let count = t.coarse.count as u32;
    let length = |near: &mut Near, i: usize| {
        near.look(a, all, block, i / block);
        near.labels.len() * count as usize
    };
    let row = row(a, rows, t, omega);
    if let Some(former) = former {
        return refill_rows_with(OPERATION, former, Near::default, |near, i, _, values| {
            near.look(a, all, block, i / block);
            row(near, i, values);
        });
    }
    fill_rows_with(
        OPERATION,
        a.rows(),
        all.count * t.coarse.count,
        Near::default,
        length,
        |near, i, columns, values| {
            near.look(a, all, block, i / block);
            let own = near.labels.iter().flat_map(|label| label * count..(label + 1) * count);
            columns.iter_mut().zip(own).for_each(|(to, column)| *to = column);
            row(near, i, values);
        },
    )
}

/// Writes the values of a row over zeros.
fn row<T: Double>(
    a: &Csr<T>,
    rows: &RowCouplings<T>,
    t: &Tentative<T>,
    omega: f64,
) -> impl Fn(&mut Near, usize, &mut [T]) + Sync {
    let count = t.coarse.count;
    let minus_omega = T::from_real(-omega);
    move |near, i, sums| {
        let mut at = 0;
        for (j, v) in a.row_entries(i) {
            at = place_of((j / near.block) as u32, &mut near.nodes, at);
            if let Some(place) = near.places[at] {
                let t = &t.values[j * count..(j + 1) * count];
                sums[place * count..][..count].iter_mut().zip(t).for_each(|(sum, t)| *sum += v * *t);
            }
        }
        let factor = minus_omega * T::one().quotient(rows.diagonal[i]);
        sums.iter_mut().for_each(|sum| *sum = factor * *sum);
        if let Some(place) = near.own {
            let t = &t.values[i * count..(i + 1) * count];
            sums[place * count..][..count].iter_mut().zip(t).for_each(|(sum, t)| *sum += *t);
        }
    }
}

/// The neighbours of a node and their aggregates.
#[derive(Default)]
struct Near {
    /// The node, and the unknowns of one; 0 before the first look.
    node: usize,
    block: usize,
    nodes: Vec<u32>,
    /// The aggregates among these and that of the node, in increasing order.
    labels: Vec<u32>,
    /// The place of the aggregate of each neighbour among the labels, and that of the node's own.
    places: Vec<Option<usize>>,
    own: Option<usize>,
}

impl Near {
    /// Looks at a node, unless that was the last one.
    fn look<T: Double>(&mut self, a: &Csr<T>, all: &Aggregates, block: usize, node: usize) {
        if (self.node, self.block) == (node, block) {
            return;
        }
        (self.node, self.block) = (node, block);
        self.nodes.clear();
        for i in node * block..(node + 1) * block {
            let mut at = 0;
            for j in a.row_slices(i).0 {
                at = place_of(j / block as u32, &mut self.nodes, at);
            }
        }
        let aggregate = |node: u32| Some(all.of[node as usize]).filter(|label| *label != NONE);
        self.labels.clear();
        self.labels.extend(self.nodes.iter().chain([&(node as u32)]).filter_map(|node| aggregate(*node)));
        self.labels.sort_unstable();
        self.labels.dedup();
        let place = |node: u32| aggregate(node).and_then(|label| self.labels.binary_search(&label).ok());
        self.places.clear();
        self.places.extend(self.nodes.iter().map(|node| place(*node)));
        self.own = place(node as u32);
    }
}

/// The place of a node in a list, which it is added to where it is new. `last` is that of the node before, in an order in which nodes
/// that follow each other mostly do so in the list.
#[inline(always)]
fn place_of(node: u32, list: &mut Vec<u32>, last: usize) -> usize {
    if list.get(last) == Some(&node) {
        return last;
    }
    let found = (last + 1..list.len()).chain(0..last.min(list.len())).find(|&k| list[k] == node);
    found.unwrap_or_else(|| {
        list.push(node);
        list.len() - 1
    })
}

/// The nodes of each aggregate, in order.
fn members(all: &Aggregates) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); all.count];
    let labelled = all.of.iter().zip(0..).filter(|(label, _)| **label != NONE);
    labelled.for_each(|(&label, node)| members[label as usize].push(node));
    members
}

fn runs(rows: usize) -> Vec<Range<usize>> {
    parallel::ranges(rows, GRAIN).collect()
}

/// The motions of a rigid body in `D` dimensions, by the displacements of its points: translations, then rotations about their
/// centre.
pub(super) fn rigid_body<const D: usize>(points: &[[f64; D]]) -> Vec<Vec<f64>> {
    let n = points.len();
    let centre: [f64; D] =
        std::array::from_fn(|d| points.iter().map(|p| p[d]).sum::<f64>() / n.max(1) as f64);
    let apart = |p: &[f64; D]| (0..D).map(|d| (p[d] - centre[d]).abs()).fold(0.0, f64::max);
    let radius = points.iter().map(apart).fold(0.0, f64::max);
    let scale = if radius > 0.0 { radius.recip() } else { 1.0 };
    let translation = |along: usize| (0..n * D).map(|i| f64::from(u8::from(i % D == along))).collect();
    let rotation = |(a, b): (usize, usize)| {
        let motion = |p: &[f64; D]| {
            std::array::from_fn::<f64, D, _>(|d| match d {
                d if d == a => -(p[b] - centre[b]) * scale,
                d if d == b => (p[a] - centre[a]) * scale,
                _ => 0.0,
            })
        };
        points.iter().flat_map(motion).collect()
    };
    let planes = (0..D).flat_map(|a| (a + 1..D).map(move |b| (a, b)));
    (0..D).map(translation).chain(planes.map(rotation)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Modes, rigid_body};
    use crate::precond::amg::aggregates::Aggregates;

    /// Twelve nodes: a square, a line and a point, where rotations depend on translations, and a node in no aggregate.
    fn body() -> (Vec<[f64; 3]>, Aggregates) {
        let mut points: Vec<[f64; 3]> = (0..4).map(|k| [f64::from(k % 2), f64::from(k / 2), 0.0]).collect();
        points.extend((0..6).map(|k| [3.0, 0.5, f64::from(k)]));
        points.extend([[7.0, 8.0, 9.0], [1.0, 2.0, 3.0]]);
        let of = [vec![0; 4], vec![1; 6], vec![2, super::NONE]].concat();
        (points, Aggregates { of, count: 3 })
    }

    #[test]
    fn the_basis_is_orthonormal_and_holds_the_modes() {
        let (points, all) = body();
        let vectors = rigid_body(&points);
        let modes = Modes::new(3, &vectors);
        let made = modes.tentative(&all).unwrap();
        // A line has no rotation about itself, a point none at all.
        assert_eq!(made.dependent.iter().map(|k| k / 6).collect::<Vec<_>>(), [1, 2, 2, 2]);
        let entry = |i: usize, k: usize| {
            if all.of[i / 3] as usize == k / 6 { made.values[i * 6 + k % 6] } else { 0.0 }
        };
        for (v, vector) in vectors.iter().enumerate() {
            for (i, expected) in vector[..3 * 11].iter().enumerate() {
                let held = (0..18).map(|k| entry(i, k) * made.coarse.values[k * 6 + v]).sum::<f64>();
                assert!((held - expected).abs() < 1e-12, "mode {v}, row {i}");
            }
        }
        for k in 0..18 {
            for l in 0..18 {
                let dot: f64 = (0..36).map(|i| entry(i, k) * entry(i, l)).sum();
                let expected = f64::from(u8::from(k == l && !made.dependent.contains(&k)));
                assert!((dot - expected).abs() < 1e-12, "columns {k} and {l}: {dot}");
            }
        }
        assert_eq!(made.values[35 * 6..], [0.0; 6]);
    }
}
