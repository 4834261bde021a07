//! Basis operations: all columns in one sweep.
use crate::bits::{Trace, cells_of, upload};
use crate::numbers::Rng;
use crate::on_both;
use lacuna_engine::{Basis, Cells, Device, Pass, Scalar, Scope};

/// A basis with random columns.
///
/// # Panics
/// If there is no memory for it.
pub fn random_basis<T: Scalar>(dev: &Scope, rng: &mut Rng, n: usize, columns: usize) -> Basis<T> {
    let v = dev.basis(n, columns).unwrap();
    (0..columns).for_each(|j| dev.upload(&rng.vector::<T>(n), v.column(j)).unwrap());
    v
}

fn run_of<T: Scalar>(dev: &Scope, values: &[T]) -> Cells<T> {
    let run = dev.run_of_cells(values.len()).unwrap();
    values.iter().enumerate().for_each(|(i, v)| dev.write(run.at(i), *v).unwrap());
    run
}

fn all<T>(run: Cells<T>) -> Vec<lacuna_engine::Cell<T>> {
    (0..run.count as usize).map(|i| run.at(i)).collect()
}

/// `h = Vᴴ w` for one column to many, over all lengths and over some of the columns.
pub fn dots<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "basis_dot", |dev| {
        let mut trace = Trace::new();
        for (n, columns, used) in
            [(0, 3, 3), (1, 1, 1), (255, 2, 2), (257, 7, 5), (1000, 33, 33), (65_537, 5, 4), (3, 9, 9)]
        {
            let mut rng = Rng::new(n as u64);
            let v = random_basis::<T>(dev, &mut rng, n, columns);
            let w = upload(dev, &rng.vector::<T>(n));
            let h = run_of(dev, &vec![T::one(); columns + 1]);
            dev.basis_dot(v, w, h.take(used)).unwrap();
            trace.cells(dev, format!("n = {n}, {used} of {columns} columns"), &all(h));
            // The vector is a column of the basis itself, as in GMRES.
            dev.basis_dot(v, v.column(columns - 1), h.take(used)).unwrap();
            trace.cells(dev, format!("n = {n}, {used} of {columns} columns, with its last"), &all(h));
        }
        trace
    });
}

/// `w ∓= V h`, and a pass on the rows just computed.
pub fn axpys<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "basis_axpy", |dev| {
        let mut trace = Trace::new();
        for (n, columns, used) in
            [(0, 2, 2), (1, 1, 1), (256, 3, 2), (511, 8, 8), (1001, 40, 31), (70_001, 6, 5)]
        {
            let mut rng = Rng::new(n as u64 + 1);
            let v = random_basis::<T>(dev, &mut rng, n, columns);
            let [w, d, s] = std::array::from_fn(|_| upload(dev, &rng.vector::<T>(n)));
            let h = run_of(dev, &rng.vector::<T>(columns));
            let c = cells_of(dev, &rng.vector::<T>(3));
            dev.basis_axpy(v, h.take(used), w, Pass::nothing()).unwrap();
            trace.vector(dev, format!("n = {n}: w"), w);
            let pass = Pass::new("ride")
                .set(s, d * w - c[0] * s)
                .set(w, w / c[1])
                .dot(c[2], w, w)
                .eval(c[0], c[2].sqrt());
            dev.basis_axpy(v, h.take(used), w, pass).unwrap();
            trace.vector(dev, format!("n = {n}: w after a pass"), w);
            trace.vector(dev, format!("n = {n}: s"), s);
            trace.cells(dev, format!("n = {n}: cells"), &c);
            trace.cells(dev, format!("n = {n}: h"), &all(h));
        }
        trace
    });
}

/// A column with coefficient 0 is not read: a NaN in it does not spread.
pub fn zero_coefficients<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "zero coefficients", |dev| {
        let mut trace = Trace::new();
        for n in [5, 1000, 66_000] {
            let mut rng = Rng::new(n as u64 + 2);
            let v = random_basis::<T>(dev, &mut rng, n, 6);
            let nan = vec![T::from_real(f64::NAN); n];
            [1, 2, 5].into_iter().for_each(|j| dev.upload(&nan, v.column(j)).unwrap());
            let mut values = rng.vector::<T>(6);
            (values[1], values[2], values[5]) = (T::zero(), -T::zero(), T::zero());
            let (h, w) = (run_of(dev, &values), upload(dev, &rng.vector::<T>(n)));
            let norm = cells_of(dev, &[T::zero()]);
            dev.basis_axpy(v, h, w, Pass::new("norm").dot(norm[0], w, w)).unwrap();
            assert!(dev.read(&norm).unwrap()[0].finite(), "a column with coefficient 0 was read");
            trace.vector(dev, format!("n = {n}: w"), w);
            trace.cells(dev, format!("n = {n}: norm"), &norm);
        }
        trace
    });
}

/// Columns are ordinary vectors: passes write them, products read and write them, basis operations add to
/// them.
pub fn modified_columns<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "columns as vectors", |dev| {
        let mut trace = Trace::new();
        let (mut rng, n) = (Rng::new(9), 413);
        let v = random_basis::<T>(dev, &mut rng, n, 5);
        let a = crate::numbers::random_matrix::<T>(&mut rng, n, n, 6);
        let a = dev.matrix(std::sync::Arc::new(a)).unwrap();
        let h = run_of(dev, &rng.vector::<T>(4));
        let c = cells_of(dev, &rng.vector::<T>(2));
        dev.spmv_dot(&a, v.column(0), v.column(1), Pass::new("along").dot(c[0], v.column(0), v.column(1)))
            .unwrap();
        dev.multi_axpy_dot(Pass::new("turn").set(v.column(2), v.column(1) / c[0] - v.column(4))).unwrap();
        dev.basis_dot(v, v.column(4), h).unwrap();
        dev.basis_axpy(v, h, v.column(4), Pass::new("norm").dot(c[1], v.column(4), v.column(4))).unwrap();
        (0..5).for_each(|j| trace.vector(dev, format!("column {j}"), v.column(j)));
        trace.cells(dev, "h", &all(h));
        trace.cells(dev, "cells", &c);
        trace
    });
}
