//! Conjugate gradients on the normal equations.
use super::super::method::{Listed, MethodInfo, Needs};
use crate::System;
use lacuna_engine::{Adjoint, Pass, Reason, Recorder};

/// CGLS: conjugate gradients on `Aᴴ A x = Aᴴ b`, by products with `A` and `Aᴴ`; the matrix `Aᴴ A` is never
/// formed.
///
/// * Solves: `min ‖b − A x‖` for a matrix of any shape; from the guess 0 it finds the minimiser `x` of least
///   norm, or of least `‖M⁻¹ x‖` with a preconditioner, as [`Lsqr`](crate::Lsqr). The residual decreases
///   monotonically, `‖Aᴴ r‖` does not. [`Lsqr`](crate::Lsqr) has the same iterates and is more stable on
///   ill-conditioned matrices.
/// * Cost of an iteration: one product with `A`, one with `Aᴴ`; five sweeps, four if the matrix is square.
///   Storage: 2 vectors as long as `b`, 3 as long as `x`, 4 with a preconditioner.
/// * Reference: Hestenes and Stiefel 1952, section 10, doi:10.6028/jres.049.044; Björck 1996, Algorithm 7.4.1, doi:10.1137/1.9781611971484.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cgls;

impl Listed for Cgls {
    const INFO: MethodInfo = MethodInfo {
        name: "cgls",
        about: "least squares by conjugate gradients on the normal equations; any shape",
        needs: Needs::Nothing,
        adjoint: true,
        options: &[],
    };

    fn record(&self, k: &mut Recorder<'_>, sys: &System<'_>) {
        let (a, ah, b, x) = (sys.a, Adjoint(sys.a), sys.b, sys.x);
        let ([r, q], [s, p]) = (k.vectors(b.len), k.vectors(x.len));
        let z = sys.preconditioned(k, p); // M p; a work vector between its uses
        let g = if z == p { s } else { z };
        let [gamma, next, qq, alpha, beta, gg, ratio] = k.cells();

        let confirm = sys.confirm(Pass::new("normal").dot(gg, g, g), gg);
        let begin = Pass::new("begin").set(p, s).dot(gamma, s, s).eval(ratio, gg / gamma);
        let along = Pass::new("along").dot(qq, q, q).stop_if(qq.is_zero(), Reason::Breakdown("A p"));
        let normal = Pass::new("normal").dot(next, s, s).eval(beta, next / gamma).eval(gamma, next);
        let normal = sys.count(normal.eval(gg, ratio * next), gg);

        k.restart(|k| {
            k.spmv_dot(a, x, q, Pass::new("residual").set(r, b - q));
            k.spmv_dot(&ah, r, g, confirm);
            sys.precondition_adjoint(k, g, s, begin);
            sys.precondition(k, p, z, Pass::nothing());
        });
        k.each(|k| {
            k.spmv_dot(a, z, q, along.eval(alpha, gamma / qq));
            k.multi_axpy_dot(Pass::new("residual").set(r, r - alpha * q));
            k.multi_axpy_dot(Pass::new("step").set(x, x + alpha * z));
            sys.operate_adjoint(k, r, z, s, normal);
            k.multi_axpy_dot(Pass::new("turn").set(p, s + beta * p));
            sys.precondition(k, p, z, Pass::nothing());
        });
    }
}
