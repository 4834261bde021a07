//! Every primitive against the serial reference, by equal bits, in every number type and every mode.
#[macro_use]
mod common;
use common::{Random, bits, devices, small};
use lacuna_engine::{Backend, Formula, Pass, Reference, Scalar};
use lacuna_opencl::{Mode, OpenCl};
use std::sync::Arc;

const SIZES: [usize; 9] = [1, 2, 31, 255, 256, 257, 1000, 4099, 70_001];

/// Runs the same case on the reference and on every device; the results must be equal.
fn agree<T: Scalar>(
    on: &mut [(Mode, OpenCl)],
    what: &str,
    case: impl Fn(&mut dyn FnMut(Job<'_, T>) -> Vec<T>) -> Vec<T>,
) {
    // The case drives a backend through one closure, since `Backend` is not dyn-compatible.
    let mut reference = Reference::new();
    let expected = case(&mut |job| job.run(&mut reference));
    for (mode, dev) in on {
        let got = case(&mut |job| job.run(dev));
        assert_eq!(bits(&got), bits(&expected), "{what} {} {mode:?}", T::KIND.name());
    }
}

/// The work that a case requests from a backend.
enum Job<'a, T> {
    Sweep { vectors: &'a [Vec<T>], cells: &'a [T] },
    Product { a: &'a lacuna_formats::Csr<T>, x: &'a [T], d: &'a [T] },
    Basis { columns: &'a [Vec<T>], w: &'a [T] },
}

impl<T: Scalar> Job<'_, T> {
    fn run<B: Backend>(self, dev: &mut B) -> Vec<T> {
        let mark = dev.mark();
        let out = match self {
            Job::Sweep { vectors, cells } => sweep(dev, vectors, cells),
            Job::Product { a, x, d } => product(dev, a, x, d),
            Job::Basis { columns, w } => basis(dev, columns, w),
        };
        dev.release(mark);
        out
    }
}

fn upload<T: Scalar, B: Backend>(dev: &mut B, values: &[T]) -> lacuna_engine::Vector<T> {
    let v = dev.vector(values.len()).unwrap();
    dev.upload(values, v).unwrap();
    v
}

fn all<T: Scalar, B: Backend>(
    dev: &mut B,
    vectors: &[lacuna_engine::Vector<T>],
    cells: &[lacuna_engine::Cell<T>],
) -> Vec<T> {
    let mut out = dev.read(cells).unwrap();
    for v in vectors {
        let mut host = vec![T::zero(); v.len];
        dev.download(*v, &mut host).unwrap();
        out.extend(host);
    }
    out
}

/// A pass with every kind of term, several dot products and formulas.
fn sweep<T: Scalar, B: Backend>(dev: &mut B, vectors: &[Vec<T>], cells: &[T]) -> Vec<T> {
    let v: Vec<_> = vectors.iter().map(|v| upload(dev, v)).collect();
    let [x, r, p, q, d] = v[..] else { panic!() };
    let c: Vec<_> = cells.iter().map(|_| dev.cells::<T>(1).unwrap().at(0)).collect();
    for (cell, value) in c.iter().zip(cells) {
        dev.write(*cell, *value).unwrap();
    }
    let [alpha, beta, rr, rq, same, t] = c[..] else { panic!() };
    let pass = Pass::new("everything")
        .eval(t, alpha.conj() * beta - 2.0)
        .set(x, x + alpha * p - d * r)
        .set(r, alpha * (d * q) - r + t * p)
        .set(q, -(d * x))
        .set(p, -r)
        .set(d, d * p - q)
        .dot(rr, r, r)
        .dot(rq, r, q)
        .dot(same, r, r)
        .dot(alpha, x, d)
        .eval(beta, (rq / rr).sqrt() + same.max(alpha) / t);
    dev.multi_axpy_dot(pass).unwrap();
    dev.multi_axpy_dot(Pass::new("zero").set(q, Formula::value(T::zero())).dot(t, d, d)).unwrap();
    let terms = Pass::new("first").set(q, beta * (d * x)).set(d, d * r).dot(same, q, q);
    dev.multi_axpy_dot(terms).unwrap();
    all(dev, &v, &c)
}

fn sweeps<T: Scalar>() {
    let mut on = devices();
    let mut random = Random(17);
    for n in SIZES.into_iter().filter(|n| !small() || *n <= 1000) {
        let vectors: Vec<Vec<T>> = (0..5).map(|_| random.vector(n)).collect();
        let cells: Vec<T> = random.vector(6);
        agree(&mut on, &format!("n = {n}"), |run| run(Job::Sweep { vectors: &vectors, cells: &cells }));
    }
}
in_every_type!(sweeps);

fn product<T: Scalar, B: Backend>(dev: &mut B, a: &lacuna_formats::Csr<T>, x: &[T], d: &[T]) -> Vec<T> {
    let matrix = dev.matrix(Arc::new(a.clone())).unwrap();
    let (x, d, y) = (upload(dev, x), upload(dev, d), upload(dev, d));
    let [yy, dy] = [0, 1].map(|_| dev.cells::<T>(1).unwrap().at(0));
    let pass = Pass::new("along").set(d, d - y).dot(yy, y, y).dot(dy, d, y).eval(yy, yy / dy);
    dev.spmv_dot(&matrix, x, y, pass).unwrap();
    let plain = upload(dev, &vec![T::one(); a.rows()]);
    dev.spmv_dot(&matrix, x, plain, Pass::nothing()).unwrap();
    all(dev, &[y, d, plain], &[yy, dy])
}

fn products<T: Scalar>() {
    let mut on = devices();
    let mut random = Random(3);
    for (rows, cols, per_row) in [
        (1, 1, 1),
        (300, 200, 3),
        (300, 300, 33),
        (257, 513, 14),
        (700, 400, 30),
        (256, 300, 70),
        (513, 600, 150),
        (200, 2000, 600),
    ] {
        if small() && rows * per_row > 25_000 {
            continue;
        }
        let a = random.matrix::<T>(rows, cols, per_row);
        let (x, d) = (random.vector(cols), random.vector(rows));
        let lanes = lacuna_engine::Format::lanes(&a);
        agree(&mut on, &format!("{rows}x{cols}, {lanes} lanes"), |run| {
            run(Job::Product { a: &a, x: &x, d: &d })
        });
    }
}
in_every_type!(products);

fn basis<T: Scalar, B: Backend>(dev: &mut B, columns: &[Vec<T>], w: &[T]) -> Vec<T> {
    let v = dev.basis::<T>(w.len(), columns.len()).unwrap();
    for (j, column) in columns.iter().enumerate() {
        dev.upload(column, v.column(j)).unwrap();
    }
    let w = upload(dev, w);
    let k = columns.len() - 1;
    let h = dev.cells::<T>(k).unwrap();
    let [ww] = [dev.cells::<T>(1).unwrap().at(0)];
    dev.basis_dot(v, w, h).unwrap();
    if k > 2 {
        dev.write(h.at(2), T::zero()).unwrap();
    }
    dev.basis_axpy(v, h, w, Pass::new("norm").dot(ww, w, w)).unwrap();
    let cells: Vec<_> = (0..k).map(|j| h.at(j)).chain([ww]).collect();
    all(dev, &[w], &cells)
}

fn bases<T: Scalar>() {
    let mut on = devices();
    let mut random = Random(5);
    for (n, columns) in [(1, 2), (300, 2), (256, 4), (1000, 6), (700, 32), (66_000, 10)] {
        if small() && n * columns > 10_000 {
            continue;
        }
        let columns: Vec<Vec<T>> = (0..columns).map(|_| random.vector(n)).collect();
        let w = random.vector(n);
        agree(&mut on, &format!("n = {n}, {} columns", columns.len()), |run| {
            run(Job::Basis { columns: &columns, w: &w })
        });
    }
}
in_every_type!(bases);
