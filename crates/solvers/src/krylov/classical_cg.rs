//! Conjugate gradients as in the textbook, for Hermitian positive definite systems.
use super::method::{Listed, MethodInfo, Needs};
use crate::System;
use lacuna_engine::{Pass, Reason, Recorder};

/// Conjugate gradients as Hestenes and Stiefel wrote them.
///
/// * Solves: Hermitian positive definite `A`, with a Hermitian positive definite preconditioner or none.
/// * Cost of an iteration: one product with `A`, one with `M`; three sweeps; without a preconditioner 9
///   vectors are moved in addition to those of the product. Storage: 3 vectors, 4 with a preconditioner.
/// * Outcome: `IndefiniteOperator` if `⟨p, A p⟩ ≤ 0`, `IndefinitePreconditioner` if `⟨r, M r⟩ ≤ 0`.
/// * Differs from the textbook: when the tolerance is met, the true residual is computed; if that does not
///   meet it, the method restarts from it.
/// * Reference: Hestenes and Stiefel 1952, doi:10.6028/jres.049.044; Rupp et al. 2016, Algorithm 1,
///   doi:10.1145/2907944.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassicalCg;

impl Listed for ClassicalCg {
    const INFO: MethodInfo = MethodInfo {
        name: "classical-cg",
        about: "conjugate gradients as in the textbook; Hermitian positive definite",
        needs: Needs::PositiveDefinite,
        adjoint: false,
        options: &[],
    };

    fn record(&self, k: &mut Recorder<'_>, s: &System<'_>) {
        let (a, b, x) = (s.a, s.b, s.x);
        let [r, p, q] = k.vectors(s.n());
        let z = s.preconditioned(k, r);
        let [rr, rz, rz_old, pq, alpha, beta] = k.cells();

        let residual = Pass::new("residual").set(r, b - q).dot(rr, r, r);
        let direct = Pass::new("direct").set(p, z).dot(rz, r, z);
        let along_p = Pass::new("along_p")
            .dot(pq, p, q)
            .stop_if(pq.not_finite(), Reason::NotFinite("<p, A p>"))
            .stop_if(pq.not_positive(), Reason::IndefiniteOperator)
            .eval(alpha, rz / pq)
            .eval(rz_old, rz);
        let descend = Pass::new("descend").set(x, x + alpha * p).set(r, r - alpha * q);
        let weigh = Pass::new("weigh").dot(rz, r, z).dot(rr, r, r);
        let weigh = s
            .count(weigh, rr)
            .stop_if(rz.not_finite(), Reason::NotFinite("<r, M r>"))
            .stop_if(rz.not_positive(), Reason::IndefinitePreconditioner)
            .eval(beta, rz / rz_old);
        let turn = Pass::new("turn").set(p, z + beta * p);

        k.restart(|k| {
            k.spmv_dot(a, x, q, s.confirm(residual, rr));
            s.precondition(k, r, z, direct);
        });
        k.each(|k| {
            k.spmv_dot(a, p, q, along_p);
            k.multi_axpy_dot(descend);
            s.precondition(k, r, z, weigh);
            k.multi_axpy_dot(turn);
        });
    }
}
