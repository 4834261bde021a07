//! Conjugate gradients for preconditioners that vary slightly from step to step.
use super::method::{Listed, MethodInfo, Needs};
use crate::System;
use lacuna_engine::{Pass, Reason, Recorder};

/// Flexible conjugate gradients: an extra dot product makes the new direction conjugate to the last, so that
/// `M` may change from step to step, be slightly nonsymmetric, or be rounded.
///
/// * Solves: Hermitian positive definite `A`, with an `M` that is positive definite and nearly linear, or none.
/// * Cost of an iteration: one product with `A`, one with `M`; four sweeps. Storage: 3 vectors, 4 with a preconditioner.
/// * Outcome: as [`ClassicalCg`](crate::ClassicalCg).
/// * Reference: Notay 2000, FCG(1), doi:10.1137/S1064827599362314.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlexibleCg;

impl Listed for FlexibleCg {
    const INFO: MethodInfo = MethodInfo {
        name: "flexible-cg",
        about: "conjugate gradients for a preconditioner that changes; Hermitian positive definite",
        needs: Needs::PositiveDefinite,
        adjoint: false,
        options: &[],
    };

    fn record(&self, k: &mut Recorder<'_>, s: &System<'_>) {
        let (a, b, x) = (s.a, s.b, s.x);
        let [r, p, q] = k.vectors(s.n());
        let z = s.preconditioned(k, r);
        let [rr, rz, pq, pr, qz, alpha, beta] = k.cells();

        let residual = Pass::new("residual").set(r, b - q).dot(rr, r, r);
        let positive = |pass: Pass| {
            pass.stop_if(rz.not_finite(), Reason::NotFinite("<r, M r>"))
                .stop_if(rz.not_positive(), Reason::IndefinitePreconditioner)
        };
        let start = positive(Pass::new("start").set(p, z).dot(rz, r, z));
        let along = Pass::new("along")
            .dot(pq, p, q)
            .dot(pr, p, r)
            .stop_if(pq.not_finite(), Reason::NotFinite("<p, A p>"))
            .stop_if(pq.not_positive(), Reason::IndefiniteOperator)
            .eval(alpha, pr / pq);
        let descend =
            s.count(Pass::new("descend").set(x, x + alpha * p).set(r, r - alpha * q).dot(rr, r, r), rr);
        let conjugate = Pass::new("conjugate").dot(rz, r, z).dot(qz, q, z);
        let conjugate = positive(conjugate).eval(beta, -qz / pq);

        k.restart(|k| {
            k.spmv_dot(a, x, q, s.confirm(residual, rr));
            s.precondition(k, r, z, start);
        });
        k.each(|k| {
            k.spmv_dot(a, p, q, along);
            k.multi_axpy_dot(descend);
            s.precondition(k, r, z, conjugate);
            k.multi_axpy_dot(Pass::new("turn").set(p, z + beta * p));
        });
    }
}
