//! Whether a method uses the preconditioner that it is given.
use lacuna_engine::{Basis, LinOp, Pass, Recorder, Scalar, Vector};
use std::cell::Cell;

/// A preconditioner, and whether a method has asked for it.
pub(crate) struct Observed<'a, T: Scalar> {
    m: &'a dyn LinOp<T>,
    used: Cell<bool>,
}

impl<'a, T: Scalar> Observed<'a, T> {
    pub(crate) fn new(m: &'a dyn LinOp<T>) -> Self {
        Observed { m, used: Cell::new(false) }
    }
    pub(crate) fn is_used(&self) -> bool {
        self.used.get()
    }
    fn used(&self) -> &'a dyn LinOp<T> {
        self.used.set(true);
        self.m
    }
}

impl<T: Scalar> LinOp<T> for Observed<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.m.shape()
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.used().apply(k, x, y, then);
    }
    fn keep(&self, k: &mut Recorder<'_, T>) {
        self.m.keep(k);
    }
    fn diagonal(&self) -> Option<Vector<T>> {
        self.used().diagonal()
    }
    fn apply_columns(&self, k: &mut Recorder<'_, T>, x: Basis<T>, y: Basis<T>) {
        self.used().apply_columns(k, x, y);
    }
    fn apply_transpose(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.used().apply_transpose(k, x, y, then);
    }
    fn apply_adjoint(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.used().apply_adjoint(k, x, y, then);
    }
}
