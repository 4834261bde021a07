//! Every primitive against the serial reference, by equal bits, in every number type and every mode.
#[macro_use]
mod common;
use common::{Random, bits, devices, small};
use lacuna_engine::{Cell, Device, Formula, History, Owned, Pass, Recorder, Reference, Run, Scalar, Vector};
use lacuna_opencl::Mode;
use std::sync::Arc;

const SIZES: [usize; 9] = [1, 2, 31, 255, 256, 257, 1000, 4099, 70_001];

/// Runs the same case on the reference and on every device; the results must be equal.
fn agree<T: Scalar>(on: &[(Mode, Device)], what: &str, case: impl Fn(&Device) -> Vec<T>) {
    let expected = case(&Device::new(Reference::new()));
    for (mode, dev) in on {
        assert_eq!(bits(&case(dev)), bits(&expected), "{what} {} {mode:?}", T::KIND.name());
    }
}

fn upload<T: Scalar>(dev: &Device, values: &[T]) -> Owned<Vector<T>> {
    let v = dev.vector(values.len()).unwrap();
    dev.upload(values, *v).unwrap();
    v
}

fn all<T: Scalar>(dev: &Device, vectors: &[Vector<T>], cells: &[Cell<T>]) -> Vec<T> {
    let mut out = dev.read(cells).unwrap();
    for v in vectors {
        let mut host = vec![T::zero(); v.len];
        dev.download(*v, &mut host).unwrap();
        out.extend(host);
    }
    out
}

/// A pass with every kind of term, several dot products and formulas.
fn sweep<T: Scalar>(dev: &Device, vectors: &[Vec<T>], cells: &[T]) -> Vec<T> {
    let owned: Vec<_> = vectors.iter().map(|v| upload(dev, v)).collect();
    let v: Vec<_> = owned.iter().map(|v| **v).collect();
    let [x, r, p, q, d] = v[..] else { panic!() };
    let run = dev.cells::<T>(cells.len()).unwrap();
    let c: Vec<_> = (0..cells.len()).map(|i| run.at(i)).collect();
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
    let on = devices();
    let mut random = Random(17);
    for n in SIZES.into_iter().filter(|n| !small() || *n <= 1000) {
        let vectors: Vec<Vec<T>> = (0..5).map(|_| random.vector(n)).collect();
        let cells: Vec<T> = random.vector(6);
        agree(&on, &format!("n = {n}"), |dev| sweep(dev, &vectors, &cells));
    }
}
in_every_type!(sweeps);

/// Dot products in a loop; among them a sum of −0, whose sign shows what a segment sum without a neighbour is added to.
fn looped<T: Scalar>(dev: &Device, vectors: &[Vec<T>]) -> Vec<T> {
    let owned: Vec<_> = vectors.iter().map(|v| upload(dev, v)).collect();
    let v: Vec<_> = owned.iter().map(|v| **v).collect();
    let c = dev.cells::<T>(4).unwrap();
    dev.write(c.at(0), T::one()).unwrap();
    let pass = Pass::new("sums").set(v[1], v[1] + c.at(0) * v[0]).dot(c.at(1), v[0], v[1]);
    let pass = pass.dot(c.at(2), v[2], v[3]).dot(c.at(3), v[1], v[1]).count(c.at(3));
    let mut k = Recorder::new(dev, "loop");
    k.each(|k| k.multi_axpy_dot(pass));
    let mut plan = k.finish().and_then(|program| dev.plan(program)).unwrap();
    plan.execute(Run { limit: 2, history: &mut History::off(), watch: None }).unwrap();
    all(dev, &[], &[1, 2, 3].map(|i| c.at(i)))
}

fn sums_in_a_loop<T: Scalar>() {
    let on = devices();
    let mut random = Random(23);
    for segments in [1, 2, 3, 5, 33, 300].into_iter().filter(|segments| !small() || *segments <= 5) {
        for n in [256 * segments, 256 * segments - 255] {
            let [a, b] = [0, 1].map(|_| random.vector(n));
            let vectors = [a, b, vec![T::one(); n], vec![-T::zero(); n]];
            agree(&on, &format!("a loop, n = {n}"), |dev| looped(dev, &vectors));
        }
    }
}
in_every_type!(sums_in_a_loop);

fn product<T: Scalar>(dev: &Device, a: &lacuna_formats::Csr<T>, x: &[T], d: &[T]) -> Vec<T> {
    let matrix = dev.matrix(Arc::new(a.clone())).unwrap();
    let owned = [upload(dev, x), upload(dev, d), upload(dev, d), upload(dev, &vec![T::one(); d.len()])];
    let [x, d, y, plain] = owned.each_ref().map(|v| **v);
    let run = dev.cells::<T>(2).unwrap();
    let [yy, dy] = [run.at(0), run.at(1)];
    let pass = Pass::new("along").set(d, d - y).dot(yy, y, y).dot(dy, d, y).eval(yy, yy / dy);
    dev.spmv_dot(&matrix, x, y, pass).unwrap();
    dev.spmv_dot(&matrix, x, plain, Pass::nothing()).unwrap();
    all(dev, &[y, d, plain], &[yy, dy])
}

fn products<T: Scalar>() {
    let on = devices();
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
        agree(&on, &format!("{rows}x{cols}, {lanes} lanes"), |dev| product(dev, &a, &x, &d));
    }
}
in_every_type!(products);

fn basis<T: Scalar>(dev: &Device, columns: &[Vec<T>], w: &[T]) -> Vec<T> {
    let v = dev.basis::<T>(w.len(), columns.len()).unwrap();
    for (j, column) in columns.iter().enumerate() {
        dev.upload(column, v.column(j)).unwrap();
    }
    let w = upload(dev, w);
    let k = columns.len() - 1;
    let (h, last) = (dev.cells::<T>(k).unwrap(), dev.cells::<T>(1).unwrap());
    let ww = last.at(0);
    dev.basis_dot(*v, *w, *h).unwrap();
    if k > 2 {
        dev.write(h.at(2), T::zero()).unwrap();
    }
    dev.basis_axpy(*v, *h, *w, Pass::new("norm").dot(ww, *w, *w)).unwrap();
    let cells: Vec<_> = (0..k).map(|j| h.at(j)).chain([ww]).collect();
    all(dev, &[*w], &cells)
}

fn bases<T: Scalar>() {
    let on = devices();
    let mut random = Random(5);
    for (n, columns) in [(1, 2), (300, 2), (256, 4), (1000, 6), (700, 32), (66_000, 10)] {
        if small() && n * columns > 10_000 {
            continue;
        }
        let columns: Vec<Vec<T>> = (0..columns).map(|_| random.vector(n)).collect();
        let w = random.vector(n);
        agree(&on, &format!("n = {n}, {} columns", columns.len()), |dev| basis(dev, &columns, &w));
    }
}
in_every_type!(bases);
