//! The solution of least norm of a consistent system.
use super::super::method::{Listed, MethodInfo, Needs};
use super::bidiagonal::Bidiagonal;
use crate::System;
use lacuna_engine::{Pass, Reason, Recorder};

/// CRAIG: minimises the error at every step, for consistent systems.
///
/// * Solves: `min ‖x − x₀‖` subject to `A x = b`, for a matrix of any shape and a `b` in its range. It
///   does not converge if there is no solution; [`Lsqr`](crate::Lsqr) and [`Lsmr`](crate::Lsmr) do not. It takes no
///   preconditioner, which would change the norm.
/// * Cost of an iteration: one product with `A`, one with `Aᴴ`; three sweeps. Storage: 2 vectors as long as `b`, 3 as long as `x`.
/// * Outcome: `Breakdown` if `α` vanishes before the residual does, as it may if there is no solution; rounding may make it `Diverged`.
/// * Reference: Craig 1955, doi:10.1002/sapm195534164; Paige and Saunders 1982, section 7.2, doi:10.1145/355984.355989.
#[derive(Clone, Copy, Debug, Default)]
pub struct Craig;

impl Listed for Craig {
    const INFO: MethodInfo = MethodInfo {
        name: "craig",
        about: "the solution of least norm, where there is a solution; any shape",
        needs: Needs::Range,
        adjoint: true,
        options: &[],
    };

    fn record(&self, k: &mut Recorder<'_>, sys: &System<'_>) {
        let x = sys.x;
        let to = Bidiagonal::new(k, sys);
        let Bidiagonal { z, alpha, beta, normal, .. } = to;
        let [zeta, residual] = k.cells();

        let start = Pass::new("start").eval(zeta, beta / alpha);
        // x moves along v = (α v) / α, which is z without a preconditioner, before the next v overwrites it.
        let step = Pass::new("step").set(x, x + (zeta / alpha) * z);
        let next = Pass::new("next")
            .eval(residual, beta * zeta)
            .eval(normal, residual * residual * (beta * beta + alpha * alpha))
            .eval(zeta, -residual / alpha);

        k.restart(|k| to.begin(k, sys, start));
        k.each(|k| {
            k.multi_axpy_dot(step);
            to.step(k, sys, to.count(sys, next).stop_if(alpha.is_zero(), Reason::Breakdown("alpha")));
        });
    }
}
