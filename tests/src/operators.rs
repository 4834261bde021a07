//! Operators: anything that records products and passes.
use crate::bits::{Trace, cells_of, download, same, upload};
use crate::numbers::{Rng, random_matrix};
use crate::on_both;
use crate::solves::tolerance;
use lacuna_engine::{
    Adjoint, Device, Diagonal, Error, HostOperator, Identity, LinOp, Matrix, Pass, Product, Recorder, Scalar,
    Scaled, Scope, Shifted, Sum, Transposed, Vector, WithAdjoint, WithTranspose,
};
use lacuna_solvers::{METHODS, Options, Solver, Stop, method};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn apply<T: Scalar>(dev: &Scope, trace: &mut Trace<T>, name: &str, operator: &dyn LinOp<T>, x: Vector<T>) {
    let y = upload(dev, &vec![T::from_real(f64::NAN); operator.shape().0]);
    let s = upload(dev, &vec![T::one(); operator.shape().0]);
    let c = cells_of(dev, &[T::one(); 2]);
    dev.spmv_dot(operator, x, y, Pass::nothing()).unwrap();
    trace.vector(dev, format!("{name}: y"), y);
    let then = Pass::new("then").set(s, s - y).set(y, y + s).dot(c[0], y, s).eval(c[1], c[0] * 2.0);
    dev.spmv_dot(operator, x, y, then).unwrap();
    trace.vector(dev, format!("{name}: y after a pass"), y);
    trace.vector(dev, format!("{name}: s"), s);
    trace.cells(dev, format!("{name}: cells"), &c);
    trace.vector(dev, format!("{name}: x"), x);
}

/// The identity, a diagonal, a matrix, scaled and shifted.
pub fn simple<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "simple operators", |dev| {
        let mut trace = Trace::new();
        let (mut rng, n) = (Rng::new(31), 521);
        let a = dev.matrix(Arc::new(random_matrix::<T>(&mut rng, n, n, 5))).unwrap();
        let (x, d) = (upload(dev, &rng.vector::<T>(n)), upload(dev, &rng.vector::<T>(n)));
        let c = cells_of(dev, &rng.vector::<T>(2));
        apply(dev, &mut trace, "identity", &Identity(n), x);
        apply(dev, &mut trace, "diagonal", &Diagonal(d), x);
        apply(dev, &mut trace, "matrix", &a, x);
        apply(dev, &mut trace, "scaled", &Scaled(c[0], &a), x);
        apply(dev, &mut trace, "shifted", &Shifted(&a, c[1]), x);
        apply(dev, &mut trace, "scaled shifted", &Scaled(c[0], &Shifted(&a, c[1])), x);
        trace
    });
}

/// Sums and products, nested, also of rectangular matrices.
pub fn composed<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "composed operators", |dev| {
        let mut trace = Trace::new();
        let (mut rng, n, m) = (Rng::new(32), 300, 77);
        let square = dev.matrix(Arc::new(random_matrix::<T>(&mut rng, n, n, 4))).unwrap();
        let tall = dev.matrix(Arc::new(random_matrix::<T>(&mut rng, n, m, 3))).unwrap();
        let wide = dev.matrix(Arc::new(random_matrix::<T>(&mut rng, m, n, 8))).unwrap();
        let (x, d) = (upload(dev, &rng.vector::<T>(n)), upload(dev, &rng.vector::<T>(n)));
        let c = cells_of(dev, &rng.vector::<T>(1));
        let (diagonal, product) = (Diagonal(d), Product(&tall, &wide));
        apply(dev, &mut trace, "sum", &Sum(&square, &diagonal), x);
        apply(dev, &mut trace, "product", &product, x);
        apply(dev, &mut trace, "sum of product", &Sum(&product, &square), x);
        apply(dev, &mut trace, "square of sum", &Product(&Sum(&square, &Identity(n)), &square), x);
        apply(dev, &mut trace, "scaled by a diagonal", &Product(&diagonal, &Shifted(&square, c[0])), x);
        trace
    });
}

/// A pass with formulas before its updates does the same after any operator as recorded by itself.
pub fn formulas_first<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "formulas first", |dev| {
        let mut trace = Trace::new();
        let (mut rng, n) = (Rng::new(38), 300);
        let a = dev.matrix(Arc::new(random_matrix::<T>(&mut rng, n, n, 4))).unwrap();
        let (x, d, s) =
            (upload(dev, &rng.vector::<T>(n)), upload(dev, &rng.vector::<T>(n)), rng.vector::<T>(n));
        let c = cells_of(dev, &rng.vector::<T>(3));
        let (both, diagonal) = (WithTranspose(&a, &a), Diagonal(d));
        let scaled = Scaled(c[0], &both);
        let operators: [(&str, &dyn LinOp<T>); 6] = [
            ("identity", &Identity(n)),
            ("diagonal", &diagonal),
            ("scaled", &scaled),
            ("transposed", &Transposed(&scaled)),
            ("shifted", &Shifted(&a, c[0])),
            ("sum", &Sum(&a, &diagonal)),
        ];
        for (name, operator) in operators {
            let found = [true, false].map(|together| {
                let [y, s] = [upload(dev, &s), upload(dev, &s)];
                let then = Pass::new("then").eval(c[1], c[0] * 2.0).set(s, s + c[1] * y).dot(c[2], s, y);
                if together {
                    dev.spmv_dot(operator, x, y, then).unwrap();
                } else {
                    dev.spmv_dot(operator, x, y, Pass::nothing()).unwrap();
                    dev.multi_axpy_dot(then).unwrap();
                }
                trace.vector(dev, format!("{name}: s"), s);
                trace.cells(dev, format!("{name}: cells"), &c);
                (download(dev, s), dev.read(&c).unwrap())
            });
            assert!(found[0] == found[1], "{name}");
        }
        trace
    });
}

/// Transposes of operators that have one; the others return an error.
pub fn transposed<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "transposed operators", |dev| {
        let mut trace = Trace::new();
        let (mut rng, n, m) = (Rng::new(33), 200, 310);
        let host = random_matrix::<T>(&mut rng, n, m, 4);
        let a = dev.matrix(Arc::new(host.clone())).unwrap();
        let at = dev.matrix(Arc::new(host.transpose())).unwrap();
        let (x, d) = (upload(dev, &rng.vector::<T>(n)), upload(dev, &rng.vector::<T>(m)));
        let c = cells_of(dev, &rng.vector::<T>(1));
        let pair = WithTranspose(&a, &at);
        let diagonal = Diagonal(d);
        let product = Product(&pair, &diagonal);
        apply(dev, &mut trace, "pair", &pair, d);
        apply(dev, &mut trace, "transposed pair", &Transposed(&pair), x);
        apply(dev, &mut trace, "twice transposed", &Transposed(&Transposed(&pair)), d);
        apply(dev, &mut trace, "transposed product", &Transposed(&product), x);
        let sum = Sum(&product, &pair);
        apply(dev, &mut trace, "transposed scaled sum", &Transposed(&Scaled(c[0], &sum)), x);
        let y = upload(dev, &vec![T::zero(); m]);
        let error = dev.spmv_dot(&Transposed(&a), x, y, Pass::nothing()).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("WithTranspose"), "{error}");
        trace
    });
}

/// Adjoints of operators that have one; the others return an error.
pub fn adjoints<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "adjoint operators", |dev| {
        let mut trace = Trace::new();
        let (mut rng, n, m) = (Rng::new(35), 210, 330);
        let host = random_matrix::<T>(&mut rng, n, m, 4);
        let a = dev.matrix(Arc::new(host.clone())).unwrap();
        let ah = dev.matrix(Arc::new(host.adjoint())).unwrap();
        let square = dev.matrix(Arc::new(random_matrix::<T>(&mut rng, n, n, 4))).unwrap();
        let (x, d) = (upload(dev, &rng.vector::<T>(n)), upload(dev, &rng.vector::<T>(m)));
        let c = cells_of(dev, &rng.vector::<T>(1));
        let pair = WithAdjoint(&a, &ah);
        apply(dev, &mut trace, "pair", &pair, d);
        apply(dev, &mut trace, "adjoint", &Adjoint(&pair), x);
        apply(dev, &mut trace, "twice", &Adjoint(&Adjoint(&pair)), d);
        let gram = Product(&pair, &Adjoint(&pair));
        apply(dev, &mut trace, "adjoint of a product", &Adjoint(&gram), x);
        let shifted = Shifted(&gram, c[0]);
        let scaled = Scaled(c[0], &shifted);
        let identity = Identity(n);
        apply(dev, &mut trace, "adjoint of a sum", &Adjoint(&Sum(&scaled, &identity)), x);
        let y = upload(dev, &vec![T::zero(); n]);
        let error = dev.spmv_dot(&Adjoint(&square), x, y, Pass::nothing()).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        let hint = if T::KIND.is_complex() { "WithAdjoint" } else { "WithTranspose" };
        assert!(error.to_string().contains(hint), "{error}");
        trace
    });
}

/// `y ← (I − c A)² x`, with a scratch vector created in advance: a polynomial as a user would write it.
struct Polynomial<T> {
    a: Matrix<T>,
    c: lacuna_engine::Cell<T>,
    scratch: Vector<T>,
}

impl<T: Scalar> LinOp<T> for Polynomial<T> {
    fn shape(&self) -> (usize, usize) {
        (self.a.rows, self.a.cols)
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let (c, s) = (self.c, self.scratch);
        k.spmv_dot(&self.a, x, s, Pass::new("first").set(s, x - c * s));
        k.spmv_dot(&self.a, s, y, Pass::new("second").set(y, s - c * y).then(then));
    }
}

/// A user-defined operator, alone and inside others.
pub fn own<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "own operator", |dev| {
        let mut trace = Trace::new();
        let (mut rng, n) = (Rng::new(34), 450);
        let a = dev.matrix(Arc::new(random_matrix::<T>(&mut rng, n, n, 5))).unwrap();
        let c = cells_of(dev, &rng.vector::<T>(1))[0];
        let (x, scratch) = (upload(dev, &rng.vector::<T>(n)), upload(dev, &vec![T::zero(); n]));
        let polynomial = Polynomial { a, c, scratch };
        apply(dev, &mut trace, "polynomial", &polynomial, x);
        apply(dev, &mut trace, "polynomial plus matrix", &Sum(&polynomial, &a), x);
        apply(dev, &mut trace, "polynomial of matrix", &Product(&polynomial, &a), x);
        trace
    });
}

/// Host functions: alone, with a pass, rectangular, and as matrix and preconditioner of every method.
pub fn host<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "host operators", |dev| {
        let mut trace = Trace::new();
        let (mut rng, n, m) = (Rng::new(37), 521, 77);
        let x = upload(dev, &rng.vector::<T>(n));
        let halves = HostOperator::rectangular(m, n, move |x: &[T], y: &mut [T]| {
            (0..m).for_each(|i| y[i] = x[i] * T::from_real(0.5));
        });
        apply(dev, &mut trace, "rectangular", &halves, x);
        let square = HostOperator::new(n, differences::<T>);
        apply(dev, &mut trace, "square", &square, x);
        let both = HostOperator::new(n, differences::<T>).with_adjoint(differences::<T>);
        apply(dev, &mut trace, "adjoint", &Adjoint(&both), x);
        let a = dev.matrix(Arc::new(random_matrix::<T>(&mut rng, n, n, 5))).unwrap();
        apply(dev, &mut trace, "sum with a matrix", &Sum(&a, &square), x);
        trace
    });
    for info in METHODS.iter().filter(|info| !info.adjoint) {
        on_both!(make, format!("{} on functions", info.name), |dev| {
            let mut trace = Trace::new();
            let n = 700;
            let a = HostOperator::new(n, differences::<T>);
            let third = T::one().quotient(T::from_real(3.0));
            let m = HostOperator::new(n, move |x: &[T], y: &mut [T]| {
                x.iter().zip(y).for_each(|(x, y)| *y = *x * third);
            });
            let method = method(info.name, &Options::default().restart(9)).unwrap();
            let stop = Stop::default().rtol(tolerance::<T>()).max_iters(300);
            let mut solver = Solver::new(dev, &a, Some(&m), &*method, stop).unwrap();
            let (b, mut x) = (Rng::new(5).vector::<T>(n), vec![T::zero(); n]);
            let outcome = solver.solve(&b, &mut x).unwrap();
            assert!(outcome.converged(), "{outcome:?}");
            trace.outcome("outcome", outcome);
            trace.numbers("x", &x);
            trace
        });
    }
}

/// A panic in a host function is returned as an error, and the backend remains usable.
pub fn host_panics<T: Scalar>(make: fn() -> Device) {
    let dev = &make().scope();
    let n = 20_000;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let a = HostOperator::new(n, move |x: &[T], y: &mut [T]| {
        assert!(counted.fetch_add(1, Ordering::Relaxed) != 3, "the fourth call");
        differences(x, y);
    });
    let method = method("cg", &Options::default()).unwrap();
    let mut solver = Solver::new(dev, &a, None, &*method, Stop::default().max_iters(50)).unwrap();
    let b = vec![T::one(); n];
    let failed = solver.solve(&b, &mut vec![T::zero(); n]);
    let Err(Error::Function { message, source: None }) = failed else { panic!("{failed:?}") };
    assert!(message.contains("the fourth call"), "{message}");
    assert_eq!(calls.load(Ordering::Relaxed), 4, "no function is called after one that failed");
    let (mut again, mut fresh) = (vec![T::zero(); n], vec![T::zero(); n]);
    solver.solve(&b, &mut again).unwrap();
    solver.solve(&b, &mut fresh).unwrap();
    same("solves after a panic", &again, &fresh);
}

/// `y[i] ← 3 x[i] − x[i − 1] − x[i + 1]`
fn differences<T: Scalar>(x: &[T], y: &mut [T]) {
    for i in 0..x.len() {
        let left = if i > 0 { x[i - 1] } else { T::zero() };
        let right = x.get(i + 1).copied().unwrap_or(T::zero());
        y[i] = x[i] * T::from_real(3.0) - left - right;
    }
}
