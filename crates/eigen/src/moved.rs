//! An operator with some of its eigenvalues moved.
use lacuna_engine::{Basis, Cells, LinOp, Pass, Recorder, Scalar, Vector};

/// `A x + U (Uᴴ x)`, or with a minus: what `U` spans is moved away from the end of the spectrum that is sought.
pub(crate) struct Moved<'a, T: Scalar> {
    pub(crate) a: &'a dyn LinOp<T>,
    pub(crate) by: Basis<T>,
    /// As many cells as `by` has columns, for each column that is multiplied at once.
    pub(crate) cells: Cells<T>,
    pub(crate) up: bool,
}

impl<T: Scalar> LinOp<T> for Moved<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.shape()
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        k.spmv_dot(self.a, x, y, Pass::nothing());
        let cells = self.cells.take(self.by.columns);
        k.basis_dot(self.by, x, cells);
        if self.up {
            k.basis_add(self.by, cells, y, then);
        } else {
            k.basis_axpy(self.by, cells, y, then);
        }
    }
    fn apply_columns(&self, k: &mut Recorder<'_, T>, x: Basis<T>, y: Basis<T>) {
        let (each, all) = (self.by.columns, self.cells.count as usize);
        let at_once = all / each.max(1);
        if !self.up || at_once < 2 {
            return (0..x.columns).for_each(|j| self.apply(k, x.column(j), y.column(j), Pass::nothing()));
        }
        k.spmm(self.a, x, y);
        for first in (0..x.columns).step_by(at_once) {
            let count = at_once.min(x.columns - first);
            let (x, y) = (x.part(first, count), y.part(first, count));
            let cells = self.cells.take(each * count);
            k.basis_gram(self.by, x, cells);
            k.basis_combine_add(self.by, cells, y);
        }
    }
}
