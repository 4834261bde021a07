//! Restarted GMRES, for general square systems.
use crate::{Method, System};
use lacuna_core::{Basis, Cell, Cells, Error, Formula, Hessenberg, Pass, Recorder, Scalar};

/// How a new basis vector is made orthogonal to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Orthogonalization {
    /// Classical Gram–Schmidt, and once more where the projection left less than a hundredth of the squared norm: two
    /// sweeps over the basis, four where orthogonality is at stake. The device decides (Daniel et al. 1976,
    /// doi:10.1090/S0025-5718-1976-0431641-8).
    #[default]
    Selective,
    /// Classical Gram–Schmidt, always twice: as orthogonal as working precision allows (Giraud et al. 2005,
    /// doi:10.1007/s00211-005-0615-4).
    ClassicalTwice,
    /// Classical Gram–Schmidt, once: half the traffic; orthogonality is lost like the square of the condition.
    Classical,
    /// Modified Gram–Schmidt: one vector after the other, so a sum over all elements for each.
    Modified,
}

/// What must be left of a squared norm after one projection: a factor of 10 in the norm costs one digit of
/// orthogonality.
const KEPT: f64 = 0.01;

/// The side from which the preconditioner works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
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
/// * Cost of an iteration: one product with `A`, one with `M`, and the basis so far read twice, or four times where it
///   is made orthogonal twice. Storage: `m + 2` vectors, one more with a preconditioner.
/// * The Hessenberg matrix, its rotations and the small triangular system stay on the device; a cycle ends as soon
///   as the recurrence meets the tolerance. The host waits for nothing.
/// * Outcome: `Stagnated` where a whole cycle does not reduce the true residual; what it added is taken back. On a singular matrix, directions that
///   only rounding errors tell apart are left out of the correction.
/// * Reference: Saad and Schultz 1986, doi:10.1137/0907058; Rupp et al. 2016, Algorithm 5, doi:10.1145/2907944.
#[derive(Clone, Copy, Debug)]
pub struct Gmres {
    /// Iterations of a cycle, `m`.
    pub restart: usize,
    /// How the basis is made orthogonal.
    pub orthogonalization: Orthogonalization,
    /// Where the preconditioner goes.
    pub side: Side,
}

impl Gmres {
    /// The longest cycle: its small dense problem takes a million numbers.
    pub const MOST: usize = 1000;
}

impl Default for Gmres {
    fn default() -> Self {
        Gmres { restart: 30, orthogonalization: Orthogonalization::default(), side: Side::default() }
    }
}

impl<T: Scalar> Method<T> for Gmres {
    fn name(&self) -> &'static str {
        "gmres"
    }
    fn shrink(&self) -> f64 {
        1.0 - 1e-6
    }
    fn keeps_best(&self) -> bool {
        true
    }

    fn record(&self, k: &mut Recorder<'_, T>, s: &System<'_, T>) {
        let (a, b, x, n, m) = (s.a, s.b, s.x, s.n(), self.restart.clamp(1, s.n().max(1)));
        if m > Gmres::MOST {
            let message = format!("expected at most {} iterations a cycle, got {m}", Gmres::MOST);
            return k.fail(Error::Argument { what: "restart".into(), message });
        }
        let v = k.basis(n, m + 1);
        let v0 = v.column(0);
        let [rr, goal, floor, ww, norm, used] = k.cells();
        let h = Hessenberg {
            m,
            h: k.run_of_cells(m * (m + 1)),
            rotations: k.run_of_cells(2 * m),
            g: k.run_of_cells(m + 1),
            y: k.run_of_cells(m),
            used,
        };
        let column = |j: usize| Cells::new(h.h.first + (j * (m + 1)) as u32, j as u32 + 2, h.h.serial);
        let left = s.m.filter(|_| self.side == Side::Left);
        let right = s.m.filter(|_| self.side == Side::Right);
        let w = s.m.map(|_| k.vector(n));
        let again = k.run_of_cells(m);

        let residual = Pass::new("residual").set(v0, b - v0).dot(rr, v0, v0);
        let residual = s.confirm(residual, rr).eval(goal, s.goal).eval(norm, rr.sqrt()).eval(h.g.at(0), norm);

        k.multi_axpy_dot(Pass::new("empty").eval(used, 0.0));
        k.restart(|k| {
            k.multi_axpy_dot(Pass::new("solve").back_substitute(h));
            match (right, w) {
                (Some(m), Some(w)) => {
                    let u = v.column(self.restart.min(v.columns - 1));
                    k.multi_axpy_dot(Pass::new("clear").set(w, Formula::value(T::zero())));
                    k.basis_add(v, h.y, w, Pass::nothing());
                    k.spmv_dot(m, w, u, Pass::new("correct").set(x, x + u));
                }
                _ => k.basis_add(v, h.y, x, Pass::nothing()),
            }
            k.spmv_dot(a, x, v0, residual);
            s.keep(k, rr);
            if let (Some(m), Some(w)) = (left, w) {
                let [mr] = k.cells();
                let scaled = Pass::new("scaled")
                    .set(v0, w)
                    .dot(mr, w, w)
                    .eval(goal, s.goal * (mr / rr))
                    .eval(norm, mr.sqrt())
                    .eval(h.g.at(0), norm);
                k.spmv_dot(m, v0, w, scaled);
            }
        });
        k.each(|k| {
            k.steps(m, |k, j| {
                let (vj, next) = (v.column(j), v.column(j + 1));
                k.multi_axpy_dot(Pass::new("normalize").set(vj, vj / norm));
                let before = Pass::new("norm_before").dot(floor, next, next).eval(floor, KEPT * floor);
                match (right, left, w) {
                    (Some(m), _, Some(w)) => {
                        k.spmv_dot(m, vj, w, Pass::nothing());
                        k.spmv_dot(a, w, next, before);
                    }
                    (_, Some(m), Some(w)) => {
                        k.spmv_dot(a, vj, w, Pass::nothing());
                        k.spmv_dot(m, w, next, before);
                    }
                    _ => k.spmv_dot(a, vj, next, before),
                }
                self.orthogonalize(k, v, [column(j), again], j, [floor, ww]);
                let subdiagonal = column(j).at(j + 1);
                let rotate = Pass::new("rotate")
                    .eval(norm, ww.sqrt())
                    .eval(subdiagonal, norm)
                    .rotate(h, j, rr)
                    .count(rr)
                    .leave_if(rr.le(goal));
                k.multi_axpy_dot(rotate);
            });
            k.multi_axpy_dot(Pass::new("full").leave());
        });
    }
}

impl Gmres {
    /// Makes column `j + 1` orthogonal to the columns before it; their coefficients go to `h`, its squared norm to `ww`, those of a
    /// second projection to `again` before they are added. `floor` is the squared norm below which too little of it is left.
    fn orthogonalize<T: Scalar>(
        &self,
        k: &mut Recorder<'_, T>,
        v: Basis<T>,
        [h, again]: [Cells<T>; 2],
        j: usize,
        [floor, ww]: [Cell<T>; 2],
    ) {
        let (w, h, again) = (v.column(j + 1), h.take(j + 1), again.take(j + 1));
        let norm = || Pass::new("norm").dot(ww, w, w);
        if self.orthogonalization == Orthogonalization::Modified {
            k.multi_axpy_dot(Pass::new("project").dot(h.at(0), v.column(0), w));
            for i in 1..=j {
                let less = Pass::new("project").set(w, w - h.at(i - 1) * v.column(i - 1));
                k.multi_axpy_dot(less.dot(h.at(i), v.column(i), w));
            }
            let less = Pass::new("norm").set(w, w - h.at(j) * v.column(j));
            return k.multi_axpy_dot(less.dot(ww, w, w));
        }
        let project_again = |k: &mut Recorder<'_, T>| {
            k.basis_dot(v, w, again);
            k.basis_axpy(v, again, w, norm().add_cells(h, again));
        };
        k.basis_dot(v, w, h);
        k.basis_axpy(v, h, w, norm());
        match self.orthogonalization {
            Orthogonalization::Selective => k.when(floor.gt(ww), project_again),
            Orthogonalization::ClassicalTwice => project_again(k),
            Orthogonalization::Classical | Orthogonalization::Modified => {}
        }
    }
}
