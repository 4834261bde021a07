//! Vectors stored in the narrower type, and programs over several lengths: passes, products, bases, a
//! two-level cycle; copies between programs of two number types, and what is refined by them.
use crate::bits::{Trace, cells_of, download, same, upload};
use crate::formats::on_grids;
use crate::hostile::fails;
use crate::numbers::{Rng, generated, random_matrix};
use crate::on_both;
use crate::solves::tolerance;
use lacuna_engine::{Device, LinOp, Pass, Recorder, Result, Scalar, Scope, Vector};
use lacuna_formats::{Csr, Triplets, convert};
use lacuna_solvers::auto::{MethodChoice, PreconditionerChoice, Refined, Refinement, Request};
use lacuna_solvers::{
    AutoSolver, Handles, METHODS, Options, Outcome, Parts, Placed, Preconditioner, Setup, Solver, Stop,
    inverse_diagonal, method,
};
use std::sync::Arc;

/// A narrow vector with these numbers, rounded.
fn narrow<T: Scalar>(dev: &Scope, numbers: &[T]) -> Vector<T> {
    let vector = dev.narrow_basis::<T>(numbers.len(), 1).unwrap().column(0);
    dev.upload(numbers, vector).unwrap();
    vector
}

/// Writes round, reads are exact: in copies, updates and dot products, in all kinds of passes.
pub fn passes<T: Scalar>(make: fn() -> Device) {
    for n in [1, 255, 256, 1003, 70_001] {
        on_both!(make, format!("narrow passes over {n}"), |dev| {
            let (mut trace, mut rng) = (Trace::new(), Rng::new(41));
            let [x, y] = [(); 2].map(|()| upload(dev, &rng.vector::<T>(n)));
            let [u, v] = [(); 2].map(|()| narrow(dev, &rng.vector::<T>(n)));
            let c = cells_of(dev, &rng.vector::<T>(4));
            let mixed =
                Pass::new("mixed").set(u, c[0] * x + v).set(y, y - c[1] * u).dot(c[2], u, y).dot(c[3], u, u);
            dev.multi_axpy_dot(mixed).unwrap();
            dev.multi_axpy_dot(Pass::new("round").set(v, x).set(x, x - v)).unwrap();
            dev.multi_axpy_dot(
                Pass::new("twice").set(u, u * v).set(u, u + c[0] * v).set(y, u).dot(c[0], y, u),
            )
            .unwrap();
            for (name, vector) in [("x", x), ("y", y), ("u", u), ("v", v)] {
                trace.vector(dev, name.to_string(), vector);
            }
            trace.cells(dev, "cells".to_string(), &c);
            trace
        });
    }
}

/// What a program of one number type rounds is what one of the narrower type reads, and back. What cannot be copied is refused.
pub fn copies<T: Scalar>(make: fn() -> Device) {
    for n in [1, 256, 1003, 70_001] {
        on_both!(make, format!("copies of {n}"), |dev| {
            let (mut trace, mut rng) = (Trace::new(), Rng::new(47));
            let numbers = rng.vector::<T>(n);
            let (x, y) = (upload(dev, &numbers), dev.vector::<T>(n).unwrap());
            let [v, w] = dev.vectors::<T::Narrow, 2>(n).unwrap();
            let basis = dev.narrow_basis::<T>(n, 3).unwrap();
            (0..3).for_each(|j| dev.upload(&numbers, basis.column(j)).unwrap());
            let (u, c) = (basis.column(1), cells_of(dev, &rng.vector::<T>(2)));
            let d = cells_of(dev, &rng.vector::<T::Narrow>(2));
            let wide = |v| download(dev, v).into_iter().map(T::widened).collect::<Vec<T>>();
            dev.copy(basis.column(0), v).unwrap();
            let rounded: Vec<T> = numbers.iter().map(|number| number.rounded()).collect();
            same("rounded numbers", &wide(v), &rounded);
            dev.multi_axpy_dot(Pass::new("round").set(u, c[0] * x)).unwrap();
            dev.copy(u, v).unwrap();
            same("what was rounded", &wide(v), &download(dev, u));
            dev.multi_axpy_dot(Pass::new("between").set(w, d[0] * v - w).dot(d[1], v, w)).unwrap();
            dev.copy(w, u).unwrap();
            dev.copy(u, u).unwrap();
            same("what came back", &wide(w), &download(dev, u));
            dev.multi_axpy_dot(Pass::new("add").set(x, x + c[0] * u).dot(c[1], x, u)).unwrap();
            dev.copy(x, y).unwrap();
            for (name, vector) in
                [("x", x), ("y", y), ("0", basis.column(0)), ("1", u), ("2", basis.column(2))]
            {
                trace.vector(dev, name, vector);
            }
            trace.numbers("w", &wide(w));
            trace.cells(dev, "cells", &c);
            trace
        });
    }
    let (dev, abroad) = (&make().scope(), &make().scope());
    let x = upload(dev, &[T::one(); 5]);
    let (short, other) = (dev.vector::<T>(4).unwrap(), upload(abroad, &[T::one(); 5]));
    let gone = *make().vector::<T>(5).unwrap();
    fails(dev.copy(x, short), &["copy", "4", "5"]);
    fails(dev.copy(x, other), &["vector"]);
    fails(dev.copy(gone, x), &["vector"]);
    fails(dev.copy(Vector { len: 6, ..x }, Vector { len: 6, ..x }), &["vector"]);
    let narrower = dev.vector::<T::Narrow>(5).unwrap();
    if T::KIND != T::Narrow::KIND {
        fails(dev.copy(x, narrower), &["copy", T::KIND.name(), T::Narrow::KIND.name()]);
        fails(dev.copy(narrower, x), &["copy", T::KIND.name(), T::Narrow::KIND.name()]);
        fails(dev.copy(x, narrow(dev, &[T::one(); 5])), &["copy", T::KIND.name(), T::Narrow::KIND.name()]);
    }
    same("x", &download(dev, x), &[T::one(); 5]);
}

/// A system that is refined, as [`Refinement`] puts it together.
pub fn refinement<T: Scalar>(dev: &Device, request: Request<T>) -> Result<(AutoSolver<T>, Refined<T>)> {
    let (residuals, mut refinement) = Refinement::split(request)?;
    let mut outer = AutoSolver::new(dev, residuals)?;
    let inner = AutoSolver::new(dev, refinement.corrections(&outer)?)?;
    let refined = refinement.join(&mut outer, inner)?;
    Ok((outer, refined))
}

/// A request for a refined solve that leaves nothing open.
pub fn refined_request<T: Scalar>(a: Csr<T>, method: &str, preconditioner: &str) -> Request<T> {
    let mut request = Request::new(Arc::new(a));
    request.method = MethodChoice::Named(method.into());
    request.preconditioner = PreconditionerChoice::Named(preconditioner.into());
    request.format = Some("csr".into());
    request.stop = Stop::default().rtol(1e-11);
    request
}

/// Corrections in the narrower type, from 0 and from a guess, of a matrix and a right-hand side near 1 and far from it.
pub fn refined<T: Scalar>(make: fn() -> Device) {
    if T::KIND == T::Narrow::KIND {
        return;
    }
    let a = generated::<T>("gen:convection:24x20:5");
    let b = Rng::new(48).vector::<T>(a.rows());
    for (method, preconditioner) in [("bicgstab", "jacobi"), ("gmres", "ilu0"), ("cb-gmres", "none")] {
        on_both!(make, format!("refined by {method}"), |dev| {
            let mut trace = Trace::new();
            for (of_a, of_b, guess) in [(0, 0, 0.0), (0, 0, 0.5), (600, -300, 0.0)] {
                let a = a.map(|v| v.scale_by_power_of_two(of_a)).unwrap();
                let b: Vec<T> = b.iter().map(|v| v.scale_by_power_of_two(of_b)).collect();
                let mut x = vec![T::from_real(guess); b.len()];
                let (mut outer, mut refined) =
                    refinement(dev, refined_request(a, method, preconditioner)).unwrap();
                let mut outcome = Outcome::default();
                refined.solve(&mut outer, &mut outcome, (&b, &mut x), None).unwrap();
                assert!(outcome.converged() && outcome.restarts > 0, "{method}: {outcome:?}");
                trace.outcome("outcome", &outcome);
                trace.numbers("x", &x);
            }
            trace
        });
    }
}

/// Products in every format that read and write narrow vectors, with passes.
pub fn products<T: Scalar>(make: fn() -> Device) {
    let (mut rng, n) = (Rng::new(43), 531);
    let mut all = on_grids::<T>();
    let host = Arc::new(random_matrix::<T>(&mut rng, n, n, 6));
    let grid = Arc::new(generated::<T>("gen:poisson2d:23x19"));
    for format in [
        "csr",
        "packed",
        "packed-f32",
        "sell",
        "ell",
        "hyb",
        "coo",
        "bcsr2",
        "dia",
        "dense",
        "stencil",
        "pkt",
    ] {
        let host = if matches!(format, "dia" | "stencil") { &grid } else { &host };
        let Ok(stored) = convert(host, format) else { continue };
        all.push((format!("in {format}"), stored));
    }
    for (name, stored) in all {
        let (rows, cols) = stored.shape();
        on_both!(make, format!("narrow products {name}"), |dev| {
            let (mut trace, mut rng) = (Trace::new(), Rng::new(44));
            let a = dev.matrix(stored.clone()).unwrap();
            let (x, y) = (upload(dev, &rng.vector::<T>(cols)), upload(dev, &rng.vector::<T>(rows)));
            let (u, v) = (narrow(dev, &rng.vector::<T>(cols)), narrow(dev, &rng.vector::<T>(rows)));
            let w = upload(dev, &rng.vector::<T>(rows));
            let c = cells_of(dev, &rng.vector::<T>(2));
            let along =
                |y: Vector<T>, other: Vector<T>| Pass::new("along").set(y, other + c[0] * y).dot(c[1], y, y);
            for (name, from, to, other) in [("u, v", u, v, w), ("x, v", x, v, y), ("u, y", u, y, v)] {
                dev.spmv_dot(&a, from, to, along(to, other)).unwrap();
                trace.vector(dev, name.to_string(), to);
                trace.cells(dev, format!("{name}: cells"), &c);
                dev.spmv_dot(&a, from, to, Pass::nothing()).unwrap();
                trace.vector(dev, format!("{name} alone"), to);
            }
            trace
        });
    }
}

/// Projections on a narrow basis, of narrow and full vectors.
pub fn bases<T: Scalar>(make: fn() -> Device) {
    for n in [300, 20_003] {
        on_both!(make, format!("narrow bases of {n}"), |dev| {
            let (mut trace, mut rng) = (Trace::new(), Rng::new(45));
            let v = dev.narrow_basis::<T>(n, 5).unwrap();
            (0..5).for_each(|j| dev.upload(&rng.vector::<T>(n), v.column(j)).unwrap());
            let w = upload(dev, &rng.vector::<T>(n));
            let h = dev.run_of_cells::<T>(4).unwrap();
            let c = cells_of(dev, &[T::zero()]);
            for (name, w) in [("wide", w), ("narrow", v.column(4))] {
                dev.basis_dot(v, w, h).unwrap();
                dev.basis_axpy(v, h, w, Pass::new("norm").dot(c[0], w, w)).unwrap();
                trace.vector(dev, name.to_string(), w);
                let cells: Vec<_> = (0..4).map(|j| h.at(j)).chain([c[0]]).collect();
                trace.cells(dev, format!("{name}: cells"), &cells);
            }
            trace
        });
    }
}

/// A two-level cycle on a square grid: damped Jacobi before and after, boxes of unknowns, a dense inverse on
/// the coarse level.
pub struct TwoLevel {
    /// Unknowns along a side of the grid.
    pub side: usize,
    /// Unknowns along a side of a box.
    pub of_box: usize,
    /// Whether its vectors, and the values of the fine matrix, are stored in the narrower type.
    pub narrow: bool,
}

impl<T: Scalar> Preconditioner<T> for TwoLevel {
    fn set_up(&mut self, a: &Csr<T>, _: &mut Setup<'_>) -> Result<Parts<T>> {
        let (n, side, of_box) = (a.rows(), self.side, self.of_box);
        let coarse_side = side.div_ceil(of_box);
        let coarse = coarse_side * coarse_side;
        let boxes = |i: usize| (i / side / of_box) * coarse_side + i % side / of_box;
        let (mut p, mut r) = (Triplets::new(n, coarse), Triplets::new(coarse, n));
        let mut galerkin = vec![vec![T::zero(); coarse]; coarse];
        for i in 0..n {
            p.push(i, boxes(i), T::one());
            r.push(boxes(i), i, T::one());
            for k in a.row_ptr()[i] as usize..a.row_ptr()[i + 1] as usize {
                galerkin[boxes(i)][boxes(a.col_idx()[k] as usize)] += a.values()[k];
            }
        }
        let mut inverse = Triplets::new(coarse, coarse);
        for (i, row) in inverted(galerkin).into_iter().enumerate() {
            row.into_iter().enumerate().for_each(|(j, v)| inverse.push(i, j, v));
        }
        let weights: Vec<T> = inverse_diagonal(a)?.into_iter().map(|d| T::from_real(0.75) * d).collect();
        let parts = Parts::new().matrix(r.to_csr()?).matrix(p.to_csr()?);
        let parts = parts.shared_matrix(convert(&Arc::new(inverse.to_csr()?), "dense")?);
        Ok(match self.narrow {
            false => (0..3)
                .fold(parts.vector(weights).shared_matrix(Arc::new(a.clone())), |parts, _| parts.scratch(n))
                .scratch(coarse)
                .scratch(coarse),
            true => (0..4)
                .fold(
                    parts.narrow_vector(weights).shared_matrix(convert(
                        &Arc::new(a.clone()),
                        if T::HAS_NARROW { "packed-f32" } else { "packed" },
                    )?),
                    |parts, _| parts.narrow_scratch(n),
                )
                .narrow_scratch(coarse)
                .narrow_scratch(coarse),
        })
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        let ([w], [restrict, prolong, solve, a]) = (on.vectors(), on.matrices());
        let (b, x, y, t, rc, ec) = match self.narrow {
            false => {
                let [x, y, t, rc, ec] = on.scratch();
                (r, x, y, t, rc, ec)
            }
            true => {
                let [b, x, y, t, rc, ec] = on.scratch();
                k.multi_axpy_dot(Pass::new("narrow").set(b, r));
                (b, x, y, t, rc, ec)
            }
        };
        k.multi_axpy_dot(Pass::new("smooth").set(x, w * b));
        k.spmv_dot(&a, x, t, Pass::new("residual").set(t, b - t));
        k.spmv_dot(&restrict, t, rc, Pass::nothing());
        k.spmv_dot(&solve, rc, ec, Pass::nothing());
        k.spmv_dot(&prolong, ec, y, Pass::new("correct").set(y, x + y));
        k.spmv_dot(&a, y, t, Pass::new("smooth").set(t, b - t).set(z, y + w * t).then(then));
    }
}

/// The inverse of a dense matrix, without pivoting.
fn inverted<T: Scalar>(mut a: Vec<Vec<T>>) -> Vec<Vec<T>> {
    let n = a.len();
    for (i, row) in a.iter_mut().enumerate() {
        row.extend((0..n).map(|j| if i == j { T::one() } else { T::zero() }));
    }
    for i in 0..n {
        let pivot = T::one().quotient(a[i][i]);
        a[i].iter_mut().for_each(|v| *v *= pivot);
        let pivot_row = a[i].clone();
        for (_, row) in a.iter_mut().enumerate().filter(|(k, _)| *k != i) {
            let factor = row[i];
            row.iter_mut().zip(&pivot_row).for_each(|(v, p)| *v -= factor * *p);
        }
    }
    a.into_iter().map(|row| row[n..].to_vec()).collect()
}

fn cycles<T: Scalar>(make: fn() -> Device, side: usize, narrow: bool) {
    let name = format!("gen:poisson2d:{side}x{side}");
    let a = lacuna_io::Spec::parse(&name).unwrap().build::<T>().unwrap();
    let methods = ["cg", "flexible-cg", "minres", "bicgstab", "gmres", "fgmres"];
    for info in METHODS.iter().filter(|info| methods.contains(&info.name)) {
        on_both!(make, format!("{} with two levels on {name}, narrow: {narrow}", info.name), |dev| {
            let mut trace = Trace::new();
            let operator = dev.matrix(Arc::new(a.clone())).unwrap();
            let m =
                Placed::new(dev, Box::new(TwoLevel { side, of_box: 4, narrow }), &a, operator, Setup::new())
                    .unwrap();
            let method = method(info.name, &Options::default()).unwrap();
            // The recurrences of `cg` assume a linear M, which rounding satisfies to single precision.
            let rtol = if narrow { tolerance::<T>().max(1e-6) } else { tolerance::<T>() };
            let stop = Stop::default().rtol(rtol).max_iters(3000);
            let (b, n) = (Rng::new(7).vector::<T>(a.rows()), a.rows());
            let iterations = [None, Some(&m as &dyn LinOp<T>)].map(|m| {
                let mut solver = Solver::new(dev, &operator, m, &*method, stop).unwrap();
                let mut x = vec![T::zero(); n];
                let outcome = solver.solve(&b, &mut x).unwrap();
                assert!(outcome.converged(), "{outcome:?}");
                trace.outcome("outcome", outcome);
                trace.numbers("x", &x);
                outcome.iterations
            });
            assert!(3 * iterations[1] < 2 * iterations[0], "{}: {iterations:?}", info.name);
            trace
        });
    }
}

/// Methods preconditioned by a two-level cycle, with rectangular matrices and a dense one.
pub fn two_levels<T: Scalar>(make: fn() -> Device) {
    cycles::<T>(make, 41, false);
}

/// The same with narrow vectors.
pub fn two_narrow_levels<T: Scalar>(make: fn() -> Device) {
    cycles::<T>(make, 41, true);
}
