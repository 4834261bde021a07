//! A backend that wraps another and counts calls: the figures that the design promises.
use crate::narrow::{refined_request, refinement};
use crate::numbers::generated;
use lacuna_engine::lower::Sweep;
use lacuna_engine::{
    AnyFormat, Backend, Basis, Cell, Cells, Device, DeviceInfo, Each, FormatRefs, Graph, Matrix, Number,
    NumberType, Op, OpKind, Products, Resource, Result, Scalar, State, Vector,
};
use lacuna_solvers::Outcome;

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
    /// Copies of vectors on the device.
    pub copies: usize,
    /// Reads of cells, each a wait for the queue.
    pub reads: usize,
    /// Vectors, runs of cells, matrices and plans freed.
    pub freed: usize,
}

/// A backend that counts the calls to another. Programs run operation by operation.
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
    fn alone(&mut self, kind: OpKind, pass: &Sweep, state: State<'_>) -> Result<()> {
        self.inner.step(&Op { kind, sweep: pass.clone() }, state)
    }
}

impl<B: Backend> Backend for Counting<B> {
    fn info(&self) -> DeviceInfo {
        self.inner.info()
    }
    fn vectors(&mut self, kind: NumberType, n: usize, columns: usize, narrow: bool) -> Result<Basis> {
        self.counts.vectors += columns;
        self.inner.vectors(kind, n, columns, narrow)
    }
    fn cells(&mut self, kind: NumberType, count: usize) -> Result<Cells> {
        self.inner.cells(kind, count)
    }
    fn matrix(&mut self, a: AnyFormat) -> Result<Matrix> {
        self.counts.matrices += 1;
        self.inner.matrix(a)
    }
    fn set_matrix(&mut self, a: Matrix, to: AnyFormat) -> Result<()> {
        self.inner.set_matrix(a, to)
    }
    fn free(&mut self, what: Resource) {
        self.counts.freed += 1;
        self.inner.free(what);
    }
    fn upload(&mut self, from: &[u8], to: Vector) -> Result<()> {
        self.counts.uploads += 1;
        self.inner.upload(from, to)
    }
    fn clear(&mut self, v: Vector) -> Result<()> {
        self.inner.clear(v)
    }
    fn download(&mut self, from: Vector, to: &mut [u8]) -> Result<()> {
        self.counts.downloads += 1;
        self.inner.download(from, to)
    }
    fn copy(&mut self, from: Vector, to: Vector) -> Result<()> {
        self.counts.copies += 1;
        self.inner.copy(from, to)
    }
    fn write(&mut self, cell: Cell, value: Number) -> Result<()> {
        self.inner.write(cell, value)
    }
    fn read(&mut self, cells: &[Cell], to: &mut [u8]) -> Result<()> {
        self.counts.reads += 1;
        self.inner.read(cells, to)
    }
    lacuna_engine::primitives_by!(alone);
    fn step(&mut self, op: &Op, state: State<'_>) -> Result<()> {
        self.counts.steps += 1;
        self.inner.step(op, state)
    }
    fn sparse_product(&mut self, factors: &[Each<FormatRefs<'_>>]) -> Result<Option<Each<Products>>> {
        self.inner.sparse_product(factors)
    }
    fn distance_two_set(&mut self, graph: Graph<'_>, priorities: &[u64]) -> Result<Option<Vec<u32>>> {
        self.inner.distance_two_set(graph, priorities)
    }
    fn has_fast_sparse_algebra(&self) -> bool {
        self.inner.has_fast_sparse_algebra()
    }
    fn finish_sparse_algebra(&mut self) {
        self.inner.finish_sparse_algebra();
    }
}

/// Fails if a refined solve copies more vectors between the host and the device than the right-hand side, a guess, and the
/// solution.
///
/// # Panics
/// If it does, or does not converge.
pub fn refined_solve_transfers_b_and_x<T: Scalar, B: Backend>(backend: B) {
    let dev = Device::new(Counting::new(backend));
    let a = generated::<T>("gen:poisson2d:30x30");
    let b = vec![T::one(); a.rows()];
    let (mut outer, mut refined) = refinement(&dev, refined_request(a, "cg", "jacobi")).unwrap();
    let take = || dev.with(Counting::<B>::take).unwrap();
    take();
    for guess in [0.0, 0.5] {
        let (mut outcome, mut x) = (Outcome::default(), vec![T::from_real(guess); b.len()]);
        refined.solve(&mut outer, &mut outcome, (&b, &mut x), None).unwrap();
        assert!(outcome.converged() && outcome.restarts > 0, "{outcome:?}");
        let counts = take();
        let expected = Counts {
            uploads: if guess == 0.0 { 1 } else { 2 },
            downloads: 1,
            copies: 2 * (1 + outcome.restarts as usize),
            steps: counts.steps,
            reads: counts.reads,
            ..Counts::default()
        };
        assert_eq!(counts, expected, "from {guess}");
    }
}
