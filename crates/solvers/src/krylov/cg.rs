//! Conjugate gradients with a single reduction, for Hermitian positive definite systems.
use super::method::{ColumnMethod, Listed, MethodInfo, Needs};
use crate::{Columns, Image, System};
use lacuna_engine::{Cell, Pass, Reason, Recorder, Vector};

/// Conjugate gradients with a single reduction, in two sweeps per iteration: `β` is computed from
/// `⟨A p, M A p⟩` before the new residual is known, so that all three updates share one sweep.
///
/// * Solves: as [`ClassicalCg`](crate::ClassicalCg).
/// * Cost of an iteration: one product with `A`, one with `M`; two sweeps; without a preconditioner 7 vectors
///   are moved in addition to those of the product, 9 with one that is a diagonal. Storage: 3 vectors, 5 with a
///   preconditioner that is not a diagonal.
/// * Outcome, and differences from the textbook: as [`ClassicalCg`](crate::ClassicalCg).
/// * Reference: Chronopoulos and Gear 1989, doi:10.1016/0377-0427(89)90045-9; Rupp et al. 2016, Algorithm 2,
///   doi:10.1145/2907944.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cg;

impl Listed for Cg {
    const INFO: MethodInfo = MethodInfo {
        name: "cg",
        about: "conjugate gradients in two sweeps an iteration; Hermitian positive definite",
        needs: Needs::PositiveDefinite,
        adjoint: false,
        options: &[],
    };

    fn fallback(&self) -> Option<&'static str> {
        Some("classical-cg")
    }

    fn record(&self, k: &mut Recorder<'_>, s: &System<'_>) {
        let (a, b, x) = (s.a, s.b, s.x);
        let [r, p, q] = k.vectors(s.n());
        let (z, mq) = (s.image(k, r), s.image(k, q));
        let [rr, rz, pq, qmq, alpha, beta] = k.cells();

        let residual = Pass::new("residual").set(r, b - q).dot(rr, r, r);
        let direct = Pass::new("direct").set(p, z).dot(rz, r, z);
        let along_p = Pass::new("along_p").dot(pq, p, q);
        let ahead = Pass::new("ahead")
            .dot(qmq, q, mq)
            .stop_if(pq.not_finite(), Reason::NotFinite("<p, A p>"))
            .stop_if(pq.not_positive(), Reason::IndefiniteOperator)
            .stop_if(rz.not_finite(), Reason::NotFinite("<r, M r>"))
            .stop_if(rz.not_positive(), Reason::IndefinitePreconditioner)
            .then(coefficients([rz, pq, qmq, alpha, beta]));
        let step = s.count(step([x, r, p, q], [z, mq], [rz, rr, alpha, beta]), rr);

        k.restart(|k| {
            k.spmv_dot(a, x, q, s.confirm(residual, rr));
            s.precondition(k, r, z, direct);
        });
        k.each(|k| {
            k.spmv_dot(a, p, q, along_p);
            s.precondition(k, q, mq, ahead);
            k.multi_axpy_dot(step);
        });
    }

    fn columns(&self) -> Option<&dyn ColumnMethod> {
        Some(self)
    }
}

impl ColumnMethod for Cg {
    fn record_columns(&self, k: &mut Recorder<'_>, s: &Columns<'_>) {
        let (r, p, q) = (s.basis(k), s.basis(k), s.basis(k));
        let (z, mq) = (s.images(k, r), s.images(k, q));
        let cells = s.cells::<5>(k);

        k.restart(|k| {
            k.spmm(s.a, s.x, q);
            for (j, c) in s.columns() {
                let (r, q) = (r.column(j), q.column(j));
                k.multi_axpy_dot(Pass::new("residual").set(r, c.b - q).dot(c.rr, r, r));
            }
            s.confirm(k);
            for (j, c) in s.columns() {
                let (r, p, z, [rz, ..]) = (r.column(j), p.column(j), z[j], cells[j]);
                s.work(k, c, |k| s.precondition(k, r, z, Pass::new("direct").set(p, z).dot(rz, r, z)));
            }
        });
        k.each(|k| {
            k.spmm(s.a, p, q);
            for (j, c) in s.columns() {
                let [rz, pq, qmq, alpha, beta] = cells[j];
                let ([r, p, q], z, mq) = ([r, p, q].map(|v| v.column(j)), z[j], mq[j]);
                let ahead = Pass::new("ahead").dot(pq, p, q).dot(qmq, q, mq).then(coefficients(cells[j]));
                let step = step([c.x, r, p, q], [z, mq], [rz, c.rr, alpha, beta]);
                s.work(k, c, |k| s.precondition(k, q, mq, ahead));
                s.rest(k, c, pq.not_positive());
                s.rest(k, c, rz.not_positive());
                s.work(k, c, |k| k.multi_axpy_dot(s.step(step, c)));
            }
            s.count(k);
        });
    }
}

/// `α`, and `β` before the new residual is known.
fn coefficients([rz, pq, qmq, alpha, beta]: [Cell; 5]) -> Pass {
    Pass::new("coefficients").eval(alpha, rz / pq).eval(beta, alpha * qmq / pq - 1.0)
}

/// All updates, and the dot products of the next iteration. `z = M r` has a recurrence if it has a vector of its own.
fn step([x, r, p, q]: [Vector; 4], [z, mq]: [Image; 2], [rz, rr, alpha, beta]: [Cell; 4]) -> Pass {
    let step = Pass::new("step").set(x, x + alpha * p).set(r, r - alpha * q);
    let step = match (z, mq) {
        (Image::Stored(z), Image::Stored(mq)) if z != r => step.set(z, z - alpha * mq),
        _ => step,
    };
    step.set(p, z.element() + beta * p).dot(rz, r, z).dot(rr, r, r)
}
