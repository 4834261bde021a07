//! Bi-conjugate gradients, for general square systems whose adjoint is at hand.
use super::method::{Listed, MethodInfo, Needs};
use crate::{Method, System};
use lacuna_core::{Adjoint, Pass, Reason, Recorder, Scalar};

/// Bi-conjugate gradients: the Lanczos process with `A` and `Aᴴ`.
///
/// * Solves: square `A` that knows its adjoint, with an `M` that knows its own, or none. On Hermitian positive definite `A` the
///   iterates are those of conjugate gradients.
/// * Cost of an iteration: one product each with `A` and `Aᴴ`, `M` and `Mᴴ`; four sweeps. Storage: 6 vectors, 8 with a
///   preconditioner.
/// * Outcome: `Breakdown` where `⟨r̂, M r⟩` or `⟨p̂, A p⟩` vanishes and restarting does not help.
/// * Differs from the listing: the shadow residual of a restart is the residual.
/// * Reference: Fletcher 1976, doi:10.1007/BFb0080116; Jost et al. 2009, section 2, doi:10.1007/978-3-642-03869-3_92.
#[derive(Clone, Copy, Debug, Default)]
pub struct BiCg;

impl Listed for BiCg {
    const INFO: MethodInfo = MethodInfo {
        name: "bicg",
        about: "bi-conjugate gradients, with products by the adjoint; any square system",
        needs: Needs::Square,
        adjoint: true,
        options: &[],
    };
}

impl<T: Scalar> Method<T> for BiCg {
    fn name(&self) -> &'static str {
        Self::INFO.name
    }
    fn needs_adjoint(&self) -> bool {
        true
    }

    fn record(&self, k: &mut Recorder<'_, T>, s: &System<'_, T>) {
        let (a, ah, b, x) = (s.a, Adjoint(s.a), s.b, s.x);
        let [r, rh, p, ph, q, qh] = k.vectors(s.n());
        let (z, zh) = (s.preconditioned(k, r), s.preconditioned(k, rh));
        let [rr, rho, next, pq, alpha, beta] = k.cells();

        let residual = Pass::new("residual").set(r, b - q).set(rh, r).dot(rr, r, r);
        let start = Pass::new("start").set(p, z).set(ph, zh).dot(rho, rh, z);
        let along = Pass::new("along")
            .dot(pq, ph, q)
            .stop_if(pq.is_zero(), Reason::Breakdown("<p^, A p>"))
            .eval(alpha, rho / pq);
        let step = Pass::new("step").set(x, x + alpha * p).set(r, r - alpha * q);
        let step = s.count(step.set(rh, rh - alpha.conj() * qh).dot(rr, r, r), rr);
        let meet = Pass::new("meet")
            .dot(next, rh, z)
            .stop_if(rho.is_zero(), Reason::Breakdown("<r^, M r>"))
            .eval(beta, next / rho)
            .eval(rho, next);
        let turn = Pass::new("turn").set(p, z + beta * p).set(ph, zh + beta.conj() * ph);

        k.restart(|k| {
            k.spmv_dot(a, x, q, s.confirm(residual, rr));
            s.precondition(k, r, z, Pass::nothing());
            s.precondition_adjoint(k, rh, zh, start);
        });
        k.each(|k| {
            k.spmv_dot(a, p, q, along);
            k.spmv_dot(&ah, ph, qh, Pass::nothing());
            k.multi_axpy_dot(step);
            s.precondition(k, r, z, Pass::nothing());
            s.precondition_adjoint(k, rh, zh, meet);
            k.multi_axpy_dot(turn);
        });
    }
}
