//! The test of the maximum norm on the serial reference backend.
use super::reference::{grid, solve_for};
use lacuna_engine::{Complex, Device, Error, Reason, Reference, Scalar};
use lacuna_solvers::{METHODS, Needs, Norm, Options, Outcome, Solver, Stop, max_norm, method, residual};
use std::sync::Arc;

/// A right-hand side whose residuals are uneven: a few elements are large.
fn uneven<T: Scalar>(n: usize) -> Vec<T> {
    (0..n).map(|i| T::from_parts(if i % 37 == 5 { 50.0 } else { 1.0 / (1.0 + i as f64) }, 0.5)).collect()
}

/// `‖b − A x‖_∞ / ‖b‖_∞`, and the same from the outcome, which must agree up to rounding.
fn largest<T: Scalar>(a: &lacuna_formats::Csr<T>, b: &[T], x: &[T], outcome: &Outcome) -> f64 {
    let found = residual(a, b, x).largest;
    let size = max_norm(b);
    let slack = 200.0 * T::EPSILON * size;
    assert!((found - outcome.max_residual).abs() <= slack, "{found:e} {outcome:?}");
    assert!((found - outcome.relative_max_residual * size).abs() <= slack, "{found:e} {outcome:?}");
    found / size
}

fn every_method<T: Scalar>(wind: T) {
    for info in METHODS.iter().filter(|info| !matches!(info.needs, Needs::Nothing | Needs::Range)) {
        let a = grid::<T>(15, if info.hermitian() { T::zero() } else { wind }, T::from_real(0.3));
        let (b, rtol) = (uneven::<T>(a.rows()), if T::EPSILON > 1e-10 { 1e-3 } else { 1e-8 });
        for precondition in [false, true] {
            let stop = Stop::default().rtol(rtol).max_iters(3000).norm(Norm::Max);
            let (outcome, x) = solve_for(&b, info.name, &a, precondition, stop);
            assert_eq!(outcome.reason, Reason::Converged, "{} {outcome:?}", info.name);
            assert_eq!((outcome.norm, outcome.target), (Norm::Max, rtol));
            let found = largest(&a, &b, &x, &outcome);
            assert!(found <= rtol * (1.0 + 1e3 * T::EPSILON), "{} {found:e} {outcome:?}", info.name);
            // No later than the 2-norm is as small, which is enough for certain; but a restart may cost some.
            let size = b.iter().map(|v| v.modulus().powi(2)).sum::<f64>().sqrt();
            let stop = Stop::default().rtol(0.5 * rtol * max_norm(&b) / size).max_iters(3000);
            let (certain, _) = solve_for(&b, info.name, &a, precondition, stop);
            let most = certain.iterations + if outcome.restarts > 0 { certain.iterations } else { 0 };
            assert!(outcome.iterations <= most, "{} {outcome:?} {certain:?}", info.name);
        }
    }
}

#[test]
fn every_method_meets_it() {
    every_method::<f64>(0.4);
    every_method::<f32>(0.4);
    every_method(Complex::<f64>::new(0.3, 0.1));
}

#[test]
fn a_method_that_has_the_residual_stops_in_the_iteration_that_meets_it() {
    for name in
        ["cg", "classical-cg", "bicgstab", "bicg", "cr", "idr", "qmr", "cgs", "richardson", "chebyshev"]
    {
        let a = grid::<f64>(13, 0.0, 0.5);
        let b = uneven::<f64>(a.rows());
        let stop = Stop::default().rtol(1e-5).max_iters(3000).norm(Norm::Max);
        let (outcome, x) = solve_for(&b, name, &a, false, stop);
        assert!(outcome.converged() && outcome.restarts == 0, "{name} {outcome:?}");
        assert!(largest(&a, &b, &x, &outcome) <= 1e-5 && outcome.iterations > 3, "{name} {outcome:?}");
        // One iteration earlier it is not met: the limit ends a solve that goes the same way.
        let (before, y) = solve_for(&b, name, &a, false, stop.max_iters(outcome.iterations - 1));
        assert_eq!((before.reason, before.iterations), (Reason::Limit, outcome.iterations - 1), "{name}");
        assert_eq!(before.history[..], outcome.history[..before.history.len()], "{name}");
        assert!(largest(&a, &b, &y, &before) > 1e-5 || before.true_residual > 1.0, "{name} {before:?}");
    }
}

#[test]
fn an_absolute_tolerance_is_one_of_each_row() {
    let a = grid::<f64>(13, 0.4, 0.1);
    for scale in [1.0, 1e-120, 1e150] {
        let b: Vec<f64> = uneven::<f64>(a.rows()).iter().map(|v| v * scale).collect();
        for name in ["bicgstab", "gmres", "tfqmr"] {
            let stop = Stop::default().rtol(0.0).atol(1e-4 * scale).max_iters(3000).norm(Norm::Max);
            let (outcome, x) = solve_for(&b, name, &a, true, stop);
            let found = residual(
                &a,
                &b.iter().map(|v| v / scale).collect::<Vec<_>>(),
                &x.iter().map(|v| v / scale).collect::<Vec<_>>(),
            );
            assert!(
                outcome.converged() && found.largest <= 1e-4 * (1.0 + 1e-9),
                "{name} {found:?} {outcome:?}"
            );
            assert!(
                (outcome.max_residual / scale / found.largest - 1.0).abs() < 1e-6,
                "{name} {found:?} {outcome:?}"
            );
            assert!((outcome.target * max_norm(&b) / (1e-4 * scale) - 1.0).abs() < 1e-12, "{outcome:?}");
        }
    }
}

#[test]
fn zeros_and_exact_guesses_meet_it_at_once() {
    let a = grid::<f64>(5, 0.0, 0.5);
    let stop = Stop::default().rtol(1e-10).norm(Norm::Max);
    let (outcome, x) = solve_for(&[0.0; 25], "cg", &a, false, stop);
    assert!(outcome.converged() && x == vec![0.0; 25]);
    assert_eq!((outcome.max_residual, outcome.relative_max_residual), (0.0, 0.0));
    let identity = grid::<f64>(1, 0.0, -3.0);
    let (outcome, x) = solve_for(&[2.0], "bicgstab", &identity, false, stop.rtol(0.0));
    assert!(outcome.converged() && x == [2.0] && outcome.max_residual == 0.0, "{outcome:?}");
}

#[test]
fn what_does_not_converge_says_so_in_the_norm_of_the_test() {
    let a = grid::<f64>(13, 0.4, 0.1);
    let b = uneven::<f64>(a.rows());
    let stop = Stop::default().rtol(1e-10).max_iters(4).norm(Norm::Max);
    let (outcome, x) = solve_for(&b, "bicgstab", &a, false, stop);
    let error = outcome.ok().unwrap_err();
    assert_eq!(
        (error.reason, error.residual, error.target),
        (Reason::Limit, outcome.relative_max_residual, 1e-10)
    );
    largest(&a, &b, &x, &outcome);
}

#[test]
fn least_squares_are_refused() {
    let dev = Device::new(Reference::new());
    let a = dev.matrix(Arc::new(grid::<f64>(4, 0.0, 0.5))).unwrap();
    let lsmr = method::<f64>("lsmr", &Options::default()).unwrap();
    let made = Solver::new(&dev, &a, None, &*lsmr, Stop::default().norm(Norm::Max));
    assert!(matches!(made.err(), Some(Error::Unsupported { .. })));
}
