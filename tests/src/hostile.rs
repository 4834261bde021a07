//! Edge cases and bad input: an outcome, or an error that names the place; never a panic or a wrong answer.
use crate::bits::{Trace, cells_of, download, same, upload};
use crate::cells::hessenberg;
use crate::numbers::{Rng, generated, random_matrix};
use crate::on_both;
use crate::solves::{Solve, rapid, solver, solver_with, tolerance, usual};
use lacuna_engine::{
    Device, Diagonal, Error, Expr, History, Identity, LinOp, Pass, Product, Reason, Recorder, Run, Scalar,
    Shifted, Sum,
};
use lacuna_formats::Csr;
use lacuna_solvers::{METHODS, Options, Solver, Stop, method};
use std::sync::Arc;

fn case(method: &'static str) -> Solve {
    let info = METHODS.iter().find(|info| info.name == method);
    Solve { matrix: "gen:poisson2d:13x11", method, precond: info.map_or("none", usual), max_iters: 300 }
}

/// Fails unless the result is an error whose text contains the words.
#[track_caller]
pub(crate) fn fails<R>(result: Result<R, Error>, words: &[&str]) -> Error {
    let Err(error) = result else { panic!("no error; expected one about {words:?}") };
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "`{text}` does not say `{word}`");
    }
    error
}

/// For `b = 0` the solution is 0, for any guess.
pub fn zero_right_hand_side<T: Scalar>(make: fn() -> Device) {
    for info in METHODS {
        let a = generated::<T>(case("").matrix);
        let dev = &make().scope();
        let (_, mut solver) = solver(dev, &a, &case(info.name));
        let mut x = Rng::new(1).vector::<T>(a.rows());
        let outcome = solver.solve(&vec![T::zero(); a.rows()], &mut x).unwrap();
        assert_eq!((outcome.reason, outcome.iterations), (Reason::Converged, 0), "{outcome:?}");
        assert_eq!((outcome.residual, outcome.true_residual), (0.0, 0.0), "{outcome:?}");
        assert_eq!(outcome.history, [0.0]);
        same("x", &x, &vec![T::zero(); a.rows()]);
    }
}

/// An exact guess needs no iteration and is not changed, also with a tolerance of zero.
pub fn exact_start<T: Scalar>(make: fn() -> Device) {
    for info in METHODS {
        let a = generated::<T>(case("").matrix);
        let x: Vec<T> = (0..a.rows()).map(|i| T::from_parts((i % 7) as f64 - 3.0, (i % 5) as f64)).collect();
        let mut b = vec![T::zero(); a.rows()];
        a.product(&x, &mut b).unwrap();
        let dev = &make().scope();
        let (_, mut solver) = solver(dev, &a, &case(info.name));
        for rtol in [tolerance::<T>(), 0.0] {
            solver.set_stop(Stop::default().rtol(rtol));
            let mut guess = x.clone();
            let outcome = solver.solve(&b, &mut guess).unwrap();
            assert_eq!((outcome.reason, outcome.iterations), (Reason::Converged, 0), "{outcome:?}");
            assert_eq!(outcome.true_residual, 0.0, "{outcome:?}");
            same("x", &guess, &x);
        }
    }
}

/// A tolerance of zero is not met, and the outcome says so: the residual is as small as the precision allows,
/// and the reason is not `Converged`.
pub fn tolerance_zero<T: Scalar>(make: fn() -> Device) {
    let a = generated::<T>(case("").matrix);
    let b = Rng::new(3).vector::<T>(a.rows());
    for info in rapid() {
        let stop = Stop::default().rtol(0.0).max_iters(3000);
        on_both!(make, info.name, |dev| {
            let (_, mut solver) = solver_with(dev, &a, &case(info.name), &Options::default(), stop);
            let mut x = vec![T::zero(); a.rows()];
            let outcome = solver.solve(&b, &mut x).unwrap();
            let reported = matches!(outcome.reason, Reason::Stagnated | Reason::Breakdown(_));
            assert!(reported, "{}: {} {}", info.name, outcome.reason, outcome.true_residual);
            // Rounding of b − A x alone: eps times |b| + |A| |x|, whose norms are below condition times |b|.
            let reachable = T::EPSILON * a.rows() as f64 * 8.0;
            assert!(outcome.true_residual <= reachable, "{} above {reachable}", outcome.true_residual);
            let mut trace = Trace::new();
            trace.outcome("outcome", outcome);
            trace.numbers("x", &x);
            trace
        });
    }
}

/// Right-hand sides and matrices whose squares overflow or underflow.
pub fn huge_and_tiny<T: Scalar>(make: fn() -> Device) {
    let far = if T::MAX > 1e100 { 150 } else { 18 };
    let a = generated::<T>(case("").matrix);
    let unit = Rng::new(4).vector::<T>(a.rows());
    for info in rapid() {
        for size in [10f64.powi(far), 10f64.powi(-far)] {
            let b: Vec<T> = unit.iter().map(|v| *v * T::from_real(size)).collect();
            on_both!(make, format!("{} with b times {size:e}", info.name), |dev| {
                let (_, mut solver) = solver(dev, &a, &case(info.name));
                let mut x = vec![T::zero(); a.rows()];
                let outcome = solver.solve(&b, &mut x).unwrap();
                assert_eq!(outcome.reason, Reason::Converged, "{} {size:e} {outcome:?}", info.name);
                assert!(outcome.residual > 0.0 && outcome.true_residual > 0.0, "{outcome:?}");
                let mut trace = Trace::new();
                trace.outcome("outcome", outcome);
                trace.numbers("x", &x);
                trace
            });
        }
        // A matrix times a power of four, which has an exact root: the same iterations, and x divided by that
        // power.
        let dev = &make().scope();
        let (_, mut plain) = solver(dev, &a, &case(info.name));
        let mut x = vec![T::zero(); a.rows()];
        let expected = plain.solve(&unit, &mut x).unwrap().clone();
        let exponent = (T::MAX.log2() / 12.0) as i32 * 2;
        for exponent in [exponent, -exponent] {
            let scaled = a.map(|v| v.scale_by_power_of_two(exponent)).unwrap();
            let (_, mut solver) = solver(dev, &scaled, &case(info.name));
            let mut got = vec![T::zero(); a.rows()];
            let outcome = solver.solve(&unit, &mut got).unwrap();
            let context = format!("{} with A times 2^{exponent}", info.name);
            let reported = (outcome.reason, outcome.iterations);
            assert_eq!(reported, (expected.reason, expected.iterations), "{context}");
            let want: Vec<T> = x.iter().map(|v| v.scale_by_power_of_two(-exponent)).collect();
            same(&context, &got, &want);
        }
    }
}

/// NaN and infinities in `b` or the guess are errors that name the row; the solver remains usable.
pub fn not_finite_input<T: Scalar>(make: fn() -> Device) {
    let a = generated::<T>(case("").matrix);
    let n = a.rows();
    let good = Rng::new(5).vector::<T>(n);
    let dev = &make().scope();
    let (_, mut solver) = solver(dev, &a, &case("bicgstab"));
    let mut expected = vec![T::zero(); n];
    solver.solve(&good, &mut expected).unwrap();
    let mut bad = vec![(0, T::from_real(f64::NAN)), (n - 1, T::from_real(f64::INFINITY))];
    bad.push((7, T::from_real(f64::NEG_INFINITY)));
    if T::KIND.is_complex() {
        bad.push((9, T::from_parts(1.0, f64::NAN)));
    }
    for (row, value) in bad {
        let mut spoilt = good.clone();
        spoilt[row] = value;
        let error = solver.solve(&spoilt, &mut vec![T::zero(); n]).unwrap_err();
        assert!(matches!(&error, Error::Element { what, row: r, .. } if what == "b" && *r == row), "{error}");
        let error = solver.solve(&good, &mut spoilt).unwrap_err();
        assert!(
            matches!(&error, Error::Element { what, row: r, .. } if what == "x0" && *r == row),
            "{error}"
        );
        fails::<()>(Err(error), &[&format!("row {row}"), "finite"]);
    }
    let mut x = vec![T::zero(); n];
    solver.solve(&good, &mut x).unwrap();
    same("x after errors", &x, &expected);
}

/// Lengths and shapes that do not match, in every call that takes one.
pub fn wrong_lengths<T: Scalar>(make: fn() -> Device) {
    let a = generated::<T>(case("").matrix);
    let n = a.rows();
    let dev = &make().scope();
    let (_, mut used) = solver(dev, &a, &case("cg"));
    let (long, short) = (vec![T::one(); n + 1], vec![T::one(); n - 1]);
    fails(used.solve(&long, &mut vec![T::zero(); n]), &["b", &format!("{}", n + 1), &n.to_string()]);
    fails(used.solve(&short, &mut vec![T::zero(); n]), &["b"]);
    fails(used.solve(&vec![T::one(); n], &mut vec![T::zero(); n + 1]), &["x0"]);
    fails(used.solve(&[], &mut []), &["length"]);

    let v = upload(dev, &vec![T::one(); n]);
    fails(dev.upload(&long, v), &["upload", "length"]);
    fails(dev.download(v, &mut vec![T::zero(); n - 1]), &["download", "length"]);
    same("a vector after failed transfers", &download(dev, v), &vec![T::one(); n]);

    let tall = dev.matrix(Arc::new(random_matrix::<T>(&mut Rng::new(1), n, 5, 2))).unwrap();
    let (x, y) = (upload(dev, &[T::one(); 5]), upload(dev, &vec![T::one(); n]));
    let c = cells_of(dev, &[T::one()]);
    fails(dev.spmv_dot(&tall, y, v, Pass::new("mine")), &["mine", "x", "5"]);
    fails(dev.spmv_dot(&tall, x, x, Pass::new("mine")), &["mine", "y"]);
    fails(dev.spmv_dot(&tall, x, y, Pass::new("mine").dot(c[0], x, x)), &["mine"]);
    fails(dev.multi_axpy_dot(Pass::new("mine").set(y, x + y)), &["mine", "length"]);
    fails(dev.multi_axpy_dot(Pass::new("mine").dot(c[0], x, y)), &["mine", "length"]);
    fails(dev.multi_axpy_dot(Pass::new("mine").set(y, y * x)), &["mine", "length"]);
    fails(dev.spmv_dot(&Sum(&Identity(n), &tall), v, y, Pass::nothing()), &["length"]);
    fails(dev.spmv_dot(&Product(&tall, &Identity(n)), v, y, Pass::nothing()), &["length"]);
    fails(dev.spmv_dot(&Shifted(&tall, c[0]), x, y, Pass::nothing()), &["length"]);

    let basis = dev.basis::<T>(n, 2).unwrap();
    let h = dev.run_of_cells::<T>(3).unwrap();
    fails(dev.basis_dot(basis, x, h.take(2)), &["basis_dot", "length"]);
    fails(dev.basis_dot(basis, y, h), &["columns"]);
    fails(dev.basis_axpy(basis, h.take(1), x, Pass::nothing()), &["basis_axpy", "length"]);
    fails(dev.basis_axpy(basis, h, y, Pass::nothing()), &["columns"]);
    fails(dev.basis_gram(basis, basis, h.take(1)), &["basis_gram", "cells"]);
    fails(dev.basis_combine(basis, h.take(1), basis), &["basis_combine", "cells"]);
    fails(dev.basis_combine(basis.take(1), h.take(1), basis.take(1)), &["writes a column"]);
    fails(dev.write_run(h, &[T::zero()]), &["write", "length"]);

    let m = method::<T>("cg", &Options::default()).unwrap();
    let shape = Solver::new(dev, &tall, None, &*m, Stop::default()).err().unwrap();
    assert!(matches!(shape, Error::Shape { got, .. } if got == (n, 5)), "{shape}");
    let square = dev.matrix(Arc::new(a)).unwrap();
    let other: &dyn LinOp<T> = &Diagonal(x);
    let shape = Solver::new(dev, &square, Some(other), &*m, Stop::default()).err().unwrap();
    assert!(matches!(shape, Error::Shape { got: (5, 5), .. }), "{shape}");
    for wrong in [f64::NAN, -1.0] {
        let stop = Stop::default().rtol(wrong);
        fails(Solver::new(dev, &square, None, &*m, stop), &["rtol"]);
        let stop = Stop::default().atol(wrong);
        fails(Solver::new(dev, &square, None, &*m, stop), &["atol"]);
    }
    fails(method::<T>("conjugate", &Options::default()), &["conjugate", "gmres"]);
}

/// Violations of the rules of a pass are errors when it is recorded or planned; they name the pass and change
/// nothing.
pub fn pass_rules<T: Scalar>(make: fn() -> Device) {
    let dev = &make().scope();
    let n = 30;
    let start = Rng::new(6).vector::<T>(n);
    let [x, y, z] = std::array::from_fn(|_| upload(dev, &start));
    let c = cells_of(dev, &[T::one(); 2]);
    let a = dev.matrix(Arc::new(Csr::<T>::identity(n).unwrap())).unwrap();
    let mine = || Pass::new("mine");
    fails(
        dev.multi_axpy_dot(mine().dot(c[0], x, y).eval(c[1], c[0]).dot(c[0], y, y)),
        &["mine", "a dot product comes after"],
    );
    fails(
        dev.multi_axpy_dot(mine().dot(c[0], x, y).set(x, y)),
        &["mine", "an update comes after a dot product"],
    );
    fails(
        dev.multi_axpy_dot(mine().set(x, y).eval(c[0], c[1]).set(y, x)),
        &["mine", "an update comes after"],
    );
    let nonlinear: [(Expr<T>, &str); 8] = [
        (x / y, "divides by a vector"),
        (x * y * z, "three vectors"),
        ((x + y) * (y + z), "two sums"),
        (x + 1.0, "adds a number"),
        (x + c[0], "adds a number"),
        (Expr::from(x).sqrt(), "root"),
        (Expr::from(x).conj(), "conjugates"),
        (Expr::from(x).max(y), "maximum"),
    ];
    for (formula, why) in nonlinear {
        let error = fails(dev.multi_axpy_dot(mine().set(z, formula)), &["mine", "not linear", why]);
        assert!(matches!(error, Error::Pass { .. }), "{error}");
    }
    fails(dev.multi_axpy_dot(mine().dot(c[0], x, x + y)), &["mine", "dot product", "product of two vectors"]);
    fails(dev.spmv_dot(&a, x, y, mine().set(x, x - y)), &["mine", "writes the operand"]);
    fails(dev.spmv_dot(&a, x, x, mine()), &["mine", "same vector"]);
    let v = dev.basis::<T>(n, 2).unwrap();
    let h = dev.run_of_cells::<T>(2).unwrap();
    fails(dev.basis_axpy(v, h, v.column(1), mine()), &["mine", "changes a column"]);
    fails(dev.basis_axpy(v, h, x, mine().set(v.column(0), x)), &["mine", "writes a column"]);
    // A column not in use may be changed.
    dev.basis_axpy(v, h.take(1), v.column(1), mine()).unwrap();
    for (name, v) in [("x", x), ("y", y), ("z", z)] {
        same(name, &download(dev, v), &start);
    }
}

/// Violations of the rules of a program; `finish` returns the first error of recording.
pub fn program_rules<T: Scalar>(make: fn() -> Device) {
    let dev = &make().scope();
    let (x, y) = (upload(dev, &[T::one(); 8]), upload(dev, &[T::one(); 9]));
    let c = cells_of(dev, &[T::one()]);
    let mut k = Recorder::new(dev, "endless");
    k.each(|k| k.multi_axpy_dot(Pass::new("round").set(x, -x)));
    let error = fails(k.finish(), &["endless", "count"]);
    assert!(matches!(error, Error::Program { .. }), "{error}");
    let mut k = Recorder::new(dev, "two errors");
    k.multi_axpy_dot(Pass::new("first").set(x, y));
    k.multi_axpy_dot(Pass::new("second").set(x, x / y));
    k.each(|k| k.multi_axpy_dot(Pass::new("round").count(c[0])));
    fails(k.finish(), &["first"]);
    // A least-squares problem larger than its cells.
    let at = hessenberg::<T>(dev, 3);
    fails(dev.multi_axpy_dot(Pass::new("mine").rotate(at, 3, c[0])), &["mine"]);
    fails(
        dev.multi_axpy_dot(Pass::new("mine").rotate(lacuna_engine::Hessenberg { m: 4, ..at }, 0, c[0])),
        &["mine"],
    );
    fails(
        dev.multi_axpy_dot(Pass::new("mine").rotate(lacuna_engine::Hessenberg { m: 0, ..at }, 0, c[0])),
        &["mine", "column 0", "0 columns"],
    );
    fails(
        dev.multi_axpy_dot(Pass::new("mine").back_substitute(lacuna_engine::Hessenberg { m: 4, ..at })),
        &["mine"],
    );
    // A program without operations ends.
    let program = Recorder::<T>::new(dev, "empty").finish().unwrap();
    let mut plan = dev.plan(program).unwrap();
    let run = Run { limit: 3, history: &mut History::default(), watch: None };
    assert_eq!(dev.execute(&mut plan, run).unwrap().iterations, 0);
}

/// Systems with no unknown and with one.
pub fn tiny_systems<T: Scalar>(make: fn() -> Device) {
    for info in METHODS {
        for precond in ["none", usual(info)] {
            let case = Solve { precond, ..case(info.name) };
            let dev = &make().scope();
            let nothing = Csr::<T>::new(0, 0, vec![0], vec![], vec![]).unwrap();
            let (_, mut solver_0) = solver(dev, &nothing, &case);
            let outcome = solver_0.solve(&[], &mut []).unwrap();
            assert_eq!((outcome.reason, outcome.iterations), (Reason::Converged, 0), "{case:?}");
            let four = Csr::<T>::new(1, 1, vec![0, 1], vec![0], vec![T::from_real(4.0)]).unwrap();
            let (_, mut solver_1) = solver(dev, &four, &case);
            let mut x = [T::zero()];
            let outcome = solver_1.solve(&[T::from_parts(2.0, 8.0)], &mut x).unwrap();
            assert_eq!(outcome.reason, Reason::Converged, "{case:?} {outcome:?}");
            let want = T::from_parts(0.5, 2.0);
            assert!((x[0] - want).modulus() <= 4.0 * tolerance::<T>(), "{case:?} {x:?}");
            if ["cg", "classical-cg", "bicgstab", "classical-bicgstab", "gmres"].contains(&info.name) {
                assert!(outcome.iterations <= 1, "{case:?} {outcome:?}");
                same("x", &x, &[want]);
            }
        }
    }
}

/// A singular matrix under which GMRES breaks down: it claims no solution, and returns an iterate no worse
/// than the guess. The third basis vector is rounding error, and so is the last diagonal entry of its
/// triangle.
pub fn singular_breakdown<T: Scalar>(make: fn() -> Device) {
    let ones = vec![T::one(); 2];
    let shift = Csr::<T>::new(3, 3, vec![0, 1, 2, 2], vec![1, 2], ones).unwrap();
    let b = [1.0, 1.0, 0.5].map(T::from_real);
    let of = |x: &[T]| {
        let mut ax = [T::zero(); 3];
        shift.product(x, &mut ax).unwrap();
        b.iter().zip(&ax).map(|(b, ax)| (*b - *ax).modulus().powi(2)).sum::<f64>().sqrt()
    };
    for guess in [[0.0, 0.0, 0.0], [0.0, 0.9, 0.9]] {
        let dev = &make().scope();
        let (_, mut solver) = solver(dev, &shift, &Solve { precond: "none", ..case("gmres") });
        let mut x = guess.map(T::from_real);
        let before = of(&x);
        let outcome = solver.solve(&b, &mut x).unwrap();
        assert_ne!(outcome.reason, Reason::Converged, "{outcome:?}");
        let (after, slack) = (of(&x), 1.0 + 16.0 * T::EPSILON);
        assert!(after <= slack * before, "a residual of {before} became {after}: {outcome:?}");
    }
}

/// Impossible allocations are refused, and existing objects keep their contents.
pub fn refused_allocations<T: Scalar>(make: fn() -> Device) {
    let dev = &make().scope();
    let x = upload(dev, &[T::one(); 5]);
    let mark = dev.in_use();
    let word = size_of::<T>();
    for n in [usize::MAX, usize::MAX / word, usize::MAX / word + 2, usize::MAX / 64, 1 << 52] {
        let error = dev.vector::<T>(n).err().unwrap_or_else(|| panic!("a vector of {n} elements"));
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        assert!(error.is_device_failure());
        assert!(dev.basis::<T>(n / 3, 4).is_err(), "a basis of 4 times {} elements", n / 3);
        assert!(dev.basis::<T>(4, n).is_err(), "a basis of {n} columns");
    }
    assert!(dev.run_of_cells::<T>(usize::MAX).is_err());
    assert!(dev.run_of_cells::<T>(1 << 40).is_err());
    assert_eq!(dev.in_use(), mark);
    same("x", &download(dev, x), &[T::one(); 5]);
    let y = upload(dev, &[T::one(); 5]);
    dev.multi_axpy_dot(Pass::new("mine").set(y, x + y)).unwrap();
    // In a recorder, `finish` returns the error.
    let mut k = Recorder::<T>::new(dev, "too large");
    let v = k.vector(usize::MAX);
    k.multi_axpy_dot(Pass::new("mine").set(v, -v));
    fails(k.finish(), &["memory"]);
}

/// The largest limits mean no limit.
pub fn endless_limits<T: Scalar>(make: fn() -> Device) {
    let a = generated::<T>(case("").matrix);
    let dev = &make().scope();
    let stop = Stop::default().rtol(tolerance::<T>()).max_iters(u64::MAX).dtol(f64::INFINITY);
    let (_, mut solver) = solver_with(dev, &a, &case("cg"), &Options::default(), stop);
    let outcome = solver.solve(&vec![T::one(); a.rows()], &mut vec![T::zero(); a.rows()]).unwrap();
    assert_eq!(outcome.reason, Reason::Converged, "{outcome:?}");
    // An infinite tolerance is met at once.
    solver.set_stop(stop.rtol(f64::INFINITY));
    let outcome = solver.solve(&vec![T::one(); a.rows()], &mut vec![T::zero(); a.rows()]).unwrap();
    assert_eq!((outcome.reason, outcome.iterations), (Reason::Converged, 0), "{outcome:?}");
}
