//! Operators that map a vector to a vector by recording operations.
use crate::{Basis, Cell, Error, Matrix, Pass, Recorder, Scalar, Untyped, Vector};

/// A matrix, a preconditioner, or anything else that can record `y ← A x`.
///
/// Implementations **must** complete `y` before `then` runs, **must not** change `x`, and **should** pass
/// `then` to the operation that writes `y`, so that it is fused. Scratch vectors are allocated beforehand or
/// by the recorder.
pub trait LinOp<T = Untyped> {
    /// Rows and columns.
    fn shape(&self) -> (usize, usize);
    /// Records `y ← A x`, then `then` on the rows just computed. `x` and `y` have the right lengths and are
    /// different vectors.
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>);
    /// Keeps alive what the operator's handles refer to, as long as the program that is recorded: see [`Recorder::keep`].
    /// Provided: nothing.
    fn keep(&self, k: &mut Recorder<'_, T>) {
        let _ = k;
    }
    /// `d` if the operator is `y ← d ∘ x`: a method then multiplies where it reads `x`, and stores no `y`.
    /// Provided: none.
    fn diagonal(&self) -> Option<Vector<T>> {
        None
    }
    /// Records `Y ← A X` for all columns; lengths and numbers of columns match. Provided: column by column.
    /// An implementation **must** give the same bits as that.
    fn apply_columns(&self, k: &mut Recorder<'_, T>, x: Basis<T>, y: Basis<T>) {
        (0..x.columns).for_each(|j| self.apply(k, x.column(j), y.column(j), Pass::nothing()));
    }
    /// Records `y ← Aᵀ x`, then `then`. Fails if the operator does not know its transpose.
    fn apply_transpose(&self, k: &mut Recorder<'_, T>, _x: Vector<T>, _y: Vector<T>, _then: Pass<T>) {
        k.fail(Error::Unsupported {
            operation: "transposed product".into(),
            message: "this operator does not know its transpose; pair it with one by `WithTranspose`".into(),
        });
    }
    /// Records `y ← Aᴴ x`, then `then`. Provided: the transpose for a real operator; fails for a complex one.
    fn apply_adjoint(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        if !k.kind().is_complex() {
            return self.apply_transpose(k, x, y, then);
        }
        k.fail(Error::Unsupported {
            operation: "adjoint product".into(),
            message: "this operator does not know its adjoint; pair it with one by `WithAdjoint`".into(),
        });
    }
}

impl<T> LinOp<T> for Matrix<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        k.matrix_product(*self, x, y, then);
    }
    fn apply_columns(&self, k: &mut Recorder<'_, T>, x: Basis<T>, y: Basis<T>) {
        k.matrix_columns(*self, x, y);
    }
}

/// `y ← x`
#[derive(Clone, Copy, Debug)]
pub struct Identity(pub usize);

impl<T> LinOp<T> for Identity {
    fn shape(&self) -> (usize, usize) {
        (self.0, self.0)
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        k.multi_axpy_dot(Pass::new("identity").set(y, x).then(then));
    }
    fn apply_transpose(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.apply(k, x, y, then);
    }
    fn apply_adjoint(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.apply(k, x, y, then);
    }
}

/// `y ← d ∘ x`, a diagonal matrix: the Jacobi preconditioner if `d` holds the reciprocals of a diagonal. It
/// records a pass, which is fused into the sweep before it.
#[derive(Clone, Copy, Debug)]
pub struct Diagonal<T>(pub Vector<T>);

impl<T> LinOp<T> for Diagonal<T> {
    fn shape(&self) -> (usize, usize) {
        (self.0.len, self.0.len)
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        k.multi_axpy_dot(Pass::new("diagonal").set(y, self.0 * x).then(then));
    }
    fn diagonal(&self) -> Option<Vector<T>> {
        Some(self.0)
    }
    fn apply_transpose(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.apply(k, x, y, then);
    }
}

/// `y ← c A x`
pub struct Scaled<'a, T>(pub Cell<T>, pub &'a dyn LinOp<T>);

impl<T> LinOp<T> for Scaled<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.1.shape()
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let own = Pass::new("scale").set(y, self.0 * y);
        self.1.apply(k, x, y, own.then(then));
    }
    fn apply_transpose(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let own = Pass::new("scale").set(y, self.0 * y);
        self.1.apply_transpose(k, x, y, own.then(then));
    }
    fn apply_adjoint(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let own = Pass::new("scale").set(y, self.0.conj() * y);
        self.1.apply_adjoint(k, x, y, own.then(then));
    }
}

/// `y ← A x + c x`, a shifted square operator.
pub struct Shifted<'a, T>(pub &'a dyn LinOp<T>, pub Cell<T>);

impl<T> LinOp<T> for Shifted<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let own = Pass::new("shift").set(y, y + self.1 * x);
        self.0.apply(k, x, y, own.then(then));
    }
    fn apply_transpose(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let own = Pass::new("shift").set(y, y + self.1 * x);
        self.0.apply_transpose(k, x, y, own.then(then));
    }
    fn apply_adjoint(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let own = Pass::new("shift").set(y, y + self.1.conj() * x);
        self.0.apply_adjoint(k, x, y, own.then(then));
    }
}

/// `y ← A x + B x`
pub struct Sum<'a, T>(pub &'a dyn LinOp<T>, pub &'a dyn LinOp<T>);

impl<T> LinOp<T> for Sum<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let other = k.vector(y.len);
        self.1.apply(k, x, other, Pass::nothing());
        let own = Pass::new("sum").set(y, y + other);
        self.0.apply(k, x, y, own.then(then));
    }
    fn apply_transpose(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let other = k.vector(y.len);
        self.1.apply_transpose(k, x, other, Pass::nothing());
        let own = Pass::new("sum").set(y, y + other);
        self.0.apply_transpose(k, x, y, own.then(then));
    }
    fn apply_adjoint(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let other = k.vector(y.len);
        self.1.apply_adjoint(k, x, other, Pass::nothing());
        let own = Pass::new("sum").set(y, y + other);
        self.0.apply_adjoint(k, x, y, own.then(then));
    }
}

/// `y ← A (B x)`
pub struct Product<'a, T>(pub &'a dyn LinOp<T>, pub &'a dyn LinOp<T>);

impl<T> LinOp<T> for Product<'_, T> {
    fn shape(&self) -> (usize, usize) {
        (self.0.shape().0, self.1.shape().1)
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let inner = k.vector(self.1.shape().0);
        k.spmv_dot(self.1, x, inner, Pass::nothing());
        k.spmv_dot(self.0, inner, y, then);
    }
    fn apply_transpose(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let inner = k.vector(self.0.shape().1);
        self.0.apply_transpose(k, x, inner, Pass::nothing());
        self.1.apply_transpose(k, inner, y, then);
    }
    fn apply_adjoint(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let inner = k.vector(self.0.shape().1);
        self.0.apply_adjoint(k, x, inner, Pass::nothing());
        self.1.apply_adjoint(k, inner, y, then);
    }
}

/// An operator together with its transpose, both stored.
pub struct WithTranspose<'a, T>(pub &'a dyn LinOp<T>, pub &'a dyn LinOp<T>);

impl<T> LinOp<T> for WithTranspose<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.0.apply(k, x, y, then);
    }
    fn apply_transpose(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.1.apply(k, x, y, then);
    }
}

/// `y ← Aᵀ x` of an operator that knows its transpose.
pub struct Transposed<'a, T>(pub &'a dyn LinOp<T>);

impl<T> LinOp<T> for Transposed<'_, T> {
    fn shape(&self) -> (usize, usize) {
        let (rows, cols) = self.0.shape();
        (cols, rows)
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.0.apply_transpose(k, x, y, then);
    }
    fn apply_transpose(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.0.apply(k, x, y, then);
    }
}

/// An operator together with its conjugate transpose, both stored; for a Hermitian operator, the same one
/// twice.
pub struct WithAdjoint<'a, T>(pub &'a dyn LinOp<T>, pub &'a dyn LinOp<T>);

impl<T> LinOp<T> for WithAdjoint<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.0.apply(k, x, y, then);
    }
    fn apply_transpose(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        match k.kind().is_complex() {
            false => self.1.apply(k, x, y, then),
            true => self.0.apply_transpose(k, x, y, then),
        }
    }
    fn apply_adjoint(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.1.apply(k, x, y, then);
    }
}

/// `y ← Aᴴ x` of an operator that knows its adjoint.
pub struct Adjoint<'a, T>(pub &'a dyn LinOp<T>);

impl<T> LinOp<T> for Adjoint<'_, T> {
    fn shape(&self) -> (usize, usize) {
        let (rows, cols) = self.0.shape();
        (cols, rows)
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.0.apply_adjoint(k, x, y, then);
    }
    fn apply_transpose(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        match k.kind().is_complex() {
            false => self.0.apply(k, x, y, then),
            true => k.fail(Error::Unsupported {
                operation: "transposed product".into(),
                message: "the transpose of an adjoint is a conjugate, which no operator knows".into(),
            }),
        }
    }
    fn apply_adjoint(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.0.apply(k, x, y, then);
    }
}

/// An operator of a number type as one whose number type is a value, for what records alike in all number types: see
/// [`Recorder::untyped`].
pub struct AnyOp<'a, T>(pub &'a dyn LinOp<T>);

impl<T: Scalar> LinOp for AnyOp<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }
    fn apply(&self, k: &mut Recorder<'_>, x: Vector, y: Vector, then: Pass) {
        self.0.apply(k.typed(), x.typed(), y.typed(), then.typed());
    }
    fn keep(&self, k: &mut Recorder<'_>) {
        self.0.keep(k.typed());
    }
    fn diagonal(&self) -> Option<Vector> {
        self.0.diagonal().map(Vector::untyped)
    }
    fn apply_columns(&self, k: &mut Recorder<'_>, x: Basis, y: Basis) {
        self.0.apply_columns(k.typed(), x.typed(), y.typed());
    }
    fn apply_transpose(&self, k: &mut Recorder<'_>, x: Vector, y: Vector, then: Pass) {
        self.0.apply_transpose(k.typed(), x.typed(), y.typed(), then.typed());
    }
    fn apply_adjoint(&self, k: &mut Recorder<'_>, x: Vector, y: Vector, then: Pass) {
        self.0.apply_adjoint(k.typed(), x.typed(), y.typed(), then.typed());
    }
}
