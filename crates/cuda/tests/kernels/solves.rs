//! Whole solves against the serial reference: equal bits of outcomes, histories and solutions, in every mode.
use crate::support::{Random, assert_same, compiler, device, modes, random_matrix, set_mode, unless_refused};
use lacuna_cuda::{Cuda, Mode};
use lacuna_engine::{Device, Diagonal, Format, LinOp, Reason, Reference, Result, Scalar};
use lacuna_formats::{Csr, convert};
use lacuna_io::Spec;
use lacuna_solvers::{
    BiCgStab, Cg, ClassicalBiCgStab, ClassicalCg, Cycle, Gmres, Method, Orthogonalization, Outcome, Side,
    Solver, Stop, inverse_diagonal,
};
use std::ops::ControlFlow;
use std::sync::Arc;

fn methods<T: Scalar>() -> Vec<Box<dyn Method<T>>> {
    let gmres = |restart, orthogonalization, side| {
        Box::new(Gmres { cycle: Cycle { restart, orthogonalization }, side })
    };
    vec![
        Box::new(Cg),
        Box::new(ClassicalCg),
        Box::new(BiCgStab),
        Box::new(ClassicalBiCgStab),
        gmres(5, Orthogonalization::ClassicalTwice, Side::Right),
        gmres(30, Orthogonalization::Classical, Side::Left),
        gmres(4, Orthogonalization::Modified, Side::Right),
        gmres(6, Orthogonalization::Selective, Side::Right),
    ]
}

struct Solved<T> {
    outcomes: Vec<Outcome>,
    x: Vec<T>,
}

fn solve<T: Scalar>(
    dev: &Device,
    a: &Arc<Csr<T>>,
    method: &dyn Method<T>,
    preconditioned: bool,
    stop: Stop,
) -> Result<Solved<T>> {
    if !preconditioned {
        return solve_stored(dev, a.clone(), None, method, stop);
    }
    let inverse = inverse_diagonal(a)?;
    let vector = dev.vector(inverse.len())?;
    dev.upload(&inverse, *vector)?;
    solve_stored(dev, a.clone(), Some(&Diagonal(*vector)), method, stop)
}

fn solve_stored<T: Scalar>(
    dev: &Device,
    a: Arc<dyn Format<T>>,
    m: Option<&dyn LinOp<T>>,
    method: &dyn Method<T>,
    stop: Stop,
) -> Result<Solved<T>> {
    let rows = a.shape().0;
    let matrix = dev.matrix::<T>(a)?;
    let mut solver = Solver::new(dev, &matrix, m, method, stop)?;
    let b: Vec<T> = Random::new(5).vector(rows);
    let mut x = vec![T::zero(); rows];
    let mut outcomes = vec![solver.solve(&b, &mut x)?.clone()];
    // Again, from that solution, for another right-hand side.
    let b: Vec<T> = Random::new(6).vector(rows);
    outcomes.push(solver.solve(&b, &mut x)?.clone());
    Ok(Solved { outcomes, x })
}

#[track_caller]
fn assert_same_outcome(got: &Outcome, expected: &Outcome, what: &str) {
    assert_eq!(got.reason, expected.reason, "{what}");
    assert_eq!(got.iterations, expected.iterations, "{what}");
    assert_eq!(got.restarts, expected.restarts, "{what}");
    assert_same(&got.history, &expected.history, &format!("{what}, history"));
    assert_same(
        &[got.residual, got.true_residual],
        &[expected.residual, expected.true_residual],
        &format!("{what}, residuals"),
    );
}

fn compare<T: Scalar>(name: &str, a: Csr<T>, stop: Stop) {
    compare_of(name, a, stop, methods(), &[false, true]);
}

fn compare_of<T: Scalar>(
    name: &str,
    a: Csr<T>,
    stop: Stop,
    methods: Vec<Box<dyn Method<T>>>,
    preconditioned: &[bool],
) {
    let Some(dev) = device() else { return };
    let a = Arc::new(a);
    for method in methods {
        for &preconditioned in preconditioned {
            let expected = solve(&Device::new(Reference::new()), &a, &*method, preconditioned, stop).unwrap();
            for mode in modes() {
                set_mode(&dev, mode);
                let jacobi = if preconditioned { "jacobi" } else { "none" };
                let what =
                    format!("{name}, {}, {jacobi}, mode {}, {}", method.name(), mode.name(), T::KIND.name());
                let got = solve(&dev, &a, &*method, preconditioned, stop);
                let Some(got) = unless_refused(mode, got, &what) else { continue };
                for (got, expected) in got.outcomes.iter().zip(&expected.outcomes) {
                    assert_same_outcome(got, expected, &what);
                }
                assert_same(&got.x, &expected.x, &what);
            }
        }
    }
}

fn poisson<T: Scalar>() {
    let stop = Stop::default().rtol(1e3 * T::EPSILON).max_iters(60);
    let a = Spec::parse("gen:poisson-p1:16").unwrap().build::<T>().unwrap();
    compare("poisson", a, stop);
}

fn fixed_iterations<T: Scalar>() {
    let stop = Stop::default().rtol(0.0).max_iters(13);
    let a = Spec::parse("gen:poisson-p1:48").unwrap().build::<T>().unwrap();
    compare("fixed", a, stop);
}

fn wide_rows<T: Scalar>() {
    let stop = Stop::default().rtol(1e2 * T::EPSILON).max_iters(40);
    compare("wide rows", random_matrix::<T>(600, 600, 40, 3), stop);
}

fn indefinite<T: Scalar>() {
    // Breakdowns, indefinite operators and stagnation must be equal too.
    let n = 300;
    let mut a = random_matrix::<T>(n, n, 3, 9);
    let values: Vec<T> =
        a.values().iter().enumerate().map(|(k, v)| if k % 7 == 0 { -*v } else { *v }).collect();
    a.set_values(&values).unwrap();
    compare("indefinite", a, Stop::default().max_iters(50));
}

fn larger<T: Scalar>() {
    // More segments than a segment has elements, and more than one for each block.
    let stop = Stop::default().rtol(0.0).max_iters(5);
    let a = Spec::parse("gen:poisson-p1:258").unwrap().build::<T>().unwrap();
    compare_of("larger", a, stop, vec![Box::new(Cg)], &[false]);
}

in_every_type!(poisson, fixed_iterations, wide_rows, indefinite, larger);

/// A system whose vectors do not fit the registers of the device, in suitable formats.
fn large(system: &str, formats: &[&str]) {
    let Some(dev) = device() else { return };
    let stop = Stop::default().rtol(0.0).max_iters(3);
    let cycle = Cycle { restart: 3, orthogonalization: Orthogonalization::Classical };
    let gmres = Gmres { cycle, side: Side::Right };
    let a = Arc::new(Spec::parse(system).unwrap().build::<f64>().unwrap());
    for format in formats {
        let a = convert(&a, format).unwrap();
        let methods: [Box<dyn Method<f64>>; 2] = [Box::new(BiCgStab), Box::new(gmres)];
        for method in methods {
            let what = format!("{} of {system} in {format}", method.name());
            let expected =
                solve_stored(&Device::new(Reference::new()), a.clone(), None, &*method, stop).unwrap();
            let got =
                solve_stored(&dev, a.clone(), None, &*method, stop).unwrap_or_else(|e| panic!("{what}: {e}"));
            for (got, expected) in got.outcomes.iter().zip(&expected.outcomes) {
                assert_same_outcome(got, expected, &what);
            }
            assert_same(&got.x, &expected.x, &what);
        }
    }
}

#[test]
fn large_grids() {
    large("gen:poisson2d:420x330", &["csr", "dia", "sell", "stencil", "packed", "pkt"]);
}
#[test]
fn large_blocks() {
    large("gen:elasticity3d:35", &["csr", "dia", "bcsr3"]);
}
#[test]
fn large_power_law() {
    large("gen:power-law:140000", &["csr", "hyb", "coo"]);
}
#[test]
fn more_segments_than_warps() {
    large("gen:poisson2d:900x800", &["dia", "stencil"]);
}

#[test]
fn a_second_solve_allocates_nothing() {
    let Some(dev) = device() else { return };
    for mode in modes() {
        set_mode(&dev, mode);
        let a = Arc::new(Spec::parse("gen:poisson-p1:31").unwrap().build::<f64>().unwrap());
        let matrix = dev.matrix::<f64>(a.clone()).unwrap();
        let mut solver = Solver::new(&dev, &matrix, None, &Cg, Stop::default()).unwrap();
        let (b, mut x) = (vec![1.0; a.rows()], vec![0.0; a.rows()]);
        solver.solve(&b, &mut x).unwrap();
        let allocations = || dev.with(|cuda: &mut Cuda| cuda.allocations()).unwrap();
        let before = allocations();
        for _ in 0..3 {
            x.fill(0.0);
            solver.solve(&b, &mut x).unwrap();
        }
        assert_eq!(allocations(), before, "mode {}", mode.name());
    }
}

#[test]
fn a_watched_solve_can_be_cancelled() {
    let Some(dev) = device() else { return };
    for mode in modes() {
        set_mode(&dev, mode);
        let a = Arc::new(Spec::parse("gen:poisson-p1:120").unwrap().build::<f64>().unwrap());
        let matrix = dev.matrix::<f64>(a.clone()).unwrap();
        let stop = Stop::default().rtol(0.0).max_iters(100_000_000).dtol(f64::INFINITY);
        let mut solver = Solver::new(&dev, &matrix, None, &Cg, stop).unwrap();
        let (b, mut x) = (vec![1.0; a.rows()], vec![0.0; a.rows()]);
        let mut seen = 0;
        let mut watch = |w: lacuna_solvers::Watch| {
            assert!(w.iterations > seen);
            seen = w.iterations;
            if seen > 100 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let outcome = solver.solve_watched(&b, &mut x, Some(&mut watch)).unwrap();
        assert_eq!(outcome.reason, Reason::Cancelled, "mode {}", mode.name());
        assert!(outcome.true_residual.is_finite());
    }
}

#[test]
fn watching_changes_nothing() {
    let Some(dev) = device() else { return };
    let a = Arc::new(Spec::parse("gen:poisson-p1:40").unwrap().build::<f64>().unwrap());
    let (b, mut expected) = (vec![1.0; a.rows()], vec![0.0; a.rows()]);
    let reference = Device::new(Reference::new());
    let matrix = reference.matrix::<f64>(a.clone()).unwrap();
    let mut solver = Solver::new(&reference, &matrix, None, &BiCgStab, Stop::default()).unwrap();
    let outcome = solver.solve(&b, &mut expected).unwrap().clone();
    for mode in modes() {
        set_mode(&dev, mode);
        let matrix = dev.matrix::<f64>(a.clone()).unwrap();
        let mut solver = Solver::new(&dev, &matrix, None, &BiCgStab, Stop::default()).unwrap();
        let mut x = vec![0.0; a.rows()];
        let mut watch = |_: lacuna_solvers::Watch| ControlFlow::Continue(());
        let got = solver.solve_watched(&b, &mut x, Some(&mut watch)).unwrap();
        assert_same_outcome(got, &outcome, mode.name());
        assert_same(&x, &expected, mode.name());
    }
}

/// A plan starts as a graph if its kernel is not on disk, and switches to the kernel once it is compiled.
#[test]
fn a_plan_takes_its_kernel_when_it_is_there() {
    let Some(dev) = device() else { return };
    if !compiler() {
        return;
    }
    set_mode(&dev, Mode::Auto);
    let a = Arc::new(Spec::parse("gen:poisson-p1:40").unwrap().build::<f64>().unwrap());
    let (b, zeros) = (vec![1.0; a.rows()], vec![0.0; a.rows()]);
    let matrix = dev.matrix::<f64>(a.clone()).unwrap();
    let stop = Stop::default().max_iters(40);
    let solver = Solver::new(&dev, &matrix, None, &Cg, stop).unwrap();
    let start = std::time::Instant::now();
    let mut plan = dev.plan(solver.program().clone()).unwrap();
    let id = plan.id();
    let mode_of = || dev.with(|cuda: &mut Cuda| cuda.mode_of(id)).unwrap();
    println!("planned in {:?} as {:?}", start.elapsed(), mode_of());
    let mut first = None;
    loop {
        dev.upload(&b, solver.b()).unwrap();
        dev.upload(&zeros, solver.x()).unwrap();
        let mut history = lacuna_engine::History::default();
        let run = lacuna_engine::Run { limit: 40, history: &mut history, watch: None };
        plan.execute(run).unwrap();
        let mut x = zeros.clone();
        dev.download(solver.x(), &mut x).unwrap();
        assert_same(&x, first.get_or_insert_with(|| x.clone()), "before and after");
        match mode_of() {
            Some(Mode::Jit) => break,
            mode => assert_eq!(mode, Some(Mode::Graph)),
        }
        assert!(start.elapsed().as_secs() < 60, "no kernel after a minute");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    println!("jit after {:?}", start.elapsed());
}
