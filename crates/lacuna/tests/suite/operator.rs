//! Systems whose entries are not known: functions of the host, recorded operators, formats of their own.
use super::own_device;
use lacuna::formats::Stencil;
use lacuna::prelude::*;
use lacuna::solvers::{Jacobi, preconditioner, residual_norm};
use lacuna::{Placed, Shifted};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn matrix(text: &str) -> Arc<Csr<f64>> {
    Arc::new(Spec::parse(text).unwrap().build().unwrap())
}

/// The product with a matrix, as a function.
fn product(a: &Arc<Csr<f64>>) -> HostOperator<f64> {
    let (a, turned) = (a.clone(), Arc::new(a.adjoint()));
    let times = |a: &Csr<f64>, x: &[f64], y: &mut [f64]| {
        y.iter_mut().enumerate().for_each(|(i, y)| *y = a.row_entries(i).map(|(j, v)| v * x[j]).sum());
    };
    HostOperator::rectangular(a.rows(), a.cols(), move |x: &[f64], y: &mut [f64]| times(&a, x, y))
        .with_adjoint(move |x: &[f64], y: &mut [f64]| times(&turned, x, y))
}

/// `‖b − A x‖ / ‖b‖` in twice the precision.
fn residual(a: &Csr<f64>, b: &[f64], x: &Array1<f64>) -> f64 {
    residual_norm(a, b, x.as_slice().unwrap()) / b.iter().map(|v| v * v).sum::<f64>().sqrt()
}

#[test]
fn a_function_is_solved_and_confirmed_by_itself() {
    let a = matrix("gen:convection:20x20:10");
    let b: Vec<f64> = (0..400).map(|i| 1.0 + (i % 7) as f64).collect();
    for method in ["auto", "bicgstab", "idr", "qmr"] {
        let mut system = LinearSystem::from_operator(product(&a)).method(method).prepare().unwrap();
        let (x, outcome) = system.solve(&b).unwrap();
        outcome.ok().unwrap();
        let found = residual(&a, &b, &x);
        assert!(found <= 1e-8 && (outcome.true_residual / found - 1.0).abs() < 1e-3, "{method}: {found:e}");
        assert!(outcome.backward_error.is_nan() && system.matrix().is_none());
        assert!(outcome.choices.iter().any(|choice| choice.starts_with("confirmation by the operator")));
    }
    let system = LinearSystem::from_operator(product(&a)).prepare().unwrap();
    assert_eq!((&*system.method().name, &*system.preconditioner().name), ("gmres", "none"));
}

#[test]
fn what_does_not_converge_says_so_and_is_no_worse_than_the_guess() {
    let a = matrix("gen:poisson2d:30x30");
    let b = vec![1.0; 900];
    let stop = Stop::default().rtol(1e-10).max_iters(5);
    let system = LinearSystem::from_operator(product(&a)).method("cg").stop(stop);
    let (x, outcome) = system.prepare().unwrap().solve(&b).unwrap();
    let error = outcome.ok().unwrap_err();
    assert_eq!((error.reason, error.iterations, error.target), (Reason::Limit, 5, 1e-10));
    let found = residual(&a, &b, &x);
    assert!((outcome.true_residual / found - 1.0).abs() < 1e-9 && found <= 1.0, "{found:e}");
    assert!(outcome.notes.iter().any(|note| note.contains("which products alone do not show")));
}

#[test]
fn least_squares_by_a_function_and_its_adjoint() {
    let a = matrix("gen:poisson2d:12x12");
    let mut tall = Triplets::new(144, 100);
    for (i, j, v) in a.entries().filter(|(_, j, _)| *j < 100) {
        tall.push(i, j, v);
    }
    let tall = Arc::new(tall.to_csr().unwrap());
    let mut system = LinearSystem::from_operator(product(&tall)).prepare().unwrap();
    assert_eq!(system.method().name, "lsmr");
    let (x, outcome) = system.solve(&[1.0; 144]).unwrap();
    outcome.ok().unwrap();
    let expected = LinearSystem::new(tall).method("lsmr").prepare().unwrap().solve(&[1.0; 144]).unwrap().0;
    assert!(x.iter().zip(&expected).all(|(x, e)| (x - e).abs() < 1e-5), "{x} {expected}");
}

#[test]
fn an_error_of_a_function_ends_the_solve_and_is_its_source() {
    #[derive(Debug)]
    struct NoPoint(usize);
    impl std::fmt::Display for NoPoint {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "the grid has no point {}", self.0)
        }
    }
    impl std::error::Error for NoPoint {}
    let (a, calls) = (matrix("gen:poisson2d:20x20"), Arc::new(AtomicUsize::new(0)));
    let (inner, counted) = (a.clone(), calls.clone());
    let fails = HostOperator::new(400, move |x: &[f64], y: &mut [f64]| {
        y.iter_mut().enumerate().for_each(|(i, y)| *y = inner.row_entries(i).map(|(j, v)| v * x[j]).sum());
        match counted.fetch_add(1, Ordering::Relaxed) {
            4 => Err(NoPoint(17)),
            _ => Ok(()),
        }
    });
    let mut system = LinearSystem::from_operator(fails).method("cg").prepare().unwrap();
    let mut x = vec![0.5; 400];
    let error = system.solve_into(&[1.0; 400], &mut x).map(drop).unwrap_err();
    assert!(error.to_string().ends_with("failed: the grid has no point 17"), "{error}");
    let Error::Function { source: Some(source), .. } = error else { panic!("{error:?}") };
    assert_eq!(source.downcast_ref::<NoPoint>().unwrap().0, 17);
    assert_eq!((calls.load(Ordering::Relaxed), x), (5, vec![0.5; 400]));
    let (x, outcome) = system.solve(&[1.0; 400]).unwrap();
    outcome.ok().unwrap();
    assert!(residual(&a, &[1.0; 400], &x) <= 1e-8);
}

#[test]
fn a_format_of_its_own_gives_the_bits_of_the_matrix_in_it() {
    let a = matrix("gen:poisson3d:9x8x7");
    let b: Vec<f64> = (0..a.rows()).map(|i| (i as f64).sin()).collect();
    let stencil = Arc::new(Stencil::from_csr(&*a).unwrap());
    let dev = own_device();
    let before = dev.in_use();
    let system = LinearSystem::from_format(stencil).method("cg").on(&dev);
    let mut alone = system.prepare().unwrap();
    assert_eq!((&*alone.format().name, alone.matrix().map(|m| m.rows)), ("stencil", Some(504)));
    let (x, outcome) = alone.solve(&b).unwrap();
    outcome.ok().unwrap();
    let system = LinearSystem::new(a).method("cg").preconditioner("none").format("stencil").on(&dev);
    let (expected, of_matrix) = system.prepare().unwrap().solve(&b).unwrap();
    assert_eq!((&x, outcome.iterations), (&expected, of_matrix.iterations));
    drop(alone);
    assert_eq!(dev.in_use(), before);
}

/// `y ← (A + c) x` on the device: an operator that owns what it records.
struct Regularised(lacuna::Owned<Matrix<f64>>, f64);

impl LinOp<f64> for Regularised {
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }
    fn keep(&self, k: &mut Recorder<'_, f64>) {
        self.0.keep(k);
    }
    fn apply(&self, k: &mut Recorder<'_, f64>, x: Vector<f64>, y: Vector<f64>, then: Pass<f64>) {
        let [c] = k.cells();
        k.multi_axpy_dot(Pass::new("shift").eval(c, self.1));
        Shifted(&self.0, c).apply(k, x, y, then);
    }
}

#[test]
fn a_recorded_operator_with_a_preconditioner_placed_for_a_matrix_that_is_near() {
    let a = matrix("gen:poisson2d:60x60");
    let (dev, b) = (own_device(), vec![1.0; 3600]);
    let before = dev.in_use();
    let on_device = dev.matrix(a.clone()).unwrap();
    let operator = || LinearSystem::from_operator(Regularised(on_device.clone(), 1e-3)).method("cg").on(&dev);
    let plain = operator().prepare().unwrap().solve(&b).unwrap();
    let amg = preconditioner::<f64>("amg:coarsest=100").unwrap().unwrap();
    let amg = Placed::new(&dev, amg, &a, *on_device, Setup::new()).unwrap();
    let near = operator().preconditioner(amg).prepare().unwrap().solve(&b).unwrap();
    assert!(plain.1.converged() && near.1.converged());
    assert!(4 * near.1.iterations < plain.1.iterations, "{} {}", near.1.iterations, plain.1.iterations);
    assert!(plain.0.iter().zip(&near.0).all(|(p, n)| (p - n).abs() <= 1e-4 * n.abs()));
    drop(on_device);
    assert_eq!(dev.in_use(), before);
}

#[test]
fn an_operator_preconditions_a_matrix_unless_that_is_reordered() {
    let a = matrix("gen:poisson2d:20x20");
    let quarter = || {
        HostOperator::new(400, |x: &[f64], y: &mut [f64]| y.iter_mut().zip(x).for_each(|(y, x)| *y = x / 4.0))
    };
    let system = || LinearSystem::new(a.clone()).method("cg").format("csr");
    let by_operator = system().preconditioner(quarter()).prepare().unwrap().solve(&[1.0; 400]).unwrap();
    let by_jacobi = system().preconditioner("jacobi").prepare().unwrap().solve(&[1.0; 400]).unwrap();
    assert_eq!(by_operator.1.iterations, by_jacobi.1.iterations);
    assert!(by_operator.0.iter().zip(&by_jacobi.0).all(|(o, j)| (o - j).abs() <= 1e-12 * j.abs()));
    let refused = system().preconditioner(quarter()).reorder("rcm").prepare().err().unwrap();
    assert!(
        matches!(refused, Error::Unsupported { .. }) && refused.to_string().contains("another order"),
        "{refused}"
    );
    let wrong = HostOperator::new(399, |_: &[f64], _: &mut [f64]| {});
    let refused = system().preconditioner(wrong).prepare().err().unwrap();
    assert!(refused.to_string().contains("a 400x400 preconditioner"), "{refused}");
}

#[test]
fn what_needs_entries_is_refused_with_words() {
    let a = matrix("gen:poisson2d:20x20");
    let without_adjoint = || {
        let a = a.clone();
        HostOperator::new(400, move |x: &[f64], y: &mut [f64]| y.copy_from_slice(&(&*a * x)))
    };
    let system = || LinearSystem::from_operator(without_adjoint());
    let cases = [
        (
            system().preconditioner("jacobi"),
            "the preconditioner `jacobi` for an operator: it needs the entries",
        ),
        (system().preconditioner(Jacobi), "the preconditioner `jacobi` for an operator"),
        (system().method("direct"), "the preconditioner `direct"),
        (system().reorder("rcm"), "the order `rcm` for an operator"),
        (system().format("csr"), "the format `csr` for an operator"),
        (system().with_adjoint(), "`HostOperator::with_adjoint`"),
        (system().refine(true), "an operator exists in one number type only"),
        (system().method("bicg"), "it was given no function for it"),
    ];
    for (system, words) in cases {
        let error = system.prepare().err().unwrap();
        assert!(matches!(error, Error::Unsupported { .. }) && error.to_string().contains(words), "{error}");
    }
    let unknown = system().preconditioner("jakobi").prepare().err().unwrap();
    assert!(unknown.to_string().contains("expected one of"), "{unknown}");
    let mut prepared = system().prepare().unwrap();
    let refused = prepared.update_values(&[1.0]).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    assert!(prepared.solve(&[1.0; 400]).unwrap().1.converged());
    assert!(matches!(prepared.solve(&[1.0; 399]).unwrap_err(), Error::Length { .. }));
    assert!(matches!(system().x0(&[0.0; 3]).prepare().err().unwrap(), Error::Length { .. }));
}

#[test]
fn an_operator_of_another_device_is_an_error() {
    let (dev, other) = (own_device(), own_device());
    let a = other.matrix(matrix("gen:poisson2d:9x9")).unwrap();
    let refused = LinearSystem::from_operator(a).on(&dev).prepare().err().unwrap();
    assert!(matches!(refused, Error::Stale { .. }), "{refused}");
}

#[test]
fn columns_and_views_are_solved_one_by_one() {
    let a = matrix("gen:convection:15x15:10");
    let mut system = LinearSystem::from_operator(product(&a)).prepare().unwrap();
    let b = Array2::from_shape_fn((225, 3), |(i, j)| ((i + j) % 5) as f64);
    let mut x = Array2::zeros(b.raw_dim());
    let outcomes = system.solve_columns(b.view(), x.view_mut()).unwrap();
    for (j, outcome) in outcomes.iter().enumerate() {
        outcome.ok().unwrap();
        assert!(residual(&a, &b.column(j).to_vec(), &x.column(j).to_owned()) <= 1e-8);
    }
    assert_eq!(outcomes.len(), 3);
}
