//! Quasi-minimal residuals, for general square systems whose adjoint is at hand.
use super::method::{Listed, MethodInfo, Needs};
use crate::{Method, System};
use lacuna_core::{Adjoint, Formula, Pass, Reason, Recorder, Scalar};

/// QMR without look-ahead, as the smoothed iterates of bi-conjugate gradients: `x` is an average of theirs with the weights
/// `1 / ‖r‖²`, so that its residual falls almost evenly where theirs jumps.
///
/// * Solves: as [`BiCg`](crate::BiCg).
/// * Cost of an iteration: as [`BiCg`](crate::BiCg), and one sweep. Storage: 8 vectors, 10 with a preconditioner.
/// * Outcome: as [`BiCg`](crate::BiCg). It begins anew from the true residual whenever that has fallen by half the digits there are.
/// * Reference: Freund and Nachtigal 1991, doi:10.1007/BF01385726; as smoothing: Zhou and Walker 1994, Algorithm 3.2.2 and theorem 3.2,
///   doi:10.1137/0915021.
#[derive(Clone, Copy, Debug, Default)]
pub struct Qmr;

impl Listed for Qmr {
    const INFO: MethodInfo = MethodInfo {
        name: "qmr",
        about: "quasi-minimal residuals, with products by the adjoint; any square system",
        needs: Needs::Square,
        adjoint: true,
        options: &[],
    };
}

impl<T: Scalar> Method<T> for Qmr {
    fn name(&self) -> &'static str {
        Self::INFO.name
    }
    fn needs_adjoint(&self) -> bool {
        true
    }

    fn record(&self, k: &mut Recorder<'_, T>, s: &System<'_, T>) {
        let (a, ah, b, x) = (s.a, Adjoint(s.a), s.b, s.x);
        let [y, u, r, rh, p, ph, q, qh] = k.vectors(s.n());
        let (z, zh) = (s.preconditioned(k, r), s.preconditioned(k, rh));
        let [rr, uu, rho, next, pq, alpha, beta, weights, share, worn] = k.cells();

        let residual = Pass::new("residual").set(r, b - q).set(rh, r).set(u, r).set(y, x).dot(uu, r, r);
        let start = Pass::new("start").set(p, z).set(ph, zh).dot(rho, rh, z);
        // What is averaged is worth little once the recurrences have lost half their digits.
        let start = start.eval(weights, Formula::value(T::one()) / uu).eval(worn, T::EPSILON * uu);
        let along = Pass::new("along")
            .dot(pq, ph, q)
            .stop_if(pq.is_zero(), Reason::Breakdown("<p^, A p>"))
            .eval(alpha, rho / pq);
        let step = Pass::new("step").set(y, y + alpha * p).set(r, r - alpha * q);
        let step = step.set(rh, rh - alpha.conj() * qh).dot(rr, r, r);
        // Where ‖r‖² vanishes, the share is 1.
        let step = step
            .eval(rr, rr.max(T::TINY))
            .eval(weights, weights + Formula::value(T::one()) / rr)
            .eval(share, Formula::value(T::one()) / (rr * weights));
        let smooth =
            Pass::new("smooth").set(x, x + share * (y - x)).set(u, u + share * (r - u)).dot(uu, u, u);
        let meet = Pass::new("meet")
            .dot(next, rh, z)
            .stop_if(rho.is_zero(), Reason::Breakdown("<r^, M r>"))
            .eval(beta, next / rho)
            .eval(rho, next);
        let turn = Pass::new("turn").set(p, z + beta * p).set(ph, zh + beta.conj() * ph);

        k.restart(|k| {
            k.spmv_dot(a, x, q, s.confirm(residual, uu));
            s.precondition(k, r, z, Pass::nothing());
            s.precondition_adjoint(k, rh, zh, start);
        });
        k.each(|k| {
            k.spmv_dot(a, p, q, along);
            k.spmv_dot(&ah, ph, qh, Pass::nothing());
            k.multi_axpy_dot(step);
            k.multi_axpy_dot(s.count(smooth, uu).leave_if(uu.le(worn)));
            s.precondition(k, r, z, Pass::nothing());
            s.precondition_adjoint(k, rh, zh, meet);
            k.multi_axpy_dot(turn);
        });
    }
}
