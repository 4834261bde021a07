//! The cycle as recorded operations. On each level: one product with `A` before and one after the correction
//! for each smoothing step, one with `R` and one with `P`. All vector work is fused with these products.
use super::smoother::{Smoothing, second_step};
use lacuna_engine::{Cell, Expr, Matrix, Pass, Recorder, Scalar, Vector};

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
        /// Two work vectors.
        work: [Vector<T>; 2],
        /// Right-hand side and solution of the next level.
        next: [Vector<T>; 2],
    },
    /// Two steps of SPAI(0), or one of Chebyshev's polynomial, on a coarsest level too large for an inverse.
    SmoothCoarsest {
        /// The smoother.
        smoothing: Smoothing,
        /// `A`
        a: Matrix<T>,
        /// The diagonal matrix of the smoother.
        w: Weights<T>,
        /// A work vector.
        x: Vector<T>,
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

/// A smoothing step other than the first one from zero.
struct SmoothingStep<T: Scalar> {
    smoothing: Smoothing,
    a: Matrix<T>,
    w: Weights<T>,
    b: Vector<T>,
}

impl<T: Scalar> SmoothingStep<T> {
    /// The second half of Chebyshev's iteration from zero, written to `y`; `x` holds the result of the first
    /// half, `W b`, unless that is a multiple of `b`.
    fn second_from_zero(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let (c, w, b) = (second_step(), self.w, self.b);
        let pass = Pass::new("smooth");
        match w {
            Weights::All(_) => {
                let set = (2.0 * (1.0 + c)) * w.times(b) - (1.0 + c) * w.times(w.times(y));
                k.spmv_dot(&self.a, b, y, pass.set(y, set).then(then));
            }
            Weights::Each(_) => {
                let set = (2.0 * (1.0 + c)) * x - (1.0 + c) * w.times(y);
                k.spmv_dot(&self.a, x, y, pass.set(y, set).then(then));
            }
        }
    }

    /// A step from `x` to `y`, with `other` as a work vector. All are different, but with SPAI(0) `other` is
    /// not used.
    fn full(&self, k: &mut Recorder<'_, T>, x: Vector<T>, other: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let (c, w, b) = (second_step(), self.w, self.b);
        let residual = |of_x: Vector<T>| w.times(b) - w.times(of_x);
        match self.smoothing {
            Smoothing::Spai0 => {
                k.spmv_dot(&self.a, x, y, Pass::new("smooth").set(y, x + residual(y)).then(then));
            }
            Smoothing::Chebyshev => {
                k.spmv_dot(&self.a, x, other, Pass::new("first").set(other, x + residual(other)));
                // The first step was `other - x`.
                let set = (1.0 + c) * other - c * x + (1.0 + c) * residual(y);
                k.spmv_dot(&self.a, other, y, Pass::new("second").set(y, set).then(then));
            }
        }
    }
}

/// The first smoothing step from zero, as a pass fused with the operation that computes the right-hand side.
fn first<T: Scalar>(task: &Task<T>, b: Vector<T>) -> Pass<T> {
    match task {
        Task::Correct { smoothing, w, work: [x, _], .. } | Task::SmoothCoarsest { smoothing, w, x, .. } => {
            match (smoothing, w) {
                (Smoothing::Chebyshev, Weights::All(_)) => Pass::nothing(),
                _ => Pass::new("smooth").set(*x, w.times(b)),
            }
        }
        Task::Solve(_) => Pass::nothing(),
    }
}

/// Records `z ← M b` by a V-cycle over the levels in `tasks`, with `sweeps` smoothing steps before and after,
/// then `then`.
pub(super) fn cycle<T: Scalar>(
    k: &mut Recorder<'_, T>,
    tasks: &[Task<T>],
    [b, z]: [Vector<T>; 2],
    sweeps: usize,
    then: Pass<T>,
) {
    if let Some(task) = tasks.first() {
        k.multi_axpy_dot(first(task, b));
        level(k, tasks, [b, z], sweeps, then);
    }
}

/// [`cycle`] after [`first`] has run.
fn level<T: Scalar>(
    k: &mut Recorder<'_, T>,
    tasks: &[Task<T>],
    [b, z]: [Vector<T>; 2],
    sweeps: usize,
    then: Pass<T>,
) {
    let Some((task, rest)) = tasks.split_first() else { return };
    match task {
        Task::Solve(inverse) => k.spmv_dot(inverse, b, z, then),
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
                step.second_from_zero(k, x, t, Pass::nothing());
                (x, t) = (t, x);
            }
            for _ in 1..sweeps {
                step.full(k, x, z, t, Pass::nothing());
                (x, t) = (t, x);
            }
            k.spmv_dot(a, x, t, Pass::new("residual").set(t, b - t));
            k.spmv_dot(r, t, *coarse_b, rest.first().map_or(Pass::nothing(), |next| first(next, *coarse_b)));
            level(k, rest, [*coarse_b, *coarse_z], sweeps, Pass::nothing());
            k.spmv_dot(p, *coarse_z, t, Pass::new("correct").set(t, x + t));
            (x, t) = (t, x);
            for _ in 1..sweeps {
                step.full(k, x, z, t, Pass::nothing());
                (x, t) = (t, x);
            }
            step.full(k, x, t, z, then);
        }
    }
}
