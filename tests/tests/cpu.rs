//! The conformance suite on the CPU backend: with several numbers of threads, and with each instruction set.
use lacuna_cpu::{Cpu, CpuOptions, Simd};
use lacuna_engine::{Complex32, Complex64, Device, Reason};
use lacuna_solvers::{Options, Stop};
use lacuna_tests::numbers::generated;
use lacuna_tests::solves::{Solve, solver_with};
use lacuna_tests::{conformance, if_all};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// All threads take part even in small work, so that every case is divided among them.
fn shared(threads: usize) -> lacuna_engine::Result<Cpu> {
    Cpu::with(CpuOptions::default().threads(threads).parallel_from(0).gather(true))
}
/// Threads join when available, so that a case may be divided from its middle on, or not at all.
fn with(simd: Simd) -> lacuna_engine::Result<Cpu> {
    Cpu::with(CpuOptions::default().threads(2).simd(simd).parallel_from(0))
}

conformance!(threads_1, "cpu", || shared(1), [f64, Complex32]);
conformance!(threads_2, "cpu", || shared(2), [f32, f64, Complex32, Complex64]);
conformance!(threads_3, "cpu", || shared(3), [f64, Complex32]);
conformance!(threads_7, "cpu", || shared(7), [f32, Complex64]);
conformance!(avx2, "cpu", || with(Simd::Avx2), [f32, Complex64]);
conformance!(baseline, "cpu", || with(Simd::Baseline), [f64, Complex32]);
conformance!(all_1, "cpu", || shared(1), [f32, Complex64], except &[], around if_all);

#[test]
fn numbers_of_threads_that_there_cannot_be_are_refused() {
    for threads in [0, usize::MAX] {
        let options = CpuOptions::default().threads(threads);
        let error = Cpu::with(options).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(&threads.to_string()), "{error}");
    }
}

/// A panic in the caller's `watch` propagates to the caller, and the helper threads are free for the next
/// solve.
#[test]
fn a_panic_of_the_caller_ends_the_run() {
    let case = Solve { matrix: "gen:poisson2d:300x300", method: "cg", precond: "none", max_iters: 1_000_000 };
    let (a, dev) = (generated::<f64>(case.matrix), &Device::new(shared(2).expect("a CPU backend")).scope());
    let stop = Stop::default().rtol(0.0).max_iters(case.max_iters);
    let (_, mut solver) = solver_with(dev, &a, &case, &Options::default(), stop);
    let (b, mut x) = (vec![1.0; a.rows()], vec![0.0; a.rows()]);
    let mut watch = |_: lacuna_solvers::Watch| -> ControlFlow<()> { panic!("the caller's own") };
    let caught =
        catch_unwind(AssertUnwindSafe(|| solver.solve_watched(&b, &mut x, Some(&mut watch)).map(drop)));
    let payload = caught.expect_err("the panic comes through");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"the caller's own"));
    let mut stop_at_once = |_: lacuna_solvers::Watch| ControlFlow::Break(());
    let outcome = solver.solve_watched(&b, &mut x, Some(&mut stop_at_once)).expect("a solve");
    assert_eq!(outcome.reason, Reason::Cancelled);
}
