//! The facade: the single call, the builder, arrays in and out, automatic choices.
use super::own_device;
use lacuna::ndarray::{arr1, arr2, s};
use lacuna::prelude::*;

fn laplacian(n: usize) -> Csr<f64> {
    Spec::parse(&format!("gen:poisson1d:{n}")).unwrap().build().unwrap()
}

fn system_of(a: &[[f64; 3]; 3]) -> Csr<f64> {
    from_dense(arr2(a).view()).unwrap()
}

fn choices(system: LinearSystem<f64>) -> Vec<String> {
    system.prepare().unwrap().solve(&Array1::ones(3)).unwrap().1.choices
}

#[test]
fn one_call_solves() {
    let a = laplacian(100);
    let b = Array1::ones(100);
    let (x, outcome) = solve(&a, b.view()).unwrap();
    assert!(outcome.converged() && outcome.true_residual <= 1e-8);
    let exact = |i: usize| (i + 1) as f64 * (100 - i) as f64 / 2.0;
    assert!((0..100).all(|i| (x[i] - exact(i)).abs() <= 1e-4 * exact(i)));
}

#[test]
fn a_system_that_is_dropped_leaves_nothing_on_the_device() {
    let dev = own_device();
    let before = dev.in_use();
    let on = || LinearSystem::new(laplacian(10)).on(&dev).prepare().unwrap();
    on().solve(Array1::ones(10).view()).unwrap().1.ok().unwrap();
    assert_eq!(dev.in_use(), before);
    assert!(on().solve(Array1::ones(11).view()).is_err());
    assert_eq!(dev.in_use(), before);
}

#[test]
fn the_choice_follows_the_matrix_and_says_why() {
    let small = choices(LinearSystem::new(system_of(&[[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 5.0]])));
    assert!(small[0].starts_with("method richardson: complete factors nearly solve the system"), "{small:?}");
    assert!(small[1].starts_with("preconditioner direct: complete factors are expected in "), "{small:?}");
    // A method beside a preconditioner that was asked for, and the other way round.
    let method = |a| choices(LinearSystem::new(system_of(a)).preconditioner("none")).swap_remove(0);
    let preconditioner =
        |method: &str, a| choices(LinearSystem::new(system_of(a)).method(method)).swap_remove(1);
    let spd = &[[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 5.0]];
    assert_eq!(method(spd), "method cg: the matrix is symmetric with a positive diagonal");
    assert_eq!(
        preconditioner("cg", spd),
        "preconditioner jacobi: the diagonal has no zero and is not constant; applying it costs next to nothing"
    );
    let constant = &[[4.0, 1.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1.0, 4.0]];
    assert_eq!(
        preconditioner("cg", constant),
        "preconditioner none: the diagonal is constant, so jacobi would change nothing"
    );
    let wind = &[[4.0, 1.0, 0.0], [-1.0, 3.0, 1.0], [0.0, -1.0, 5.0]];
    assert_eq!(method(wind), "method bicgstab: the matrix is not symmetric, and its diagonal dominates");
    let zero = &[[0.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 2.0, 5.0]];
    assert_eq!(method(zero), "method idr: the matrix is not symmetric and has a zero on its diagonal");
    assert_eq!(
        preconditioner("idr", zero),
        "preconditioner none: the matrix has a zero on its diagonal, the first in row 0 (counted from 0)"
    );
    let indefinite = &[[1.0, 2.0, 0.0], [2.0, -3.0, 1.0], [0.0, 1.0, 5.0]];
    assert_eq!(method(indefinite), "method minres: the matrix is symmetric and its diagonal is not positive");
}

#[test]
fn strided_views_are_taken_as_they_are() {
    let a = laplacian(20);
    let block = Array2::from_shape_fn((20, 3), |(i, j)| (i + 7 * j) as f64);
    let mut system = LinearSystem::new(a.clone()).prepare().unwrap();
    let mut x = Array2::zeros((3, 40));
    for j in 0..3 {
        let outcome = system.solve_into(block.column(j), x.slice_mut(s![j, ..;-2])).unwrap().clone();
        assert!(outcome.converged());
        let (expected, _) = system.solve(block.column(j).to_owned().view()).unwrap();
        assert_eq!(x.slice(s![j, ..;-2]), expected);
    }
    let reversed = block.slice(s![..;-1, 1]);
    let dev = default_device().unwrap();
    let vector = to_device(&dev, reversed).unwrap();
    assert_eq!(to_host(&dev, *vector).unwrap(), reversed);
}

#[test]
fn a_starting_guess_that_is_exact_needs_no_iteration() {
    let a = laplacian(5);
    let b = arr1(&[1.0, 0.0, 0.0, 0.0, 1.0]);
    let ones = Array1::ones(5);
    let mut system = LinearSystem::new(a).x0(ones.view()).prepare().unwrap();
    let (x, outcome) = system.solve(b.view()).unwrap();
    assert_eq!((x, outcome.iterations, outcome.reason), (ones, 0, Reason::Converged));
}

#[test]
fn a_second_solve_makes_nothing_on_the_device() {
    let a = laplacian(300);
    for method in ["cg", "bicgstab", "gmres"] {
        let dev = own_device();
        let mut system = LinearSystem::new(a.clone()).method(method).on(&dev).prepare().unwrap();
        let made = dev.in_use();
        let (first, _) = system.solve(Array1::ones(300).view()).unwrap();
        let (second, _) = system.solve(Array1::ones(300).view()).unwrap();
        assert_eq!(first, second);
        assert_eq!(dev.in_use(), made, "{method}");
    }
}

#[test]
fn dense_and_sparse_convert_both_ways() {
    let dense = arr2(&[[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]]);
    let a = from_dense(dense.view()).unwrap();
    assert_eq!((a.rows(), a.cols(), a.nnz()), (2, 3, 2));
    assert_eq!(to_dense(&a).unwrap(), dense);
    assert_eq!(to_dense(&from_dense(dense.t()).unwrap()).unwrap(), dense.t());
    let error = from_dense(arr2(&[[1.0, f64::NAN]]).view()).unwrap_err();
    assert!(matches!(error, Error::Entry { row: 0, column: 1, .. }), "{error}");
}

#[test]
fn a_method_with_its_own_preconditioner_is_why_there_are_both() {
    for (method, [richardson, own]) in [
        ("jacobi", ["richardson: for jacobi", "jacobi: asked for"]),
        ("sor:omega=1.5", ["richardson: for sor", "sor:omega=1.5: asked for"]),
        ("gauss-seidel", ["richardson: for gauss-seidel", "sor: for gauss-seidel"]),
    ] {
        let system = LinearSystem::new(laplacian(4)).method(method).prepare().unwrap();
        let told = [system.method(), system.preconditioner()].map(|c| format!("{}: {}", c.name, c.why));
        assert_eq!(told, [richardson, own]);
    }
}

#[test]
fn a_value_does_what_its_name_does() {
    use lacuna::solvers::{Amg, AmgOptions, Gmres};
    let (a, b) = (laplacian(600), Array1::ones(600));
    let solved = |system: LinearSystem<f64>| {
        let mut system = system.prepare().unwrap();
        let (x, outcome) = system.solve(&b).unwrap();
        outcome.ok().unwrap();
        (x, outcome.iterations, system.method().name.clone(), system.preconditioner().name.clone())
    };
    let (mut gmres, options) = (Gmres::default(), AmgOptions::default().coarsest(50));
    gmres.cycle.restart = 7;
    let by_name = LinearSystem::new(a.clone()).method("gmres:restart=7").preconditioner("amg:coarsest=50");
    let by_value = LinearSystem::new(a.clone()).method(gmres).preconditioner(Amg::new(options));
    let (by_name, by_value) = (solved(by_name), solved(by_value));
    assert_eq!((&by_name.0, by_name.1, &by_name.3), (&by_value.0, by_value.1, &by_value.3));
    assert_eq!((&*by_name.2, &*by_value.2), ("gmres:restart=7", "gmres"));
}

#[test]
fn a_solve_that_did_not_converge_becomes_an_error_on_request() {
    let stop = Stop::default().rtol(1e-9).atol(1e-3).max_iters(3);
    let system = LinearSystem::new(laplacian(300)).method("cg").preconditioner("none").stop(stop);
    let (_, outcome) = system.prepare().unwrap().solve(&Array1::from_elem(300, 0.01)).unwrap();
    let error = outcome.ok().unwrap_err();
    assert_eq!((error.reason, error.iterations, error.residual), (Reason::Limit, 3, outcome.true_residual));
    let target = 1e-3 / (0.01 * 300f64.sqrt());
    assert!((error.target / target - 1.0).abs() < 1e-12 && error.residual > error.target, "{error}");
    let error = Error::from(error).to_string();
    assert!(error.contains("3 iterations") && error.contains("for a target of 5.77e-3"), "{error}");
    assert!(solve(&laplacian(5), &[1.0; 5]).unwrap().1.ok().is_ok());
}

#[test]
fn the_limit_follows_the_size_unless_it_is_set() {
    let limits = [(60, 60), (30, 700), (1_000_000, 3)].map(|shape| Stop::default().limit(shape));
    assert_eq!((limits, Stop::default().max_iters(7).limit((60, 60))), ([1000, 7000, 100_000], 7));
    let slow = |stop| LinearSystem::new(laplacian(60)).method("jacobi").stop(stop).prepare().unwrap();
    let by_default = slow(Stop::default()).solve(&[1.0; 60]).unwrap().1;
    assert_eq!((by_default.reason, by_default.iterations), (Reason::Limit, 1000));
    let set = slow(Stop::default().max_iters(1100)).solve(&[1.0; 60]).unwrap().1;
    assert_eq!((set.reason, set.iterations), (Reason::Limit, 1100));
}

#[test]
fn what_does_not_fit_is_an_error() {
    let prepare = |system: LinearSystem<f64>| system.prepare().map(drop).unwrap_err().to_string();
    let wide = from_dense(Array2::<f64>::ones((2, 3)).view()).unwrap();
    assert_eq!(
        prepare(LinearSystem::new(wide).method("cg")),
        "solve: expected a square matrix for cg (lsmr takes any), got a 2x3 matrix"
    );
    let a = laplacian(4);
    assert_eq!(
        prepare(LinearSystem::new(a.clone()).method("direct").preconditioner("jacobi")),
        "preconditioner: method direct is a preconditioner itself; expected `auto`"
    );
    for (method, message) in [
        ("sor:omega=3", "method sor: omega: expected a number above 0 and below 2, got `3`"),
        (
            "gauss-seidel:omega=3",
            "method gauss-seidel: omega: expected a number above 0 and below 2, got `3`",
        ),
    ] {
        assert_eq!(prepare(LinearSystem::new(a.clone()).method(method)), message);
        assert_eq!(lacuna::check_method(method).unwrap_err().to_string(), message);
    }
    let methods = lacuna::solvers::METHODS.iter().map(|info| info.name);
    let combined = lacuna::solvers::Combined::all().map(|method| method.name);
    let names: Vec<_> = ["auto", "tune"].into_iter().chain(methods).chain(combined).collect();
    let own = "one of your own is given as a value, not by name";
    assert_eq!(
        prepare(LinearSystem::new(a.clone()).method("magic")),
        format!("method: expected one of {}, got `magic`; {own}", names.join(", "))
    );
    assert_eq!(
        prepare(LinearSystem::new(a.clone()).preconditioner("magic")),
        format!(
            "preconditioner: expected one of auto, none, jacobi, column-scaling, block-jacobi, neumann, chebyshev, ssor, sor, ilu0, ic0, \
             block-ilu, ilut, fsai, spai, amg, multigrid, direct, got `magic`; {own}"
        )
    );
    let near = prepare(LinearSystem::new(a.clone()).preconditioner("jacoby"));
    assert!(near.ends_with("did you mean `jacobi`?"), "{near}");
    let x0 = Array1::zeros(3);
    assert_eq!(
        prepare(LinearSystem::new(a.clone()).x0(x0.view())),
        "solve of a 4x4 matrix: x0 should have length 4, got 3"
    );
    let error = solve(&a, Array1::ones(5).view()).unwrap_err();
    assert_eq!(error.to_string(), "solve of a 4x4 matrix: b should have length 4, got 5");
    let error = solve(&a, arr1(&[1.0, f64::NAN, 0.0, 0.0]).view()).unwrap_err();
    assert_eq!(error.to_string(), "solve: b, row 1: expected a finite number, got NaN");
}

#[test]
fn a_prepared_system_may_go_to_another_thread() {
    fn moves<T: Send>() {}
    moves::<Prepared<f64>>();
    moves::<Solver<Complex32>>();
}
