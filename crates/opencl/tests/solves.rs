//! Every method, with and without Jacobi, against the serial reference: equal bits of solution, history and
//! outcome, in every mode.
#[macro_use]
mod common;
use common::{alone, bits, device, devices, grid, held, small};
use lacuna_engine::{
    Device, Diagonal, Format, LinOp, Matrix, Owned, Pass, Reason, Recorder, Reference, Scalar, Vector,
};
use lacuna_formats::{Csr, Dense, FORMATS, convert};
use lacuna_io::Spec;
use lacuna_opencl::Mode;
use lacuna_solvers::{METHODS, Options, Outcome, Solver, Stop, inverse_diagonal, method};
use std::ops::ControlFlow;
use std::sync::Arc;

fn solve<T: Scalar>(
    dev: &Device,
    name: &str,
    a: &Csr<T>,
    precondition: bool,
    stop: Stop,
    times: usize,
) -> (Outcome, Vec<T>) {
    let vector = precondition.then(|| {
        let inverse = inverse_diagonal(a).unwrap();
        let vector = dev.vector(inverse.len()).unwrap();
        dev.upload(&inverse, *vector).unwrap();
        vector
    });
    let diagonal = vector.as_ref().map(|vector| Diagonal(**vector));
    let m = diagonal.as_ref().map(|d| d as &dyn LinOp<T>);
    solve_stored(dev, name, Arc::new(a.clone()), m, stop, times)
}

fn solve_stored<T: Scalar>(
    dev: &Device,
    name: &str,
    a: Arc<dyn Format<T>>,
    m: Option<&dyn LinOp<T>>,
    stop: Stop,
    times: usize,
) -> (Outcome, Vec<T>) {
    let rows = a.shape().0;
    let op = dev.matrix(a).unwrap();
    let b: Vec<T> = (0..rows).map(|i| if i % 3 == 0 { T::one() } else { -T::one() }).collect();
    let options = Options::default().restart(12);
    let mut solver = Solver::new(dev, &op, m, &*method(name, &options).unwrap(), stop).unwrap();
    let mut last: Option<(Outcome, Vec<T>)> = None;
    for _ in 0..times {
        let mut x = vec![T::zero(); rows];
        let outcome = solver.solve(&b, &mut x).unwrap().clone();
        if let Some((_, before)) = &last {
            assert_eq!(bits(&x), bits(before), "a second solve differs");
        }
        last = Some((outcome, x));
    }
    last.unwrap()
}

fn summary(outcome: &Outcome) -> String {
    let Outcome { reason, iterations, restarts, residual, true_residual, history, .. } = outcome;
    format!("{reason:?} {iterations} {restarts} {residual:e} {true_residual:e} {:?}", bits(history))
}

fn agree<T: Scalar>(on: &[(Mode, Device)], name: &str, a: &Csr<T>, precondition: bool, stop: Stop) {
    let (expected, solution) = solve(&Device::new(Reference::new()), name, a, precondition, stop, 1);
    for (mode, dev) in on {
        let (outcome, x) = solve(dev, name, a, precondition, stop, 2);
        let what = format!("{name} {} {mode:?} Jacobi {precondition}", T::KIND.name());
        assert_eq!(summary(&outcome), summary(&expected), "{what}");
        assert_eq!(bits(&x), bits(&solution), "{what}");
    }
}

fn methods<T: Scalar>() {
    let on = devices();
    let size = if small() { 9 } else { 17 };
    let complex = T::KIND.is_complex();
    // The suite has all methods; compiling a kernel for each takes seconds.
    let some = ["cg", "classical-cg", "minres", "bicgstab", "classical-bicgstab", "idr", "gmres"];
    for info in METHODS.iter().filter(|info| some.contains(&info.name)) {
        let hermitian = info.hermitian();
        let wind = if hermitian { T::zero() } else { T::from_parts(0.3, 0.2) };
        let shift = T::from_parts(0.2, if complex && !hermitian { 0.7 } else { 0.0 });
        let a = grid::<T>(size, wind, shift);
        let rtol = if T::EPSILON > 1e-10 { 1e-5 } else { 1e-10 };
        for precondition in [false, true] {
            agree(&on, info.name, &a, precondition, Stop::default().rtol(rtol).max_iters(500));
        }
        agree(&on, info.name, &a, false, Stop::default().rtol(0.0).max_iters(if small() { 9 } else { 90 }));
        agree(&on, info.name, &a, false, Stop::default().rtol(rtol).max_iters(5));
    }
}
in_every_type!(methods);

#[test]
fn what_goes_wrong_is_told_alike() {
    let _alone = alone();
    let on = devices();
    let a = grid::<f64>(10, 0.0, -4.0);
    for name in ["cg", "classical-cg", "gmres", "bicgstab"] {
        agree(&on, name, &a.clone(), false, Stop::default().max_iters(60));
    }
    // Products that overflow.
    let huge = grid::<f64>(8, 0.0, 0.5).map(|v| v * 1e300).unwrap();
    agree(&on, "bicgstab", &huge, false, Stop::default());
}

/// Rows of many entries, shared by several lanes.
fn long_rows<T: Scalar>() {
    let on = devices();
    let n = if small() { 70 } else { 700 };
    let mut random = common::Random(11);
    for per_row in [30, 90] {
        let scattered = random.matrix::<T>(n, n, per_row.min(n / 2));
        let dominant = 2.0 * per_row as f64;
        let (mut row_ptr, mut columns, mut values) = (vec![0u32], vec![], vec![]);
        for i in 0..n {
            let range = scattered.row_ptr()[i] as usize..scattered.row_ptr()[i + 1] as usize;
            columns.extend(scattered.col_idx()[range.clone()].iter().filter(|c| **c as usize != i));
            let entries = range.clone().filter(|k| scattered.col_idx()[*k] as usize != i);
            values.extend(entries.map(|k| scattered.values()[k]));
            columns.push(i as u32);
            values.push(T::from_real(dominant));
            row_ptr.push(columns.len() as u32);
        }
        let a = sorted(n, row_ptr, columns, values);
        for name in ["bicgstab", "gmres"] {
            agree(&on, name, &a, false, Stop::default().max_iters(if small() { 4 } else { 40 }));
        }
    }
}
in_every_type!(long_rows);

fn sorted<T: Scalar>(n: usize, row_ptr: Vec<u32>, columns: Vec<u32>, values: Vec<T>) -> Csr<T> {
    let (mut col_idx, mut numbers) = (Vec::new(), Vec::new());
    for i in 0..n {
        let mut row: Vec<usize> = (row_ptr[i] as usize..row_ptr[i + 1] as usize).collect();
        row.sort_by_key(|k| columns[*k]);
        col_idx.extend(row.iter().map(|k| columns[*k]));
        numbers.extend(row.iter().map(|k| values[*k]));
    }
    Csr::new(n, n, row_ptr, col_idx, numbers).expect("a valid matrix")
}

#[test]
fn larger_systems_take_several_rounds() {
    if small() {
        return;
    }
    let _alone = alone();
    let on = devices();
    let a = grid::<f64>(150, 0.0, 0.001);
    agree(&on, "cg", &a, true, Stop::default());
    agree(&on, "gmres", &a, false, Stop::default().max_iters(100));
}

/// A two-level cycle: vectors of two lengths, two rectangular matrices and a dense one.
struct TwoLevels<T> {
    a: Owned<Matrix<T>>,
    restriction: Owned<Matrix<T>>,
    coarse: Owned<Matrix<T>>,
    prolongation: Owned<Matrix<T>>,
    weights: Owned<Vector<T>>,
    fine: Owned<Vector<T>>,
    /// Right-hand side and solution of the coarse level.
    below: [Owned<Vector<T>>; 2],
}

impl<T: Scalar> TwoLevels<T> {
    /// For an `m × m` grid; `g × g` of its points are aggregated into one.
    fn new(dev: &Device, a: &Csr<T>, m: usize, g: usize) -> Self {
        let (n, side) = (m * m, m / g);
        let below = side * side;
        let to = |i: usize| (i / m / g * side + i % m / g) as u32;
        let ones = vec![T::one(); n];
        let prolongation =
            Csr::new(n, below, (0..=n as u32).collect(), (0..n).map(to).collect(), ones.clone()).unwrap();
        let mut points: Vec<u32> = (0..n as u32).collect();
        points.sort_by_key(|i| to(*i as usize));
        let starts = (0..=below).map(|i| (i * g * g) as u32).collect();
        let restriction = Csr::new(below, n, starts, points, ones).unwrap();
        let resident = |k: usize| T::from_real(0.1 / (1.0 + (k / below).abs_diff(k % below) as f64));
        let coarse = Dense::new(below, below, (0..below * below).map(resident).collect()).unwrap();
        let weights = dev.vector(n).unwrap();
        dev.upload(&vec![T::from_real(0.2); n], *weights).unwrap();
        TwoLevels {
            a: dev.matrix(Arc::new(a.clone())).unwrap(),
            restriction: dev.matrix(Arc::new(restriction)).unwrap(),
            coarse: dev.matrix(Arc::new(coarse)).unwrap(),
            prolongation: dev.matrix(Arc::new(prolongation)).unwrap(),
            weights,
            fine: dev.vector(n).unwrap(),
            below: [dev.vector(below).unwrap(), dev.vector(below).unwrap()],
        }
    }
}

impl<T: Scalar> LinOp<T> for TwoLevels<T> {
    fn shape(&self) -> (usize, usize) {
        (self.a.rows, self.a.cols)
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let TwoLevels { a, restriction, coarse, prolongation, .. } = self;
        let ([b, e], d, t) = (self.below.each_ref().map(|v| **v), *self.weights, *self.fine);
        let [sum] = k.cells();
        k.multi_axpy_dot(Pass::new("smooth").set(y, d * x));
        k.spmv_dot(a, y, t, Pass::new("residual").set(t, x - t));
        k.spmv_dot(restriction, t, b, Pass::new("restricted").dot(sum, b, b));
        k.spmv_dot(coarse, b, e, Pass::nothing());
        k.spmv_dot(prolongation, e, t, Pass::new("corrected").set(y, y + t));
        k.spmv_dot(a, y, t, Pass::new("residual").set(t, x - t));
        k.multi_axpy_dot(Pass::new("smooth").set(y, y + d * t).then(then));
    }
}

/// Programs over vectors of several lengths.
fn several_lengths<T: Scalar>() {
    fn solve<T: Scalar>(dev: &Device, name: &str, m: usize, g: usize) -> (Outcome, Vec<T>) {
        let a = grid::<T>(m, T::zero(), T::from_real(0.01));
        let cycle = TwoLevels::new(dev, &a, m, g);
        let stop = Stop::default().rtol(0.0).max_iters(if small() { 3 } else { 12 });
        solve_stored(dev, name, Arc::new(a), Some(&cycle), stop, 2)
    }
    let on = devices();
    let (sizes, methods): (&[_], &[_]) = match small() {
        true => (&[(18, 6)], &["cg"]),
        false => (&[(18, 2), (60, 5), (160, 10)], &["cg", "gmres"]),
    };
    for &(m, g) in sizes {
        for &name in methods {
            let (expected, solution) = solve::<T>(&Device::new(Reference::new()), name, m, g);
            for (mode, dev) in &on {
                let (outcome, x) = solve::<T>(dev, name, m, g);
                let what = format!("{name} on {m}x{m} {mode:?} {}", T::KIND.name());
                assert_eq!(summary(&outcome), summary(&expected), "{what}");
                assert_eq!(bits(&x), bits(&solution), "{what}");
            }
        }
    }
}
in_every_type!(several_lengths);

/// Systems whose vectors do not fit the registers of a large device, in every format.
#[test]
fn every_format_of_large_systems() {
    let _alone = alone();
    let Some(dev) = device(Mode::Auto) else { return };
    // Other devices have no such kernels, and are slow.
    if !dev.info().details.contains(&("kind", "gpu".into())) {
        return;
    }
    let stop = Stop::default().rtol(0.0).max_iters(4);
    for system in ["gen:poisson2d:420x330", "gen:elasticity3d:35"] {
        let a = Arc::new(Spec::parse(system).unwrap().build::<f64>().unwrap());
        for format in FORMATS {
            let Ok(a) = convert(&a, format.name) else { continue };
            for name in ["bicgstab", "gmres"] {
                let (expected, solution) =
                    solve_stored(&Device::new(Reference::new()), name, a.clone(), None, stop, 1);
                let (outcome, x) = solve_stored(&dev, name, a.clone(), None, stop, 1);
                let what = format!("{name} of {system} in {}", format.name);
                assert_eq!(summary(&outcome), summary(&expected), "{what}");
                assert_eq!(bits(&x), bits(&solution), "{what}");
            }
        }
    }
}

#[test]
fn a_watched_solve_can_be_cancelled() {
    let _alone = alone();
    let a = grid::<f64>(60, 0.0, 0.0);
    for (mode, dev) in devices() {
        let op = dev.matrix(Arc::new(a.clone())).unwrap();
        let stop = Stop::default().rtol(0.0).max_iters(100_000_000);
        let method = |k: &mut Recorder<'_, f64>, s: &lacuna_solvers::System<'_, f64>| {
            // Counts forever: the residual never changes.
            let [rr] = k.cells();
            let [r] = k.vectors(s.n());
            k.each(|k| k.spmv_dot(s.a, s.b, r, Pass::new("spin").dot(rr, s.b, s.b).count(rr)));
        };
        let mut solver = Solver::new(&dev, &op, None, &method, stop).unwrap();
        let mut seen = 0;
        let mut watch = |w: lacuna_solvers::Watch| {
            assert!(w.iterations > seen);
            seen = w.iterations;
            if seen > 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let (b, mut x) = (vec![1.0; a.rows()], vec![0.0; a.rows()]);
        let outcome = solver.solve_watched(&b, &mut x, Some(&mut watch)).unwrap();
        assert_eq!(outcome.reason, Reason::Cancelled, "{mode:?} {:?}", outcome.iterations);
    }
}

#[test]
fn a_thousand_solves_leak_nothing() {
    let _alone = alone();
    let Some(dev) = device(Mode::Auto) else { return };
    let a = grid::<f64>(6, 0.0, 0.5);
    let pages = || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        statm.split(' ').nth(1).and_then(|n| n.parse::<usize>().ok()).unwrap_or(0)
    };
    let solves = if small() { 3 } else { 1000 };
    let (mut after_warm_up, mut before) = (0, Default::default());
    for k in 0..solves {
        let _ = solve(&dev, "cg", &a, false, Stop::default(), 1);
        if k == solves / 5 {
            (after_warm_up, before) = (pages(), held(&dev));
        }
    }
    assert_eq!(held(&dev), before, "device memory after {solves} solves");
    let grown = pages().saturating_sub(after_warm_up) * 4096;
    assert!(grown < 24 << 20, "{grown} bytes more after {solves} solves");
}

#[test]
fn stale_handles_are_errors() {
    let _alone = alone();
    let Some(dev) = device(Mode::Auto) else { return };
    let x = *dev.vector::<f64>(100).unwrap();
    assert!(dev.download(x, &mut [0.0; 100]).unwrap_err().to_string().contains("released"));
    let sum = dev.cells::<f64>(1).unwrap();
    assert!(dev.multi_axpy_dot(Pass::new("stale").dot(sum.at(0), x, x)).is_err());
}

#[test]
fn what_does_not_fit_says_how_much_was_asked_for_and_is_free() {
    let _alone = alone();
    let Some(dev) = device(Mode::Auto) else { return };
    let memory = dev.info().memory.unwrap_or(0);
    for bytes in [memory.saturating_add(1 << 30), 1 << 53] {
        let before = held(&dev);
        let error = dev.vector::<f64>(bytes as usize / 8).unwrap_err();
        let lacuna_engine::Error::OutOfMemory { requested, available, .. } = error else { panic!("{error}") };
        assert!(requested >= bytes / 256 * 256, "{requested} of {bytes}");
        assert!(available.is_some_and(|free| free > 0 && free <= memory), "{available:?} of {memory}");
        assert_eq!(held(&dev), before);
    }
    // The backend still works.
    let x = dev.vector::<f64>(1000).unwrap();
    dev.upload(&[1.0; 1000], *x).unwrap();
    let mut back = [0.0; 1000];
    dev.download(*x, &mut back).unwrap();
    assert_eq!(back, [1.0; 1000]);
}
