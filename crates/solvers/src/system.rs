//! The system that a method solves, and the operations that all methods share.
use crate::observer::Observing;
use lacuna_engine::{
    Adjoint, AnyOp, Cell, Confirm, Expr, Formula, LinOp, Pass, Reason, Recorder, Scalar, Untyped, Vector,
};

/// No recurrence needs to fall below a tenth of the unit roundoff; this is the square of that fraction.
const FLOOR: f64 = 0.01;

/// In the maximum norm, the first time that a method which knows the 2-norm alone computes the residual: at this part of the squared
/// tolerance in the mean square. Most residuals have no element of four times that.
const FIRST: f64 = 1.0 / 16.0;
/// Later it does so at this part of the squared 2-norm at which a residual of the form found last would meet the test.
const LATER: f64 = 0.25;

/// What a test of the maximum norm needs, in cells; all are squares.
pub(crate) struct MaxNorm<T = Untyped> {
    /// `‖b‖_∞²`
    pub(crate) of_b: Cell<T>,
    /// `‖r‖_∞²`, of the residual summed last.
    pub(crate) of_r: Cell<T>,
    /// The tolerance, `max(rtol² ‖b‖_∞², atol²)`.
    pub(crate) limit: Cell<T>,
    /// What the recurrence must reach: the tolerance, or the rounding level of `‖b‖_∞²`.
    pub(crate) goal: Cell<T>,
    /// 1 before the first confirmation, then 0.
    pub(crate) first: Cell<T>,
}

impl<T> Clone for MaxNorm<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for MaxNorm<T> {}

impl<T> MaxNorm<T> {
    fn untyped(self) -> MaxNorm {
        MaxNorm {
            of_b: self.of_b.untyped(),
            of_r: self.of_r.untyped(),
            limit: self.limit.untyped(),
            goal: self.goal.untyped(),
            first: self.first.untyped(),
        }
    }
}

/// `A x = b` with an optional preconditioner `M ≈ A⁻¹`, on a device.
pub struct System<'a, T = Untyped> {
    /// The operator: square, except for least-squares methods.
    pub a: &'a dyn LinOp<T>,
    /// The preconditioner; for least squares, one from the right, with as many rows as `A` has columns.
    pub m: Option<&'a dyn LinOp<T>>,
    /// The right-hand side.
    pub b: Vector<T>,
    /// The starting guess, later the solution.
    pub x: Vector<T>,
    /// `‖b‖²`, or `‖Aᴴ b‖²` for least squares.
    pub bb: Cell<T>,
    /// The squared tolerance, `max(rtol² ‖b‖², atol²)`. If the maximum norm is tested, the squared 2-norm at which a residual of
    /// the form found last would meet it.
    pub target: Cell<T>,
    /// The squared norm that the recurrence must reach before the true residual is computed: the target, or
    /// the rounding level of `‖b‖²` if that is larger. A recurrence keeps falling below that level and means
    /// nothing there.
    pub goal: Cell<T>,
    /// A bound on `‖A‖²`; 0 if none is known, and unless [`Method::reads_norm`](crate::Method::reads_norm).
    pub norm2: Cell<T>,
    /// Squared relative tolerance.
    pub rtol2: Cell<T>,
    /// Squared absolute tolerance.
    pub atol2: Cell<T>,
    /// The factor on `max(‖b‖², ‖r₀‖²)` beyond which a squared residual norm counts as diverged.
    pub dtol2: Cell<T>,
    /// The squared residual norm that counts as diverged.
    pub diverged: Cell<T>,
    /// `‖b − A x‖²` at the last confirmation.
    pub last: Cell<T>,
    /// The reduction of the squared norm between confirmations that counts as progress, as a factor.
    pub shrink: Cell<T>,
    /// Storage for the best confirmed iterate, if [`Method::keeps_best`](crate::Method::keeps_best).
    pub kept: Option<Vector<T>>,
    /// Its squared residual norm.
    pub best: Cell<T>,
    /// An estimate of `‖A‖²` in the Frobenius norm, which least-squares methods **may** set; NaN unless they do.
    pub norm_a2: Cell<T>,
    /// The same of the square of the condition number.
    pub cond_a2: Cell<T>,
    /// The diagonal of `(Aᴴ A)⁻¹`, if [`Method::estimates_variances`](crate::Method::estimates_variances).
    pub variances: Option<Vector<T>>,
    /// If the maximum norm is tested.
    pub(crate) max: Option<MaxNorm<T>>,
    /// Who sees each iteration.
    pub(crate) observer: Option<&'a dyn Observing>,
}

/// `M r` as the passes of a method use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image<T = Untyped> {
    /// In a vector; without a preconditioner in `r` itself.
    Stored(Vector<T>),
    /// `d ∘ r`: the preconditioner is a diagonal, and a pass multiplies where it reads `r`.
    Scaled(Vector<T>, Vector<T>),
}

impl<T> Image<T> {
    /// `M r` of a diagonal `M` if it is one, in a vector otherwise.
    pub(crate) fn new(m: Option<&dyn LinOp<T>>, r: Vector<T>, stored: impl FnOnce() -> Vector<T>) -> Self {
        match m.and_then(|m| m.diagonal()) {
            Some(d) => Image::Scaled(d, r),
            None => Image::Stored(stored()),
        }
    }
    /// `d ∘ r` if `M` is a diagonal, otherwise `r` itself.
    pub(crate) fn scaled(m: Option<&dyn LinOp<T>>, r: Vector<T>) -> Self {
        Image::new(m, r, || r)
    }
    /// The formula of an element.
    pub fn element(self) -> Expr<T> {
        match self {
            Image::Stored(z) => z.into(),
            Image::Scaled(d, r) => d * r,
        }
    }
}

impl<T> From<Image<T>> for Expr<T> {
    fn from(image: Image<T>) -> Self {
        image.element()
    }
}
impl<T> From<Vector<T>> for Image<T> {
    fn from(z: Vector<T>) -> Self {
        Image::Stored(z)
    }
}

impl<T> System<'_, T> {
    /// The number of unknowns.
    pub fn n(&self) -> usize {
        self.b.len
    }

    /// Records the start of every solve: `‖b‖`, or `‖Aᴴ b‖` for least squares, the target, and the state of
    /// the confirmations.
    pub(crate) fn begin(&self, k: &mut Recorder<'_, T>, least_squares: bool) {
        let infinity = || Formula::real(f64::INFINITY);
        let size = if least_squares {
            let normal = k.vector(self.x.len);
            k.spmv_dot(&Adjoint(self.a), self.b, normal, Pass::nothing());
            normal
        } else {
            self.b
        };
        k.multi_axpy_dot(
            Pass::new("target")
                .dot(self.bb, size, size)
                .eval(self.target, (self.rtol2 * self.bb).max(self.atol2))
                .eval(self.goal, self.target.max(FLOOR * self.bb.epsilon() * self.bb.epsilon() * self.bb))
                .eval(self.diverged, infinity())
                .eval(self.best, infinity())
                .eval(self.last, infinity()),
        );
        if let Some(MaxNorm { of_b, limit, goal, first, .. }) = self.max {
            let floor = |size: Cell<T>| FLOOR * size.epsilon() * size.epsilon() * size;
            let rows = size.len as f64;
            k.multi_axpy_dot(
                Pass::new("target in the maximum norm")
                    .largest(of_b, size)
                    .eval(limit, (self.rtol2 * of_b).max(self.atol2))
                    .eval(goal, limit.max(floor(of_b)))
                    .eval(self.target, limit)
                    .eval(self.goal, (FIRST * rows * limit).max(floor(self.bb)))
                    .eval(first, 1.0),
            );
        }
        if least_squares {
            let unknown = || Formula::real(f64::NAN);
            k.multi_axpy_dot(
                Pass::new("unknown").eval(self.norm_a2, unknown()).eval(self.cond_a2, unknown()),
            );
        }
    }

    /// After `pass`, decides from the true residual whether the solve is over; `rr = ‖b − A x‖²`, summed in that pass.
    pub fn confirm(&self, mut pass: Pass<T>, rr: Cell<T>) -> Pass<T> {
        let (target, last, shrink) = (self.target, self.last, self.shrink);
        let max = self.max.filter(|max| pass.add_largest(rr, max.of_r));
        // `‖r‖² ≤ limit ‖r‖² / ‖r‖_∞²`
        let pass = match max {
            Some(MaxNorm { of_r, limit, .. }) => pass.eval(target, rr / of_r.max(of_r.tiny()) * limit),
            None => pass,
        };
        let pass = pass.confirm(Confirm { rr, target, last, shrink });
        let pass = pass.eval(self.diverged, self.dtol2 * rr.max(self.bb));
        let Some(MaxNorm { limit, first, .. }) = max else { return pass };
        let floor = FLOOR * rr.epsilon() * rr.epsilon() * self.bb;
        let at_first = (FIRST * self.b.len as f64) * first * limit;
        pass.eval(self.goal, at_first.max(LATER * target).max(floor)).eval(first, 0.0)
    }

    /// Keeps `x` if the last confirmation, of squared residual norm `rr`, is better than all before. A solve
    /// that ends with a worse iterate returns the one kept.
    pub fn keep(&self, k: &mut Recorder<'_, T>, rr: Cell<T>) {
        if let Some(kept) = self.kept {
            let better = Pass::new("keep").set(kept, self.x).eval(self.best, rr);
            k.when(self.best.gt(rr), |k| k.multi_axpy_dot(better));
        }
    }

    /// After `pass`, counts an iteration whose squared residual norm by the recurrence is `rr`. Leaves it for
    /// the confirmation if `rr` meets the goal, and stops as diverged if it exceeds its bound.
    pub fn count(&self, mut pass: Pass<T>, rr: Cell<T>) -> Pass<T> {
        let met = match self.max.filter(|max| pass.add_largest(rr, max.of_r)) {
            Some(max) => max.of_r.le(max.goal),
            None => rr.le(self.goal),
        };
        pass.count(rr).leave_if(met).stop_if(rr.gt(self.diverged), Reason::Diverged)
    }

    /// Allocates a vector for `M r`; without a preconditioner returns `r` itself.
    pub fn preconditioned(&self, k: &mut Recorder<'_, T>, r: Vector<T>) -> Vector<T> {
        self.m.map_or(r, |_| k.vector(r.len))
    }

    /// `M r` for passes: see [`Image`].
    pub fn image(&self, k: &mut Recorder<'_, T>, r: Vector<T>) -> Image<T> {
        Image::new(self.m, r, || self.preconditioned(k, r))
    }
    /// Records `z ← M r`, then the pass. Without a preconditioner `z` is `r`, and only the pass is recorded; so it
    /// is for an image that is not stored.
    pub fn precondition(&self, k: &mut Recorder<'_, T>, r: Vector<T>, z: impl Into<Image<T>>, then: Pass<T>) {
        precondition(self.m, k, r, z.into(), then);
    }

    /// Records `z ← Mᴴ r`, then the pass.
    pub fn precondition_adjoint(&self, k: &mut Recorder<'_, T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        match self.m {
            Some(m) => k.spmv_dot(&Adjoint(m), r, z, then),
            None => k.multi_axpy_dot(then),
        }
    }

    /// Records `z ← Mᴴ Aᴴ u`, then the pass; with a preconditioner `t ← Aᴴ u` before.
    pub fn operate_adjoint(
        &self,
        k: &mut Recorder<'_, T>,
        u: Vector<T>,
        t: Vector<T>,
        z: Vector<T>,
        then: Pass<T>,
    ) {
        match self.m {
            Some(m) => {
                k.spmv_dot(&Adjoint(self.a), u, t, Pass::nothing());
                k.spmv_dot(&Adjoint(m), t, z, then);
            }
            None => k.spmv_dot(&Adjoint(self.a), u, z, then),
        }
    }

    /// The vector for the sum `y` of a method that solves `A M y = b`: `x` itself without a preconditioner,
    /// otherwise a new vector set to 0. The restart section **must** begin with [`System::correct`].
    pub fn right_sum(&self, k: &mut Recorder<'_, T>) -> Vector<T> {
        let Some(_) = self.m else { return self.x };
        let y = k.vector(self.x.len);
        k.multi_axpy_dot(Pass::new("clear").set(y, Formula::real(0.0)));
        y
    }

    /// Records `x ← x + M y` and `y ← 0`; `t` is a work vector.
    pub fn correct(&self, k: &mut Recorder<'_, T>, y: Vector<T>, t: Vector<T>) {
        if let Some(m) = self.m {
            k.spmv_dot(m, y, t, Pass::new("correct").set(self.x, self.x + t));
            k.multi_axpy_dot(Pass::new("clear").set(y, Formula::real(0.0)));
        }
    }

    /// Records `z ← A M v`, then the pass; `t` is a work vector, needed with a preconditioner.
    pub fn operate(
        &self,
        k: &mut Recorder<'_, T>,
        v: Vector<T>,
        t: Option<Vector<T>>,
        z: Vector<T>,
        then: Pass<T>,
    ) {
        let between = self.m.zip(t).map_or(v, |(m, t)| {
            k.spmv_dot(m, v, t, Pass::nothing());
            t
        });
        k.spmv_dot(self.a, between, z, then);
    }
}

impl<T: Scalar> System<'_, T> {
    /// Calls a function with the same system, whose number type is a value.
    pub(crate) fn untyped(&self, record: &mut dyn FnMut(&System<'_>)) {
        let (a, m) = (AnyOp(self.a), self.m.map(AnyOp));
        record(&System {
            a: &a,
            m: m.as_ref().map(|m| m as &dyn LinOp),
            b: self.b.untyped(),
            x: self.x.untyped(),
            bb: self.bb.untyped(),
            target: self.target.untyped(),
            goal: self.goal.untyped(),
            norm2: self.norm2.untyped(),
            rtol2: self.rtol2.untyped(),
            atol2: self.atol2.untyped(),
            dtol2: self.dtol2.untyped(),
            diverged: self.diverged.untyped(),
            last: self.last.untyped(),
            shrink: self.shrink.untyped(),
            kept: self.kept.map(Vector::untyped),
            best: self.best.untyped(),
            norm_a2: self.norm_a2.untyped(),
            cond_a2: self.cond_a2.untyped(),
            variances: self.variances.map(Vector::untyped),
            max: self.max.map(MaxNorm::untyped),
            observer: self.observer,
        });
    }
}

/// Records `z ← M r`, then the pass: see [`System::precondition`].
pub(crate) fn precondition<T>(
    m: Option<&dyn LinOp<T>>,
    k: &mut Recorder<'_, T>,
    r: Vector<T>,
    z: Image<T>,
    then: Pass<T>,
) {
    match (m, z) {
        (Some(m), Image::Stored(z)) if z != r => k.spmv_dot(m, r, z, then),
        _ => k.multi_axpy_dot(then),
    }
}
