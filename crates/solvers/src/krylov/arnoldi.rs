//! The Arnoldi process of a GMRES cycle: an orthonormal basis, and the small least-squares problem, stored in
//! cells.
use super::Options;
use crate::named::{OptionInfo, Settings};
use lacuna_engine::{Basis, Cell, Cells, Error, Formula, Hessenberg, LinOp, Pass, Recorder, Result, Vector};

/// The longest cycle; its small dense problem takes a million numbers.
pub(super) const MOST: usize = 1000;

/// How a new basis vector is orthogonalised against those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Orthogonalization {
    /// Classical Gram–Schmidt, repeated if the projection left less than a hundredth of the squared norm: two
    /// sweeps over the basis, four if orthogonality is at risk. The device decides (Daniel et al. 1976,
    /// doi:10.1090/S0025-5718-1976-0431641-8).
    #[default]
    Selective,
    /// Classical Gram–Schmidt, always twice: orthogonal to working precision (Giraud et al. 2005,
    /// doi:10.1007/s00211-005-0615-4).
    ClassicalTwice,
    /// Classical Gram–Schmidt, once: half the traffic; the loss of orthogonality grows with the square of the
    /// condition number.
    Classical,
    /// Modified Gram–Schmidt: one vector after another, with one reduction for each.
    Modified,
}

/// The fraction of the squared norm that must be left after one projection. A factor of 10 in the norm costs
/// one digit of orthogonality.
const KEPT: f64 = 0.01;

/// Parameters of the cycles of the GMRES family.
#[derive(Clone, Copy, Debug)]
pub struct Cycle {
    /// Iterations of a cycle, `m`.
    pub restart: usize,
    /// How the basis is orthogonalised.
    pub orthogonalization: Orthogonalization,
}

impl Default for Cycle {
    fn default() -> Self {
        Cycle { restart: 30, orthogonalization: Orthogonalization::default() }
    }
}

impl Cycle {
    pub(super) const RESTART: OptionInfo =
        OptionInfo { key: "restart", default: "30", about: "iterations of a cycle" };
    pub(super) const ORTHOGONALIZATION: OptionInfo = OptionInfo {
        key: "orthogonalization",
        default: "selective",
        about: "selective, classical, classical-twice or modified Gram-Schmidt",
    };

    /// The cycle given by the options in a name, which take precedence over the settings.
    pub(super) fn named(settings: &Settings<'_>, options: &Options) -> Result<Self> {
        use Orthogonalization::{Classical, ClassicalTwice, Modified, Selective};
        let ways = [
            ("selective", Selective),
            ("classical", Classical),
            ("classical-twice", ClassicalTwice),
            ("modified", Modified),
        ];
        let way = settings.choice("orthogonalization", &ways)?.unwrap_or(options.orthogonalization);
        Ok(Cycle { restart: Self::restart(settings, options)?, orthogonalization: way })
    }

    /// The iterations of a cycle, likewise.
    pub(super) fn restart(settings: &Settings<'_>, options: &Options) -> Result<usize> {
        let given = settings.given("restart").is_some();
        let expected = format!("a whole number from 1 to {MOST}");
        let named = settings.number("restart", &expected, |restart| (1..=MOST).contains(restart))?;
        Ok(options.restart.filter(|_| !given).unwrap_or(named))
    }

    /// The number of columns for a system of `n` unknowns, at most [`MOST`].
    pub(super) fn columns(&self, n: usize) -> usize {
        self.restart.clamp(1, n.max(1)).min(MOST)
    }

    /// The same; if more were asked for, the recording fails.
    pub(super) fn checked_columns(&self, k: &mut Recorder<'_>, n: usize) -> usize {
        let asked = self.restart.clamp(1, n.max(1));
        if asked > MOST {
            let message = format!("expected at most {MOST} iterations a cycle, got {asked}");
            k.fail(Error::Argument { what: "restart".into(), message });
        }
        self.columns(n)
    }
}

/// Records `x ← x + M V y`, where `y` solves the small problem; a preconditioner comes with two work vectors.
pub(super) fn correct(
    k: &mut Recorder<'_>,
    (v, small): (Basis, Hessenberg),
    m: Option<(&dyn LinOp, [Vector; 2])>,
    x: Vector,
) {
    k.multi_axpy_dot(Pass::new("solve").back_substitute(small));
    match m {
        Some((m, [w, u])) => {
            k.multi_axpy_dot(Pass::new("clear").set(w, Formula::real(0.0)));
            k.basis_add(v, small.y, w, Pass::nothing());
            k.spmv_dot(m, w, u, Pass::new("correct").set(x, x + u));
        }
        None => k.basis_add(v, small.y, x, Pass::nothing()),
    }
}

/// A cycle: the growing relation `A V = V H`, and `min ‖g − H y‖`.
pub(super) struct Arnoldi {
    /// The basis.
    pub v: Basis,
    /// The small problem.
    pub small: Hessenberg,
    /// The norm of the vector that becomes the next column.
    pub norm: Cell,
    /// The squared residual norm: of the recurrence, or at the restart.
    pub rr: Cell,
    /// The squared residual norm at which the cycle ends.
    pub goal: Cell,
    /// Coefficients of a second projection, before they are added.
    again: Cells,
    way: Orthogonalization,
    /// If the squared norm after the projection is below this, a second projection follows.
    pub floor: Cell,
    ww: Cell,
    /// The squared residual norm over that of the recurrence, if they differ.
    ratio: Option<Cell>,
}

impl Arnoldi {
    /// A cycle over a basis, for `n` unknowns.
    pub(super) fn new(k: &mut Recorder<'_>, v: Basis, n: usize, cycle: Cycle) -> Self {
        let (m, way) = (cycle.checked_columns(k, n), cycle.orthogonalization);
        let [rr, goal, floor, ww, norm, used] = k.cells();
        let small = Hessenberg {
            m,
            h: k.run_of_cells(m * (m + 1)),
            rotations: k.run_of_cells(2 * m),
            g: k.run_of_cells(m + 1),
            y: k.run_of_cells(m),
            used,
        };
        let again = k.run_of_cells(m);
        k.multi_axpy_dot(Pass::new("empty").eval(used, 0.0));
        Arnoldi { v, small, norm, rr, goal, again, way, floor, ww, ratio: None }
    }

    /// Multiplies the squared residual norms of the recurrence by a cell.
    pub(super) fn scaled(self, ratio: Cell) -> Self {
        Arnoldi { ratio: Some(ratio), ..self }
    }

    /// Stores the squared residual norm in a cell of the caller's.
    pub(super) fn following(self, rr: Cell) -> Self {
        Arnoldi { rr, ..self }
    }

    /// After `pass`, begins a cycle from a vector of squared norm `squared`.
    pub(super) fn begin(&self, pass: Pass, squared: Cell) -> Pass {
        pass.eval(self.norm, squared.sqrt()).eval(self.small.g.at(0), self.norm)
    }

    /// The pass fused with the product that computes `w`.
    pub(super) fn ahead(&self, w: Vector) -> Pass {
        Pass::new("norm_before").dot(self.floor, w, w).eval(self.floor, KEPT * self.floor)
    }

    /// Records the correction of `x`: see [`correct`].
    pub(super) fn correct(&self, k: &mut Recorder<'_>, m: Option<(&dyn LinOp, [Vector; 2])>, x: Vector) {
        correct(k, (self.v, self.small), m, x);
    }

    /// Orthogonalises `w` against columns 0 to `j`, updates the residual norm, and ends the cycle if it meets
    /// the goal.
    pub(super) fn extend(&self, k: &mut Recorder<'_>, j: usize, w: Vector) {
        let rotate = self.project(k, j, w);
        let rotate = match self.ratio {
            Some(ratio) => rotate.eval(self.rr, ratio * self.rr),
            None => rotate,
        };
        k.multi_axpy_dot(rotate.count(self.rr).leave_if(self.rr.le(self.goal)));
    }

    /// Orthogonalises `w` against columns 0 to `j`. Returns the pass that updates the residual norm.
    pub(super) fn project(&self, k: &mut Recorder<'_>, j: usize, w: Vector) -> Pass {
        let Arnoldi { small, norm, rr, ww, .. } = *self;
        let h = small.h.part(j * (small.m + 1), j + 2);
        self.orthogonalize(k, [h.take(j + 1), self.again.take(j + 1)], j, w);
        Pass::new("rotate").eval(norm, ww.sqrt()).eval(h.at(j + 1), norm).rotate(small, j, rr)
    }

    /// Orthogonalises `w` against columns 0 to `j`; the coefficients go to `h`, the squared norm of `w` to
    /// `ww`.
    fn orthogonalize(&self, k: &mut Recorder<'_>, [h, again]: [Cells; 2], j: usize, w: Vector) {
        let (v, ww) = (self.v, self.ww);
        let norm = || Pass::new("norm").dot(ww, w, w);
        if self.way == Orthogonalization::Modified {
            k.multi_axpy_dot(Pass::new("project").dot(h.at(0), v.column(0), w));
            for i in 1..=j {
                let less = Pass::new("project").set(w, w - h.at(i - 1) * v.column(i - 1));
                k.multi_axpy_dot(less.dot(h.at(i), v.column(i), w));
            }
            let less = Pass::new("norm").set(w, w - h.at(j) * v.column(j));
            return k.multi_axpy_dot(less.dot(ww, w, w));
        }
        let project_again = |k: &mut Recorder<'_>| {
            k.basis_dot(v, w, again);
            k.basis_axpy(v, again, w, norm().add_cells(h, again));
        };
        k.basis_dot(v, w, h);
        k.basis_axpy(v, h, w, norm());
        match self.way {
            Orthogonalization::Selective => k.when(self.floor.gt(ww), project_again),
            Orthogonalization::ClassicalTwice => project_again(k),
            Orthogonalization::Classical | Orthogonalization::Modified => {}
        }
    }
}
