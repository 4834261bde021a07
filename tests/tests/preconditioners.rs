//! Iterations that preconditioners take, against counts of independent implementations: the same problem, the same stopping test.
use lacuna_core::Backend;
use lacuna_cpu::Cpu;
use lacuna_formats::{Csr, Spec};
use lacuna_solvers::{Options, Outcome, Placed, Solver, Stop, method, preconditioner};
use lacuna_tests::available;
use std::sync::Arc;
use std::time::Instant;

/// A solve for ones to 1e-8, from zero, and what the preconditioner tells.
fn solve(a: &Arc<Csr<f64>>, by: &str, precond: &str) -> (Outcome, Vec<String>) {
    let mut dev = Cpu::new().unwrap();
    let on = dev.matrix(a.clone()).unwrap();
    let began = Instant::now();
    let kind = preconditioner(precond).unwrap().unwrap();
    let placed = Placed::new(&mut dev, kind, a, on).unwrap_or_else(|error| panic!("{precond}: {error}"));
    let set_up = began.elapsed();
    let stop = Stop { rtol: 1e-8, max_iters: 5000, ..Stop::default() };
    let method = method(by, &Options { restart: Some(30), ..Options::default() }).unwrap();
    let mut solver = Solver::new(&mut dev, &on, Some(&placed), &*method, stop).unwrap();
    let outcome = solver.solve(&mut dev, &vec![1.0; a.rows()], &mut vec![0.0; a.rows()]).unwrap().clone();
    let mut told: Vec<_> = placed.report().iter().map(|(what, value)| format!("{what} {value}")).collect();
    told.push(format!("set-up {set_up:.2?}"));
    (outcome, told)
}

/// Fails unless every preconditioner takes as many iterations as it should, within 2 or a tenth.
fn check(matrix: &str, by: &str, cases: &[(&str, u64)]) {
    if !available("cpu", Cpu::new().err()) {
        return;
    }
    let a = Arc::new(Spec::parse(matrix).unwrap().build::<f64>().unwrap());
    let mut wrong = Vec::new();
    for &(precond, want) in cases {
        let (outcome, told) = solve(&a, by, precond);
        let line = format!(
            "{matrix}, {by}, {precond}: {:?} after {} iterations for {want}, {:.3?}; {told:?}",
            outcome.reason, outcome.iterations, outcome.time,
        );
        println!("{line}");
        let spread = 2.max(want / 10);
        if !outcome.converged() || outcome.iterations.abs_diff(want) > spread {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Counts made with SciPy and numba, in double precision, to a true residual of 1e-8 from zero for ones.
#[test]
fn seven_points_on_a_cube_of_100() {
    check(
        "gen:poisson3d:100x100x100",
        "cg",
        &[
            ("jacobi", 249),
            ("neumann:order=1", 132),
            ("neumann:order=2", 131),
            ("neumann:order=3", 93),
            ("chebyshev:degree=4", 67),
            ("chebyshev:degree=8", 39),
            ("chebyshev:degree=16", 26),
            ("fsai", 152),
            ("fsai:power=2", 123),
            ("fsai:power=3", 92),
        ],
    );
}
