//! Least squares on the reference backend, checked against the conditions that define the solutions.
use lacuna_engine::{Complex, Device, LinOp, Reason, Reference, Scalar, WithAdjoint};
use lacuna_formats::{Csr, Triplets};
use lacuna_solvers::{
    ColumnScaling, Jacobi, METHODS, Needs, Options, Outcome, Placed, Preconditioner, Setup, Solver, Stop,
    method,
};
use std::sync::Arc;

/// Numbers between −1 and 1.
struct Noise(u64);

impl Noise {
    fn real(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    fn number<T: Scalar>(&mut self) -> T {
        let re = self.real();
        T::from_parts(re, if T::KIND.is_complex() { self.real() } else { 0.0 })
    }
}

/// A few entries a row and a diagonal that keeps the columns apart.
fn matrix<T: Scalar>(rows: usize, cols: usize) -> Csr<T> {
    let (mut noise, mut t) = (Noise(3), Triplets::new(rows, cols));
    for i in 0..rows {
        t.push(i, i % cols, T::from_real(2.0));
        for _ in 0..3 {
            let j = ((noise.real() + 1.0) * 0.5 * cols as f64) as usize;
            t.push(i, j.min(cols - 1), noise.number());
        }
    }
    t.to_csr().unwrap()
}

fn solve<T: Scalar>(name: &str, a: &Csr<T>, b: &[T], rtol: f64) -> (Outcome, Vec<T>) {
    solve_with(None, name, a, b, rtol)
}

fn solve_with<T: Scalar>(
    precond: Option<Box<dyn Preconditioner<T>>>,
    name: &str,
    a: &Csr<T>,
    b: &[T],
    rtol: f64,
) -> (Outcome, Vec<T>) {
    let dev = &Device::new(Reference::new());
    let [op, adjoint] = [a.clone(), a.adjoint()].map(|a| dev.matrix(Arc::new(a)).unwrap());
    let placed = precond.map(|kind| Placed::new(dev, kind, a, *op, Setup::new()).unwrap());
    let m = placed.as_ref().map(|m| m as &dyn LinOp<T>);
    let method = method(name, &Options::default()).unwrap();
    let stop = Stop::default().rtol(rtol).max_iters(1000);
    let mut solver = Solver::new(dev, &WithAdjoint(&op, &adjoint), m, &*method, stop).unwrap();
    let mut x = vec![T::zero(); a.cols()];
    let outcome = solver.solve(b, &mut x).unwrap().clone();
    (outcome, x)
}

fn norm<T: Scalar>(v: &[T]) -> f64 {
    v.iter().map(|v| v.modulus().powi(2)).sum::<f64>().sqrt()
}

fn product<T: Scalar>(a: &Csr<T>, x: &[T]) -> Vec<T> {
    let mut y = vec![T::zero(); a.rows()];
    a.product(x, &mut y).unwrap();
    y
}

fn residual<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T]) -> Vec<T> {
    b.iter().zip(product(a, x)).map(|(b, ax)| *b - ax).collect()
}

/// `Aᴴ r = 0` defines the solution of an overdetermined system.
fn overdetermined<T: Scalar>() {
    let a = matrix::<T>(300, 60);
    let mut noise = Noise(9);
    let b: Vec<T> = (0..300).map(|_| noise.number()).collect();
    let rtol = if T::EPSILON > 1e-10 { 1e-4 } else { 1e-10 };
    let scale = norm(&product(&a.adjoint(), &b));
    for name in ["cgls", "lsqr", "lsmr"] {
        let (outcome, x) = solve(name, &a, &b, rtol);
        assert_eq!(outcome.reason, Reason::Converged, "{name} {outcome:?}");
        let left = residual(&a, &b, &x);
        assert!(norm(&left) > 0.1 * norm(&b), "there is no solution");
        let normal = norm(&product(&a.adjoint(), &left)) / scale;
        assert!(normal <= 1.01 * rtol + 50.0 * T::EPSILON, "{name} {normal:e}");
        assert!((normal - outcome.true_residual).abs() <= 50.0 * T::EPSILON, "{name} {normal:e} {outcome:?}");
        assert!(outcome.history.len() as u64 == outcome.iterations + 1 && outcome.iterations <= 70, "{name}");
    }
    // The system has no solution, and craig must report that.
    let (outcome, _) = solve("craig", &a, &b, rtol);
    assert!(!outcome.converged() && outcome.true_residual <= 1.0, "{outcome:?}");
}

/// The solution of least norm: all methods find the same one, and any other is longer.
fn underdetermined<T: Scalar>() {
    let a = matrix::<T>(60, 300);
    let mut noise = Noise(9);
    let some: Vec<T> = (0..300).map(|_| noise.number()).collect();
    let b = product(&a, &some);
    let rtol = if T::EPSILON > 1e-10 { 1e-5 } else { 1e-11 };
    let mut first: Option<Vec<T>> = None;
    for info in METHODS.iter().filter(|info| info.least_squares()) {
        let (outcome, x) = solve(info.name, &a, &b, rtol);
        assert_eq!(outcome.reason, Reason::Converged, "{} {outcome:?}", info.name);
        assert!(norm(&residual(&a, &b, &x)) <= 1e3 * rtol * norm(&b), "{}", info.name);
        assert!(norm(&x) < 0.9 * norm(&some), "{}", info.name);
        let first = first.get_or_insert(x.clone());
        let apart: Vec<T> = x.iter().zip(&*first).map(|(a, b)| *a - *b).collect();
        assert!(norm(&apart) <= 1e3 * rtol * norm(&x), "{} {:e}", info.name, norm(&apart));
    }
}

/// `Aᴴ u` is all in the direction of the step before, so that `α` vanishes.
#[test]
fn craig_says_what_vanished() {
    let mut t = Triplets::new(2, 1);
    (0..2).for_each(|i| t.push(i, 0, 1.0));
    let (outcome, x) = solve::<f64>("craig", &t.to_csr().unwrap(), &[1.0, 0.0], 1e-10);
    assert_eq!((outcome.reason, outcome.iterations), (Reason::Breakdown("alpha"), 1), "{outcome:?}");
    assert!(x[0].is_finite());
}

#[test]
fn the_residual_is_orthogonal_to_the_columns() {
    overdetermined::<f64>();
    overdetermined::<f32>();
    overdetermined::<Complex<f64>>();
    overdetermined::<Complex<f32>>();
}

#[test]
fn the_shortest_of_many_solutions_is_found() {
    underdetermined::<f64>();
    underdetermined::<f32>();
    underdetermined::<Complex<f64>>();
    underdetermined::<Complex<f32>>();
}

/// `A D`, with `D` from 1 to `spread`, in no order.
fn scaled<T: Scalar>(a: &Csr<T>, spread: f64) -> Csr<T> {
    let cols = a.cols();
    let factor = |j: usize| T::from_real(spread.powf((j * 37 % cols) as f64 / (cols - 1) as f64));
    let mut t = Triplets::new(a.rows(), cols);
    a.entries().for_each(|(i, j, v)| t.push(i, j, v * factor(j)));
    t.to_csr().unwrap()
}

/// The least-squares solution by a dense QR factorisation (modified Gram–Schmidt, twice).
fn dense<T: Scalar>(a: &Csr<T>, b: &[T]) -> Vec<T> {
    let (rows, cols) = (a.rows(), a.cols());
    let mut q = vec![vec![T::zero(); rows]; cols];
    a.entries().for_each(|(i, j, v)| q[j][i] = v);
    let dot = |u: &[T], v: &[T]| u.iter().zip(v).fold(T::zero(), |sum, (u, v)| sum + u.conj() * *v);
    let mut r = vec![vec![T::zero(); cols]; cols];
    for j in 0..cols {
        for i in (0..j).chain(0..j) {
            let h = dot(&q[i], &q[j]);
            let less: Vec<T> = q[j].iter().zip(&q[i]).map(|(w, v)| *w - h * *v).collect();
            (q[j], r[i][j]) = (less, r[i][j] + h);
        }
        r[j][j] = T::from_real(norm(&q[j]));
        let inverse = T::from_real(1.0 / norm(&q[j]));
        q[j].iter_mut().for_each(|v| *v *= inverse);
    }
    let mut x: Vec<T> = q.iter().map(|q| dot(q, b)).collect();
    for i in (0..cols).rev() {
        let sum = (i + 1..cols).fold(x[i], |sum, j| sum - r[i][j] * x[j]);
        x[i] = sum.quotient(r[i][i]);
    }
    x
}

/// `‖A (x − y)‖ / ‖A y‖`, which no scaling of the columns changes.
fn apart<T: Scalar>(a: &Csr<T>, x: &[T], y: &[T]) -> f64 {
    let difference: Vec<T> = x.iter().zip(y).map(|(x, y)| *x - *y).collect();
    norm(&product(a, &difference)) / norm(&product(a, y))
}

/// Column scaling makes the iterations those of columns of norm 1, with the same solution.
fn badly_scaled<T: Scalar>(spread: f64, rtol: f64) {
    let a = scaled(&matrix::<T>(300, 60), spread);
    let mut noise = Noise(9);
    let b: Vec<T> = (0..300).map(|_| noise.number()).collect();
    let exact = dense(&a, &b);
    let scale = norm(&product(&a.adjoint(), &b));
    for name in ["cgls", "lsqr", "lsmr"] {
        let (plain, _) = solve(name, &a, &b, rtol);
        let (outcome, x) = solve_with(Some(Box::new(ColumnScaling)), name, &a, &b, rtol);
        assert_eq!(outcome.reason, Reason::Converged, "{name} {outcome:?}");
        let (with, without) = (outcome.iterations, plain.iterations);
        assert!(3 * with <= without, "{name}: {with} iterations with scaling, {without} without");
        let normal = norm(&product(&a.adjoint(), &residual(&a, &b, &x))) / scale;
        assert!((normal - outcome.true_residual).abs() <= 50.0 * T::EPSILON, "{name} {normal:e} {outcome:?}");
        // The component of the smallest column may be wrong by the spread.
        let apart = apart(&a, &x, &exact);
        assert!(apart <= 10.0 * spread * rtol.max(10.0 * T::EPSILON), "{name} {apart:e}");
    }
}

#[test]
fn column_scaling_makes_up_for_the_scale_of_the_columns() {
    badly_scaled::<f64>(1e5, 1e-11);
    badly_scaled::<Complex<f64>>(1e5, 1e-11);
    badly_scaled::<f32>(1e2, 1e-4);
    badly_scaled::<Complex<f32>>(1e2, 1e-4);
}

/// The iterates are those of `A D` without a preconditioner, so that a solution that is not unique is the one
/// of least `‖D⁻¹ x‖`. A column of zeros is left alone.
fn substituted<T: Scalar>() {
    let mut t = Triplets::new(60, 301);
    scaled(&matrix::<T>(60, 300), 1e2).entries().for_each(|(i, j, v)| t.push(i, j, v));
    let a = t.to_csr().unwrap();
    let mut squares = vec![0.0; 301];
    a.entries().for_each(|(_, j, v)| squares[j] += v.modulus().powi(2));
    let d: Vec<f64> = squares.iter().map(|s| if *s == 0.0 { 1.0 } else { 1.0 / s.sqrt() }).collect();
    let mut t = Triplets::new(60, 301);
    a.entries().for_each(|(i, j, v)| t.push(i, j, v * T::from_real(d[j])));
    let even = t.to_csr().unwrap();
    let mut noise = Noise(9);
    let b: Vec<T> = (0..60).map(|_| noise.number()).collect();
    let rtol = if T::EPSILON > 1e-10 { 1e-4 } else { 1e-10 };
    for name in ["cgls", "lsqr", "lsmr"] {
        let (outcome, x) = solve_with(Some(Box::new(ColumnScaling)), name, &a, &b, rtol);
        let (of_even, y) = solve(name, &even, &b, rtol);
        assert!(outcome.converged() && of_even.converged(), "{name} {outcome:?} {of_even:?}");
        let y_of_x: Vec<T> = x.iter().zip(&d).map(|(x, d)| x.quotient(T::from_real(*d))).collect();
        let difference: Vec<T> = y_of_x.iter().zip(&y).map(|(x, y)| *x - *y).collect();
        assert!(norm(&difference) <= 1e3 * rtol * norm(&y), "{name} {:e}", norm(&difference) / norm(&y));
        assert!(norm(&y_of_x) <= (1.0 + 1e3 * rtol) * norm(&y) && x[300] == T::zero(), "{name}");
        let (_, shortest) = solve(name, &a, &b, rtol);
        assert!(norm(&shortest) < 0.9 * norm(&x), "{name}: another solution is shorter");
    }
}

#[test]
fn a_preconditioner_is_a_substitution() {
    substituted::<f64>();
    substituted::<f32>();
    substituted::<Complex<f64>>();
    substituted::<Complex<f32>>();
}

/// The residual of the normal equations decreases at every step of LSMR; LSQR has the iterates of CGLS.
#[test]
fn histories_are_those_of_the_papers() {
    let a = matrix::<f64>(300, 60);
    let mut noise = Noise(9);
    let b: Vec<f64> = (0..300).map(|_| noise.number()).collect();
    let (lsmr, _) = solve("lsmr", &a, &b, 1e-10);
    assert!(lsmr.history.windows(2).all(|w| w[1] <= w[0] * (1.0 + 1e-12)), "{:?}", lsmr.history);
    let [(cgls, _), (lsqr, _)] = ["cgls", "lsqr"].map(|name| solve(name, &a, &b, 1e-10));
    assert!(cgls.iterations.abs_diff(lsqr.iterations) <= 1 && lsmr.iterations <= lsqr.iterations);
    for (c, l) in cgls.history.iter().zip(&lsqr.history).take(20) {
        assert!((c / l - 1.0).abs() < 1e-4, "{c:e} {l:e}");
    }
}

#[test]
fn what_is_refused_is_named() {
    let dev = &Device::new(Reference::new());
    let op = dev.matrix(Arc::new(matrix::<f64>(5, 3))).unwrap();
    let refused = |name: &str, dev: &Device| {
        let method = method::<f64>(name, &Options::default()).unwrap();
        Solver::new(dev, &op, None, &*method, Stop::default()).err().unwrap().to_string()
    };
    assert!(refused("gmres", dev).contains("a square matrix for gmres (lsmr takes any), got"));
    assert!(refused("lsmr", dev).contains("pair it with one"));

    let a = matrix::<f64>(5, 3);
    let square = Placed::new(dev, Box::new(Jacobi), &a, *op, Setup::new()).err().unwrap().to_string();
    assert!(square.contains("`jacobi`") && square.contains("column-scaling takes any"), "{square}");
    let m = Placed::new(dev, Box::new(ColumnScaling), &a, *op, Setup::new()).unwrap();
    assert_eq!(LinOp::<f64>::shape(&m), (3, 3));
    let craig = METHODS.iter().find(|info| info.needs == Needs::Range).unwrap();
    let craig = method::<f64>(craig.name, &Options::default()).unwrap();
    let refused = Solver::new(dev, &op, Some(&m), &*craig, Stop::default()).err().unwrap().to_string();
    assert!(
        refused.contains("craig with a preconditioner") && refused.contains("lsqr take one"),
        "{refused}"
    );
    let wrong = dev.matrix(Arc::new(matrix::<f64>(5, 5))).unwrap();
    let lsqr = method::<f64>("lsqr", &Options::default()).unwrap();
    let refused = Solver::new(dev, &op, Some(&wrong), &*lsqr, Stop::default()).err().unwrap().to_string();
    assert!(refused.contains("a 3x3 preconditioner"), "{refused}");
}
