//! The conformance suite on several CPU backends that share every system, on 1, 2, 3, 4 and 7 ranks.
use lacuna_cpu::{Cpu, CpuOptions};
use lacuna_engine::{
    Complex32, Complex64, Device, Divided, Format, History, HostOperator, LinOp, Pass, Reason, Recorder,
    Result, Run,
};
use lacuna_formats::{Csr, FORMATS, convert};
use lacuna_ranks::{Group, Tally, Threads};
use lacuna_solvers::{Options, Solver, Stop, method};
use lacuna_tests::numbers::generated;
use lacuna_tests::solves::{Solve, paired};
use lacuna_tests::{conformance, if_all};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Ranks of one thread each. Whatever is read without having been written or sent is NaN.
fn ranks(count: usize) -> Result<Group> {
    let part = |_| Ok(Box::new(Cpu::with(CpuOptions::default().threads(1))?) as Box<dyn Divided>);
    Ok(Group::new((0..count).map(part).collect::<Result<_>>()?)?.poisoned())
}

/// One CPU.
fn cpu() -> Device {
    Device::new(Cpu::with(CpuOptions::default().threads(1)).expect("a CPU"))
}

conformance!(ranks_2, "ranks", || ranks(2), [Complex32]);
conformance!(ranks_3, "ranks", || ranks(3), [f64]);
conformance!(ranks_4, "ranks", || ranks(4), [f32]);
conformance!(ranks_7, "ranks", || ranks(7), [Complex64]);

// One rank, and the other number types.
conformance!(all_1, "ranks", || ranks(1), [f64], except &[], around if_all);
conformance!(all_2, "ranks", || ranks(2), [f32, f64, Complex64], except &[], around if_all);
conformance!(all_3, "ranks", || ranks(3), [f32, Complex32, Complex64], except &[], around if_all);
conformance!(all_7, "ranks", || ranks(7), [f32, f64, Complex32], except &[], around if_all);

/// Ranks as a device.
fn device(count: usize) -> Device {
    Device::new(ranks(count).expect("ranks"))
}

/// What a solve leaves: x, the history, and the iterations.
type Left = (Vec<f64>, Vec<f64>, u64);

/// A solve with a matrix in a format, which runs to the limit.
fn solved(dev: Device, a: &Csr<f64>, format: &str, case: &Solve, limit: u64) -> Left {
    let dev = &dev.scope();
    let stored = convert(&Arc::new(a.clone()), format).unwrap();
    let operator = Device::matrix(dev, stored).unwrap();
    let placed = lacuna_tests::solves::placed(dev, case.precond, a, *operator);
    let m = placed.as_ref().map(|m| m as &dyn LinOp<f64>);
    let method = method(case.method, &Options::default()).unwrap();
    let pair = paired(dev, operator, a, method.needs_adjoint());
    let stop = Stop::default().rtol(0.0).max_iters(limit);
    let mut solver = Solver::new(dev, &pair, m, &*method, stop).unwrap();
    let b: Vec<f64> = (0..a.rows()).map(|i| (i as f64 * 0.37).sin()).collect();
    let mut x = vec![0.0; a.rows()];
    let outcome = solver.solve(&b, &mut x).unwrap();
    (x, outcome.history.clone(), outcome.iterations)
}

fn bits(left: &Left) -> (Vec<u64>, Vec<u64>, u64) {
    let bits = |v: &[f64]| v.iter().map(|v| v.to_bits()).collect();
    (bits(&left.0), bits(&left.1), left.2)
}

/// Systems of many segments: preconditioners, formats and methods have the bits of one CPU on every number of ranks.
#[test]
fn systems_that_are_divided_have_the_bits_of_one() {
    let (grid, flow, graph) = ("gen:poisson2d:80x81", "gen:convection:70x71:40", "gen:power-law:9000");
    let mut cases = vec![
        (grid, "cg", "amg", "csr"),
        (grid, "cg", "amg:precision=single", "dia-sym"),
        (grid, "cg", "multigrid", "stencil"),
        (grid, "pipelined-cg", "chebyshev", "dia"),
        (grid, "cg", "fsai", "sell"),
        (grid, "minres", "jacobi", "packed"),
        (grid, "cg", "ic0", "pkt"),
        (flow, "gmres", "block-jacobi", "csr"),
        (flow, "bicgstab", "spai0", "hyb"),
        (flow, "idr", "ilu0", "csr"),
        (flow, "gmres", "block-ilu", "dia"),
        (graph, "bicgstab", "jacobi", "csr"),
        (graph, "bicgstab", "jacobi", "hyb"),
        ("gen:elasticity3d:12", "cg", "block-jacobi", "bcsr3"),
    ];
    cases.retain(|case| lacuna_solvers::preconditioner::<f64>(case.2).is_ok());
    for (matrix, method, precond, format) in cases {
        let (a, case) = (generated::<f64>(matrix), Solve { matrix, method, precond, max_iters: 0 });
        let one = bits(&solved(cpu(), &a, format, &case, 12));
        for count in [2, 3, 7] {
            let got = bits(&solved(device(count), &a, format, &case, 12));
            assert!(got == one, "{case:?} in {format} on {count} ranks");
        }
        // Short levels whole on every rank.
        let group = ranks(3).unwrap().whole_below(3000);
        let got = bits(&solved(Device::new(group), &a, format, &case, 12));
        assert!(got == one, "{case:?} in {format} with whole levels");
    }
}

/// What is sent in so many iterations, of the rank that sends most.
fn sent(count: usize, a: &Csr<f64>, format: &str, method: &'static str, limit: u64) -> Tally {
    let dev = device(count);
    let case = Solve { matrix: "", method, precond: "jacobi", max_iters: 0 };
    let (.., iterations) = solved(dev.clone(), a, format, &case, limit);
    assert_eq!(iterations, limit, "{method} stopped early");
    let tallies = dev.with(Group::take_tallies).unwrap();
    tallies.into_iter().max_by_key(|tally| tally.halo).unwrap()
}

/// Conjugate gradients wait for two gathers an iteration, and for one if they are pipelined; each exchanges one halo.
#[test]
fn gathers_and_halos_of_an_iteration_are_few() {
    let a = generated::<f64>("gen:poisson3d:20x20x20");
    for (method, gathers) in [("cg", 2), ("pipelined-cg", 1)] {
        let [few, many] = [10, 30].map(|limit| sent(4, &a, "csr", method, limit));
        assert_eq!(many.gathers - few.gathers, 20 * gathers, "{method}");
        assert_eq!(many.exchanges - few.exchanges, 20, "{method}");
        // Each gather has a word, and at most twice the logarithm of 32 segments for each sum.
        let bytes = (many.gathered - few.gathered) / 20;
        assert!(bytes <= gathers * (8 + 3 * 8 * 10), "{method}: {bytes} bytes an iteration");
    }
}

/// Every format sends the planes beside a part and nothing else.
#[test]
fn formats_send_few_words() {
    let a = generated::<f64>("gen:poisson3d:16x16x40");
    for info in FORMATS.iter().filter(|info| !info.rounds && convert(&Arc::new(a.clone()), info.name).is_ok())
    {
        let [few, many] = [5, 15].map(|limit| sent(3, &a, info.name, "cg", limit));
        assert_eq!((many.exchanges - few.exchanges, many.whole), (10, 0), "{}", info.name);
        let words = (many.halo - few.halo) / 10 / 8;
        // Blocks reach beyond a plane.
        assert!((1..=2 * (256 + 16)).contains(&words), "{}: {words} words a product", info.name);
    }
}

/// The slow right way is not what the formats do: a format that nobody knows gathers whole vectors.
#[test]
fn an_unknown_format_gathers_whole_vectors() {
    let a = generated::<f64>("gen:poisson2d:60x60");
    let dev = &device(3).scope();
    let unknown = dev.matrix(Arc::new(Unknown(a.clone(), None))).unwrap();
    let known = dev.matrix(Arc::new(a.clone())).unwrap();
    let [x, y, z] = dev.vectors::<f64, 3>(a.rows()).unwrap();
    dev.upload(&(0..a.rows()).map(|i| i as f64).collect::<Vec<_>>(), x).unwrap();
    dev.with(Group::take_tallies).unwrap();
    dev.spmv_dot(&unknown, x, y, Pass::new("")).unwrap();
    let whole = dev.with(Group::take_tallies).unwrap();
    dev.spmv_dot(&known, x, z, Pass::new("")).unwrap();
    let halo = dev.with(Group::take_tallies).unwrap();
    assert_eq!((whole[1].whole, whole[1].halo, halo[1].whole), (1, 0, 0));
    assert!(halo[1].halo > 0 && whole[1].whole_bytes > 8 * halo[1].halo, "{whole:?} {halo:?}");
    let mut got = [vec![0.0; a.rows()], vec![0.0; a.rows()]];
    dev.download(y, &mut got[0]).unwrap();
    dev.download(z, &mut got[1]).unwrap();
    assert_eq!(got[0], got[1]);
}

/// A format of another crate, one of whose rows panics.
struct Unknown(Csr<f64>, Option<usize>);

impl Format<f64> for Unknown {
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }
    fn nnz(&self) -> usize {
        Format::nnz(&self.0)
    }
    fn kernel(&self) -> &'static str {
        "unknown"
    }
    fn arguments(&self) -> Vec<lacuna_engine::Argument<'_, f64>> {
        self.0.arguments()
    }
    fn lanes(&self) -> usize {
        Format::lanes(&self.0)
    }
    fn row(&self, i: usize, x: &[f64]) -> f64 {
        assert!(Some(i) != self.1 || x[i] == 0.0, "row {i} has had enough");
        self.0.row(i, x)
    }
}

/// A panic in the rows of one rank ends all ranks with an error, and the device works as before.
#[test]
fn a_failure_of_one_rank_ends_all() {
    let a = generated::<f64>("gen:poisson2d:60x60");
    for count in [1, 2, 3, 7] {
        for row in [0, 1800, 3599] {
            let dev = &device(count).scope();
            let broken = Device::matrix(dev, Arc::new(Unknown(a.clone(), Some(row)))).unwrap();
            let method = method("cg", &Options::default()).unwrap();
            let stop = Stop::default().rtol(0.0).max_iters(50);
            let mut solver = Solver::new(dev, &broken, None, &*method, stop).unwrap();
            let b = vec![1.0; a.rows()];
            for _ in 0..2 {
                let error = solver.solve(&b, &mut vec![0.0; a.rows()]).unwrap_err();
                assert!(error.to_string().contains(&format!("row {row} has had enough")), "{error}");
            }
            let case = Solve { matrix: "", method: "cg", precond: "none", max_iters: 0 };
            let one = bits(&solved(cpu(), &a, "csr", &case, 5));
            assert!(
                bits(&solved((**dev).clone(), &a, "csr", &case, 5)) == one,
                "afterwards on {count} ranks"
            );
        }
    }
}

/// A function of the host is called by one rank alone, on the thread that solves; its error ends all.
#[test]
fn a_function_of_the_host_is_called_once() {
    let n = 3000;
    let (here, calls) = (std::thread::current().id(), Arc::new(AtomicUsize::new(0)));
    let counted = calls.clone();
    let operator = HostOperator::new(n, move |x: &[f64], y: &mut [f64]| {
        assert_eq!(std::thread::current().id(), here);
        y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
        if counted.fetch_add(1, Ordering::Relaxed) == 4 { Err("enough calls") } else { Ok(()) }
    });
    let dev = &device(3).scope();
    let [x, y] = dev.vectors::<f64, 2>(n).unwrap();
    dev.upload(&vec![1.5; n], x).unwrap();
    let mut k = Recorder::<f64>::new(dev, "host");
    operator.apply(&mut k, x, y, Pass::new(""));
    let mut plan = dev.plan(k.finish().unwrap()).unwrap();
    for call in 1..=6 {
        let done = plan.execute(Run { limit: 1, history: &mut History::off(), watch: None });
        assert_eq!(calls.load(Ordering::Relaxed), call);
        match call {
            5 => assert!(done.unwrap_err().to_string().contains("enough calls")),
            _ => _ = done.unwrap(),
        }
    }
    let mut got = vec![0.0; n];
    dev.download(y, &mut got).unwrap();
    assert!(got.iter().all(|v| *v == 3.0));
}

/// A caller cancels all ranks in the same iteration: they agree on x, and the solve can be repeated.
#[test]
fn a_caller_cancels_all_ranks_in_one_iteration() {
    let a = generated::<f64>("gen:poisson1d:40000");
    let dev = &device(4).scope();
    let operator = Device::matrix(dev, Arc::new(a.clone())).unwrap();
    let method = method("cg", &Options::default()).unwrap();
    let stop = Stop::default().rtol(0.0).max_iters(1_000_000);
    let mut solver = Solver::new(dev, &operator, None, &*method, stop).unwrap();
    let (b, mut x) = (vec![1.0; a.rows()], vec![0.0; a.rows()]);
    let mut seen = 0;
    let mut watch = |watch: lacuna_solvers::Watch| {
        seen = watch.iterations;
        ControlFlow::Break(())
    };
    let outcome = solver.solve_watched(&b, &mut x, Some(&mut watch)).unwrap().clone();
    assert_eq!(outcome.reason, Reason::Cancelled);
    assert!((seen..=seen + 1).contains(&outcome.iterations), "{seen}: {}", outcome.iterations);
    let case = Solve { matrix: "", method: "cg", precond: "none", max_iters: 0 };
    let one = solved(cpu(), &a, "csr", &case, 5);
    assert!(bits(&solved((**dev).clone(), &a, "csr", &case, 5)) == bits(&one));
    // A panic of the caller's comes through.
    let mut panics = |_: lacuna_solvers::Watch| -> ControlFlow<()> { panic!("the caller's own") };
    let caught =
        catch_unwind(AssertUnwindSafe(|| solver.solve_watched(&b, &mut x, Some(&mut panics)).map(drop)));
    assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"the caller's own"));
}

/// Runs the same program as each of several members of a group, as processes would: here on threads.
fn members<R: Send>(count: usize, run: impl Fn(&Device, usize) -> R + Sync) -> Vec<R> {
    let run = &run;
    std::thread::scope(|scope| {
        let member = |(rank, links)| {
            scope.spawn(move || {
                let part = Cpu::with(CpuOptions::default().threads(1)).unwrap();
                let group = Group::member(Box::new(part), Box::new(links)).poisoned();
                run(&Device::new(group), rank)
            })
        };
        let threads: Vec<_> = Threads::new(count).into_iter().enumerate().map(member).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Processes that run the same program get the bits of one CPU, all of them.
#[test]
fn members_of_several_processes_have_the_bits_of_one() {
    let cases = [
        ("gen:poisson2d:80x81", "cg", "amg", "csr"),
        ("gen:poisson2d:80x81", "cg", "multigrid", "stencil"),
        ("gen:convection:70x71:40", "gmres", "block-jacobi", "dia"),
        ("gen:convection:70x71:40", "idr", "ilu0", "csr"),
    ];
    for (matrix, method, precond, format) in cases {
        let (a, case) = (generated::<f64>(matrix), Solve { matrix, method, precond, max_iters: 0 });
        let one = bits(&solved(cpu(), &a, format, &case, 12));
        for count in [1, 2, 5] {
            for got in members(count, |dev, _| bits(&solved(dev.clone(), &a, format, &case, 12))) {
                assert!(got == one, "{case:?} in {format} on {count} members");
            }
        }
    }
}

/// A member that fails alone, or that does something else, ends all with its number, and they can go on.
#[test]
fn a_member_that_fails_ends_all_with_its_number() {
    let a = generated::<f64>("gen:poisson2d:60x60");
    let told = members(3, |dev, rank| {
        let dev = &dev.scope();
        let broken = Device::matrix(dev, Arc::new(Unknown(a.clone(), (rank == 1).then_some(1800)))).unwrap();
        let method = method("cg", &Options::default()).unwrap();
        let stop = Stop::default().rtol(0.0).max_iters(20);
        let mut solver = Solver::new(dev, &broken, None, &*method, stop).unwrap();
        let failed = solver.solve(&vec![1.0; a.rows()], &mut vec![0.0; a.rows()]).unwrap_err().to_string();
        let differs = dev.vectors::<f64, 2>(if rank == 2 { 700 } else { 600 }).unwrap_err().to_string();
        let case = Solve { matrix: "", method: "cg", precond: "none", max_iters: 0 };
        (rank, failed, differs, bits(&solved((**dev).clone(), &a, "csr", &case, 5)))
    });
    let case = Solve { matrix: "", method: "cg", precond: "none", max_iters: 0 };
    let one = bits(&solved(cpu(), &a, "csr", &case, 5));
    for (rank, failed, differs, left) in told {
        assert!(failed.contains("row 1800 has had enough"), "{failed}");
        assert!(rank == 1 || failed.contains("rank 1"), "{failed}");
        assert!(differs.contains("rank 2 does something else than rank 0"), "{differs}");
        assert!(left == one);
    }
}
