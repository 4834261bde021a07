//! What the methods of this crate are given, and what they return.
use lacuna_engine::{Device, Format, LinOp, Matrix, Owned, Reason, Result, Scalar};
use lacuna_formats::{Csr, Structure, choose_format, convert, parallel};
use lacuna_solvers::hashed;
use std::ops::ControlFlow;
use std::sync::Arc;

/// When a pair has converged: `‖A x − λ B x‖ ≤ max(relative · |λ|, floor)`, with `‖x‖_B = 1`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    pub(crate) relative: f64,
    pub(crate) floor: f64,
}

/// Called with the iterations, the number of pairs that have converged, and the largest residual over its goal.
pub(crate) type Watching<'w> = &'w mut dyn FnMut(u64, usize, f64) -> ControlFlow<()>;

/// A search for one end of the spectrum of a Hermitian operator.
pub(crate) struct Search<'a, T: Scalar> {
    pub(crate) dev: &'a Device,
    pub(crate) a: &'a dyn LinOp<T>,
    pub(crate) b: Option<&'a dyn LinOp<T>>,
    pub(crate) m: Option<&'a dyn LinOp<T>>,
    pub(crate) count: usize,
    pub(crate) largest: bool,
    pub(crate) goal: Goal,
    pub(crate) limit: u64,
    pub(crate) seed: u32,
    /// Vectors to begin with.
    pub(crate) start: &'a [Vec<T>],
    /// Ends once the first value is surely beyond this one.
    pub(crate) beyond: Option<f64>,
}

/// What a search found, the values that were sought first.
pub(crate) struct Found<T> {
    pub(crate) reason: Reason,
    pub(crate) values: Vec<f64>,
    pub(crate) vectors: Vec<Vec<T>>,
    pub(crate) iterations: u64,
    pub(crate) restarts: u64,
    pub(crate) products: u64,
    pub(crate) preconditionings: u64,
    /// The largest residual over its goal, for each iteration or cycle.
    pub(crate) history: Vec<f64>,
}

impl<T> Found<T> {
    /// Adds what a search before this one took.
    pub(crate) fn follow(&mut self, before: &Found<T>) {
        self.iterations += before.iterations;
        self.products += before.products;
        self.preconditionings += before.preconditionings;
    }
}

/// Elements that a task draws.
const GRAIN: usize = 4096;

/// Vector number `index` of a seed: hashed numbers, so that it is the same everywhere.
pub(crate) fn drawn<T: Scalar>(n: usize, seed: u32, index: usize) -> Vec<T> {
    let index = 2 * index + 4096 * seed as usize;
    parallel::collect(n, GRAIN, |row| T::from_parts(hashed(row, index), hashed(row, index + 1)))
}

/// A matrix on a device, in the format that suits it.
pub(crate) fn placed<T: Scalar>(dev: &Device, a: &Arc<Csr<T>>) -> Result<Owned<Matrix<T>>> {
    let structure = Structure::of(&**a);
    let formats = dev.formats(a.rows(), Format::bytes(&**a))?;
    let (name, _) = choose_format(a, &structure, formats);
    dev.matrix(convert(a, name)?)
}
