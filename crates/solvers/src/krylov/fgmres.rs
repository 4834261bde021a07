//! Restarted GMRES for preconditioners that change from step to step.
use super::arnoldi::{Arnoldi, Cycle};
use super::method::{Listed, MethodInfo, Needs, Options};
use crate::System;
use crate::named::Settings;
use lacuna_engine::{Pass, Recorder, Result};

/// Flexible GMRES(m): stores `M v` of every step in addition to the basis, so that `M` may change from step
/// to step.
///
/// * Solves: square `A`, with any preconditioner or none; meant for one that is not linear, or is rounded.
/// * Cost of an iteration: as [`Gmres`](crate::Gmres). Storage: `2 m + 1` vectors; without a preconditioner it is
///   [`Gmres`](crate::Gmres).
/// * Outcome: as [`Gmres`](crate::Gmres).
/// * Reference: Saad 1993, doi:10.1137/0914028.
#[derive(Clone, Copy, Debug, Default)]
pub struct FGmres {
    /// The parameters of its cycles.
    pub cycle: Cycle,
}

impl Listed for FGmres {
    const INFO: MethodInfo = MethodInfo {
        name: "fgmres",
        about: "GMRES for a preconditioner that changes, restarted; any square system",
        needs: Needs::Square,
        adjoint: false,
        options: &[Cycle::RESTART, Cycle::ORTHOGONALIZATION],
    };

    fn named(settings: &Settings<'_>, options: &Options) -> Result<Self> {
        Ok(FGmres { cycle: Cycle::named(settings, options)? })
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
        let v = k.basis(n, m + 1);
        let z = if s.m.is_some() { k.basis(n, m) } else { v };
        let cycle = Arnoldi::new(k, v, n, self.cycle);
        let (v0, rr) = (v.column(0), cycle.rr);

        let residual = Pass::new("residual").set(v0, b - v0).dot(rr, v0, v0);
        let residual = cycle.begin(s.confirm(residual, rr).eval(cycle.goal, s.goal), rr);

        k.restart(|k| {
            k.multi_axpy_dot(Pass::new("solve").back_substitute(cycle.small));
            k.basis_add(z, cycle.small.y, x, Pass::nothing());
            k.spmv_dot(a, x, v0, residual);
            s.keep(k, rr);
        });
        k.each(|k| {
            k.steps(m, |k, j| {
                let (vj, zj, next) = (v.column(j), z.column(j), v.column(j + 1));
                k.multi_axpy_dot(Pass::new("normalize").set(vj, vj / cycle.norm));
                s.precondition(k, vj, zj, Pass::nothing());
                k.spmv_dot(a, zj, next, cycle.ahead(next));
                cycle.extend(k, j, next);
            });
            k.multi_axpy_dot(Pass::new("full").leave());
        });
    }
}
