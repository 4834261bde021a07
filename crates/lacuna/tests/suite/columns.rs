//! Several right-hand sides, and methods that are a preconditioner with Richardson's iteration.
use super::own_device;
use lacuna::Watch;
use lacuna::ndarray::{Array2, Axis};
use lacuna::prelude::*;
use lacuna::solvers::{METHODS, Options, method};
use std::ops::ControlFlow;

/// The methods for several right-hand sides at once, with short cycles.
fn of_columns() -> Vec<&'static str> {
    let takes = |name: &&str| method::<f64>(name, &Options::default()).unwrap().columns().is_some();
    let short = |name| if name == "gmres" { "gmres:restart=7" } else { name };
    METHODS.iter().map(|info| info.name).filter(takes).map(short).collect()
}

fn right_hand_sides(n: usize) -> Array2<f64> {
    // The last but one is 0, the last the first again.
    let value = |(i, j): (usize, usize)| match j % 11 {
        9 => 0.0,
        10 => (i % 7) as f64 - 3.0,
        j => ((i * (j + 1)) % 7) as f64 - 3.0,
    };
    Array2::from_shape_fn((n, 11), value)
}

#[test]
fn columns_have_the_bits_of_solves_of_their_own() {
    const HEAVY: &str = "gen:poisson3d:12x11x9:27";
    let shared = of_columns().into_iter().flat_map(|method| {
        let preconds = [("jacobi", "none"), ("none", "none"), ("amg:coarsest=50", "rcm")];
        preconds.map(|(precond, order)| (HEAVY, method, precond, order, true))
    });
    let others = [
        ("gen:poisson2d:40x30:9", "cg", "amg:coarsest=50", "rcm", true),
        (HEAVY, "bicgstab", "ilu0", "none", true),
        (HEAVY, "gmres", "jacobi", "none", false), // for 30 basis vectors
        (HEAVY, "gmres:side=left,restart=7", "jacobi", "none", false),
        (HEAVY, "minres", "jacobi", "none", false),
        ("gen:convection:30x31", "bicgstab", "jacobi", "none", false),
    ];
    for (spec, method, precond, order, shares) in shared.chain(others) {
        let a = Spec::parse(spec).unwrap().build::<f64>().unwrap();
        let b = right_hand_sides(a.rows());
        let system = LinearSystem::new(a).method(method).preconditioner(precond).reorder(order).format("csr");
        let dev = own_device();
        let mut system = system.on(&dev).prepare().unwrap();
        let mut x = Array2::zeros(b.raw_dim());
        system.solve_columns(b.view(), x.view_mut()).unwrap();
        let before = dev.in_use();
        x.fill(0.0);
        let outcomes = system.solve_columns(b.view(), x.view_mut()).unwrap();
        assert_eq!(dev.in_use(), before, "{spec} {method}: a second solve allocates on the device");
        assert_eq!(outcomes.len(), 11);
        for (j, outcome) in outcomes.iter().enumerate() {
            let (alone, of_alone) = system.solve(b.index_axis(Axis(1), j)).unwrap();
            let context = format!("{spec} {method} {precond}, column {j}");
            assert!(outcome.converged() && of_alone.converged(), "{context}: {outcome:?}");
            assert_eq!(outcome.iterations, of_alone.iterations, "{context}");
            assert!(x.index_axis(Axis(1), j) == alone, "{context}: other bits");
            // A value of the history belongs to the iteration that its index and the stride say.
            let stride = outcome.history_stride as usize;
            assert_eq!(outcome.history.len(), outcome.iterations as usize / stride + 1, "{context}");
            let of_alone = of_alone.history.iter().step_by(stride);
            for (k, (found, expected)) in outcome.history.iter().zip(of_alone).enumerate() {
                // By the recurrence, or as confirmed.
                let apart = (found - expected).abs();
                assert!(apart <= 1e-3 * expected + 1e-9, "{context}: {k} times {stride}");
            }
            let together = outcome.notes.iter().any(|note| note.contains("together"));
            assert_eq!(together, shares && j != 9, "{context}: {:?}", outcome.notes);
        }
    }
}

#[test]
fn columns_keep_limits_and_guesses() {
    of_columns().into_iter().for_each(keeps_limits_and_guesses);
}

fn keeps_limits_and_guesses(method: &str) {
    let a = Spec::parse("gen:poisson3d:20x20x20:27").unwrap().build::<f64>().unwrap();
    let b = right_hand_sides(a.rows());
    let stop = Stop::default().max_iters(10);
    let mut system = LinearSystem::new(a)
        .method(method)
        .preconditioner("jacobi")
        .format("csr")
        .stop(stop)
        .prepare()
        .unwrap();
    let mut x = Array2::zeros(b.raw_dim());
    let outcomes = system.solve_columns(b.view(), x.view_mut()).unwrap();
    for (j, outcome) in outcomes.iter().enumerate().filter(|(j, _)| *j != 9) {
        let last = outcome.iterations as usize / outcome.history_stride as usize;
        assert_eq!(outcome.history.len(), last + 1, "{method}, column {j}");
        assert_eq!((outcome.reason, outcome.iterations), (Reason::Limit, 10), "{method}, column {j}");
        assert!(outcome.true_residual <= outcome.history[0], "{method}, column {j}");
    }
    system.set_stop(Stop::default());
    let again = system.solve_columns(b.view(), x.view_mut()).unwrap();
    assert!(again.iter().all(|outcome| outcome.converged()), "{method}");
    let third = system.solve_columns(b.view(), x.view_mut()).unwrap();
    assert!(third.iter().all(|outcome| outcome.iterations == 0), "{method}: solutions need nothing");
}

#[test]
fn a_bad_column_is_refused_with_its_element() {
    let a = Spec::parse("gen:poisson2d:9x9").unwrap().build::<f64>().unwrap();
    let mut b = right_hand_sides(a.rows());
    b[[17, 3]] = f64::NAN;
    let mut system = LinearSystem::new(a).method("cg").prepare().unwrap();
    let mut x = Array2::zeros(b.raw_dim());
    let refused = system.solve_columns(b.view(), x.view_mut());
    assert!(matches!(refused, Err(Error::Element { row: 17, .. })), "{refused:?}");
    let mut short = Array2::zeros((80, 11));
    let refused = system.solve_columns(b.view(), short.view_mut());
    assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
}

#[test]
fn methods_that_are_a_preconditioner() {
    let a = Spec::parse("gen:poisson2d:12x11").unwrap().build::<f64>().unwrap();
    let b = vec![1.0; a.rows()];
    let iterations = |method: &str| {
        let system = LinearSystem::new(a.clone()).method(method);
        let (_, outcome) = system.prepare().unwrap().solve(&b).unwrap();
        assert!(outcome.converged(), "{method}: {outcome:?}");
        outcome.iterations
    };
    let [jacobi, seidel, natural, sor, direct] =
        ["jacobi", "gauss-seidel", "gauss-seidel:order=natural", "sor:omega=1.5", "direct"].map(iterations);
    let all = [jacobi, seidel, natural, sor, direct];
    // Gauss and Seidel's iteration takes half as many steps as Jacobi's for a consistently ordered matrix.
    assert!(jacobi.abs_diff(2 * seidel) <= 20 && seidel.abs_diff(natural) <= 8, "{all:?}");
    assert!(3 * sor < seidel && direct <= 2, "{all:?}");
    let twice = LinearSystem::new(a.clone()).method("sor").preconditioner("jacobi").prepare();
    assert!(matches!(twice.err(), Some(Error::Argument { .. })));
}

/// Together by `cg` on nine points, one after the other by `idr`.
#[test]
fn cancelling_ends_all_columns() {
    for method in ["cg", "idr"] {
        let a = Spec::parse("gen:poisson2d:400x400:9").unwrap().build::<f64>().unwrap();
        let stop = Stop::default().rtol(1e-300).max_iters(1_000_000);
        let system = LinearSystem::new(a).method(method).preconditioner("none").strict(true).stop(stop);
        let mut system = system.on("cpu").prepare().unwrap();
        let b = Array2::from_shape_fn((160_000, 3), |(i, j)| ((i + j) % 5) as f64);
        let mut x = Array2::zeros(b.raw_dim());
        let mut calls = 0;
        let mut watch = |_: Watch| {
            calls += 1;
            ControlFlow::Break(())
        };
        let outcomes = system.solve_columns_watched(b.view(), x.view_mut(), Some(&mut watch)).unwrap();
        assert!(outcomes.iter().all(|outcome| outcome.reason == Reason::Cancelled), "{method}");
        assert_eq!(calls, 1, "{method}");
        assert!(x.iter().all(|v| v.is_finite()));
    }
}
