//! Quasi-minimal residuals without the adjoint, for general square systems.
use super::bicgstab::orthogonal;
use super::method::{Listed, MethodInfo, Needs};
use crate::System;
use lacuna_engine::{Formula, Pass, Reason, Recorder};

/// TFQMR: conjugate gradients squared with quasi-minimal residual smoothing over its half steps.
///
/// * Solves: square `A`, with any preconditioner or none.
/// * Cost of an iteration, which is two half steps: two products with `A`, two with `M`; five sweeps. Storage: 6 vectors, 7 with a
///   preconditioner.
/// * The recurrence follows an upper bound on the residual, `τ √(2 k + 1)` after `k` iterations.
/// * Outcome: `Breakdown` if `⟨r₀, A u⟩` or `⟨r₀, w⟩` vanishes and restarting does not help.
/// * Reference: Freund 1993, Algorithm 5.1, doi:10.1137/0914029; Saad 2003, Algorithm 7.8, doi:10.1137/1.9780898718003.
#[derive(Clone, Copy, Debug, Default)]
pub struct TfQmr;

impl Listed for TfQmr {
    const INFO: MethodInfo = MethodInfo {
        name: "tfqmr",
        about: "quasi-minimal residuals without the adjoint; any square system",
        needs: Needs::Square,
        adjoint: false,
        options: &[],
    };

    fn record(&self, k: &mut Recorder<'_>, s: &System<'_>) {
        let (a, b, x) = (s.a, s.b, s.x);
        let [r0, w, u, v, d, au] = k.vectors(s.n());
        let mu = s.preconditioned(k, u);
        let [rr, rho, next, sigma, alpha, beta, ww, theta2, c2, tau2, eta, bound, halves] = k.cells();

        let residual = Pass::new("residual").set(r0, b - v).dot(rr, r0, r0);
        let start = Pass::new("start")
            .set(w, r0)
            .set(u, r0)
            .set(d, Formula::real(0.0))
            .eval(tau2, rr)
            .eval(rho, rr)
            .eval(theta2, 0.0)
            .eval(eta, 0.0)
            .eval(halves, 1.0);
        let along = Pass::new("along")
            .dot(sigma, r0, v)
            .stop_if(sigma.is_zero(), Reason::Breakdown("<r0, A u>"))
            .eval(alpha, rho / sigma)
            .stop_if(alpha.not_finite(), Reason::Breakdown("<r0, A u>"));
        let half =
            || Pass::new("half").set(d, mu + (theta2 * eta / alpha) * d).set(w, w - alpha * au).dot(ww, w, w);
        let minimize = |pass: Pass| {
            pass.eval(theta2, ww / tau2.max(tau2.tiny()))
                .eval(c2, Formula::real(1.0) / (theta2 + 1.0))
                .eval(tau2, ww * c2)
                .eval(eta, c2 * alpha)
        };
        let between = Pass::new("between").set(x, x + eta * d).set(u, u - alpha * v);
        let second = minimize(half().dot(next, r0, w))
            .stop_if(rho.is_zero(), Reason::Breakdown("<r0, w>"))
            .eval(beta, next / rho)
            .eval(rho, next)
            .eval(halves, halves + 2.0)
            .eval(bound, halves * tau2);
        let turn = Pass::new("turn").set(x, x + eta * d).set(u, w + beta * u).set(v, au + beta * v);
        let turn = orthogonal(k, s.count(turn, bound), next, rr, ww);

        k.restart(|k| {
            k.spmv_dot(a, x, v, s.confirm(residual, rr));
            k.multi_axpy_dot(start);
            s.precondition(k, u, mu, Pass::nothing());
            k.spmv_dot(a, mu, au, Pass::new("first").set(v, au).then(along.clone()));
        });
        k.each(|k| {
            k.multi_axpy_dot(minimize(half()));
            k.multi_axpy_dot(between);
            s.precondition(k, u, mu, Pass::nothing());
            k.spmv_dot(a, mu, au, second);
            k.multi_axpy_dot(turn);
            s.precondition(k, u, mu, Pass::nothing());
            k.spmv_dot(a, mu, au, Pass::new("new").set(v, au + beta * v).then(along));
        });
    }
}
