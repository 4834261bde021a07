//! Operators: whatever records products and passes.
use crate::bits::{Trace, cells_of, upload};
use crate::numbers::{Rng, random_matrix};
use crate::on_both;
use lacuna_core::{
    Adjoint, Backend, Diagonal, Error, Identity, LinOp, Matrix, Pass, Product, Recorder, Scalar, Scaled,
    Shifted, Sum, Transposed, Vector, WithAdjoint, WithTranspose,
};
use std::sync::Arc;

fn apply<T: Scalar, B: Backend>(
    dev: &mut B,
    trace: &mut Trace<T>,
    name: &str,
    operator: &dyn LinOp<T>,
    x: Vector<T>,
) {
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
pub fn simple<T: Scalar, B: Backend>(make: fn() -> B) {
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

/// Sums and products, nested, of rectangular matrices too.
pub fn composed<T: Scalar, B: Backend>(make: fn() -> B) {
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

/// Transposes of operators that know theirs; the others say so.
pub fn transposed<T: Scalar, B: Backend>(make: fn() -> B) {
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

/// Adjoints of operators that know theirs; the others say so.
pub fn adjoints<T: Scalar, B: Backend>(make: fn() -> B) {
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

/// `y ← (I − c A)² x`, with a scratch vector made ahead: a polynomial as a user writes it.
struct Polynomial<T> {
    a: Matrix<T>,
    c: lacuna_core::Cell<T>,
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

/// A user's own operator, alone and inside others.
pub fn own<T: Scalar, B: Backend>(make: fn() -> B) {
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
