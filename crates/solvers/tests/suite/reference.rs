//! Every method on the serial reference backend, in every number type.
use lacuna_engine::{Complex, Device, Reason, Reference, Scalar, WithAdjoint};
use lacuna_formats::{Csr, Triplets};
use lacuna_solvers::{
    Jacobi, METHODS, Needs, Options, Outcome, Placed, Setup, Solver, Stop, inverse_diagonal, method,
};
use std::sync::Arc;

/// A convection-diffusion matrix on an `m × m` grid; symmetric if `wind` is 0.
pub(crate) fn grid<T: Scalar>(m: usize, wind: T, shift: T) -> Csr<T> {
    let (mut row_ptr, mut col_idx, mut values) = (vec![0u32], vec![], vec![]);
    for i in 0..m * m {
        let (r, c) = (i / m, i % m);
        let mut put = |inside: bool, j: usize, v: T| {
            if inside {
                col_idx.push(j as u32);
                values.push(v);
            }
        };
        put(r > 0, i.wrapping_sub(m), -T::one());
        put(c > 0, i.wrapping_sub(1), -T::one() - wind);
        put(true, i, T::from_real(4.0) + shift);
        put(c + 1 < m, i + 1, -T::one() + wind);
        put(r + 1 < m, i + m, -T::one());
        row_ptr.push(col_idx.len() as u32);
    }
    Csr::new(m * m, m * m, row_ptr, col_idx, values).unwrap()
}

fn solve<T: Scalar>(name: &str, a: &Csr<T>, precondition: bool, stop: Stop) -> (Outcome, Vec<T>) {
    let b: Vec<T> = (0..a.rows()).map(|i| if i % 3 == 0 { T::one() } else { -T::one() }).collect();
    solve_for(&b, name, a, precondition, stop)
}

pub(crate) fn solve_for<T: Scalar>(
    b: &[T],
    name: &str,
    a: &Csr<T>,
    precondition: bool,
    stop: Stop,
) -> (Outcome, Vec<T>) {
    let dev = Device::new(Reference::new());
    let op = dev.matrix(Arc::new(a.clone())).unwrap();
    let adjoint = dev.matrix(Arc::new(a.adjoint())).unwrap();
    let diagonal = Placed::new(&dev, Box::new(Jacobi), a, *op, Setup::new()).unwrap();
    let op = WithAdjoint(&op, &adjoint);
    let m = precondition.then_some(&diagonal as &dyn lacuna_engine::LinOp<T>);
    let mut x = vec![T::zero(); a.rows()];
    let options = Options::default().restart(20);
    let mut solver = Solver::new(&dev, &op, m, &*method(name, &options).unwrap(), stop).unwrap();
    let outcome = solver.solve(b, &mut x).unwrap().clone();
    (outcome, x)
}

fn converges<T: Scalar>(wind: T, shift: T) {
    for info in METHODS {
        let wind = if info.hermitian() { T::zero() } else { wind };
        let shift = if info.hermitian() { T::from_real(shift.re()) } else { shift };
        let a = grid::<T>(17, wind, shift);
        for precondition in [false, true].into_iter().filter(|m| !*m || info.needs != Needs::Range) {
            let rtol = if T::EPSILON > 1e-10 { 1e-5 } else { 1e-10 };
            let (outcome, x) = solve(info.name, &a, precondition, Stop::default().rtol(rtol).max_iters(2000));
            assert_eq!(outcome.reason, Reason::Converged, "{} {:?} {outcome:?}", info.name, T::KIND);
            assert!(outcome.true_residual <= rtol, "{outcome:?}");
            assert_eq!(outcome.history.len() as u64, outcome.iterations + 1);
            let mut ax = vec![T::zero(); a.rows()];
            a.product(&x, &mut ax).unwrap();
            let error = (0..a.rows()).map(|i| {
                let b = if i % 3 == 0 { T::one() } else { -T::one() };
                (b - ax[i]).modulus().powi(2)
            });
            let relative = (error.sum::<f64>() / a.rows() as f64).sqrt();
            // Least-squares methods meet the tolerance for A^H r; the smallest singular value magnifies the
            // error.
            let factor = if info.least_squares() { 100.0 } else { 1.01 };
            assert!(relative <= factor * rtol + 10.0 * T::EPSILON, "{} {relative}", info.name);
        }
    }
}

#[test]
fn every_method_converges_in_every_type() {
    converges::<f64>(0.4, 0.1);
    converges::<f32>(0.4, 0.1);
    converges::<Complex<f64>>(Complex::new(0.3, 0.2), Complex::new(0.2, 0.7));
    converges::<Complex<f32>>(Complex::new(0.3, 0.2), Complex::new(0.2, 0.7));
}

#[test]
fn an_indefinite_matrix_under_cg_is_told() {
    let a = grid::<f64>(10, 0.0, -4.0);
    let b = vec![1.0; 100];
    for name in ["cg", "classical-cg"] {
        let dev = Device::new(Reference::new());
        let op = dev.matrix(Arc::new(a.clone())).unwrap();
        let method = method(name, &Options::default()).unwrap();
        let mut solver = Solver::new(&dev, &op, None, &*method, Stop::default()).unwrap();
        let outcome = solver.solve(&b, &mut vec![0.0; 100]).unwrap();
        assert_eq!(outcome.reason, Reason::IndefiniteOperator, "{outcome:?}");
    }
}

/// Iterations of a solve with Jacobi's preconditioner.
fn iterations<T: Scalar>(name: &str, a: &Csr<T>) -> u64 {
    let (outcome, _) = solve(name, a, true, Stop::default().max_iters(2000));
    assert_eq!(outcome.reason, Reason::Converged, "{name}: {outcome:?}");
    outcome.iterations
}

/// Methods that agree in exact arithmetic take equally many iterations, and those that minimise the residual
/// take no more.
#[test]
fn iterations_relate_as_theory_says() {
    let a = grid::<f64>(40, 0.0, 0.01);
    let cg = iterations("classical-cg", &a);
    for name in ["cg", "pipelined-cg", "flexible-cg", "bicg"] {
        let found = iterations(name, &a);
        assert!(found.abs_diff(cg) <= 1, "{name} {found}, classical-cg {cg}");
    }
    let minres = iterations("minres", &a);
    for (name, less) in [("cr", 0), ("qmr", 2)] {
        let found = iterations(name, &a);
        assert!(found.abs_diff(minres) <= 2 + less, "{name} {found}, minres {minres}");
    }
    assert!(minres <= cg, "minres {minres}, cg {cg}");
    // Full GMRES is optimal per product.
    let a = grid::<f64>(30, 0.7, 0.01);
    let full = iterations("gmres:restart=1000", &a);
    for (name, products) in [
        ("bicgstab", 2),
        ("bicgstab-l:degree=2", 4),
        ("bicgstab-l:degree=4", 8),
        ("idr:shadows=1", 1),
        ("idr", 1),
        ("idr:shadows=8", 1),
        ("cgs", 2),
        ("tfqmr", 2),
        ("bicg", 2),
        ("qmr", 2),
    ] {
        let found = products * iterations(name, &a);
        assert!(found + products > full && found < 5 * full, "{name} {found} products, gmres {full}");
        println!("{name} {found} {full}");
    }
}

/// A multiple of the identity, by a power of two: the first iteration finds the solution, and the rest of it may have nothing left
/// to divide by.
#[test]
fn an_iteration_that_ends_early_is_counted() {
    let a = Csr::new(16, 16, (0..17).collect(), (0..16).collect(), vec![2.0; 16]).unwrap();
    for info in METHODS.iter().filter(|info| !["chebyshev", "richardson"].contains(&info.name)) {
        let (outcome, x) = solve::<f64>(info.name, &a, false, Stop::default());
        assert_eq!((outcome.reason, outcome.iterations), (Reason::Converged, 1), "{} {outcome:?}", info.name);
        assert!(outcome.history.len() == 2 && outcome.history[0] == 1.0, "{} {outcome:?}", info.name);
        assert!(x.iter().all(|x| (x.abs() - 0.5).abs() <= 1e-8), "{}", info.name);
    }
}

/// A guess far from 1 is kept if its residual is smaller than that of 0.
#[test]
fn a_large_guess_is_kept_if_it_is_good() {
    let (small, large) = (2f64.powi(-300), 2f64.powi(300));
    let a = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, small]).unwrap();
    for info in METHODS.iter().filter(|info| !info.least_squares()) {
        let dev = &Device::new(Reference::new());
        let op = dev.matrix(Arc::new(a.clone())).unwrap();
        let op = WithAdjoint(&op, &op);
        let stop = Stop::default().max_iters(0);
        let method = method(info.name, &Options::default()).unwrap();
        let mut solver = Solver::new(dev, &op, None, &*method, stop).unwrap();
        for (guess, kept, reason) in [
            ([1.0, large], true, Reason::Converged),
            ([0.5, large], true, Reason::Limit),
            ([large, 0.0], false, Reason::Limit),
            ([f64::MAX, f64::MAX], false, Reason::Limit),
        ] {
            let mut x = guess;
            let outcome = solver.solve(&[1.0, 1.0], &mut x).unwrap();
            assert_eq!(outcome.reason, reason, "{} from {guess:?}: {outcome:?}", info.name);
            assert_eq!(x, if kept { guess } else { [0.0; 2] }, "{}: {outcome:?}", info.name);
            assert!(outcome.true_residual <= 1.0, "{} {outcome:?}", info.name);
        }
    }
}

/// Hermitian and indefinite matrices, real and complex.
#[test]
fn minres_solves_what_is_indefinite() {
    let a = grid::<f64>(17, 0.0, -1.3);
    let b = grid::<Complex<f64>>(17, Complex::new(0.0, 0.4), Complex::new(-1.3, 0.0));
    for precondition in [false, true] {
        let stop = Stop::default().rtol(1e-10).max_iters(2000);
        let [(real, _), (complex, _)] = [solve("minres", &a, precondition, stop), {
            let (o, x) = solve("minres", &b, precondition, stop);
            (o, x.into_iter().map(|v| v.re).collect())
        }];
        for outcome in [real, complex] {
            assert!(outcome.converged() && outcome.true_residual <= 1e-10, "{outcome:?}");
        }
    }
}

fn stagnates<T: Scalar>(seed: u64) {
    let a = grid::<T>(12, T::zero(), T::zero());
    let mut state = seed;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    let b: Vec<T> = (0..a.rows()).map(|_| T::from_parts(noise(), noise())).collect();
    for info in METHODS {
        let stop = Stop::default().rtol(0.0).max_iters(3000);
        let (outcome, _) = solve_for(&b, info.name, &a, !info.least_squares(), stop);
        assert_ne!(outcome.reason, Reason::Converged, "{} {outcome:?}", info.name);
        let slow = info.name == "richardson";
        let named = slow || matches!(outcome.reason, Reason::Stagnated | Reason::Breakdown(_));
        assert!(named, "{} {outcome:?}", info.name);
        assert!(outcome.true_residual < 500.0 * T::EPSILON, "{} {outcome:?}", info.name);
    }
}

#[test]
fn a_tolerance_of_zero_stagnates_rather_than_lies() {
    for seed in 0..16 {
        stagnates::<f64>(seed);
        stagnates::<f32>(seed);
        stagnates::<Complex<f64>>(seed);
        stagnates::<Complex<f32>>(seed);
    }
}

#[test]
fn a_zero_diagonal_is_named() {
    let a = grid::<f64>(3, 0.0, -4.0);
    let error = inverse_diagonal(&a).unwrap_err().to_string();
    assert!(error.contains("row 0, column 0") && error.contains("inverse of the diagonal"), "{error}");
}

#[test]
fn methods_go_by_the_names_they_are_listed_with() {
    for info in METHODS {
        assert_eq!(method::<f64>(info.name, &Options::default()).unwrap().name(), info.name);
    }
}

#[test]
fn options_in_a_name_go_before_settings() {
    let error = |text: &str| method::<f64>(text, &Options::default()).err().unwrap().to_string();
    assert!(method::<f64>("gmres:restart=7,side=left", &Options::default()).is_ok());
    assert!(error("gmres:restart=0").contains("a whole number from 1"));
    assert!(error("gmres:side=up").contains("expected one of right, left"));
    assert!(error("cg:restart=3").contains("it has no options"));
    assert!(error("gmrs").contains("expected one of cg, classical-cg"));
}

/// A step that solves the system ends the cycle: the steps after it would divide rounding errors by each other.
#[test]
fn bicgstab_l_keeps_a_solution_found_within_a_cycle() {
    let stop = Stop::default().rtol(1e-12).max_iters(50);
    for degree in 1..=8 {
        let name = format!("bicgstab-l:degree={degree}");
        // Fewer unknowns than the degree.
        for n in [1, 2, 3, 7] {
            let rows = (0..n).flat_map(|i: usize| (0..n).map(move |j| (i, j)));
            let mut all = Triplets::new(n, n);
            rows.for_each(|(i, j)| {
                all.push(i, j, if i == j { 2.0 + n as f64 } else { ((3 * i + j) % 4) as f64 / 4.0 })
            });
            let (outcome, _) = solve(&name, &all.to_csr().unwrap(), false, stop);
            assert!(outcome.converged() && outcome.iterations <= 4, "{name}, {n}: {outcome:?}");
        }
        // The preconditioner is the inverse.
        let mut all = Triplets::new(12, 12);
        (0..12).for_each(|i| all.push(i, i, 1.5 + i as f64));
        let (outcome, _) = solve(&name, &all.to_csr().unwrap(), true, stop);
        assert!(outcome.converged() && outcome.iterations == 1, "{name}: {outcome:?}");
        assert_eq!(outcome.history.len() as u64, outcome.iterations + 1);
    }
}
