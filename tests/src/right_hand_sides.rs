//! Several right-hand sides at once: the reference's bits, and those of a separate solve for each.
use crate::bits::{Trace, same};
use crate::numbers::{Rng, generated};
use crate::on_both;
use crate::solves::{Solve, placed, solver_with, tolerance};
use lacuna_engine::{Device, LinOp, Scalar};
use lacuna_solvers::{ColumnSolver, METHODS, Options, RightHandSide, Stop, method};
use std::sync::Arc;

const MATRICES: [&str; 2] = ["gen:poisson2d:21x17", "gen:poisson3d:9x7x6:27"];
const PRECONDITIONERS: [&str; 3] = ["none", "jacobi", "ssor"];

/// Three right-hand sides, with room for four; the second has its solution as the guess.
fn sides<T: Scalar>(n: usize, solution: &[T]) -> ([Vec<T>; 3], [Vec<T>; 3]) {
    let b = [1, 2, 3].map(|seed| Rng::new(seed).vector(n));
    let mut x = [(); 3].map(|()| vec![T::zero(); n]);
    x[1].copy_from_slice(solution);
    (b, x)
}

/// Every method that supports several right-hand sides, with some preconditioners.
///
/// # Panics
/// If a case fails.
pub fn agree<T: Scalar>(make: fn() -> Device) {
    // Some columns meet their goals while others begin a second or third cycle.
    let options = Options::default().restart(12);
    let mut tried = Vec::new();
    for (info, matrix, precond) in METHODS
        .iter()
        .filter(|info| !info.least_squares())
        .flat_map(|info| MATRICES.map(|matrix| (info, matrix)))
        .flat_map(|(info, matrix)| PRECONDITIONERS.map(|precond| (info, matrix, precond)))
    {
        let case = Solve { matrix, method: info.name, precond, max_iters: 200 };
        let a = generated::<T>(matrix);
        let (n, stop) = (a.rows(), Stop::default().rtol(tolerance::<T>()).max_iters(200));
        let takes = method::<T>(info.name, &options).unwrap().columns().is_some();
        on_both!(make, format!("{case:?}"), |dev| {
            let mut trace = Trace::new();
            let operator = dev.matrix(Arc::new(a.clone())).unwrap();
            let m = placed(dev, precond, &a, operator);
            let m = m.as_ref().map(|m| m as &dyn LinOp<T>);
            let method = method(info.name, &options).unwrap();
            if takes {
                let mut together = ColumnSolver::new(dev, &operator, m, &*method, 4).unwrap();
                let (_, mut alone) = solver_with(dev, &a, &case, &options, stop);
                let mut solution = vec![T::zero(); n];
                alone.solve(&Rng::new(2).vector(n), &mut solution).unwrap();
                for _ in 0..2 {
                    let (b, mut x) = sides(n, &solution);
                    let mut sides: Vec<_> = b
                        .iter()
                        .zip(&mut x)
                        .map(|(b, x)| RightHandSide { factors: alone.factors(b), b, x })
                        .collect();
                    let found = together.solve(&mut sides, stop, None).unwrap();
                    assert_eq!(found[1].iterations, 0, "{case:?}: a solution needs no iterations");
                    for (j, found) in found.iter().enumerate() {
                        let (_, mut own) = sides_of(j, &solution, n);
                        let outcome = alone.solve(&b[j], &mut own).unwrap();
                        assert_eq!(found.iterations, outcome.iterations, "{case:?}: column {j}");
                        same(&format!("{case:?}: column {j}"), &x[j], &own);
                        trace.numbers(format!("column {j}"), &x[j]);
                    }
                }
            }
            trace
        });
        if takes && !tried.contains(&info.name) {
            tried.push(info.name);
        }
    }
    assert_eq!(tried, ["cg", "bicgstab", "gmres"], "the methods for several right-hand sides");
}

/// The right-hand side and the guess of one column.
fn sides_of<T: Scalar>(j: usize, solution: &[T], n: usize) -> (Vec<T>, Vec<T>) {
    let (b, x) = sides(n, solution);
    let mut all = b.into_iter().zip(x);
    all.nth(j).expect("a column")
}
