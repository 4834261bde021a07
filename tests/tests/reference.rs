//! The oracle against independent, naive arithmetic in double precision, with bounds in units of eps, n and
//! the terms.
use lacuna_engine::{
    Complex32, Complex64, Device, Diagonal, Identity, LinOp, Pass, Product, Reference, Scalar, Scaled, Scope,
    Shifted, Sum, Transposed, WithTranspose,
};
use lacuna_formats::Csr;
use lacuna_solvers::{Jacobi, METHODS, Options, Placed, Setup, Solver, Stop, method};
use lacuna_tests::bits::{Trace, cells_of, download, upload};
use lacuna_tests::numbers::{Rng, generated, random_matrix};
use lacuna_tests::reference;
use lacuna_tests::{cells::least_squares, conformance, if_all, solves::paired};
use std::sync::Arc;

/// The suite on the reference itself: that two runs of it agree. What its cases assert is asserted of the reference for every backend.
fn oracle() -> lacuna_engine::Result<Reference> {
    Ok(Reference::new())
}
#[test]
fn digests_are_pinned() {
    lacuna_tests::digests::agree_or_pin(|| Device::new(Reference::new()));
}

conformance!(itself, "reference", oracle, [f64, Complex32], except &[], around if_all);

fn wide<T: Scalar>(v: T) -> Complex64 {
    Complex64::new(v.re(), v.im())
}

/// A compensated sum (Neumaier 1974), and the sum of the moduli.
fn exact(terms: impl Iterator<Item = Complex64>) -> (Complex64, f64) {
    let (mut sum, mut carry, mut size) = ([0.0; 2], [0.0; 2], 0.0);
    for term in terms {
        size += term.norm();
        for (part, value) in [term.re, term.im].into_iter().enumerate() {
            let next = sum[part] + value;
            let lost: f64 = if f64::abs(sum[part]) >= value.abs() {
                (sum[part] - next) + value
            } else {
                (value - next) + sum[part]
            };
            carry[part] += lost;
            sum[part] = next;
        }
    }
    (Complex64::new(sum[0] + carry[0], sum[1] + carry[1]), size)
}

/// Fails unless `got` is within `units · eps · size` of `want`.
#[track_caller]
fn near<T: Scalar>(what: &str, got: T, want: Complex64, units: f64, size: f64) {
    let (error, bound) = ((wide(got) - want).norm(), units * T::EPSILON * size);
    assert!(
        error <= bound,
        "{what} in {:?}: got {got:e}, expected {want:e}, off by {error:e} > {bound:e}",
        T::KIND
    );
}

macro_rules! in_every_type {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            naive::$name::<f32>();
            naive::$name::<f64>();
            naive::$name::<Complex32>();
            naive::$name::<Complex64>();
        }
    )*};
}
in_every_type! { sums updates products bases operators least_squares_problems solutions }

mod naive {
    use super::*;

    pub(super) fn sums<T: Scalar>() {
        for n in lacuna_tests::passes::LENGTHS {
            let mut rng = Rng::new(n as u64);
            let (a, b) = (rng.spread::<T>(n, 8), rng.vector::<T>(n));
            let dev = &reference();
            let (va, vb, c) = (upload(dev, &a), upload(dev, &b), cells_of(dev, &[T::one()]));
            dev.multi_axpy_dot(Pass::new("dot").dot(c[0], va, vb)).unwrap();
            let (want, size) = exact(a.iter().zip(&b).map(|(a, b)| wide(*a).conj() * wide(*b)));
            // Two roundings for a product (four and two for complex numbers), and one for each level of the
            // tree.
            let levels = (n.max(1) as f64).log2().ceil() + 8.0;
            near(&format!("dot of {n}"), dev.read(&c).unwrap()[0], want, levels + 4.0, size);
        }
    }

    pub(super) fn updates<T: Scalar>() {
        let (n, dev, mut rng) = (601, &reference(), Rng::new(1));
        let host: [Vec<T>; 4] = std::array::from_fn(|_| rng.vector(n));
        let [x, y, d, z] = std::array::from_fn(|i| upload(dev, &host[i]));
        let numbers: Vec<T> = rng.vector(2);
        let c = cells_of(dev, &numbers);
        dev.multi_axpy_dot(Pass::new("update").set(z, x - c[0] * y + (c[1] / 3.0) * (d * x) - d * y))
            .unwrap();
        for (i, got) in download(dev, z).into_iter().enumerate() {
            let [x, y, d, _] = [0, 1, 2, 3].map(|v: usize| wide(host[v][i]));
            let terms = [x, -wide(numbers[0]) * y, wide(numbers[1]) / 3.0 * d * x, -d * y];
            let (want, size) = exact(terms.into_iter());
            near(&format!("element {i}"), got, want, 16.0, size);
        }
    }

    pub(super) fn products<T: Scalar>() {
        for (rows, cols, per_row) in [(1, 1, 1), (40, 700, 500), (300, 200, 3), (120, 500, 40)] {
            let mut rng = Rng::new(rows as u64);
            let (a, x) = (random_matrix::<T>(&mut rng, rows, cols, per_row), rng.vector::<T>(cols));
            let dev = &reference();
            let (vx, y) = (upload(dev, &x), upload(dev, &vec![T::zero(); rows]));
            let handle = dev.matrix(Arc::new(a.clone())).unwrap();
            dev.spmv_dot(&handle, vx, y, Pass::nothing()).unwrap();
            for (i, got) in download(dev, y).into_iter().enumerate() {
                let (want, size) = exact(a.row_entries(i).map(|(j, v)| wide(v) * wide(x[j])));
                near(&format!("row {i}"), got, want, a.row_entries(i).len() as f64 + 8.0, size);
            }
        }
    }

    pub(super) fn bases<T: Scalar>() {
        let (n, k, dev, mut rng) = (777, 5, &reference(), Rng::new(3));
        let v = dev.basis::<T>(n, k).unwrap();
        let columns: Vec<Vec<T>> = (0..k).map(|_| rng.vector(n)).collect();
        columns.iter().enumerate().for_each(|(j, c)| dev.upload(c, v.column(j)).unwrap());
        let start: Vec<T> = rng.vector(n);
        let w = upload(dev, &start);
        let h = dev.run_of_cells::<T>(k).unwrap();
        dev.basis_dot(v, w, h).unwrap();
        let coefficients = dev.read(&(0..k).map(|j| h.at(j)).collect::<Vec<_>>()).unwrap();
        for (j, column) in columns.iter().enumerate() {
            let (want, size) = exact(column.iter().zip(&start).map(|(v, w)| wide(*v).conj() * wide(*w)));
            near(&format!("coefficient {j}"), coefficients[j], want, 24.0, size);
        }
        dev.basis_axpy(v, h, w, Pass::nothing()).unwrap();
        for (i, got) in download(dev, w).into_iter().enumerate() {
            let terms = (0..k).map(|j| -wide(coefficients[j]) * wide(columns[j][i]));
            let (want, size) = exact([wide(start[i])].into_iter().chain(terms));
            near(&format!("row {i}"), got, want, 4.0 * k as f64, size);
        }
    }

    /// A dense matrix by rows.
    type Dense = Vec<Vec<Complex64>>;

    fn dense<T: Scalar>(a: &Csr<T>) -> Dense {
        let mut rows = vec![vec![Complex64::ZERO; a.cols()]; a.rows()];
        a.entries().for_each(|(i, j, v)| rows[i][j] = wide(v));
        rows
    }
    fn multiply(a: &Dense, b: &Dense) -> Dense {
        let column = |j: usize, row: &[Complex64]| row.iter().zip(b).map(|(a, b)| a * b[j]).sum();
        a.iter().map(|row| (0..b[0].len()).map(|j| column(j, row)).collect()).collect()
    }
    fn norm(a: &Dense) -> f64 {
        a.iter().flatten().map(Complex64::norm_sqr).sum::<f64>().sqrt()
    }

    pub(super) fn operators<T: Scalar>() {
        let (n, m, dev, mut rng) = (60, 23, &reference(), Rng::new(4));
        let (a, b) = (random_matrix::<T>(&mut rng, n, n, 5), random_matrix::<T>(&mut rng, n, m, 4));
        let (d, c): (Vec<T>, T) = (rng.vector(n), rng.number());
        let [ha, hb, hbt] = [a.clone(), b.clone(), b.transpose()].map(|a| dev.matrix(Arc::new(a)).unwrap());
        let (vd, cell) = (upload(dev, &d), cells_of(dev, &[c])[0]);
        let (da, db, dbt) = (dense(&a), dense(&b), dense(&b.transpose()));
        let map = |f: &dyn Fn(usize, usize) -> Complex64| -> Dense {
            (0..n).map(|i| (0..n).map(|j| f(i, j)).collect()).collect()
        };
        let (diagonal, pair) = (Diagonal(vd), WithTranspose(&hb, &hbt));
        let transposed = Transposed(&pair);
        let check = |dev: &Scope, name: &str, operator: &dyn LinOp<T>, want: Dense| {
            let x: Vec<T> = Rng::new(5).vector(operator.shape().1);
            let (vx, y) = (upload(dev, &x), upload(dev, &vec![T::zero(); operator.shape().0]));
            dev.spmv_dot(operator, vx, y, Pass::nothing()).unwrap();
            assert_eq!(operator.shape(), (want.len(), want[0].len()), "{name}");
            for (i, got) in download(dev, y).into_iter().enumerate() {
                let (value, _) = exact(want[i].iter().zip(&x).map(|(a, x)| a * wide(*x)));
                near(&format!("{name}, row {i}"), got, value, 4.0 * n as f64, norm(&want) + norm(&da));
            }
        };
        let unit = |i: usize, j: usize| if i == j { Complex64::ONE } else { Complex64::ZERO };
        let product = multiply(&db, &dbt);
        check(dev, "identity", &Identity(n), map(&unit));
        check(dev, "diagonal", &diagonal, map(&|i, j| wide(d[i]) * unit(i, j)));
        check(dev, "scaled", &Scaled(cell, &ha), map(&|i, j| wide(c) * da[i][j]));
        check(dev, "shifted", &Shifted(&ha, cell), map(&|i, j| da[i][j] + wide(c) * unit(i, j)));
        check(dev, "sum", &Sum(&ha, &diagonal), map(&|i, j| da[i][j] + wide(d[i]) * unit(i, j)));
        check(dev, "transposed", &transposed, dbt.clone());
        check(dev, "product", &Product(&hb, &transposed), product);
    }

    pub(super) fn least_squares_problems<T: Scalar>() {
        for (m, used) in [(1, 1), (4, 3), (8, 7), (20, 12)] {
            let dev = &reference();
            let (columns, beta, y, rr) = least_squares::<T>(dev, m as u64, m, used, &mut Trace::new());
            let at = |i: usize, j: usize| columns[j].get(i).map_or(Complex64::ZERO, |v| wide(*v));
            let size = norm(&(0..=used).map(|i| (0..used).map(|j| at(i, j)).collect()).collect());
            let length = y.iter().map(|v| wide(*v).norm_sqr()).sum::<f64>().sqrt();
            let right = |i: usize| if i == 0 { wide(beta) } else { Complex64::ZERO };
            let left: Vec<Complex64> = (0..=used)
                .map(|i| right(i) - (0..used).map(|j| at(i, j) * wide(y[j])).sum::<Complex64>())
                .collect();
            let residual = left.iter().map(Complex64::norm_sqr).sum::<f64>();
            // The minimal residual is orthogonal to every column.
            let (units, scale) = (16.0 * (used * used) as f64, size * length + wide(beta).norm());
            for j in 0..used {
                let gradient = (0..=used).map(|i| at(i, j).conj() * left[i]).sum::<Complex64>().norm();
                let bound = units * T::EPSILON * size * scale;
                assert!(gradient <= bound, "{used} of {m}, column {j}: {gradient:e} > {bound:e}");
            }
            near(&format!("{used} of {m}: residual"), rr[used - 1], residual.into(), units, scale * scale);
            assert!(y[used..].iter().all(|v| *v == T::zero()), "what is not in use is 0");
        }
    }

    /// The inverse by elimination with pivoting.
    fn inverse(a: &Dense) -> Dense {
        let n = a.len();
        let mut rows: Dense = a.clone();
        for (i, row) in rows.iter_mut().enumerate() {
            row.extend((0..n).map(|j| if i == j { Complex64::ONE } else { Complex64::ZERO }));
        }
        for k in 0..n {
            let pivot = (k..n).max_by(|&i, &j| rows[i][k].norm().total_cmp(&rows[j][k].norm())).unwrap();
            rows.swap(k, pivot);
            let top: Vec<Complex64> = rows[k].iter().map(|v| v / rows[k][k]).collect();
            for (i, row) in rows.iter_mut().enumerate() {
                let factor = row[k];
                if i != k {
                    row.iter_mut().zip(&top).for_each(|(v, t)| *v -= factor * t);
                }
            }
            rows[k] = top;
        }
        rows.into_iter().map(|row| row[n..].to_vec()).collect()
    }

    pub(super) fn solutions<T: Scalar>() {
        for info in METHODS.iter().filter(|info| !info.least_squares()) {
            let name = if info.hermitian() { "gen:poisson2d:9x8" } else { "gen:convection:9x8:20" };
            let a = generated::<T>(name);
            let wide_a = dense(&a);
            let back = inverse(&wide_a);
            let b: Vec<T> = Rng::new(6).vector(a.rows());
            for precondition in [false, true] {
                let dev = &reference();
                let operator = Device::matrix(dev, Arc::new(a.clone())).unwrap();
                let diagonal = Placed::new(dev, Box::new(Jacobi), &a, *operator, Setup::new()).unwrap();
                let m = precondition.then_some(&diagonal as &dyn LinOp<T>);
                let rtol = T::EPSILON.sqrt();
                let stop = Stop::default().rtol(rtol).max_iters(3000);
                let method = method(info.name, &Options::default()).unwrap();
                let pair = paired(dev, operator, &a, method.needs_adjoint());
                let mut solver = Solver::new(dev, &pair, m, &*method, stop).unwrap();
                let mut x = vec![T::zero(); a.rows()];
                let outcome = solver.solve(&b, &mut x).unwrap();
                assert!(outcome.converged(), "{} {outcome:?}", info.name);
                let size = |v: &[Complex64]| v.iter().map(Complex64::norm_sqr).sum::<f64>().sqrt();
                let b: Vec<Complex64> = b.iter().map(|v| wide(*v)).collect();
                let times = |a: &Dense, v: &[Complex64]| -> Vec<Complex64> {
                    a.iter().map(|row| row.iter().zip(v).map(|(a, v)| a * v).sum()).collect()
                };
                let x: Vec<Complex64> = x.iter().map(|v| wide(*v)).collect();
                let left: Vec<Complex64> = b.iter().zip(times(&wide_a, &x)).map(|(b, ax)| b - ax).collect();
                // By how much the true residual may differ from one computed in the precision of the solve.
                let rounding = 8.0 * T::EPSILON * (norm(&wide_a) * size(&x) + size(&b));
                assert!(size(&left) <= rtol * size(&b) + rounding, "{}: {:e}", info.name, size(&left));
                let reported = outcome.true_residual * size(&b);
                assert!(
                    (reported - size(&left)).abs() <= rounding,
                    "{}: reported {reported:e}, {:e}",
                    info.name,
                    size(&left)
                );
                let error: Vec<Complex64> =
                    x.iter().zip(times(&back, &b)).map(|(x, want)| x - want).collect();
                let bound = norm(&back) * (rtol * size(&b) + rounding);
                assert!(size(&error) <= bound, "{}: {:e} > {bound:e}", info.name, size(&error));
            }
        }
    }
}
