//! The CPU backend: one parallel region for a whole program.
use lacuna_core::{
    Backend, Basis, Cell, Cells, Control, DeviceInfo, Format, History, Mark, Matrix, Op, Reference, Result,
    Scalar, Vector,
};
use std::sync::Arc;

/// How a [`Cpu`] computes.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuOptions {
    /// Threads; all cores where not given.
    pub threads: Option<usize>,
}

/// The CPU as a device.
pub struct Cpu {
    inner: Reference,
    options: CpuOptions,
}

impl Cpu {
    /// A backend on all cores.
    pub fn new() -> Result<Self> {
        Self::with(CpuOptions::default())
    }
    /// A backend with the given options.
    pub fn with(options: CpuOptions) -> Result<Self> {
        Ok(Cpu { inner: Reference::new(), options })
    }
    /// Threads it computes with.
    pub fn threads(&self) -> usize {
        self.options.threads.unwrap_or(1)
    }
}

impl Backend for Cpu {
    fn device(&self) -> DeviceInfo {
        DeviceInfo { backend: "cpu", ..self.inner.device() }
    }
    fn vector<T: Scalar>(&mut self, n: usize) -> Result<Vector<T>> {
        Backend::vector(&mut self.inner, n)
    }
    fn basis<T: Scalar>(&mut self, n: usize, columns: usize) -> Result<Basis<T>> {
        Backend::basis(&mut self.inner, n, columns)
    }
    fn cells<T: Scalar>(&mut self, count: usize) -> Result<Cells<T>> {
        Backend::cells(&mut self.inner, count)
    }
    fn matrix<T: Scalar>(&mut self, a: Arc<dyn Format<T>>) -> Result<Matrix<T>> {
        self.inner.matrix(a)
    }
    fn mark(&self) -> Mark {
        self.inner.mark()
    }
    fn release(&mut self, mark: Mark) {
        self.inner.release(mark);
    }
    fn upload<T: Scalar>(&mut self, from: &[T], to: Vector<T>) -> Result<()> {
        self.inner.upload(from, to)
    }
    fn download<T: Scalar>(&mut self, from: Vector<T>, to: &mut [T]) -> Result<()> {
        self.inner.download(from, to)
    }
    fn write<T: Scalar>(&mut self, cell: Cell<T>, value: T) -> Result<()> {
        Backend::write(&mut self.inner, cell, value)
    }
    fn read<T: Scalar>(&mut self, cells: &[Cell<T>]) -> Result<Vec<T>> {
        self.inner.read(cells)
    }
    fn step<T: Scalar>(&mut self, op: &Op<T>, control: &mut Control, history: &mut History) -> Result<()> {
        self.inner.step(op, control, history)
    }
}
