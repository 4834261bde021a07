//! Basis operations: all columns in one sweep.
use crate::bits::{Trace, cells_of, upload};
use crate::numbers::Rng;
use crate::on_both;
use lacuna_engine::{Basis, Cells, Device, Pass, Recorder, Run, Scalar, Scope};

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

/// `G = Vᴴ W` and `X = V C`, which are by definition one projection and one update per column.
pub fn blocks<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "basis_gram and basis_combine", |dev| {
        let mut trace = Trace::new();
        for (n, rows, columns) in
            [(0, 2, 3), (1, 1, 1), (3, 0, 2), (255, 2, 3), (257, 9, 5), (1000, 33, 2), (66_001, 6, 4)]
        {
            let mut rng = Rng::new(n as u64 + 3);
            let v = random_basis::<T>(dev, &mut rng, n, rows + columns + 1);
            let [left, right] = [v.take(rows), v.part(rows, columns)];
            let g = run_of(dev, &vec![T::one(); rows * columns + 1]);
            let of = |what: &str| format!("{what}: n = {n}, {rows} by {columns}");
            dev.basis_gram(left, right, g.take(rows * columns)).unwrap();
            trace.cells(dev, of("gram"), &all(g));
            for j in 0..columns {
                let column = run_of(dev, &vec![T::one(); rows]);
                dev.basis_dot(left, right.column(j), column).unwrap();
                let part = dev.read_run(g.part(j * rows, rows)).unwrap();
                same(&dev.read_run(column).unwrap(), &part, &of("column by column"));
            }
            // The columns are the same on both sides.
            let own = run_of(dev, &vec![T::one(); columns * columns]);
            dev.basis_gram(right, right, own).unwrap();
            trace.cells(dev, of("own gram"), &all(own));
            let mut numbers = rng.vector::<T>(rows * columns);
            numbers.iter_mut().step_by(7).for_each(|c| *c = T::zero());
            let c = run_of(dev, &numbers);
            let x = dev.basis::<T>(n, columns + 1).unwrap();
            (0..=columns).for_each(|j| dev.upload(&rng.vector::<T>(n), x.column(j)).unwrap());
            let apart = dev.basis::<T>(n, columns).unwrap();
            for add in [false, true] {
                let recorded = [true, false].map(|together| {
                    let mut k = Recorder::new(dev, "combine");
                    match (together, add) {
                        (true, false) => k.basis_combine(left, c, x.take(columns)),
                        (true, true) => k.basis_combine_add(left, c, x.take(columns)),
                        (false, _) => (0..columns).for_each(|j| {
                            k.basis_add(left, c.part(j * rows, rows), apart.column(j), Pass::nothing())
                        }),
                    }
                    k.finish().and_then(|program| dev.plan(program)).unwrap()
                });
                for j in 0..columns {
                    match add {
                        true => dev.copy(x.column(j), apart.column(j)).unwrap(),
                        false => dev.clear(apart.column(j)).unwrap(),
                    }
                }
                for mut plan in recorded {
                    let run = Run { limit: 1, history: &mut Default::default(), watch: None };
                    dev.execute(&mut plan, run).unwrap();
                }
                for j in 0..columns {
                    let numbers = [x, apart].map(|of| {
                        let mut numbers = vec![T::zero(); n];
                        dev.download(of.column(j), &mut numbers).unwrap();
                        numbers
                    });
                    same(&numbers[0], &numbers[1], &of("column by column"));
                }
                (0..=columns).for_each(|j| trace.vector(dev, of(&format!("x {j}, {add}")), x.column(j)));
            }
        }
        trace
    });
}

/// The same numbers, bit for bit.
fn same<T: Scalar>(one: &[T], other: &[T], what: &str) {
    assert_eq!(bytemuck::cast_slice::<T, u8>(one), bytemuck::cast_slice::<T, u8>(other), "{what}");
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
            let x = dev.basis::<T>(n, 1).unwrap();
            dev.basis_combine(v, h, x).unwrap();
            dev.multi_axpy_dot(Pass::new("norm").dot(norm[0], x.column(0), x.column(0))).unwrap();
            assert!(dev.read(&norm).unwrap()[0].finite(), "a column with coefficient 0 was combined");
            trace.vector(dev, format!("n = {n}: x"), x.column(0));
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
