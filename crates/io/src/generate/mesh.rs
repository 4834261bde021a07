//! Nodes scattered around the points of a box and coupled if they are close: finite elements, molecules.
use super::noise::{signed, word};
use lacuna_engine::{Result, Scalar};
use lacuna_formats::Csr;
use lacuna_formats::build::from_rows;
use lacuna_formats::parallel;

const SEED: u64 = 1;
/// The seed of the node numbering.
const NUMBERS: u64 = 2;
/// Maximum number of points that a node may be coupled with: three on each side along every axis.
const NEAR: usize = 343;
/// Minimum number of points per task.
const GRAIN: usize = 4096;

/// The nodes and their coupling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mesh {
    /// Points along the first two axes; the third has as many as the nodes need.
    pub(super) sides: [usize; 2],
    /// Unknowns of a node, each coupled with all those of another.
    pub(super) block: usize,
    /// Nodes closer than this are coupled, in grid widths.
    pub(super) reach: f64,
    /// Maximum displacement of a node from its point along each axis.
    pub(super) jitter: f64,
    /// Nodes are numbered at random within runs of this many.
    pub(super) shuffled: usize,
    /// Whether values are symmetric; the pattern always is.
    pub(super) symmetric: bool,
}

impl Mesh {
    /// The matrix of `rows` unknowns, strictly diagonally dominant. The last node may have fewer than the
    /// others.
    pub(super) fn build<T: Scalar>(&self, operation: &str, rows: usize) -> Result<Csr<T>> {
        let nodes = rows.div_ceil(self.block);
        let places = parallel::collect(nodes, GRAIN, |point| self.place(point));
        // The point of each node number, and the node number of each point.
        let mut points: Vec<u32> = (0..nodes as u32).collect();
        parallel::for_each(points.chunks_mut(GRAIN.next_multiple_of(self.shuffled)), |points| {
            let runs = points.chunks_mut(self.shuffled);
            runs.for_each(|run| run.sort_by_key(|&p| word(NUMBERS, u64::from(p), 0)));
        });
        let mut numbers = vec![0u32; nodes];
        points.iter().enumerate().for_each(|(number, &point)| numbers[point as usize] = number as u32);

        from_rows(operation, rows, |i, row| {
            let mut near = [0; NEAR];
            let near = self.near(points[i / self.block] as usize, &places, &numbers, &mut near);
            let (mut weight, mut own) = (0.0, 0);
            for &node in near {
                let first = node as usize * self.block;
                for j in first..(first + self.block).min(rows) {
                    if j == i {
                        own = row.len();
                    }
                    let (from, to) = if self.symmetric { (i.min(j), i.max(j)) } else { (i, j) };
                    let value = if j == i { 0.0 } else { signed(SEED, from as u64, to as u64) };
                    weight += value.abs();
                    row.push((j as u32, T::from_real(value)));
                }
            }
            row[own].1 = T::from_real(1.0 + weight);
        })
    }

    /// The coordinates of a point of the grid.
    fn point(&self, index: usize) -> [usize; 3] {
        let [nx, ny] = self.sides;
        [index % nx, index / nx % ny, index / nx / ny]
    }

    /// The location of the node of a point.
    fn place(&self, index: usize) -> [f64; 3] {
        let point = self.point(index);
        std::array::from_fn(|k| point[k] as f64 + self.jitter * signed(SEED, index as u64, k as u64))
    }

    /// The numbers of the nodes coupled with a node, including its own, in increasing order.
    fn near<'a>(
        &self,
        index: usize,
        places: &[[f64; 3]],
        numbers: &[u32],
        near: &'a mut [u32; NEAR],
    ) -> &'a [u32] {
        let [nx, ny] = self.sides;
        let (point, place) = (self.point(index), places[index]);
        let far = ((self.reach + 2.0 * self.jitter) as usize).min(3);
        let around = |k: usize, side: usize| point[k].saturating_sub(far)..(point[k] + far + 1).min(side);
        let mut count = 0;
        for z in around(2, usize::MAX) {
            for y in around(1, ny) {
                for x in around(0, nx) {
                    let other = (z * ny + y) * nx + x;
                    let Some(there) = places.get(other) else { continue };
                    let [dx, dy, dz] = std::array::from_fn(|k| place[k] - there[k]);
                    if dx * dx + dy * dy + dz * dz < self.reach * self.reach {
                        near[count] = numbers[other];
                        count += 1;
                    }
                }
            }
        }
        let near = &mut near[..count];
        near.sort_unstable();
        near
    }
}
