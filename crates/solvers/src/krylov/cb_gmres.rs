//! Restarted GMRES with a basis stored in lower precision.
use super::arnoldi::{Arnoldi, Cycle};
use super::method::{Listed, MethodInfo, Needs, Options};
use crate::System;
use crate::named::Settings;
use lacuna_engine::{Formula, Pass, Recorder, Result};

/// GMRES(m) whose basis is stored in [`Scalar::Narrow`](lacuna_engine::Scalar::Narrow): `f32` under `f64`, `Complex32` under `Complex64`.
/// All arithmetic uses the working precision, and the vector being orthogonalised is stored in it too. The
/// basis moves half the bytes, at little cost in accuracy.
///
/// * Solves: as [`Gmres`](crate::Gmres), preconditioned from the right.
/// * Cost of an iteration: one product with `A`, one with `M`, and the basis so far read two or four times at
///   half the bytes. Storage: `m` narrow vectors and 2 in working precision, 3 with a preconditioner.
/// * Outcome: as [`Gmres`](crate::Gmres).
/// * Reference: Aliaga et al. 2023, doi:10.1177/10943420221115140.
#[derive(Clone, Copy, Debug, Default)]
pub struct CbGmres {
    /// The parameters of its cycles.
    pub cycle: Cycle,
}

impl Listed for CbGmres {
    const INFO: MethodInfo = MethodInfo {
        name: "cb-gmres",
        about: "GMRES with its basis in half the bytes, restarted; any square system",
        needs: Needs::Square,
        adjoint: false,
        options: &[Cycle::RESTART, Cycle::ORTHOGONALIZATION],
    };

    fn named(settings: &Settings<'_>, options: &Options) -> Result<Self> {
        Ok(CbGmres { cycle: Cycle::named(settings, options)? })
    }

    fn shrink(&self) -> f64 {
        1.0 - 1e-6
    }
    fn keeps_best(&self) -> bool {
        true
    }

    fn record(&self, k: &mut Recorder<'_>, s: &System<'_>) {
        let (a, b, x, n) = (s.a, s.b, s.x, s.n());
        let m = self.cycle.columns(n);
        let v = k.narrow_basis(n, m);
        let ([w, u], t) = (k.vectors(n), s.m.map(|_| k.vector(n)));
        let cycle = Arnoldi::new(k, v, n, self.cycle);
        let rr = cycle.rr;

        let residual = Pass::new("residual").set(w, b - w).dot(rr, w, w);
        let residual = cycle.begin(s.confirm(residual, rr).eval(cycle.goal, s.goal), rr);

        k.restart(|k| {
            k.multi_axpy_dot(Pass::new("solve").back_substitute(cycle.small));
            k.multi_axpy_dot(Pass::new("clear").set(w, Formula::real(0.0)));
            k.basis_add(v, cycle.small.y, w, Pass::nothing());
            match s.m {
                Some(m) => k.spmv_dot(m, w, u, Pass::new("correct").set(x, x + u)),
                None => k.multi_axpy_dot(Pass::new("correct").set(x, x + w)),
            }
            k.spmv_dot(a, x, w, residual);
            s.keep(k, rr);
        });
        k.each(|k| {
            k.steps(m, |k, j| {
                // The product uses the stored, rounded vector, so that A V = V H holds for the rounded basis.
                let vj = v.column(j);
                k.multi_axpy_dot(Pass::new("normalize").set(vj, w / cycle.norm).set(u, vj));
                s.operate(k, u, t, w, cycle.ahead(w));
                cycle.extend(k, j, w);
            });
            k.multi_axpy_dot(Pass::new("full").leave());
        });
    }
}
