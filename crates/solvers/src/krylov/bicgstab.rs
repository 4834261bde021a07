//! Stabilised bi-conjugate gradients in four sweeps per iteration, for general square systems.
use super::method::{ColumnMethod, Listed, MethodInfo, Needs};
use crate::{Columns, Image, System};
use lacuna_engine::{Cell, LinOp, Pass, Reason, Recorder, Vector};

/// BiCGStab in four sweeps per iteration: `β = −⟨r₀, A s⟩ / ⟨r₀, A p⟩` is known before the new residual, so
/// that all updates share one sweep.
///
/// * Solves, outcome, and differences from the textbook: as [`ClassicalBiCgStab`](crate::ClassicalBiCgStab).
/// * Cost of an iteration: two products with `A`, two with `M`; four sweeps. Storage: as [`ClassicalBiCgStab`](crate::ClassicalBiCgStab).
/// * A diagonal `M`: the direction is kept as `M p`, which has the same recurrence, and `p` is not formed.
/// * Reference: Rupp et al. 2016, Algorithm 4, doi:10.1145/2907944.
#[derive(Clone, Copy, Debug, Default)]
pub struct BiCgStab;

impl Listed for BiCgStab {
    const INFO: MethodInfo = MethodInfo {
        name: "bicgstab",
        about: "stabilised bi-conjugate gradients in four sweeps an iteration; any square system",
        needs: Needs::Square,
        adjoint: false,
        options: &[],
    };

    fn fallback(&self) -> Option<&'static str> {
        Some("classical-bicgstab")
    }

    fn record(&self, k: &mut Recorder<'_>, sys: &System<'_>) {
        let (a, b, x) = (sys.a, sys.b, sys.x);
        let [r, r0, p, v, s, t] = k.vectors(sys.n());
        let (mp, ms) = (direction(sys.m, p, || sys.preconditioned(k, p)), sys.preconditioned(k, s));
        let [rho, rr, r0r0, r0v, ts, tt, r0t, alpha, omega, beta] = k.cells();

        let residual = Pass::new("residual").set(r, b - v).dot(rr, r, r);
        let first = Image::scaled(sys.m, r);
        let start = Pass::new("start").set(r0, r).set(p, first).eval(rho, rr).eval(r0r0, rr);
        let along_p = Pass::new("along_p")
            .dot(r0v, r0, v)
            .stop_if(r0v.is_zero(), Reason::Breakdown("<r0, A p>"))
            .eval(alpha, rho / r0v);
        let half = Pass::new("half").set(s, r - alpha * v);
        let along_s = along_s([r0, s, t], [ts, tt, r0t, r0v, omega, beta]);
        let step = step(sys.m, [x, r, r0, p, v, s, t, mp, ms], [rho, rr, alpha, omega, beta]);
        let step = orthogonal(k, sys.count(step, rr), rho, r0r0, rr);

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
        });
    }

    fn columns(&self) -> Option<&dyn ColumnMethod> {
        Some(self)
    }
}

impl ColumnMethod for BiCgStab {
    fn record_columns(&self, k: &mut Recorder<'_>, sys: &Columns<'_>) {
        let [r, r0, p, v, s, t] = [(); 6].map(|()| sys.basis(k));
        let (mp, ms) = (direction(sys.m, p, || sys.preconditioned(k, p)), sys.preconditioned(k, s));
        let cells = sys.cells::<11>(k);

        k.restart(|k| {
            k.spmm(sys.a, sys.x, v);
            for (j, c) in sys.columns() {
                let (r, v) = (r.column(j), v.column(j));
                k.multi_axpy_dot(Pass::new("residual").set(r, c.b - v).dot(c.rr, r, r));
            }
            sys.confirm(k);
            for (j, c) in sys.columns() {
                let (r, r0, p, [rho, r0r0, ..]) = (r.column(j), r0.column(j), p.column(j), cells[j]);
                let first = Image::scaled(sys.m, r);
                let start = Pass::new("start").set(r0, r).set(p, first).eval(rho, c.rr).eval(r0r0, c.rr);
                sys.work(k, c, |k| k.multi_axpy_dot(start));
            }
        });
        k.each(|k| {
            for (j, c) in sys.columns() {
                sys.work(k, c, |k| sys.precondition(k, p.column(j), mp.column(j), Pass::nothing()));
            }
            k.spmm(sys.a, mp, v);
            for (j, c) in sys.columns() {
                let [rho, _, r0v, _, _, _, alpha, ..] = cells[j];
                let [r, r0, v, s, ms] = [r, r0, v, s, ms].map(|v| v.column(j));
                let along_p = Pass::new("along_p").dot(r0v, r0, v).eval(alpha, rho / r0v);
                sys.work(k, c, |k| k.multi_axpy_dot(along_p));
                sys.rest(k, c, r0v.is_zero());
                sys.work(k, c, |k| {
                    k.multi_axpy_dot(Pass::new("half").set(s, r - alpha * v));
                    sys.precondition(k, s, ms, Pass::nothing());
                });
            }
            k.spmm(sys.a, ms, t);
            for (j, c) in sys.columns() {
                let [rho, r0r0, r0v, ts, tt, r0t, alpha, omega, beta, size, bound] = cells[j];
                let [r, r0, p, v, s, t, mp, ms] = [r, r0, p, v, s, t, mp, ms].map(|v| v.column(j));
                let along_s = along_s([r0, s, t], [ts, tt, r0t, r0v, omega, beta]);
                let step = step(sys.m, [c.x, r, r0, p, v, s, t, mp, ms], [rho, c.rr, alpha, omega, beta]);
                let step = step.then(sizes([rho, r0r0, c.rr], [size, bound]));
                sys.work(k, c, |k| {
                    k.multi_axpy_dot(along_s);
                    k.multi_axpy_dot(sys.step(step, c));
                });
                sys.rest(k, c, size.le(bound));
            }
            sys.count(k);
        });
    }
}

/// `ω`, and `β` before the new residual is known.
fn along_s([r0, s, t]: [Vector; 3], [ts, tt, r0t, r0v, omega, beta]: [Cell; 6]) -> Pass {
    Pass::new("along_s")
        .dot(ts, t, s)
        .dot(tt, t, t)
        .dot(r0t, r0, t)
        .eval(omega, ts / tt.max(tt.tiny()))
        .eval(beta, -r0t / r0v)
}

/// Where `M p` is: in `p` itself if `M` is a diagonal.
fn direction<V>(m: Option<&dyn LinOp>, p: V, stored: impl FnOnce() -> V) -> V {
    match m.and_then(|m| m.diagonal()) {
        Some(_) => p,
        None => stored(),
    }
}

/// All updates, and the dot products of the next iteration.
fn step(
    m: Option<&dyn LinOp>,
    [x, r, r0, p, v, s, t, mp, ms]: [Vector; 9],
    [rho, rr, alpha, omega, beta]: [Cell; 5],
) -> Pass {
    let ms = Image::new(m, s, || ms).element();
    let [mr, mv] = [r, v].map(|vector| Image::scaled(m, vector).element());
    Pass::new("step")
        .set(x, x + alpha * mp + omega * ms)
        .set(r, s - omega * t)
        .set(p, mr + beta * (p - omega * mv))
        .dot(rho, r0, r)
        .dot(rr, r, r)
}

/// Breakdown if `|⟨r₀, r⟩|² ≤ ε² ‖r₀‖² ‖r‖²`: later directions would consist of rounding errors.
pub(super) fn orthogonal(k: &mut Recorder<'_>, pass: Pass, rho: Cell, r0r0: Cell, rr: Cell) -> Pass {
    let [size, bound] = k.cells();
    let pass = pass.then(sizes([rho, r0r0, rr], [size, bound]));
    pass.stop_if(size.le(bound), Reason::Breakdown("<r0, r>"))
}

/// `|⟨r₀, r⟩|²`, and the bound it must exceed.
fn sizes([rho, r0r0, rr]: [Cell; 3], [size, bound]: [Cell; 2]) -> Pass {
    let bounded = rr.epsilon() * rr.epsilon() * r0r0 * rr;
    Pass::new("sizes").eval(size, rho.conj() * rho).eval(bound, bounded)
}
