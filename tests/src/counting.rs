//! A backend that wraps another and counts calls: the figures that the design promises.
use lacuna_engine::{
    Backend, Basis, Cell, Cells, CompressedRows, Control, DeviceInfo, Format, Graph, History, Mark, Matrix,
    Op, Result, Scalar, Vector,
};
use std::sync::Arc;

/// Counts of a [`Counting`] backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations run: at most this many kernel launches.
    pub steps: usize,
    /// Vectors created, including columns of bases.
    pub vectors: usize,
    /// Matrices created.
    pub matrices: usize,
    /// Copies to the device.
    pub uploads: usize,
    /// Copies from the device, each a wait for the queue.
    pub downloads: usize,
    /// Reads of cells, each a wait for the queue.
    pub reads: usize,
}

/// A backend that counts the calls to another.
pub struct Counting<B> {
    inner: B,
    /// The counts so far.
    pub counts: Counts,
}

impl<B: Backend> Counting<B> {
    /// Wraps a backend.
    pub fn new(inner: B) -> Self {
        Counting { inner, counts: Counts::default() }
    }
    /// The counts so far; resets them.
    pub fn take(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }
}

impl<B: Backend> Backend for Counting<B> {
    fn device(&self) -> DeviceInfo {
        self.inner.device()
    }
    fn vector<T: Scalar>(&mut self, n: usize) -> Result<Vector<T>> {
        self.counts.vectors += 1;
        Backend::vector(&mut self.inner, n)
    }
    fn basis<T: Scalar>(&mut self, n: usize, columns: usize) -> Result<Basis<T>> {
        self.counts.vectors += columns;
        Backend::basis(&mut self.inner, n, columns)
    }
    fn cells<T: Scalar>(&mut self, count: usize) -> Result<Cells<T>> {
        Backend::cells(&mut self.inner, count)
    }
    fn matrix<T: Scalar>(&mut self, a: Arc<dyn Format<T>>) -> Result<Matrix<T>> {
        self.counts.matrices += 1;
        self.inner.matrix(a)
    }
    fn set_matrix<T: Scalar>(&mut self, a: Matrix<T>, to: Arc<dyn Format<T>>) -> Result<()> {
        self.inner.set_matrix(a, to)
    }
    fn sparse_product<T: Scalar>(&mut self, factors: &[&dyn Format<T>]) -> Result<Option<CompressedRows<T>>> {
        self.inner.sparse_product(factors)
    }
    fn has_fast_sparse_algebra(&self) -> bool {
        self.inner.has_fast_sparse_algebra()
    }
    fn distance_two_set(&mut self, graph: Graph<'_>, priorities: &[u64]) -> Result<Option<Vec<u32>>> {
        self.inner.distance_two_set(graph, priorities)
    }
    fn finish_sparse_algebra(&mut self) {
        self.inner.finish_sparse_algebra();
    }
    fn mark(&self) -> Mark {
        self.inner.mark()
    }
    fn release(&mut self, mark: Mark) {
        self.inner.release(mark);
    }
    fn upload<T: Scalar>(&mut self, from: &[T], to: Vector<T>) -> Result<()> {
        self.counts.uploads += 1;
        self.inner.upload(from, to)
    }
    fn download<T: Scalar>(&mut self, from: Vector<T>, to: &mut [T]) -> Result<()> {
        self.counts.downloads += 1;
        self.inner.download(from, to)
    }
    fn write<T: Scalar>(&mut self, cell: Cell<T>, value: T) -> Result<()> {
        Backend::write(&mut self.inner, cell, value)
    }
    fn read<T: Scalar>(&mut self, cells: &[Cell<T>]) -> Result<Vec<T>> {
        self.counts.reads += 1;
        self.inner.read(cells)
    }
    fn step<T: Scalar>(&mut self, op: &Op<T>, control: &mut Control, history: &mut History) -> Result<()> {
        self.counts.steps += 1;
        self.inner.step(op, control, history)
    }
}
