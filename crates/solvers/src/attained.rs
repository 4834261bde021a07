//! When an iteration has attained the accuracy that its number type allows.
use crate::System;
use lacuna_engine::{Cell, Formula, Pass, Reason, Recorder, Untyped, Vector};

/// A residual of at most this many units of rounding of `‖A‖ ‖x‖ + ‖b‖` may consist of rounding errors.
const UNITS: f64 = 4.0;
/// Iterations in which the squared residual norm must halve, and a further one for so many iterations done.
const IDLE: f64 = 6.0;
const PART: f64 = 1.0 / 16.0;

/// Ends a method once its residual is at the level of rounding errors and has stopped falling, for methods whose residual stays
/// there instead of falling below the tolerance.
///
/// Needs [`Solver::set_norm`](crate::Solver::set_norm); without it only a residual at the rounding of `b` counts.
#[derive(Clone, Copy)]
pub(crate) struct Attained<T = Untyped> {
    xx: Cell<T>,
    /// The squared residual norm that was half of the one before.
    mark: Cell<T>,
    /// Iterations since.
    idle: Cell<T>,
    done: Cell<T>,
    /// 1 if the residual has halved again, 0 otherwise.
    halved: Cell<T>,
    left: Cell<T>,
}

impl<T: Copy> Attained<T> {
    pub(crate) fn new(k: &mut Recorder<'_, T>) -> Self {
        let [xx, mark, idle, done, halved, left] = k.cells();
        Attained { xx, mark, idle, done, halved, left }
    }

    /// After `pass`, which confirms `rr`: begins anew.
    pub(crate) fn begin(self, pass: Pass<T>, rr: Cell<T>) -> Pass<T> {
        pass.eval(self.mark, rr).eval(self.idle, 0.0).eval(self.done, 0.0)
    }

    /// With `pass`, which sets `x`, finds the size of `x`.
    pub(crate) fn measure(self, pass: Pass<T>, x: Vector<T>) -> Pass<T> {
        pass.dot(self.xx, x, x)
    }

    /// After `pass`, which counts an iteration of squared residual norm `rr`: stops if accuracy is attained.
    pub(crate) fn test(self, s: &System<'_, T>, pass: Pass<T>, rr: Cell<T>) -> Pass<T> {
        let Attained { xx, mark, idle, done, halved, left } = self;
        let one = || Formula::real(1.0);
        // The ratio is bounded, so that no product overflows: 1 from twice the mark on, 0 below.
        let steep = 1e6 * (least(0.5 * Formula::from(mark) / rr, 2.0 * one()) - 1.0);
        let units = (UNITS * rr.epsilon()).powi(2);
        let excess = rr - units * (s.norm2 * xx + s.bb);
        pass.eval(halved, least(steep.max(0.0), one()))
            .eval(mark, halved * rr + (1.0 - Formula::from(halved)) * mark)
            .eval(idle, (1.0 - Formula::from(halved)) * (idle + 1.0))
            .eval(done, done + 1.0)
            .eval(left, (IDLE + PART * done - idle).max(excess))
            .stop_if(left.not_positive(), Reason::AccuracyAttained)
    }
}

/// The formula with the smaller real part.
fn least<T>(one: Formula<T>, other: Formula<T>) -> Formula<T> {
    -(-one).max(-other)
}
