//! Bi-conjugate gradients, for general square systems whose adjoint is available.
use super::method::{Listed, MethodInfo, Needs};
use crate::System;
use lacuna_engine::{Adjoint, Cell, Pass, Reason, Recorder, Vector};

/// Bi-conjugate gradients: the Lanczos process with `A` and `Aᴴ`.
///
/// * Solves: square `A` that provides its adjoint, with an `M` that provides its own, or without one. On
///   Hermitian positive definite `A` the iterates are those of conjugate gradients.
/// * Cost of an iteration: one product each with `A`, `Aᴴ`, `M` and `Mᴴ`; four sweeps. Storage: 6 vectors, 8
///   with a preconditioner.
/// * Outcome: `Breakdown` if `⟨r̂, M r⟩` or `⟨p̂, A p⟩` vanishes and restarting does not help.
/// * Differs from the listing: after a restart the shadow residual equals the residual.
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

    fn record(&self, k: &mut Recorder<'_>, s: &System<'_>) {
        let to = Biorthogonal::new(k, s);
        let Biorthogonal { r, rr, .. } = to;
        let residual = s.confirm(to.residual(s).dot(rr, r, r), rr);
        k.restart(|k| to.begin(k, s, residual, Pass::nothing()));
        k.each(|k| {
            to.multiply(k, s);
            k.multi_axpy_dot(s.count(to.step(s.x), rr));
            to.turn(k, s);
        });
    }
}

/// The two-sided Lanczos process with `A` and `Aᴴ`, shared by this method and [`Qmr`](crate::Qmr).
pub(super) struct Biorthogonal {
    pub(super) r: Vector,
    /// `‖r‖²`
    pub(super) rr: Cell,
    rh: Vector,
    p: Vector,
    ph: Vector,
    q: Vector,
    qh: Vector,
    z: Vector,
    zh: Vector,
    rho: Cell,
    alpha: Cell,
}

impl Biorthogonal {
    pub(super) fn new(k: &mut Recorder<'_>, s: &System<'_>) -> Self {
        let [r, rh, p, ph, q, qh] = k.vectors(s.n());
        let (z, zh) = (s.preconditioned(k, r), s.preconditioned(k, rh));
        let [rr, rho, alpha] = k.cells();
        Biorthogonal { r, rr, rh, p, ph, q, qh, z, zh, rho, alpha }
    }

    /// The pass fused with the product `A x`: the residual and its shadow.
    pub(super) fn residual(&self, s: &System<'_>) -> Pass {
        Pass::new("residual").set(self.r, s.b - self.q).set(self.rh, self.r)
    }

    /// Records the start from `x`.
    pub(super) fn begin(&self, k: &mut Recorder<'_>, s: &System<'_>, residual: Pass, then: Pass) {
        let Biorthogonal { r, rh, p, ph, q, z, zh, rho, .. } = *self;
        k.spmv_dot(s.a, s.x, q, residual);
        s.precondition(k, r, z, Pass::nothing());
        let start = Pass::new("start").set(p, z).set(ph, zh).dot(rho, rh, z);
        s.precondition_adjoint(k, rh, zh, start.then(then));
    }

    /// Records the products of an iteration, and the step length.
    pub(super) fn multiply(&self, k: &mut Recorder<'_>, s: &System<'_>) {
        let Biorthogonal { p, ph, q, qh, rho, alpha, .. } = *self;
        let [pq] = k.cells();
        let along = Pass::new("along")
            .dot(pq, ph, q)
            .stop_if(pq.is_zero(), Reason::Breakdown("<p^, A p>"))
            .eval(alpha, rho / pq);
        k.spmv_dot(s.a, p, q, along);
        k.spmv_dot(&Adjoint(s.a), ph, qh, Pass::nothing());
    }

    /// The update of `x` and of both residuals.
    pub(super) fn step(&self, x: Vector) -> Pass {
        let Biorthogonal { r, rr, rh, p, q, qh, alpha, .. } = *self;
        let step = Pass::new("step").set(x, x + alpha * p).set(r, r - alpha * q);
        step.set(rh, rh - alpha.conj() * qh).dot(rr, r, r)
    }

    /// Records the new search directions.
    pub(super) fn turn(&self, k: &mut Recorder<'_>, s: &System<'_>) {
        let Biorthogonal { r, rh, p, ph, z, zh, rho, .. } = *self;
        let [next, beta] = k.cells();
        let meet = Pass::new("meet")
            .dot(next, rh, z)
            .stop_if(rho.is_zero(), Reason::Breakdown("<r^, M r>"))
            .eval(beta, next / rho)
            .eval(rho, next);
        s.precondition(k, r, z, Pass::nothing());
        s.precondition_adjoint(k, rh, zh, meet);
        k.multi_axpy_dot(Pass::new("turn").set(p, z + beta * p).set(ph, zh + beta.conj() * ph));
    }
}
