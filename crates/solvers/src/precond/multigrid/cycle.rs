//! The cycle as recorded operations. On each level: one product with `A` before and one after the correction
//! for each smoothing step, one with `R` and one with `P`. All vector work is fused with these products.
use super::smoother::{Smoothing, second_step};
use lacuna_engine::{Matrix, Pass, Recorder, Scalar, Vector};

/// The work on one level, with the handles it uses.
pub(super) enum Task<T: Scalar> {
    /// Smoothing, and a correction from the next level by restriction and prolongation.
    Correct {
        /// The smoother.
        smoothing: Smoothing,
        /// `A`, `R` and `P`.
        matrices: [Matrix<T>; 3],
        /// The diagonal matrix of the smoother.
        w: Vector<T>,
        /// `x` and `t`, and `d` of Chebyshev's iteration.
        work: [Vector<T>; 3],
        /// Right-hand side and solution of the next level.
        next: [Vector<T>; 2],
    },
    /// Two steps of smoothing.
    Smooth {
        /// The smoother.
        smoothing: Smoothing,
        /// `A`
        a: Matrix<T>,
        /// The diagonal matrix of the smoother.
        w: Vector<T>,
        /// A work vector.
        x: Vector<T>,
    },
    /// The product with the inverse.
    Solve(Matrix<T>),
}

/// A smoothing step other than the first one from zero.
struct Step<T: Scalar> {
    smoothing: Smoothing,
    a: Matrix<T>,
    w: Vector<T>,
    b: Vector<T>,
    d: Vector<T>,
}

impl<T: Scalar> Step<T> {
    /// The second half of Chebyshev's iteration from zero, written to `y`; `x` holds the result of the first
    /// half.
    fn second_from_zero(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let (c, w, b) = (second_step(), self.w, self.b);
        let set = (1.0 + c) * x + (1.0 + c) * (w * b) - (1.0 + c) * (w * y);
        k.spmv_dot(&self.a, x, y, Pass::new("smooth").set(y, set).then(then));
    }

    /// A step from `x` to `y`. May overwrite `x`; `other` is `x` or another work vector.
    fn full(&self, k: &mut Recorder<'_, T>, x: Vector<T>, other: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let (c, w, b, d) = (second_step(), self.w, self.b, self.d);
        match self.smoothing {
            Smoothing::Spai0 => {
                k.spmv_dot(&self.a, x, y, Pass::new("smooth").set(y, x + w * b - w * y).then(then));
            }
            Smoothing::Chebyshev => {
                let first = Pass::new("first").set(d, w * b - w * other).set(other, x + d);
                k.spmv_dot(&self.a, x, other, first);
                let set = other + c * d + (1.0 + c) * (w * b) - (1.0 + c) * (w * y);
                k.spmv_dot(&self.a, other, y, Pass::new("second").set(y, set).then(then));
            }
        }
    }
}

/// The first smoothing step from zero, as a pass fused with the operation that computes the right-hand side.
fn first<T: Scalar>(task: &Task<T>, b: Vector<T>) -> Pass<T> {
    match task {
        Task::Correct { w, work: [x, ..], .. } | Task::Smooth { w, x, .. } => {
            Pass::new("smooth").set(*x, *w * b)
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
        Task::Smooth { smoothing, a, w, x } => {
            let step = Step { smoothing: *smoothing, a: *a, w: *w, b, d: *x };
            match smoothing {
                Smoothing::Spai0 => step.full(k, *x, *x, z, then),
                Smoothing::Chebyshev => step.second_from_zero(k, *x, z, then),
            }
        }
        Task::Correct { smoothing, matrices: [a, r, p], w, work: [x, t, d], next: [coarse_b, coarse_z] } => {
            let step = Step { smoothing: *smoothing, a: *a, w: *w, b, d: *d };
            let (mut x, mut t) = (*x, *t);
            if *smoothing == Smoothing::Chebyshev {
                step.second_from_zero(k, x, t, Pass::nothing());
                (x, t) = (t, x);
            }
            for _ in 1..sweeps {
                (x, t) = extra(k, &step, x, t);
            }
            k.spmv_dot(a, x, t, Pass::new("residual").set(t, b - t));
            k.spmv_dot(r, t, *coarse_b, rest.first().map_or(Pass::nothing(), |next| first(next, *coarse_b)));
            level(k, rest, [*coarse_b, *coarse_z], sweeps, Pass::nothing());
            k.spmv_dot(p, *coarse_z, t, Pass::new("correct").set(t, x + t));
            (x, t) = (t, x);
            for _ in 1..sweeps {
                (x, t) = extra(k, &step, x, t);
            }
            step.full(k, x, t, z, then);
        }
    }
}

/// A smoothing step on `x`, with `t` as the other vector. Returns the result and the free vector.
fn extra<T: Scalar>(
    k: &mut Recorder<'_, T>,
    step: &Step<T>,
    x: Vector<T>,
    t: Vector<T>,
) -> (Vector<T>, Vector<T>) {
    match step.smoothing {
        Smoothing::Spai0 => {
            step.full(k, x, x, t, Pass::nothing());
            (t, x)
        }
        Smoothing::Chebyshev => {
            step.full(k, x, t, x, Pass::nothing());
            (x, t)
        }
    }
}
