//! Conjugate residuals, for Hermitian systems.
use super::method::{Listed, MethodInfo, Needs};
use crate::System;
use lacuna_engine::{Pass, Reason, Recorder};

/// Conjugate residuals: like conjugate gradients, but the norm of the residual itself decreases at every
/// step.
///
/// * Solves: Hermitian `A`, definite or mildly indefinite, with a Hermitian positive definite `M` or none.
/// * Cost of an iteration: one product with `A`, one with `M`; three sweeps. Storage: 4 vectors, 6 with a preconditioner.
/// * Outcome: `IndefinitePreconditioner` if `⟨A p, M A p⟩` is not positive; `Breakdown` if `⟨r, A r⟩`
///   vanishes, as may happen on an indefinite matrix, for which [`MinRes`](crate::MinRes) is safer.
/// * Restarts from the true residual whenever that has fallen by half the working digits.
/// * Reference: Stiefel 1955, doi:10.1007/BF02564277; Saad 2003, Algorithm 6.20, doi:10.1137/1.9780898718003.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cr;

impl Listed for Cr {
    const INFO: MethodInfo = MethodInfo {
        name: "cr",
        about: "conjugate residuals; Hermitian, mildly indefinite at most",
        needs: Needs::Hermitian,
        adjoint: false,
        options: &[],
    };

    fn record(&self, k: &mut Recorder<'_>, s: &System<'_>) {
        let (a, b, x) = (s.a, s.b, s.x);
        let [r, p, q, w] = k.vectors(s.n());
        let (z, mq) = (s.preconditioned(k, r), s.preconditioned(k, q));
        let [rr, zw, next, qmq, alpha, beta, worn] = k.cells();

        let residual = Pass::new("residual").set(r, b - q).dot(rr, r, r);
        let start = Pass::new("start").set(p, z).dot(zw, z, q).eval(worn, rr.epsilon() * rr);
        let ahead =
            Pass::new("ahead").dot(qmq, q, mq).stop_if(qmq.not_finite(), Reason::NotFinite("<A p, M A p>"));
        let ahead = match s.m {
            Some(_) => ahead.stop_if(qmq.not_positive(), Reason::IndefinitePreconditioner),
            None => ahead.stop_if(qmq.is_zero(), Reason::Breakdown("A p")),
        };
        let ahead = ahead.stop_if(zw.is_zero(), Reason::Breakdown("<r, A r>")).eval(alpha, zw / qmq);
        let step = Pass::new("step").set(x, x + alpha * p).set(r, r - alpha * q);
        let step = if s.m.is_some() { step.set(z, z - alpha * mq) } else { step };
        // By then the rounding errors in the recurrences are as large as the residual.
        let step = s.count(step.dot(rr, r, r), rr).leave_if(rr.le(worn));
        let along = Pass::new("along").dot(next, z, w).eval(beta, next / zw).eval(zw, next);
        let turn = Pass::new("turn").set(p, z + beta * p).set(q, w + beta * q);

        k.restart(|k| {
            k.spmv_dot(a, x, q, s.confirm(residual, rr));
            s.precondition(k, r, z, Pass::nothing());
            k.spmv_dot(a, z, q, start);
            s.precondition(k, q, mq, ahead.clone());
        });
        k.each(|k| {
            k.multi_axpy_dot(step);
            k.spmv_dot(a, z, w, along);
            k.multi_axpy_dot(turn);
            s.precondition(k, q, mq, ahead);
        });
    }
}
