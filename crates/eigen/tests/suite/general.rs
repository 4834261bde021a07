//! Eigenvalues of matrices that are not Hermitian, against closed forms.
use lacuna_cpu::{Cpu, CpuOptions};
use lacuna_eigen::{GeneralEigen, GeneralProblem, Part};
use lacuna_engine::{Complex64, Device, Error, Reason, Scalar};
use lacuna_formats::{Csr, Triplets};
use lacuna_io::Spec;
use std::f64::consts::PI;

fn device(threads: usize) -> Device {
    Device::new(Cpu::with(CpuOptions::default().threads(threads)).unwrap())
}

/// A triangle with these eigenvalues.
fn triangle(values: &[Complex64]) -> Csr<Complex64> {
    let n = values.len();
    let mut a = Triplets::new(n, n);
    for (i, v) in values.iter().enumerate() {
        a.push(i, i, *v);
        if i + 3 < n {
            a.push(i, i + 3, Complex64::new(0.3, -0.2));
        }
    }
    a.to_csr().unwrap()
}

/// The matrix with 1 above the diagonal and in the corner, whose eigenvalues are the roots of unity.
fn cycle(n: usize) -> Csr<f64> {
    let mut a = Triplets::new(n, n);
    (0..n).for_each(|i| a.push(i, (i + 1) % n, 1.0));
    a.to_csr().unwrap()
}

#[track_caller]
fn assert_found(found: &GeneralEigen, expected: &[Complex64], off: f64) {
    assert!(found.outcome.converged(), "{:?} {:#?}", found.values, found.outcome);
    assert_eq!(found.values.len(), expected.len());
    for value in &found.values {
        assert!(expected.iter().any(|e| (value - e).modulus() <= off), "{:?} {expected:?}", found.values);
    }
    assert!(
        found.outcome.residuals.len() == expected.len() && found.outcome.converged.iter().all(|met| *met)
    );
}

#[test]
fn eigenvalues_at_each_end_are_found() {
    // Some outside of a disk with all others, small and large.
    for n in [60, 900] {
        let outside = [
            Complex64::new(3.0, 0.5),
            Complex64::new(-2.5, 1.0),
            Complex64::new(0.2, -2.4),
            Complex64::new(2.2, 0.0),
        ];
        let inside = (4..n).map(|i| Complex64::from_polar(0.8 * (i as f64 / n as f64), 2.4 * i as f64));
        let values: Vec<Complex64> = outside.into_iter().chain(inside).collect();
        let problem = || GeneralProblem::new(&triangle(&values)).unwrap();
        assert_found(&problem().count(4).solve(&device(2)).unwrap(), &outside, 1e-6);
        let right = problem().count(2).which(Part::Rightmost).solve(&device(2)).unwrap();
        assert_found(&right, &[outside[0], outside[3]], 1e-6);
        let left = problem().count(1).which(Part::Leftmost).solve(&device(2)).unwrap();
        assert_found(&left, &outside[1..2], 1e-6);
        let near = problem().count(1).which(Part::Near(Complex64::new(0.0, -2.0))).solve(&device(2)).unwrap();
        assert_found(&near, &outside[2..3], 1e-6);
    }
}

#[test]
fn real_matrices_have_pairs() {
    let n = 300;
    let found = GeneralProblem::new(&cycle(n)).unwrap().count(5).which(Part::Near(1.05.into()));
    let found = found.solve(&device(2)).unwrap();
    let expected: Vec<Complex64> =
        (-2..=2).map(|k| Complex64::from_polar(1.0, 2.0 * PI * f64::from(k) / n as f64)).collect();
    assert_found(&found, &expected, 1e-7);
    // A shift that is an eigenvalue.
    let one = GeneralProblem::new(&cycle(n)).unwrap().count(1).which(Part::Near(1.0.into()));
    let one = one.solve(&device(2)).unwrap();
    assert_found(&one, &[1.0.into()], 1e-7);
    assert!(one.outcome.notes[0].contains("is an eigenvalue"), "{:?}", one.outcome.notes);
    let single = Spec::parse("gen:convection:20x20").unwrap().build::<f32>().unwrap();
    let found = GeneralProblem::new(&single).unwrap().count(3).solve(&device(2)).unwrap();
    assert!(found.outcome.converged());
}

#[test]
fn odd_matrices_have_an_answer_and_wrong_ones_a_word() {
    let same = GeneralProblem::new(&triangle(&[]));
    assert!(same.unwrap().count(1).solve(&device(1)).is_err());
    let mut identity = Triplets::new(400, 400);
    (0..400).for_each(|i| identity.push(i, i, 3.0));
    let found = GeneralProblem::new(&identity.to_csr().unwrap()).unwrap().count(3).solve(&device(2)).unwrap();
    assert_found(&found, &[3.0.into(); 3], 1e-12);
    let problem = || GeneralProblem::new(&cycle(300)).unwrap();
    let limited = problem().max_iters(1).which(Part::Rightmost).solve(&device(1)).unwrap();
    assert_eq!((limited.outcome.reason, limited.values.len()), (Reason::Limit, 6));
    assert!(matches!(
        GeneralProblem::new(&Triplets::<f64>::new(3, 4).to_csr().unwrap()),
        Err(Error::Shape { .. })
    ));
    let refused = |problem: GeneralProblem| problem.solve(&device(1)).unwrap_err().to_string();
    assert!(refused(problem().count(301)).contains("expected 1 to 300 eigenvalues"));
    assert!(refused(problem().rtol(f64::NAN)).contains("rtol"));
    assert!(refused(problem().start(vec![1.0.into(); 3])).contains("300"));
}
