//! Solves: every method, with and without a preconditioner, gives the reference's bits.
use crate::bits::{Trace, same};
use crate::numbers::{Rng, generated};
use crate::on_both;
use lacuna_engine::{Device, Format, LinOp, Matrix, Owned, Reason, Scalar, Scope};
use lacuna_formats::{Csr, Pair, Stencil, Structure};
use lacuna_solvers::{
    METHODS, MethodInfo, Norm, Options, Orthogonalization, PRECONDITIONERS, Placed, PrecondInfo, Setup, Side,
    Solver, Stop, method, preconditioner,
};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A system and a method.
#[derive(Clone, Copy, Debug)]
pub struct Solve {
    /// The matrix, by name.
    pub matrix: &'static str,
    /// The method, by name.
    pub method: &'static str,
    /// The preconditioner, by name.
    pub precond: &'static str,
    /// Maximum iterations.
    pub max_iters: u64,
}

/// A tolerance that a solve in the number type can meet.
pub fn tolerance<T: Scalar>() -> f64 {
    T::EPSILON.sqrt() / 8.0
}

/// The test matrices that suit the method and the number type.
fn matrices<T: Scalar>(positive_definite: bool) -> Vec<&'static str> {
    let mut names =
        vec!["gen:poisson2d:21x17", "gen:poisson3d:9x7x6:27", "gen:poisson-p1:15", "gen:poisson1d:1"];
    if !positive_definite {
        names.extend(["gen:convection:19x18:40", "gen:random:400:9:3", "gen:markov:17x12"]);
        if T::KIND.is_complex() {
            names.push("gen:helmholtz:20x19");
        }
    }
    names
}

pub(crate) fn right_hand_side<T: Scalar>(n: usize, seed: u64) -> Vec<T> {
    Rng::new(seed).vector(n)
}

/// A matrix on a device, with a solver for it.
///
/// # Panics
/// If it cannot be created.
pub fn solver<T: Scalar>(dev: &Scope, a: &Csr<T>, case: &Solve) -> (Matrix<T>, Solver<T>) {
    let options = Options::default().restart(12);
    let stop = Stop::default().rtol(tolerance::<T>()).max_iters(case.max_iters);
    solver_with(dev, a, case, &options, stop)
}

/// [`solver`] with options.
///
/// # Panics
/// If it cannot be created.
pub fn solver_with<T: Scalar>(
    dev: &Scope,
    a: &Csr<T>,
    case: &Solve,
    options: &Options,
    stop: Stop,
) -> (Matrix<T>, Solver<T>) {
    solver_in(dev, a, Arc::new(a.clone()), case, options, stop)
}

/// [`solver_with`] with the matrix in a format.
///
/// # Panics
/// Where it cannot be made.
pub(crate) fn solver_in<T: Scalar>(
    dev: &Scope,
    a: &Csr<T>,
    stored: Arc<dyn Format<T>>,
    case: &Solve,
    options: &Options,
    stop: Stop,
) -> (Matrix<T>, Solver<T>) {
    let operator = Device::matrix(dev, stored).unwrap();
    let placed = placed(dev, case.precond, a, *operator);
    let m = placed.as_ref().map(|m| m as &dyn LinOp<T>);
    let method = method(case.method, options).unwrap();
    let pair = paired(dev, operator.clone(), a, method.needs_adjoint());
    let solver = Solver::new(dev, &pair, m, &*method, stop).unwrap();
    (*operator, solver)
}

/// A matrix on a device, with its adjoint if needed.
///
/// # Panics
/// If it cannot be created.
pub fn paired<T: Scalar>(dev: &Device, a: Owned<Matrix<T>>, host: &Csr<T>, needed: bool) -> Pair<T> {
    let adjoint = if needed { dev.matrix(Arc::new(host.adjoint())).unwrap() } else { a.clone() };
    Pair { a, adjoint }
}

/// A preconditioner that a method supports: Jacobi if possible.
pub(crate) fn usual(info: &MethodInfo) -> &'static str {
    let jacobi = PRECONDITIONERS.iter().find(|precond| precond.name == "jacobi");
    jacobi.filter(|precond| info.accepts(precond)).map_or("none", |precond| precond.name)
}

/// The methods that do not need hundreds of iterations for small systems.
pub(crate) fn rapid() -> impl Iterator<Item = &'static MethodInfo> {
    METHODS.iter().filter(|info| info.name != "richardson")
}

/// A preconditioner by name for a matrix on a device.
///
/// # Panics
/// If it cannot be created.
pub fn placed<T: Scalar>(dev: &Scope, name: &str, host: &Csr<T>, a: Matrix<T>) -> Option<Placed<T>> {
    preconditioner(name).unwrap().map(|kind| Placed::new(dev, kind, host, a, Setup::new()).unwrap())
}

/// A new solve of a case, and all its results.
///
/// # Panics
/// If it cannot be created.
pub fn solve<T: Scalar>(dev: &Scope, case: &Solve) -> Trace<T> {
    let a = generated::<T>(case.matrix);
    let (_, mut solver) = solver(dev, &a, case);
    solve_with(dev, &mut solver, &right_hand_side(a.rows(), 1), &mut vec![T::zero(); a.rows()])
}

pub(crate) fn solve_with<T: Scalar>(_dev: &Scope, solver: &mut Solver<T>, b: &[T], x: &mut [T]) -> Trace<T> {
    let mut trace = Trace::new();
    trace.outcome("outcome", solver.solve(b, x).unwrap());
    trace.numbers("x", x);
    trace
}

/// Every method with every preconditioner, and with every suitable matrix: the matrices alternate.
fn cases<T: Scalar>(max_iters: u64) -> Vec<Solve> {
    let mut cases = Vec::new();
    let hermitian = |name: &&str| Structure::of(&generated::<T>(name)).hermitian;
    let stencil = |name: &&str| Stencil::from_csr(&generated::<T>(name)).is_ok();
    for (turn, info) in METHODS.iter().enumerate() {
        let all = matrices::<T>(info.hermitian());
        let some: Vec<_> = all.iter().copied().filter(hermitian).collect();
        let grids: Vec<_> = some.iter().copied().filter(stencil).collect();
        let preconds: Vec<_> = PRECONDITIONERS.iter().filter(|p| info.accepts(p)).collect();
        for at in 0..all.len().max(preconds.len()) {
            let precond = preconds[at % preconds.len()];
            let matrices = match precond {
                PrecondInfo { needs_stencil: true, .. } => &grids,
                PrecondInfo { needs_hermitian: true, .. } => &some,
                _ => &all,
            };
            let matrix = matrices[(at + turn) % matrices.len()];
            cases.push(Solve { matrix, method: info.name, precond: precond.name, max_iters });
        }
    }
    cases
}

/// Every method with every preconditioner: iterations, reason, history and solution.
pub fn agree<T: Scalar>(make: fn() -> Device) {
    for case in cases::<T>(40) {
        on_both!(make, format!("{case:?}"), |dev| { solve::<T>(dev, &case) });
    }
}

/// Systems large enough to be divided among threads.
pub fn parallel_sizes<T: Scalar>(make: fn() -> Device) {
    for info in METHODS {
        let case =
            Solve { matrix: "gen:poisson2d:211x193", method: info.name, precond: usual(info), max_iters: 8 };
        on_both!(make, format!("{case:?}"), |dev| { solve::<T>(dev, &case) });
    }
    let case = Solve { matrix: "gen:power-law:20000", method: "bicgstab", precond: "jacobi", max_iters: 8 };
    on_both!(make, format!("{case:?}"), |dev| { solve::<T>(dev, &case) });
}

/// A second right-hand side gives the bits of a new solver and allocates nothing; so does the first one
/// again.
pub fn again<T: Scalar>(make: fn() -> Device) {
    let methods = METHODS.iter().map(|info| (info.name, usual(info)));
    let preconds = PRECONDITIONERS.iter().map(|precond| ("bicgstab", precond.name));
    for (method, precond) in methods.chain(preconds) {
        let case = Solve { matrix: "gen:poisson2d:21x17", method, precond, max_iters: 60 };
        let a = generated::<T>(case.matrix);
        let n = a.rows();
        let dev = &make().scope();
        let (_, mut used) = solver(dev, &a, &case);
        for seed in [1, 2, 1] {
            let mark = dev.in_use();
            let b = right_hand_side::<T>(n, seed);
            let got = solve_with(dev, &mut used, &b, &mut vec![T::zero(); n]);
            assert_eq!(dev.in_use(), mark, "{case:?}: a solve leaves something behind");
            let fresh = &make().scope();
            let (_, mut fresh_solver) = solver(fresh, &a, &case);
            let want = solve_with(fresh, &mut fresh_solver, &b, &mut vec![T::zero(); n]);
            got.agrees_with(&want, &format!("{case:?}, right-hand side {seed}"));
        }
    }
}

/// A guess is used: a good one needs fewer iterations, and the bits are the reference's.
pub fn warm_start<T: Scalar>(make: fn() -> Device) {
    for info in rapid() {
        let case =
            Solve { matrix: "gen:poisson2d:21x17", method: info.name, precond: usual(info), max_iters: 400 };
        let a = generated::<T>(case.matrix);
        let b = right_hand_side::<T>(a.rows(), 1);
        on_both!(make, format!("{case:?}"), |dev| {
            let (_, mut solver) = solver(dev, &a, &case);
            let mut x = vec![T::zero(); a.rows()];
            let cold = solver.solve(&b, &mut x).unwrap().clone();
            assert_eq!(cold.reason, Reason::Converged, "{cold:?}");
            let relax = Stop::default().rtol(2.0 * tolerance::<T>()).max_iters(400);
            solver.set_stop(relax);
            let mut again = x.clone();
            let warm = solver.solve(&b, &mut again).unwrap().clone();
            assert_eq!((warm.reason, warm.iterations), (Reason::Converged, 0), "{warm:?}");
            same("a solution that is good enough stays as it is", &again, &x);
            // A tenth of the solution away.
            let mut near: Vec<T> = x.iter().map(|v| *v * T::from_real(0.9)).collect();
            let trace = solve_with(dev, &mut solver, &b, &mut near);
            let near = solver.solve(&b, &mut x.iter().map(|v| *v * T::from_real(1.001)).collect::<Vec<_>>());
            let near = near.unwrap();
            assert!(near.converged() && near.iterations < cold.iterations, "{near:?}");
            trace
        });
    }
}

/// A watch cancels a solve; afterwards the solver works as if nothing had happened.
pub fn cancelled<T: Scalar>(make: fn() -> Device) {
    for info in rapid() {
        // Thousands of iterations away from a solution.
        let case =
            Solve { matrix: "gen:poisson1d:20000", method: info.name, precond: "none", max_iters: 20_000 };
        let a = generated::<T>(case.matrix);
        let n = a.rows();
        let dev = &make().scope();
        let (_, mut used) = solver(dev, &a, &case);
        let b = right_hand_side::<T>(n, 1);
        let mut watched = Vec::new();
        let mut watch = |watch: lacuna_solvers::Watch| {
            watched.push(watch);
            if watched.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let outcome = used.solve_watched(&b, &mut vec![T::zero(); n], Some(&mut watch)).unwrap();
        let exhausted = matches!(outcome.reason, Reason::Breakdown(_) | Reason::Stagnated | Reason::Diverged);
        if T::EPSILON > 1e-10 && exhausted {
            continue; // single precision was exhausted before the cancellation was seen
        }
        assert_eq!(outcome.reason, Reason::Cancelled, "{case:?}");
        assert!(outcome.true_residual.is_finite() && outcome.true_residual > 0.0, "{outcome:?}");
        assert_eq!(outcome.history.len() as u64, outcome.iterations / outcome.history_stride + 1, "{case:?}");
        assert!(outcome.iterations >= watched[1].iterations, "{case:?}");
        assert_eq!(watched.len(), 2, "not called again after it cancelled");
        assert!(
            watched[0].iterations < watched[1].iterations
                && (watched[1].residual > 0.0 || info.least_squares()),
            "{watched:?}"
        );
        used.set_stop(Stop::default().rtol(tolerance::<T>()).max_iters(30));
        let got = solve_with(dev, &mut used, &b, &mut vec![T::zero(); n]);
        let fresh = &make().scope();
        let (_, mut fresh_solver) = solver(fresh, &a, &Solve { max_iters: 30, ..case });
        let want = solve_with(fresh, &mut fresh_solver, &b, &mut vec![T::zero(); n]);
        got.agrees_with(&want, &format!("{case:?} after a cancelled solve"));
    }
}

/// The test of the maximum norm, by methods that have the residual in a vector and by such as know its norm alone, with one segment and
/// with several.
pub fn maximum_norm<T: Scalar>(make: fn() -> Device) {
    for matrix in ["gen:convection:11x12:1", "gen:poisson2d:37x30"] {
        let a = generated::<T>(matrix);
        let b = right_hand_side::<T>(a.rows(), 1);
        let methods: &[&str] = match matrix {
            "gen:poisson2d:37x30" => &["cg", "pipelined-cg", "minres", "bicgstab", "gmres"],
            _ => &["bicgstab", "idr", "qmr", "tfqmr", "gmres", "pipelined-gmres"],
        };
        for method in methods {
            let case = Solve { matrix, method, precond: "jacobi", max_iters: 300 };
            let stop = Stop::default().rtol(tolerance::<T>()).max_iters(case.max_iters).norm(Norm::Max);
            on_both!(make, format!("{case:?} in the maximum norm"), |dev| {
                let (_, mut solver) = solver_with(dev, &a, &case, &Options::default(), stop);
                let mut trace = solve_with(dev, &mut solver, &b, &mut vec![T::zero(); a.rows()]);
                let outcome = solver.solve(&b, &mut vec![T::zero(); a.rows()]).unwrap();
                trace.reals("maximum norm", &[outcome.max_residual, outcome.relative_max_residual]);
                trace
            });
        }
    }
}

/// GMRES with every orthogonalization, both sides, and cycles of one, few and too many iterations; the simpler one before it was
/// pipelined.
pub fn gmres_variants<T: Scalar>(make: fn() -> Device) {
    let every =
        [Orthogonalization::ClassicalTwice, Orthogonalization::Classical, Orthogonalization::Modified];
    let case = Solve { matrix: "gen:convection:11x12:10", method: "gmres", precond: "jacobi", max_iters: 30 };
    let a = generated::<T>(case.matrix);
    let b = right_hand_side::<T>(a.rows(), 1);
    for orthogonalization in every {
        for (side, precond) in [(Side::Right, "none"), (Side::Right, "jacobi"), (Side::Left, "jacobi")] {
            for restart in [0, 1, 7, 1000] {
                let options =
                    Options::default().restart(restart).orthogonalization(orthogonalization).side(side);
                let case = Solve { precond, max_iters: if restart == 1000 { 200 } else { 30 }, ..case };
                let stop = Stop::default().rtol(tolerance::<T>()).max_iters(case.max_iters);
                on_both!(make, format!("{case:?} {options:?}"), |dev| {
                    let (_, mut solver) = solver_with(dev, &a, &case, &options, stop);
                    solve_with(dev, &mut solver, &b, &mut vec![T::zero(); a.rows()])
                });
            }
        }
    }
    for (precond, restart) in [("none", 30), ("jacobi", 7), ("jacobi", 1)] {
        let case = Solve { method: "pipelined-gmres:orthogonalization=modified", precond, ..case };
        let (options, stop) =
            (Options::default().restart(restart), Stop::default().rtol(tolerance::<T>()).max_iters(30));
        on_both!(make, format!("{case:?} {options:?}"), |dev| {
            let (_, mut solver) = solver_with(dev, &a, &case, &options, stop);
            solve_with(dev, &mut solver, &b, &mut vec![T::zero(); a.rows()])
        });
    }
}

/// A power of two times `b` gives exactly that power of two times `x`, in as many iterations, at any
/// magnitude.
pub fn scaled_exactly<T: Scalar>(make: fn() -> Device) {
    let far = (T::MAX.log2() * 0.49) as i32;
    for info in rapid() {
        let case =
            Solve { matrix: "gen:poisson2d:15x14", method: info.name, precond: usual(info), max_iters: 400 };
        let a = generated::<T>(case.matrix);
        // Integers, so that no element of b is much smaller than the others.
        let whole = |v: T| T::from_parts((8.0 * v.re()).ceil(), (8.0 * v.im()).ceil());
        let b: Vec<T> = right_hand_side::<T>(a.rows(), 1).into_iter().map(whole).collect();
        let dev = &make().scope();
        let (_, mut solver) = solver(dev, &a, &case);
        let mut x = vec![T::zero(); a.rows()];
        let outcome = solver.solve(&b, &mut x).unwrap().clone();
        assert_eq!(outcome.reason, Reason::Converged, "{case:?}");
        for exponent in [-far, -9, 1, 10, far] {
            let scale = |v: &[T]| v.iter().map(|v| v.scale_by_power_of_two(exponent)).collect::<Vec<T>>();
            let mut got = vec![T::zero(); a.rows()];
            let scaled = solver.solve(&scale(&b), &mut got).unwrap();
            let context = format!("{case:?} with b times 2^{exponent}");
            assert_eq!((scaled.reason, scaled.iterations), (outcome.reason, outcome.iterations), "{context}");
            same(&context, &got, &scale(&x));
        }
    }
}
