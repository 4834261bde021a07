//! Minimal residuals, for Hermitian indefinite systems.
use super::method::{Listed, MethodInfo, Needs};
use crate::System;
use crate::attained::Attained;
use lacuna_engine::{Formula, Pass, Reason, Recorder};

/// MINRES: minimises the residual over the Krylov space by a three-term recurrence.
///
/// * Solves: Hermitian `A`, possibly indefinite, or singular but consistent, with a Hermitian positive
///   definite `M` or none.
/// * Cost of an iteration: one product with `A`, one with `M`; three sweeps. Storage: 5 vectors, 7 with a preconditioner.
/// * The recurrence follows `‖r‖` in the norm of `M`, scaled by its ratio to `‖r‖` at the last restart.
/// * Outcome: `AccuracyAttained` if the residual stays at the level of rounding errors; `IndefinitePreconditioner` if `⟨v, M v⟩` is negative; `Breakdown` if the projected matrix
///   becomes singular and a restart does not help, as on a singular inconsistent system.
/// * Reference: Paige and Saunders 1975, doi:10.1137/0712047; Elman, Silvester and Wathen 2014, Algorithm 4.1,
///   doi:10.1093/acprof:oso/9780199678792.001.0001.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRes;

impl Listed for MinRes {
    const INFO: MethodInfo = MethodInfo {
        name: "minres",
        about: "minimal residuals; Hermitian, definite or not",
        needs: Needs::Hermitian,
        adjoint: false,
        options: &[],
    };

    fn reads_norm(&self) -> bool {
        true
    }

    fn record(&self, k: &mut Recorder<'_>, sys: &System<'_>) {
        let (a, b, x, n) = (sys.a, sys.b, sys.x, sys.n());
        let (y, vs, ws) = (k.vector(n), k.vectors::<2>(n), k.vectors::<2>(n));
        let zs = vs.map(|v| sys.preconditioned(k, v));
        let [rr, gg, gamma, old, next, delta, eta, tau, ratio, zero] = k.cells();
        let [c, c_old, s, s_old, a0, a1, a2, a3] = k.cells();

        let attained = Attained::new(k);
        let nothing = || Formula::real(0.0);
        let residual = Pass::new("residual").set(vs[0], b - y).dot(rr, vs[0], vs[0]);
        let start = Pass::new("start")
            .set(vs[1], nothing())
            .set(ws[0], nothing())
            .set(ws[1], nothing())
            .dot(gg, vs[0], zs[0])
            .stop_if(gg.not_finite(), Reason::NotFinite("<r, M r>"))
            .stop_if(gg.not_positive(), Reason::IndefinitePreconditioner)
            .eval(gamma, gg.sqrt())
            .eval(eta, gamma)
            .eval(old, 1.0)
            .eval(c, 1.0)
            .eval(c_old, 1.0)
            .eval(s, 0.0)
            .eval(s_old, 0.0)
            .eval(ratio, rr / gg);

        k.restart(|k| {
            k.spmv_dot(a, x, y, attained.begin(sys.confirm(residual, rr), rr));
            sys.precondition(k, vs[0], zs[0], start);
        });
        k.each(|k| {
            // The new vectors overwrite the second to last, so that the storage repeats every two iterations.
            sys.iterations(k, 2, &mut |k, j| {
                let [v, v_new, w, w_new, z, z_new] = [vs[j], vs[1 - j], ws[j], ws[1 - j], zs[j], zs[1 - j]];
                let along = Pass::new("along").dot(delta, z, y).eval(delta, delta / (gamma * gamma));
                let lanczos =
                    Pass::new("lanczos").set(v_new, y / gamma - (delta / gamma) * v - (gamma / old) * v_new);
                let rotate = Pass::new("rotate")
                    .dot(gg, v_new, z_new)
                    .stop_if(zero.gt(gg), Reason::IndefinitePreconditioner)
                    .eval(next, gg.sqrt())
                    .eval(a0, c * delta - c_old * s * gamma)
                    .eval(a1, (a0 * a0 + gg).sqrt())
                    .stop_if(a1.is_zero(), Reason::Breakdown("the projected matrix"))
                    .eval(a2, s * delta + c_old * c * gamma)
                    .eval(a3, s_old * gamma)
                    .eval(c_old, c)
                    .eval(s_old, s)
                    .eval(c, a0 / a1)
                    .eval(s, next / a1)
                    .eval(tau, c * eta)
                    .eval(eta, -s * eta)
                    .eval(rr, ratio * eta * eta)
                    .eval(old, gamma)
                    .eval(gamma, next);
                let step = Pass::new("step")
                    .set(w_new, (1.0 / (old * a1)) * z - (a3 / a1) * w_new - (a2 / a1) * w)
                    .set(x, x + tau * w_new);
                k.spmv_dot(a, z, y, along);
                k.multi_axpy_dot(lanczos);
                sys.precondition(k, v_new, z_new, rotate);
                k.multi_axpy_dot(attained.test(sys, sys.count(attained.measure(step, x), rr), rr));
            });
        });
    }
}
