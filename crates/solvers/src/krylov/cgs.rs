//! Conjugate gradients squared, for general square systems.
use super::bicgstab::orthogonal;
use super::method::{Listed, MethodInfo, Needs};
use crate::System;
use lacuna_engine::{Formula, Pass, Reason, Recorder};

/// CGS: applies the polynomial of bi-conjugate gradients twice; needs no adjoint.
///
/// * Solves: square `A`, with any preconditioner or none. It is fast when it converges; its residual may jump
///   by orders of magnitude, and the digits lost are recovered by a restart from the true residual.
/// * Cost of an iteration: two products with `A`, two with `M`; four sweeps. Storage: 7 vectors, 9 with a preconditioner.
/// * Outcome: `Breakdown` if `⟨r₀, A p⟩` or `⟨r₀, r⟩` vanishes and restarting does not help.
/// * Reference: Sonneveld 1989, doi:10.1137/0910004.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cgs;

impl Listed for Cgs {
    const INFO: MethodInfo = MethodInfo {
        name: "cgs",
        about: "conjugate gradients squared, fast and rough; any square system",
        needs: Needs::Square,
        adjoint: false,
        options: &[],
    };

    fn record(&self, k: &mut Recorder<'_>, s: &System<'_>) {
        let (a, b, x) = (s.a, s.b, s.x);
        let [r, r0, p, q, u, v, t] = k.vectors(s.n());
        let (mp, mt) = (s.preconditioned(k, p), s.preconditioned(k, t));
        let [rr, rho, last, r0r0, r0v, alpha, beta] = k.cells();

        let residual = Pass::new("residual").set(r, b - v).dot(rr, r, r);
        let start = Pass::new("start").set(r0, r).set(u, r).set(p, r).set(q, Formula::real(0.0));
        let start = start.eval(rho, rr).eval(r0r0, rr);
        let along = Pass::new("along")
            .dot(r0v, r0, v)
            .stop_if(r0v.is_zero(), Reason::Breakdown("<r0, A p>"))
            .eval(alpha, rho / r0v)
            .eval(last, rho);
        let half = Pass::new("half").set(q, u - alpha * v).set(t, u + q);
        let step = Pass::new("step").set(x, x + alpha * mt).set(r, r - alpha * v);
        let step = s.count(step.dot(rho, r0, r).dot(rr, r, r), rr);
        let step = orthogonal(k, step, rho, r0r0, rr).eval(beta, rho / last);
        let turn = Pass::new("turn").set(u, r + beta * q).set(p, u + beta * q + (beta * beta) * p);

        k.restart(|k| {
            k.spmv_dot(a, x, v, s.confirm(residual, rr));
            k.multi_axpy_dot(start);
        });
        k.each(|k| {
            s.precondition(k, p, mp, Pass::nothing());
            k.spmv_dot(a, mp, v, along);
            k.multi_axpy_dot(half);
            s.precondition(k, t, mt, Pass::nothing());
            k.spmv_dot(a, mt, v, step);
            k.multi_axpy_dot(turn);
        });
    }
}
