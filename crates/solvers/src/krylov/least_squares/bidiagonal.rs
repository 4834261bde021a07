//! Golub–Kahan bidiagonalisation, shared by three methods.
use crate::System;
use lacuna_engine::{Adjoint, Cell, Pass, Recorder, Vector};

/// `β u = A z − α u`, `α v = Mᴴ Aᴴ u − β v` and `z = M v`, starting from `β u = b − A x`. The stored vectors are
/// `β u`, `α v` and `α z`, so that no sweep is spent on normalising them. Without a preconditioner `z` is `v`.
///
/// Reference: Golub and Kahan 1965, doi:10.1137/0702016; Paige and Saunders 1982, "Bidiag 1", doi:10.1145/355984.355989.
pub(super) struct Bidiagonal {
    /// `β u`, of length `A.rows()`.
    u: Vector,
    /// `α v`, of length `A.cols()`.
    v: Vector,
    /// `α M v`: the direction in which `x` moves.
    pub(super) z: Vector,
    pub(super) alpha: Cell,
    pub(super) beta: Cell,
    /// `‖Mᴴ Aᴴ r‖²` by the recurrence; `‖Aᴴ r‖²` once counted or confirmed.
    pub(super) normal: Cell,
    /// `‖Aᴴ r‖² / ‖Mᴴ Aᴴ r‖²` at the last restart.
    ratio: Cell,
    q: Vector,
    t: Vector,
    squared: Cell,
}

impl Bidiagonal {
    pub(super) fn new(k: &mut Recorder<'_>, s: &System<'_>) -> Self {
        let ([u, q], [v, t]) = (k.vectors(s.b.len), k.vectors(s.x.len));
        let z = s.preconditioned(k, v);
        let [alpha, beta, normal, ratio, squared] = k.cells();
        Bidiagonal { u, v, z, alpha, beta, normal, ratio, q, t, squared }
    }

    /// Records the start from `b − A x`, its confirmation, and the pass over vectors of the length of `x`.
    pub(super) fn begin(&self, k: &mut Recorder<'_>, s: &System<'_>, then: Pass) {
        let Bidiagonal { u, v, z, alpha, beta, normal, ratio, q, t, squared } = *self;
        let g = if z == v { t } else { z };
        let residual = Pass::new("residual").set(u, s.b - q).dot(squared, u, u).eval(beta, squared.sqrt());
        let first = Pass::new("first")
            .set(v, t / beta)
            .dot(squared, t, t)
            .eval(alpha, squared.sqrt() / beta)
            .eval(ratio, normal / squared);
        k.spmv_dot(s.a, s.x, q, residual);
        k.spmv_dot(&Adjoint(s.a), u, g, s.confirm(Pass::new("normal").dot(normal, g, g), normal));
        s.precondition_adjoint(k, g, t, first);
        self.turn(k, s, then);
    }

    /// After `pass`, counts an iteration whose `‖Mᴴ Aᴴ r‖²` by the recurrence is in `normal`.
    pub(super) fn count(&self, s: &System<'_>, pass: Pass) -> Pass {
        s.count(pass.eval(self.normal, self.ratio * self.normal), self.normal)
    }

    /// Records the next `u` and `v`, and the formulas that use their `α` and `β`. `z` is a work vector until
    /// [`Bidiagonal::turn`].
    pub(super) fn step(&self, k: &mut Recorder<'_>, s: &System<'_>, then: Pass) {
        let Bidiagonal { u, v, z, alpha, beta, q, t, squared, .. } = *self;
        let left = Pass::new("left")
            .set(u, q / alpha - (alpha / beta) * u)
            .dot(squared, u, u)
            .eval(beta, squared.sqrt());
        // If β vanishes, x solves A x = b, and the quotients by β are not used.
        let right = Pass::new("right")
            .set(v, t / beta.max(beta.tiny()) - (beta / alpha) * v)
            .dot(squared, v, v)
            .eval(alpha, squared.sqrt());
        k.spmv_dot(s.a, z, q, left);
        s.operate_adjoint(k, u, z, t, right.then(then));
    }

    /// Records the next `z`, and the pass that uses it.
    pub(super) fn turn(&self, k: &mut Recorder<'_>, s: &System<'_>, then: Pass) {
        s.precondition(k, self.v, self.z, then);
    }
}
