//! Eigenvalues against closed forms and dense computations.
use lacuna_cpu::{Cpu, CpuOptions};
use lacuna_eigen::{Check, Complete, Eigen, EigenOutcome, EigenProblem, Small, Which};
use lacuna_engine::{Complex32, Complex64, Device, Double, Error, Reason, Scalar};
use lacuna_formats::{Csr, Triplets};
use lacuna_io::Spec;
use std::f64::consts::PI;
use std::ops::ControlFlow;
use std::sync::Arc;

pub(crate) fn device(threads: usize) -> Device {
    Device::new(Cpu::with(CpuOptions::default().threads(threads)).unwrap())
}

pub(crate) fn generated<T: Scalar>(name: &str) -> Csr<T> {
    Spec::parse(name).unwrap().build::<T>().unwrap()
}

/// The eigenvalues of the five-point Laplacian of `gen:poisson2d`, from the smallest on.
pub(crate) fn laplacian(width: usize, height: usize) -> Vec<f64> {
    let along = |n: usize, i: usize| 4.0 * (PI * (i + 1) as f64 / (2 * (n + 1)) as f64).sin().powi(2);
    let mut values: Vec<f64> =
        (0..width * height).map(|i| along(width, i % width) + along(height, i / width)).collect();
    values.sort_by(f64::total_cmp);
    values
}

pub(crate) fn diagonal<T: Scalar>(values: &[f64]) -> Csr<T> {
    let n = values.len();
    let mut a = Triplets::new(n, n);
    values.iter().enumerate().for_each(|(i, v)| a.push(i, i, T::from_real(*v)));
    a.to_csr().unwrap()
}

/// The matrix with another phase for each unknown, which changes no eigenvalue.
pub(crate) fn turned(a: &Csr<f64>) -> Csr<Complex64> {
    let phase = |i: usize| Complex64::from_polar(1.0, 0.7 * i as f64);
    let mut turned = Triplets::new(a.rows(), a.cols());
    for (i, j, v) in a.entries() {
        // Exactly Hermitian.
        let entry =
            if i <= j { phase(i).conj() * phase(j) * v } else { (phase(j).conj() * phase(i) * v).conj() };
        turned.push(i, j, if i == j { Complex64::new(v, 0.0) } else { entry });
    }
    turned.to_csr().unwrap()
}

#[track_caller]
pub(crate) fn assert_found<T: Scalar>(found: &Eigen<T>, expected: &[f64], off: f64) {
    let outcome = &found.outcome;
    assert!(outcome.converged(), "{} {:?} {outcome:#?}", found.values.len(), found.values);
    assert_eq!(found.values.len(), expected.len());
    for (value, expected) in found.values.iter().zip(expected) {
        assert!((value - expected).abs() <= off, "{:?} where {expected} belongs", found.values);
    }
}

fn random<W: Double>(n: usize) -> Small<W> {
    let entry = |i: usize, j: usize| {
        let v = lacuna_solvers::hashed(i * n + j, 3);
        W::from_parts(v, if i == j { 0.0 } else { lacuna_solvers::hashed(i * n + j, 4) })
    };
    Small::of(n, n, |i, j| if i >= j { entry(i, j) } else { entry(j, i).conj() })
}

fn small<W: Double>() {
    for n in [1, 2, 3, 10, 60] {
        let a = random::<W>(n);
        let (values, vectors) = a.clone().hermitian_eigen().unwrap();
        assert!(values.windows(2).all(|pair| pair[0] <= pair[1]));
        let (image, product) = (a.times(&vectors), vectors.adjoint_times(&vectors));
        for (j, value) in values.iter().enumerate() {
            for i in 0..n {
                let off = image.at(i, j) - vectors.at(i, j) * W::from_real(*value);
                assert!(off.modulus() < 1e-13 * n as f64, "{n}: {off}");
                let identity = if i == j { 1.0 } else { 0.0 };
                assert!((product.at(i, j) - W::from_real(identity)).modulus() < 1e-13 * n as f64);
            }
        }
    }
    let nan = Small::of(3, 3, |_, _| W::from_real(f64::NAN));
    assert!(nan.hermitian_eigen().is_err());
    let (values, _) = Small::of(4, 4, |_, _| W::from_real(1e-200)).hermitian_eigen().unwrap();
    assert!((values[3] - 4e-200).abs() < 1e-214);
}

#[test]
fn small_matrices_are_taken_apart() {
    small::<f64>();
    small::<Complex64>();
}

fn smallest<T: Scalar>(off: f64) {
    for method in ["lobpcg", "auto"] {
        let problem = EigenProblem::new(generated::<T>("gen:poisson2d:40x40")).method(method);
        let found = problem.solve(&device(2)).unwrap();
        assert_found(&found, &laplacian(40, 40)[..6], off);
        assert_eq!(found.outcome.complete, Complete::Counted);
        assert_eq!(found.outcome.preconditionings > 0, method == "lobpcg", "{:?}", found.outcome.choices);
    }
}

#[test]
fn the_smallest_of_a_square_are_all_found() {
    smallest::<f64>(1e-9);
    smallest::<f32>(1e-4);
    smallest::<Complex64>(1e-9);
    smallest::<Complex32>(1e-4);
}

/// The Laplacian of a ring, some of whose edges are weak: 0 is an eigenvalue.
pub(crate) fn ring(n: usize, weight: impl Fn(usize) -> f64) -> Csr<f64> {
    let mut a = Triplets::new(n, n);
    for i in 0..n {
        let (next, w) = ((i + 1) % n, weight(i));
        for (i, j, v) in [(i, i, w), (next, next, w), (i, next, -w), (next, i, -w)] {
            a.push(i, j, v);
        }
    }
    a.to_csr().unwrap()
}

#[test]
fn the_smallest_of_a_singular_matrix_come_from_factors() {
    let n = 700;
    let problem = EigenProblem::new(ring(n, |_| 1.0)).count(5);
    let found = problem.solve(&device(2)).unwrap();
    let value = |i: usize| 4.0 * (PI * i as f64 / n as f64).sin().powi(2);
    assert_found(&found, &[0.0, value(1), value(1), value(2), value(2)], 1e-11);
    assert_eq!((found.outcome.complete, found.outcome.preconditionings), (Complete::Counted, 0));
}

#[test]
fn a_block_that_takes_too_long_hands_over_to_factors() {
    // Beside them, a block is expected to be faster.
    let problem = EigenProblem::new(ring(30_000, |i| 1e-6 + (i % 2) as f64)).count(2);
    let found = problem.solve(&device(2)).unwrap();
    let outcome = &found.outcome;
    assert!(outcome.converged() && outcome.complete == Complete::Counted, "{outcome:#?}");
    assert!(outcome.choices.iter().any(|choice| choice.starts_with("method lanczos")), "{outcome:#?}");
}

#[test]
fn the_largest_of_a_square_are_all_found() {
    let expected: Vec<f64> = laplacian(40, 40).into_iter().rev().collect();
    for check in [Check::Counted, Check::Probed] {
        for (method, count) in [("lanczos", 7), ("lobpcg", 7), ("lanczos", 20)] {
            let problem = EigenProblem::new(generated::<f64>("gen:poisson2d:40x40"));
            let problem = problem.which(Which::Largest).count(count).method(method).check(check);
            let found = problem.solve(&device(2)).unwrap();
            assert_found(&found, &expected[..count], 1e-6);
            let complete = if check == Check::Counted { Complete::Counted } else { Complete::Probed };
            assert_eq!(found.outcome.complete, complete, "{method} {count}");
        }
    }
}

#[test]
fn those_near_a_number_are_found_on_both_sides() {
    let a = generated::<f64>("gen:poisson2d:30x31");
    let mut expected = laplacian(30, 31);
    for sigma in [0.0, 2.3, 4.01, -1.0] {
        expected.sort_by(|a, b| (a - sigma).abs().total_cmp(&(b - sigma).abs()));
        let found =
            EigenProblem::new(a.clone()).which(Which::Near(sigma)).count(5).solve(&device(2)).unwrap();
        // Two may be equally near.
        let mut found = found;
        found.values.sort_by(f64::total_cmp);
        let mut nearest = expected[..5].to_vec();
        nearest.sort_by(f64::total_cmp);
        assert_found(&found, &nearest, 1e-9);
        assert_eq!(found.outcome.complete, Complete::Counted, "near {sigma}: {:?}", found.outcome);
    }
    // An eigenvalue itself.
    let values: Vec<f64> = (0..600).map(|i| i as f64).collect();
    let found = EigenProblem::new(diagonal::<f64>(&values)).which(Which::Near(300.0)).count(3);
    let found = found.solve(&device(2)).unwrap();
    let mut three = found.values.clone();
    three.sort_by(f64::total_cmp);
    assert!((three[0] - 299.0).abs() < 1e-6 && (three[2] - 301.0).abs() < 1e-6, "{found:?}");
}

#[test]
fn complex_matrices_have_the_values_of_their_real_twins() {
    let a = turned(&generated("gen:poisson2d:30x30"));
    let found = EigenProblem::new(a.clone()).count(5).preconditioner("jacobi").solve(&device(2)).unwrap();
    assert_found(&found, &laplacian(30, 30)[..5], 1e-8);
    let largest: Vec<f64> = laplacian(30, 30).into_iter().rev().take(4).collect();
    let found = EigenProblem::new(a).count(4).which(Which::Largest).solve(&device(2)).unwrap();
    assert_found(&found, &largest, 1e-7);
}

#[test]
fn a_mass_matrix_weighs() {
    let a = generated::<f64>("gen:poisson2d:25x24");
    let n = a.rows();
    let mut mass = Triplets::new(n, n);
    for i in 0..n {
        mass.push(i, i, 4.0 + (i % 7) as f64);
        if i + 1 < n {
            mass.push(i, i + 1, 1.0);
            mass.push(i + 1, i, 1.0);
        }
    }
    let mass = mass.to_csr().unwrap();
    let problem = || EigenProblem::new(a.clone()).mass(mass.clone()).count(4);
    for which in [Which::Smallest, Which::Largest] {
        let dense = problem().method("dense").which(which).solve(&device(1)).unwrap();
        assert!(dense.outcome.converged(), "{:?}", dense.outcome);
        let found = problem().method("lobpcg").which(which).solve(&device(2)).unwrap();
        assert_found(&found, &dense.values, 1e-8);
        assert_eq!(found.outcome.complete, Complete::Counted);
    }
    for sigma in [0.0, 0.3] {
        let near =
            |method: &str| problem().which(Which::Near(sigma)).method(method).solve(&device(2)).unwrap();
        let (dense, found) = (near("dense"), near("lanczos"));
        assert_found(&found, &dense.values, 1e-9);
        assert_eq!(found.outcome.complete, Complete::Counted);
    }
    // Of half rank: there are eigenvalues for these unknowns alone.
    let half = diagonal::<f64>(&(0..n).map(|i| (i % 2) as f64).collect::<Vec<_>>());
    let found = EigenProblem::new(a.clone()).mass(half).which(Which::Near(0.0)).count(4);
    let found = found.method("lanczos").check(Check::Off).solve(&device(2)).unwrap();
    assert!(found.outcome.converged() && found.values[0] > 0.0, "{found:?}");
    let indefinite = mass.minus(&diagonal(&vec![9.0; n])).unwrap();
    for method in ["lobpcg", "dense"] {
        let refused = EigenProblem::new(a.clone()).mass(indefinite.clone()).method(method).solve(&device(1));
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{method}");
    }
}

#[test]
fn copies_are_not_missed() {
    // Five parts that are equal: every value five times.
    let part = laplacian(11, 11);
    let values: Vec<f64> = (0..5).flat_map(|_| part.clone()).collect();
    let expected: Vec<f64> = (0..12).map(|i| part[i / 5]).collect();
    for (method, precond) in [("lanczos", "none"), ("lobpcg", "none"), ("lobpcg", "jacobi")] {
        for check in [Check::Counted, Check::Probed] {
            let problem = EigenProblem::new(diagonal::<f64>(&values)).count(12).check(check);
            let found = problem.method(method).preconditioner(precond).solve(&device(2)).unwrap();
            assert_found(&found, &expected, 1e-7);
        }
    }
}

#[test]
fn odd_matrices_have_an_answer() {
    let same = EigenProblem::new(diagonal::<f64>(&[3.0; 600])).count(4).solve(&device(2)).unwrap();
    assert_found(&same, &[3.0; 4], 1e-12);
    let same =
        EigenProblem::new(diagonal::<f64>(&[3.0; 600])).count(4).which(Which::Largest).solve(&device(2));
    assert_found(&same.unwrap(), &[3.0; 4], 1e-12);
    let zero = EigenProblem::new(diagonal::<f64>(&[0.0; 600])).count(2).solve(&device(2)).unwrap();
    assert_eq!(zero.values, [0.0; 2]);
    let one = EigenProblem::new(diagonal::<f64>(&[-7.0])).count(1).solve(&device(1)).unwrap();
    assert_found(&one, &[-7.0], 0.0);
    let all = EigenProblem::new(generated::<f64>("gen:poisson2d:5x5")).count(25).solve(&device(1)).unwrap();
    assert_found(&all, &laplacian(5, 5), 1e-13);
    assert_eq!(all.outcome.complete, Complete::All);
    // A condition of 1e10.
    let values: Vec<f64> = (0..700).map(|i| 10f64.powf(10.0 * i as f64 / 699.0)).collect();
    let wide = EigenProblem::new(diagonal::<f64>(&values)).count(3).solve(&device(2)).unwrap();
    assert_found(&wide, &values[..3], 1e-4);
}

/// A positive diagonal does not make a matrix definite: its multilevel preconditioner leads nowhere.
#[test]
fn the_smallest_of_an_indefinite_matrix_are_found_without_a_preconditioner() {
    let mut a = Triplets::new(625, 625);
    generated::<f64>("gen:poisson2d:25x25").entries().for_each(|(i, j, v)| a.push(i, j, v));
    (0..625).for_each(|i| a.push(i, i, -3.0));
    let a = Arc::new(a.to_csr().unwrap());
    let expected: Vec<f64> = laplacian(25, 25).iter().take(4).map(|value| value - 3.0).collect();
    for (method, why) in [("auto", "is not semidefinite"), ("lobpcg", "without one")] {
        let found = EigenProblem::new(Arc::clone(&a)).count(4).method(method).solve(&device(2)).unwrap();
        assert_found(&found, &expected, 1e-8);
        let EigenOutcome { choices, notes, .. } = &found.outcome;
        assert!(choices.iter().chain(notes).any(|line| line.contains(why)), "{choices:?} {notes:?}");
    }
}

#[test]
fn a_search_can_be_cut_short() {
    let problem = || EigenProblem::new(generated::<f64>("gen:poisson2d:40x40")).preconditioner("none");
    let limited = problem().max_iters(3).solve(&device(2)).unwrap();
    assert_eq!(limited.outcome.reason, Reason::Limit);
    assert_eq!((limited.values.len(), limited.vectors.len()), (6, 6));
    assert!(limited.outcome.converged.iter().any(|met| !met));
    let mut calls = 0;
    let mut watch = |_| {
        calls += 1;
        if calls == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let cancelled = problem().solve_watched(&device(2), &mut watch).unwrap();
    assert_eq!(cancelled.outcome.reason, Reason::Cancelled);
    let out_of_reach = problem().rtol(0.0).solve(&device(2)).unwrap();
    assert!(out_of_reach.outcome.by_rounding.iter().all(|by| *by));
}

#[test]
fn what_is_wrong_is_said() {
    let a = || EigenProblem::new(generated::<f64>("gen:poisson2d:30x30"));
    let refused = |problem: EigenProblem<f64>| problem.solve(&device(1)).unwrap_err().to_string();
    assert!(refused(a().count(0)).contains("expected 1 to 900 eigenvalues, got 0"));
    assert!(refused(a().count(901)).contains("got 901"));
    assert!(refused(a().method("arnoldi")).contains("expected auto or one of lobpcg, lanczos, dense"));
    assert!(refused(a().rtol(f64::NAN)).contains("rtol"));
    assert!(refused(a().which(Which::Near(f64::INFINITY))).contains("finite"));
    assert!(refused(a().start(vec![vec![1.0; 3]])).contains("900"));
    assert!(refused(a().mass(diagonal(&[1.0; 4]))).contains("mass"));
    assert!(refused(a().which(Which::Near(1.0)).method("lobpcg")).contains("lanczos"));
    assert!(refused(a().mass(diagonal(&[1.0; 900])).method("lanczos")).contains("near a number"));
    let unsymmetric = EigenProblem::new(generated::<f64>("gen:convection:30x30"));
    assert!(matches!(unsymmetric.solve(&device(1)), Err(Error::Entry { .. })));
}

#[test]
fn bits_do_not_depend_on_threads() {
    let bits = |threads: usize| {
        let a = generated::<f64>("gen:poisson2d:45x44");
        let mut bits = Vec::new();
        for (which, method) in
            [(Which::Smallest, "lobpcg"), (Which::Largest, "lanczos"), (Which::Near(1.0), "lanczos")]
        {
            let found = EigenProblem::new(a.clone()).which(which).method(method).count(4);
            let found = found.check(Check::Probed).solve(&device(threads)).unwrap();
            bits.extend(found.values.iter().map(|v| v.to_bits()));
            bits.extend(found.vectors.iter().flatten().map(|v| v.to_bits()));
        }
        bits
    };
    let one = bits(1);
    assert!(bits(2) == one && bits(3) == one);
}

#[test]
fn a_start_that_is_near_saves_iterations() {
    let a = generated::<f64>("gen:poisson2d:40x40");
    let problem = || EigenProblem::new(a.clone()).method("lobpcg").check(Check::Off);
    let cold = problem().solve(&device(2)).unwrap();
    let warm = problem().start(cold.vectors.clone()).solve(&device(2)).unwrap();
    assert!(warm.outcome.converged() && 2 * warm.outcome.iterations < cold.outcome.iterations);
    let expected = laplacian(40, 40);
    // New values, whichever way is taken.
    for method in ["auto", "lobpcg"] {
        let mut prepared = EigenProblem::new(a.clone()).count(5).method(method).prepare(&device(2));
        for factor in [1.0, 1.01, 0.99] {
            prepared.update(a.scaled(factor).unwrap()).unwrap();
            let scaled: Vec<f64> = expected[..5].iter().map(|value| factor * value).collect();
            assert_found(&prepared.solve().unwrap(), &scaled, 1e-9);
        }
        assert!(prepared.update(diagonal::<f64>(&[1.0; 7])).is_err());
        prepared.update_mass(diagonal::<f64>(&vec![2.0; 1600])).unwrap();
        let halved: Vec<f64> = expected[..5].iter().map(|value| 0.495 * value).collect();
        assert_found(&prepared.solve().unwrap(), &halved, 1e-9);
    }
}
