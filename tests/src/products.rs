//! Sparse products with a pass on the rows just computed.
use crate::bits::{Trace, cells_of, upload};
use crate::numbers::{Rng, random_matrix};
use crate::on_both;
use lacuna_engine::{Argument, Device, Error, Format, Pass, Scalar, row_sum};
use lacuna_formats::{Csr, Triplets};
use std::sync::Arc;

/// `y ← A x` for matrices of every shape, without a pass.
pub fn shapes<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "shapes", |dev| {
        let mut trace = Trace::new();
        let mut rng = Rng::new(21);
        let mut matrices: Vec<Csr<T>> = [
            (1, 1, 1),
            (1, 700, 300),
            (700, 1, 1),
            (300, 17, 4),
            (17, 300, 40),
            (257, 255, 7),
            (1009, 1013, 3),
            (40_000, 900, 2),
        ]
        .into_iter()
        .map(|(rows, cols, per_row)| random_matrix(&mut rng, rows, cols, per_row))
        .collect();
        matrices.push(Triplets::new(0, 0).to_csr().unwrap());
        matrices.push(Triplets::new(0, 5).to_csr().unwrap());
        matrices.push(Triplets::new(5, 0).to_csr().unwrap());
        matrices.push(Triplets::new(600, 600).to_csr().unwrap());
        for a in matrices {
            let (rows, cols) = (a.rows(), a.cols());
            let x = upload(dev, &rng.vector::<T>(cols));
            let y = upload(dev, &vec![T::from_real(f64::NAN); rows]);
            let sum = cells_of(dev, &[T::one()]);
            let a = dev.matrix(Arc::new(a)).unwrap();
            dev.spmv_dot(&a, x, y, Pass::nothing()).unwrap();
            trace.vector(dev, format!("{rows}x{cols}: y"), y);
            dev.spmv_dot(&a, x, y, Pass::new("along").dot(sum[0], y, y)).unwrap();
            trace.vector(dev, format!("{rows}x{cols}: y with a dot along"), y);
            trace.cells(dev, format!("{rows}x{cols}: <y,y>"), &sum);
        }
        trace
    });
}

/// Rows long enough to use each number of lanes from 1 to 32.
pub fn lanes<T: Scalar>(make: fn() -> Device) {
    let matrices: Vec<Csr<T>> = [3, 20, 45, 90, 180, 400]
        .into_iter()
        .map(|per_row| random_matrix(&mut Rng::new(per_row as u64), 211, 613, per_row))
        .collect();
    let found: Vec<usize> = matrices.iter().map(|a| Format::lanes(a)).collect();
    assert_eq!(found, [1, 2, 4, 8, 16, 32], "the matrices no longer reach every number of lanes");
    on_both!(make, "lanes", |dev| {
        let mut trace = Trace::new();
        for a in &matrices {
            let (x, y) = (upload(dev, &Rng::new(1).spread::<T>(613, 10)), upload(dev, &[T::zero(); 211]));
            let handle = dev.matrix(Arc::new(a.clone())).unwrap();
            dev.spmv_dot(&handle, x, y, Pass::nothing()).unwrap();
            trace.vector(dev, format!("{} lanes", Format::lanes(a)), y);
        }
        trace
    });
}

/// Updates of `y` and of other vectors, factors, reads of `x`, dot products of all of them, on the rows just
/// computed.
pub fn riding_passes<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "riding passes", |dev| {
        let mut trace = Trace::new();
        for (n, per_row) in [(1, 1), (255, 5), (1027, 20), (30_011, 4)] {
            let mut rng = Rng::new(n as u64);
            let a = dev.matrix(Arc::new(random_matrix::<T>(&mut rng, n, n, per_row))).unwrap();
            let [x, y, d, s, t] = std::array::from_fn(|_| upload(dev, &rng.vector::<T>(n)));
            let c = cells_of(dev, &rng.vector::<T>(6));
            let pass = Pass::new("ride")
                .eval(c[1], c[0] / c[2])
                .set(s, y - c[1] * x)
                .set(y, d * y)
                .set(t, t + c[1] * y - x * s)
                .dot(c[3], x, y)
                .dot(c[4], s, t)
                .dot(c[5], x, x)
                .eval(c[0], c[3] / c[4]);
            dev.spmv_dot(&a, x, y, pass).unwrap();
            for (name, v) in [("x", x), ("y", y), ("d", d), ("s", s), ("t", t)] {
                trace.vector(dev, format!("n = {n}: {name}"), v);
            }
            trace.cells(dev, format!("n = {n}: cells"), &c);
        }
        // With a rectangular matrix, the pass runs over the rows.
        let mut rng = Rng::new(22);
        let a = dev.matrix(Arc::new(random_matrix::<T>(&mut rng, 500, 90, 9))).unwrap();
        let (x, y) = (upload(dev, &rng.vector::<T>(90)), upload(dev, &rng.vector::<T>(500)));
        let (b, c) = (upload(dev, &rng.vector::<T>(500)), cells_of(dev, &[T::zero()]));
        dev.spmv_dot(&a, x, y, Pass::new("residual").set(y, b - y).dot(c[0], y, y)).unwrap();
        trace.vector(dev, "rectangular: b - A x", y);
        trace.cells(dev, "rectangular: its square", &c);
        trace
    });
}

/// A user-defined format: `1 / (1 + i + j)` on three diagonals, with four lanes.
struct Hilbert {
    n: usize,
}

impl<T: Scalar> Format<T> for Hilbert {
    fn shape(&self) -> (usize, usize) {
        (self.n, self.n)
    }
    fn nnz(&self) -> usize {
        (3 * self.n).saturating_sub(2)
    }
    fn kernel(&self) -> &'static str {
        "hilbert_of_the_conformance_suite"
    }
    fn arguments(&self) -> Vec<Argument<'_, T>> {
        vec![Argument::Size(self.n as u32)]
    }
    fn lanes(&self) -> usize {
        4
    }
    fn row(&self, i: usize, x: &[T]) -> T {
        let columns = i.saturating_sub(1)..(i + 2).min(self.n);
        row_sum(4, columns.map(|j| (T::from_real(1.0 / (1 + i + j) as f64), x[j])))
    }
}

/// A format without a kernel either runs through its rows or is refused as unsupported.
pub fn own_format<T: Scalar>(make: fn() -> Device) {
    if let Err(error) = make().matrix::<T>(Arc::new(Hilbert { n: 4 })) {
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        return;
    }
    on_both!(make, "own format", |dev| {
        let mut trace = Trace::new();
        for n in [1, 300, 20_000] {
            let a = dev.matrix::<T>(Arc::new(Hilbert { n })).unwrap();
            let (x, y) = (upload(dev, &Rng::new(1).vector::<T>(n)), upload(dev, &vec![T::zero(); n]));
            let c = cells_of(dev, &[T::zero()]);
            dev.spmv_dot(&a, x, y, Pass::new("along").set(y, y - x).dot(c[0], y, x)).unwrap();
            trace.vector(dev, format!("n = {n}"), y);
            trace.cells(dev, format!("n = {n}: sum"), &c);
        }
        trace
    });
}
