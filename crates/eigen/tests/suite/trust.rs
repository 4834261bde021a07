//! Wrong answers are found, and the matrices on which other libraries gave them have right ones, from five starts each.
use crate::eigen::{assert_found, device, diagonal, generated, laplacian, ring, turned};
use lacuna_eigen::{Check, Complete, EigenProblem, Which};
use lacuna_engine::{Error, Reason, Scalar};
use lacuna_formats::{Csr, Triplets};
use std::sync::Arc;

const SEEDS: std::ops::Range<u32> = 0..5;

/// The last pair is replaced by the next one: each pair is right, and the set is wrong.
#[test]
fn a_planted_wrong_answer_is_found() {
    let mut planted = 0;
    for (width, height) in [(20, 13), (21, 13), (22, 13), (23, 13), (24, 13), (25, 13), (26, 13), (27, 13)] {
        let a = Arc::new(generated::<f64>(&format!("gen:poisson2d:{width}x{height}")));
        for which in [Which::Smallest, Which::Largest] {
            let all = EigenProblem::new(Arc::clone(&a)).which(which).count(12).solve(&device(2)).unwrap();
            for k in 1..11 {
                // Nobody can tell one of two equal values from the other.
                if (all.values[k] - all.values[k - 1]).abs() < 1e-6 {
                    continue;
                }
                let kept: Vec<usize> = (0..k - 1).chain([k]).collect();
                let values: Vec<f64> = kept.iter().map(|i| all.values[*i]).collect();
                let vectors: Vec<_> = kept.iter().map(|i| all.vectors[*i].clone()).collect();
                let right: Vec<f64> = all.values[..k].to_vec();
                for (check, complete) in
                    [(Check::Counted, Complete::Counted), (Check::Probed, Complete::Probed)]
                {
                    let problem = || EigenProblem::new(Arc::clone(&a)).which(which).check(check);
                    let found = problem().verify(values.clone(), vectors.clone(), &device(2)).unwrap();
                    assert_eq!(
                        found.outcome.complete,
                        Complete::Missing(1),
                        "{width}x{height}, {which:?}, {k}"
                    );
                    assert!(!found.outcome.converged());
                    let found =
                        problem().verify(right.clone(), all.vectors[..k].to_vec(), &device(2)).unwrap();
                    assert_eq!(found.outcome.complete, complete, "{width}x{height}, {which:?}, {k}");
                    assert!(found.outcome.converged());
                }
                planted += 1;
            }
        }
    }
    assert!(planted >= 100, "{planted}");
}

/// No value is farther from an eigenvalue than its bound, which is the square of a small residual where values are apart.
#[test]
fn bounds_hold() {
    let exact = laplacian(29, 23);
    for (rtol, method) in [(1e-3, "lobpcg"), (1e-6, "lobpcg"), (1e-8, "auto")] {
        let a = generated::<f64>("gen:poisson2d:29x23");
        let found =
            EigenProblem::new(a).method(method).rtol(rtol).check(Check::Counted).solve(&device(2)).unwrap();
        assert_eq!(found.outcome.complete, Complete::Counted);
        for ((value, exact), bound) in found.values.iter().zip(&exact).zip(&found.outcome.bounds) {
            assert!((value - exact).abs() <= *bound, "{value} {exact} {bound:e}");
        }
        assert!(found.outcome.bounds[0] < 0.1 * found.outcome.residuals[0].max(1e-12), "{:?}", found.outcome);
    }
}

/// Pairs that are none, or not orthogonal, and those nearest to a number.
#[test]
fn pairs_from_elsewhere_are_checked() {
    let a = Arc::new(generated::<f64>("gen:poisson2d:20x13"));
    let problem = || EigenProblem::new(Arc::clone(&a));
    let found = problem().which(Which::Near(2.0)).count(4).solve(&device(1)).unwrap();
    let near = |keep: &[usize]| {
        let values = keep.iter().map(|i| found.values[*i]).collect();
        let vectors = keep.iter().map(|i| found.vectors[*i].clone()).collect();
        problem().which(Which::Near(2.0)).verify(values, vectors, &device(1)).unwrap().outcome
    };
    assert_eq!(near(&[0, 1, 2, 3]).complete, Complete::Counted);
    assert_eq!(near(&[0, 1, 3]).complete, Complete::Missing(1));
    let off = found.values.iter().map(|value| value + 1e-3).collect();
    let wrong = problem().which(Which::Near(2.0)).verify(off, found.vectors.clone(), &device(1)).unwrap();
    assert_eq!(wrong.outcome.reason, Reason::Stagnated);
    assert!(matches!(wrong.outcome.complete, Complete::Unchecked(_)));
    let twice = vec![found.vectors[0].clone(); 2];
    let twice = problem().check(Check::Off).verify(vec![found.values[0]; 2], twice, &device(1)).unwrap();
    assert!(!twice.outcome.converged() && twice.outcome.orthogonality > 0.9);
    let short = problem().verify(vec![1.0], vec![vec![1.0; 3]], &device(1)).unwrap_err();
    assert!(matches!(short, Error::Length { .. }), "{short}");
}

/// A path of many unknowns: its smallest values are tiny beside the largest.
fn path(n: usize) -> Csr<f64> {
    let mut a = Triplets::new(n, n);
    for i in 0..n {
        a.push(i, i, 2.0);
        if i > 0 {
            a.push(i, i - 1, -1.0);
            a.push(i - 1, i, -1.0);
        }
    }
    a.to_csr().unwrap()
}

/// Multiple values, once each or not at all elsewhere: spectra #144, rARPACK #6, KrylovKit #23, #38 and #90, CuPy #5024 and #6769,
/// SciPy #26112.
#[test]
fn multiple_values_are_found_from_every_start() {
    let (n, square) = (900, laplacian(31, 31));
    let round: Vec<f64> = (0..7)
        .map(|i: usize| 4.0 * (std::f64::consts::PI * i.div_ceil(2) as f64 / n as f64).sin().powi(2))
        .collect();
    for seed in SEEDS {
        for count in [5, 6] {
            for method in ["auto", "lobpcg"] {
                let problem = EigenProblem::new(ring(n, |_| 1.0)).count(count).method(method).seed(seed);
                assert_found(&problem.solve(&device(2)).unwrap(), &round[..count], 1e-9);
            }
        }
        let a = || EigenProblem::new(generated::<f64>("gen:poisson2d:31x31")).seed(seed);
        for method in ["lobpcg", "lanczos"] {
            let found = a().count(6).method(method).check(Check::Probed).solve(&device(2)).unwrap();
            assert_found(&found, &square[..6], 1e-9);
        }
        let largest: Vec<f64> = square.iter().rev().take(6).copied().collect();
        let found = a().count(6).which(Which::Largest).solve(&device(2)).unwrap();
        assert_found(&found, &largest, 1e-7);
        let same = EigenProblem::new(diagonal::<f64>(&vec![3.0; 700])).count(4).seed(seed);
        assert_found(&same.solve(&device(2)).unwrap(), &[3.0; 4], 1e-12);
        let cube = EigenProblem::new(generated::<f64>("gen:poisson3d:12x12x12")).count(4).seed(seed);
        let cube = cube.method("lobpcg").check(Check::Probed).solve(&device(2)).unwrap();
        assert!((cube.values[1] - cube.values[3]).abs() < 1e-8, "{:?}", cube.values);
    }
}

/// Conditions from 1e3 to 1e12, in which SciPy's `lobpcg` ends at errors of 3 % (#16408, #10718).
#[test]
fn wide_spectra_are_found_from_every_start() {
    fn of<T: Scalar>(decades: f64, seed: u32) {
        let n = 640;
        let values: Vec<f64> = (0..n).map(|i| 10f64.powf(decades * i as f64 / (n - 1) as f64)).collect();
        let found = EigenProblem::new(diagonal::<T>(&values)).count(3).method("lobpcg").seed(seed);
        let found = found.preconditioner("jacobi").solve(&device(2)).unwrap();
        // Rounding of the largest value is what the smallest can be told to.
        let off = (1e3 * T::EPSILON * values[n - 1]).max(1e-6);
        assert_found(&found, &values[..3], off);
    }
    for seed in SEEDS {
        for decades in [3.0, 6.0] {
            of::<f32>(decades, seed);
        }
        for decades in [3.0, 6.0, 9.0, 12.0] {
            of::<f64>(decades, seed);
        }
    }
}

/// Mikota's pair, whose values are 1, 4, 9, …; singular and indefinite masses; a long path; complex twins; n − 1 of n.
#[test]
fn robust_cases_have_a_right_answer_or_a_right_reason() {
    let n = 600;
    let (mut k, mut m) = (Triplets::new(n, n), Triplets::new(n, n));
    for i in 0..n {
        m.push(i, i, 1.0 / (i + 1) as f64);
        k.push(i, i, (2 * (n - i) - 1) as f64);
        if i + 1 < n {
            k.push(i, i + 1, -((n - i - 1) as f64));
            k.push(i + 1, i, -((n - i - 1) as f64));
        }
    }
    let (k, m) = (Arc::new(k.to_csr().unwrap()), Arc::new(m.to_csr().unwrap()));
    let squares: Vec<f64> = (1..=6).map(|i| f64::from(i * i)).collect();
    for seed in SEEDS {
        let mikota =
            EigenProblem::new(Arc::clone(&k)).mass(Arc::clone(&m)).seed(seed).solve(&device(2)).unwrap();
        assert_found(&mikota, &squares, 1e-5);
        let long = EigenProblem::new(path(20_000)).count(3).seed(seed).solve(&device(2)).unwrap();
        let value = |i: u32| 4.0 * (std::f64::consts::PI * f64::from(i) / 40_002.0).sin().powi(2);
        assert_found(&long, &[value(1), value(2), value(3)], 1e-13);
        let twin = EigenProblem::new(turned(&generated("gen:poisson2d:24x23"))).count(5).seed(seed);
        assert_found(&twin.method("lobpcg").solve(&device(2)).unwrap(), &laplacian(24, 23)[..5], 1e-8);
        // Seven parts of equal size: 0 seven times.
        let parts = ring(700, |i| if i % 100 == 99 { 0.0 } else { 1.0 });
        let zeros = EigenProblem::new(parts).count(7).seed(seed).solve(&device(2)).unwrap();
        assert_found(&zeros, &[0.0; 7], 1e-9);
    }
    let most =
        EigenProblem::new(generated::<f64>("gen:poisson2d:12x11")).count(131).solve(&device(1)).unwrap();
    assert_found(&most, &laplacian(12, 11)[..131], 1e-12);
    let strict =
        EigenProblem::new(generated::<f64>("gen:poisson2d:31x31")).rtol(1e-17).solve(&device(2)).unwrap();
    assert!(strict.outcome.by_rounding.iter().all(|by| *by), "{:?}", strict.outcome);
    let dependent = EigenProblem::new(generated::<f64>("gen:poisson2d:31x31")).method("lobpcg");
    let dependent = dependent.start(vec![vec![1.0; 961]; 6]).solve(&device(2)).unwrap();
    assert_found(&dependent, &laplacian(31, 31)[..6], 1e-9);
}
