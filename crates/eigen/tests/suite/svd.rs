//! Singular values against closed forms and dense computations.
use lacuna_cpu::{Cpu, CpuOptions};
use lacuna_eigen::{Check, Complete, Extreme, Small, Svd, SvdProblem};
use lacuna_engine::{Complex32, Complex64, Device, Double, Error, Reason, Scalar};
use lacuna_formats::{Csr, Triplets};
use lacuna_io::Spec;

fn device(threads: usize) -> Device {
    Device::new(Cpu::with(CpuOptions::default().threads(threads)).unwrap())
}

/// Rows of hashed entries, five each.
fn random<T: Scalar>(rows: usize, cols: usize) -> Csr<T> {
    let mut a = Triplets::new(rows, cols);
    for i in 0..rows {
        for k in 0..5 {
            let v = |k| lacuna_solvers::hashed(i, 10 + k);
            a.push(i, (7 * i + 31 * k * k) % cols, T::from_parts(v(2 * k), v(2 * k + 1)));
        }
    }
    a.to_csr().unwrap()
}

/// `σ` on the diagonal of a matrix that is not square.
fn diagonal(values: &[f64], rows: usize, cols: usize) -> Csr<f64> {
    let mut a = Triplets::new(rows, cols);
    values.iter().enumerate().for_each(|(i, v)| a.push(i, i, *v));
    a.to_csr().unwrap()
}

#[track_caller]
fn assert_found<T: Scalar>(found: &Svd<T>, expected: &[f64], off: f64) {
    assert!(found.outcome.converged(), "{:?} {:#?}", found.values, found.outcome);
    assert_eq!(found.values.len(), expected.len());
    for (value, expected) in found.values.iter().zip(expected) {
        assert!((value - expected).abs() <= off, "{:?} where {expected} belongs", found.values);
    }
}

fn small<W: Double>() {
    for (rows, cols) in [(1, 1), (7, 7), (40, 13)] {
        let entry = |i: usize, j: usize| {
            W::from_parts(lacuna_solvers::hashed(i, j), lacuna_solvers::hashed(i, j + 50))
        };
        // The last column repeats the first.
        let a = Small::of(rows, cols, |i, j| if j + 1 == cols { entry(i, 0) } else { entry(i, j) });
        let svd = a.clone().svd().unwrap();
        assert!(svd.values.windows(2).all(|pair| pair[0] >= pair[1]));
        assert!(cols == 1 || svd.values[cols - 1] == 0.0, "{:?}", svd.values);
        let product = Small::of(rows, cols, |i, j| {
            let terms = (0..cols)
                .map(|k| svd.left.at(i, k) * W::from_real(svd.values[k]) * svd.right.at(j, k).conj());
            terms.fold(W::zero(), |sum, term| sum + term)
        });
        let identities = [svd.left.adjoint_times(&svd.left), svd.right.adjoint_times(&svd.right)];
        for j in 0..cols {
            for i in 0..rows {
                assert!((product.at(i, j) - a.at(i, j)).modulus() < 1e-13 * rows as f64);
            }
            for (i, one) in (0..cols).flat_map(|i| identities.iter().map(move |one| (i, one))) {
                let expected = W::from_real(if i == j { 1.0 } else { 0.0 });
                assert!((one.at(i, j) - expected).modulus() < 1e-13 * rows as f64);
            }
        }
    }
    assert!(Small::<W>::zeros(2, 3).svd().is_err());
    assert!(Small::of(2, 2, |_, _| W::from_real(f64::NAN)).svd().is_err());
    assert_eq!(Small::<W>::zeros(3, 2).svd().unwrap().values, [0.0; 2]);
}

#[test]
fn small_matrices_are_taken_apart() {
    small::<f64>();
    small::<Complex64>();
}

fn largest<T: Scalar>(off: f64) {
    for (rows, cols) in [(420, 210), (210, 420)] {
        let a = random::<T>(rows, cols);
        let tall = if rows < cols { a.adjoint() } else { a.clone() };
        let mut whole = Small::<T::Wide>::zeros(tall.rows(), tall.cols());
        tall.entries().for_each(|(i, j, v)| whole.set(i, j, v.wide()));
        let expected = whole.svd().unwrap().values;
        let found = SvdProblem::new(a).count(5).solve(&device(2)).unwrap();
        assert_found(&found, &expected[..5], off);
        assert_eq!(found.outcome.complete, Complete::Probed);
    }
}

#[test]
fn the_largest_of_matrices_of_any_shape_are_found() {
    largest::<f64>(1e-9);
    largest::<f32>(1e-4);
    largest::<Complex64>(1e-9);
    largest::<Complex32>(1e-4);
}

#[test]
fn multiple_values_are_not_missed() {
    // Each value three times.
    let values: Vec<f64> = (0..600).map(|i| 1.0 + (i / 3) as f64).collect();
    let expected: Vec<f64> = values.iter().rev().take(7).copied().collect();
    let a = diagonal(&values, 900, 600);
    let found = SvdProblem::new(a.clone()).count(7).solve(&device(2)).unwrap();
    assert_found(&found, &expected, 1e-6);
    let first = SvdProblem::new(a).count(7).check(Check::Off).solve(&device(2)).unwrap();
    assert!(matches!(first.outcome.complete, Complete::Unchecked(_)));
    let same = SvdProblem::new(diagonal(&[2.0; 400], 400, 400)).count(4).solve(&device(2)).unwrap();
    assert_found(&same, &[2.0; 4], 1e-12);
    let none = SvdProblem::new(diagonal(&[], 500, 400)).count(2).solve(&device(2)).unwrap();
    assert_found(&none, &[0.0; 2], 0.0);
    assert!(none.outcome.notes[0].contains("null space"), "{:?}", none.outcome.notes);
}

#[test]
fn the_smallest_come_from_factors_or_are_refused() {
    let a = Spec::parse("gen:convection:22x21").unwrap().build::<f64>().unwrap();
    let mut whole = Small::<f64>::zeros(a.rows(), a.cols());
    a.entries().for_each(|(i, j, v)| whole.set(i, j, v));
    let expected: Vec<f64> = whole.svd().unwrap().values.into_iter().rev().take(4).collect();
    let smallest = |a: Csr<f64>| SvdProblem::new(a).count(4).which(Extreme::Smallest).solve(&device(2));
    assert_found(&smallest(a).unwrap(), &expected, 1e-9);
    let refused = smallest(random(700, 360)).unwrap_err().to_string();
    assert!(refused.contains("700 x 360") && refused.contains("not found yet"), "{refused}");
    let singular = smallest(diagonal(&[1.0; 300], 400, 400));
    assert!(matches!(singular, Err(Error::Unsupported { .. })), "{singular:?}");
    // A small one has all of them.
    let few = smallest(diagonal(&[4.0, 3.0, 2.0], 9, 5)).unwrap();
    assert_found(&few, &[0.0, 0.0, 2.0, 3.0], 1e-15);
}

#[test]
fn a_search_can_be_cut_short_and_has_the_same_bits_on_any_number_of_threads() {
    let problem = || SvdProblem::new(random::<f64>(900, 800)).count(5);
    let limited = problem().max_iters(10).solve(&device(2)).unwrap();
    assert_eq!((limited.outcome.reason, limited.values.len()), (Reason::Limit, 5));
    let bits = |threads: usize| {
        let found = problem().solve(&device(threads)).unwrap();
        let all = found.left.into_iter().chain(found.right).flatten().chain(found.values);
        all.map(f64::to_bits).collect::<Vec<_>>()
    };
    assert!(bits(1) == bits(2));
    let refused = |problem: SvdProblem<f64>| problem.solve(&device(1)).unwrap_err().to_string();
    assert!(refused(problem().count(0)).contains("expected 1 to 800 singular values, got 0"));
    assert!(refused(problem().rtol(-1.0)).contains("rtol"));
}
