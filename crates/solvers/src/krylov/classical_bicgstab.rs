//! Stabilised bi-conjugate gradients as in the textbook, for general square systems.
use super::bicgstab::orthogonal;
use super::method::{Listed, MethodInfo, Needs};
use crate::System;
use lacuna_engine::{Pass, Reason, Recorder};

/// BiCGStab as van der Vorst wrote it, preconditioned from the right.
///
/// * Solves: square `A`, with any preconditioner or none.
/// * Cost of an iteration: two products with `A`, two with `M`; five sweeps. Storage: 6 vectors, 8 with a
///   preconditioner.
/// * Outcome: `Breakdown` if `⟨r₀, A p⟩` or `⟨r₀, r⟩` vanishes and restarting from the true residual makes no
///   progress.
/// * Differs from the textbook: `ω = 0` if `A s = 0`, so that a lucky breakdown ends as convergence; restarts
///   with a new `r₀` if `r` has become orthogonal to it; when the tolerance is met, the true residual is
///   computed.
/// * Reference: van der Vorst 1992, doi:10.1137/0913035; Rupp et al. 2016, Algorithm 3, doi:10.1145/2907944.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassicalBiCgStab;

impl Listed for ClassicalBiCgStab {
    const INFO: MethodInfo = MethodInfo {
        name: "classical-bicgstab",
        about: "stabilised bi-conjugate gradients as in the textbook; any square system",
        needs: Needs::Square,
        adjoint: false,
        options: &[],
    };

    fn record(&self, k: &mut Recorder<'_>, sys: &System<'_>) {
        let (a, b, x) = (sys.a, sys.b, sys.x);
        let [r, r0, p, v, s, t] = k.vectors(sys.n());
        let (mp, ms) = (sys.preconditioned(k, p), sys.preconditioned(k, s));
        let [rho, rho_old, rr, r0r0, r0v, ts, tt, alpha, omega, beta] = k.cells();

        let residual = Pass::new("residual").set(r, b - v).dot(rr, r, r);
        let start = Pass::new("start").set(r0, r).set(p, r).eval(rho, rr).eval(r0r0, rr);
        let along_p = Pass::new("along_p")
            .dot(r0v, r0, v)
            .stop_if(r0v.is_zero(), Reason::Breakdown("<r0, A p>"))
            .eval(alpha, rho / r0v)
            .eval(rho_old, rho);
        let half = Pass::new("half").set(s, r - alpha * v);
        let along_s = Pass::new("along_s").dot(ts, t, s).dot(tt, t, t).eval(omega, ts / tt.max(tt.tiny()));
        let step = Pass::new("step")
            .set(x, x + alpha * mp + omega * ms)
            .set(r, s - omega * t)
            .dot(rho, r0, r)
            .dot(rr, r, r);
        let step =
            orthogonal(k, sys.count(step, rr), rho, r0r0, rr).eval(beta, rho / rho_old * (alpha / omega));
        let turn = Pass::new("turn").set(p, r + beta * (p - omega * v));

        k.restart(|k| {
            k.spmv_dot(a, x, v, sys.confirm(residual, rr));
            k.multi_axpy_dot(start);
        });
        k.each(|k| {
            sys.precondition(k, p, mp, Pass::nothing());
            k.spmv_dot(a, mp, v, along_p);
            k.multi_axpy_dot(half);
            sys.precondition(k, s, ms, Pass::nothing());
            k.spmv_dot(a, ms, t, along_s);
            k.multi_axpy_dot(step);
            k.multi_axpy_dot(turn);
        });
    }
}
