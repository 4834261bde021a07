//! What fusion gains: a product with a dot product, and whole methods, once fused and once with one operation for each call of BLAS.
use crate::Task;
use crate::repeated::Repeated;
use crate::system::Typed;
use lacuna::solvers::MethodInfo;
use lacuna::{Device, Matrix, Method, Owned, Pass, Reason, Recorder, Result, Scalar, System};
use std::time::Instant;

/// `q ← A p` with `⟨p, q⟩` in one sweep, and as two operations.
pub const FUSED: &str = "spmv-dot";
pub const IN_TWO: &str = "spmv, dot";
/// Methods with one operation for each call of BLAS, six and eleven an iteration.
pub const CG_BY_CALLS: &str = "cg-by-calls";
pub const BICGSTAB_BY_CALLS: &str = "bicgstab-by-calls";

/// A product with a dot product, timed as products are.
pub(crate) fn product_and_dot<T: Scalar>(
    dev: &Device,
    system: &Typed<T>,
    task: &Task,
) -> Result<Repeated<T, Owned<Matrix<T>>>> {
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
    Repeated::new(dev.plan(program)?, vec![dot], matrix, start)
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
