//! What the methods of this crate are given, and what they return.
use crate::filter::Interval;
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
    /// Ends once the best that is left is surely beyond these.
    pub(crate) beyond: Option<Beyond>,
    /// What Lanczos' method may damp from the beginning.
    pub(crate) interval: Option<Interval>,
}

/// The first and the last of the values that are known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beyond(pub(crate) [f64; 2]);

/// The residual of the best value that is left, beside its distance from the first that is known, from which on that value is
/// believed: with a larger one, it may be far from what the search will find.
const BELIEVED: f64 = 0.01;

impl Beyond {
    /// Whether a value, with the norm of its residual, is surely beyond those that are known at this end of the spectrum.
    pub(crate) fn has(self, value: f64, left: f64, largest: bool) -> bool {
        let ([first, last], sign) = (self.0, if largest { -1.0 } else { 1.0 });
        sign * (value - last) > left && left <= BELIEVED * sign * (value - first)
    }
}

/// What a search found, the values that were sought first.
pub(crate) struct Found<T> {
    pub(crate) reason: Reason,
    pub(crate) values: Vec<f64>,
    pub(crate) vectors: Vec<Vec<T>>,
    pub(crate) iterations: u64,
    pub(crate) restarts: u64,
    pub(crate) products: u64,
    /// Products whose vectors were made orthogonal to others.
    pub(crate) orthogonal: u64,
    pub(crate) preconditionings: u64,
    /// The largest residual over its goal, for each iteration or cycle.
    pub(crate) history: Vec<f64>,
    /// What Lanczos' method damped.
    pub(crate) interval: Option<Interval>,
}

impl<T: Scalar> Search<'_, T> {
    /// Whether the best value that is left is beyond what the search asks about.
    pub(crate) fn is_enough(&self, value: f64, left: f64) -> bool {
        self.beyond.is_some_and(|beyond| beyond.has(value, left, self.largest))
    }
}

impl<T> Found<T> {
    /// Pairs that no search of this crate found.
    pub(crate) fn given(values: Vec<f64>, vectors: Vec<Vec<T>>) -> Self {
        Found {
            reason: Reason::Converged,
            values,
            vectors,
            iterations: 0,
            restarts: 0,
            products: 0,
            orthogonal: 0,
            preconditionings: 0,
            history: Vec::new(),
            interval: None,
        }
    }
    /// Adds what a search before this one took.
    pub(crate) fn follow(&mut self, before: &Found<T>) {
        self.iterations += before.iterations;
        self.products += before.products;
        self.orthogonal += before.orthogonal;
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
