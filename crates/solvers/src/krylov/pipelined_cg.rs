//! Pipelined conjugate gradients: the reductions of an iteration do not wait for its product.
use super::method::{Listed, MethodInfo, Needs};
use crate::System;
use lacuna_engine::{Formula, Pass, Reason, Recorder};

/// Pipelined conjugate gradients: with recurrences for `A p`, `M A p` and `A M A p`, the product of an
/// iteration and its reductions are independent of each other.
///
/// * Solves: as [`ClassicalCg`](crate::ClassicalCg). More recurrences lose more digits: the method restarts
///   from the true residual whenever that has fallen by half the working digits.
/// * Cost of an iteration: one product with `A`, one with `M`; two sweeps. Storage: 6 vectors, 9 with a preconditioner.
/// * Outcome: as [`ClassicalCg`](crate::ClassicalCg), but `Breakdown` if the recurrence for `⟨p, A p⟩` is not
///   positive, since rounding alone may cause that.
/// * Reference: Ghysels and Vanroose 2014, Algorithm 4, doi:10.1016/j.parco.2013.06.001.
#[derive(Clone, Copy, Debug, Default)]
pub struct PipelinedCg;

impl Listed for PipelinedCg {
    const INFO: MethodInfo = MethodInfo {
        name: "pipelined-cg",
        about: "conjugate gradients whose sums and products are independent; Hermitian positive definite",
        needs: Needs::PositiveDefinite,
        adjoint: false,
        options: &[],
    };

    fn fallback(&self) -> Option<&'static str> {
        Some("classical-cg")
    }

    fn record(&self, k: &mut Recorder<'_>, sys: &System<'_>) {
        let (a, b, x) = (sys.a, sys.b, sys.x);
        let [r, w, n, z, s, p] = k.vectors(sys.n());
        let [u, m, q] = [r, w, s].map(|v| sys.preconditioned(k, v));
        let [rr, gamma, delta, last, along, alpha, beta, worn] = k.cells();

        let nothing = || Formula::real(0.0);
        let clear = Pass::new("clear").set(z, nothing()).set(s, nothing()).set(p, nothing());
        let clear = if sys.m.is_some() { clear.set(q, nothing()) } else { clear };
        let residual = Pass::new("residual").set(r, b - n).dot(rr, r, r);
        let coefficients = |pass: Pass| {
            pass.stop_if(gamma.not_finite(), Reason::NotFinite("<r, M r>"))
                .stop_if(gamma.not_positive(), Reason::IndefinitePreconditioner)
                .eval(beta, gamma / last)
                .eval(along, delta - beta * gamma / alpha)
                .stop_if(along.not_finite(), Reason::NotFinite("<p, A p>"))
                .stop_if(along.not_positive(), Reason::Breakdown("<p, A p> by its recurrence"))
                .eval(alpha, gamma / along)
                .eval(last, gamma)
        };
        let start = Pass::new("start")
            .eval(worn, rr.epsilon() * rr)
            .eval(alpha, 1.0)
            .eval(last, Formula::real(f64::INFINITY));
        let step = Pass::new("step").set(z, n + beta * z).set(s, w + beta * s).set(p, u + beta * p);
        let step = step.set(x, x + alpha * p).set(r, r - alpha * s);
        let step = if sys.m.is_some() { step.set(q, m + beta * q).set(u, u - alpha * q) } else { step };
        let step = step.set(w, w - alpha * z).dot(rr, r, r).dot(gamma, r, u).dot(delta, u, w);
        let sums = Pass::new("sums").dot(gamma, r, u).dot(delta, u, w);

        k.restart(|k| {
            k.spmv_dot(a, x, n, sys.confirm(residual, rr));
            k.multi_axpy_dot(clear.then(start));
            sys.precondition(k, r, u, Pass::nothing());
            k.spmv_dot(a, u, w, coefficients(sums));
        });
        k.each(|k| {
            sys.precondition(k, w, m, Pass::nothing());
            k.spmv_dot(a, m, n, Pass::nothing());
            k.multi_axpy_dot(coefficients(sys.count(step, rr).leave_if(rr.le(worn))));
        });
    }
}
