//! Mixed precision: corrections in the narrower type.
use super::own_device;
use lacuna::prelude::*;
use lacuna::solvers::residual_norm;
use lacuna::{Complex64, Error};
use std::ops::ControlFlow;

fn norm<T: Scalar>(v: &Array1<T>) -> f64 {
    v.iter().map(|v| v.modulus().powi(2)).sum::<f64>().sqrt()
}

/// The outcome of a solve, after checking that its residual is true.
fn solved<T: Scalar>(text: &str, system: LinearSystem<T>, rtol: f64) -> Outcome {
    let a = Spec::parse(text).unwrap().build::<T>().unwrap();
    let b = Array1::from_iter((0..a.rows()).map(|i| T::from_real(((i * 7) % 11) as f64 - 3.0)));
    let stop = Stop::default().rtol(rtol);
    let (x, outcome) = system.stop(stop).prepare().unwrap().solve(b.view()).unwrap();
    let [b, x] = [b, x];
    let residual = residual_norm(&a, b.as_slice().unwrap(), x.as_slice().unwrap()) / norm(&b);
    assert!((residual - outcome.true_residual).abs() <= 1e-14, "{residual:e} {outcome:?}");
    outcome
}

fn system<T: Scalar>(text: &str) -> LinearSystem<T> {
    LinearSystem::new(Spec::parse(text).unwrap().build::<T>().unwrap())
}

#[test]
fn double_accuracy_with_single_corrections() {
    fn of<T: Scalar>() {
        for (text, method, precond) in [
            ("gen:poisson2d:60x60", "cg", "none"),
            ("gen:poisson2d:60x60", "cg", "amg:coarsest=60"),
            ("gen:poisson3d:15x14x13:27", "pipelined-cg", "jacobi"),
            ("gen:convection:40x40:10", "bicgstab", "jacobi"),
            ("gen:convection:40x40:10", "gmres", "jacobi"),
            ("gen:convection:40x40:10", "auto", "auto"),
        ] {
            let make = || system::<T>(text).method(method).preconditioner(precond);
            let plain = solved(text, make(), 1e-11);
            let refined = solved(text, make().refine(true), 1e-11);
            assert!(refined.converged() && refined.true_residual <= 1e-11, "{text} {method} {refined:?}");
            // The automatic choice takes complete factors.
            assert!(method == "auto" || refined.restarts >= 2, "{refined:?}");
            assert!(
                method == "auto" || 2 * refined.iterations <= 5 * plain.iterations,
                "{} {}",
                refined.iterations,
                plain.iterations
            );
            assert_eq!(refined.history.len() as u64, refined.iterations + 1);
            assert!(refined.choices[0].starts_with("refine: corrections in "), "{:?}", refined.choices);
        }
    }
    of::<f64>();
    of::<Complex64>();
}

/// Numbers outside the range of single precision, in `A` and in `b`.
#[test]
fn far_from_one() {
    let a = Spec::parse("gen:poisson2d:20x20").unwrap().build::<f64>().unwrap();
    for (of_a, of_b) in [(600, 0), (-600, 0), (300, 300), (0, -500)] {
        let a = a.map(|v| v.scale_by_power_of_two(of_a)).unwrap();
        let b = Array1::from_elem(a.rows(), 1.0.scale_by_power_of_two(of_b));
        let stop = Stop::default().rtol(1e-11);
        let mut system = LinearSystem::new(a).refine(true).stop(stop).prepare().unwrap();
        let (x, outcome) = system.solve(b.view()).unwrap();
        assert!(
            outcome.converged() && x.iter().all(|x| x.is_finite() && *x != 0.0),
            "{of_a} {of_b} {outcome:?}"
        );
    }
}

/// Right-hand sides that are numbers of double precision, and 0 or infinite for a preconditioner in single precision.
#[test]
fn a_preconditioner_in_single_precision_is_given_numbers_of_its_range() {
    let a = Spec::parse("gen:poisson2d:20x20").unwrap().build::<f64>().unwrap();
    let b = Array1::<f64>::ones(a.rows());
    let precond = "amg:coarsest=60,precision=single";
    let mut system = LinearSystem::new(a).method("cg").preconditioner(precond).prepare().unwrap();
    let (x, first) = system.solve(b.view()).unwrap();
    for exponent in [-500, -166, -150, -130, 130, 200, 500] {
        let times = |v: &Array1<f64>| v.mapv(|v| v.scale_by_power_of_two(exponent));
        let (found, outcome) = system.solve(times(&b).view()).unwrap();
        assert!(outcome.converged() && outcome.iterations == first.iterations, "2^{exponent}: {outcome:?}");
        assert!(found == times(&x), "2^{exponent}: other bits");
    }
}

#[test]
fn what_single_precision_cannot_correct_is_told_and_x_is_no_worse_than_the_guess() {
    // A condition number of 1e12.
    let mut t = Triplets::new(30, 30);
    for i in 0..30 {
        t.push(i, i, 10f64.powf(-0.4 * i as f64));
        if i > 0 {
            t.push(i, i - 1, 0.5);
        }
    }
    let a = t.to_csr().unwrap();
    let b = Array1::<f64>::ones(30);
    let system = LinearSystem::new(a).method("gmres:restart=5").preconditioner("none");
    let stop = Stop::default().rtol(1e-14).max_iters(500);
    let mut system = system.refine(true).stop(stop).prepare().unwrap();
    let (x, outcome) = system.solve(b.view()).unwrap();
    assert!(!outcome.converged() && outcome.true_residual <= 1.0, "{outcome:?}");
    assert!(x.iter().all(|x| x.is_finite()));
}

#[test]
fn new_values_guesses_and_cancelling() {
    let a = Spec::parse("gen:poisson2d:50x50").unwrap().build::<f64>().unwrap();
    let (values, b) = (a.values().to_vec(), Array1::<f64>::ones(a.rows()));
    let stop = Stop::default().rtol(1e-11);
    let dev = own_device();
    let system = LinearSystem::new(a.clone()).refine(true).stop(stop);
    let mut system = system.on(&dev).prepare().unwrap();
    let (x, first) = system.solve(b.view()).unwrap();
    let before = dev.in_use();
    let doubled: Vec<f64> = values.iter().map(|v| 2.0 * v).collect();
    system.update_values(&doubled).unwrap();
    let (half, outcome) = system.solve(b.view()).unwrap();
    assert_eq!(outcome.iterations, first.iterations);
    assert!(x.iter().zip(&half).all(|(x, half)| *x == 2.0 * half), "a power of two changes nothing else");
    let mut guess = half.clone();
    let outcome = system.solve_into(b.view(), guess.view_mut()).unwrap();
    assert_eq!((outcome.converged(), outcome.iterations), (true, 0));
    assert_eq!(guess, half);
    assert_eq!(dev.in_use(), before);
    // Far from convergence, by thousands of iterations.
    let far = Spec::parse("gen:poisson1d:20000").unwrap().build::<f64>().unwrap();
    let (mut x, b) = (Array1::zeros(far.rows()), Array1::<f64>::ones(far.rows()));
    let mut system = LinearSystem::new(far).preconditioner("none").refine(true).prepare().unwrap();
    let mut watch = |_| ControlFlow::Break(());
    let outcome = system.solve_watched(b.view(), x.view_mut(), Some(&mut watch)).unwrap();
    assert!(outcome.reason == Reason::Cancelled && outcome.true_residual <= 1.0, "{outcome:?}");
}

#[test]
fn what_cannot_be_refined_is_refused() {
    let refused = system::<f32>("gen:poisson2d:5x5").refine(true).prepare().err().unwrap();
    assert!(refused.to_string().contains("f32 has no narrower type"), "{refused}");
    let own = |_: &mut Recorder<'_, f64>, _: &System<'_, f64>| {};
    let refused = system::<f64>("gen:poisson2d:5x5").method(own).refine(true).prepare().err().unwrap();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
}

#[test]
fn a_correction_that_fails_gives_its_reason() {
    let indefinite = Csr::<f64>::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, -1.0]).unwrap();
    let tiny = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1e-200, 1e-200]).unwrap();
    for (a, b, reason) in [(indefinite, 1.0, Reason::IndefiniteOperator), (tiny, 1e200, Reason::OutOfRange)] {
        let system = LinearSystem::new(a).method("cg").preconditioner("none").refine(true);
        let (x, outcome) = system.prepare().unwrap().solve(&Array1::from_elem(2, b)).unwrap();
        assert!(x.iter().all(|v| v.is_finite()) && outcome.reason == reason, "{outcome:?}");
    }
}

#[test]
fn rows_that_move_for_the_corrections_move_for_the_residuals() {
    // A dominant band whose rows are shifted, so that the diagonal has zeros.
    let (n, shift) = (60, 7);
    let mut triplets = Triplets::<f64>::new(n, n);
    for i in 0..n {
        let row = (i + shift) % n;
        triplets.push(row, i, 8.0);
        triplets.push(row, (i + 1) % n, -1.0);
        triplets.push(row, (i + 2) % n, 2.0);
    }
    let a = triplets.to_csr().unwrap();
    let b = Array1::from_iter((0..n).map(|i| i as f64 - 20.0));
    let outcome = LinearSystem::new(a).refine(true).prepare().unwrap().solve(&b).unwrap().1;
    assert!(outcome.converged(), "{outcome:?}");
}

#[test]
fn a_refinement_that_fails_says_that_nothing_else_is_tried() {
    // Too ill-conditioned for single precision.
    let n = 12;
    let mut triplets = Triplets::new(n, n);
    for i in 0..n {
        (0..n).for_each(|j| triplets.push(i, j, 1.0 / (1 + i + j) as f64));
    }
    let a = triplets.to_csr().unwrap();
    let b = Array1::from_iter((0..n).map(|i| (i as f64).cos()));
    for (method, noted) in [("auto", true), ("gmres", false)] {
        let system = LinearSystem::new(a.clone()).method(method).refine(true);
        let mut outcome = system.prepare().unwrap().solve(&b).unwrap().1;
        outcome.history.clear();
        assert!(!outcome.converged(), "{outcome:?}");
        let said = outcome
            .notes
            .iter()
            .any(|note| note.contains("refine tries no other method than the one chosen first"));
        assert_eq!(said, noted, "{outcome:?}");
    }
}
