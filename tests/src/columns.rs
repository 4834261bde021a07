//! Products of several columns at once: each column has the bits of a single product.
use crate::basis::random_basis;
use crate::bits::{Trace, cells_of, download, same};
use crate::formats::every;
use crate::numbers::{Rng, generated, random_matrix};
use crate::on_both;
use lacuna_engine::{
    Device, Error, Format, History, LinOp, Pass, Recorder, Run, Scalar, Scaled, Shifted, Test,
};
use lacuna_formats::{Csr, Triplets};
use std::sync::Arc;

/// `Y ← A X` in one format, for each number of columns: `Y` as on the reference, and each column as a single
/// product on the same backend.
fn product<T: Scalar>(
    make: fn() -> Device,
    context: &str,
    a: &Arc<dyn Format<T>>,
    x: &[Vec<T>],
    counts: &[usize],
) {
    let (rows, cols) = a.shape();
    on_both!(make, context, |dev| {
        let mut trace = Trace::new();
        let a = dev.matrix(a.clone()).unwrap();
        let [many, y] = [cols, rows].map(|n| dev.basis::<T>(n, x.len()).unwrap());
        x.iter().enumerate().for_each(|(j, x)| dev.upload(x, many.column(j)).unwrap());
        let alone: Vec<Vec<T>> = (0..x.len())
            .map(|j| {
                dev.spmv_dot(&a, many.column(j), y.column(0), Pass::nothing()).unwrap();
                download(dev, y.column(0))
            })
            .collect();
        for &count in counts {
            for j in 0..x.len() {
                dev.upload(&vec![T::from_real(f64::NAN); rows], y.column(j)).unwrap();
            }
            dev.spmm(&a, many.take(count), y.take(count)).unwrap();
            for (j, alone) in alone.iter().enumerate() {
                let got = download(dev, y.column(j));
                let name = format!("column {j} of {count}");
                if j < count {
                    same(&format!("{context}: {name} as a product of its own"), &got, alone);
                }
                trace.numbers(name, &got);
            }
        }
        trace
    });
}

/// Every format of a matrix, for each number of columns.
fn in_every_format<T: Scalar>(make: fn() -> Device, name: &str, a: &Csr<T>, counts: &[usize]) {
    let mut rng = Rng::new(a.nnz() as u64);
    let most = counts.iter().copied().max().unwrap_or(0);
    let x: Vec<Vec<T>> = (0..most).map(|_| rng.spread(a.cols(), 10)).collect();
    for (format, a) in every(make, a) {
        product(make, &format!("{name} in {format}"), &a, &x, counts);
    }
}

/// Every format, for none, one and several columns, fewer and more than a kernel processes together; matrices
/// of many shapes.
pub fn shapes<T: Scalar>(make: fn() -> Device) {
    let mut rng = Rng::new(11);
    in_every_format(make, "257x250", &random_matrix::<T>(&mut rng, 257, 250, 7), &[0, 1, 2, 3, 4, 5, 8, 11]);
    for (rows, cols, per_row) in [(1, 1, 1), (1, 64, 30), (64, 1, 1), (33, 31, 40), (600, 90, 2)] {
        let a = random_matrix::<T>(&mut rng, rows, cols, per_row);
        in_every_format(make, &format!("{rows}x{cols}"), &a, &[3, 8]);
    }
    for (rows, cols) in [(0, 0), (0, 5), (5, 0), (300, 300)] {
        let a = Triplets::<T>::new(rows, cols).to_csr().unwrap();
        in_every_format(make, &format!("{rows}x{cols}, empty"), &a, &[2]);
    }
}

/// Structures that formats are made for, with short and long rows, and numbers that are not finite.
pub fn structures<T: Scalar>(make: fn() -> Device) {
    for name in [
        "gen:poisson2d:37x29",
        "gen:poisson3d:9x8x11:27",
        "gen:elasticity3d:4",
        "gen:convection:30x29:10",
        "gen:power-law:2000",
    ] {
        in_every_format(make, name, &generated::<T>(name), &[2, 6]);
    }
    let a = generated::<T>("gen:poisson2d:20x20");
    let mut x: Vec<Vec<T>> = (0..3).map(|j| Rng::new(j).vector(a.cols())).collect();
    (x[1][17], x[2][300]) = (T::from_real(f64::INFINITY), T::from_real(f64::NAN));
    for (format, a) in every(make, &a) {
        product(make, &format!("not finite in {format}"), &a, &x, &[3]);
    }
}

/// Large enough for every thread and work-group.
pub fn large<T: Scalar>(make: fn() -> Device) {
    for name in ["gen:poisson2d:170x171", "gen:power-law:20000"] {
        in_every_format(make, name, &generated::<T>(name), &[5]);
    }
}

/// In a program: in the iteration, under a test, through composed operators, with some columns of a basis,
/// with operations before and after.
pub fn programs<T: Scalar>(make: fn() -> Device) {
    for n in [60, 1000] {
        let a = random_matrix::<T>(&mut Rng::new(n as u64), n, n, 5);
        on_both!(make, format!("columns in a program of {n}"), |dev| {
            let (mut trace, mut rng) = (Trace::new(), Rng::new(12));
            let a = dev.matrix(Arc::new(a.clone())).unwrap();
            let [x, y, z] = std::array::from_fn(|_| random_basis::<T>(dev, &mut rng, n, 5));
            let c = cells_of(dev, &[T::from_real(0.01), T::zero(), T::zero(), T::from_real(3.0), T::one()]);
            let mut k = Recorder::new(dev, "columns");
            let (scaled, some) = (Scaled(c[0], &a), Test::LessEqual(c[1], c[3]));
            k.each(|k| {
                k.spmm(&scaled, x, y);
                k.multi_axpy_dot(Pass::new("along").dot(c[2], y.column(4), y.column(3)));
                k.when(some, |k| k.spmm(&a, y.take(3), z.take(3)));
                k.spmm(&Shifted(&a, c[0]), z, x);
                let next = Pass::new("next").set(x.column(0), x.column(0) - c[0] * z.column(2));
                k.multi_axpy_dot(next.eval(c[1], c[1] + c[4]).count(c[2]));
            });
            let mut plan = { k.finish().and_then(|program| dev.plan(program)).unwrap() };
            let mut history = History::default();
            let finish =
                dev.execute(&mut plan, Run { limit: 6, history: &mut history, watch: None }).unwrap();
            trace.finish("columns", &finish, &history);
            for v in [x, y, z] {
                (0..5).for_each(|j| trace.vector(dev, format!("column {j}"), v.column(j)));
            }
            trace.cells(dev, "cells", &c);
            trace
        });
    }
}

/// Errors, by name: lengths and counts that do not match, a column on both sides, stale handles.
pub fn refusals<T: Scalar>(make: fn() -> Device) {
    let dev = &make().scope();
    let a = dev.matrix(Arc::new(random_matrix::<T>(&mut Rng::new(1), 20, 30, 3))).unwrap();
    let square = dev.matrix(Arc::new(random_matrix::<T>(&mut Rng::new(1), 20, 20, 3))).unwrap();
    let [x, y] = [30, 20].map(|n| dev.basis::<T>(n, 4).unwrap());
    for (x, y, expected, got) in [(y, y, 30, 20), (x, x, 20, 30), (x.take(3), y, 3, 4)] {
        match dev.spmm(&a, x, y) {
            Err(Error::Length { expected: e, got: g, .. }) => assert_eq!((e, g), (expected, got)),
            other => panic!("expected a length error, got {other:?}"),
        }
    }
    let twice = dev.spmm(&square, y.take(2), y.take(2)).unwrap_err();
    assert!(matches!(twice, Error::Pass { .. }), "{twice}");
    let gone = dev.scope().basis::<T>(20, 4).unwrap();
    for stale in [dev.spmm(&a, x, gone), dev.spmm(&square, gone, y)] {
        assert!(matches!(stale, Err(Error::Stale { .. })), "{stale:?}");
    }
    let shape = LinOp::<T>::shape(&a);
    assert_eq!(shape, (20, 30));
    dev.spmm(&a, x, y).unwrap();
}
