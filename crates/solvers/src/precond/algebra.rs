//! Sparse algebra for a set-up, on the device of the matrix.
use lacuna_engine::{Device, Each, FormatRefs, Graph, Matrix, Products, Result, with_each};

/// Minimum number of entries: the host takes a few milliseconds for fewer.
const WORTH: usize = 200_000;

/// A device that can do a whole set-up: see [`lacuna_engine::Algebra`].
#[derive(Clone)]
pub struct There {
    /// The device.
    pub device: Device,
    /// The matrix of the set-up, where it is on that device.
    pub matrix: Option<Matrix>,
}

/// Sparse algebra for the set-up of a preconditioner, done by a device. `None` if the host is to do it, with the same result:
/// always for a device without kernels for it, and for small matrices.
pub trait SparseAlgebra {
    /// Whether a device does what is asked for matrices of so many entries. Provided: no.
    fn is_for(&self, entries: usize) -> bool {
        let _ = entries;
        false
    }

    /// A device that does the whole set-up for a matrix of so many entries, where nothing of it has to be on the host. Provided:
    /// none.
    fn there(&self, entries: usize) -> Option<There> {
        let _ = entries;
        None
    }

    /// The product of matrices, from the last to the first, with the bits of [`lacuna_formats::algebra`].
    ///
    /// # Errors
    /// [`lacuna_engine::Error::Shape`] if shapes do not match; device failures.
    fn product(&mut self, factors: &[Each<FormatRefs<'_>>]) -> Result<Option<Each<Products>>>;

    /// Rows no two of which are within two steps of each other: see [`lacuna_engine::Backend::distance_two_set`]. Provided: `None`.
    ///
    /// # Errors
    /// As there.
    fn distance_two_set(&mut self, graph: Graph<'_>, priorities: &[u64]) -> Result<Option<Vec<u32>>> {
        let _ = (graph, priorities);
        Ok(None)
    }
}

/// The host does everything.
pub struct OnHost;

impl SparseAlgebra for OnHost {
    fn product(&mut self, _: &[Each<FormatRefs<'_>>]) -> Result<Option<Each<Products>>> {
        Ok(None)
    }
}

/// A device does what is large.
pub(super) struct OnDevice<'d> {
    pub(super) device: &'d Device,
    /// The matrix of the set-up there.
    pub(super) matrix: Matrix,
}

impl Drop for OnDevice<'_> {
    fn drop(&mut self) {
        self.device.finish_sparse_algebra();
    }
}

impl SparseAlgebra for OnDevice<'_> {
    fn is_for(&self, entries: usize) -> bool {
        entries >= WORTH && self.device.has_fast_sparse_algebra().unwrap_or(false)
    }

    fn there(&self, entries: usize) -> Option<There> {
        self.is_for(entries).then(|| There { device: self.device.clone(), matrix: Some(self.matrix) })
    }

    fn product(&mut self, factors: &[Each<FormatRefs<'_>>]) -> Result<Option<Each<Products>>> {
        let entries = factors.iter().map(|factor| with_each!(factor, a => a.nnz())).sum();
        if self.is_for(entries) { self.device.sparse_product_of_each(factors) } else { Ok(None) }
    }

    fn distance_two_set(&mut self, graph: Graph<'_>, priorities: &[u64]) -> Result<Option<Vec<u32>>> {
        if self.is_for(graph.neighbours.len()) {
            self.device.distance_two_set(graph, priorities)
        } else {
            Ok(None)
        }
    }
}
