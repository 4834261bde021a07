//! The cycle as recorded operations. On each level: one product with `A` before and one after the correction
//! for each smoothing step, one with `R` and one with `P`. All vector work is fused with these products, but for those of large
//! matrices with several columns, which are read once for all of them.
use super::smoother::{Smoothing, second_step};
use lacuna_engine::{Basis, Cell, Expr, Matrix, Pass, Recorder, Scalar, Vector};

/// Bytes of a matrix, and bytes of a row, from which on it is read once for all columns.
const LARGE: usize = 1 << 20;
const WIDE: usize = 32;

/// The work on one level, with the handles it uses.
pub(super) enum Task<T: Scalar> {
    /// Smoothing, and a correction from the next level by restriction and prolongation.
    Correct {
        /// The smoother.
        smoothing: Smoothing,
        /// `A`, `R` and `P`.
        matrices: [Matrix<T>; 3],
        /// The diagonal matrix of the smoother.
        w: Weights<T>,
        /// Two work vectors for each column.
        work: [Basis<T>; 2],
        /// Right-hand sides and solutions of the next level.
        next: [Basis<T>; 2],
    },
    /// Two steps of SPAI(0), or one of Chebyshev's polynomial, on a coarsest level too large for an inverse.
    SmoothCoarsest {
        /// The smoother.
        smoothing: Smoothing,
        /// `A`
        a: Matrix<T>,
        /// The diagonal matrix of the smoother.
        w: Weights<T>,
        /// A work vector for each column.
        x: Basis<T>,
    },
    /// The product with the inverse.
    Solve(Matrix<T>),
}

/// The diagonal matrix of a smoother on a device.
#[derive(Clone, Copy)]
pub(super) enum Weights<T> {
    /// Its entries.
    Each(Vector<T>),
    /// The number that all entries are.
    All(Cell<T>),
}

impl<T: Scalar> Weights<T> {
    fn times(self, v: impl Into<Expr<T>>) -> Expr<T> {
        match self {
            Weights::Each(w) => w * v.into(),
            Weights::All(w) => w * v.into(),
        }
    }
}

/// `Y ← A X`, then the pass of each column.
fn product<T: Scalar>(
    k: &mut Recorder<'_, T>,
    a: Matrix<T>,
    [x, y]: [Basis<T>; 2],
    mut pass: impl FnMut(usize) -> Pass<T>,
) {
    if x.columns > 1 && a.bytes > LARGE.max(WIDE * a.rows) {
        k.matrix_columns(a, x, y);
        (0..x.columns).for_each(|j| k.multi_axpy_dot(pass(j)));
    } else {
        (0..x.columns).for_each(|j| k.matrix_product(a, x.column(j), y.column(j), pass(j)));
    }
}

/// What follows a cycle: a pass if there is one column, otherwise nothing.
pub(super) type Then<T> = Option<Pass<T>>;

/// A pass, and what follows.
fn and<T>(pass: Pass<T>, then: &mut Then<T>) -> Pass<T> {
    match then.take() {
        Some(then) => pass.then(then),
        None => pass,
    }
}

/// A smoothing step other than the first one from zero.
struct SmoothingStep<T: Scalar> {
    smoothing: Smoothing,
    a: Matrix<T>,
    w: Weights<T>,
    b: Basis<T>,
}

impl<T: Scalar> SmoothingStep<T> {
    /// The second half of Chebyshev's iteration from zero, written to `y`; `x` holds the result of the first
    /// half, `W b`, unless that is a multiple of `b`.
    fn second_from_zero(&self, k: &mut Recorder<'_, T>, x: Basis<T>, y: Basis<T>, mut then: Then<T>) {
        let (c, w, b) = (second_step(), self.w, self.b);
        let from = if matches!(w, Weights::All(_)) { b } else { x };
        product(k, self.a, [from, y], |j| {
            let [x, y, b] = [x, y, b].map(|v| v.column(j));
            let first = match w {
                Weights::All(_) => (2.0 * (1.0 + c)) * w.times(b) - (1.0 + c) * w.times(w.times(y)),
                Weights::Each(_) => (2.0 * (1.0 + c)) * x - (1.0 + c) * w.times(y),
            };
            and(Pass::new("smooth").set(y, first), &mut then)
        });
    }

    /// A step from `x` to `y`, with `other` as work vectors. All are different, but with SPAI(0) `other` is
    /// not used.
    fn full(&self, k: &mut Recorder<'_, T>, x: Basis<T>, other: Basis<T>, y: Basis<T>, mut then: Then<T>) {
        let (c, w, b) = (second_step(), self.w, self.b);
        let residual = |j: usize, of_x: Vector<T>| w.times(b.column(j)) - w.times(of_x);
        match self.smoothing {
            Smoothing::Spai0 => product(k, self.a, [x, y], |j| {
                let [x, y] = [x, y].map(|v| v.column(j));
                and(Pass::new("smooth").set(y, x + residual(j, y)), &mut then)
            }),
            Smoothing::Chebyshev => {
                product(k, self.a, [x, other], |j| {
                    let [x, other] = [x, other].map(|v| v.column(j));
                    Pass::new("first").set(other, x + residual(j, other))
                });
                product(k, self.a, [other, y], |j| {
                    let [x, other, y] = [x, other, y].map(|v| v.column(j));
                    // The first step was `other - x`.
                    let set = (1.0 + c) * other - c * x + (1.0 + c) * residual(j, y);
                    and(Pass::new("second").set(y, set), &mut then)
                });
            }
        }
    }
}

/// The first smoothing step from zero, as a pass fused with the operation that computes the right-hand side.
fn first<T: Scalar>(task: &Task<T>, b: Basis<T>, j: usize) -> Pass<T> {
    match task {
        Task::Correct { smoothing, w, work: [x, _], .. } | Task::SmoothCoarsest { smoothing, w, x, .. } => {
            match (smoothing, w) {
                (Smoothing::Chebyshev, Weights::All(_)) => Pass::nothing(),
                _ => Pass::new("smooth").set(x.column(j), w.times(b.column(j))),
            }
        }
        Task::Solve(_) => Pass::nothing(),
    }
}

/// Records `Z ← M B` by a V-cycle over the levels in `tasks`, with `sweeps` smoothing steps before and after,
/// then `then`.
pub(super) fn cycle<T: Scalar>(
    k: &mut Recorder<'_, T>,
    tasks: &[Task<T>],
    [b, z]: [Basis<T>; 2],
    sweeps: usize,
    then: Then<T>,
) {
    if let Some(task) = tasks.first() {
        (0..b.columns).for_each(|j| k.multi_axpy_dot(first(task, b, j)));
        level(k, tasks, [b, z], sweeps, then);
    }
}

/// [`cycle`] after [`first`] has run.
fn level<T: Scalar>(
    k: &mut Recorder<'_, T>,
    tasks: &[Task<T>],
    [b, z]: [Basis<T>; 2],
    sweeps: usize,
    mut then: Then<T>,
) {
    let Some((task, rest)) = tasks.split_first() else { return };
    match task {
        Task::Solve(inverse) => {
            product(k, *inverse, [b, z], |_| then.take().unwrap_or_else(Pass::nothing));
        }
        Task::SmoothCoarsest { smoothing, a, w, x } => {
            let step = SmoothingStep { smoothing: *smoothing, a: *a, w: *w, b };
            match smoothing {
                Smoothing::Spai0 => step.full(k, *x, *x, z, then),
                Smoothing::Chebyshev => step.second_from_zero(k, *x, z, then),
            }
        }
        Task::Correct { smoothing, matrices: [a, r, p], w, work: [x, t], next: [coarse_b, coarse_z] } => {
            let step = SmoothingStep { smoothing: *smoothing, a: *a, w: *w, b };
            let (mut x, mut t) = (*x, *t);
            if *smoothing == Smoothing::Chebyshev {
                step.second_from_zero(k, x, t, None);
                (x, t) = (t, x);
            }
            for _ in 1..sweeps {
                step.full(k, x, z, t, None);
                (x, t) = (t, x);
            }
            product(k, *a, [x, t], |j| {
                let (t, b) = (t.column(j), b.column(j));
                Pass::new("residual").set(t, b - t)
            });
            product(k, *r, [t, *coarse_b], |j| {
                rest.first().map_or(Pass::nothing(), |next| first(next, *coarse_b, j))
            });
            level(k, rest, [*coarse_b, *coarse_z], sweeps, None);
            product(k, *p, [*coarse_z, t], |j| {
                let (t, x) = (t.column(j), x.column(j));
                Pass::new("correct").set(t, x + t)
            });
            (x, t) = (t, x);
            for _ in 1..sweeps {
                step.full(k, x, z, t, None);
                (x, t) = (t, x);
            }
            step.full(k, x, t, z, then);
        }
    }
}
