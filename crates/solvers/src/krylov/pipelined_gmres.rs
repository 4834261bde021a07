//! Restarted GMRES on an orthonormal basis of `A M K`, for general square systems.
use super::arnoldi::{Cycle, Orthogonalization, correct};
use super::method::{Listed, MethodInfo, Needs, Options};
use crate::System;
use crate::named::{OptionInfo, Settings};
use lacuna_engine::{Basis, Cell, Cells, Hessenberg, Pass, Recorder, Result};

/// Simpler GMRES(m), pipelined: the basis is that of `A M K`, so that its small system is triangular from the start,
/// without rotations, and the residual follows from one more dot product.
///
/// * Solves: square `A`, with any preconditioner from the right, or none.
/// * Cost of an iteration: one product with `A`, one with `M`, and the basis so far read twice. Storage: `m + 2` vectors,
///   one more with a preconditioner.
/// * A cycle ends where its residual is `√ε` of that at its beginning: from there on its directions, the first of which is
///   the residual itself, are too close to dependent.
/// * Outcome: as [`Gmres`](crate::Gmres), with orthogonality by one projection of the classical Gram–Schmidt process. With the
///   modified one, a vector after the other, this is the algorithm before it was pipelined: `j` reductions in step `j`, for one.
/// * Reference: Walker and Zhou 1994, doi:10.1002/nla.1680010605; Rupp et al. 2016, Algorithm 6, and Algorithm 5 for the modified
///   process, doi:10.1145/2907944.
#[derive(Clone, Copy, Debug)]
pub struct PipelinedGmres {
    /// Iterations of a cycle, 30 where not given, and how its basis is made orthogonal: `Modified`, or once by the classical process
    /// whatever else is given.
    pub cycle: Cycle,
}

impl Default for PipelinedGmres {
    fn default() -> Self {
        PipelinedGmres {
            cycle: Cycle { orthogonalization: Orthogonalization::Classical, ..Cycle::default() },
        }
    }
}

const WAY: OptionInfo = OptionInfo {
    key: "orthogonalization",
    default: "classical",
    about: "classical, or modified: Gram-Schmidt by one vector after another",
};

impl Listed for PipelinedGmres {
    const INFO: MethodInfo = MethodInfo {
        name: "pipelined-gmres",
        about: "GMRES without rotations, restarted; any square system",
        needs: Needs::Square,
        adjoint: false,
        options: &[Cycle::RESTART, WAY],
    };

    fn named(settings: &Settings<'_>, options: &Options) -> Result<Self> {
        let ways = [("classical", Orthogonalization::Classical), ("modified", Orthogonalization::Modified)];
        let way = settings.choice(WAY.key, &ways)?.unwrap_or(Orthogonalization::Classical);
        let restart = Cycle::restart(settings, options)?;
        Ok(PipelinedGmres { cycle: Cycle { restart, orthogonalization: way } })
    }

    fn shrink(&self) -> f64 {
        1.0 - 1e-6
    }
    fn keeps_best(&self) -> bool {
        true
    }

    fn record(&self, k: &mut Recorder<'_>, s: &System<'_>) {
        let (a, b, x, n) = (s.a, s.b, s.x, s.n());
        let m = self.cycle.checked_columns(k, n);
        // Column 0 is the residual at the beginning of the cycle, scaled; columns 1 to m are the basis.
        let v = k.basis(n, m + 1);
        let (r, t) = (k.vector(n), s.m.map(|_| k.vector(n)));
        let (small, columns) = triangle(k, m);
        let [rr, ww, norm, xi, goal] = k.cells();

        let residual = Pass::new("residual").set(r, b - r).set(v.column(0), r).dot(rr, r, r);
        let residual = s
            .confirm(residual, rr)
            .eval(norm, rr.sqrt())
            .eval(xi, 0.0)
            .eval(goal, s.goal.max(rr.epsilon() * rr));

        k.restart(|k| {
            let with = s.m.zip(t).map(|(m, t)| (m, [v.column(v.columns - 1), t]));
            correct(k, (v, small), with, x);
            k.spmv_dot(a, x, r, residual);
            s.keep(k, rr);
        });
        k.each(|k| {
            k.steps(m, |k, j| {
                let (vj, w) = (v.column(j), v.column(j + 1));
                let (h, last) = column(columns, m, j);
                k.multi_axpy_dot(Pass::new("normalize").set(vj, vj / norm).set(r, r - xi * vj));
                s.operate(k, vj, t, w, Pass::nothing());
                let pass = Pass::new("norm").dot(ww, w, w).dot(xi, w, r);
                let pass = pass.eval(norm, ww.sqrt().max(ww.tiny())).eval(xi, xi / norm);
                let pass = pass.eval(last, norm).eval(small.g.at(j), xi);
                let pass = pass.eval(rr, (rr - xi.conj() * xi).max(0.0)).eval(small.used, small.used + 1.0);
                project(k, v, h, j, self.cycle.orthogonalization, pass.count(rr).leave_if(rr.le(goal)));
            });
            k.multi_axpy_dot(Pass::new("full").leave());
        });
    }
}

/// Takes from column `j + 1` its parts along columns 1 to `j`, whose coefficients go to `h`, then runs `pass`.
fn project(k: &mut Recorder<'_>, v: Basis, h: Cells, j: usize, way: Orthogonalization, pass: Pass) {
    let w = v.column(j + 1);
    if way != Orthogonalization::Modified {
        k.basis_dot(v, w, h);
        k.multi_axpy_dot(Pass::new("without the first").eval(h.at(0), 0.0));
        return k.basis_axpy(v, h, w, pass);
    }
    let without = |i: usize| match i {
        0 => Pass::new("project"),
        _ => Pass::new("project").set(w, w - h.at(i) * v.column(i)),
    };
    for i in 1..=j {
        k.multi_axpy_dot(without(i - 1).dot(h.at(i), v.column(i), w));
    }
    k.multi_axpy_dot(without(j).then(pass));
}

/// The triangular system `R y = ξ` of a cycle, and its columns with the cell before the first.
fn triangle(k: &mut Recorder<'_>, m: usize) -> (Hessenberg, Cells) {
    let columns = k.run_of_cells(m * (m + 1) + 1);
    let [used] = k.cells();
    k.multi_axpy_dot(Pass::new("empty").eval(used, 0.0));
    let small = Hessenberg {
        m,
        h: columns.part(1, m * (m + 1)),
        rotations: k.run_of_cells(2 * m),
        g: k.run_of_cells(m + 1),
        y: k.run_of_cells(m),
        used,
    };
    (small, columns)
}

/// Column `j` of `R`, after a cell for the projection on the first direction, which is not in the basis.
fn column(columns: Cells, m: usize, j: usize) -> (Cells, Cell) {
    let all = columns.part(j * (m + 1), j + 2);
    (all.take(j + 1), all.at(j + 1))
}
