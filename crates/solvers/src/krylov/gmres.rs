//! Restarted GMRES, for general square systems.
use super::arnoldi::{Arnoldi, Cycle};
use super::method::{ColumnMethod, Listed, MethodInfo, Needs, Options};
use crate::named::{OptionInfo, Settings};
use crate::{Column, Columns, System};
use lacuna_engine::{Pass, Recorder, Result};

/// The side on which the preconditioner is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Side {
    /// `A M u = b`, `x = M u`: the recurrence follows the true residual.
    #[default]
    Right,
    /// `M A x = M b`: the recurrence follows `‖M (b − A x)‖`, scaled by its ratio to `‖b − A x‖` at the last restart.
    Left,
}

/// GMRES(m).
///
/// * Solves: square `A`, with any preconditioner or none.
/// * Cost of an iteration: one product with `A`, one with `M`, and the basis so far read twice, or four times
///   if the vector is orthogonalised twice. Storage: `m + 2` vectors, one more with a preconditioner.
/// * The Hessenberg matrix, its rotations and the small triangular system stay on the device; a cycle ends as
///   soon as the recurrence meets the tolerance. The host never waits.
/// * Outcome: `Stagnated` if a whole cycle does not reduce the true residual; the correction of that cycle is
///   undone. On a singular matrix, directions that differ only by rounding errors are left out of the
///   correction.
/// * Several right-hand sides at once: with the preconditioner on the right. Each has a basis of its own, `m + 3`
///   vectors in all; their cycles begin together, and one that meets its goal waits for the others.
/// * Reference: Saad and Schultz 1986, doi:10.1137/0907058; Rupp et al. 2016, Algorithm 5, doi:10.1145/2907944.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gmres {
    /// The parameters of its cycles.
    pub cycle: Cycle,
    /// The side of the preconditioner.
    pub side: Side,
}

impl Listed for Gmres {
    const INFO: MethodInfo = MethodInfo {
        name: "gmres",
        about: "GMRES, restarted; any square system",
        needs: Needs::Square,
        adjoint: false,
        options: &[
            Cycle::RESTART,
            Cycle::ORTHOGONALIZATION,
            OptionInfo {
                key: "side",
                default: "right",
                about: "where the preconditioner goes: right or left",
            },
        ],
    };

    fn named(settings: &Settings<'_>, options: &Options) -> Result<Self> {
        let sides = [("right", Side::Right), ("left", Side::Left)];
        let side = settings.choice("side", &sides)?.unwrap_or(options.side);
        Ok(Gmres { cycle: Cycle::named(settings, options)?, side })
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
        let cycle = Arnoldi::new(k, v, n, self.cycle);
        let (v0, rr) = (v.column(0), cycle.rr);
        let left = s.m.filter(|_| self.side == Side::Left);
        let right = s.m.filter(|_| self.side == Side::Right);
        let w = s.m.map(|_| k.vector(n));
        let [ratio] = k.cells();
        let cycle = if left.is_some() { cycle.scaled(ratio) } else { cycle };
        let residuals = s.residuals(k);

        let residual = Pass::new("residual").set(v0, b - v0).dot(rr, v0, v0);
        let residual = cycle.begin(s.confirm(residual, rr).eval(cycle.goal, s.goal), rr);

        k.restart(|k| {
            let u = v.column(v.columns - 1);
            cycle.correct(k, right.zip(w).map(|(m, w)| (m, [w, u])), x);
            k.spmv_dot(a, x, v0, residual);
            s.keep(k, rr);
            if let (Some(m), Some(w)) = (left, w) {
                let [mr] = k.cells();
                let scaled = Pass::new("scaled").set(v0, w).dot(mr, w, w).eval(ratio, rr / mr);
                k.spmv_dot(m, v0, w, Pass::nothing());
                k.multi_axpy_dot(cycle.begin(scaled, mr));
            }
        });
        k.each(|k| {
            k.steps(m, |k, j| {
                let (vj, next) = (v.column(j), v.column(j + 1));
                k.multi_axpy_dot(Pass::new("normalize").set(vj, vj / cycle.norm));
                let ahead = cycle.ahead(next);
                match (right, left, w) {
                    (Some(m), _, Some(w)) => {
                        k.spmv_dot(m, vj, w, Pass::nothing());
                        k.spmv_dot(a, w, next, ahead);
                    }
                    (_, Some(m), Some(w)) => {
                        k.spmv_dot(a, vj, w, Pass::nothing());
                        k.spmv_dot(m, w, next, ahead);
                    }
                    _ => k.spmv_dot(a, vj, next, ahead),
                }
                cycle.extend(k, j, next);
                residuals.iter().for_each(|shown| shown.show(k, rr));
            });
            k.multi_axpy_dot(Pass::new("full").leave());
        });
    }

    fn columns(&self) -> Option<&dyn ColumnMethod> {
        (self.side == Side::Right).then_some(self as &dyn ColumnMethod)
    }
}

impl ColumnMethod for Gmres {
    fn record_columns(&self, k: &mut Recorder<'_>, s: &Columns<'_>) {
        let (n, m) = (s.n(), self.cycle.columns(s.n()));
        // The columns of `p`, multiplied by `A` together, are those of the bases or, preconditioned, `M v`.
        let (p, w) = (s.basis(k), s.basis(k));
        let begin = |(_, c): (usize, Column)| {
            let v = k.basis(n, m);
            Arnoldi::new(k, v, n, self.cycle).following(c.rr)
        };
        let cycles: Vec<_> = s.columns().map(begin).collect();

        k.restart(|k| {
            for (j, c) in s.columns() {
                cycles[j].correct(k, s.m.map(|m| (m, [p.column(j), w.column(j)])), c.x);
            }
            k.spmm(s.a, s.x, w);
            for (j, c) in s.columns() {
                let w = w.column(j);
                k.multi_axpy_dot(Pass::new("residual").set(w, c.b - w).dot(c.rr, w, w));
            }
            s.confirm(k);
            s.keep(k);
            for (j, c) in s.columns() {
                s.work(k, c, |k| k.multi_axpy_dot(cycles[j].begin(Pass::new("begin"), c.rr)));
            }
        });
        k.each(|k| {
            k.steps(m, |k, i| {
                for (j, c) in s.columns() {
                    let (vi, p, w) = (cycles[j].v.column(i), p.column(j), w.column(j));
                    let normalize = Pass::new("normalize").set(vi, w / cycles[j].norm);
                    s.work(k, c, |k| match s.m {
                        Some(m) => {
                            k.multi_axpy_dot(normalize);
                            k.spmv_dot(m, vi, p, Pass::nothing());
                        }
                        None => k.multi_axpy_dot(normalize.set(p, vi)),
                    });
                }
                k.spmm(s.a, p, w);
                for (j, c) in s.columns() {
                    let (cycle, w) = (&cycles[j], w.column(j));
                    s.work(k, c, |k| {
                        k.multi_axpy_dot(cycle.ahead(w));
                        let rotate = s.step(cycle.project(k, i, w), c);
                        // A skipped column is not projected a second time either.
                        k.multi_axpy_dot(rotate.eval(cycle.floor, 0.0));
                    });
                }
                s.count(k);
            });
            k.multi_axpy_dot(Pass::new("full").leave());
        });
    }
    fn basis(&self) -> usize {
        self.cycle.restart // half of it on average, twice
    }
}
