//! Preconditioners under solves: cycles over levels, options away from their defaults, user-defined ones, new values.
use crate::numbers::generated;
use crate::on_both;
use crate::solves::{Solve, placed, right_hand_side, solve, solve_with, tolerance};
use lacuna_engine::{Device, Error, Format, LinOp, Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::{Csr, Triplets, convert};
use lacuna_solvers::{
    Handles, METHODS, Options, PRECONDITIONERS, Parts, Placed, Preconditioner, Setup, Solver, Stop,
    inverse_diagonal, method,
};
use std::sync::Arc;

/// Multigrid cycles over several levels, with both smoothers and with a smoothed coarsest level.
pub fn multigrid<T: Scalar>(make: fn() -> Device) {
    for precond in [
        "amg:coarsest=16",
        "amg:coarsest=30,smoother=chebyshev,sweeps=2",
        "amg:coarsest=1,complexity=1.01,aggregate=greedy",
        "amg:coarsest=16,precision=single",
    ] {
        for (matrix, method) in [
            ("gen:poisson2d:21x17", "cg"),
            ("gen:convection:21x17", "bicgstab"),
            ("gen:poisson2d:41x39", "gmres"),
        ] {
            let case = Solve { matrix, method, precond, max_iters: 40 };
            on_both!(make, format!("{case:?}"), |dev| { solve::<T>(dev, &case) });
        }
    }
}

/// Multigrid cycles over grids: coarsened along all axes or some, even and odd, down to a point.
pub fn grids<T: Scalar>(make: fn() -> Device) {
    for (matrix, precond) in [
        ("gen:poisson1d:300", "multigrid:coarsest=8"),
        ("gen:poisson2d:41x30", "multigrid:coarsest=40,smoother=spai0"),
        ("gen:poisson2d:80x77:9", "multigrid:coarsest=100,sweeps=2"),
        ("gen:poisson3d:13x12x11", "multigrid:coarsest=30"),
        ("gen:poisson3d:12x7x9:27", "multigrid:coarsest=1"),
    ] {
        let case = Solve { matrix, method: "cg", precond, max_iters: 40 };
        on_both!(make, format!("{case:?}"), |dev| { solve::<T>(dev, &case) });
    }
}

/// Preconditioners with options that select other code paths.
pub fn variants<T: Scalar>(make: fn() -> Device) {
    for (matrix, method, precond) in VARIANTS {
        let case = Solve { matrix, method, precond, max_iters: 40 };
        on_both!(make, format!("{case:?}"), |dev| { solve::<T>(dev, &case) });
    }
}

/// Matrix, method and preconditioner.
const VARIANTS: &[(&str, &str, &str)] = &[
    ("gen:poisson2d:21x17", "cg", "chebyshev:degree=1"),
    ("gen:poisson2d:21x17", "cg", "chebyshev:degree=2,ratio=10"),
    ("gen:poisson2d:21x17", "cg", "chebyshev:degree=7"),
    ("gen:poisson2d:21x17", "cg", "fsai:power=2"),
    ("gen:poisson3d:9x7x6:27", "cg", "fsai:steps=3"),
    ("gen:convection:21x18", "bicgstab", "block-jacobi:size=3"),
    ("gen:convection:21x17", "bicgstab", "block-jacobi:size=4"),
    ("gen:convection:21x17", "gmres", "block-jacobi:size=16"),
    ("gen:elasticity3d:3", "cg", "block-jacobi"),
    ("gen:poisson2d:21x17", "cg", "ssor:omega=1.5"),
    ("gen:poisson2d:21x17", "cg", "ssor:order=natural,omega=1.2"),
    ("gen:poisson3d:9x7x6:27", "cg", "ic0:solve=colours"),
    ("gen:poisson2d:21x17", "cg", "ic0:sweeps=1"),
    ("gen:poisson2d:21x17", "cg", "ic0:sweeps=2"),
    ("gen:convection:21x18:100", "bicgstab", "ilu0:solve=colours"),
    ("gen:convection:21x18", "bicgstab", "ilu0:sweeps=3"),
    ("gen:convection:21x18:100", "gmres", "block-ilu:size=16,order=1"),
    ("gen:poisson2d:21x17", "cg", "block-ilu:order=2"),
    ("gen:random:400:9:3", "gmres", "ilut:drop=1e-2,fill=2"),
    ("gen:random:400:9:3", "gmres", "ilut:order=natural"),
    ("gen:poisson2d:21x17", "cg", "jacobi:polynomial=3"),
    ("gen:poisson2d:41x39", "cg", "amg:coarsest=60,polynomial=1"),
    ("gen:convection:21x18", "bicg", "ilu0:adjoint=yes,sweeps=2"),
    ("gen:convection:21x18", "qmr", "sor:adjoint=yes"),
    ("gen:random:400:9:3", "bicg", "ilut:adjoint=yes"),
    ("gen:random:400:9:3", "lsqr", "ilut:adjoint=yes,order=natural"),
    ("gen:convection:21x18", "qmr", "block-jacobi:size=3,adjoint=yes"),
    ("gen:convection:21x17", "bicg", "block-jacobi:size=16,adjoint=yes"),
    ("gen:convection:21x17", "lsmr", "spai:adjoint=yes"),
    ("gen:convection:21x17", "bicg", "neumann:adjoint=yes"),
    ("gen:poisson2d:41x39", "bicg", "amg:coarsest=60"),
    ("gen:poisson2d:41x30", "qmr", "multigrid:coarsest=40"),
];

/// A user-defined preconditioner: symmetric Gauss–Seidel with each triangular factor solved by two Jacobi
/// sweeps.
struct OwnSgs;

impl<T: Scalar> Preconditioner<T> for OwnSgs {
    fn set_up(&mut self, a: &Csr<T>, _: &mut Setup<'_>) -> Result<Parts<T>> {
        let n = a.rows();
        let part = |keep: fn(usize, usize) -> bool| {
            let mut t = Triplets::new(n, n);
            for i in 0..n {
                for k in a.row_ptr()[i] as usize..a.row_ptr()[i + 1] as usize {
                    let j = a.col_idx()[k] as usize;
                    if keep(i, j) {
                        t.push(i, j, a.values()[k]);
                    }
                }
            }
            t.to_csr()
        };
        let parts = Parts::new().vector(inverse_diagonal(a)?).vector(a.diagonal());
        let parts = parts.matrix(part(|i, j| j < i)?).matrix(part(|i, j| j > i)?);
        Ok(parts.scratch(n).scratch(n).scratch(n).report("sweeps", 2))
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        let ([d, diagonal], [lower, upper], [y, s, t]) = (on.vectors(), on.matrices(), on.scratch());
        k.multi_axpy_dot(Pass::new("start").set(y, d * r));
        k.spmv_dot(&lower, y, t, Pass::new("lower").set(s, d * r - d * t));
        k.spmv_dot(&lower, s, t, Pass::new("lower").set(y, d * r - d * t));
        k.multi_axpy_dot(Pass::new("middle").set(s, diagonal * y));
        k.spmv_dot(&upper, y, t, Pass::new("upper").set(z, d * s - d * t));
        k.spmv_dot(&upper, z, t, Pass::nothing());
        k.multi_axpy_dot(Pass::new("upper").set(z, d * s - d * t).then(then));
    }
}

/// A user-defined preconditioner under every method.
pub fn own<T: Scalar>(make: fn() -> Device) {
    for info in METHODS.iter().filter(|info| !info.adjoint) {
        on_both!(make, format!("{} with a preconditioner of one's own", info.name), |dev| {
            let a = generated::<T>("gen:poisson2d:31x17");
            let operator = dev.matrix(Arc::new(a.clone())).unwrap();
            let m = Placed::new(dev, Box::new(OwnSgs), &a, operator, Setup::new()).unwrap();
            assert_eq!(m.report()[0], ("sweeps", "2".to_string()));
            let options = Options::default().restart(12);
            let stop = Stop::default().rtol(tolerance::<T>()).max_iters(60);
            let method = method(info.name, &options).unwrap();
            let mut solver = Solver::new(dev, &operator, Some(&m), &*method, stop).unwrap();
            solve_with(dev, &mut solver, &right_hand_side(a.rows(), 1), &mut vec![T::zero(); a.rows()])
        });
    }
}

/// New values on the same pattern, preconditioner included, give the bits of a newly created system, in every
/// format, without allocations.
pub fn new_values<T: Scalar>(make: fn() -> Device) {
    let a = generated::<T>("gen:poisson2d:21x17");
    let b = right_hand_side::<T>(a.rows(), 1);
    let mut scaled = a.clone();
    // As symmetric as the matrix, for preconditioners that need that.
    let grown = |step: usize, k: usize, v: T| v * T::from_real(1.0 + 0.001 * ((k * 7 + step) % 5) as f64);
    // The entries that `ilut` keeps follow from the values; for new values it reuses the steps for the old
    // ones. These values are no stencil.
    for precond in PRECONDITIONERS.iter().filter(|p| p.name != "ilut" && !p.needs_stencil) {
        for format in ["csr", "sell", "bcsr3", "hyb", "dense"] {
            // A format treats new values in the same way under every preconditioner.
            if !(format == "csr" || precond.name == "jacobi") {
                continue;
            }
            let case = Solve {
                matrix: "gen:poisson2d:21x17",
                method: "bicgstab",
                precond: precond.name,
                max_iters: 60,
            };
            let dev = &make().scope();
            if !dev.formats(a.rows(), a.bytes()).unwrap().iter().any(|cost| format.starts_with(cost.format)) {
                continue;
            }
            let Ok(stored) = convert(&Arc::new(a.clone()), format) else { continue };
            let operator = dev.matrix(stored).unwrap();
            let mut m = placed(dev, case.precond, &a, operator);
            let method = method(case.method, &Options::default()).unwrap();
            let stop = Stop::default().rtol(tolerance::<T>()).max_iters(60);
            let operand = m.as_ref().map(|m| m as &dyn LinOp<T>);
            let mut solver = Solver::new(dev, &operator, operand, &*method, stop).unwrap();
            for step in 0..3 {
                let values: Vec<T> = a.entries().map(|(i, j, v)| grown(step, i + j, v)).collect();
                scaled.set_values(&values).unwrap();
                let mark = dev.in_use();
                dev.set_matrix(operator, convert(&Arc::new(scaled.clone()), format).unwrap()).unwrap();
                m.iter_mut().for_each(|m| m.update(&scaled, Setup::new()).unwrap());
                let got = solve_with(dev, &mut solver, &b, &mut vec![T::zero(); a.rows()]);
                assert_eq!(dev.in_use(), mark, "{case:?} {format}");
                let fresh = &make().scope();
                let operator = fresh.matrix(convert(&Arc::new(scaled.clone()), format).unwrap()).unwrap();
                let m = placed(fresh, case.precond, &scaled, operator);
                let operand = m.as_ref().map(|m| m as &dyn LinOp<T>);
                let mut solver = Solver::new(fresh, &operator, operand, &*method, stop).unwrap();
                let want = solve_with(fresh, &mut solver, &b, &mut vec![T::zero(); a.rows()]);
                got.agrees_with(&want, &format!("{case:?} {format}, values {step}"));
            }
            let other = generated::<T>("gen:poisson2d:17x21");
            let refused = dev.set_matrix(operator, convert(&Arc::new(other), format).unwrap());
            assert!(format == "dense" || matches!(refused, Err(Error::Structure { .. })), "{refused:?}");
        }
    }
}
