//! Least squares through the interface.
use lacuna::prelude::*;
use lacuna::solvers::{METHODS, Needs};

/// Fit of a line: the matrix of `α + β t` at `points` points.
fn line(points: usize) -> Csr<f64> {
    let mut t = Triplets::new(points, 2);
    for i in 0..points {
        t.push(i, 0, 1.0);
        t.push(i, 1, i as f64 / points as f64);
    }
    t.to_csr().unwrap()
}

#[test]
fn a_line_is_fitted_to_points() {
    let a = line(100);
    // On 2 − 3 t, with errors orthogonal to 1 and to t, in pairs about the middle.
    let b = Array1::from_iter((0..100).map(|i| {
        let error = if i % 4 == 0 || i % 4 == 3 { 0.25 } else { -0.25 };
        2.0 - 3.0 * i as f64 / 100.0 + error
    }));
    let mut auto = LinearSystem::new(a.clone()).prepare().unwrap();
    let (x, outcome) = auto.solve(b.view()).unwrap();
    assert!(outcome.converged(), "{outcome:?}");
    assert_eq!((auto.method().name.as_str(), auto.preconditioner().name.as_str()), ("lsmr", "none"));
    assert!((x[0] - 2.0).abs() < 1e-7 && (x[1] + 3.0).abs() < 1e-7, "{x}");
    let norm = b.iter().map(|b| b * b).sum::<f64>().sqrt();
    assert!((outcome.misfit - 2.5 / norm).abs() < 1e-9, "{}", outcome.misfit);
}

/// Far from 1, from a guess, with new values, and for all methods.
#[test]
fn scaling_and_guesses() {
    for info in METHODS.iter().filter(|info| info.least_squares() && info.name != "craig") {
        for exponent in [-600, 0, 600] {
            let a = line(20).map(|v| v.scale_by_power_of_two(exponent)).unwrap();
            let b = Array1::from_iter((0..20).map(|i| (i * i) as f64));
            let mut system = LinearSystem::new(a.clone()).method(info.name).prepare().unwrap();
            let (x, outcome) = system.solve(b.view()).unwrap();
            assert!(outcome.converged() && outcome.iterations <= 4, "{} {outcome:?}", info.name);
            let mut again = x.clone();
            let outcome = system.solve_into(b.view(), again.view_mut()).unwrap();
            assert_eq!((outcome.converged(), outcome.iterations), (true, 0), "{}", info.name);
            let doubled: Vec<f64> = a.values().iter().map(|v| 2.0 * v).collect();
            system.update_values(&doubled).unwrap();
            let (half, _) = system.solve(b.view()).unwrap();
            assert!(x.iter().zip(&half).all(|(x, half)| (x / (2.0 * half) - 1.0).abs() < 1e-9), "{x} {half}");
        }
    }
}

/// By name, with a report, and anew for new values.
#[test]
fn columns_are_scaled() {
    let cubic = |unit: f64| {
        let mut t = Triplets::new(40, 4);
        (0..160).for_each(|k| t.push(k / 4, k % 4, (unit * (1 + k / 4) as f64).powi((k % 4) as i32)));
        t.to_csr().unwrap()
    };
    let (a, later) = (cubic(100.0), cubic(0.01));
    let exact = [1.0, -2.0, 3.0, -4.0];
    let right = |a: &Csr<f64>| {
        let mut b = vec![0.0; 40];
        a.product(&exact, &mut b).unwrap();
        b
    };
    for info in METHODS.iter().filter(|info| info.needs == Needs::Nothing) {
        let system = LinearSystem::new(a.clone()).method(info.name).preconditioner("column-scaling");
        let stop = Stop::default().rtol(1e-13).max_iters(100);
        let mut system = system.stop(stop).prepare().unwrap();
        for a in [&a, &later] {
            system.update_values(a.values()).unwrap();
            let (_, outcome) = system.solve(&right(a)).unwrap();
            assert!(outcome.converged() && outcome.iterations <= 8, "{} {outcome:?}", info.name);
            assert!(outcome.misfit <= 1e-10, "{} {outcome:?}", info.name);
            assert!(outcome.choices.iter().any(|c| c.contains("norms of the columns")), "{outcome:?}");
        }
    }
    let wide = LinearSystem::new(a.adjoint()).preconditioner("column-scaling");
    let (_, outcome) = wide.prepare().unwrap().solve(&vec![1.0; 4]).unwrap();
    let noted = |note: &String| note.contains("fewer rows than columns: under column-scaling");
    assert!(outcome.notes.iter().any(noted), "{:?}", outcome.notes);
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let refused = |system: LinearSystem<f64>| system.prepare().err().unwrap().to_string();
    assert!(
        refused(LinearSystem::new(line(5)).method("cg")).contains("a square matrix for cg (lsmr takes any)")
    );
    assert!(
        refused(LinearSystem::new(line(5)).preconditioner("jacobi")).contains("column-scaling takes any")
    );
    assert!(refused(LinearSystem::new(line(5)).reorder("rcm")).contains("a square matrix"));
    let x0 = Array1::zeros(5);
    assert!(refused(LinearSystem::new(line(5)).x0(x0.view())).contains("x0 should have length 2, got 5"));
}
