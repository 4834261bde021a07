//! A backend around another that counts: what the design promises, as figures.
use lacuna_engine::{
    Backend, Basis, Cell, Cells, Control, DeviceInfo, Format, History, Mark, Matrix, Op, Result, Scalar,
    Vector,
};
use std::sync::Arc;

/// What a [`Counting`] backend has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations run: kernel launches at the most.
    pub steps: usize,
    /// Vectors made, columns of bases among them.
    pub vectors: usize,
    /// Matrices made.
    pub matrices: usize,
    /// Copies to the device.
    pub uploads: usize,
    /// Copies from the device, each a wait for the queue.
    pub downloads: usize,
    /// Reads of cells, each a wait for the queue.
    pub reads: usize,
}

/// A backend that counts what another one is asked to do.
pub struct Counting<B> {
    inner: B,
    /// What was seen so far.
    pub counts: Counts,
}

impl<B: Backend> Counting<B> {
    /// Around a backend.
    pub fn new(inner: B) -> Self {
        Counting { inner, counts: Counts::default() }
    }
    /// What was seen, and starts again from nothing.
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
