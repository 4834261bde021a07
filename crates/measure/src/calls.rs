//! What fusion gains: a product with a dot product, and whole methods, once fused and once with one operation for each call of BLAS.
use crate::system::Typed;
use crate::{Measured, PreparedCase, Samples, Task, budget, digest, four_digits};
use lacuna::backend::{History, Plan, Run};
use lacuna::solvers::MethodInfo;
use lacuna::{Cell, Device, Matrix, Method, Owned, Pass, Reason, Recorder, Result, Scalar, System};
use std::time::Instant;

/// `q ← A p` with `⟨p, q⟩` in one sweep, and as two operations.
pub const FUSED: &str = "spmv-dot";
pub const IN_TWO: &str = "spmv, dot";
/// Methods with one operation for each call of BLAS, six and eleven an iteration.
pub const CG_BY_CALLS: &str = "cg-by-calls";
pub const BICGSTAB_BY_CALLS: &str = "bicgstab-by-calls";

/// A product with a dot product, timed as products are.
pub(crate) struct ProductAndDot<T: Scalar> {
    plan: Plan,
    _matrix: Owned<Matrix<T>>,
    dot: Cell<T>,
    iterations: u64,
    first: u64,
    reproducible: bool,
    first_setup: f64,
    once: Samples,
}

/// Products in a run before their duration is known.
const FIRST: u64 = 3;

impl<T: Scalar> ProductAndDot<T> {
    pub(crate) fn new(dev: &Device, system: &Typed<T>, task: &Task) -> Result<Self> {
        let stored = system.in_format(&task.format)?;
        let start = Instant::now();
        let matrix = dev.matrix(stored)?;
        let a = *matrix;
        let mut k = Recorder::new(dev, "product and dot");
        if task.method == IN_TWO {
            k.without_fusion();
        }
        let [p, q] = k.vectors(a.rows);
        let [dot] = k.cells();
        k.each(|k| match task.method.as_str() {
            IN_TWO => {
                k.spmv_dot(&a, p, q, Pass::nothing());
                k.multi_axpy_dot(Pass::new("dot").dot(dot, p, q).count(dot));
            }
            _ => k.spmv_dot(&a, p, q, Pass::new("dot").dot(dot, p, q).count(dot)),
        });
        let program = k.finish()?;
        dev.upload(&vec![T::one(); a.cols], p)?;
        let plan = dev.plan(program)?;
        let (reproducible, once) = (true, Samples::default());
        let mut made = ProductAndDot {
            plan,
            _matrix: matrix,
            dot,
            iterations: FIRST,
            first: 0,
            reproducible,
            first_setup: 0.0,
            once,
        };
        made.first_setup = start.elapsed().as_secs_f64();
        made.time()?;
        let once = made.time()?;
        made.iterations = (budget().as_secs_f64() / once).ceil().clamp(FIRST as f64, 1e6) as u64;
        made.first = digest(&dev.read(&[dot])?);
        Ok(made)
    }

    /// Seconds for both.
    fn time(&mut self) -> Result<f64> {
        let start = Instant::now();
        let run = Run { limit: self.iterations, history: &mut History::off(), watch: None };
        self.plan.execute(run)?;
        Ok(start.elapsed().as_secs_f64() / self.iterations as f64)
    }
}

impl<T: Scalar> PreparedCase for ProductAndDot<T> {
    fn round(&mut self) -> Result<()> {
        let time = self.time()?;
        self.once.push(time);
        self.reproducible &= digest(&self.plan.device().read(&[self.dot])?) == self.first;
        Ok(())
    }

    fn measured(&self) -> Option<Measured> {
        let bytes = self.plan.program().bytes_of(1);
        let setup = four_digits(self.first_setup);
        let measured = Measured::of_one(bytes, self.once.timing()?, setup, Some(self.first));
        Some(Measured { reproducible: self.reproducible, ..measured })
    }
}

/// The method by calls of a name, if there is one.
pub(crate) fn named<T: Scalar>(name: &str) -> Option<Box<dyn Method<T>>> {
    match name {
        CG_BY_CALLS => Some(Box::new(cg::<T>)),
        BICGSTAB_BY_CALLS => Some(Box::new(bicgstab::<T>)),
        _ => None,
    }
}

/// Conjugate gradients: a product, two dot products, and three updates.
fn cg<T: Scalar>(k: &mut Recorder<'_, T>, s: &System<'_, T>) {
    k.without_fusion();
    let (a, b, x) = (s.a, s.b, s.x);
    let [r, p, q] = k.vectors(s.n());
    let [rr, old, pq, alpha, beta] = k.cells();
    let residual = Pass::new("residual").set(r, b - q).dot(rr, r, r);
    let pq_is = Pass::new("dot").dot(pq, p, q).stop_if(pq.not_positive(), Reason::IndefiniteOperator);
    let pq_is = pq_is.eval(alpha, rr / pq).eval(old, rr);
    k.restart(|k| {
        k.spmv_dot(a, x, q, s.confirm(residual, rr));
        k.multi_axpy_dot(Pass::new("copy").set(p, r));
    });
    k.each(|k| {
        k.spmv_dot(a, p, q, Pass::nothing());
        k.multi_axpy_dot(pq_is);
        k.multi_axpy_dot(Pass::new("axpy").set(x, x + alpha * p));
        k.multi_axpy_dot(Pass::new("axpy").set(r, r - alpha * q));
        k.multi_axpy_dot(s.count(Pass::new("dot").dot(rr, r, r), rr).eval(beta, rr / old));
        k.multi_axpy_dot(Pass::new("xpay").set(p, r + beta * p));
    });
}

/// BiCGStab: two products, four dot products, and the updates one by one.
fn bicgstab<T: Scalar>(k: &mut Recorder<'_, T>, sys: &System<'_, T>) {
    k.without_fusion();
    let (a, b, x) = (sys.a, sys.b, sys.x);
    let [r, r0, p, v, s, t] = k.vectors(sys.n());
    let [rho, old, rr, r0v, ts, tt, alpha, omega, beta] = k.cells();
    let residual = Pass::new("residual").set(r, b - v).dot(rr, r, r);
    let along = Pass::new("dot").dot(r0v, r0, v).stop_if(r0v.is_zero(), Reason::Breakdown("<r0, A p>"));
    let along = along.eval(alpha, rho / r0v).eval(old, rho);
    k.restart(|k| {
        k.spmv_dot(a, x, v, sys.confirm(residual, rr));
        k.multi_axpy_dot(Pass::new("copy").set(r0, r).eval(rho, rr));
        k.multi_axpy_dot(Pass::new("copy").set(p, r));
    });
    k.each(|k| {
        k.spmv_dot(a, p, v, Pass::nothing());
        k.multi_axpy_dot(along);
        k.multi_axpy_dot(Pass::new("axpy").set(s, r - alpha * v));
        k.spmv_dot(a, s, t, Pass::nothing());
        k.multi_axpy_dot(Pass::new("dot").dot(ts, t, s));
        k.multi_axpy_dot(Pass::new("dot").dot(tt, t, t).eval(omega, ts / tt.max(tt.tiny())));
        k.multi_axpy_dot(Pass::new("axpy").set(x, x + alpha * p));
        k.multi_axpy_dot(Pass::new("axpy").set(x, x + omega * s));
        k.multi_axpy_dot(Pass::new("axpy").set(r, s - omega * t));
        k.multi_axpy_dot(sys.count(Pass::new("dot").dot(rr, r, r), rr));
        k.multi_axpy_dot(Pass::new("dot").dot(rho, r0, r).eval(beta, rho / old * (alpha / omega)));
        k.multi_axpy_dot(Pass::new("axpy").set(p, p - omega * v));
        k.multi_axpy_dot(Pass::new("xpay").set(p, r + beta * p));
    });
}

/// A method with the sweeps of its passes apart from each other and from its products.
pub(crate) struct Unfused<T: Scalar>(pub(crate) Box<dyn Method<T>>);

impl<T: Scalar> Method<T> for Unfused<T> {
    fn info(&self) -> &'static MethodInfo {
        self.0.info()
    }
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn record(&self, k: &mut Recorder<'_, T>, s: &System<'_, T>) {
        k.without_fusion();
        self.0.record(k, s);
    }
    fn shrink(&self) -> f64 {
        self.0.shrink()
    }
    fn keeps_best(&self) -> bool {
        self.0.keeps_best()
    }
    fn estimates_variances(&self) -> bool {
        self.0.estimates_variances()
    }
    fn reads_norm(&self) -> bool {
        self.0.reads_norm()
    }
    fn needs_adjoint(&self) -> bool {
        self.0.needs_adjoint()
    }
    fn least_squares(&self) -> bool {
        self.0.least_squares()
    }
    fn fallback(&self) -> Option<&'static str> {
        self.0.fallback()
    }
}
