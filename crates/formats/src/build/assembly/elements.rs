//! Finite elements: small dense matrices summed into a sparse one.
use super::plan::{AssemblyPlan, key, longest};
use crate::Csr;
use crate::algebra::build_rows_with;
use crate::build::cut::{cut, lengths};
use crate::parallel;
use crate::storage::checks::check_sizes;
use lacuna_engine::{Error, Result, Scalar, compiled_here, pages};
use std::ops::Range;

/// Marks an element unknown that is not an unknown of the system: its rows and columns are omitted.
pub const FIXED: u32 = u32::MAX;

/// Rows per task; elements per task.
const ROWS: usize = 4096;
const GRAIN: usize = 512;
/// Maximum number of values of a row whose columns are found by linear search.
const SHORT: usize = 256;
/// Maximum number of columns of a row sorted by insertion.
const FEW: usize = 32;
/// Maximum number of threads that each scan all elements for their part of the unknowns.
const READERS: usize = 8;

/// The unknowns of each element: the pattern of a finite element matrix.
///
/// Several threads sum the rows, each row by one thread over its elements in order. The bits therefore do not
/// depend on the number of threads, and equal those of [`Triplets`](crate::Triplets) pushed element by
/// element, row by row.
///
/// ```
/// use lacuna_formats::Elements;
///
/// // A rod of three elements with unknowns at its four nodes.
/// let rod = Elements::new(4, 2, vec![0, 1, 1, 2, 2, 3])?;
/// let stiffness = |element: usize, matrix: &mut [f64]| {
///     let k = 1.0 + element as f64;
///     matrix.copy_from_slice(&[k, -k, -k, k]);
/// };
/// let a = rod.assemble(&rod.matrices(stiffness))?;
/// assert_eq!((a.get(1, 1), a.get(1, 2), a.get(0, 3)), (Some(3.0), Some(-2.0), None));
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "elements do nothing until they are made a matrix"]
pub struct Elements {
    unknowns: usize,
    per_element: usize,
    nodes: Vec<u32>,
    /// The start of the slots of each unknown, and the end of the last.
    starts: Vec<u32>,
    /// The places of each unknown in `nodes`, in order.
    slots: Vec<u32>,
}

impl Elements {
    /// Elements with `per_element` unknowns each, listed in `nodes` element by element. [`FIXED`] marks one
    /// that is not an unknown.
    ///
    /// # Errors
    /// [`Error::Argument`] unless the length of `nodes` is a multiple of `per_element`, which must not be 0;
    /// [`Error::Structure`] for an unknown out of range, and if all element matrices together have too many
    /// values for 32-bit indices; [`Error::OutOfMemory`].
    pub fn new(unknowns: usize, per_element: usize, nodes: impl Into<Vec<u32>>) -> Result<Self> {
        const OPERATION: &str = "Elements::new";
        let nodes = nodes.into();
        if per_element == 0 || !nodes.len().is_multiple_of(per_element) {
            let message = format!("expected a multiple of {per_element} above 0, got {}", nodes.len());
            return Err(Error::Argument { what: "the unknowns of all elements".into(), message });
        }
        check_sizes(OPERATION, unknowns, unknowns, nodes.len().saturating_mul(per_element))?;
        let outside = |k: usize| nodes[k] != FIXED && nodes[k] as usize >= unknowns;
        if let Some(k) = parallel::find_first(nodes.len(), ROWS, outside) {
            let (element, node) = (k / per_element, nodes[k]);
            let message = format!("element {element} has unknown {node}, of {unknowns}");
            return Err(Error::Structure { operation: OPERATION.into(), message });
        }
        let (starts, slots) = inverse(OPERATION, unknowns, &nodes)?;
        Ok(Elements { unknowns, per_element, nodes, starts, slots })
    }

    /// Number of unknowns of the system.
    pub fn unknowns(&self) -> usize {
        self.unknowns
    }
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.nodes.len() / self.per_element
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
    /// The unknowns of an element; empty if there is no such element.
    pub fn of(&self, element: usize) -> &[u32] {
        let k = self.per_element;
        element.checked_mul(k).and_then(|start| self.nodes.get(start..start + k)).unwrap_or(&[])
    }

    /// The matrices of all elements, consecutively, each row by row: `fill(element, matrix)` gets a zeroed
    /// one. Runs on the current rayon pool.
    pub fn matrices<T: Scalar>(&self, fill: impl Fn(usize, &mut [T]) + Sync) -> Vec<T> {
        self.filled(self.per_element * self.per_element, fill)
    }
    /// The same for right-hand sides, one number per unknown of an element.
    pub fn vectors<T: Scalar>(&self, fill: impl Fn(usize, &mut [T]) + Sync) -> Vec<T> {
        self.filled(self.per_element, fill)
    }

    fn filled<T: Scalar>(&self, size: usize, fill: impl Fn(usize, &mut [T]) + Sync) -> Vec<T> {
        let mut all = vec![T::zero(); self.len() * size];
        parallel::for_each(all.chunks_mut(size.saturating_mul(GRAIN)).enumerate(), |(part, matrices)| {
            let elements = (part * GRAIN..).zip(matrices.chunks_mut(size));
            elements.for_each(|(element, matrix)| fill(element, matrix));
        });
        all
    }

    /// The sum of all element matrices, laid out as by [`Elements::matrices`]. Runs on the current rayon
    /// pool. To assemble repeatedly with new values, a [`plan`](Elements::plan) is faster.
    ///
    /// # Errors
    /// [`Error::Length`] unless there are `per_element²` values per element, [`Error::Entry`] for a sum that
    /// is not finite, [`Error::Structure`] for too many entries for 32-bit indices, [`Error::OutOfMemory`].
    pub fn assemble<T: Scalar>(&self, matrices: &[T]) -> Result<Csr<T>> {
        const OPERATION: &str = "Elements::assemble";
        let expected = self.nodes.len() * self.per_element;
        Error::check_length(OPERATION, "the element matrices", expected, matrices.len())?;
        compiled_here!(T, |elements: &Elements, matrices: &[T]| -> Result<Csr<T>> {
            let n = elements.unknowns;
            let runs = parallel::ranges(n, ROWS).collect();
            let mean = elements.slots.len() / n.max(1) + 1;
            let memory = || (Vec::new(), Vec::new(), Vec::new());
            build_rows_with(OPERATION, n, n, runs, None, memory, |(columns, sums, keys), rows, out| {
                out.reserve(rows.len() * mean * elements.per_element / 2);
                for i in rows {
                    elements.row(i, matrices, (columns, sums), keys);
                    out.row(columns, sums);
                }
            })
        })(self, matrices)
    }

    /// The columns and sums of a row.
    fn row<T: Scalar>(
        &self,
        i: usize,
        matrices: &[T],
        (columns, sums): (&mut Vec<u32>, &mut Vec<T>),
        keys: &mut Vec<u64>,
    ) {
        columns.clear();
        sums.clear();
        let k = self.per_element;
        let slots = self.slots_of(i);
        if slots.len() * k > SHORT {
            keys.clear();
            self.keys(i, keys);
            keys.sort_unstable();
            for same in keys.chunk_by(|a, b| a >> 32 == b >> 32) {
                columns.push((same[0] >> 32) as u32);
                let mut values = same.iter().map(|key| matrices[*key as u32 as usize]);
                let first = values.next().unwrap_or_else(T::zero);
                sums.push(values.fold(first, |sum, v| sum + v));
            }
            return;
        }
        for &slot in slots {
            let slot = slot as usize;
            let of_element = &self.nodes[slot - slot % k..][..k];
            for (&j, &v) in of_element.iter().zip(&matrices[slot * k..][..k]) {
                match columns.iter().position(|&column| column == j) {
                    _ if j == FIXED => {}
                    Some(at) => sums[at] += v,
                    None => {
                        columns.push(j);
                        sums.push(v);
                    }
                }
            }
        }
        for end in 1..columns.len().min(FEW) {
            let mut at = end;
            while at > 0 && columns[at - 1] > columns[at] {
                columns.swap(at - 1, at);
                sums.swap(at - 1, at);
                at -= 1;
            }
        }
    }

    fn slots_of(&self, i: usize) -> &[u32] {
        &self.slots[self.starts[i] as usize..self.starts[i + 1] as usize]
    }

    /// The values of a row: see [`key`].
    fn keys(&self, i: usize, out: &mut Vec<u64>) {
        let k = self.per_element;
        for &slot in self.slots_of(i) {
            let slot = slot as usize;
            let places = Range { start: (slot * k) as u64, end: (slot * k + k) as u64 };
            let columns = self.nodes[slot - slot % k..][..k].iter().zip(places);
            out.extend(columns.filter(|(j, _)| **j != FIXED).map(|(j, place)| key(*j, place)));
        }
    }

    /// The sum of the right-hand sides of all elements, laid out as by [`Elements::vectors`].
    ///
    /// # Errors
    /// [`Error::Length`] unless there is one number per unknown of each element.
    pub fn assemble_vector<T: Scalar>(&self, vectors: &[T]) -> Result<Vec<T>> {
        Error::check_length("Elements::assemble_vector", "vectors", self.nodes.len(), vectors.len())?;
        let sum =
            |i| self.slots_of(i).iter().map(|&slot| vectors[slot as usize]).fold(T::zero(), |a, b| a + b);
        Ok(parallel::collect(self.unknowns, ROWS, sum))
    }

    /// The destination of each value of the element matrices: for new values on the same elements.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn plan(&self) -> Result<AssemblyPlan> {
        let most = longest(&self.starts) * self.per_element;
        let sizes = [self.unknowns, self.unknowns, self.nodes.len() * self.per_element];
        AssemblyPlan::of_rows("Elements::plan", sizes, |i, keys| {
            keys.reserve(most.min(SHORT));
            self.keys(i, keys);
        })
    }
}

/// For each unknown its places in `nodes`, in order: their starts, and the places.
fn inverse(operation: &str, unknowns: usize, nodes: &[u32]) -> Result<(Vec<u32>, Vec<u32>)> {
    let part = unknowns.div_ceil(rayon::current_num_threads().clamp(1, READERS)).max(1);
    let mut starts = pages::zeroed::<u32>(operation, unknowns + 1)?;
    parallel::for_each(starts[1..].chunks_mut(part).enumerate(), |(k, counts)| {
        let first = (k * part) as u32;
        for &node in nodes {
            if let Some(count) = counts.get_mut(node.wrapping_sub(first) as usize) {
                *count += 1;
            }
        }
    });
    (0..unknowns).for_each(|i| starts[i + 1] += starts[i]);
    let mut slots = pages::zeroed::<u32>(operation, starts[unknowns] as usize)?;
    let ends: Vec<u32> = (0..unknowns).step_by(part).chain([unknowns]).map(|i| starts[i]).collect();
    let own_slots = cut(&mut slots, lengths(&ends));
    let tasks = own_slots.into_iter().zip(starts[..unknowns].chunks(part)).enumerate();
    parallel::for_each(tasks, |(k, (slots, starts))| {
        let first = (k * part) as u32;
        let mut next: Vec<u32> = starts.iter().map(|start| start - ends[k]).collect();
        for (&node, slot) in nodes.iter().zip(0u32..) {
            if let Some(at) = next.get_mut(node.wrapping_sub(first) as usize) {
                slots[*at as usize] = slot;
                *at += 1;
            }
        }
    });
    Ok((starts, slots))
}
