//! Least squares by minimising the residual of the normal equations.
use super::super::method::{Listed, MethodInfo, Needs};
use super::bidiagonal::Bidiagonal;
use crate::System;
use lacuna_engine::{Formula, Pass, Reason, Recorder};

/// LSMR: MINRES on the normal equations by bidiagonalisation, so that `‖Aᴴ r‖`, the quantity tested,
/// decreases at every step (`‖Mᴴ Aᴴ r‖` with a preconditioner).
///
/// * Solves: `min ‖b − A x‖` for a matrix of any shape; from the guess 0 it finds the minimiser `x` of least
///   norm, or of least `‖M⁻¹ x‖` with a preconditioner, as [`Lsqr`](crate::Lsqr). It may often be stopped earlier than [`Lsqr`](crate::Lsqr).
/// * Cost of an iteration: one product with `A`, one with `Aᴴ`; four sweeps. Storage: 2 vectors as long as `b`, 5 as
///   long as `x`, 6 with a preconditioner.
/// * Outcome: as [`Lsqr`](crate::Lsqr).
/// * Reference: Fong and Saunders 2011, section 2.8, doi:10.1137/10079687X.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lsmr;

impl Listed for Lsmr {
    const INFO: MethodInfo = MethodInfo {
        name: "lsmr",
        about: "least squares, the normal equations' residual the smallest; any shape",
        needs: Needs::Nothing,
        adjoint: true,
        options: &[],
    };

    fn record(&self, k: &mut Recorder<'_>, sys: &System<'_>) {
        let (x, [h, h_bar]) = (sys.x, k.vectors(sys.x.len));
        let to = Bidiagonal::new(k, sys);
        let Bidiagonal { z, alpha, beta, normal, .. } = to;
        let [zeta, zeta_bar, alpha_bar, rho, rho_bar, last, c, s, theta] = k.cells();
        let [c_bar, s_bar, theta_bar, share] = k.cells();
        // ‖A‖², and of the squares of all ρ̄ but the last the largest, and the inverse of the smallest.
        let [norm, largest, inverse, ahead] = k.cells();

        let start = Pass::new("start")
            .set(h, z / alpha)
            .set(h_bar, Formula::real(0.0))
            .eval(zeta_bar, alpha * beta)
            .eval(alpha_bar, alpha)
            .eval(rho, 1.0)
            .eval(rho_bar, 1.0)
            .eval(c_bar, 1.0)
            .eval(s_bar, 0.0)
            .eval(norm, alpha * alpha)
            .eval(largest, 0.0)
            .eval(inverse, 0.0);
        let rotate = Pass::new("rotate")
            .eval(last, rho * rho_bar)
            .eval(rho, (alpha_bar * alpha_bar + beta * beta).sqrt())
            .stop_if(rho.is_zero(), Reason::Breakdown("the bidiagonal matrix"))
            .eval(c, alpha_bar / rho)
            .eval(s, beta / rho)
            .eval(theta, s * alpha)
            .eval(alpha_bar, c * alpha)
            .eval(theta_bar, s_bar * rho)
            .eval(share, theta_bar * rho / last)
            .eval(last, c_bar * rho)
            .eval(rho_bar, (last * last + theta * theta).sqrt())
            .stop_if(rho_bar.is_zero(), Reason::Breakdown("the bidiagonal matrix"))
            .eval(c_bar, last / rho_bar)
            .eval(s_bar, theta / rho_bar)
            .eval(zeta, c_bar * zeta_bar)
            .eval(zeta_bar, -s_bar * zeta_bar)
            .eval(normal, zeta_bar * zeta_bar)
            .eval(norm, norm + beta * beta)
            .eval(sys.norm_a2, norm)
            .eval(norm, norm + alpha * alpha)
            .eval(ahead, last * last)
            .eval(sys.cond_a2, largest.max(ahead) * inverse.max(Formula::from(1.0) / ahead))
            .eval(ahead, rho_bar * rho_bar)
            .eval(largest, largest.max(ahead))
            .eval(inverse, inverse.max(Formula::from(1.0) / ahead));
        let step =
            Pass::new("step").set(h_bar, h - share * h_bar).set(x, x + (zeta / (rho * rho_bar)) * h_bar);
        let turn = Pass::new("turn").set(h, z / alpha - (theta / rho) * h);

        k.restart(|k| to.begin(k, sys, start));
        k.each(|k| {
            to.step(k, sys, rotate);
            k.multi_axpy_dot(to.count(sys, step));
            to.turn(k, sys, turn);
        });
    }
}
