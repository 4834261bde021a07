//! Golub–Kahan bidiagonalisation, shared by three methods.
use crate::System;
use lacuna_engine::{Adjoint, Cell, Pass, Recorder, Scalar, Vector};

/// `β u = A v − α u`, `α v = Aᴴ u − β v`, starting from `β u = b − A x`. The stored vectors are `β u` and
/// `α v`, so that no sweep is spent on normalising them.
///
/// Reference: Golub and Kahan 1965, doi:10.1137/0702016; Paige and Saunders 1982, "Bidiag 1", doi:10.1145/355984.355989.
pub(super) struct Bidiagonal<T> {
    /// `β u`, of length `A.rows()`.
    pub(super) u: Vector<T>,
    /// `α v`, of length `A.cols()`.
    pub(super) v: Vector<T>,
    pub(super) alpha: Cell<T>,
    pub(super) beta: Cell<T>,
    /// `‖Aᴴ r‖²`
    pub(super) normal: Cell<T>,
    q: Vector<T>,
    t: Vector<T>,
    squared: Cell<T>,
}

impl<T: Scalar> Bidiagonal<T> {
    pub(super) fn new(k: &mut Recorder<'_, T>, s: &System<'_, T>) -> Self {
        let ([u, q], [v, t]) = (k.vectors(s.b.len), k.vectors(s.x.len));
        let [alpha, beta, normal, squared] = k.cells();
        Bidiagonal { u, v, alpha, beta, normal, q, t, squared }
    }

    /// Records the start from `b − A x`, its confirmation, and the pass over vectors of the length of `x`.
    pub(super) fn begin(&self, k: &mut Recorder<'_, T>, s: &System<'_, T>, then: Pass<T>) {
        let Bidiagonal { u, v, alpha, beta, normal, q, t, squared } = *self;
        let residual = Pass::new("residual").set(u, s.b - q).dot(squared, u, u).eval(beta, squared.sqrt());
        let adjoint = Pass::new("normal").set(v, t / beta).dot(normal, t, t);
        k.spmv_dot(s.a, s.x, q, residual);
        k.spmv_dot(&Adjoint(s.a), u, t, s.confirm(adjoint, normal).eval(alpha, normal.sqrt() / beta));
        k.multi_axpy_dot(then);
    }

    /// Records a step, and the formulas that use its new `α` and `β`.
    pub(super) fn step(&self, k: &mut Recorder<'_, T>, s: &System<'_, T>, then: Pass<T>) {
        let Bidiagonal { u, v, alpha, beta, q, t, squared, .. } = *self;
        let left = Pass::new("left")
            .set(u, q / alpha - (alpha / beta) * u)
            .dot(squared, u, u)
            .eval(beta, squared.sqrt());
        // If β vanishes, x solves A x = b, and the quotients by β are not used.
        let right = Pass::new("right")
            .set(v, t / beta.max(T::TINY) - (beta / alpha) * v)
            .dot(squared, v, v)
            .eval(alpha, squared.sqrt());
        k.spmv_dot(s.a, v, q, left);
        k.spmv_dot(&Adjoint(s.a), u, t, right.then(then));
    }
}
